"""Tables of categories as the scans of naive Bayes read them: on the CPU, and on any device."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array, get_index_dtype

from riskbayes.arrays import (
    Array,
    as_kind,
    is_all,
    like,
    namespace,
    own_precision,
    rows_above,
    sent_to,
    take,
    take_rows,
    to_numpy,
    widest_float,
)
from riskbayes.exceptions import ColumnError
from riskbayes.frames import Categories
from riskbayes.models.kernels.categorical import Groups, is_worth_it

HELD_CELLS = 2**29
"""Cells of a one-hot table that a device holds during a fit (4 GiB of float64); larger ones are made anew."""

MOST_CATEGORIES = 2**25
"""Categories of all columns together: 256 MiB a class."""


class Codes:
    """Integer codes of a NumPy table, one byte a cell where they fit, with the categories they index.

    Large tables carry their codes a second time, jointly for a few features each, for compiled scans.
    """

    def __init__(
        self, codes: Array, frame: Categories, groups: Groups | None = None, joint: Array | None = None
    ):
        self.codes, self.frame, self.groups, self.joint = codes, frame, groups, joint
        self.shape = codes.shape
        self.releases_gil = joint is not None
        # What a scan holds for each row: a one-hot row, or nothing but its scores.
        self.width = 4 if self.releases_gil else codes.shape[1]

    def __len__(self) -> int:
        return self.codes.shape[0]

    def __getitem__(self, rows: slice | Array) -> Codes:
        if is_all(rows, self.shape[0]):
            return self  # a table of one chunk keeps what was computed of it
        joint = None if self.joint is None else self.joint[:, rows]
        return Codes(self.codes[rows], self.frame, self.groups, joint)

    def grouped(self) -> Codes:
        """With joint codes, where compiled scans are worth them."""
        if not is_worth_it(*self.shape):
            return self
        groups = Groups(self.frame)
        if 2 * len(groups.sizes) > self.shape[1]:  # wide features stand alone: a second copy for little
            return self
        return Codes(self.codes, self.frame, groups, groups.encode(self.codes, self.frame))

    @cached_property
    def one_hot(self) -> csr_array:
        """One row of ones and zeros a row of codes; made for a chunk at a time."""
        m, n = self.shape
        width = int(self.frame.n_categories.sum())
        index = get_index_dtype(maxval=max(m * n, width))
        columns = self.codes.astype(index)
        columns += self.frame.offsets.astype(index)
        pointers = np.arange(0, m * n + 1, n, dtype=index)
        return csr_array((np.ones(m * n), columns.ravel(), pointers), shape=(m, width))

    def counts(self, W: Array) -> Array:
        """Weighted counts of (class, feature, category)."""
        return (self.one_hot.T @ W).T

    def times(self, table: Array, frame: Categories) -> tuple[Array, Array | None]:
        """One-hot rows times a table (classes x columns), and where categories are that it lacks."""
        if self.frame is frame or self.frame == frame:
            return self.one_hot @ table.T, None
        unseen = self.codes >= frame.n_categories
        known = Codes(np.where(unseen, 0, self.codes), frame).one_hot
        known.data = (~unseen).ravel().astype(np.float64)
        return known @ table.T, unseen.astype(np.float64)


class DeviceCodes:
    """Codes of another library's table: one-hot rows are dense there, and products with them fast.

    The columns of a one-hot row go by the number of categories: features that have as many are compared
    with them at once.
    """

    groups = None
    releases_gil = False

    def __init__(self, codes: Array, frame: Categories, dtype: object, held: Array | None = None):
        self.codes, self.frame, self.dtype, self.held = codes, frame, dtype, held
        self.shape = codes.shape
        self.width = 4 if held is not None else int(frame.n_categories.sum())

    def __len__(self) -> int:
        return self.codes.shape[0]

    def __getitem__(self, rows: slice | Array) -> DeviceCodes:
        if is_all(rows, self.shape[0]):
            return self

        def part(A: Array) -> Array:
            return A[rows, ...] if isinstance(rows, slice) else take_rows(A, rows)

        held = None if self.held is None else part(self.held)
        return DeviceCodes(part(self.codes), self.frame, self.dtype, held)

    def grouped(self) -> DeviceCodes:
        """With the one-hot table of all rows, if it is not too large to hold."""
        if self.shape[0] * self.width > HELD_CELLS:
            return self
        return DeviceCodes(self.codes, self.frame, self.dtype, self.one_hot(self.frame))

    def one_hot(self, frame: Categories) -> Array:
        """One row of ones and zeros a row of codes; a category that the frame does not know has no one."""
        xp, blocks = namespace(self.codes), []
        for k, features in frame.by_size(self.codes):
            codes = self.codes if features is None else take(self.codes, features, 1)
            codes = codes if k <= 256 else as_kind(codes, xp.int64)  # a byte does not hold the values
            values = xp.arange(k, **like(codes))
            hot = codes[:, :, None] == values[None, None, :]
            blocks.append(xp.reshape(xp.astype(hot, self.dtype), (codes.shape[0], -1)))
        return blocks[0] if len(blocks) == 1 else xp.concat(blocks, axis=1)

    def counts(self, W: Array) -> Array:
        """Weighted counts of (class, feature, category); rows of no weight are left out."""
        xp = namespace(W)
        rows = rows_above(xp.max(xp.abs(W), axis=1), 1e-12)
        Z, V = (self, W) if rows is None else (self[rows], take_rows(W, rows))
        hot = Z.one_hot(self.frame) if Z.held is None else Z.held
        return self.frame.from_sizes(V.T @ hot)

    def times(self, table: Array, frame: Categories) -> tuple[Array, Array | None]:
        """One-hot rows times a table (classes x columns), and where categories are that it lacks."""
        known = self.frame is frame or self.frame == frame
        hot = self.held if known and self.held is not None else self.one_hot(frame)
        product = hot @ frame.to_sizes(table).T
        if known:
            return product, None
        limits = sent_to(frame.n_categories, self.codes)  # int64: a byte does not hold them
        return product, namespace(self.codes).astype(self.codes >= limits[None, :], self.dtype)


def categories_of(X: Array, least: Array | int | None = None) -> Categories:
    """As many categories a feature as its largest code asks for, and at least so many."""
    if X.shape[0]:
        top = to_numpy(namespace(X).max(X, axis=0)).astype(np.float64)
        top = np.minimum(top, 2.0**62).astype(np.int64) + 1  # a float may be beyond every integer
    else:
        top = np.ones(X.shape[1])
    return Categories(top if least is None else np.maximum(top, least))


def check_sizes(n_categories: Array, name: Callable[[int], str] = "column {}".format) -> None:
    """Refuse more categories than can be counted; `name` is how a message calls a column."""
    total = n_categories.astype(np.float64).sum()
    if total > MOST_CATEGORIES:
        j = int(np.argmax(n_categories))
        raise ValueError(
            f"{name(j)} has {n_categories[j]} categories, and all columns together {total:.0f}: more than "
            f"{MOST_CATEGORIES} cannot be counted. Drop it, or merge its rare categories."
        )


def clipped_codes(X: Array, n_categories: Array) -> Array:
    """Return the codes as int64, with n_categories[j] for every code of column j that is not below it.

    Both are compared in a dtype that holds both: uint8 has no 300, and int64 no 1e30.
    """
    xp = namespace(X)
    if xp is np:
        return np.minimum(X, n_categories).astype(np.int64, copy=False)
    kind = xp.int64 if xp.isdtype(X.dtype, "signed integer") else widest_float(X)
    limits = as_kind(sent_to(n_categories, X), kind)[None, :]
    wide = as_kind(X, kind)
    return as_kind(xp.where(wide < limits, wide, limits), xp.int64)


def make_codes(X: Array, frame: Categories) -> Codes | DeviceCodes:
    """Codes in a small type, for the library that X is of."""
    xp, most = namespace(X), int(frame.n_categories.max(initial=1)) - 1
    if xp is np:
        largest = max(most, int(X.max(initial=0)))
        return Codes(X.astype(np.min_scalar_type(largest), copy=False), frame)
    small = xp.uint8 if most < 255 and int(xp.max(X)) < 255 else xp.int64
    return DeviceCodes(xp.astype(X, small), frame, own_precision(X))


def check_codes(X: Array) -> None:
    """Refuse what is no code, column by column: a table may be large."""
    xp = namespace(X)
    if xp.isdtype(X.dtype, ("bool", "unsigned integer")) or X.shape[0] == 0:
        return
    whole = xp.isdtype(X.dtype, "integral")
    if whole and int(xp.min(X)) >= 0:
        return
    if xp is not np and not bool(xp.any((X < 0) | (xp.floor(X) != X) if not whole else X < 0)):
        return  # one wait, not one a column
    for j in range(X.shape[1]):
        column = X[:, j]
        bad = column < 0 if whole else (column < 0) | (column != xp.floor(column))
        if bool(xp.any(bad)):
            value = to_numpy(column[bad])[0]
            raise ColumnError(j, f"holds {value:g}, which is no code: categories are whole numbers from 0.")
