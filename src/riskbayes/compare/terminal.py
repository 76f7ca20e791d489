"""The report of a comparison in a terminal: the answer, one table of figures, and the findings."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from riskbayes.compare.markdown import TABLE_NOTE, figures
from riskbayes.compare.report import Report
from riskbayes.markup import printable
from riskbayes.web import finding_page

STYLES = {"error": "bold red", "warning": "yellow", "info": "dim"}
"""Styles of findings by how much they weigh; the word stands beside them, for terminals without colours."""

PIPE_WIDTH = 160
"""Width where there is no terminal: a file or a pipe has none of its own."""


def print_report(report: Report, console: Console) -> None:
    """Print the answer, the table, why the best model is the best, and the findings."""
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    console.print(line(report.verdict, "bold"))
    console.print(line(report.split.words, "dim"))
    console.print()
    for table in tables_of(report, console):
        console.print(table)
        console.print()
    console.print(Text(TABLE_NOTE, "dim"))
    for contender in report.contenders:
        if contender.failed:
            console.print(line(f"{contender.name} could not be fitted: {contender.failed}", "yellow"))
    console.print(line(report.why))
    console.print()
    for finding in report.findings:
        console.print(line(f"{finding.severity}: {finding}", STYLES[finding.severity]))
    if report.findings:
        codes = list(dict.fromkeys(finding.code for finding in report.findings))
        console.print(line(f"What they mean and what to do: riskbayes findings {' '.join(codes)}", "dim"))
        console.print(line(f"or {finding_page(codes[0])}", "dim"))


def line(words: str, style: str = "") -> Text:
    """Return words for a terminal, which shows what they hold of a file and does not obey it."""
    return Text(printable(words), style)


def tables_of(report: Report, console: Console) -> list[Table]:
    """Return the table of figures, in parts with some of its columns each where the terminal is narrow."""
    headers, rows = figures(report)
    best = next((i for i, row in enumerate(rows) if row[0] == report.best), -1)
    parts: list[list[int]] = []
    for j in range(1, len(headers)):
        wider = [*parts[-1], j] if parts else [j]
        fits = least_width(console, table_of(headers, rows, wider, best)) <= console.width
        if parts and fits:
            parts[-1] = wider
        else:
            parts.append([j])
    return [table_of(headers, rows, part, best) for part in parts]


def least_width(console: Console, table: Table) -> int:
    """Return the least width of a terminal that shows a table without cutting cells."""
    return Measurement.get(console, console.options.update(max_width=10_000), table).maximum


def table_of(
    headers: Sequence[str], rows: Sequence[Sequence[str]], columns: Sequence[int], best: int
) -> Table:
    """Return a table of the models and some of the figures; the best model of riskbayes is bold."""
    found = Table(box=box.SIMPLE_HEAD, show_edge=False, collapse_padding=True)
    found.add_column(headers[0], overflow="fold")
    for j in columns:
        found.add_column(headers[j], justify="right", no_wrap=True)
    for i, row in enumerate(rows):
        found.add_row(*(line(row[j], "bold" if i == best else "") for j in (0, *columns)))
    return found
