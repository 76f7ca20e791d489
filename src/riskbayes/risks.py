"""From log joints to the posterior P and the risks of a chunk of rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from riskbayes.statistics import Array


class Risks(NamedTuple):
    """Weighted sums over rows; they add over chunks, and `mean` divides by the weight."""

    soft_error: float
    error: float
    log_loss: float
    weight: float

    def plus(self, other: Risks) -> Risks:
        """The risks of both sets of rows."""
        return Risks(*(a + b for a, b in zip(self, other, strict=True)))

    def mean(self) -> dict[str, float]:
        """Average soft 0-1 loss, 0-1 loss and log loss."""
        return {name: float(getattr(self, name)) / float(self.weight) for name in self._fields[:-1]}


NO_RISK = Risks(0.0, 0.0, 0.0, 0.0)


def log_evidence(log_joint: Array) -> Array:
    """log p(x) = log sum_k p(x, k), row by row; a class of no mass may have -inf."""
    top = log_joint.max(axis=1)
    return top + np.log(np.exp(log_joint - top[:, None]).sum(axis=1))


def posterior_and_risks(scores: Array, y: Array, w: Array | None) -> tuple[Array, Risks]:
    """P and the risks, from log joints that may miss a constant of the row.

    `scores` is overwritten. `y` are class codes, `w` the weights (None: one each).
    """
    m = scores.shape[0]
    row = np.arange(m)
    wrong = scores.argmax(axis=1) != y
    scores -= scores.max(axis=1)[:, None]
    own = scores[row, y]
    P = np.exp(scores, out=scores)
    evidence = P.sum(axis=1)
    P /= evidence[:, None]
    soft, log_loss = 1.0 - P[row, y], np.log(evidence) - own
    if w is None:
        return P, Risks(soft.sum(), float(np.count_nonzero(wrong)), log_loss.sum(), m)
    return P, Risks(w @ soft, w @ wrong, w @ log_loss, w.sum())
