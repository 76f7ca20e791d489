"""The encoder of a user's table: every column by its kind, and marks of the cells that are missing."""

from __future__ import annotations

import datetime
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Self

import narwhals as nw
import numpy as np

from riskbayes.arrays import Array
from riskbayes.exceptions import ColumnError
from riskbayes.input.schema import MOST_VALUES, Cells, ColumnSchema, Schema
from riskbayes.loaded import Loadable, require
from riskbayes.preprocessing.columns import (
    DAY,
    FEW_VALUES,
    ID_SHARE,
    PARTS,
    TEXT_WORDS,
    Column,
    Reader,
    Values,
    columns_of,
    days_of_parts,
    left_out,
    read_column,
)
from riskbayes.tables import shown

REASONS = {"drop": "dropped", "id": "an identifier, as columns says", "text": "text"}
"""Why a column is left out that the user leaves out."""


@dataclass(frozen=True)
class TableEncoder(Loadable):
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
            left_out(column.name, j, REASONS[dropped[j]], column.n_missing, None)
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
        return encoder, encoder.stack(cells.values)

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
        """Return the encoded rows of a table with the same columns."""
        pairs = zip(self.readers, columns_of(X), strict=True)
        return self.stack([read_column(column, r.index, r.column.name) for r, column in pairs])

    def stack(self, cells: Sequence[Values]) -> Array:
        """Return the encoded columns of all readers and marks, side by side."""
        pairs = list(zip(self.readers, cells, strict=True))
        columns = [part for reader, found in pairs for part in reader.encode(found, self.unseen)]
        columns += [cells[j].missing.astype(np.float64) for j in self.marks]
        return np.stack(columns, axis=1)

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
                values[:, j] = decoded(reader, found, np.isnan(found))
        return missing, values

    def decode(self, rows: Array) -> Any:
        """Return encoded rows as a table like that of training; columns that were left out are missing."""
        marked_by, marks = (
            self.marked_by or range(len(self.readers)),
            rows[:, len(rows.T) - len(self.marks) :],
        )
        marked = dict(zip(self.marks, marks.T > 0, strict=True))
        found: dict[str, list] = {}
        for j, reader in enumerate(self.readers):
            values = self.numbers_of(j, rows, drawn=True)
            values = np.full(len(rows), np.nan) if values is None else values
            found[reader.column.name] = decoded(
                reader, values, np.isnan(values) | marked.get(marked_by[j], False)
            )
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
    """Return how one column is encoded; `forced` makes it a column of categories."""
    reader = reader_of(column, j, forced, n_rows)
    scale = DAY if reader.column.kind == "date" else 1.0
    low, high = (end / scale if math.isfinite(end) else None for end in (column.low, column.high))
    example = "" if column.example is None else shown(column.example)
    seen = replace(reader.column, low=low, high=high, example=example)
    return replace(reader, column=seen, example=column.example)


def reader_of(column: ColumnSchema, j: int, forced: bool, n_rows: int) -> Reader:
    """Return how one column is encoded, but for its example."""
    name, gone, kind = column.name, column.n_missing, column.kind
    if kind == "missing":
        return left_out(name, j, "missing everywhere", gone, 0)
    number = None if column.values is None else len(column.values)
    is_date = kind == "dates" or (column.all_dates and not forced)
    if forced or (kind == "words" and not is_date):
        return decide_category(column, j, forced, n_rows)
    if column.low == column.high:
        return left_out(name, j, "constant", gone, 1)
    if not is_date:
        return Reader(Column(name, "number", ("number",), "", gone, number), j)
    varying = tuple(
        part for part, codes in zip(PARTS, column.parts, strict=True) if part == "number" or len(codes) > 1
    )
    return Reader(
        Column(name, "date", varying, "", gone, number),
        j,
        (),
        varying,
        extent=(column.low / DAY, column.high / DAY),
    )


def decide_category(column: ColumnSchema, j: int, forced: bool, n_rows: int) -> Reader:
    """Return how a column of categories is encoded; identifiers and text are left out unless `forced`."""
    name, gone, values = column.name, column.n_missing, column.values
    number = None if values is None else len(values)
    if number == 1 and not forced:
        return left_out(name, j, "constant", gone, 1)
    if not forced and (number is None or (number > FEW_VALUES and number > ID_SHARE * (n_rows - gone))):
        many = f"more than {MOST_VALUES}" if number is None else number
        kind = "text" if is_text(values or [column.example]) else "an identifier"
        return left_out(name, j, f"{kind}: {many} distinct values", gone, number)
    if number is None:
        raise ColumnError(
            j,
            f"has more than {MOST_VALUES} distinct values, and so many categories are not counted. Drop it, "
            "or merge its rare values.",
            name,
        )
    try:
        ordered = tuple(sorted(values.tolist() if isinstance(values, np.ndarray) else values))
    except TypeError:
        raise ColumnError(j, "holds categories of several types. Convert all to strings.", name) from None
    codes = {value: float(code) for code, value in enumerate(ordered)}
    own = Column(name, "category", ("category",), "", gone, number)
    return Reader(own, j, ordered, (), codes)


def is_text(values: Collection[Any]) -> bool:
    """True for strings of many words, as people write comments."""
    words = sum(len(str(value).split()) for value in values)
    return words >= TEXT_WORDS * len(values)


def decoded(reader: Reader, values: Array, gone: Array) -> list:
    """Return the cells of a column of the table from its encoded numbers, with None for missing cells."""
    if reader.column.kind == "category":
        known = reader.categories
        return [None if no or v >= len(known) else known[int(v)] for v, no in zip(values, gone, strict=True)]
    if reader.column.kind == "date":
        dates = (np.where(gone, 0.0, values) * DAY).astype(np.int64).astype("datetime64[us]")
        of = reader.example
        return [None if no else date_like(date, of) for date, no in zip(dates.tolist(), gone, strict=True)]
    return [None if no else number_like(float(v), reader.example) for v, no in zip(values, gone, strict=True)]


def date_like(date: datetime.datetime, example: Any) -> Any:
    """Return a date in the type of an example: a string in ISO format, a date, or a time in its zone."""
    if isinstance(example, str):
        return date.isoformat(example[10]) if len(example) > 10 else date.date().isoformat()
    if isinstance(example, datetime.datetime):
        zone = example.tzinfo
        return date if zone is None else date.replace(tzinfo=datetime.UTC).astimezone(zone)
    return date.date() if isinstance(example, datetime.date) else date


def number_like(value: float, example: Any) -> Any:
    """Return a number in the type of an example: a duration of days, a time of day, or the number."""
    if isinstance(example, datetime.timedelta):
        return datetime.timedelta(days=value)
    if isinstance(example, datetime.time):
        seconds = min(max(value, 0.0) * 3600, 86399.999999)
        return (datetime.datetime.min + datetime.timedelta(seconds=seconds)).time()
    return value
