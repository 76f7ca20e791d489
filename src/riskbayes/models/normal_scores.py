"""Monotone maps of columns to normal scores: through quantiles of all classes together, and linear between.

A column that is mapped has about a standard normal distribution, whatever its tails. The map is the same for
all classes, so that the density of a value is that of its score times the slope of the map there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from riskbayes.arrays import Array
from riskbayes.frames import Frame
from riskbayes.loaded import require, require_shape
from riskbayes.models.quantiles import quantiles, value_masses

MOST_KNOTS = 16
"""Most knots of a map."""

REACH = 2.5
"""The knots but for the least and the largest value are at quantiles from ndtr(-REACH) to ndtr(REACH)."""


LEAST_GAP = 1e-200
"""Least distance between knots, in units of the column: slopes must not overflow."""


@dataclass(frozen=True, eq=False)
class NormalScores(Frame):
    """Piecewise linear maps of columns; a column of no knots is left as it is."""

    n_knots: Array
    """The number of knots of each column."""
    knots: Array
    """Values in ascending order, a row for each column, with zeros behind them."""
    scores: Array
    """What these are mapped to."""

    def check_loaded(self, size: int) -> None:
        """Require knots and scores that ascend."""
        n = len(self.n_knots)
        require_shape(self.n_knots, (n,), "i", "n_knots")
        require_shape(self.knots, (n, self.knots.shape[-1]), "f", "knots")
        require_shape(self.scores, self.knots.shape, "f", "scores")
        for number, knots, scores in zip(self.n_knots.tolist(), self.knots, self.scores, strict=True):
            require(number == 0 or 2 <= number <= len(knots), "a map has one knot, or more than there are")
            for values in (knots[:number], scores[:number]):
                require(bool((np.diff(values) > 0).all()), "knots do not ascend")
        super().check_loaded(size)

    def slopes(self, j: int) -> Array:
        """Return the slopes of a map between its knots."""
        k = self.n_knots[j]
        return np.diff(self.scores[j, :k]) / np.diff(self.knots[j, :k])

    def forwards(self, D: Array) -> tuple[Array, Array]:
        """Return the scores of rows, and the logarithms of the slopes there; NaN stays NaN."""
        Z, logs = D.copy(), np.zeros(D.shape)
        for j in np.flatnonzero(self.n_knots).tolist():
            k, slopes = self.n_knots[j], self.slopes(j)
            place = np.clip(np.searchsorted(self.knots[j, :k], D[:, j], side="right") - 1, 0, k - 2)
            Z[:, j] = self.scores[j, place] + (D[:, j] - self.knots[j, place]) * slopes[place]
            logs[:, j] = np.log(slopes)[place]
        return Z, logs

    def backwards(self, Z: Array) -> Array:
        """Return the values of scores."""
        D = Z.copy()
        for j in np.flatnonzero(self.n_knots).tolist():
            k, slopes = self.n_knots[j], self.slopes(j)
            place = np.clip(np.searchsorted(self.scores[j, :k], Z[:, j], side="right") - 1, 0, k - 2)
            D[:, j] = self.knots[j, place] + (Z[:, j] - self.scores[j, place]) / slopes[place]
        return D


def normal_scores(X: Array, w: Array | None) -> NormalScores:
    """Return the maps of columns, NaN for missing cells.

    A knot has the score of the share of the rows below it and half of those at it. There are as many as the
    root of the number of values, up to `MOST_KNOTS`.
    """
    found: list[tuple[Array, Array]] = []
    for x in X.T:
        here = ~np.isnan(x) if w is None else ~np.isnan(x) & (w > 0)
        values, mass = value_masses(x[here], None if w is None else w[here])
        if len(values) < 2:
            found.append((values[:0], values[:0]))
            continue
        number = int(np.clip(np.sqrt(len(values)), 4, MOST_KNOTS)) - 2
        levels = ndtr(np.linspace(-REACH, REACH, number))
        knots = np.unique(np.concatenate([values[[0, -1]], quantiles(values, mass, levels)]))
        knots = knots[np.append(True, np.diff(knots) > LEAST_GAP)]
        share = (np.cumsum(mass) - 0.5 * mass) / mass.sum()
        found.append((knots, ndtri(share[np.searchsorted(values, knots)])))
    most = max((len(knots) for knots, _ in found), default=0)
    padded = np.zeros((2, len(found), most))
    for j, (knots, scores) in enumerate(found):
        padded[0, j, : len(knots)], padded[1, j, : len(knots)] = knots, scores
    sizes = np.array([len(knots) for knots, _ in found], dtype=np.int64)
    return NormalScores(sizes, padded[0], padded[1])
