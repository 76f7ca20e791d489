"""What the columns of a table hold, summed over all its batches.

A schema adds up as statistics do: that of two batches is the sum of theirs. What is decided about a table
(kinds of columns, which are left out, marks of missing cells, the order of categories) is decided once, from
the sum over all rows. So it does not matter in which batches, files or partitions the rows come.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Self

import narwhals as nw
import numpy as np
from scipy.sparse import issparse

from riskbayes.arrays import Array, namespace, to_numpy
from riskbayes.exceptions import ColumnError
from riskbayes.preprocessing.bins import column_ranges
from riskbayes.preprocessing.columns import (
    PARTS,
    Values,
    columns_of,
    dates_of_strings,
    part_of_date,
    read_column,
    unit_of,
)
from riskbayes.tables import plain, shown, total_of

MOST_VALUES = 100_000
"""Distinct values of a column that are kept; of a column with more only that it has more."""


@dataclass(frozen=True)
class ColumnSchema:
    """What the cells of one column are, as far as the rows so far tell."""

    name: str
    kind: str = "missing"
    """One of numbers, dates, words (strings, booleans, values of a categorical column), missing (no cell)."""
    n_missing: int = 0
    values: Any = frozenset()
    """The distinct values: a set of words, a sorted array of numbers. None for more than MOST_VALUES, and if
    some of the rows were an array of numbers, whose values are not looked for."""
    low: float = math.inf
    high: float = -math.inf
    """The least and the largest number, or date in microseconds since 1970."""
    all_dates: bool = False
    """True if all words are dates in ISO format."""
    parts: tuple[frozenset, ...] = ()
    """For each part of a date the codes that occur; of "number" none."""
    declared: tuple = ()
    """The categories that a categorical column declares, also those without a row."""
    example: Any = None
    """The first cell that is not missing."""

    @classmethod
    def of(cls, found: Values, name: str) -> Self:
        """Return the schema of the cells of one column."""
        gone = int(found.missing.sum())
        if gone == len(found.missing):
            return cls(name, n_missing=gone, declared=found.declared)
        example = found.example
        if found.kind != "words":
            present = found.values[~found.missing]
            return cls(name, found.kind, gone, bounded(np.unique(present)), example=example).ranging(
                present, found.kind == "dates"
            )
        words = bounded(frozenset(found.distinct()))
        own = cls(name, "words", gone, words, declared=found.declared, example=example)
        dates = dates_of_strings(found)
        if dates is None:
            return own
        return replace(own, all_dates=True).ranging(dates.values[~found.missing], True)

    def ranging(self, present: Array, are_dates: bool) -> Self:
        """Return this schema with the range of these numbers, and the parts of dates that occur."""
        parts: tuple = ()
        if are_dates:
            codes = [np.unique(part_of_date(present, part)) for part in PARTS[1:]]
            parts = (frozenset(), *(frozenset(found.tolist()) for found in codes))
        return replace(self, low=float(present.min()), high=float(present.max()), parts=parts)

    def plus(self, other: Self, j: int) -> Self:
        """Return the schema of the cells of both; j is the place of the column, for a message."""
        n_missing = self.n_missing + other.n_missing
        declared = tuple(dict.fromkeys((*self.declared, *other.declared)))
        if "missing" in (self.kind, other.kind):
            held = other if self.kind == "missing" else self
            return replace(held, n_missing=n_missing, declared=declared)
        if self.kind != other.kind or unit_of(self.example) != unit_of(other.example):
            cells = [each.kind if each.example is None else shown(each.example) for each in (self, other)]
            raise ColumnError(
                j,
                f"holds {cells[0]} and {cells[1]}: values of one kind are needed. "
                "Convert all of them, for instance to strings.",
                self.name,
            )
        both = None
        if self.values is not None and other.values is not None:
            words = self.kind == "words"
            both = bounded(self.values | other.values if words else np.union1d(self.values, other.values))
        all_dates = self.all_dates and other.all_dates
        parts: tuple = ()
        low, high = math.inf, -math.inf
        if all_dates or self.kind != "words":  # words that are not all dates have no range
            parts = tuple(a | b for a, b in zip(self.parts, other.parts, strict=True))
            low, high = min(self.low, other.low), max(self.high, other.high)
        return replace(
            self,
            n_missing=n_missing,
            values=both,
            low=low,
            high=high,
            all_dates=all_dates,
            parts=parts,
            declared=declared,
            example=other.example if self.example is None else self.example,
        )


def distinct_integers(column: Array, low: float, high: float) -> Array:
    """Return the distinct values of whole numbers from `low` to `high`, in order, as float64."""
    if high - low > max(len(column), MOST_VALUES) or max(high, -low) > 2**52:
        return np.unique(column.astype(np.float64))
    first = int(low)
    return np.flatnonzero(np.bincount(column.astype(np.int64) - first)) + float(first)


def bounded(values: Any) -> Any:
    """Return a set or an array of values; None if they are more than are kept."""
    return None if len(values) > MOST_VALUES else values


@dataclass(frozen=True)
class Schema:
    """What the columns of a table hold: the sum of the schemas of its batches."""

    n_rows: int
    names: tuple[str, ...]
    """The names of the columns; x0, x1 and so on if they have none."""
    named: bool
    dtype: str
    """float32 or float64 for rows of numbers; object for a table of columns of different kinds."""
    n_missing: Array
    """Missing cells of each column."""
    low: Array
    high: Array
    """The least and the largest number of each column; infinities the wrong way round if it has none."""
    same: tuple[int, ...]
    """For each column the first one whose cells are missing in the same rows."""
    columns: tuple[ColumnSchema, ...] = ()
    """The columns of a table that is no array of numbers."""
    library: Any = None
    """The library of the data frame; None for arrays."""
    labels: Any = None
    """The distinct labels of the rows, sorted, where they are summed too."""

    @classmethod
    def of_numbers(cls, X: Array, names: Sequence[str] | None, ranges: bool = True) -> Self:
        """Return the schema of an array of numbers, perhaps with NaN.

        Without `ranges` (they take a pass over the rows), and of an array on a device or a sparse one, the
        least and the largest numbers are not looked at.
        """
        m, n = X.shape
        dtype = "float32" if str(X.dtype).endswith("float32") else "float64"
        n_missing, same = np.zeros(n, dtype=np.int64), (0,) * n
        low, high = np.full(n, math.inf), np.full(n, -math.inf)
        if isinstance(X, np.ndarray) and m:
            missing = np.isnan(X) if X.dtype.kind == "f" and math.isnan(total_of(X)) else np.zeros(0)
            if missing.any():
                n_missing, same = missing.sum(axis=0), equal_columns(missing)
            if ranges:  # of a column without a number NaN, which fmin and fmax pass over
                ends = zip((np.fmin, np.fmax), column_ranges(X), (low, high), strict=True)
                low, high = (end(found.astype(np.float64), none) for end, found, none in ends)
        elif ranges and m and not issparse(X):  # on a device, where no cell is missing
            xp = namespace(X)
            low, high = (to_numpy(end(X, axis=0)).astype(np.float64) for end in (xp.min, xp.max))
        found = tuple(f"x{j}" for j in range(n)) if names is None else tuple(map(str, names))
        return cls(m, found, names is not None, dtype, n_missing, low, high, same)

    @classmethod
    def of_cells(cls, cells: Cells, names: Sequence[str], named: bool) -> Self:
        """Return the schema of a table whose columns were read."""
        columns = tuple(map(ColumnSchema.of, cells.values, names))
        missing = np.stack([found.missing for found in cells.values], axis=1)
        same = equal_columns(missing) if missing.any() else (0,) * len(columns)
        own = (missing.sum(axis=0), *ends_of(columns), same, columns, cells.library)
        return cls(len(missing), tuple(names), named, "object", *own)

    def with_values(self, X: Array) -> Self:
        """Return the same as `of_cells` of whole numbers X, whose values are counted, not sorted."""
        columns = tuple(
            replace(
                column,
                values=bounded(distinct_integers(cells, column.low, column.high)),
                example=int(cells[0]),
            )
            for column, cells in zip(self.each_column(), X.T, strict=True)
        )
        return replace(self, dtype="object", columns=columns)

    def __add__(self, other: Self) -> Self:
        if len(self.names) != len(other.names):
            raise ValueError(
                f"The rows have {len(self.names)} columns in one batch and {len(other.names)} in another. "
                "Pass batches of the same columns."
            )
        if self.named and other.named and self.names != other.names:
            j = next(j for j, (a, b) in enumerate(zip(self.names, other.names, strict=True)) if a != b)
            raise ValueError(
                f"The feature names should be the same in all batches: column {j} is {self.names[j]!r} in "
                f"one and {other.names[j]!r} in another."
            )
        names = self.names if self.named else other.names
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        columns: tuple[ColumnSchema, ...] = ()
        if self.columns or other.columns:
            pairs = zip(self.each_column(), other.each_column(), strict=True)
            columns = tuple(replace(a.plus(b, j), name=names[j]) for j, (a, b) in enumerate(pairs))
            low, high = ends_of(columns)
        dtype = max(self.dtype, other.dtype)  # float32, float64, object: the later one takes in the other
        groups: dict[tuple[int, int], int] = {}
        places = enumerate(zip(self.same, other.same, strict=True))
        return type(self)(
            self.n_rows + other.n_rows,
            names,
            self.named or other.named,
            dtype,
            self.n_missing + other.n_missing,
            low,
            high,
            tuple(groups.setdefault(pair, j) for j, pair in places),
            columns,
            self.library if self.library is not None else other.library,
            None if self.labels is None else joined_labels(self.labels, other.labels),
        )

    def each_column(self) -> tuple[ColumnSchema, ...]:
        """Return the schemas of the columns, also of an array of numbers."""
        if self.columns:
            return self.columns
        return tuple(
            ColumnSchema(name, "numbers" if gone < self.n_rows else "missing", int(gone), None, low, high)
            for name, gone, low, high in zip(
                self.names, self.n_missing.tolist(), self.low.tolist(), self.high.tolist(), strict=True
            )
        )

    def marks(self) -> list[int]:
        """Return columns with missing and other cells; of those missing in the same rows the first one."""
        some = (self.n_missing > 0) & (self.n_missing < self.n_rows)
        return [j for j in np.flatnonzero(some).tolist() if self.same[j] == j]


WORDS = "OUST"
"""Kinds of arrays of strings."""


def joined_labels(a: Array, b: Array) -> Array:
    """Return the distinct labels of two arrays, sorted; refuse strings beside numbers."""
    if (a.dtype.kind in WORDS) != (b.dtype.kind in WORDS):
        raise TypeError(
            f"y has labels of several kinds, such as {plain(a[0])!r} and {plain(b[0])!r}: make all of "
            "them strings or all numbers."
        )
    return np.union1d(a, b)


def ends_of(columns: Sequence[ColumnSchema]) -> tuple[Array, Array]:
    """Return the least and the largest number of each column."""
    return np.array([column.low for column in columns]), np.array([column.high for column in columns])


def equal_columns(missing: Array) -> tuple[int, ...]:
    """Return for each column of a mask the first one that equals it."""
    first: dict[bytes, int] = {}
    packed = np.packbits(missing, axis=0)
    return tuple(first.setdefault(packed[:, j].tobytes(), j) for j in range(missing.shape[1]))


@dataclass
class Cells:
    """The columns of a table, each with its cells by kind, before anything is decided about them."""

    values: list[Values]
    library: Any
    """The library of the data frame; None for an array."""

    @classmethod
    def of(cls, X: Any, names: Sequence[str], kinds: Mapping[int, str] = MappingProxyType({})) -> Self:
        """Read the columns of an array or a data frame; refuse kinds that no model takes.

        `kinds` are those of columns of which the user says them, by their places.
        """
        values = []
        for j, (column, name) in enumerate(zip(columns_of(X), names, strict=True)):
            found = read_column(column, j, name)
            found = found.as_kind(kinds[j], j, name) if j in kinds else found
            values.append(replace(found, column=column))
        frame = None if isinstance(X, np.ndarray) else nw.from_native(X, eager_only=True)
        return cls(values, None if frame is None else frame.implementation)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and columns."""
        return len(self.values[0].missing), len(self.values)

    def rows(self, chosen: Array) -> Self:
        """Return the rows of these indices."""
        return type(self)([each.rows(chosen) for each in self.values], self.library)
