"""Tables of results, and their forms for a page and a line of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isnan
from typing import ClassVar

from markupsafe import Markup

BEST_MARK, NONE = "*", "-"


@dataclass(frozen=True)
class Mark:
    """A text in a column of numbers; `kind` is "better", "worse", "equal" or empty, and gives its colour."""

    text: str
    kind: str = ""
    sort: ClassVar = ""

    @property
    def classes(self) -> list[str]:
        """The classes of its cell in a page."""
        return [self.kind] if self.kind else []

    def plain(self, best: str) -> str:
        """Return it in a line of text."""
        return self.text

    def __html__(self) -> Markup:
        number, blank, rest = self.text.partition(" ")
        return with_small(number, blank + rest)


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
        """The measured number alone; a difference that rounds to zero has no sign."""
        if self.mean is None:
            return NONE
        shown = f"{self.mean:{'+' if self.signed else ''}.{self.digits}f}"
        return shown if float(shown) else shown.lstrip("+-")

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

    @property
    def sort(self) -> str:
        """What it is sorted by in a page."""
        return "" if self.mean is None else f"{self.mean:.6g}"

    def __html__(self) -> Markup:
        return with_small(self.number, self.deviation)


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
    best_row : int, default=-1
        The row that a terminal shows in bold.
    """

    headers: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    title: str = ""
    note: str = ""
    name: str = ""
    protocol: str = ""
    best_row: int = -1

    @cached_property
    def words(self) -> list[int]:
        """The columns of words: those of strings with a letter in one, or the only one of strings."""
        columns = range(len(self.headers))
        texts = [j for j in columns if self.rows and all(isinstance(row[j], str) for row in self.rows)]
        found = [j for j in texts if any(map(str.isalpha, "".join(str(row[j]) for row in self.rows)))]
        return found or (texts if len(texts) == 1 else [])

    @cached_property
    def lined(self) -> set[int]:
        """The columns that begin those of a method: a line stands before them."""
        first = [header.partition(" ")[0] for header in self.headers]
        return {j for j in range(1, len(first)) if first[j] != first[j - 1] and first.count(first[j]) > 1}

    @property
    def grouped(self) -> bool:
        """True if the first column is shown as headings of groups of rows."""
        return not self.name and len(self.words) > 1

    @property
    def shown(self) -> range:
        """The columns that a page shows as such."""
        return range(int(self.grouped), len(self.headers))

    def starts_group(self, i: int) -> bool:
        """True if row i begins a run of rows with the same first cell."""
        return i == 0 or self.rows[i][0] != self.rows[i - 1][0]


def plain(cell: Cell, best: str = f"{{}}{BEST_MARK}") -> str:
    """Return a cell in a line of text; `best` is how the lowest number is shown."""
    return cell if isinstance(cell, str) else cell.plain(best)


def with_small(number: str, behind: str) -> Markup:
    """Return a number, and smaller what stands behind it: below it on a narrow screen."""
    return Markup("{}<small>{}</small>" if behind else "{}").format(number, behind)


def verdict(gap: float, least: float) -> str:
    """Return what a difference of errors means for the first: "better", "equal" or "worse"."""
    return "better" if gap < -least else "worse" if gap > least else "equal"
