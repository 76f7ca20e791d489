"""The values that the loop, the learners, the search and the estimators pass to each other: what a fit is
given (Task), one scanned model (Iteration), the result (Outcome) and how the fit ended (Status).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Self

from riskbayes.arrays import Array
from riskbayes.engines.base import Engine, Scan
from riskbayes.models.base import Fitted, GenerativeModel
from riskbayes.statistics import Statistics


class Status(StrEnum):
    """How a fit ended: a name, and the same in a sentence."""

    CLOSED_FORM = "closed_form", "closed form: no iterations were asked for"
    RISK_ROSE = "risk_rose", "the monitored risk rose: the last good model was kept"
    CONVERGED = "converged", "converged: the gradient is small, or all rows are told apart"
    TOLERANCE = "tolerance", "the monitored risk fell by less than tol"
    MAX_ITER = "max_iter", "max_iter scans were used up"
    NO_LEGAL_STEP = "no_legal_step", "no legal step was left: the last good model was kept"
    VALIDATION = "validation", "the validation rows stopped improving: their best model was kept"
    CALLBACK = "callback", "a callback stopped the fit"
    UPDATED = "updated", "statistics were added or subtracted; the learner did not run"
    INTERRUPTED = "interrupted", "interrupted: the best model so far was kept"
    LOST = "lost", "the rows were lost: the best model so far was kept"

    message: str

    def __new__(cls, name: str, message: str) -> Self:
        """Return the member whose value is its name."""
        self = str.__new__(cls, name)
        self._value_, self.message = name, message
        return self

    @property
    def is_stop(self) -> bool:
        """True if the user asked to stop, or the rows are lost: nothing more is run then."""
        return self in (Status.INTERRUPTED, Status.CALLBACK, Status.LOST)


class Iteration(NamedTuple):
    """One scanned model: what the history records and what callbacks are given."""

    number: int
    """Scans before this one; 0 is the model that the fit started from."""
    fitted: Fitted
    scan: Scan
    risks: dict[str, float]
    """Mean risks on the training rows, and as `val_...` on the validation rows."""
    value: float
    """The monitored quantity."""
    validation: float | None
    """The monitored risk on the validation rows; None if there are none."""


def no_callback(iteration: Iteration) -> bool:
    """Do nothing: the default callback, which never stops a fit."""
    return False


@dataclass(frozen=True)
class Task:
    """What a fit is given: a model, rows, and the statistics to start from."""

    model: GenerativeModel
    engine: Engine
    """The training rows."""
    S: Statistics
    """s(X, Y), settled: of the training rows and of those of `other_rows`."""
    start: Statistics | None = None
    """Statistics to start from; by default S."""
    validation: Engine | None = None
    """Rows that are not trained on: their risk selects the iteration to return."""
    on_iteration: Callable[[Iteration], bool] = no_callback
    """Called with every accepted iteration; True stops the fit."""
    other_rows: Statistics | None = None
    """The part of S that comes from rows that the engine does not hold: in a stream earlier ones, and rows
    without a label."""
    in_stream: bool = False
    """True for a batch: statistics of more rows will be added to those that this fit returns."""


class Outcome(NamedTuple):
    """The result of a fit."""

    fitted: Fitted
    history: dict[str, Array]
    status: Status
    floored: Array | None
    """How many parameters of each class were on a floor in the model that the fit started from."""
    value: float = float("nan")
    """The monitored quantity of the returned model, on the training rows."""
    judged: float = float("nan")
    """The risk that the model was selected by: on validation rows where there are any, else `value`."""
    number: int = 0
    """The iteration of the returned model in the history."""
    start_value: float = float("nan")
    """The monitored quantity of the model that the fit started from."""
    refit_history: dict[str, Array] | None = None
    """History of the refit on all rows, if `history` is that of a fit that held rows out."""
