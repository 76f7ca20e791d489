"""What a learner descends: the residual of a risk, its negative gradient in the log joint.

Each objective is a callable (P, y) -> E with E[i, k] = -d loss(x_i, y_i) / d log p(x_i, k). The rows
of E sum to zero.
"""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np

from riskbayes.arrays import Array, as_kind, at_labels, label_rows, namespace, sent_to, sum_of, take_rows


class LogLoss:
    """-log P[y]. This residual is the paper's: strengthen the label, weaken the posterior."""

    risk = "log_loss"
    power = 0
    """E = P[y]^power (1[y = k] - P[k]), for compiled scans."""

    def __call__(self, P: Array, y: Array) -> Array:
        """E[i, k] = 1[y = k] - P[k]."""
        return label_minus(P, y)


class SoftError:
    """1 - P[y], what the paper monitors."""

    risk = "soft_error"
    power = 1

    def __call__(self, P: Array, y: Array) -> Array:
        """E[i, k] = P[y] (1[y = k] - P[k])."""
        return label_minus(P, y) * at_labels(P, y)[:, None]


class ExpectedCost:
    """sum_k P[k] C[y, k]: what a decision drawn from the posterior costs on average."""

    risk = "cost"

    def __init__(self, C: Array):
        self.C = C

    def losses(self, P: Array, y: Array) -> dict[str, Array]:
        """The expected cost of each row."""
        return {"cost": namespace(P).sum(P * self._costs(P, y), axis=1)}

    def _costs(self, P: Array, y: Array) -> Array:
        """C[y], where P lives."""
        return take_rows(as_kind(sent_to(self.C, P), P.dtype), y)

    def __call__(self, P: Array, y: Array) -> Array:
        """E[i, k] = P[k] (sum_j P[j] C[y, j] - C[y, k])."""
        costs = self._costs(P, y)
        mean = namespace(P).sum(P * costs, axis=1, keepdims=True)
        return P * (mean - costs)


def label_minus(P: Array, y: Array) -> Array:
    """1[y = k] - P[k], where the label has the sum of the others' P.

    That is 1 - P[y] with all its digits, so that each row sums to zero to the rounding of its own entries,
    and what is the same for all classes falls away.
    """
    xp = namespace(P)
    if xp is np:
        E, rows = -P, np.arange(len(y))
        E[rows, y] = 0.0
        E[rows, y] = -sum_of(E, axis=1)
        return E
    label = label_rows(y, P.shape[1], None, xp.bool)
    others = xp.where(label, 0.0, P)
    return xp.where(label, sum_of(others, axis=1, keepdims=True), -others)


NAMED: dict[str, Any] = {"log_loss": LogLoss, "soft_error": SoftError}


def resolve_objective(objective: Any, n_classes: int) -> LogLoss | SoftError | ExpectedCost:
    """An objective from its name or a cost matrix."""
    if isinstance(objective, str):
        if objective not in NAMED:
            raise ValueError(
                f"objective must be one of {', '.join(map(repr, NAMED))} or a cost matrix; got {objective!r}."
            )
        return NAMED[objective]()
    return ExpectedCost(check_cost_matrix(objective, n_classes, "objective"))


def check_cost_matrix(cost: Any, n_classes: int, name: str) -> Array:
    """A matrix of finite costs: rows are true classes, columns decisions, both as `classes_`."""
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
