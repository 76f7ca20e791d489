"""Compute the posterior P and the risks of a chunk of rows from its log joints."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from riskbayes.arrays import (
    Array,
    astype,
    at_labels,
    max_of,
    namespace,
    sum_of,
    to_numpy,
    widest_float,
)
from riskbayes.objectives import Objective


class Risks(NamedTuple):
    """Weighted sums of losses over rows, by name, and the weight of the rows; chunks can be added."""

    names: tuple[str, ...]
    sums: Array
    weight: Any

    def plus(self, other: Risks) -> Risks:
        """Return the risks of both sets of rows together."""
        if not self.names:
            return other
        return Risks(self.names, self.sums + other.sums, self.weight + other.weight)

    def mean(self) -> dict[str, float]:
        """Return the averages: soft 0-1 loss, 0-1 loss, log loss, and the objective's own losses."""
        weight = float(self.weight)
        values = to_numpy(self.sums).tolist()  # in one transfer: the host waits for each from a device
        return {name: value / weight for name, value in zip(self.names, values, strict=True)}


NO_RISK = Risks((), np.zeros(0), 0.0)


def log_evidence(log_joint: Array) -> Array:
    """Return log p(x) = log sum_k p(x, k) of each row; a class without mass may have -inf."""
    xp = namespace(log_joint)
    top = max_of(log_joint, axis=1, keepdims=True)
    return top[:, 0] + xp.log(sum_of(xp.exp(log_joint - top), axis=1))


def log_posterior(log_joint: Array) -> Array:
    """Return log p(k | x) of each row, from log joints up to a constant of the row.

    The largest is subtracted first: beside log joints of -1e20 the logarithm of the sum would be lost.
    """
    xp, below = namespace(log_joint), below_largest(log_joint)
    return below - xp.log(sum_of(xp.exp(below), axis=1, keepdims=True))


def posterior(log_joint: Array) -> Array:
    """Return p(k | x) of each row, from log joints up to a constant of the row."""
    below = below_largest(log_joint)
    P = namespace(below).exp(below)
    P /= sum_of(P, axis=1, keepdims=True)
    return P


def below_largest(scores: Array) -> Array:
    """Return scores minus the largest of each row, as a new array.

    In NumPy it is Fortran-contiguous: sums over few classes are then twenty times faster.
    """
    if not isinstance(scores, np.ndarray):
        return scores - max_of(scores, axis=1, keepdims=True)
    ordered = np.asfortranarray(scores)
    top = np.maximum.reduce(ordered, axis=1, keepdims=True)
    return np.subtract(ordered, top, out=None if ordered is scores else ordered)


def posterior_and_risks(
    scores: Array, y: Array, w: Array | None, objective: Objective
) -> tuple[Array, Risks]:
    """Return P and the risks, from log joints up to a constant of the row.

    `y` are class codes, `w` the weights (None: one each). The objective's own losses are included.
    """
    xp, scores = namespace(scores), below_largest(scores)
    if xp is np:
        own = scores[np.arange(len(y)), y]
        # Without ties the prediction is wrong where the score of the label is not the largest.
        distinct = np.count_nonzero(scores) == scores.size - len(y)
        wrong = own < 0 if distinct else scores.argmax(axis=1) != y
        P = np.exp(scores, out=scores)
    else:
        own, wrong, P = at_labels(scores, y), xp.argmax(scores, axis=1) != y, xp.exp(scores)
    evidence = sum_of(P, axis=1)
    P /= evidence[:, None]
    soft = 1.0 - (np.exp(own) / evidence if xp is np else at_labels(P, y))
    losses = {"soft_error": soft, "error": wrong, "log_loss": xp.log(evidence) - own}
    losses |= objective.losses(P, y)
    if xp is np:
        if w is None:
            sums = [
                np.add.reduce(loss, dtype=np.float64) if loss is not wrong else np.count_nonzero(wrong)
                for loss in losses.values()
            ]
            return P, Risks(tuple(losses), np.array(sums, dtype=np.float64), len(y))
        return P, Risks(tuple(losses), np.array([w @ loss for loss in losses.values()]), w.sum())
    table = xp.stack([astype(loss, widest_float(P)) for loss in losses.values()])
    sums, weight = (sum_of(table, axis=1), y.shape[0]) if w is None else (table @ w, sum_of(w))
    return P, Risks(tuple(losses), sums, weight)
