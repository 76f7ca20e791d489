"""Objectives: the losses that learners lower, by their residual, the negative gradient in the log joint."""

from __future__ import annotations

import reprlib
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from riskbayes.arrays import Array, astype, at_labels, sum_of, take_rows, to_device, with_labels


class Objective(ABC):
    """A loss, defined by its residual E[i, k] = -d loss(x_i, y_i) / d log p(x_i, k).

    The rows of E sum to zero. Subclass it, write `residual`, and set the attributes that let scans save work:
    in the class that writes `residual` or `losses`, for only there they count.
    """

    risk: ClassVar[str]
    """Name of the risk in the history that is the mean of the loss."""

    power: ClassVar[int | None] = None
    """p if E = P[y]^p (1[y = k] - P[k]), for which there are compiled scans; None for another residual, and
    for an objective with further losses, which these scans do not compute."""

    saturates: ClassVar[bool] = False
    """True if a row whose label has posterior one has no loss and no residual: scans may skip it."""

    scale: ClassVar[float] = 1.0
    """The unit of the loss: gradients and rises of the risk are measured in it."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Drop what a base class declares of formulas that are replaced: scans would still go by it."""
        super().__init_subclass__(**options)
        declared = vars(next(kind for kind in cls.__mro__ if vars(kind).keys() & {"residual", "losses"}))
        cls.power = declared.get("power") if cls.losses is Objective.losses else None
        cls.saturates = declared.get("saturates", False)

    @property
    def costs(self) -> Array | None:
        """Costs (true class, decision) by which `predict` decides; None for the most probable class."""
        return None

    @abstractmethod
    def residual(self, P: Array, y: Array) -> Array:
        """Return E, of the shape of the posteriors P; y are class codes."""

    def losses(self, P: Array, y: Array) -> dict[str, Array]:
        """Return further losses of each row by name, for the history; scans compute the common ones."""
        return {}


class LogLoss(Objective):
    """The log loss -log P[y]. Its residual is the paper's: strengthen the label, weaken the posterior."""

    risk = "log_loss"
    power = 0
    saturates = True

    def residual(self, P: Array, y: Array) -> Array:
        """Return E[i, k] = 1[y = k] - P[k].

        The entry of the label is the sum of the other classes' P: 1 - P[y] would lose digits, and the row
        would not sum to zero up to the rounding of its entries.
        """
        if isinstance(P, np.ndarray):
            E, rows = -P, np.arange(len(y))
            E[rows, y] = 0.0
            E[rows, y] = -sum_of(E, axis=1)
            return E
        others = with_labels(P, y, 0.0)
        return with_labels(-others, y, sum_of(others, axis=1))


class SoftError(LogLoss):
    """The soft error 1 - P[y], which the paper monitors."""

    risk = "soft_error"
    power = 1
    saturates = True

    def residual(self, P: Array, y: Array) -> Array:
        """Return E[i, k] = P[y] (1[y = k] - P[k])."""
        return super().residual(P, y) * at_labels(P, y)[:, None]


class ExpectedCost(Objective):
    """The expected cost sum_k P[k] C[y, k] of a decision that is drawn from the posterior."""

    risk = "cost"

    def __init__(self, C: Array):
        self.C = C

    @property
    def costs(self) -> Array:
        """The matrix C."""
        return self.C

    @property
    def scale(self) -> float:  # type: ignore[override]
        """The largest difference between the costs of a class."""
        return float(np.ptp(self.C, axis=1).max()) or 1.0

    def losses(self, P: Array, y: Array) -> dict[str, Array]:
        """Return the expected cost of each row."""
        return {"cost": sum_of(P * self._costs(P, y), axis=1)}

    def _costs(self, P: Array, y: Array) -> Array:
        """Return C[y] on the device of P."""
        return take_rows(astype(to_device(self.C, P), P.dtype), y)

    def residual(self, P: Array, y: Array) -> Array:
        """Return E[i, k] = P[k] (sum_j P[j] C[y, j] - C[y, k])."""
        costs = self._costs(P, y)
        return P * (sum_of(P * costs, axis=1, keepdims=True) - costs)


NAMED: dict[str, type[Objective]] = {"log_loss": LogLoss, "soft_error": SoftError}


def resolve_objective(objective: Any, n_classes: int) -> Objective:
    """Return the objective of a name, an instance or a cost matrix."""
    if isinstance(objective, Objective):
        if objective.costs is not None:
            check_cost_matrix(objective.costs, n_classes, "objective")
        return objective
    if isinstance(objective, str):
        if objective not in NAMED:
            raise ValueError(
                f"objective must be one of {', '.join(map(repr, NAMED))} or a cost matrix; got {objective!r}."
            )
        return NAMED[objective]()
    return ExpectedCost(check_cost_matrix(objective, n_classes, "objective"))


def check_cost_matrix(cost: Any, n_classes: int, name: str) -> Array:
    """Return the costs as a float64 matrix (true class, decision), both in the order of `classes_`."""
    try:
        C = np.asarray(cost, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be a matrix of numbers; got {reprlib.repr(cost)}.") from error
    if C.shape != (n_classes, n_classes):
        raise ValueError(
            f"{name} as a cost matrix needs a row for each true class and a column for each decision: shape "
            f"({n_classes}, {n_classes}); got {C.shape}."
        )
    if not np.isfinite(C).all():
        raise ValueError(f"{name} as a cost matrix must hold finite numbers.")
    return C
