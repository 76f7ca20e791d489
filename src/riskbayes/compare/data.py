"""The table of a comparison: rows, target and columns, checked and encoded once for all that reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import narwhals as nw
import numpy as np

from riskbayes.arrays import Array
from riskbayes.compare.report import ClassShare, ColumnSummary, DataSummary
from riskbayes.estimators.table_input import given_kinds
from riskbayes.input.files.table import require_column
from riskbayes.input.labels import Labelled, labelled_rows
from riskbayes.preprocessing.encoder import Column, TableEncoder
from riskbayes.tables import is_missing, plain


@dataclass(frozen=True)
class Data:
    """A table without its target, and the target as labels and as codes."""

    X: Any
    """The columns that models read, as a data frame of the user's library."""
    labels: Array
    codes: Array
    """The index of each row's label among `classes`."""
    classes: Array
    target: str
    encoder: TableEncoder
    """Learned from all rows, without their labels: what became of each column."""
    Z: Array
    """The encoded rows."""
    rows: Array
    """The number of each row in the table that was given, from 0."""
    class_rows: tuple[int, ...]
    """Rows of each class in that table, which are more than here if these are a sample."""
    labelled: Labelled
    """All rows of that table that have a label."""
    said: dict[str, str] | None
    """What the user says that columns hold."""
    time: Array | None = None
    """The values of the time column, as numbers."""
    groups: Array | None = None
    """Codes of the values of the group column."""
    time_column: str = ""
    group_column: str = ""

    @classmethod
    def of(
        cls,
        table: Any,
        target: str,
        *,
        time_column: str | None,
        group: str | None,
        columns: Mapping[str, str] | None = None,
        max_rows: int,
        seed: int,
    ) -> Self:
        """Return the table, checked; at most `max_rows` of its rows, drawn by class."""
        frame = nw.from_native(table, eager_only=True)
        for what, name in (("target", target), ("time_column", time_column), ("group", group)):
            if name is not None:
                require_column("The table", frame.columns, name, what)
        labelled = labelled_rows(frame, target)
        frame, labels = labelled.frame, labelled.labels
        classes, codes = np.unique(labels, return_inverse=True)
        left = [name for name in frame.columns if name not in (target, time_column, group)]
        if not left:
            raise ValueError(f"The table has no column besides {target!r} to predict it from.")
        class_rows = tuple(np.bincount(codes).tolist())
        rows = draw_by_class(codes, max_rows, seed)
        if len(rows) < len(codes):
            frame, labels, codes = frame[rows.tolist()], labels[rows], codes[rows]
        X = frame.select(left)
        encoder, Z = TableEncoder.learn(X.to_native(), left, given_kinds(columns, left), informative=True)
        return cls(
            X.to_native(),
            labels,
            codes,
            classes,
            target,
            encoder,
            Z,
            labelled.rows[rows],
            class_rows,
            labelled,
            dict(columns or {}) or None,
            None if time_column is None else times_of(frame.select(time_column), time_column),
            None if group is None else groups_of(frame[group], group),
            time_column or "",
            group or "",
        )

    @property
    def texts(self) -> list[str]:
        """The labels of the classes as text."""
        return [str(plain(label)) for label in self.classes]

    @property
    def columns(self) -> list[Column]:
        """What became of each column."""
        return self.encoder.columns

    def take(self, rows: Array) -> Any:
        """Return some of the rows as a data frame."""
        return nw.from_native(self.X, eager_only=True)[rows.tolist()].to_native()

    def cells(self, row: int) -> list[Any]:
        """Return the cells of a row, of all columns."""
        frame = nw.from_native(self.X, eager_only=True)[[row]]
        return [column.to_list()[0] for column in frame.iter_columns()]

    def summary(self, name: str, sha256: str) -> DataSummary:
        """Return what the report says about the table."""
        m, total = len(self.codes), sum(self.class_rows)
        classes = (
            ClassShare(text, n, n / total) for text, n in zip(self.texts, self.class_rows, strict=True)
        )
        columns = (
            ColumnSummary(c.name, c.kind, c.encoded, c.reason, (c.n_missing or 0) / m, c.n_values)
            for c in self.columns
        )
        return DataSummary(
            name, total, self.target, tuple(classes), tuple(columns), sha256, m, self.labelled.lost
        )


def number_columns(encoder: TableEncoder) -> list[str]:
    """Return the names of the columns that are read as numbers, dates included."""
    return [column.name for column in encoder.columns if "number" in column.encoded]


def counts_by_class(data: Data, codes: Array) -> Array:
    """Return the rows of each code (-1: missing) and class."""
    known, r = codes >= 0, len(data.classes)
    size = int(codes.max()) + 1
    return np.bincount(codes[known] * r + data.codes[known], minlength=size * r).reshape(size, r)


def draw_by_class(codes: Array, most: int, seed: int) -> Array:
    """Return the sorted numbers of at most about `most` rows, the same share of each class."""
    m = len(codes)
    if m <= most:
        return np.arange(m)
    order = np.random.default_rng(seed).permutation(m)
    order = order[np.argsort(codes[order], kind="stable")]
    counts = np.bincount(codes)
    kept = np.ceil(counts * (most / m)).astype(int)
    place = np.arange(m) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.sort(order[place < np.repeat(kept, counts)])


def times_of(frame: nw.DataFrame, name: str) -> Array:
    """Return the values of the time column as numbers; refuse one that has no order in time."""
    try:
        encoder, Z = TableEncoder.learn(frame.to_native(), [name])
    except ValueError:
        encoder, Z = None, np.empty(0)
    if encoder is None or "number" not in encoder.columns[0].encoded:
        raise ValueError(
            f"time_column={name!r} must hold numbers or dates that differ. Write dates as 2024-05-31."
        )
    found = Z[:, 0]
    if np.isnan(found).any():
        raise ValueError(
            f"time_column={name!r} has {int(np.isnan(found).sum())} missing cells. Drop these rows."
        )
    return found


def groups_of(column: nw.Series, name: str) -> Array:
    """Return the codes of the group of each row; rows without a group are groups of their own."""
    values = [
        f"missing {i}" if is_missing(value) or value == "" else str(value)
        for i, value in enumerate(column.to_list())
    ]
    found, codes = np.unique(values, return_inverse=True)
    if len(found) < 2:
        raise ValueError(f"group={name!r} has one value only, so that nothing could be held out.")
    return codes
