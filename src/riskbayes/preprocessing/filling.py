"""Cells that are filled in a user's table, in the units and types of its columns."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np

from riskbayes.arrays import Array
from riskbayes.tables import plain


def with_cells(X: Any, missing: Array, values: Array) -> Any:
    """Return a copy of a table with other values where `missing` is True, in the units of its columns."""
    if not hasattr(X, "columns"):
        found = np.array(X)
        own = values[missing]
        found[missing] = own.astype(f"{found.dtype.kind}8[us]") if found.dtype.kind in "mM" else own
        return found
    frame = nw.from_native(X, eager_only=True)
    changed = []
    for j in np.flatnonzero(missing.any(axis=0)).tolist():
        column, rows = frame[:, j], np.flatnonzero(missing[:, j])
        own = [plain(value) for value in values[rows, j]]
        if column.dtype.is_integer():
            limits = np.iinfo(str(column.dtype).lower())
            own = [min(max(round(value), limits.min), limits.max) for value in own]
        elif isinstance(own[0], datetime.date | datetime.time | datetime.timedelta):
            own = temporal_cells(column, own)
        elif isinstance(column.dtype, nw.Categorical | nw.Enum):
            column = with_levels(column, own)
        typeless = frame.implementation.is_polars() and column.dtype == nw.Unknown
        if frame.implementation.is_pyarrow() or typeless:
            changed.append(rebuilt(column, rows, own))
        else:
            changed.append(column.scatter(rows, own))
    return frame.with_columns(*changed).to_native()


def temporal_cells(column: nw.Series, values: list) -> Any:
    """Return dates, durations or times cut to the unit of a column, in its time zone."""
    native = column.to_native()
    kind = getattr(native, "type", None) or getattr(native.dtype, "pyarrow_dtype", column.dtype)
    unit: str = getattr(kind, "unit", "") or getattr(kind, "time_unit", "us")
    step = {"s": 1_000_000, "ms": 1_000}.get(unit, 1)
    zone = getattr(getattr(native, "dtype", None), "tz", None)  # of pandas, which mixes no zones

    def cut(value: Any) -> Any:
        if isinstance(value, datetime.timedelta):
            return value - value % datetime.timedelta(microseconds=step)
        if isinstance(value, datetime.datetime | datetime.time):
            value = value.replace(microsecond=value.microsecond // step * step)
        return value if zone is None else value.astimezone(zone)

    own = [cut(value) for value in values]
    if not column.implementation.is_polars() or not column.dtype.is_temporal():
        return own
    return nw.new_series(
        column.name, own, column.dtype, backend="polars"
    )  # which takes all units for its own


def with_levels(column: nw.Series, values: list) -> nw.Series:
    """Return a categorical column that declares these categories too, where it declares any."""
    native = column.to_native()
    add = getattr(getattr(native, "cat", None), "add_categories", None)  # of pandas
    if add is not None:
        new = [value for value in dict.fromkeys(values) if value not in native.cat.categories]
        return nw.from_native(add(new), series_only=True)
    if isinstance(column.dtype, nw.Enum):
        return column.cast(nw.Enum(list(dict.fromkeys([*column.dtype.categories, *values]))))
    return column


def rebuilt(column: nw.Series, rows: Array, own: list) -> nw.Series:
    """Return a column with other values in some rows, made from a list.

    Arrow does not mix strings of two widths, and a column of missing cells alone may have no type.
    """
    cells, kind = column.to_list(), getattr(column.to_native(), "type", None)
    for i, value in zip(rows.tolist(), own, strict=True):
        cells[i] = value
    if kind is None or str(kind) == "null":
        return nw.new_series(column.name, cells, backend=column.implementation)
    if column.dtype == nw.Decimal:
        cells = [Decimal(f"{v:.{kind.scale}f}") if isinstance(v, float) else v for v in cells]
    found = nw.new_series(column.name, cells, backend="pyarrow").to_native().cast(kind)
    return nw.from_native(found, series_only=True).alias(column.name)
