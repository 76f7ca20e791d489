"""The missing cells of rows (NaN): which they are, and rows grouped by the pattern of their missing cells."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from riskbayes.arrays import Array

MANY = 16
"""A pattern of at least this many rows is a group of its own."""

PAD_COLUMNS = 4
"""Numbers of missing cells are rounded up to a multiple of this, so that groups are few."""

BATCH_CELLS = 2**18
"""Upper bound on the numbers of one array of a group: 2 MiB of float64."""


class Group(NamedTuple):
    """Rows with about the same number of missing cells, at least one."""

    rows: Array
    """Indices of the rows."""
    columns: Array
    """The missing columns of each distinct pattern, in increasing order, of shape (patterns, size).

    Where there are fewer than `size`, columns from n on follow, of which a row has `PAD_COLUMNS`.
    """
    pattern: Array
    """The pattern of each row; rows of a pattern follow one another."""
    starts: Array
    """The place in `rows` of the first row of each pattern."""


class Holes:
    """Which cells of rows are missing.

    Parameters
    ----------
    mask : array of bool, shape (m, n)
        True where a cell is missing.
    code : array of int, shape (m,), optional
        Equal numbers for rows with equal masks; by default they are found here.
    """

    def __init__(self, mask: Array, code: Array | None = None):
        self.mask = mask
        if code is None:
            packed = np.ascontiguousarray(np.packbits(mask, axis=1))
            bits = packed.view(np.dtype((np.void, packed.shape[1])))[:, 0]
            code = np.unique(bits, return_inverse=True)[1]
        self.code = code
        self._slices: dict[tuple[int, int], Holes] = {}

    @classmethod
    def of(cls, X: Array) -> Holes | None:
        """Return the missing cells of X; None if there are none. Arrays of other libraries have none."""
        if not isinstance(X, np.ndarray) or X.dtype.kind != "f":
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            # A sum that is no NaN proves that no entry is: cheaper than a mask.
            if not np.isnan(np.add.reduce(X, axis=None)):
                return None
        mask = np.isnan(X)
        return cls(mask) if mask.any() else None

    def __getitem__(self, rows: slice | Array) -> Holes:
        if not isinstance(rows, slice):
            return Holes(self.mask[rows], self.code[rows])
        # A slice is kept, with its groups: every scan asks for the same chunks.
        start, stop, _ = rows.indices(len(self.mask))
        found = self._slices.get((start, stop))
        if found is None:
            found = self._slices[start, stop] = Holes(self.mask[rows], self.code[rows])
        return found

    @cached_property
    def numbers(self) -> Array:
        """The number of missing cells of each row."""
        return np.count_nonzero(self.mask, axis=1)

    @cached_property
    def complete(self) -> Array:
        """Indices of the rows without a missing cell."""
        return np.flatnonzero(self.numbers == 0)

    @cached_property
    def incomplete(self) -> Array:
        """Indices of the rows with missing cells."""
        return np.flatnonzero(self.numbers)

    @cached_property
    def gaps(self) -> Holes:
        """The missing cells of the rows that have any; kept, for its groups are asked for in every scan."""
        return self[self.incomplete]

    @cached_property
    def factor_cells(self) -> float:
        """The numbers in a matrix of the missing columns of each pattern, per row."""
        first = np.unique(self.code, return_index=True)[1]
        return float((self.numbers[first] ** 2).sum() / max(1, len(self.code)))

    @cached_property
    def groups(self) -> list[Group]:
        """The rows with missing cells: those of frequent patterns, and others with equally many missing."""
        return [group for group in self._groups() if len(group.rows)]

    @cached_property
    def cells(self) -> Array:
        """The missing cells of all groups, one after another, as places in rows with `PAD_COLUMNS` more."""
        width = self.mask.shape[1] + PAD_COLUMNS
        own = [(g.rows[:, None] * width + g.columns[g.pattern]).ravel() for g in self.groups]
        return np.concatenate([np.zeros(0, dtype=np.int64), *own])

    @cached_property
    def columns(self) -> Array:
        """The columns of `cells`."""
        return self.cells % (self.mask.shape[1] + PAD_COLUMNS)

    def _groups(self) -> Iterator[Group]:
        n = self.mask.shape[1]
        _, first, code, times = np.unique(
            self.code, return_index=True, return_inverse=True, return_counts=True
        )
        sizes = -(-self.numbers[first] // PAD_COLUMNS) * PAD_COLUMNS
        for size in np.unique(sizes[sizes > 0]):
            for often in np.flatnonzero((sizes == size) & (times >= MANY)):
                rows, step = np.flatnonzero(code == often), max(1, BATCH_CELLS // n)
                columns, one = self._columns(rows[:1], size), np.zeros(1, dtype=np.int64)
                for start in range(0, len(rows), step):
                    part = rows[start : start + step]
                    yield Group(part, columns, np.zeros(len(part), dtype=np.int64), one)
            rows = np.flatnonzero((sizes == size)[code] & (times < MANY)[code])
            rows = rows[np.argsort(code[rows], kind="stable")]  # rows of a pattern go together
            step = max(1, BATCH_CELLS // max(n, size * size))
            for start in range(0, len(rows), step):
                part = rows[start : start + step]
                _, own, pattern = np.unique(code[part], return_index=True, return_inverse=True)
                yield Group(part, self._columns(part[own], size), pattern, own)

    def _columns(self, rows: Array, size: int) -> Array:
        """Return the missing columns of rows, and columns from n on up to `size` in all."""
        more = np.arange(PAD_COLUMNS) < (size - self.numbers[rows])[:, None]
        return np.nonzero(np.hstack([self.mask[rows], more]))[1].reshape(len(rows), size)
