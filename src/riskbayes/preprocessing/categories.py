"""Integer codes of columns of categories, decided from the schema of all rows, which take in further ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from riskbayes.arrays import Array
from riskbayes.exceptions import ColumnError
from riskbayes.input.schema import MOST_VALUES, Cells, ColumnSchema, Schema
from riskbayes.loaded import require
from riskbayes.preprocessing.columns import (
    Values,
    numbers,
)

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

    @property
    def least_categories(self) -> Array:
        """Number of categories that each column declares, which it has in every fold."""
        return np.array([column.declared for column in self.columns], dtype=np.int64)

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
