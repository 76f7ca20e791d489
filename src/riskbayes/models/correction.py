"""Correction of a classifier by a table for each column and for pairs of columns.

The log joint is that of the classifier to a power, the offset, plus a number for each class and cell: a
categorical expert in natural parameters. Its residual statistics are the gradient of the log loss, which is
convex in the numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from riskbayes.arrays import Array
from riskbayes.learners.quasi_newton import Ascent, dot
from riskbayes.loaded import Loadable, require_shape
from riskbayes.models.cells import TableCells
from riskbayes.risks import posterior
from riskbayes.statistics import Statistics

LEAST = 1e-6
"""The least probability of the classifier that is corrected, in training."""

CURVATURE = 0.02
"""Added to P (1 - P) in the metric: classes that are sure now may not stay so."""

ENOUGH = 1e-2
"""A fit ends when a step promises less than this share of the log loss: held-out scores no longer change."""

MOST_SCANS, SHORTEST = 40, 1e-3
"""Upper bound on the scans of a fit at one strength, and lower bound on the length of a step."""


@dataclass(frozen=True)
class Correction(Loadable):
    """Log joints to a power, plus a number for each class and one for each cell and class."""

    cells: TableCells
    log_prior: Array
    tables: Array
    power: float = 1.0

    def check_loaded(self, size: int) -> None:
        """Require numbers for all cells: products of sparse rows check no bounds."""
        require_shape(self.tables, (int(self.cells.first[-1]), len(self.log_prior)), "f", "tables")

    def log_joint(self, Z: csr_array, offset: Array) -> Array:
        """Return the log joint of rows, given that of the classifier."""
        return self.power * offset + self.log_prior + Z @ self.tables

    def contributions(self, X: Array) -> tuple[Array, Array]:
        """Return what each column of the rows adds to the log joint, and what each pair does."""
        Z, cells = self.cells.encode(X), self.cells
        found = np.zeros((len(cells.first) - 1, len(X), len(self.log_prior)))
        for place, (start, stop) in enumerate(zip(cells.first[:-1], cells.first[1:], strict=True)):
            found[place] = Z[:, start:stop] @ self.tables[start:stop]
        values = np.zeros((*X.shape, len(self.log_prior)))
        for own, column in zip(found, np.concatenate([cells.numbers, cells.codes]).tolist(), strict=False):
            values[:, column] += own  # a number with finer knots has two tables
        return values, found[cells.n_columns :].transpose(1, 0, 2)


def statistics(Z: csr_array, W: Array, frame: TableCells) -> Statistics:
    """Return weighted counts of classes and of (class, cell), as those of categories."""
    return Statistics({"s0": W.sum(axis=0), "counts": (Z.T @ W).T}, frame)


@dataclass(frozen=True)
class Ridge:
    """Strengths of the pull of the numbers towards zero, for cells of columns and of pairs."""

    columns: float
    pairs: float = np.inf
    classes: float = 1.0

    def of(self, cells: TableCells) -> Array:
        """Return the strength for the classes, then for each cell."""
        found = np.full(1 + int(cells.first[-1]), self.pairs)
        found[0], found[1 : 1 + int(cells.first[cells.n_columns])] = self.classes, self.columns
        return found[:, None]


class Gain:
    """Minus the mean log loss of rows, less the ridge |W|^2 / 2m: what a correction maximises.

    Parameters
    ----------
    Z : csr_array of shape (m, cells)
        Encoded rows.
    offset : ndarray of shape (m, r)
        Log joints of the classifier.
    y, w : ndarray of shape (m,)
        Codes of the classes, and weights or None.
    """

    def __init__(self, Z: csr_array, cells: TableCells, offset: Array, y: Array, w: Array | None):
        self.Z, self.cells, self.offset, self.y, self.w = Z, cells, offset, y, w
        self.mass = float(len(y) if w is None else w.sum())
        self.row = np.arange(len(y))

    def posterior(self, W: Array) -> Array:
        """Return the posteriors of the rows."""
        return posterior(Correction(self.cells, W[0], W[1:]).log_joint(self.Z, self.offset))

    def residual(self, W: Array) -> tuple[float, Array]:
        """Return the sum of log p(y | x), and 1[y = k] - P."""
        E = self.posterior(W)
        own = np.log(np.maximum(E[self.row, self.y], 1e-300))
        np.negative(E, out=E)
        E[self.row, self.y] += 1.0
        if self.w is not None:
            E *= self.w[:, None]
            own = own * self.w
        return float(own.sum()), E

    def __call__(self, W: Array, ridge: Array) -> tuple[float, Array]:
        """Return the gain and its gradient by W, of shape (1 + cells, r); row 0 is that of the classes."""
        value, E = self.residual(W)
        dS, pull = statistics(self.Z, E, self.cells), ridge * W
        gradient = np.concatenate([dS["s0"][None], dS["counts"].T])
        return (value - 0.5 * np.vdot(pull, W)) / self.mass, (gradient - pull) / self.mass

    def metric(self, W: Array, ridge: Array) -> Array:
        """Return the diagonal of the curvature at W."""
        P = self.posterior(W)
        v = P * (1.0 - P) + CURVATURE
        v = v if self.w is None else v * self.w[:, None]
        squares = csr_array((self.Z.data**2, self.Z.indices, self.Z.indptr), shape=self.Z.shape)
        return (np.concatenate([v.sum(axis=0)[None], squares.T @ v]) + ridge) / self.mass


def correct(gain: Gain, ridge: Ridge, start: Array | None = None) -> Array:
    """Return W of the largest gain, from a start or from zero, by L-BFGS."""
    strengths, r = ridge.of(gain.cells), gain.offset.shape[1]
    W = np.zeros((len(strengths), r))
    if start is not None:  # pairs may have been added since
        W[: len(start)] = start
    scale, ascent, value = gain.metric(W, strengths) ** -0.5, Ascent(), -np.inf  # the unit of each number
    proposed = W
    for _ in range(MOST_SCANS):
        new, gradient = gain(proposed, strengths)
        if new > value:
            grew, value, W = new - value, new, proposed
            ascent.reach((W / scale).ravel(), (scale * gradient).ravel())
            if min(dot(ascent.along, ascent.gradient), 10.0 * grew) < ENOUGH * max(-value, 1e-3):
                break
        else:
            ascent.shorten()
            if ascent.lr < SHORTEST:
                break
        proposed = scale * ascent.proposal().reshape(W.shape)
    return W


def to_offset(log_posterior: Array) -> Array:
    """Return log posteriors of the classifier with a floor, so that one row cannot ask for a huge number."""
    return np.maximum(log_posterior, np.log(LEAST))
