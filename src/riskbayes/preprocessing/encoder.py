"""The cells of a user's table as numbers, decided once from the schema of all rows.

`TableEncoder` makes one float64 array of columns of every kind: numbers as they are, categories as codes from
0, a date as the parts that vary, NaN for a missing cell, and marks of missing cells. `CategoryEncoder` makes
integer codes of columns that all hold categories, and takes in further ones.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress
from types import MappingProxyType
from typing import Any, Self

import narwhals as nw
import numpy as np

from riskbayes.arrays import Array
from riskbayes.exceptions import ColumnError
from riskbayes.input.schema import MOST_VALUES, Cells, ColumnSchema, Schema
from riskbayes.loaded import require
from riskbayes.preprocessing.columns import (
    DAY,
    PARTS,
    Values,
    columns_of,
    date_like,
    days_of_parts,
    number_like,
    numbers,
    part_of_date,
    read_column,
    unit_of,
)
from riskbayes.tables import shown

FEW_VALUES, ID_SHARE = 20, 0.5
"""Strings with more distinct values than this number, and than this share of the rows, are identifiers."""

TEXT_WORDS = 4
"""Such strings of so many words on average are text, and no identifiers."""

REASONS = {"drop": "dropped", "id": "an identifier, as columns says", "text": "text"}
"""Why a column is left out that the user leaves out."""


@dataclass(frozen=True)
class Column:
    """What became of one column of the table."""

    name: str
    kind: str
    """One of number, category, date, or left out."""
    encoded: tuple[str, ...] = ()
    """What the models read: "number", "category", "weekday", "month", "hour", "is missing"."""
    reason: str = ""
    """Why it was left out."""
    n_missing: int | None = None
    """Number of missing cells in training."""
    n_values: int | None = None
    """Number of distinct values that are not missing; None if they were not counted."""
    low: float | None = None
    high: float | None = None
    """The least and the largest number, or date in days since 1970."""
    example: str = ""
    """The first cell that is not missing, as it is shown."""


@dataclass(frozen=True)
class Reader:
    """How one column is encoded: learned from the training rows, the same for all rows after."""

    column: Column
    index: int
    categories: tuple[Any, ...] = ()
    """Values of a category in the order of their codes."""
    parts: tuple[str, ...] = ()
    """Parts of a date that vary."""
    example: Any = field(default=None, repr=False, compare=False)
    """A cell of training that is not missing: cells are filled in, and drawn, as values of its type."""
    extent: tuple[float, float] = (-math.inf, math.inf)
    """The first and the last date of training, in days since 1970."""

    def check_loaded(self, size: int) -> None:
        """Require the encoded columns of the kind of the column, and categories that differ."""
        kind, known = self.column.kind, self.categories
        encoded = {"number": ("number",), "category": ("category",), "date": self.parts, "left out": ()}
        require(kind in encoded and self.column.encoded == encoded[kind], f"a column is a {kind!r}")
        require(set(self.parts) <= set(PARTS), "a date has other parts")
        require(kind != "category" or known, "a column has no categories")
        require(len(self.codes) == len(known), "a column has a category twice")

    @cached_property
    def codes(self) -> dict[Any, int]:
        """The code of each category."""
        return {value: code for code, value in enumerate(self.categories)}

    def encode(self, found: Values, unseen: str) -> list[Array]:
        """Return the encoded columns; `unseen` says what becomes of a category that was not in training."""
        kind = self.column.kind
        if kind == "left out":
            return []
        if kind == "number":
            return [found.as_numbers(self.index, self.column.name, unit_of(self.example))]
        if kind == "date":
            dates = found.as_dates(self.index, self.column.name)
            return [part_of_date(dates, part) for part in self.parts]
        codes = found.as_codes(self.codes, self.index, self.column.name)
        new = codes == len(self.categories)
        if unseen == "error" and new.any():
            raise ColumnError(
                self.index,
                f"holds {shown(found.values[int(np.argmax(new))])}, which was not in training. Set "
                "unseen='missing' to treat such values as missing.",
                self.column.name,
            )
        return [np.where(new, np.nan, codes) if unseen == "missing" else codes]

    def decode(self, values: Array, gone: Array) -> list:
        """Return the cells of the column from its encoded numbers, with None for missing cells."""
        pairs: Any = zip(values, gone, strict=True)
        if self.column.kind == "category":
            known = self.categories
            return [None if no or v >= len(known) else known[int(v)] for v, no in pairs]
        if self.column.kind == "date":
            dates = (np.where(gone, 0.0, values) * DAY).astype(np.int64).astype("datetime64[us]").tolist()
            return [None if no else date_like(v, self.example) for v, no in zip(dates, gone, strict=True)]
        return [None if no else number_like(float(v), self.example) for v, no in pairs]


@dataclass(frozen=True)
class TableEncoder:
    """Encodes a table of numbers, categories and dates as one float64 array, with NaN for missing cells.

    It is learned from the training rows and immutable. With `informative`, a column of 0 and 1 is added for
    each pattern of missing cells in a column: whether a cell is missing may depend on the class.
    """

    readers: tuple[Reader, ...]
    marks: tuple[int, ...]
    """Columns of the table whose missing cells are marked; of columns with equal marks the first one."""
    unseen: str
    """What becomes of categories that were not in training: "missing", "other" or "error"."""
    library: Any = None
    """The library of the data frame that it was learned from; None for arrays."""
    n_rows: int = 0
    """Number of rows whose missing cells `columns` count; 0 in files that do not tell it."""
    marked_by: tuple[int, ...] = ()
    """For each column of the table, the one of `marks` that has equal marks; itself if there is none."""

    def check_loaded(self, size: int) -> None:
        """Require readers in the order of their columns, and marks of columns that there are."""
        require([reader.index for reader in self.readers] == list(range(len(self.readers))), "readers")
        require(all(0 <= j < len(self.readers) for j in self.marks), "marks")
        require(len(self.marked_by) in (0, len(self.readers)), "marks")
        require(self.kinds and self.unseen in ("missing", "other", "error"), "no column is read")
        require(self.library is None or isinstance(self.library, nw.Implementation), "library")

    @classmethod
    def decide(
        cls,
        schema: Schema,
        categorical: Sequence[bool] | None = None,
        unseen: str = "missing",
        informative: bool = False,
        dropped: Mapping[int, str] = MappingProxyType({}),
    ) -> Self:
        """Return the encoder of the tables that a schema describes.

        `categorical` marks columns that the user names as categories: they are never left out as identifiers.
        Without it the kinds of their cells decide. `dropped` are columns that the user leaves out, and why.
        """
        forced = [False] * len(schema.names) if categorical is None else categorical
        readers = tuple(
            Reader(Column(column.name, "left out", (), REASONS[dropped[j]], column.n_missing), j)
            if j in dropped
            else decide_column(column, j, is_forced, schema.n_rows)
            for j, (column, is_forced) in enumerate(zip(schema.each_column(), forced, strict=True))
        )
        kept = {first for j, first in enumerate(schema.same) if j not in dropped}
        marks = tuple(j for j in schema.marks() if j in kept) if informative else ()
        encoder = cls(readers, marks, unseen, schema.library, schema.n_rows, schema.same if marks else ())
        if not encoder.kinds:
            why = ", ".join(f"{r.column.name!r} ({r.column.reason})" for r in readers[:5])
            raise ValueError(f"No column of X can be used: {why}{', ...' if len(readers) > 5 else ''}.")
        return encoder

    @classmethod
    def learn(
        cls,
        X: Any,
        names: Sequence[str],
        kinds: Mapping[int, str] = MappingProxyType({}),
        informative: bool = False,
    ) -> tuple[Self, Array]:
        """Return the encoder of these rows, and the encoded rows; the user says `kinds` of some columns."""
        cells = Cells.of(X, names, kinds)
        schema = Schema.of_cells(cells, names, named=True)
        categorical = [kinds.get(j) == "category" for j in range(len(names))]
        encoder = cls.decide(schema, categorical, "missing", informative, left_out_of(kinds))
        return encoder, encoder.encode(cells)

    @property
    def columns(self) -> list[Column]:
        """What became of each column of the table."""
        marked = dict.fromkeys(self.marks, ("is missing",))
        return [
            replace(c, encoded=c.encoded + marked.get(j, ()))
            for j, c in enumerate(reader.column for reader in self.readers)
        ]

    @property
    def encoded(self) -> list[tuple[int, str]]:
        """For each encoded column the column of the table that it comes from, and which part of it."""
        parts = [(j, part) for j, reader in enumerate(self.readers) for part in reader.column.encoded]
        return parts + [(j, "is missing") for j in self.marks]

    @property
    def kinds(self) -> list[str]:
        """The kind of each encoded column: "number", "category", or "mark" (of missing cells)."""
        kinds = {"number": "number", "is missing": "mark"}
        return [kinds.get(part, "category") for _, part in self.encoded]

    @property
    def names(self) -> list[str]:
        """A name for each encoded column."""
        named = [(self.readers[j].column.name, part) for j, part in self.encoded]
        return [name if part in ("number", "category") else f"{name} ({part})" for name, part in named]

    def encode(self, X: Any) -> Array:
        """Return the encoded rows of a table with the same columns, or of its cells."""
        cells = X if isinstance(X, Cells) else Cells.of(X, [reader.column.name for reader in self.readers])
        pairs = zip(self.readers, cells.values, strict=True)
        columns = [part for reader, found in pairs for part in reader.encode(found, self.unseen)]
        columns += [cells.values[j].missing.astype(np.float64) for j in self.marks]
        return np.stack(columns, axis=1)

    def value_of(self, column: int, value: Any) -> Any:
        """Return the category of a code in an encoded column, or a number or date, as the user wrote it."""
        j, part = self.encoded[column]
        reader = self.readers[j]
        if part == "category" and value < len(reader.categories):
            return str(reader.categories[int(value)])
        if part == "number" and isinstance(value, float):
            return reader.decode(np.array([value]), np.array([False]))[0]
        return value

    def missing_and_values(self, X: Any, rows: Array, drawn: bool = False) -> tuple[Array, Array]:
        """Return a mask of the missing cells of a table that is read, and its values by encoded rows.

        Columns that were left out are not filled. Of rows that are `drawn`, all parts of a date are read; of
        others the number alone, a mean.
        """
        missing = np.zeros((len(rows), len(self.readers)), dtype=bool)
        values = np.empty(missing.shape, dtype=object)
        for j, (reader, column) in enumerate(zip(self.readers, columns_of(X), strict=True)):
            found = self.numbers_of(j, rows, drawn)
            if found is not None:
                gone = read_column(column, reader.index, reader.column.name).missing
                missing[:, j] = gone & ~np.isnan(found)  # no expert may read the column
                values[:, j] = reader.decode(found, np.isnan(found))
        return missing, values

    def decode(self, rows: Array) -> Any:
        """Return encoded rows as a table like that of training; columns that were left out are missing."""
        marked_by = self.marked_by or range(len(self.readers))
        marked = dict(zip(self.marks, rows.T[len(rows.T) - len(self.marks) :] > 0, strict=True))
        found: dict[str, list] = {}
        for j, reader in enumerate(self.readers):
            values = self.numbers_of(j, rows, drawn=True)
            values = np.full(len(rows), np.nan) if values is None else values
            gone = np.isnan(values) | marked.get(marked_by[j], False)
            found[reader.column.name] = reader.decode(values, gone)
        if self.library is None:
            table = np.empty((len(rows), len(found)), dtype=object)
            for j, values in enumerate(found.values()):
                table[:, j] = values
            return table
        return nw.from_dict(found, backend=self.library).to_native()

    def numbers_of(self, j: int, rows: Array, drawn: bool) -> Array | None:
        """Return column j of the table as numbers or codes, from encoded rows; None if it was left out."""
        parts = {
            part: rows[:, i] for i, (k, part) in enumerate(self.encoded) if k == j and part != "is missing"
        }
        if drawn and self.readers[j].column.kind == "date":
            return days_of_parts(parts, self.readers[j].extent)
        return next(iter(parts.values()), None)


def left_out_of(kinds: Mapping[int, str]) -> dict[int, str]:
    """Return the columns that the user leaves out, by the kinds that the user says."""
    return {j: kind for j, kind in kinds.items() if kind in REASONS}


def decide_column(column: ColumnSchema, j: int, forced: bool, n_rows: int) -> Reader:
    """Return how one column is encoded; `forced` makes it a column of categories, which is never left out."""
    number = None if column.values is None else len(column.values)
    by_value = forced or (column.kind == "words" and not column.all_dates)
    is_date = not by_value and column.kind != "numbers"
    kind, reason = "number", ""
    parts: tuple = ("number",)
    categories: tuple = ()
    if column.kind == "missing":
        reason, number = "missing everywhere", 0
    elif not forced and (number == 1 or column.low == column.high):
        reason, number = "constant", 1
    elif not forced and by_value and are_names(number, n_rows - column.n_missing):
        what = "text" if is_text(column.values or [column.example]) else "an identifier"
        reason = f"{what}: {f'more than {MOST_VALUES}' if number is None else number} distinct values"
    elif by_value:
        kind, parts, categories = "category", ("category",), sorted_values(column, j)
    elif is_date:
        varying = (len(codes) > 1 for codes in column.parts[1:])
        kind, parts = "date", ("number", *compress(PARTS[1:], varying))
    if reason:
        kind, parts = "left out", ()
    own = column_of(column, kind, parts, reason, number)
    if kind != "date":
        return Reader(own, j, categories, (), column.example)
    return Reader(own, j, (), parts, column.example, (column.low / DAY, column.high / DAY))


def column_of(
    column: ColumnSchema, kind: str, encoded: tuple[str, ...], reason: str = "", number: int | None = None
) -> Column:
    """Return what became of a column."""
    scale = DAY if kind == "date" else 1.0
    low, high = (end / scale if math.isfinite(end) else None for end in (column.low, column.high))
    example = "" if column.example is None else shown(column.example)
    return Column(column.name, kind, encoded, reason, column.n_missing, number, low, high, example)


def are_names(number: int | None, n_present: int) -> bool:
    """True if so many distinct values, None for too many to keep, name rows and are no categories."""
    return number is None or (number > FEW_VALUES and number > ID_SHARE * n_present)


def sorted_values(column: ColumnSchema, j: int) -> tuple:
    """Return the distinct values of a column in their order; refuse those of several types."""
    try:
        return tuple(sorted(distinct_values(column, j, column.name)))
    except TypeError:
        raise ColumnError(
            j, "holds categories of several types. Convert all to strings.", column.name
        ) from None


def is_text(values: Collection[Any]) -> bool:
    """True for strings of many words, as people write comments."""
    words = sum(len(str(value).split()) for value in values)
    return words >= TEXT_WORDS * len(values)


UNSEEN = 2**31 - 1
"""The integer code of a value that was not in training; larger than that of any category."""


@dataclass(frozen=True)
class ColumnCodes:
    """The integer codes of one column: a value's code is its position in `categories`."""

    name: str | None
    """The name of the column; None if it has none."""
    categories: tuple[Any, ...] | None
    """The values in the order of their codes; None if the column holds codes already."""
    declared: int = 0
    """How many of the first categories the column's dtype declares, so that they need no row."""

    def check_loaded(self, size: int) -> None:
        """Require categories that differ, of which some may be declared."""
        known = self.categories or ()
        require(len(set(known)) == len(known) and 0 <= self.declared <= len(known), "categories")

    @property
    def is_open(self) -> bool:
        """True if all cells were missing so far: the first values decide how the column is encoded."""
        return self.categories == ()

    def extended(self, values: Sequence, *, declared: bool = False) -> ColumnCodes:
        """Return this encoding with further categories after the known ones."""
        if self.categories is None:
            return self
        codes = {value: code for code, value in enumerate(dict.fromkeys([*self.categories, *values]))}
        known = max([self.declared, *(codes[value] + 1 for value in values if declared)])
        return ColumnCodes(self.name, tuple(codes), known)

    def encode(self, found: Values, j: int) -> Array:
        """Return the codes of cells: `UNSEEN` for values that were not in training, NaN for missing cells."""
        if self.categories is not None:
            own = {value: code for code, value in enumerate(self.categories)}
            codes = found.as_codes(own, j, self.name)
            codes = np.where(codes == len(own), UNSEEN, codes)
            if found.missing.any():
                return codes
            return codes.astype(np.min_scalar_type(int(codes.max(initial=0))))
        if found.missing.all():
            return np.full(len(found.missing), np.nan)
        if found.kind != "numbers":
            raise ColumnError(
                j, f"held integer codes in training and now holds {found.an_example()}.", self.name
            )
        beyond = (found.values < 0) | (found.values >= UNSEEN)
        if not beyond.any():
            return found.values
        wide = found.values if found.missing.any() else found.values.astype(np.int64)
        return np.where(beyond, UNSEEN, wide)


@dataclass(frozen=True)
class CategoryEncoder:
    """The encodings of a table's columns; immutable, so that a refused batch changes nothing.

    Whole numbers from 0 are codes already, as in scikit-learn. Columns of strings, booleans or negative
    numbers are coded by value; categorical columns of a data frame keep all categories that they declare.
    NaN, None, null, NA, NaT and empty strings are missing cells.
    """

    columns: tuple[ColumnCodes, ...] = ()

    @classmethod
    def decide(cls, schema: Schema) -> Self:
        """Return the encoder of the tables that a schema describes."""
        names = schema.names if schema.named else (None,) * len(schema.names)
        return cls(tuple(ColumnCodes(name, ()) for name in names)).extended(schema)

    def extended(self, schema: Schema) -> Self:
        """Return this encoding with the new categories of further rows after the known ones."""
        pairs = zip(self.columns, schema.each_column(), strict=True)
        return type(self)(tuple(extend_codes(known, column, j) for j, (known, column) in enumerate(pairs)))

    def encode(self, cells: Array | Cells) -> Array:
        """Return codes of shape (m, n): floats if cells are missing (NaN)."""
        if not isinstance(cells, np.ndarray | Cells):  # codes on a device
            return cells
        if isinstance(cells, np.ndarray) and all(column.categories is None for column in self.columns):
            # For whole numbers `min` and `max` are several times as fast.
            low, high = (np.fmin.reduce, np.fmax.reduce) if cells.dtype.kind == "f" else (np.min, np.max)
            if low(cells, axis=None, initial=0) >= 0 and high(cells, axis=None, initial=0) < UNSEEN:
                return cells
        values = cells.values if isinstance(cells, Cells) else map(numbers, cells.T)
        columns = enumerate(zip(self.columns, values, strict=True))
        return np.stack([column.encode(found, j) for j, (column, found) in columns], axis=1)

    def value_of(self, column: int, value: Any) -> Any:
        """Return the category of a code, as the user wrote it."""
        known = self.columns[column].categories
        return value if known is None or value >= len(known) else str(known[value])

    def decode(self, codes: Array) -> Array:
        """Return the values of codes; of dtype object if the columns differ in kind."""
        if all(column.categories is None for column in self.columns):
            return codes
        columns = [
            codes[:, j] if column.categories is None else as_array(column.categories or (None,))[codes[:, j]]
            for j, column in enumerate(self.columns)
        ]
        if len({values.dtype.kind for values in columns}) > 1:
            columns = [values.astype(object) for values in columns]
        return np.stack(columns, axis=1)


def as_array(values: Sequence) -> Array:
    """Return a one-dimensional array with one entry for each value, whatever its type."""
    plain = np.array(values) if all(isinstance(v, str | int | float) for v in values) else None
    if plain is not None and plain.ndim == 1:
        return plain
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    return objects


def extend_codes(known: ColumnCodes, column: ColumnSchema, j: int) -> ColumnCodes:
    """Return an encoding with the values of further rows after the known ones, sorted."""
    if known.categories is None:
        if column.kind == "numbers" and not 0 <= column.low <= column.high < UNSEEN:
            raise ColumnError(
                j,
                f"holds {column.low if column.low < 0 else column.high:.0f}: integer codes are counted from "
                f"0 to at most {UNSEEN - 1}. Pass such values as strings.",
                known.name,
            )
        return known
    if known.is_open and column.kind == "numbers" and column.low >= 0:
        return ColumnCodes(known.name, None)
    if column.kind == "missing" and not column.declared:
        return known
    values = distinct_values(column, j, known.name)
    declared = column.declared
    if not declared and values and all(isinstance(value, bool) for value in values):
        declared = (False, True)
    try:
        values.sort()
    except TypeError:  # objects without an order
        values.sort(key=lambda value: (str(type(value)), str(value)))
    return known.extended(declared, declared=True).extended(values)


def distinct_values(column: ColumnSchema, j: int, name: str | None) -> list:
    """Return the distinct values of a column; refuse more than are kept."""
    if column.values is None:
        raise ColumnError(
            j,
            f"has more than {MOST_VALUES} distinct values, and so many categories are not counted. Drop it, "
            "or merge its rare values.",
            name,
        )
    return column.values.tolist() if isinstance(column.values, np.ndarray) else list(column.values)
