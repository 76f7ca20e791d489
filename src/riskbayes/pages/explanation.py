"""An explanation as HTML for a notebook: columns by their mean size, and the first rows step by step."""

from __future__ import annotations

from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from riskbayes.pages.shell import environment
from riskbayes.tables import is_missing, plain

MOST_ROWS, MOST_COLUMNS = 3, 10
"""Rows that are shown step by step, and columns that have a line of their own."""

CELL = 40
"""Characters of a cell that are shown."""


class Step(NamedTuple):
    """A line of a waterfall: its name and cell, its log-odds and their error, and the bar in percent."""

    name: str
    cell: str | None
    value: float
    error: float
    left: float
    width: float
    kind: str


def explanation_html(explanation: Any) -> str:
    """Return an explanation as HTML that holds its own style and no script."""
    rows = [waterfall(explanation[i], i) for i in range(min(len(explanation), MOST_ROWS))]
    sizes: list[tuple[Any, float, float]] = []
    if len(explanation) > 1:
        found = np.abs(explanation.log_odds().values).mean(axis=0)
        order = np.argsort(-found, kind="stable")
        order = order[explanation.read[order]][:MOST_COLUMNS]
        largest = found.max(initial=0.0) or 1.0
        sizes = [(explanation.columns[j], float(found[j]), 100 * float(found[j] / largest)) for j in order]
    template = TEMPLATES.get_template("explanation.html")
    return template.render(explanation=explanation, sizes=sizes, rows=rows, unread=unread(explanation))


def unread(explanation: Any) -> list[Any]:
    """Return the columns that the model does not read."""
    return [name for name, read in zip(explanation.columns, explanation.read, strict=True) if not read]


def waterfall(one: Any, number: int) -> dict[str, Any]:
    """Return the steps of one row from the prior through the cells to the total."""
    odds = one.log_odds()
    values, errors, prior = odds.values[0], odds.errors[0], float(odds.baseline[0])
    order = np.argsort(-np.abs(values), kind="stable")
    order = order[one.read[order]]
    shown, rest = order[:MOST_COLUMNS].tolist(), order[MOST_COLUMNS:]
    cells = [(str(one.columns[j]), shown_cell(one.cells[0, j]), float(values[j]), errors[j]) for j in shown]
    parts = [("prior", None, prior, 0.0), *cells]
    if len(rest):
        words = f"{len(rest)} other column{'s' if len(rest) > 1 else ''}"
        parts.append((words, None, float(values[rest].sum()), 0.0))
    ends = list(accumulate(part[2] for part in parts))
    spans = [(end - part[2], end) for part, end in zip(parts, ends, strict=True)]
    parts.append(("total", None, float(odds.total[0]), 0.0))
    spans.append((0.0, float(odds.total[0])))
    known = [place for span in spans for place in span if np.isfinite(place)] + [0.0]
    low, width = min(known), max(known) - min(known) or 1.0
    steps = []
    for (name, cell, value, error), (start, end) in zip(parts, spans, strict=True):
        reached = [start, end] if np.isfinite(value) else [low, low]
        left, right = sorted(np.clip(reached, low, low + width).tolist())
        kind = "total" if name == "total" and cell is None else "for" if value >= 0 else "against"
        place = 100 * (left - low) / width, 100 * (right - left) / width
        steps.append(Step(name, cell, value, float(error), *place, kind))
    return {
        "number": number,
        "positive": plain(odds.positive[0]),
        "negative": plain(odds.negative[0]),
        "probability": float(1 / (1 + np.exp(-np.clip(odds.total[0], -700, 700)))),
        "steps": steps,
    }


def shown_cell(value: Any) -> str:
    """Return a cell as text; a missing one says so."""
    if is_missing(value):
        return "missing"
    value = plain(value)
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= CELL else f"{text[: CELL - 1]}…"


TEMPLATES = environment(__package__)
