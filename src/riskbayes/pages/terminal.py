"""Tables of results in a terminal. Rich is imported where it is used: pages do without it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from riskbayes.markup import printable
from riskbayes.pages.table import Table, plain

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

STYLES = {"better": "green", "worse": "red", "equal": "dim", "": ""}


def print_table(console: Console, table: Table) -> None:
    """Print a table; where the terminal is too narrow, in parts with some of its columns each."""
    parts: list[list[int]] = []
    for j in range(len(table.headers)):
        if j in table.words:
            continue
        if parts and least_width(console, rich_table(table, [*parts[-1], j])) <= console.width:
            parts[-1].append(j)
        else:
            parts.append([j])
    for i, part in enumerate(parts):
        console.print(rich_table(table, part, table.title if i == 0 else None))
        console.print()


def least_width(console: Console, shown: RichTable) -> int:
    """Return the least width of a terminal that shows the table without cutting cells."""
    from rich.measure import Measurement

    return Measurement.get(console, console.options.update(max_width=10_000), shown).maximum


def rich_table(table: Table, columns: Sequence[int], title: str | None = None) -> RichTable:
    """Return a Rich table of the columns of words and some others; a repeated first cell is shown once."""
    from rich import box
    from rich.cells import cell_len
    from rich.table import Table as RichTable
    from rich.text import Text

    # Without edges and double padding, so that tables fit 80 columns.
    shown = RichTable(
        title=title and Text(printable(title), "table.title"),
        box=box.SIMPLE_HEAD,
        title_justify="left",
        show_edge=False,
        collapse_padding=True,
    )
    for j in table.words:
        shown.add_column(Text(printable(table.headers[j])), overflow="fold")
    for j in columns:
        width = max(map(cell_len, [table.headers[j], *(plain(row[j]) for row in table.rows)]))
        shown.add_column(Text(printable(table.headers[j])), justify="right", no_wrap=True, min_width=width)
    for i, row in enumerate(table.rows):
        cells = [Text(printable(plain(c)), "" if isinstance(c, str) else STYLES[c.kind]) for c in row]
        if not table.starts_group(i):
            cells[0] = Text("")
        ends = i + 1 < len(table.rows) and len(table.words) > 1 and table.starts_group(i + 1)
        style = "bold" if i == table.best_row else None
        shown.add_row(*(cells[j] for j in (*table.words, *columns)), end_section=ends, style=style)
    return shown
