"""The one loop that trains every model by every learner: scan, step, record, stop."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np

from riskbayes.arrays import Array, namespace, to_numpy
from riskbayes.exceptions import RowsLostError
from riskbayes.models.base import Fitted
from riskbayes.objectives import Objective
from riskbayes.statistics import Statistics
from riskbayes.task import Iteration, Outcome, Status, Task

LARGE = 2**20
"""Numbers in statistics above which the parameters of the last model are not kept: 8 MiB of float64."""


class Step:
    """The state of a learner during one fit.

    The loop asks it which statistics to try next, and tells it whether they were accepted.
    """

    lr: float = 0.0
    """The current step length, for the history."""

    objective: Objective
    """The objective whose residual a scan sums."""

    reads_theta: ClassVar[bool] = True
    """False if `propose` reads the statistics of the last accepted iteration only, not its parameters."""

    def risk(self, risks: dict[str, float]) -> float:
        """Return the monitored one of these risks, of training or of validation rows."""
        return risks["soft_error"]

    def value(self, risks: dict[str, float], theta: Any) -> float:
        """Return the monitored quantity, which must not rise: the risk, and an anchor if there is one."""
        return self.risk(risks)

    def propose(self, good: Iteration) -> Statistics | None:
        """Return the statistics to try next, from the last accepted iteration; None if it is optimal."""
        raise NotImplementedError

    def on_success(self) -> None:
        """Called when the proposal was accepted."""

    def retry(self, rose: bool) -> bool:
        """Called when the proposal raised the risk or, if not `rose`, was illegal; True to try another."""
        return False


class LoopLearner(Protocol):
    """What the loop needs of a learner."""

    max_iter: int
    tol: float
    n_iter_no_change: int

    def begin(self, task: Task) -> Step:
        """Return a new step for a fit."""


def run(task: Task, learner: LoopLearner, max_iter: int | None = None) -> Outcome:
    """Calibrate the statistics of a task; `max_iter` replaces that of the learner.

    The returned model was scanned, and its monitored quantity on the training rows is not above that of the
    model that the fit started from.
    """
    start = task.S if task.start is None else task.start
    if learner.max_iter == 0:
        fitted = Fitted.of(task.model, start)
        return Outcome(fitted, history_of([]), Status.CLOSED_FORM, floored_of(fitted))
    # Scores may overflow after a long step: a risk that is NaN is not accepted.
    with np.errstate(over="ignore", invalid="ignore"):
        state = LoopState(task, learner, learner.begin(task))
        try:
            status = state.go(start, learner.max_iter if max_iter is None else max_iter)
        except (KeyboardInterrupt, RowsLostError) as error:
            if state.chosen is None:
                raise
            status = Status.LOST if isinstance(error, RowsLostError) else Status.INTERRUPTED
        chosen = state.chosen
        assert chosen is not None
        fitted = chosen.fitted
        if fitted.theta is None:
            fitted = Fitted.of(task.model, fitted.S)
    return Outcome(
        fitted=fitted,
        history=history_of(state.history),
        status=status,
        floored=state.floored,
        value=chosen.value,
        judged=chosen.value if chosen.validation is None else chosen.validation,
        number=chosen.number,
        start_value=state.start_value,
    )


@dataclass
class LoopState:
    """The state of one run of the loop."""

    task: Task
    learner: LoopLearner
    step: Step
    start_value: float = float("nan")
    """The monitored quantity of the model that the run started from."""
    floored: Array | None = None
    """How many parameters of each class are on a floor in that model."""
    chosen: Iteration | None = None
    """The iteration to return: the last accepted one, or the best one on the validation rows."""
    history: list[dict[str, Any]] = field(default_factory=list)
    """Of each scan: risks, step length, whether it was accepted, floored parameters by class."""

    def go(self, start: Statistics, limit: int) -> Status:
        """Scan, step and record until a stopping rule holds; return which one."""
        task, learner, step = self.task, self.learner, self.step
        self.chosen = good = self.visit(0, start)
        self.start_value, self.floored = good.value, floored_of(good.fitted)
        self.history.append({**good.risks, "lr": 0.0, "accepted": True, "floored": self.floored})
        best, least, scans, idle = good.value, good.validation or 0.0, 0, 0
        large = not step.reads_theta and sum(math.prod(value.shape) for value in start.values()) > LARGE
        if task.on_iteration(good):
            return Status.CALLBACK
        while scans < limit:
            proposal = step.propose(good)
            if proposal is None:
                return Status.CONVERGED
            if not task.model.is_legal(proposal):
                if step.retry(rose=False):
                    continue
                return Status.NO_LEGAL_STEP
            scans += 1
            if large:
                good = self.without_parameters(good)
            new = self.visit(scans, proposal)
            accepted = new.value <= best + 1e-12 * (step.objective.scale + abs(best))  # False for NaN too
            floored = floored_of(new.fitted)
            self.history.append({**new.risks, "lr": step.lr, "accepted": accepted, "floored": floored})
            if not accepted:
                del new  # its arrays may be large
                if step.retry(rose=True):
                    continue
                return Status.RISK_ROSE
            fell = best - new.value
            good, best = new, min(best, new.value)
            del new, proposal
            step.on_success()
            if good.validation is None or good.validation < least:
                self.chosen, least, idle = good, good.validation or 0.0, -1
            idle += 1
            if task.on_iteration(good):
                return Status.CALLBACK
            if 0 < learner.n_iter_no_change <= idle:
                return Status.VALIDATION
            if 0 < learner.tol > fell:
                return Status.TOLERANCE
        return Status.MAX_ITER

    def without_parameters(self, good: Iteration) -> Iteration:
        """Return an accepted iteration without its parameters: if it is chosen, `run` estimates them again.

        While the next proposal is visited they would be one stack of matrices more in memory.
        """
        small = good._replace(fitted=good.fitted._replace(theta=None))
        self.chosen = small if self.chosen is good else self.chosen
        return small

    def visit(self, number: int, S: Statistics) -> Iteration:
        """Estimate the parameters of S, scan the training rows, and take the risks of the validation rows."""
        task, step = self.task, self.step
        fitted = Fitted(task.model, S, task.model.parameters(S))
        scan = task.engine.scan(fitted, step.objective)
        risks, judged = scan.risks.mean(), None
        if task.validation is not None:
            held = task.validation.scan(fitted, step.objective, risks_only=True).risks.mean()
            judged = step.risk(held)
            risks |= {f"val_{name}": value for name, value in held.items()}
        return Iteration(number, fitted, scan, risks, step.value(risks, fitted.theta), judged)


def floored_of(fitted: Fitted) -> Array | None:
    """Return how many parameters of each class were raised to a floor; None if the model has no floors."""
    return getattr(fitted.theta, "floored", None)


ALWAYS = ("soft_error", "error", "log_loss", "lr", "accepted", "floored")
"""Columns of every history."""


def history_of(rows: list[dict[str, Any]]) -> dict[str, Array]:
    """Return the history as arrays of equal length; entry 0 is the model that the fit started from.

    `floored` is read only at the end of a fit, for the host waits each time it reads from a device.
    """
    names, kinds = rows[0] if rows else ALWAYS, {"accepted": bool}
    found = {name: [row[name] for row in rows] for name in names}
    by_class = found.pop("floored")
    table = {name: np.array(values, dtype=kinds.get(name, float)) for name, values in found.items()}
    if not rows or by_class[0] is None:
        return {**table, "floored": np.zeros(len(rows), dtype=int)}
    return {**table, "floored": to_numpy(namespace(by_class[0]).stack(by_class)).sum(axis=1).astype(int)}
