"""Parts that the sections of the page share: tables, sections, what is folded away."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import NamedTuple

from riskbayes.markup import element, foreign, text


class Cell(NamedTuple):
    """HTML of a cell; `sort` is the number that it is sorted by, and a cell with one is a number."""

    html: str
    sort: float | None = None
    kind: str = ""


class Column(NamedTuple):
    """Header of a column, as text; `about` explains it; a column of numbers stands at the right."""

    name: str
    number: bool = False
    about: str = ""


class Line(NamedTuple):
    """A row of a table; `values` are further attributes, such as what a tap tells about it."""

    cells: Sequence[Cell]
    kind: str = ""
    values: dict[str, str] = {}  # noqa: RUF012 a NamedTuple is never changed


def table(columns: Sequence[Column], lines: Sequence[Line], label: str, name: str = "") -> str:
    """Return a table in a box that scrolls where the page is narrower; one with a name can be sorted."""
    head = "".join(
        element("th", text(c.name), scope="col", class_="number" if c.number else "", title=c.about)
        for c in columns
    )
    body = "\n".join(
        element("tr", "".join(cell_html(j, columns[j], c) for j, c in enumerate(own)), class_=kind, **values)
        for own, kind, values in lines
    )
    content = f"\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n"
    whole = element("table", content, class_="sortable" if name else "", id=name)
    # A box that scrolls must take the focus, or the keyboard cannot scroll it.
    return element("div", whole, class_="scroll", tabindex="0", role="region", aria_label=label)


def cell_html(place: int, column: Column, cell: Cell) -> str:
    """Return a cell: the first of a row is its heading."""
    sort = "" if cell.sort is None or not isfinite(cell.sort) else f"{cell.sort:.9g}"
    kind = f"{'number' if column.number else ''} {cell.kind}".strip()
    if place == 0:
        return element("th", cell.html, scope="row", class_=kind, data_sort=sort)
    return element("td", cell.html, class_=kind, data_sort=sort)


def section(name: str, heading: str, body: str) -> str:
    """Return a section of the page, at the address `#name`."""
    title = element("h2", text(heading), id=f"{name}-heading")
    return element("section", f"\n{title}\n{body}\n", id=name, aria_labelledby=f"{name}-heading")


def more(summary: str, body: str, opened: bool = False) -> str:
    """Return something folded away; paper shows it open."""
    return f"<details{' open' if opened else ''}>\n<summary>{text(summary)}</summary>\n{body}\n</details>"


def figure(title: str, picture: str, note: str, figures: str) -> str:
    """Return a chart with HTML of its title and of a note, and with its figures as a table, folded away."""
    caption = element("figcaption", f"<h3>{title}</h3>" + (element("p", note, class_="note") if note else ""))
    return element("figure", f"\n{caption}\n{picture}\n{more('The figures of this chart', figures)}\n")


def cell_value(value: str) -> str:
    """Return a cell of the user's table; an empty text stands for a missing one."""
    return foreign(value) if value else "<i>missing</i>"


def paragraph(words: str, kind: str = "") -> str:
    """Return a paragraph of HTML."""
    return element("p", words, class_=kind)
