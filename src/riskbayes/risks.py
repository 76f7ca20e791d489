"""From log joints to the posterior P and the risks of a chunk of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from riskbayes.statistics import Array


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
        return {name: float(value) / float(self.weight) for name, value in self.sums.items()}


NO_RISK = Risks({}, 0.0)


def log_evidence(log_joint: Array) -> Array:
    """log p(x) = log sum_k p(x, k), row by row; a class of no mass may have -inf."""
    top = log_joint.max(axis=1)
    return top + np.log(np.exp(log_joint - top[:, None]).sum(axis=1))


def posterior_and_risks(scores: Array, y: Array, w: Array | None, objective: Any) -> tuple[Array, Risks]:
    """P and the risks, from log joints that may miss a constant of the row.

    `scores` is overwritten. `y` are class codes, `w` the weights (None: one each). An objective with
    losses of its own has them counted too.
    """
    m = scores.shape[0]
    row = np.arange(m)
    wrong = scores.argmax(axis=1) != y
    scores -= scores.max(axis=1)[:, None]
    own = scores[row, y]
    P = np.exp(scores, out=scores)
    evidence = P.sum(axis=1)
    P /= evidence[:, None]
    losses = {"soft_error": 1.0 - P[row, y], "error": wrong, "log_loss": np.log(evidence) - own}
    if hasattr(objective, "losses"):
        losses |= objective.losses(P, y)
    if w is None:
        return P, Risks({name: loss.sum() for name, loss in losses.items()}, m)
    return P, Risks({name: w @ loss for name, loss in losses.items()}, w.sum())
