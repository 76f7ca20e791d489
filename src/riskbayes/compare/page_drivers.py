"""Values on what drives a model: columns, cells of example rows, and parameters that calibration moved."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from riskbayes.compare.charts import Scale
from riskbayes.compare.numbers import brief, digits_like, fixed, is_known, plural

if TYPE_CHECKING:
    from riskbayes.compare.report import CellContribution, Report, RowExample, RowLogOdds

LEAST_MOVE = 0.015
"""Parameters share a scale if the smallest move is at least this share of it: less could not be seen."""


def drivers(report: Report) -> dict[str, Any]:
    """Return the values on the best model."""
    shown = [(row, row.log_odds) for row in report.examples if row.log_odds is not None]
    return {
        "columns": columns(report),
        "examples": [(row, odds, *waterfall(row, odds)) for row, odds in shown],
        "moved": moved(report),
    }


def columns(report: Report) -> dict[str, Any]:
    """Return the columns that the model reads, the largest contribution first, and those that it does not."""
    found = [(c.contribution, c) for c in report.contributions if c.contribution is not None]
    found.sort(key=lambda pair: -pair[0])
    sizes = [size for size, _ in found] or [0.0]
    return {
        "read": [c for _, c in found],
        "unread": [c for c in report.contributions if c.contribution is None],
        "scale": Scale.over(sizes, zero=True),
        "digits": digits_like(sizes[0]),
    }


class Step(NamedTuple):
    """A bar of a waterfall, from `start` to `end`: what a cell contributes, or what the words name."""

    words: str
    cell: CellContribution | None
    size: float
    start: float
    end: float
    kind: str
    """By its sign: "for" the class in favour or "against" it; or "total"."""


def waterfall(row: RowExample, odds: RowLogOdds) -> tuple[list[Step], Scale]:
    """Return the steps from the prior through the cells to the total, and their scale."""
    parts = [("prior", None, odds.prior), *(("", cell, cell.contribution) for cell in row.cells)]
    if odds.other_columns:
        parts.append((plural(odds.other_columns, "other column"), None, odds.others))
    places = [0.0, *accumulate(size for _, _, size in parts)]
    steps = [
        Step(*part, *ends, "for" if part[2] >= 0 else "against")
        for part, ends in zip(parts, pairwise(places), strict=True)
    ]
    steps.append(Step("total", None, odds.total, 0.0, odds.total, "total"))
    return steps, Scale.over([*places, odds.total], most=5, zero=True)


def moved(report: Report) -> dict[str, Any]:
    """Return the parameters that calibration moved most, with their places; nothing if there are none."""
    known = [m for m in report.moved if is_known(m.before) and is_known(m.after)]
    if not known:
        return {}
    ends = [value for m in known for value in (m.before, m.after)]
    shares = all(0 <= value <= 1 for value in ends)
    least = min(abs(m.after - m.before) for m in known)
    together = shares or least >= LEAST_MOVE * (max(ends) - min(ends))
    common = Scale.over(ends, zero=shares) if together else None
    digits = digits_like(max(ends))
    rows = []
    for m in known:
        scale = common or Scale.over([m.before, m.after], zero=True)
        row = {"name": m.name, "label": m.label, "scale": scale}
        for side, value in (("before", m.before), ("after", m.after)):
            row |= {side: fixed(value, digits) if shares else brief(value), f"{side}_at": scale.at(value)}
        rows.append(row)
    return {"common": common, "rows": rows}
