"""Cells of columns and of pairs of columns: what tables of correction are indexed by.

A category is a cell, a number lies between two knots and belongs to both by its hat weights. Where the rows
are many, a number has cells at finer knots too: the coarse ones take what is smooth, the fine ones steps and
single values. A missing cell belongs to none: its mark is a column of its own. A pair of columns has a cell
for each pair of a bin or level of one and of the other that was observed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
from scipy.sparse import csr_array

from riskbayes.arrays import Array
from riskbayes.frames import Frame
from riskbayes.loaded import require, require_shape
from riskbayes.models.hats import Knots, hats_of, knots_of

N_KNOTS, FEW_VALUES, OUTER = 8, 20, 0.01
"""Knots of a number, the most values that have a knot each instead, and the share beyond the outer ones."""

ROWS_PER_KNOT, MOST_KNOTS = 100, 128
"""Rows for each of the finer knots, and the most of these; there are none below 2 * `N_KNOTS`."""

N_BINS, N_LEVELS = 16, 15
"""Bins of a number in a pair, and the levels of a category there: the others share one more."""


@dataclass(frozen=True, eq=False)
class PairBins(Frame):
    """A few bins for each number and a few levels for each category, which pairs are made of."""

    numbers: Array
    """The columns of numbers."""
    codes: Array
    """The columns of codes."""
    edges: tuple[Array, ...]
    """Inner edges of the bins of each number."""
    levels: tuple[Array, ...]
    """The level of each code of each column of codes."""
    sizes: ClassVar[Array]
    """The number of bins or levels of each column."""

    def __post_init__(self) -> None:
        sizes = [len(edges) + 1 for edges in self.edges] + [int(own.max()) + 1 for own in self.levels]
        object.__setattr__(self, "sizes", np.array(sizes, dtype=np.int64))
        super().__post_init__()

    def check_loaded(self, size: int) -> None:
        """Require edges for each number, and levels for each column of codes."""
        require_columns(self.numbers, self.codes)
        require(len(self.edges) == len(self.numbers) and len(self.levels) == len(self.codes), "bins")
        for edges in self.edges:
            require_shape(edges, edges.shape[:1], "f", "edges")
        for own in self.levels:
            require_shape(own, own.shape[:1], "i", "levels")
            require(len(own) and own.min() >= 0 and 8 * int(own.max()) <= size, "levels")
        self.__post_init__()

    @classmethod
    def learn(cls, X: Array, numbers: Array, codes: Array) -> Self:
        """Return quantile bins of the numbers, and the commonest levels of the categories."""
        edges = tuple(quantile_edges(X[:, j]) for j in numbers.tolist())
        return cls(numbers, codes, edges, tuple(commonest_levels(X[:, j]) for j in codes.tolist()))

    @property
    def columns(self) -> Array:
        """The columns in the order of the bins."""
        return np.concatenate([self.numbers, self.codes])

    def encode(self, X: Array) -> Array:
        """Return the bin or level of each cell; -1 for a missing or unknown one."""
        found = np.empty((len(X), len(self.sizes)), dtype=np.int64)
        for place, (j, edges) in enumerate(zip(self.numbers.tolist(), self.edges, strict=True)):
            found[:, place] = np.searchsorted(edges, X[:, j], side="right")
            found[np.isnan(X[:, j]), place] = -1
        for place, (j, own) in enumerate(zip(self.codes.tolist(), self.levels, strict=True), len(self.edges)):
            known = X[:, j] < len(own)  # False for a missing cell
            found[:, place] = np.where(known, own[np.where(known, X[:, j], 0).astype(np.int64)], -1)
        return found


def quantile_edges(x: Array) -> Array:
    """Return inner edges of quantile bins of a column; between its values if they are few."""
    x = x[~np.isnan(x)].astype(np.float64)
    values = np.unique(x)
    if len(values) <= N_BINS:
        return values[1:]
    return np.unique(np.quantile(x, np.linspace(0.0, 1.0, N_BINS + 1)[1:-1], method="closest_observation"))


def commonest_levels(x: Array) -> Array:
    """Return the level of each code of a column: the commonest ones have their own, the others share one."""
    counts = np.bincount(x[~np.isnan(x)].astype(np.int64), minlength=1)
    rank = np.empty(len(counts), dtype=np.int64)
    rank[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    return np.minimum(rank, N_LEVELS)


@dataclass(frozen=True, eq=False)
class TableCells(Frame):
    """The cells of columns, number by number and code by code, then those of pairs of columns."""

    numbers: Array
    """The columns of numbers; those with finer knots a second time, after all others."""
    codes: Array
    knots: Knots | None
    """Knots of the numbers; None if there are none."""
    sizes: Array
    """The number of cells of each column of codes."""
    bins: PairBins | None = None
    """PairBins of the columns of pairs; None if there are no pairs."""
    pairs: Array = field(default_factory=lambda: np.empty((0, 2), dtype=np.int64))
    """The two columns of each pair, as places in the bins."""
    observed: tuple[Array, ...] = ()
    """The joint codes of each pair that have a cell, in ascending order."""
    first: ClassVar[Array]
    """The first cell of each number, each code and each pair, and the number of all cells."""

    def __post_init__(self) -> None:
        knots = np.empty(0, np.int64) if self.knots is None else self.knots.n_categories
        sizes = [knots, self.sizes, [len(own) for own in self.observed]]
        object.__setattr__(self, "first", np.concatenate([[0], *sizes]).astype(np.int64).cumsum())
        super().__post_init__()

    def check_loaded(self, size: int) -> None:
        """Require cells for each column and pair."""
        require_columns(self.numbers, self.codes)
        n = 0 if self.knots is None else len(self.knots.n_categories)
        require(n == len(self.numbers), "knots")
        require_shape(self.sizes, self.codes.shape, "i", "sizes")
        require(self.sizes.min(initial=1) >= 1, "sizes")
        require_shape(self.pairs, (len(self.observed), 2), "i", "pairs")
        most = 0 if self.bins is None else len(self.bins.sizes)
        require(self.pairs.min(initial=0) >= 0 and self.pairs.max(initial=-1) < most, "pairs")
        for own in self.observed:
            require_shape(own, own.shape[:1], "i", "observed")
            require(len(own) and (np.diff(own) > 0).all(), "observed")
        self.__post_init__()

    @classmethod
    def learn(cls, X: Array, w: Array | None, numbers: Array, codes: Array) -> Self:
        """Return the cells of columns of numbers and of codes."""
        knots = knots_of(X[:, numbers], w, N_KNOTS, FEW_VALUES, OUTER) if len(numbers) else None
        n_fine = min(MOST_KNOTS, int((len(X) if w is None else w.sum()) / ROWS_PER_KNOT))
        if knots is not None and n_fine >= 2 * N_KNOTS and not knots.few_values.all():
            many = numbers[~knots.few_values]
            knots = knots.beside(knots_of(X[:, many], w, n_fine, FEW_VALUES, OUTER))
            numbers = np.concatenate([numbers, many])
        sizes = [np.bincount(own[~np.isnan(own)].astype(np.int64)).size for own in X[:, codes].T]
        return cls(numbers, codes, knots, np.maximum(np.array(sizes, dtype=np.int64), 1))

    def with_pairs(self, bins: PairBins, Z: Array, pairs: Array) -> Self:
        """Return these cells and those of pairs of columns that rows Z, encoded by the bins, have."""
        joint = (joint_codes(Z, bins.sizes, pair) for pair in pairs.tolist())
        found = [np.unique(own[own >= 0]) for own in joint]
        kept = [place for place, own in enumerate(found) if len(own)]
        return replace(self, bins=bins, pairs=pairs[kept], observed=tuple(found[place] for place in kept))

    @property
    def n_columns(self) -> int:
        """The number of columns that have cells of their own, a column with finer knots counted twice."""
        return len(self.numbers) + len(self.codes)

    def encode(self, X: Array) -> csr_array:
        """Return the weight of each cell in each row, of shape (rows, cells)."""
        (m, q), n = (len(X), len(self.sizes) + len(self.pairs)), len(self.numbers)
        at, weights = np.zeros((m, 2 * n + q), dtype=np.int32), np.zeros((m, 2 * n + q))
        if self.knots is not None:
            left, low, high = hats_of(X[:, self.numbers], self.knots).left_and_weights()
            last = len(self.knots.positions) - 1
            present = left <= last  # a missing value may be placed after all knots
            at[:, : 2 * n : 2], at[:, 1 : 2 * n : 2] = np.minimum(left, last), np.minimum(left + 1, last)
            weights[:, : 2 * n : 2], weights[:, 1 : 2 * n : 2] = low * present, high * present
        own = X[:, self.codes]
        known = own < self.sizes  # False for a missing cell
        at[:, 2 * n : 2 * n + len(self.sizes)] = np.where(known, own, 0) + self.first[n : self.n_columns]
        weights[:, 2 * n : 2 * n + len(self.sizes)] = known
        if self.bins is not None:
            Z = self.bins.encode(X)
            starts, pairs = self.first[self.n_columns : -1].tolist(), self.pairs.tolist()
            for c, (start, pair, own) in enumerate(
                zip(starts, pairs, self.observed, strict=True), -len(pairs)
            ):
                joint = joint_codes(Z, self.bins.sizes, pair)
                place = np.minimum(np.searchsorted(own, joint), len(own) - 1)
                at[:, c], weights[:, c] = start + place, own[place] == joint
        pointers = np.arange(0, at.size + 1, at.shape[1], dtype=np.int32 if at.size < 2**31 else np.int64)
        return csr_array((weights.ravel(), at.ravel(), pointers), shape=(m, int(self.first[-1])))


def joint_codes(Z: Array, sizes: Array, pair: list[int]) -> Array:
    """Return the joint code of a pair of columns in each row; -1 where one of them is missing."""
    a, b = pair
    return np.where((Z[:, a] < 0) | (Z[:, b] < 0), -1, Z[:, a] * sizes[b] + Z[:, b])


def require_columns(*columns: Array) -> None:
    """Require arrays of indices of columns."""
    for own in columns:
        require_shape(own, own.shape[:1], "i", "columns")
        require(own.min(initial=0) >= 0, "columns")
