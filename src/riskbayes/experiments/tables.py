"""A table, and its forms: text, CSV, LaTeX, Markdown and HTML."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from math import isnan
from typing import Any, NamedTuple, Self

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from riskbayes.markup import JOINT, element

FAR = 2.0
"""A measured error that is further from the printed one than this, in points, is marked."""

FAR_MARK, BEST_MARK, NONE = "≠", "*", "-"
LEGEND = (
    f"{BEST_MARK} or bold: lowest. [in brackets]: the paper's figure; {FAR_MARK}: more than two points apart."
)
LATEX = {"±": r"$\pm$", "≠": r"$\neq$", "_": r"\_", "%": r"\%", "&": r"\&", "#": r"\#"}


class Mark(NamedTuple):
    """A text in a column of numbers; `kind` is "better", "worse", "equal" or empty, and gives its colour."""

    text: str
    kind: str = ""


@dataclass(frozen=True)
class Value:
    """A number of a table.

    Parameters
    ----------
    mean : float or None
        What was measured.
    spread : float, default=None
        Standard deviation over splits, or a standard error where the table says so.
    published : float, default=None
        What the paper prints.
    best : bool, default=False
        The lowest among its peers.
    is_error : bool, default=False
        An error in percent: far from the printed figure it gets a mark.
    beside : bool, default=False
        It has a place for the printed figure beside it, also where the paper prints none.
    digits : int, default=1
        Digits after the point.
    signed : bool, default=False
        A difference, shown with its sign.
    kind : str, default=""
        "better", "equal" or "worse".
    """

    mean: float | None
    spread: float | None = None
    published: float | None = None
    best: bool = False
    is_error: bool = False
    beside: bool = False
    digits: int = 1
    signed: bool = False
    kind: str = ""

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
    def number(self) -> str:
        """The measured number alone."""
        sign = "+" if self.signed else ""
        return NONE if self.mean is None else f"{self.mean:{sign}.{self.digits}f}"

    @property
    def deviation(self) -> str:
        """What stands behind the number, from the ± on; a single split has nothing there."""
        known = self.spread is not None and not isnan(self.spread)
        return f" ± {self.spread:.{self.digits}f}" if known else ""

    @property
    def printed(self) -> str:
        """The paper's figure in its place beside the measured one, with the mark."""
        figure = NONE if self.published is None else f"{self.published:g}"
        return (figure if self.beside else "") + (FAR_MARK if self.far else "")


Cell = str | Mark | Value


@dataclass(frozen=True)
class Table:
    """A table before it is text, CSV, LaTeX, Markdown, HTML or a terminal's.

    Parameters
    ----------
    headers : list of str
        Names of the columns.
    rows : list of list of str, Mark or Value
        The cells.
    title, note : str, default=""
        What stands above it and below it.
    name : str, default=""
        That of its files and of its place in a page. A table with a name can be sorted there; in one without
        a name, and with two columns of words or more, the first of them is the heading of a group of rows.
    protocol : str, default=""
        What its errors were measured under; empty where it shows both.
    """

    headers: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    title: str = ""
    note: str = ""
    name: str = ""
    protocol: str = ""

    @cached_property
    def words(self) -> list[int]:
        """The columns of words: those of strings, with a letter in one."""
        found = []
        for j in range(len(self.headers)):
            texts = [cell for row in self.rows if isinstance(cell := row[j], str)]
            if len(texts) == len(self.rows) and any(map(str.isalpha, "".join(texts))):
                found.append(j)
        return found

    def starts_group(self, i: int) -> bool:
        """True if row i begins a run of rows with the same first cell."""
        return i == 0 or self.rows[i][0] != self.rows[i - 1][0]


def plain(cell: Cell, best: str = f"{{}}{BEST_MARK}") -> str:
    """Return a cell in a line of text; `best` is how the lowest number is shown."""
    if not isinstance(cell, Value):
        return cell if isinstance(cell, str) else cell.text
    mean = best.format(cell.number) if cell.best else cell.number
    return mean + cell.deviation + (f" [{cell.printed}]" if cell.printed else "")


def as_text(table: Table) -> str:
    """Return a table for a terminal, a file or a mail."""
    shown = RichTable(title=table.title, box=box.SIMPLE_HEAD, title_justify="left", show_edge=False)
    for j, header in enumerate(table.headers):
        shown.add_column(header, justify="left" if j in table.words else "right", no_wrap=True)
    for row in table.rows:
        shown.add_row(*(Text(plain(cell)) for cell in row))
    out = io.StringIO()
    Console(file=out, width=400, color_system=None).print(shown)
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    return "\n".join([*lines, "", table.note, LEGEND]) + "\n"


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
            values = [get(c) if isinstance(c, Value) else None if part else plain(c) for c in cells]
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


def as_html(table: Table, links: dict[str, str] | None = None) -> str:
    """Return a table in a box that scrolls where the screen is narrower than it.

    Every cell of a table with a name knows its number, so that a script can sort it; `links` leads on from a
    first cell. What stands behind a number goes below it on a narrow screen.
    """
    words, first = table.words, [header.partition(" ")[0] for header in table.headers]
    # A line stands before the columns of each method.
    lined = {j for j in range(1, len(first)) if first[j] != first[j - 1] and first.count(first[j]) > 1}
    grouped = not table.name and len(words) > 1

    def cell(j: int, value: Cell) -> str:
        if isinstance(value, Value):
            names = {value.kind: True, "best": value.best, "far": value.far, "group": j in lined}
            known = "" if value.mean is None or not table.name else f"{value.mean:.6g}"
            shown = " ".join(name for name, on in names.items() if name and on)
            return element("td", number_html(value), **{"class": shown, "data-sort": known})
        if isinstance(value, Mark):
            number, _, rest = value.text.partition(" ")
            behind = element("small", f" {escape(rest)}") if rest else ""
            return element("td", escape(number) + behind, **{"class": value.kind})
        target = (links or {}).get(value) if j == 0 else None
        shown = JOINT.sub("<wbr>", escape(value))
        body = element("a", shown, href=target) if target else shown
        return element("th", body, scope="row", **{"class": "text"}) if j in words else f"<td>{body}</td>"

    def heading(j: int) -> str:
        kind = "text" if j in words else "group" if j in lined else ""
        return element("th", escape(table.headers[j]), scope="col", **{"class": kind})

    lines = []
    for i, row in enumerate(table.rows):
        if grouped and table.starts_group(i):
            span = str(len(table.headers) - 1)
            group = element("th", escape(plain(row[0])), scope="rowgroup", colspan=span)
            lines.append(element("tr", group, **{"class": "group"}))
        body = "".join(cell(j, value) for j, value in enumerate(row) if j or not grouped)
        lines.append(element("tr", body, **{"class": "last" if row[0] == "average rank" else ""}))
    head = "".join(heading(j) for j in range(int(grouped), len(table.headers)))
    content = "\n".join([f"\n<thead><tr>{head}</tr></thead>\n<tbody>", *lines, "</tbody>\n"])
    # A box that scrolls must take the focus, or the keyboard cannot scroll it.
    box = {"class": "scroll" if table.name else "scroll narrow", "tabindex": "0", "role": "region"}
    named = {"class": "results", "id": f"table-{table.name}"} if table.name else {}
    label = table.title if table.name else "table"
    return element("div", element("table", content, **named), **box, **{"aria-label": label})


def number_html(value: Value) -> str:
    """Return a number with its spread, and with the paper's figure or its mark."""
    body = escape(value.number) + (element("small", escape(value.deviation)) if value.deviation else "")
    if value.is_error and value.published is not None and not value.beside:
        return body + element("span", FAR_MARK if value.far else "", **{"class": "mark"})
    if value.printed:
        return body + element("span", value.printed, title="the paper's figure", **{"class": "printed"})
    return body


def mark_best(cells: list[Cell], columns: Sequence[int]) -> None:
    """Mark the lowest mean of some columns, and those that equal it as shown."""
    values = {j: cell for j in columns if isinstance(cell := cells[j], Value)}
    shown = {j: round(value.mean, 1) for j, value in values.items() if value.mean is not None}
    for j, mean in shown.items():
        cells[j] = replace(values[j], best=mean == min(shown.values()))
