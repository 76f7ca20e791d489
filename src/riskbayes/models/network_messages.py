"""Exact inference in a tree of numbers and categories whose cells are missing in part.

A number that is missing is integrated out: what is present below it says of its value x, and of the value of
its parent, exp(g + h x - K x^2 / 2). Such messages go up to the first number that is present, or to the root
of the numbers, whose densities in the values of its category are evidence for the messages of the categories
(:mod:`riskbayes.models.messages`). On the way down each number has a mean and a variance given all that is
present, and a covariance with its parent: the moments that the statistics expect.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from riskbayes.arrays import Array
from riskbayes.frames import Arrays
from riskbayes.models.messages import Messages
from riskbayes.models.network_rows import NetworkRows

LOG_2PI = float(np.log(2 * np.pi))

BLOCK_CELLS = 2**18
"""Cells of the messages of a block of rows, over all columns and classes."""


def blocks(rows: NetworkRows, theta: Any) -> Iterator[slice]:
    """Yield slices of rows whose messages have about `BLOCK_CELLS` cells."""
    frame = rows.frame
    width = sum(int((tables.sizes + 1).sum()) for tables in frame.tables) + 6 * len(frame.owner)
    size = max(16, BLOCK_CELLS // (len(theta.log_prior) * max(1, width)))
    for start in range(0, len(rows), size):
        yield slice(start, min(start + size, len(rows)))


class NetworkMessages:
    """The messages of some rows up the tree, and the log joint that they give.

    Arrays have the shape (classes, rows), and one axis more for the values of a category.

    Parameters
    ----------
    rows : NetworkRows
        The rows.
    theta : NetworkParameters
        The parameters.
    most_probable : bool
        If True, messages among categories are maxima, for `fill`.
    every : bool
        If True, columns are also counted where nothing in them or below them is present.
    """

    def __init__(self, rows: NetworkRows, theta: Any, *, most_probable: bool = False, every: bool = False):
        self.rows, self.frame, self.theta, self.D = rows, rows.frame, theta, rows.D
        frame, r, m = self.frame, len(theta.log_prior), len(rows)
        self.seen = np.ones(rows.D.shape, dtype=bool) if rows.seen is None else rows.seen
        present = rows.values >= 0
        told, self.informed = frame.family(present, self.seen)
        if every:
            told, self.informed = np.ones_like(told), np.ones_like(self.informed)
        self.log_joint = np.zeros((r, m))
        """log p(x_o | y)."""
        self.below: dict[int, tuple[Array, Array, Array]] = {}
        """For each number g, h, K of what is present below it."""
        zero = np.zeros((r, m))
        evidence: dict[int, Array] = {}
        for j in frame.order:
            self.below[j] = zero, zero, zero
        for j in frame.order[::-1]:
            p, c = frame.parent[j], frame.category[j]
            if p >= 0:
                message = self._message(j)
                here = self.seen[:, p]
                x = self.D[:, p]
                g, h, K = message
                direct = np.where(self.seen[:, j], self._log_density(j, x), g + h * x - 0.5 * K * x * x)
                self.log_joint += np.where(here, direct, 0.0)
                gone = ~here
                self.below[p] = tuple(
                    old + np.where(gone, new, 0.0) for old, new in zip(self.below[p], message, strict=True)
                )
            elif c < 0:
                self.log_joint += self._of_root(j)[:, :, 0]
            else:
                value = self._of_root(j)
                known = present[:, c]
                own = np.take_along_axis(value, np.maximum(rows.values[:, c], 0)[None, :, None], axis=2)
                self.log_joint += np.where(known, own[:, :, 0], 0.0)
                evidence[c] = evidence.get(c, 0.0) + np.where(known[:, None], 0.0, value)
        for c, logs in evidence.items():
            top = logs[:, :, :-1].max(axis=2)  # a missing cell is no unseen value
            self.log_joint += top
            evidence[c] = np.exp(np.minimum(logs - top[:, :, None], 0.0))
        self.categories: Messages | None = None
        if frame.tables:
            self.categories = Messages(
                rows.values, theta.tables, most_probable=most_probable, evidence=evidence, present=told
            )
            self.log_joint = self.log_joint + self.categories.log_joint

    def _cell(self, table: Array, j: int) -> Array:
        """Return the parameters of the one cell of a number, of shape (classes, 1)."""
        return table[:, self.frame.cells(j)]

    def _slope(self, j: int) -> Array:
        """Return the slope of a number on its parent, of shape (classes, 1)."""
        return self.theta.slopes[:, self.frame.groups_of[j].slopes[0]]

    def _log_density(self, j: int, parent: Array) -> Array:
        """Return log p(x_j, what is present below it | x_parent, y) of rows that have both."""
        a, v = self._cell(self.theta.means, j), self._cell(self.theta.variances, j)
        x, (g, h, K) = self.D[:, j], self.below[j]
        away = x - a - self._slope(j) * parent
        return -0.5 * (away * away / v + np.log(v) + LOG_2PI) + g + h * x - 0.5 * K * x * x

    def _message(self, j: int) -> tuple[Array, Array, Array]:
        """Return g, h, K of what is present in a number and below it, as a function of its parent."""
        a, v, b = self._cell(self.theta.means, j), self._cell(self.theta.variances, j), self._slope(j)
        x, (g, h, K), here = self.D[:, j], self.below[j], self.seen[:, j]
        away, t = x - a, 1.0 + K * v
        seen = (
            -0.5 * (away * away / v + np.log(v) + LOG_2PI) + g + h * x - 0.5 * K * x * x,
            b * away / v,
            b * b / v + 0.0 * away,
        )
        gone = (
            g + (h * a + 0.5 * h * h * v - 0.5 * K * a * a) / t - 0.5 * np.log(t),
            b * (h - K * a) / t,
            b * b * K / t,
        )
        g, h, K = (np.where(here, one, other) for one, other in zip(seen, gone, strict=True))
        return g, h, K

    def _of_root(self, j: int) -> Array:
        """Return log p(what is present in a root and below it | cell, y), with an axis for the cells."""
        a, v = self._cell(self.theta.means, j)[:, None, :], self._cell(self.theta.variances, j)[:, None, :]
        x, (g, h, K) = self.D[:, j, None], (value[:, :, None] for value in self.below[j])
        away, t = x - a, 1.0 + K * v
        seen = -0.5 * (away * away / v + np.log(v) + LOG_2PI) + g + h * x - 0.5 * K * x * x
        gone = g + (h * a + 0.5 * h * h * v - 0.5 * K * a * a) / t - 0.5 * np.log(t)
        return np.where(self.seen[:, j, None], seen, gone)

    def _cell_shares(self, j: int) -> Array:
        """Return p(cell of a root | what is present, y)."""
        c = self.frame.category[j]
        if c < 0:
            return np.ones((*self.log_joint.shape, 1))
        if self._shares is None:
            assert self.categories is not None
            self._shares = self.categories.posteriors()
        return self._shares[c]

    _shares: dict[int, Array] | None = None

    def _given_parent(self, j: int) -> tuple[Array, Array, Array]:
        """Return intercept, slope and variance of a number given its parent and what is present below."""
        a, v, b = self._cell(self.theta.means, j), self._cell(self.theta.variances, j), self._slope(j)
        (_, h, K), here = self.below[j], self.seen[:, j]
        t = 1.0 + K * v
        return (
            np.where(here, self.D[:, j], (a + h * v) / t),
            np.where(here, 0.0, b / t),
            np.where(here, 0.0, v / t),
        )

    def _root_cells(self, j: int) -> tuple[Array, Array]:
        """Return mean and variance of a root in each of its cells, given what is present in it and below."""
        a, v = self._cell(self.theta.means, j)[:, None, :], self._cell(self.theta.variances, j)[:, None, :]
        h, K = (value[:, :, None] for value in self.below[j][1:])
        here, t = self.seen[:, j, None], 1.0 + K * v
        return np.where(here, self.D[:, j, None], (a + h * v) / t), np.where(here, 0.0, v / t)

    def posterior_moments(self) -> dict[int, tuple[Array, Array, Array]]:
        """Return mean, variance and covariance with the parent of each number, given what is present."""
        found: dict[int, tuple[Array, Array, Array]] = {}
        for j in self.frame.order:
            p = self.frame.parent[j]
            if p < 0:
                shares, (mean, variance) = self._cell_shares(j), self._root_cells(j)
                whole = (shares * mean).sum(axis=2)
                spread = (shares * (variance + (mean - whole[:, :, None]) ** 2)).sum(axis=2)
                found[j] = whole, spread, 0.0 * whole
            else:
                a, b, v = self._given_parent(j)
                mean, spread, _ = found[p]
                found[j] = a + b * mean, v + b * b * spread, b * spread
        return found

    def statistics(self, W: Array) -> Arrays:
        """Return the expected statistics of the rows with weights W (rows x classes)."""
        frame, V = self.frame, W.T
        r = len(V)
        found = {name: np.zeros((r, slots.size)) for name, slots in frame.slots.items()}
        if self.categories is not None:
            found["counts"] = self.categories.counts(W)
        moments = self.posterior_moments()
        for j in frame.order:
            weights, at = np.where(self.informed[:, j], V, 0.0), frame.cells(j)
            if frame.parent[j] < 0:
                shares = weights[:, :, None] * self._cell_shares(j)
                mean, variance = self._root_cells(j)
                found["mass"][:, at] = shares.sum(axis=1)
                found["s1"][:, at] = (shares * mean).sum(axis=1)
                found["s2"][:, at] = (shares * (variance + mean * mean)).sum(axis=1)
                continue
            (mean, spread, covariance), (above, above_spread, _) = moments[j], moments[frame.parent[j]]
            edge = frame.groups_of[j].slopes.item()
            found["mass"][:, at] = weights.sum(axis=1)[:, None]
            found["s1"][:, at] = (weights * mean).sum(axis=1)[:, None]
            found["s2"][:, at] = (weights * (spread + mean * mean)).sum(axis=1)[:, None]
            found["cross"][:, edge] = (weights * (covariance + mean * above)).sum(axis=1)
            found["parent1"][:, edge] = (weights * above).sum(axis=1)
            found["parent2"][:, edge] = (weights * (above_spread + above * above)).sum(axis=1)
        return found

    def fill(self, y: Array, rng: np.random.Generator | None) -> tuple[Array, Array]:
        """Return categories and numbers of rows of classes y, drawn given the cells that are present.

        Without `rng` categories are the most probable ones together, and numbers have their means.
        """
        rows, frame, D = np.arange(len(y)), self.frame, self.D.copy()
        if rng is None:
            for j, (mean, _, _) in self.posterior_moments().items():
                D[:, j] = mean[y, rows]
            modes = NetworkMessages(self.rows, self.theta, most_probable=True)
            return modes._categories(y, None), D
        values = self._categories(y, rng)
        for j in frame.order:
            p, c = frame.parent[j], frame.category[j]
            if p < 0:
                cell: Any = values[:, c] if c >= 0 else 0
                mean, variance = (value[y, rows, cell] for value in self._root_cells(j))
            else:
                a, b, v = (value[y, rows] for value in self._given_parent(j))
                mean, variance = a + b * D[:, p], v
            D[:, j] = mean + np.sqrt(variance) * rng.standard_normal(len(y))
        return values, D

    def _categories(self, y: Array, rng: np.random.Generator | None) -> Array:
        """Return the categories of rows of classes y: the most probable ones (`most_probable`), or a draw."""
        if self.categories is None:
            return np.zeros((len(y), 0), dtype=np.int64)
        return self.categories.fill(y, rng)
