"""Tables of results, and their forms for a page and a line of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from math import isnan
from typing import NamedTuple

from riskbayes.markup import JOINT, element

BEST_MARK, NONE = "*", "-"


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
    best : bool, default=False
        The lowest among its peers.
    digits : int, default=1
        Digits after the point.
    signed : bool, default=False
        A difference, shown with its sign.
    kind : str, default=""
        "better", "equal" or "worse".
    """

    mean: float | None
    spread: float | None = None
    best: bool = False
    digits: int = 1
    signed: bool = False
    kind: str = ""

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
    def classes(self) -> list[str]:
        """The classes of its cell in a page."""
        return [name for name in (self.kind, "best" if self.best else "") if name]

    def plain(self, best: str) -> str:
        """Return it in a line of text; `best` is how the lowest number is shown."""
        return (best.format(self.number) if self.best else self.number) + self.deviation

    def as_html(self) -> str:
        """Return the number with its spread as HTML."""
        return escape(self.number) + (element("small", escape(self.deviation)) if self.deviation else "")


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
    if isinstance(cell, Value):
        return cell.plain(best)
    return cell if isinstance(cell, str) else cell.text


def verdict(gap: float, least: float) -> str:
    """Return what a difference of errors means for the first: "better", "equal" or "worse"."""
    return "better" if gap < -least else "worse" if gap > least else "equal"


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
            known = "" if value.mean is None or not table.name else f"{value.mean:.6g}"
            shown = " ".join([*value.classes, *(["group"] if j in lined else [])])
            return element("td", value.as_html(), **{"class": shown, "data-sort": known})
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
