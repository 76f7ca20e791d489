"""From log joints to the posterior P and the risks of a chunk of rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from riskbayes.arrays import Array, as_kind, at_labels, namespace, to_numpy, widest_float


class Risks:
    """Weighted sums over rows, by name; they add over chunks, and `mean` divides by the weight."""

    __slots__ = ("sums", "weight")

    def __init__(self, sums: dict[str, float], weight: float):
        self.sums, self.weight = sums, weight

    def plus(self, other: Risks) -> Risks:
        """The risks of both sets of rows."""
        if not self.sums:
            return other
        sums = {name: value + other.sums[name] for name, value in self.sums.items()}
        return Risks(sums, self.weight + other.weight)

    def mean(self) -> dict[str, float]:
        """Average soft 0-1 loss, 0-1 loss, log loss, and what else was counted."""
        weight = float(self.weight)
        return {
            name: value / weight for name, value in zip(self.sums, on_host(self.sums.values()), strict=True)
        }


NO_RISK = Risks({}, 0.0)


def on_host(numbers: Iterable) -> list[float]:
    """Numbers that may live on a device, read together: each reading is a wait."""
    found = list(numbers)
    if not found or isinstance(found[0], float | np.generic | int):
        return [float(value) for value in found]
    xp = namespace(found[0])
    return to_numpy(xp.stack([as_kind(value, found[0].dtype) for value in found])).tolist()


def log_evidence(log_joint: Array) -> Array:
    """log p(x) = log sum_k p(x, k), row by row; a class of no mass may have -inf."""
    xp = namespace(log_joint)
    top = xp.max(log_joint, axis=1, keepdims=True)
    return top[:, 0] + xp.log(xp.sum(xp.exp(log_joint - top), axis=1))


def posterior_and_risks(scores: Array, y: Array, w: Array | None, objective: Any) -> tuple[Array, Risks]:
    """P and the risks, from log joints that may miss a constant of the row.

    `scores` is overwritten. `y` are class codes, `w` the weights (None: one each). An objective with
    losses of its own has them counted too.
    """
    xp = namespace(scores)
    wrong = xp.argmax(scores, axis=1) != y
    scores -= xp.max(scores, axis=1, keepdims=True)
    own = at_labels(scores, y)
    P = np.exp(scores, out=scores) if xp is np else xp.exp(scores)
    evidence = xp.sum(P, axis=1, keepdims=True)
    P /= evidence
    log_loss = xp.log(evidence[:, 0]) - own
    losses = {"soft_error": 1.0 - at_labels(P, y), "error": xp.astype(wrong, P.dtype), "log_loss": log_loss}
    if hasattr(objective, "losses"):
        losses |= objective.losses(P, y)
    if w is None:
        wide = widest_float(P)
        return P, Risks({name: xp.sum(loss, dtype=wide) for name, loss in losses.items()}, y.shape[0])
    return P, Risks({name: xp.sum(w * loss) for name, loss in losses.items()}, xp.sum(w))
