"""THE loop: scan, step, record, stop. Every learner and every model goes through it."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

from riskbayes.engines.base import Engine, Scan
from riskbayes.learners.base import Learner
from riskbayes.models.base import GenerativeModel
from riskbayes.statistics import Array, Statistics


class Status(StrEnum):
    """How a fit ended."""

    CLOSED_FORM = "closed form: no iterations were asked for"
    RISK_ROSE = "the monitored risk rose: the last good model was kept"
    TOLERANCE = "the monitored risk fell by less than tol"
    MAX_ITER = "max_iter scans were used up"
    NO_LEGAL_STEP = "no legal step was left: the last good model was kept"
    CALLBACK = "a callback stopped the fit"


class Iteration(NamedTuple):
    """One scanned model: what the history records and what callbacks see."""

    number: int
    S: Statistics
    theta: Any
    scan: Scan
    risks: dict[str, float]
    value: float
    """The monitored risk."""


class Outcome(NamedTuple):
    """What a fit gives back."""

    S: Statistics
    theta: Any
    history: dict[str, Array]
    status: Status
    first: Any
    """theta of the statistics that the fit started from."""


def run(
    model: GenerativeModel,
    engine: Engine,
    learner: Learner,
    S: Statistics,
    on_iteration: Callable[[Iteration], bool] = lambda iteration: False,
    max_iter: int | None = None,
) -> Outcome:
    """Calibrate S. Whatever happens, the model returned was scanned and is no worse than the first."""
    history = History()
    if learner.residual is None:
        theta = model.parameters(S)
        return Outcome(S, theta, history.arrays(), Status.CLOSED_FORM, theta)

    def visit(number: int, S: Statistics) -> Iteration:
        theta = model.parameters(S)
        scan = engine.scan(theta, learner.residual)
        risks = scan.risks.mean()
        return Iteration(number, S, theta, scan, risks, learner.monitored(risks))

    step = learner.begin(model, S)
    limit = learner.max_iter if max_iter is None else max_iter
    good = first = visit(0, S)
    history.record(good, lr=0.0, accepted=True)
    best, scans, status = good.value, 0, Status.MAX_ITER
    if on_iteration(good):
        return Outcome(good.S, good.theta, history.arrays(), Status.CALLBACK, first.theta)
    while scans < limit:
        proposal = step.propose(good.S, good.scan)
        if not model.is_legal(proposal):
            if step.retry():
                continue
            status = Status.NO_LEGAL_STEP
            break
        scans += 1
        new = visit(scans, proposal)
        accepted = new.value <= best + 1e-12 * (1 + abs(best))  # False for NaN too
        history.record(new, lr=step.lr, accepted=accepted)
        if not accepted:
            if step.retry():
                continue
            status = Status.RISK_ROSE
            break
        fell = best - new.value
        good, best = new, min(best, new.value)
        step.on_success()
        if on_iteration(good):
            status = Status.CALLBACK
            break
        if fell < learner.tol:
            status = Status.TOLERANCE
            break
    return Outcome(good.S, good.theta, history.arrays(), status, first.theta)


class History:
    """Columns of equal length; entry 0 is the closed form."""

    columns = ("soft_error", "error", "log_loss", "lr", "accepted", "floored")

    def __init__(self) -> None:
        self.rows: list[tuple] = []

    def record(self, iteration: Iteration, lr: float, accepted: bool) -> None:
        """Add a row. `floored` counts the parameters that sit on a floor."""
        risks, floored = iteration.risks, int(np.sum(getattr(iteration.theta, "floored", 0)))
        self.rows.append((risks["soft_error"], risks["error"], risks["log_loss"], lr, accepted, floored))

    def arrays(self) -> dict[str, Array]:
        """The history as arrays."""
        types = (float, float, float, float, bool, int)
        columns = zip(*self.rows, strict=True) if self.rows else [()] * len(self.columns)
        return {
            name: np.array(values, dtype=kind)
            for name, values, kind in zip(self.columns, columns, types, strict=True)
        }
