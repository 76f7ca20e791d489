"""Columns of categories as integer codes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from riskbayes.arrays import Array, astype, namespace, widest_float
from riskbayes.exceptions import warn
from riskbayes.loaded import Loadable, require
from riskbayes.tables import A_PERIOD, composed, is_missing, is_period, shown

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

    def encode(self, values: Array, *, learn: bool) -> Array:
        """Return the codes of values; `UNSEEN` for those that were not seen in training."""
        if self.categories is None:
            if values.dtype.kind not in "iub":
                raise ValueError(
                    f"{self.name} held integer codes in training and now holds {values.tolist()[0]!r}."
                )
            beyond = (values < 0) | (values >= UNSEEN)
            if learn and beyond.any():
                raise ValueError(
                    f"{self.name} holds {values[beyond][0]}: integer codes are counted from 0 to at most "
                    f"{UNSEEN - 1}. Pass such values as strings."
                )
            return np.where(beyond, UNSEEN, values.astype(np.int64)) if beyond.any() else values
        found, inverse = distinct(values)
        if found and self.categories and isinstance(found[0], str) != isinstance(self.categories[0], str):
            raise ValueError(
                f"{self.name} held values such as {self.categories[0]!r} in training and now {found[0]!r}: "
                "strings and numbers are different categories."
            )
        position = {value: code for code, value in enumerate(self.categories)}
        codes = np.array([position.get(value, UNSEEN) for value in found], dtype=np.int64)
        return codes.astype(np.min_scalar_type(int(codes.max(initial=0))))[inverse]


class CategoryEncoder(Loadable):
    """The encodings of a table's columns; immutable, so that a refused batch changes nothing.

    Whole numbers from 0 are codes already, as in scikit-learn. Columns of strings, booleans or negative
    numbers are coded by value; categorical columns of a data frame keep all categories that they declare.
    NaN, None, null, NA, NaT and empty strings are missing cells.
    """

    columns: tuple[ColumnCodes, ...]

    def __init__(self, columns: tuple[ColumnCodes, ...] = ()):
        self.columns = columns

    @property
    def least_categories(self) -> Array:
        """Number of categories that each column declares, which it has in every fold."""
        return np.array([column.declared for column in self.columns], dtype=np.int64)

    def encode(self, X: Any, names: list[str], *, learn: bool) -> tuple[Array, CategoryEncoder]:
        """Return codes of shape (m, n), and the encoder; with `learn` it includes new values.

        Missing cells are NaN, and the codes then floats.
        """
        if isinstance(X, np.ndarray) and X.dtype.kind in "iuf":
            X = whole_numbers(X, names)
            plain = self.columns or tuple(ColumnCodes(name, None) for name in names)
            # For whole numbers `min` and `max` are several times as fast.
            low, high = (np.fmin.reduce, np.fmax.reduce) if X.dtype.kind == "f" else (np.min, np.max)
            usual = low(X, axis=None, initial=0) >= 0 and high(X, axis=None, initial=0) < UNSEEN
            if usual and all(column.categories is None for column in plain):
                return X, CategoryEncoder(plain)
        codes, columns = [], []
        for j, (values, declared) in enumerate(table_columns(X)):
            holes = missing_entries(values)
            values = values if holes is None else values[~holes]
            values = values if declared is not None else typed(values, names[j])
            column = self.columns[j] if self.columns else ColumnCodes(names[j], ())
            if learn and column.is_open:
                column = start_column(names[j], values, declared)
            if learn:
                column = column.extended(declared or [], declared=True).extended(distinct(values)[0])
            columns.append(column)
            found = column.encode(values, learn=learn)
            if holes is not None:
                present, found = found, np.full(len(holes), np.nan)
                found[~holes] = present
            codes.append(found)
        return np.stack(codes, axis=1), CategoryEncoder(tuple(columns))

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


def distinct(values: Array) -> tuple[list, Array]:
    """Return the distinct values, sorted if they can be, and the index of each entry among them.

    Strings that differ only in how Unicode composes their letters are there twice, and equal.
    """
    try:
        found, inverse = np.unique(values, return_inverse=True)
        return composed(found.tolist()), inverse
    except TypeError:  # objects without an order
        first = {value: code for code, value in enumerate(dict.fromkeys(values.tolist()))}
        return composed(list(first)), np.array([first[value] for value in values.tolist()])


def start_column(name: str, values: Array, declared: list | None) -> ColumnCodes:
    """Return the encoding of a column, from its first values and its declared categories."""
    if not len(values) and not declared:
        return ColumnCodes(name, ())
    if declared is not None:
        return ColumnCodes(name, tuple(declared), len(declared))
    if values.dtype.kind == "b":
        return ColumnCodes(name, (False, True), 2)
    if values.dtype.kind in "iu" and values.min(initial=0) >= 0:
        return ColumnCodes(name, None)
    return ColumnCodes(name, ())


def typed(values: Array, name: str) -> Array:
    """Return values as an array of whole numbers, booleans or strings; refuse anything else."""
    if values.dtype.kind in "iuf":
        return whole_numbers(values[:, None], [name])[:, 0]
    if values.dtype != object:
        return values
    listed = [value.item() if isinstance(value, np.generic) else value for value in values.tolist()]
    kinds = {type(value) for value in listed}
    if kinds <= {bool}:
        return np.array(listed, dtype=bool)
    if all(issubclass(kind, int | float) for kind in kinds):
        return whole_numbers(np.array(listed, dtype=np.float64)[:, None], [name])[:, 0]
    if all(issubclass(kind, str) for kind in kinds):
        return np.array(listed, dtype=str)
    odd = next((value for value in listed if not isinstance(value, str | int | float)), None)
    if odd is None:
        word, number = (next(v for v in listed if isinstance(v, str) is kind) for kind in (True, False))
        raise TypeError(f"{name} holds {word!r} and {number!r}: strings or numbers, one kind a column.")
    if is_period(odd):
        raise TypeError(f"{name} holds {shown(odd)}{A_PERIOD}")
    raise TypeError(f"{name} holds {shown(odd)}: each argument must be a string or a number.")


def missing_entries(values: Array) -> Array | None:
    """Return a mask of the missing cells of a column; None if there are none."""
    kind = values.dtype.kind
    if kind == "f":
        found = np.isnan(values)
    elif kind in "mM":
        found = np.isnat(values)
    elif kind in "SU":
        found = values == np.array("", dtype=values.dtype)
    elif kind in "OT":
        found = np.array(
            [is_missing(v) or (isinstance(v, str) and not v) for v in values.tolist()], dtype=bool
        )
    else:
        return None
    return found if found.any() else None


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


def table_columns(X: Any) -> Iterator[tuple[Array, list | None]]:
    """Yield (values, declared categories or None) of each column of an array or a data frame."""
    if isinstance(X, np.ndarray):
        yield from ((X[:, j], None) for j in range(X.shape[1]))
        return
    for column in nw.from_native(X, eager_only=True).iter_columns():
        if isinstance(column.dtype, nw.Categorical | nw.Enum):
            values = column.to_list()
            named = as_array([None if is_missing(value) else value for value in values])
            declared = dict.fromkeys(composed(declared_categories(column)))
            yield named, [value for value in declared if value != ""]
        elif column.dtype.is_numeric() or (column.dtype == nw.Boolean and not column.null_count()):
            yield column.to_numpy(), None
        else:
            yield np.array(column.to_list(), dtype=object), None


def declared_categories(column: nw.Series) -> list:
    """Return the categories of a categorical column, including those without a row if it declares them."""
    if isinstance(column.dtype, nw.Enum):
        return list(column.dtype.categories)
    categories = getattr(getattr(column.to_native(), "cat", None), "categories", None)  # pandas
    return sorted(column.drop_nulls().unique().to_list()) if categories is None else list(categories)
