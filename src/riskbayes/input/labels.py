"""The labels of a table, checked."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

import narwhals as nw
import numpy as np

from riskbayes.arrays import Array
from riskbayes.findings import Finding
from riskbayes.tables import is_missing, plain

MANY_NUMBERS = 100
"""A target of more distinct whole numbers than this is a quantity, not a class; one of fractions is."""

MANY_LABELS = 1000
"""A target of more distinct labels than this is no class."""

LABEL_SHARE = 0.5
"""A target with more distinct values than this share of the rows names rows, not classes."""


class Labelled(NamedTuple):
    """The rows of a table that have a label."""

    frame: nw.DataFrame
    labels: Array
    rows: Array
    """Their numbers in the table, from 0."""
    lost: int
    """Rows of the table without a label."""


def labelled_rows(frame: nw.DataFrame, target: str) -> Labelled:
    """Return the rows of a table that have a label; refuse a target that no classifier can learn.

    This is the one check of a target column, before any fit.
    """
    column = frame[target]
    if column.dtype.is_nested() or column.dtype == nw.Binary:
        raise ValueError(
            f"The target {target!r} holds {column.dtype}. Labels are text, whole numbers or booleans."
        )
    total = len(column)
    if not total:
        raise ValueError("The table has no rows.")
    rows = np.flatnonzero(~without_label(column))
    if not len(rows):
        raise ValueError(f"The target {target!r} is missing in all {total} rows. Name another column.")
    if len(rows) < total:
        frame, column = frame[rows], column[rows]
    labels = values_of(column)
    distinct = np.unique(labels) if column.dtype == nw.Object else values_of(column.unique())
    check_target(distinct, len(rows), target)
    return Labelled(frame, labels, rows, total - len(rows))


def without_label(column: nw.Series) -> Array:
    """Return a mask of the cells that are missing or blank."""
    gone = column.is_null().to_numpy()
    if column.dtype == nw.String:
        gone = gone | (column.str.strip_chars() == "").fill_null(True).to_numpy()
    elif column.dtype.is_float():
        gone = gone | np.isnan(column.to_numpy())
    elif not column.dtype.is_integer():
        gone = gone | [is_missing(value) or value == "" for value in column.to_list()]
    return gone


def values_of(column: nw.Series) -> Array:
    """Return labels as an array of numbers or of booleans, or of text in objects."""
    if column.dtype == nw.Decimal:
        column = column.cast(nw.Float64)
    if column.dtype.is_numeric() or column.dtype == nw.Boolean:
        return column.to_numpy()
    if column.dtype == nw.String:
        return column.to_numpy().astype(object)
    values = [float(value) if isinstance(value, Decimal) else plain(value) for value in column.to_list()]
    kinds = set(map(type, values))
    if kinds <= {int, float} or kinds == {bool}:
        return np.array(values)
    return np.array([str(value) for value in values], dtype=object)


def check_target(distinct: Array, m: int, target: str) -> None:
    """Refuse the distinct values of a target that has one class, or more values than classes have."""
    n, numbers = len(distinct), distinct.dtype.kind in "iuf"
    if n == 1:
        raise ValueError(
            f"The target {target!r} has one class only, {plain(distinct[0])!r}. Two or more are needed."
        )
    fractions = numbers and not (np.isfinite(distinct) & (np.floor(distinct) == distinct)).all()
    most = min(MANY_NUMBERS if numbers else MANY_LABELS, max(2, LABEL_SHARE * m))
    if n > most or fractions:
        what = "a quantity: that is regression" if numbers else "a name or a key"
        told = "numbers with fractions" if fractions else "values"
        remedy = "put the values into groups" + (", or write classes as text" if fractions else "")
        raise ValueError(
            f"The target {target!r} has {n} distinct {told} in {m} rows and looks like {what}. A classifier "
            f"needs classes: name another column, or {remedy}."
        )


def rows_without_target(lost: int, rows: int, target: str) -> list[Finding]:
    """Return RB028 if rows were left out for want of a label."""
    if not lost:
        return []
    said = f"{lost} of {lost + rows} rows have no label in {target!r}, and were left out."
    return [Finding("RB028", said, target)]
