"""Tables of category codes, encoded for the scans of naive Bayes: on the CPU, and on any device."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array, get_index_dtype

from riskbayes.arrays import (
    Array,
    astype,
    float_dtype,
    largest_of_columns,
    namespace,
    rows_above,
    take,
    take_rows,
    to_device,
    to_numpy,
    widest_float,
)
from riskbayes.exceptions import ColumnError
from riskbayes.frames import Categories, CountsByFeature
from riskbayes.scanners.kernels import is_worth_it
from riskbayes.scanners.kernels.categorical import Groups

HELD_CELLS = 2**29
"""Largest one-hot table that a device keeps during a fit (4 GiB of float64), in cells; a larger one is made
again by every scan."""

MOST_CATEGORIES = 2**25
"""Upper bound on the categories of all columns together: 256 MiB of counts per class."""


class Codes:
    """Codes of a NumPy table, in one byte each if they fit, with the categories of the frame.

    Beside the K categories of a feature its code may be K, a missing cell, or K + 1, a category that the
    frame does not have. Large tables also hold joint codes, of a few features each, for compiled scans.

    Parameters
    ----------
    codes : array of shape (m, n)
        Codes from 0.
    frame : CountsByFeature
        The categories.
    unseen : bool
        True if some codes may be unseen.
    missing : bool
        True if some cells may be missing.
    grouping : (Groups, joint codes) or None
        The groups of features and the joint codes of these rows; None if scans are not compiled.
    """

    dtype = np.dtype(np.float64)
    """The dtype of one-hot rows."""

    def __init__(
        self,
        codes: Array,
        frame: CountsByFeature,
        unseen: bool = False,
        missing: bool = False,
        grouping: Any = None,
    ):
        self.codes, self.frame, self.unseen, self.missing = codes, frame, unseen, missing
        self.shape = codes.shape
        self.grouping: tuple[Groups, Array] | None = grouping

    def __len__(self) -> int:
        return self.codes.shape[0]

    def __getitem__(self, rows: slice | Array) -> Codes:
        if isinstance(rows, slice) and rows == slice(0, len(self)):
            return self  # a table of one chunk keeps its cached properties
        grouping = None if self.grouping is None else (self.grouping[0], self.grouping[1][:, rows])
        return Codes(self.codes[rows], self.frame, self.unseen, self.missing, grouping)

    @property
    def cells(self) -> int:
        """Numbers that a scan holds per row: a sparse one-hot row, or a few if it is compiled."""
        return self.shape[1] if self.grouping is None else 4

    @property
    def is_missing(self) -> Array:
        """Mask of the missing cells."""
        return self.codes == self.frame.n_categories

    @cached_property
    def _is_unseen(self) -> Array:
        return self.codes > self.frame.n_categories

    @cached_property
    def one_hot(self) -> csr_array:
        """The one-hot table, as a sparse matrix; a missing cell and an unseen code have only zeros."""
        m, n = self.shape
        width = int(self.frame.n_categories.sum())
        index = get_index_dtype(maxval=max(m * n, width))
        columns, ones = self.codes.astype(index), np.ones(m * n)
        if self.unseen or self.missing:
            absent = self.codes >= self.frame.n_categories
            columns[absent], ones[absent.ravel()] = 0, 0.0
        columns += self.frame.offsets.astype(index)
        pointers = np.arange(0, m * n + 1, n, dtype=index)
        return csr_array((ones, columns.ravel(), pointers), shape=(m, width))

    def counts(self, W: Array) -> Array:
        """Return the counts of (class, feature, category), weighted by W (rows x classes)."""
        return (self.one_hot.T @ W).T

    def times(self, table: Array) -> tuple[Array, Array | None]:
        """Return one-hot rows times a table (classes x columns), and a mask of unseen codes or None."""
        return self.one_hot @ table.T, self._is_unseen.astype(np.float64) if self.unseen else None


class DeviceCodes:
    """Codes of another library's table. One-hot rows are dense: products with them are fast on a device.

    Parameters are those of :class:`Codes`; `dtype` is that of one-hot rows, and `held` the one-hot table if
    it is kept.
    """

    def __init__(
        self, codes: Array, frame: CountsByFeature, unseen: bool, dtype: Any, held: Array | None = None
    ):
        self.codes, self.frame, self.unseen, self.dtype, self.held = codes, frame, unseen, dtype, held
        self.shape = codes.shape

    grouping = None

    def __len__(self) -> int:
        return self.codes.shape[0]

    def __getitem__(self, rows: slice | Array) -> DeviceCodes:
        if isinstance(rows, slice) and rows == slice(0, len(self)):
            return self
        held = None if self.held is None else take_rows(self.held, rows)
        return DeviceCodes(take_rows(self.codes, rows), self.frame, self.unseen, self.dtype, held)

    @property
    def cells(self) -> int:
        """Numbers that a scan holds per row: a one-hot row, or a few if the one-hot table is kept."""
        return int(self.frame.n_categories.sum()) if self.held is None else 4

    @property
    def one_hot(self) -> Array:
        """The one-hot table; an unseen code has only zeros."""
        if self.held is not None:
            return self.held
        feature, category = self.frame.columns(self.codes)
        # Codes of one byte have at most 255 categories.
        hot = take(self.codes, feature, 1) == astype(category, self.codes.dtype)[None, :]
        return astype(hot, self.dtype)

    def counts(self, W: Array) -> Array:
        """Return the counts of (class, feature, category), weighted by W; rows of no weight are skipped."""
        xp = namespace(W)
        rows = rows_above(xp.linalg.vector_norm(W, axis=1, ord=math.inf), 1e-12)
        Z, V = (self, W) if rows is None else (self[rows], take_rows(W, rows))
        return V.T @ Z.one_hot

    def times(self, table: Array) -> tuple[Array, Array | None]:
        """Return one-hot rows times a table (classes x columns), and a mask of unseen codes or None."""
        product = self.one_hot @ table.T
        if not self.unseen:
            return product, None
        limits = to_device(self.frame.n_categories, self.codes)  # int64, for a byte does not hold 256
        return product, namespace(self.codes).astype(self.codes >= limits[None, :], self.dtype)


def categories_of(X: Array, least: Array | int | None = None, largest: Array | None = None) -> Categories:
    """Return the categories 0 to the largest code of each feature, at least `least` of them.

    `largest` are the largest codes of all rows, if X is a sample of the rows. A feature whose cells are all
    missing has one category.
    """
    if X.shape[0] == 0:
        return Categories(np.ones(X.shape[1]) if least is None else np.maximum(1, least))
    if largest is None:
        largest = largest_of_columns(X) if isinstance(X, np.ndarray) else namespace(X).max(X, axis=0)
    top = np.fmax(to_numpy(largest).astype(np.float64), 0.0)
    top = np.minimum(top, 2.0**62).astype(np.int64) + 1  # a float may be too large for int64
    return Categories(top if least is None else np.maximum(top, least))


def check_sizes(n_categories: Array, name: Callable[[int], str] = "column {}".format) -> None:
    """Raise an error for more categories than can be counted; `name` returns what to call a column."""
    total = n_categories.astype(np.float64).sum()
    if total > MOST_CATEGORIES:
        j = int(np.argmax(n_categories))
        raise ValueError(
            f"{name(j)} has {n_categories[j]} categories, and all columns together {total:.0f}: more than "
            f"{MOST_CATEGORIES} cannot be counted. Drop it, or merge its rare categories."
        )


def clipped_codes(X: Array, n_categories: Array) -> Array:
    """Return the codes as int64, with every code of column j above n_categories[j] replaced by that.

    They are compared in a dtype that holds both: uint8 has no 300, and int64 no 1e30. No cell is missing.
    """
    xp = namespace(X)
    if xp is np:
        return np.minimum(X, n_categories).astype(np.int64, copy=False)
    kind = xp.int64 if xp.isdtype(X.dtype, "signed integer") else widest_float(X)
    limits = astype(to_device(n_categories, X), kind)[None, :]
    wide = astype(X, kind)
    return astype(xp.where(wide < limits, wide, limits), xp.int64)


def is_float(X: Array) -> bool:
    """True for a NumPy array of floats: only these have missing cells (NaN)."""
    return isinstance(X, np.ndarray) and X.dtype.kind == "f"


def missing_cells(X: Array) -> Array | None:
    """Return a mask of the missing cells of codes; None if there are none."""
    holes = np.isnan(X) if is_float(X) else None
    return holes if holes is not None and holes.any() else None


def make_codes(X: Array, frame: CountsByFeature) -> Codes | DeviceCodes:
    """Return the codes of X, checked and in a small dtype, for the library of X."""
    check_codes(X)
    xp, known = namespace(X), frame.n_categories
    unseen = bool((categories_of(X).n_categories > known).any())
    if xp is np:
        holes = missing_cells(X)
        X = X if holes is None else np.where(holes, 0.0, X)
        if unseen:
            X = clipped_codes(X, known)
            X = X + (known == X)
        largest = int(known.max(initial=1)) + (1 if unseen else -1 if holes is None else 0)
        codes = X.astype(np.min_scalar_type(largest), copy=False)
        if holes is not None:
            codes = np.where(holes, known.astype(codes.dtype), codes)
        missing = holes is not None
        return Codes(codes, frame, unseen, missing, None if unseen else grouping_of(codes, frame, missing))
    X, largest = clipped_codes(X, known) if unseen else X, int(known.max(initial=1)) - (not unseen)
    small = xp.uint8 if largest < 255 else xp.int32
    found = DeviceCodes(xp.astype(X, small), frame, unseen, float_dtype(X))
    if X.shape[0] * found.cells <= HELD_CELLS:
        found.held = found.one_hot
    return found


def grouping_of(codes: Array, frame: CountsByFeature, missing: bool) -> tuple[Groups, Array] | None:
    """Return the groups and joint codes of a table for compiled scans; None if these are not faster."""
    if not is_worth_it(*codes.shape):
        return None
    holes = (codes == frame.n_categories).any(axis=0) if missing else np.zeros(codes.shape[1], dtype=bool)
    groups = Groups(frame, holes)
    if 2 * len(groups.sizes) > codes.shape[1]:  # most features have a group of their own: little is saved
        return None
    return groups, groups.encode(codes)


def check_codes(X: Array) -> None:
    """Raise an error for values that are not whole numbers from 0; check by column, which saves memory.

    A cell of a NumPy table may be missing (NaN).
    """
    xp = namespace(X)
    if xp.isdtype(X.dtype, ("bool", "unsigned integer")) or X.shape[0] == 0:
        return
    whole = xp.isdtype(X.dtype, "integral")
    if whole and int(xp.min(X)) >= 0:
        return
    if xp is not np and not bool(xp.any((X < 0) | (xp.floor(X) != X) if not whole else X < 0)):
        return  # the host waits for one answer, not for one per column
    for j in range(X.shape[1]):
        column = X[:, j]
        bad = column < 0 if whole else (column < 0) | (column != xp.floor(column))
        bad = bad & ~np.isnan(column) if is_float(X) else bad
        if bool(xp.any(bad)):
            value = to_numpy(column[bad])[0]
            raise ColumnError(j, f"holds {value:g}, which is no code: categories are whole numbers from 0.")
