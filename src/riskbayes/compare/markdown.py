"""The report of a comparison as Markdown: `templates/report.md` with every text escaped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

from riskbayes.compare.figures import MEASURES, TABLE_NOTE, figure_table
from riskbayes.markup import printable
from riskbayes.pages.shell import environment
from riskbayes.pages.table import plain

if TYPE_CHECKING:  # the report calls this, so it imports it first
    from riskbayes.compare.report import Report


def report_as_markdown(report: Report) -> str:
    """Return the report as Markdown, in the order in which it is read."""
    return TEMPLATES.get_template("report.md").render(report=report, figures=figure_table(report))


def text(value: object) -> Markup:
    """Return a value such that it stays text, and in its line; Markdown that a template wrote as it is."""
    if isinstance(value, Markup):
        return value
    found = printable(" ".join(str(value).split()))
    for sign in ("\\", "`", "*", "_", "|", "<", ">", "[", "]", "#", "&", "~"):
        found = found.replace(sign, "\\" + sign)
    return Markup(found)


def quoted(value: str) -> str:
    """Return a name as Python writes it."""
    return repr(value)


def verbatim(value: str) -> Markup:
    """Return a line for a block of code."""
    return Markup(printable(value))


TEMPLATES = environment(__package__, plain, quoted, verbatim, finalize=text)
TEMPLATES.globals |= {"MEASURES": MEASURES, "TABLE_NOTE": TABLE_NOTE}
