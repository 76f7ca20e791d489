"""Measured numbers beside the paper's, and the forms of a table: text, CSV, LaTeX and Markdown."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from markupsafe import Markup
from rich.console import Console

from riskbayes.pages.table import BEST_MARK, NONE, Cell, Table, Value, plain
from riskbayes.pages.terminal import print_table

FAR = 2.0
"""A measured error that is further from the printed one than this, in points, is marked."""

FAR_MARK = "≠"
LEGEND = (
    f"{BEST_MARK} or bold: lowest. [in brackets]: the paper's figure; {FAR_MARK}: more than two points apart."
)
LATEX = {"±": r"$\pm$", "≠": r"$\neq$", "_": r"\_", "%": r"\%", "&": r"\&", "#": r"\#"}


@dataclass(frozen=True)
class Measured(Value):
    """A number that was measured, with the paper's.

    Parameters
    ----------
    published : float, default=None
        What the paper prints.
    is_error : bool, default=False
        An error in percent: far from the printed figure it gets a mark.
    beside : bool, default=False
        It has a place for the printed figure beside it, also where the paper prints none.
    """

    published: float | None = None
    is_error: bool = False
    beside: bool = False

    @classmethod
    def over(cls, values: Sequence[float], **options: Any) -> Self:
        """Return the mean of some values, and their standard deviation where there is more than one."""
        spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
        return cls(float(np.mean(values)) if len(values) else None, spread, **options)

    @property
    def far(self) -> bool:
        """True if it is an error more than two points from the printed one."""
        known = self.is_error and self.mean is not None and self.published is not None
        return known and abs(self.mean - self.published) > FAR  # type: ignore[operator]

    @property
    def printed(self) -> str:
        """The paper's figure in its place beside the measured one, with the mark."""
        figure = NONE if self.published is None else f"{self.published:g}"
        return (figure if self.beside else "") + (FAR_MARK if self.far else "")

    @property
    def classes(self) -> list[str]:
        """The classes of its cell in a page."""
        return [*super().classes, *(["far"] if self.far else [])]

    def plain(self, best: str) -> str:
        """Return it in a line of text, the paper's figure in brackets."""
        return super().plain(best) + (f" [{self.printed}]" if self.printed else "")

    def __html__(self) -> Markup:
        body = super().__html__()
        if self.is_error and self.published is not None and not self.beside:
            return body + Markup('<span class="mark">{}</span>').format(FAR_MARK if self.far else "")
        printed = Markup('<span title="the paper\'s figure" class="printed">{}</span>')
        return body + printed.format(self.printed) if self.printed else body


def as_text(table: Table) -> str:
    """Return a table for a terminal, a file or a mail."""
    out = io.StringIO()
    print_table(Console(file=out, width=400, color_system=None), table)
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    return "\n".join([*lines, table.note, LEGEND]) + "\n"


def as_markdown(table: Table) -> str:
    """Return a table with its title and note for a documentation page."""
    return f"**{table.title}.** {table.note}\n\n{markdown_rows(table)}\n"


def markdown_rows(table: Table) -> str:
    """Return the table alone, in Markdown."""
    rule = ["---" if j in table.words else "---:" for j in range(len(table.headers))]
    rows = [[plain(cell, "**{}**") for cell in row] for row in table.rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (table.headers, rule, *rows))


def as_csv(table: Table) -> str:
    """Return a table for a program: a column for each part of a cell that the table uses."""
    parts = {
        "": lambda v: v.mean,
        "spread": lambda v: v.spread,
        "published": lambda v: v.published,
        "far": lambda v: int(v.far) if v.published is not None and v.is_error else None,
        "best": lambda v: int(v.best) if v.is_error else None,
        "verdict": lambda v: v.kind or None,
    }
    columns: list[tuple[str, ...]] = []
    for j, header in enumerate(table.headers):
        cells = [row[j] for row in table.rows]
        for part, get in parts.items():
            values = [get(c) if isinstance(c, Measured) else None if part else plain(c) for c in cells]
            if not part or any(value is not None for value in values):
                columns.append((f"{header} {part}".strip(), *map(csv_text, values)))
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(zip(*columns, strict=True))
    return out.getvalue()


def csv_text(value: float | str | None) -> str:
    """Return a part of a cell as it stands in a CSV file."""
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def as_latex(table: Table) -> str:
    """Return a table as a tabular of booktabs; the paper's figure in brackets."""

    def line(cells: Sequence[Cell]) -> str:
        return " & ".join(latex(plain(cell, "\\textbf{{{}}}")) for cell in cells) + r" \\"

    layout = "".join("l" if j in table.words else "r" for j in range(len(table.headers)))
    return "\n".join(
        [
            *(r"\begin{table}", r"\centering", rf"\begin{{tabular}}{{{layout}}}"),
            *(r"\toprule", line(table.headers), r"\midrule", *map(line, table.rows), r"\bottomrule"),
            *(r"\end{tabular}", rf"\caption{{{latex(table.title)}. {latex(table.note)}}}", r"\end{table}"),
            "",
        ]
    )


def latex(words: str) -> str:
    """Return words that LaTeX takes as they are meant."""
    return "".join(LATEX.get(letter, letter) for letter in words)


def mark_best(cells: list[Cell], columns: Sequence[int]) -> None:
    """Mark the lowest mean of some columns, and those that equal it as shown."""
    values = {j: cell for j in columns if isinstance(cell := cells[j], Value)}
    shown = {j: round(value.mean, 1) for j, value in values.items() if value.mean is not None}
    for j, mean in shown.items():
        cells[j] = replace(values[j], best=mean == min(shown.values()))
