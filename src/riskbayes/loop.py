"""THE loop: scan, step, record, stop. Every learner and every model goes through it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum, auto
from typing import Any, ClassVar, NamedTuple

import numpy as np

from riskbayes.arrays import Array, to_numpy
from riskbayes.engines.base import Engine, Scan
from riskbayes.learners.base import Learner
from riskbayes.models.base import GenerativeModel
from riskbayes.statistics import Statistics


class Status(StrEnum):
    """How a fit ended."""

    CLOSED_FORM = auto()
    RISK_ROSE = auto()
    TOLERANCE = auto()
    MAX_ITER = auto()
    NO_LEGAL_STEP = auto()
    VALIDATION = auto()
    CALLBACK = auto()
    UPDATED = auto()
    INTERRUPTED = auto()

    @property
    def message(self) -> str:
        """The status in a sentence."""
        return MESSAGES[self]


MESSAGES = {
    Status.CLOSED_FORM: "closed form: no iterations were asked for",
    Status.RISK_ROSE: "the monitored risk rose: the last good model was kept",
    Status.TOLERANCE: "the monitored risk fell by less than tol",
    Status.MAX_ITER: "max_iter scans were used up",
    Status.NO_LEGAL_STEP: "no legal step was left: the last good model was kept",
    Status.VALIDATION: "the validation rows stopped improving: their best model was kept",
    Status.CALLBACK: "a callback stopped the fit",
    Status.UPDATED: "statistics were added or subtracted; the learner did not run",
    Status.INTERRUPTED: "interrupted: the best model so far was kept",
}


STOPPED = (Status.INTERRUPTED, Status.CALLBACK)
"""The user said stop: nothing more is run."""


class Iteration(NamedTuple):
    """One scanned model: what the history records and what callbacks see."""

    number: int
    S: Statistics
    theta: Any
    scan: Scan
    risks: dict[str, float]
    value: float
    """The monitored quantity."""
    validation: float | None
    """The monitored risk of the validation rows."""
    model: GenerativeModel
    """What theta belongs to: where rows are held out, it learned from the others."""


def nobody(iteration: Iteration) -> bool:
    """No callback."""
    return False


@dataclass(frozen=True)
class Task:
    """What a fit is given."""

    model: GenerativeModel
    """Bound to S."""
    engine: Engine
    """The training rows."""
    S: Statistics
    """s(X, Y) of all that was counted: of the training rows, and in a stream of those before them."""
    start: Statistics | None = None
    """Where to begin; None: at S."""
    validation: Engine | None = None
    """Rows that only judge."""
    on_iteration: Callable[[Iteration], bool] = nobody
    """Sees every good iteration; True stops the fit."""
    past: Statistics | None = None
    """The part of S that the engine's rows do not have: that of rows before them, in a stream."""


class Outcome(NamedTuple):
    """What a fit gives back."""

    model: GenerativeModel
    S: Statistics
    theta: Any
    history: dict[str, Array]
    status: Status
    floored: Array | None
    """How many parameters of each class were on a floor where the fit started."""
    value: float = float("nan")
    """The monitored quantity of the model returned, on the training rows."""
    judged: float = float("nan")
    """What it was chosen by: that quantity, or the risk of the validation rows."""
    number: int = 0
    """Its iteration in the history."""
    start_value: float = float("nan")
    """The monitored quantity of the model that the fit started from."""
    refit_history: dict[str, Array] | None = None
    """Of the model returned, where another path than that of the history chose its iteration."""


def run(task: Task, learner: Learner, max_iter: int | None = None) -> Outcome:
    """Calibrate the statistics of a task.

    Whatever happens, the model returned was scanned and is no worse than the one it started from in
    the monitored quantity on the training rows.
    """
    limit = learner.max_iter if max_iter is None else max_iter
    model, S = task.model, task.S if task.start is None else task.start
    if learner.max_iter == 0:
        theta = model.parameters(S)
        return Outcome(model, S, theta, History().arrays(), Status.CLOSED_FORM, floored_of(theta))
    walk = Walk(task, learner)
    try:
        status = walk.go(S, limit)
    except KeyboardInterrupt:
        if walk.chosen is None:
            raise
        status = Status.INTERRUPTED
    chosen = walk.chosen
    assert chosen is not None
    return Outcome(
        model=model,
        S=chosen.S,
        theta=chosen.theta,
        history=walk.history.arrays(),
        status=status,
        floored=walk.floored,
        value=chosen.value,
        judged=chosen.value if chosen.validation is None else chosen.validation,
        number=chosen.number,
        start_value=walk.start_value,
    )


@dataclass
class Walk:
    """One run of the loop, and where it stands."""

    task: Task
    learner: Learner
    start_value: float = float("nan")
    floored: Array | None = None
    chosen: Iteration | None = None
    """What would be returned now: the last good one, or the best for the validation rows."""
    history: History = field(default_factory=lambda: History())

    def go(self, start: Statistics, limit: int) -> Status:
        """Scan, step, record, until something says stop."""
        task, learner = self.task, self.learner
        step = learner.begin(task.model, task.engine, task.S)
        # Validation rows need no dS; only an objective with losses of its own must see them.
        watched = step.residual if hasattr(step.residual, "losses") else None

        def visit(number: int, S: Statistics) -> Iteration:
            # A step may lead where scores overflow: a risk that is no number is not accepted.
            with np.errstate(over="ignore", invalid="ignore"):
                theta = task.model.parameters(S)
                scan = task.engine.scan(theta, step.residual)
                held = None if task.validation is None else task.validation.scan(theta, watched)
            risks, judged = scan.risks.mean(), None
            if held is not None:
                found = held.risks.mean()
                judged = step.risk(found)
                risks |= {f"val_{name}": value for name, value in found.items()}
            return Iteration(number, S, theta, scan, risks, step.value(risks, theta), judged, task.model)

        self.chosen = good = visit(0, start)
        self.start_value, self.floored = good.value, floored_of(good.theta)
        self.history.record(good, lr=0.0, accepted=True)
        best, least, scans, idle = good.value, good.validation or 0.0, 0, 0
        if task.on_iteration(good):
            return Status.CALLBACK
        while scans < limit:
            proposal = step.propose(good.S, good.theta, good.scan)
            if not task.model.is_legal(proposal):
                if step.retry():
                    continue
                return Status.NO_LEGAL_STEP
            scans += 1
            new = visit(scans, proposal)
            accepted = new.value <= best + 1e-12 * (1 + abs(best))  # False for NaN too
            self.history.record(new, lr=step.lr, accepted=accepted)
            if not accepted:
                if step.retry():
                    continue
                return Status.RISK_ROSE
            fell = best - new.value
            good, best = new, min(best, new.value)
            step.on_success()
            if new.validation is None or new.validation < least:
                self.chosen, least, idle = new, new.validation or 0.0, -1
            idle += 1
            if task.on_iteration(new):
                return Status.CALLBACK
            if 0 < learner.n_iter_no_change <= idle:
                return Status.VALIDATION
            if fell < learner.tol:
                return Status.TOLERANCE
        return Status.MAX_ITER


def floored_of(theta: Any) -> Array | None:
    """How many parameters of each class sit on a floor, where the model has floors."""
    return getattr(theta, "floored", None)


class History:
    """Columns of equal length; entry 0 is the model that the fit started from."""

    always = ("soft_error", "error", "log_loss", "lr", "accepted", "floored")
    types: ClassVar[dict[str, type]] = {"accepted": bool, "floored": int}

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def record(self, iteration: Iteration, lr: float, accepted: bool) -> None:
        """Add a row. `floored` counts the parameters that sit on a floor."""
        floored = floored_of(iteration.theta)
        self.rows.append({**iteration.risks, "lr": lr, "accepted": accepted, "floored": floored})

    def arrays(self) -> dict[str, Array]:
        """The history as arrays."""
        for row in self.rows:  # read now: on a device each number is a wait
            found = row["floored"]
            row["floored"] = (
                found if isinstance(found, int) else 0 if found is None else int(to_numpy(found).sum())
            )
        names = self.rows[0] if self.rows else self.always
        kinds = {name: self.types.get(name, float) for name in names}
        return {name: np.array([row[name] for row in self.rows], dtype=kinds[name]) for name in names}
