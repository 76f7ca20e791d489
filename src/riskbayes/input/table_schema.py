"""What a table was when an estimator was fitted to it, for people: in a terminal and in a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from riskbayes.markup import shown_as_html, shown_as_text
from riskbayes.preprocessing.decoding import shown_number
from riskbayes.preprocessing.encoder import Column

HEADS = ("column", "kind", "missing", "distinct", "from", "to", "for example", "read as")
"""The heads of the table that is shown."""

MOST_SHOWN = 60
"""Columns that are shown; `columns` has all of them."""


@dataclass(frozen=True, repr=False)
class TableSchema:
    """The columns of a table, and its classes: what a fit saw, and what it made of them."""

    columns: tuple[Column, ...]
    n_rows: int
    """The number of training rows that have a weight; 0 if a model file of before did not say it."""
    classes: Mapping[str, float]
    """The weight of the rows of each class."""

    def lines(self) -> list[tuple[str, ...]]:
        """Return the cells of the table that is shown, a line for each column."""
        return [line_of(column) for column in self.columns[:MOST_SHOWN]]

    def title(self) -> str:
        """Return a sentence on the rows and the classes."""
        masses = ", ".join(f"{label} ({mass:g})" for label, mass in list(self.classes.items())[:8])
        more = f" and {len(self.classes) - 8} more" if len(self.classes) > 8 else ""
        rows = f"{self.n_rows} rows, " if self.n_rows else ""
        return f"{rows}{len(self.columns)} columns; classes: {masses}{more}"

    def __repr__(self) -> str:
        more = [f"... and {len(self.columns) - MOST_SHOWN} more"] if len(self.columns) > MOST_SHOWN else []
        return "\n".join([shown_as_text(self.title(), HEADS, self.lines()), *more])

    def _repr_html_(self) -> str:
        return shown_as_html(self.title(), HEADS, self.lines())


def line_of(column: Column) -> tuple[str, ...]:
    """Return the cells that show one column."""
    ends = ["" if end is None else shown_number(end, column.kind) for end in (column.low, column.high)]
    return (
        column.name,
        column.kind,
        "" if column.n_missing is None else str(column.n_missing),
        "" if column.n_values is None else str(column.n_values),
        *ends,
        column.example,
        ", ".join([*column.encoded, *([column.reason] if column.reason else [])]),
    )
