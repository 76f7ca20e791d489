"""The report of a comparison in a terminal: the answer, one table of figures, and the findings."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from riskbayes.compare.figures import TABLE_NOTE, figure_table
from riskbayes.compare.report import Report
from riskbayes.markup import printable
from riskbayes.pages.terminal import print_table
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
    print_table(console, figure_table(report))
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
