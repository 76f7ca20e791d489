"""Tables of categories: strings, booleans, and numbers that are codes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import validate_data

from riskbayes.arrays import Array, astype, namespace
from riskbayes.estimators.inputs import NumberInput
from riskbayes.estimators.table_input import holds_numbers, is_frame, validated_table
from riskbayes.exceptions import warn
from riskbayes.input.schema import Cells, Schema
from riskbayes.loaded import require
from riskbayes.models.codes import categories_of, check_sizes
from riskbayes.preprocessing.columns import declared_categories
from riskbayes.preprocessing.encoder import UNSEEN, CategoryEncoder
from riskbayes.tables import (
    check_plain,
    column_name,
    first_bad_column,
    is_not_finite,
    names_of,
    naming_columns,
    shown,
    total_of,
)

ALWAYS_COUNTED = 2**18
"""Integer codes below this are accepted, however few the rows: their counts take 2 MiB per class."""

CODES_PER_ROW = 10
"""Larger codes are accepted up to this many times the number of rows: beyond, most counts would be zero."""

LARGEST = 2**62
"""Whole numbers beyond this, which a float can hold, are clipped to it."""


class CodeInput(NumberInput):
    """Tables of categories, which are encoded to integer codes."""

    tags: ClassVar = {"categorical": True}
    schema_decides = True

    def read(self, clf: Any, X: Any, *, reset: bool, learn: bool) -> Any:
        """Return the cells of rows, or codes on a device."""
        with naming_columns(clf):
            check_plain(clf, X)
        if is_frame(X) and holds_numbers(X):
            X = validate_data(clf, X, reset=reset, dtype=None, ensure_all_finite=False)
        else:
            X = validated_table(clf, X, reset)
        name = partial(column_name, clf)
        if not isinstance(X, np.ndarray) and hasattr(X, "__dlpack__"):  # on a device only codes are accepted
            return codes_on_device(X, name, learn=learn)
        if isinstance(X, np.ndarray) and X.dtype.kind in "iuf":
            return whole_numbers(X, name)
        cells = Cells.of(X, names_of(clf)[0])
        for j, found in enumerate(cells.values):
            if found.kind == "dates" or found.unit != "numbers":
                raise TypeError(
                    f"{name(j)} holds {shown(found.example)}: each argument must be a string or a number."
                )
            if found.kind == "numbers":
                whole = whole_numbers(found.values[:, None], [name(j)].__getitem__)[:, 0]
                found = replace(found, values=whole)
            cells.values[j] = replace(found, declared=declared_categories(found.column))
        return cells

    def schema_of(self, clf: Any, cells: Any, whole: bool = True) -> Schema:
        """Return what cells say of the columns."""
        schema = super().schema_of(clf, cells, whole)
        if (whole and not (schema.low < 0).any()) or not isinstance(cells, np.ndarray):
            return schema  # codes: their values are not asked for
        if cells.dtype.kind in "iu" and len(cells):
            return schema.with_values(cells)
        return Schema.of_cells(Cells.of(cells, schema.names), schema.names, schema.named)

    def as_read(self, clf: Any, cells: Any, schema: Schema) -> bool:
        """True if all columns hold codes."""
        codes = all(column.kind == "numbers" and column.low >= 0 for column in schema.each_column())
        return codes and super().as_read(clf, cells, schema)

    def decide(self, clf: Any, schema: Schema, more: bool) -> None:
        """Set the encoder by the schema of all rows, or extend it."""
        with naming_columns(clf):
            clf._encoder = clf._encoder.extended(schema) if more else CategoryEncoder.decide(schema)
        self.check_sizes(clf, schema, more)

    def encoder(self, clf: Any) -> CategoryEncoder:
        """Return the encoder of codes."""
        return clf._encoder

    def check_sizes(self, clf: Any, schema: Schema, more: bool) -> None:
        """Refuse codes far larger than the number of rows, as identifiers are, or too large for any count."""
        rows, known = schema.n_rows, least_categories(clf, len(schema.names))
        before = getattr(clf, "data_statistics_", None) if more else None
        if before is not None:
            rows += round(before.total)
            known = np.maximum(known, before.frame.n_categories)
        largest = np.where(np.isfinite(schema.high), schema.high, -1).astype(np.int64) + 1
        pairs = zip(clf._encoder.columns, largest.tolist(), strict=True)
        sizes = np.maximum(known, [k if c.categories is None else len(c.categories) for c, k in pairs])
        far = sizes > np.maximum(known, max(ALWAYS_COUNTED, CODES_PER_ROW * rows))
        if far.any():
            j = int(np.argmax(np.where(far, sizes, 0)))
            raise ValueError(
                f"{column_name(clf, j)} holds the code {sizes[j] - 1}: integer codes are categories counted "
                f"from 0, {sizes[j]} of them for {rows} rows. Drop a column of identifiers; pass "
                "other values as strings, or code them by sklearn.preprocessing.OrdinalEncoder; set "
                "min_categories if there are so many."
            )
        check_sizes(sizes, partial(column_name, clf))

    def drawn(self, clf: Any, theta: Any) -> Any:
        """Return the parameters without categories that have no value."""
        columns = clf._encoder.columns
        if all(c.categories is None for c in columns):  # every code is a value itself
            return theta
        named = np.array(
            [np.iinfo(np.int64).max if c.categories is None else max(1, len(c.categories)) for c in columns]
        )
        return replace(theta, log_prob=theta.frame.limited_to(theta.log_prob, named))

    def check_counted(self, clf: Any, X: Array) -> None:
        """Refuse categories that no row of the fit had."""
        for j in np.flatnonzero(categories_of(X).n_categories > clf.n_categories_).tolist():
            raise ValueError(
                f"{column_name(clf, j)} holds a category that was never counted: these rows were not fitted."
            )

    def check_loaded(self, clf: Any) -> None:
        """Require the encoding of each column."""
        require(len(clf._encoder.columns) == clf.n_features_in_, "the encoder reads other columns")


def least_categories(clf: Any, n: int) -> Array:
    """Return the least number of categories of each of n columns: those it declares, and `min_categories`."""
    least = np.array([column.declared for column in clf._encoder.columns], dtype=np.int64)
    if clf.min_categories is None:
        return least
    wanted = np.asarray(clf.min_categories)
    if not np.issubdtype(wanted.dtype, np.signedinteger):
        raise ValueError(f"'min_categories' should have integral type. Got {wanted.dtype} instead.")
    if wanted.ndim and wanted.shape != (n,):
        raise ValueError(
            f"'min_categories' should have shape ({n},) when an array-like is provided. "
            f"Got {wanted.shape} instead."
        )
    return np.maximum(least, wanted)


def by_column(table: Array, frame: Any) -> list[Array]:
    """Split a table with the cells of all columns side by side into one table per column."""
    pairs = zip(frame.offsets.tolist(), frame.n_categories.tolist(), strict=True)
    return [table[..., start : start + k] for start, k in pairs]


def without_fractions(X: Array, name: Callable[[int], str]) -> Array:
    """Return floats truncated to whole numbers, with a warning; refuse infinity, and NaN on a device.

    `name` returns what messages call a column.
    """
    xp, on_host = namespace(X), isinstance(X, np.ndarray)
    is_odd = np.isinf if on_host else is_not_finite
    odd = None if math.isfinite(total_of(X)) else first_bad_column(X, is_odd)
    if odd is not None and on_host:
        raise ValueError(
            f"Input X contains infinity in {name(odd[0])}, which is no category. Replace it by a code, or by "
            "NaN for a missing cell."
        )
    if odd is not None:
        raise ValueError(
            f"Input X contains {'NaN' if np.isnan(odd[1]).any() else 'infinity'} in {name(odd[0])}: on a "
            "device no cell may be missing or infinite. Pass a NumPy array, in which NaN is a missing cell, "
            "or fill them in."
        )
    broken = None
    if on_host or bool(xp.any(xp.trunc(X) != X)):  # a device is asked once, not for each column
        broken = first_bad_column(X, lambda x: (xp.trunc(x) != x) & (x == x))
    if broken is not None:
        warn(
            f"{name(broken[0])} holds {broken[1][0]:g}, which is no integer code; it is cut down to one, as "
            "in scikit-learn. Put riskbayes.preprocessing.KMeansBins before CategoricalNB, or take "
            "GaussianNB."
        )
    return X if broken is None else xp.trunc(X)


def whole_numbers(X: Array, name: Callable[[int], str]) -> Array:
    """Return numbers in the smallest integer dtype that holds them; with missing cells (NaN) as float64."""
    if X.dtype.kind != "f":
        return X
    X = without_fractions(X, name)
    if math.isnan(total_of(X)) and np.isnan(X).any():
        return np.clip(X.astype(np.float64), -LARGEST, LARGEST)
    low, high = max(int(X.min(initial=0)), -LARGEST), min(int(X.max(initial=0)), LARGEST)
    smallest = np.promote_types(np.min_scalar_type(low), np.min_scalar_type(high))
    beyond = high == LARGEST or low == -LARGEST
    return np.clip(X, low, high).astype(np.int64) if beyond else X.astype(smallest)


def codes_on_device(X: Array, name: Callable[[int], str], *, learn: bool) -> Array:
    """Return integer codes, checked on their device; a negative one is `UNSEEN`, or refused with `learn`."""
    xp = namespace(X)
    is_float = xp.isdtype(X.dtype, "real floating")
    X = without_fractions(X, name) if is_float else X
    if xp.isdtype(X.dtype, ("bool", "unsigned integer")) or float(xp.min(X)) >= 0:
        return X
    if learn:
        j, found = first_bad_column(X, lambda x: x < 0) or (0, X)
        raise ValueError(
            f"{name(j)} holds {found.min():g}: on a device categories are codes from 0. Code the column, for "
            "instance by sklearn.preprocessing.OrdinalEncoder."
        )
    X = X if is_float else astype(X, xp.int64)  # int8 cannot hold UNSEEN
    return xp.where(X < 0, UNSEEN, X)
