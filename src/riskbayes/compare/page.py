"""The report of a comparison as one HTML file, which needs no network and works without its script.

It answers in this order: how well, which model, can it be trusted, what drives it, what is wrong with the
data, how to run it again. What is said and drawn stands in `templates/`; here are the values for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

import riskbayes.compare.numbers as numbers
from riskbayes.compare.charts import Scale
from riskbayes.compare.figures import MEASURES, PLUS_MINUS, answer, models, shown_score
from riskbayes.compare.page_drivers import drivers
from riskbayes.export import interpreter
from riskbayes.pages.shell import environment
from riskbayes.web import finding_page

if TYPE_CHECKING:  # the report calls this page, so it imports it first
    from riskbayes.compare.report import CellContribution, ColumnSummary, ReliabilityBin, Report, RowExample

SEVERITIES = {"error": ("error", "\u2715"), "warning": ("warning", "!"), "info": ("note", "i")}
"""What a severity is called, the gravest first, and its sign."""

MOST_CLASSES = 20
"""A confusion matrix of more classes is shown as its largest mix-ups."""

MOST_COLUMNS = 25
"""A table of more columns is folded away."""

SIMILAR = 1.2
"""Bins whose numbers of rows differ by no more than this factor have equally many."""


def report_page(report: Report) -> str:
    """Return the page of a report, a whole HTML file."""
    return TEMPLATES.get_template("page.html").render(
        report=report,
        answer=answer(report),
        models=models(report),
        trust=trust(report),
        drivers=drivers(report),
    )


@dataclass(frozen=True)
class Square:
    """The reliability diagram: bins in a square of 300 pixels, up to 1 to the right and upwards.

    Columns below it, `foot` pixels high in all, show the rows of a bin where bins differ in them.
    """

    scale: Scale
    foot: int
    most: int
    """Rows of the largest bin."""

    @classmethod
    def of(cls, bins: Sequence[ReliabilityBin]) -> Square:
        """Return a square that holds some bins."""
        least = min(min(b.predicted, b.low) for b in bins)
        rows = [b.rows for b in bins]
        foot = 34 if max(rows) > SIMILAR * min(rows) else 0
        return cls(Scale.over([min(max(least, 0.0), 0.9), 1.0]), foot, max(rows))

    def x(self, share: float) -> float:
        """Return the horizontal place of a share."""
        return round(64 + 3 * self.scale.at(share), 1)

    def y(self, share: float) -> float:
        """Return the vertical place of a share."""
        return round(308 - 3 * self.scale.at(share), 1)


def trust(report: Report) -> dict[str, Any]:
    """Return the values on the best model's probabilities and mistakes."""
    bins = [b for b in report.reliability if b.rows > 0]
    rows = sum(b.rows for b in bins) or 1
    wrong = [
        {"rows": n, "truth": report.labels[i], "taken": report.labels[j], "share": n / sum(counts)}
        for i, counts in enumerate(report.confusion)
        for j, n in enumerate(counts)
        if i != j and n > 0  # the diagonal is right
    ]
    return {
        "bins": bins,
        "square": Square.of(bins) if bins else None,
        "said": sum(b.rows * b.predicted for b in bins) / rows,
        "was": sum(b.rows * b.observed for b in bins) / rows,
        "wrong": sorted(wrong, key=lambda found: -found["rows"]),
        "missed": sum(found["rows"] for found in wrong),
        "total": sum(map(sum, report.confusion)),
        "explained": any(row.log_odds is not None for row in report.surest_wrong),
    }


def speaking(row: RowExample) -> list[CellContribution]:
    """Return the cells that spoke most for the answer."""
    sign = 1 if row.log_odds is None or row.log_odds.positive == row.predicted else -1
    return [cell for cell in row.cells if sign * cell.contribution > 0][:3]


def read_as(column: ColumnSummary) -> tuple[str, ...]:
    """Return what was made of a column, where that is more than itself."""
    return () if column.encoded in ((column.name,), (column.kind,)) else column.encoded


def when(started: str) -> str:
    """Return an ISO time to the minute, in words; another text as it is."""
    try:
        return datetime.fromisoformat(started).astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
    except ValueError:
        return started


FORMS = (numbers.brief, numbers.count, numbers.fixed, numbers.percent, numbers.plural, numbers.seconds)
TEMPLATES = environment(
    __package__, *FORMS, numbers.signed, finding_page, read_as, shown_score, speaking, when
)
TEMPLATES.globals |= {"MOST_CLASSES": MOST_CLASSES, "MOST_COLUMNS": MOST_COLUMNS, "SEVERITIES": SEVERITIES}
TEMPLATES.globals |= {"interpreter": Markup(interpreter())}  # our own script
TEMPLATES.globals |= {"MEASURES": MEASURES, "NONE": numbers.NONE, "PLUS_MINUS": PLUS_MINUS}
