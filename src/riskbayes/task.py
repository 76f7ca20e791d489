"""What a fit is given, what it gives back, and how it ended: the values that pass between the loop, the
learners, the search and the estimators.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum, auto
from typing import NamedTuple

from riskbayes.arrays import Array
from riskbayes.engines.base import Engine, Scan
from riskbayes.models.base import Fitted, GenerativeModel
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

    @property
    def is_stop(self) -> bool:
        """True if the user asked to stop: nothing more is run then."""
        return self in (Status.INTERRUPTED, Status.CALLBACK)


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


class Iteration(NamedTuple):
    """One scanned model: what the history records and what callbacks see."""

    number: int
    fitted: Fitted
    scan: Scan
    risks: dict[str, float]
    value: float
    """The monitored quantity."""
    validation: float | None
    """The monitored risk on the validation rows."""


def nobody(iteration: Iteration) -> bool:
    """The callback that is called where there is none; it never stops a fit."""
    return False


@dataclass(frozen=True)
class Task:
    """What a fit is given."""

    model: GenerativeModel
    engine: Engine
    """The training rows."""
    S: Statistics
    """s(X, Y), settled: of the training rows, and in a stream also of those before them."""
    start: Statistics | None = None
    """Statistics to start from; by default S."""
    validation: Engine | None = None
    """Rows that judge the iterations and are not trained on."""
    on_iteration: Callable[[Iteration], bool] = nobody
    """Called with every accepted iteration; True stops the fit."""
    past: Statistics | None = None
    """In a stream, the part of S that comes from earlier rows, which the engine does not hold."""


class Outcome(NamedTuple):
    """What a fit gives back."""

    fitted: Fitted
    history: dict[str, Array]
    status: Status
    floored: Array | None
    """How many parameters of each class were on a floor where the fit started."""
    value: float = float("nan")
    """The monitored quantity of the returned model, on the training rows."""
    judged: float = float("nan")
    """The risk that the model was selected by: on validation rows where there are any, else `value`."""
    number: int = 0
    """The returned model's iteration in the history."""
    start_value: float = float("nan")
    """The monitored quantity of the model that the fit started from."""
    refit_history: dict[str, Array] | None = None
    """History of the refit on all rows, where `history` is that of a path that held rows out."""
