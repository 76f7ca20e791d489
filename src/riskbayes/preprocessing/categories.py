"""Columns of categories as integer codes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from riskbayes.arrays import Array, astype, namespace, widest_float
from riskbayes.exceptions import warn
from riskbayes.input.schema import MOST_VALUES, Cells, ColumnSchema, Schema
from riskbayes.loaded import Loadable, require
from riskbayes.preprocessing.columns import Values, example_of
from riskbayes.tables import composed, shown

UNSEEN = 2**31 - 1
"""The code of a value that was not seen in training; larger than that of any category."""

LARGEST = 2**62
"""Whole numbers beyond this, which a float can hold, are clipped to it."""


@dataclass(frozen=True)
class ColumnCodes(Loadable):
    """The encoding of one column: a value's code is its position in `categories`."""

    name: str
    categories: tuple[Any, ...] | None
    """The values in the order of their codes; None if the column holds codes already."""
    declared: int = 0
    """How many of the first categories the column's dtype declares, so that they need no row."""

    def check_loaded(self, size: int) -> None:
        """Require categories that differ, of which some may be declared."""
        known = self.categories or ()
        require(len(set(known)) == len(known) and 0 <= self.declared <= len(known), "categories")

    @property
    def least(self) -> int:
        """Number of known values; 0 if the column holds codes."""
        return 0 if self.categories is None else len(self.categories)

    @property
    def is_open(self) -> bool:
        """True if all cells were missing so far: the first values decide how the column is encoded."""
        return self.categories == ()

    def extended(self, values: list, *, declared: bool = False) -> ColumnCodes:
        """Return this encoding with further categories after the known ones."""
        if self.categories is None:
            return self
        codes = {value: code for code, value in enumerate(dict.fromkeys([*self.categories, *values]))}
        known = max([self.declared, *(codes[value] + 1 for value in values if declared)])
        return ColumnCodes(self.name, tuple(codes), known)

    def encode(self, found: Values) -> Array:
        """Return the codes of cells: `UNSEEN` for values that were not in training, NaN for missing cells."""
        present = found if not found.missing.any() else found.rows(~found.missing)
        codes = self.codes_of(present)
        if present is found:
            return codes
        all_codes = np.full(len(found.missing), np.nan)
        all_codes[~found.missing] = codes
        return all_codes

    def codes_of(self, present: Values) -> Array:
        """Return the codes of cells none of which is missing."""
        values = present.values
        if self.categories is None:
            if present.kind != "numbers" and len(values):
                raise ValueError(
                    f"{self.name} held integer codes in training and now holds {present.an_example()}."
                )
            return known_codes(np.asarray(values))
        values = values.tolist() if isinstance(values, np.ndarray) else values
        if (
            len(values)
            and self.categories
            and isinstance(values[0], str) != isinstance(self.categories[0], str)
        ):
            raise ValueError(
                f"{self.name} held values such as {self.categories[0]!r} in training and now "
                f"{present.an_example()}: strings and numbers are different categories."
            )
        position = {value: code for code, value in enumerate(self.categories)}
        if present.known is None:
            codes = np.fromiter((position.get(value, UNSEEN) for value in values), np.int64, len(values))
        else:
            codes = np.array([position.get(value, UNSEEN) for value in present.known])[present.places]
        return codes.astype(np.min_scalar_type(int(codes.max(initial=0))))


def known_codes(values: Array) -> Array:
    """Return whole numbers as codes; `UNSEEN` for those that cannot be codes."""
    beyond = (values < 0) | (values >= UNSEEN)
    return np.where(beyond, UNSEEN, values.astype(np.int64)) if beyond.any() else values


@dataclass(frozen=True)
class CategoryEncoder:
    """The encodings of a table's columns; immutable, so that a refused batch changes nothing.

    Whole numbers from 0 are codes already, as in scikit-learn. Columns of strings, booleans or negative
    numbers are coded by value; categorical columns of a data frame keep all categories that they declare.
    NaN, None, null, NA, NaT and empty strings are missing cells.
    """

    columns: tuple[ColumnCodes, ...] = ()

    @classmethod
    def decide(cls, schema: Schema, names: Sequence[str]) -> CategoryEncoder:
        """Return the encoder of the tables that a schema describes; messages call columns by `names`."""
        pairs = zip(schema.each_column(), names, strict=True)
        return cls(tuple(decide_codes(column, name) for column, name in pairs))

    def extended(self, schema: Schema) -> CategoryEncoder:
        """Return this encoder with the new categories of further rows after the known ones."""
        pairs = zip(self.columns, schema.each_column(), strict=True)
        return CategoryEncoder(tuple(extend_codes(known, column) for known, column in pairs))

    @property
    def least_categories(self) -> Array:
        """Number of categories that each column declares, which it has in every fold."""
        return np.array([column.declared for column in self.columns], dtype=np.int64)

    def encode(self, cells: Array | Cells) -> Array:
        """Return codes of shape (m, n): floats if cells are missing (NaN)."""
        if isinstance(cells, Cells):
            columns = [column.encode(found) for column, found in zip(self.columns, cells.values, strict=True)]
            return np.stack(columns, axis=1)
        if all(column.categories is None for column in self.columns):
            # For whole numbers `min` and `max` are several times as fast.
            low, high = (np.fmin.reduce, np.fmax.reduce) if cells.dtype.kind == "f" else (np.min, np.max)
            if low(cells, axis=None, initial=0) >= 0 and high(cells, axis=None, initial=0) < UNSEEN:
                return cells
        values = (Values("numbers", x, np.isnan(x)) for x in cells.T)
        return np.stack([c.encode(found) for c, found in zip(self.columns, values, strict=True)], axis=1)

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


def decide_codes(column: ColumnSchema, name: str) -> ColumnCodes:
    """Return the encoding of a column by its schema."""
    return extend_codes(ColumnCodes(name, ()), column)


def extend_codes(known: ColumnCodes, column: ColumnSchema) -> ColumnCodes:
    """Return an encoding with the values of further rows after the known ones, sorted."""
    if known.categories is None:
        if column.kind == "numbers" and not 0 <= column.low <= column.high < UNSEEN:
            raise ValueError(
                f"{known.name} holds {column.low if column.low < 0 else column.high:.0f}: integer codes are "
                f"counted from 0 to at most {UNSEEN - 1}. Pass such values as strings."
            )
        return known
    if known.is_open and column.kind == "numbers" and column.low >= 0:
        return ColumnCodes(known.name, None)
    if column.kind == "missing" and not column.declared:
        return known
    if column.values is None:
        raise ValueError(
            f"{known.name} has more than {MOST_VALUES} distinct values. Drop it, or merge its rare values."
        )
    values = column.values.tolist() if isinstance(column.values, np.ndarray) else list(column.values)
    declared = list(column.declared)
    if not declared and values and all(isinstance(value, bool) for value in values):
        declared = [False, True]
    try:
        values.sort()
    except TypeError:  # objects without an order
        values.sort(key=lambda value: (str(type(value)), str(value)))
    return known.extended(declared, declared=True).extended(values)


def read_categories_of(X: Any, own: Sequence[str], names: Sequence[str]) -> Array | Cells:
    """Return the cells of a table of categories: whole numbers as an array, or columns by their values.

    `own` are the names of the columns, and `names` what messages call them.
    """
    if isinstance(X, np.ndarray) and X.dtype.kind in "iuf":
        return whole_numbers(X, list(names))
    cells = Cells.of(X, own)
    for j, (found, column) in enumerate(zip(cells.values, cells.originals(), strict=True)):
        if found.kind == "dates" or is_time(column):
            raise TypeError(
                f"{names[j]} holds {shown(example_of(column, found))}: each argument must be a string or a "
                "number."
            )
        if found.kind == "numbers":
            whole = whole_numbers(found.values[:, None], [names[j]])[:, 0]
            cells.values[j] = Values("numbers", whole, found.missing)
        if isinstance(getattr(column, "dtype", None), nw.Categorical | nw.Enum):
            declared = dict.fromkeys(composed(declared_categories(column)))
            cells.declared[j] = tuple(value for value in declared if value != "")
    return cells


def is_time(column: Any) -> bool:
    """True for a column of durations or times of day, which are no categories."""
    kind = getattr(column, "dtype", None)
    return getattr(kind, "kind", "") == "m" or isinstance(kind, nw.Duration | nw.Time)


def warn_of_fraction(name: str, value: float) -> None:
    """Warn that a number is not an integer code."""
    warn(
        f"{name} holds {value:g}, which is no integer code; it is cut down to one, as in scikit-learn. Put "
        "riskbayes.preprocessing.KMeansBins before CategoricalNB, or take GaussianNB."
    )


def whole_numbers(X: Array, names: list[str]) -> Array:
    """Return numbers in the smallest integer dtype that holds them; truncate fractions, with a warning.

    With missing cells (NaN) the whole numbers stay floats.
    """
    if X.dtype.kind != "f":
        return X
    holes = False
    for j, name in enumerate(names):
        column = X[:, j]
        if not np.isfinite(column).all():
            if np.isinf(column).any():
                raise ValueError(
                    f"Input X contains infinity in {name}, which is no category. Replace it by a code, or by "
                    "NaN for a missing cell."
                )
            holes = True
    for j, name in enumerate(names):
        broken = (X[:, j] != np.trunc(X[:, j])) & ~np.isnan(X[:, j])
        if broken.any():
            warn_of_fraction(name, X[broken, j][0])
            break
    if holes:
        return np.clip(np.trunc(X, dtype=np.float64), -LARGEST, LARGEST)
    low, high = max(int(X.min(initial=0)), -LARGEST), min(int(X.max(initial=0)), LARGEST)
    smallest = np.promote_types(np.min_scalar_type(low), np.min_scalar_type(high))
    beyond = high == LARGEST or low == -LARGEST
    return np.clip(X, low, high).astype(np.int64) if beyond else X.astype(smallest)


def codes_on_device(X: Array, names: list[str], *, learn: bool) -> Array:
    """Return integer codes, checked on their device; a negative one is `UNSEEN`, or refused with `learn`."""
    xp = namespace(X)
    if xp.isdtype(X.dtype, "real floating"):
        if not math.isfinite(float(xp.sum(X, dtype=widest_float(X)))):
            j = int(xp.argmax(xp.astype(xp.any(~xp.isfinite(X), axis=0), xp.int64)))
            what = "NaN" if bool(xp.any(xp.isnan(X[:, j]))) else "infinity"
            raise ValueError(
                f"Input X contains {what} in {names[j]}: on a device no cell may be missing or infinite. "
                "Pass a NumPy array, in which NaN is a missing cell, or fill them in."
            )
        broken = xp.any(xp.trunc(X) != X, axis=0)
        if bool(xp.any(broken)):
            j = int(xp.argmax(xp.astype(broken, xp.int64)))
            column = X[:, j]
            warn_of_fraction(names[j], float(column[column != xp.trunc(column)][0]))
            X = xp.trunc(X)
    if xp.isdtype(X.dtype, ("bool", "unsigned integer")) or float(xp.min(X)) >= 0:
        return X
    if learn:
        j = int(xp.argmax(xp.astype(xp.any(X < 0, axis=0), xp.int64)))
        raise ValueError(
            f"{names[j]} holds {float(xp.min(X[:, j])):g}: on a device categories are codes from 0. Code the "
            "column, for instance by sklearn.preprocessing.OrdinalEncoder."
        )
    X = X if xp.isdtype(X.dtype, "real floating") else astype(X, xp.int64)  # int8 cannot hold UNSEEN
    return xp.where(X < 0, UNSEEN, X)


def declared_categories(column: nw.Series) -> list:
    """Return the categories that a column declares, also those without a row: of pandas, and of an Enum."""
    if isinstance(column.dtype, nw.Enum):
        return list(column.dtype.categories)
    categories = getattr(getattr(column.to_native(), "cat", None), "categories", None)  # pandas
    return [] if categories is None else list(categories)
