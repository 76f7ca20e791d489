"""The figures of all models as they are shown: a chart, and a table for page, Markdown and terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from riskbayes.compare.charts import Scale
from riskbayes.compare.numbers import (
    NONE,
    NORMAL,
    THIN,
    as_plain,
    digits_of,
    error_interval,
    fixed,
    is_clear,
    is_known,
    seconds,
    signed,
)
from riskbayes.markup import foreign
from riskbayes.pages.table import Mark, Table

if TYPE_CHECKING:  # the report calls this page, so it imports it first
    from riskbayes.compare.report import Contender, Report, Score, SplitSummary

PLUS_MINUS = f"{THIN}\u00b1{THIN}"

TABLE_NOTE = (
    '± is a standard error. "behind" is the error minus that of the best model of riskbayes, row by row.'
)


class Measure(NamedTuple):
    """A figure of the table: its key in `Contender.scores`, its name, what it is, and its usual decimals."""

    key: str
    name: str
    about: str
    digits: int
    high: bool = False
    """True if more is better."""

    @property
    def most(self) -> float:
        """The largest value that it can have, of those that lead the page."""
        return 100.0 if self.key == "error" else 1.0


MEASURES = (
    Measure("error", "error, %", "Share of the held-out rows with a wrong answer.", 1),
    Measure("log_loss", "log loss", "Mean of \u2212log p(true class) on held-out rows.", 3),
    Measure("brier", "Brier", "Mean squared distance of probabilities and answers.", 3),
    Measure("calibration_error", "calib. error", "How far stated probabilities are from observed shares.", 3),
    Measure("auc", "AUC", "How often a row of a class ranks above one of another. 0.5 is a coin.", 3, True),
)
KINDS = {"riskbayes": "riskbayes", "peer": "scikit-learn", "baseline": "baseline"}


def score(contender: Contender, key: str) -> float | None:
    """Return a figure of a model, or None."""
    found = contender.scores.get(key)
    return found.value if found is not None and is_known(found.value) else None


def shown_score(found: Score | None, digits: int, sign: bool = False) -> str:
    """Return a figure and its standard error."""
    if found is None or not is_known(found.value):
        return NONE
    value = (signed if sign else fixed)(found.value, digits)
    known = found.error is not None and is_known(found.error)
    return value + (PLUS_MINUS + fixed(found.error, digits) if known else "")


def digits_for(contenders: Sequence[Contender], measure: Measure) -> int:
    """Return the decimals of a column: a typical standard error has one digit."""
    found = [c.scores[measure.key].error for c in contenders if measure.key in c.scores]
    return digits_of(found, measure.digits)


def answer(report: Report) -> dict[str, Any]:
    """Return the values of the first section: the figures in large, and the chart of all models."""
    lead, contenders = next(m for m in MEASURES if m.key == report.lead), report.contenders
    digits = digits_for(contenders, lead)
    dots = [dot(c, lead, digits, report.split) for c in contenders]
    known = [d for d in dots if d["value"] is not None]
    ends = [end for d in known for end in (d["low"], d["high"])] or [0.0, lead.most]
    base = next((c for c in contenders if c.kind == "baseline"), None)
    logistic = next((c for c in contenders if c.kind == "peer" and "logistic" in c.name.lower()), None)
    lines, entries = {}, [(kind, KINDS[kind]) for kind in KINDS if any(c.kind == kind for c in contenders)]
    entries.append(("interval", "95 % interval"))
    for reference, kind in ((base, "reference majority"), (logistic, "reference logistic")):
        if reference is not None and (at := score(reference, lead.key)) is not None:
            lines[kind] = at
            entries.append((kind, foreign(reference.name)))
    first = (max if lead.high else min)(known, key=lambda d: d["value"])["of"].name if known else ""
    return {
        "lead": lead,
        "digits": digits,
        "best": next((c for c in contenders if c.name == report.best), None),
        "majority": base,
        "logistic": logistic,
        "dots": dots,
        "scale": Scale.over(ends),
        "lines": lines,
        "legend": entries,
        "label": f"Dot chart of {lead.name} of {len(contenders)} models; the best is that of {first}.",
    }


def dot(c: Contender, lead: Measure, digits: int, split: SplitSummary) -> dict[str, Any]:
    """Return a model's figure with its 95 % interval, for the chart and for the table behind it."""
    value, found, interval = score(c, lead.key), c.scores.get(lead.key), NONE
    low = high = value
    if value is not None and found is not None and found.error is not None:
        if lead.key == "error":
            low, high = error_interval(value, found.error, split.test_rows, split.kind == "groups")
        else:
            half = NORMAL * found.error
            low, high = max(value - half, 0.0), min(value + half, 1.0)
        interval = f"{fixed(low, digits)} to {fixed(high, digits)}"
    shown = shown_score(found, digits)
    return {"of": c, "value": value, "low": low, "high": high, "interval": interval, "shown": shown}


def models(report: Report) -> dict[str, Any]:
    """Return the columns of the table of models, each with what it is, and a row for each model."""
    contenders = report.contenders
    measures = [m for m in MEASURES if any(score(c, m.key) is not None for c in contenders)]
    heads = [(m.name, m.about + ("" if m.high else " Lower is better.")) for m in measures]
    heads[1:1] = [("behind", f"Error minus that of {report.best}, paired row by row.")]
    heads += [("fit", "Seconds to fit."), ("predict", "Seconds to predict.")]
    gaps = digits_of([c.behind["error"].error for c in contenders if "error" in c.behind], 1)
    columns = [(m, digits_for(contenders, m), best_value(contenders, m)) for m in measures]
    rows = []
    for c in contenders:
        is_best = c.name == report.best
        cells = []
        for m, digits, lowest in columns:
            value = score(c, m.key)
            first = value is not None and c.kind != "baseline" and round(value, digits) == lowest
            cells.append((shown_score(c.scores.get(m.key), digits), value, "first" if first else ""))
        gap = c.behind.get("error")
        behind = ("best", 0.0) if is_best else (shown_score(gap, gaps, True), gap.value if gap else None)
        cells[1:1] = [(*behind, "")]
        cells += [(seconds(s), s, "") for s in (c.fit_seconds, c.predict_seconds)]
        kind = "best" if is_best else "failed" if c.failed else ""
        rows.append(
            {"of": c, "how": described(c), "told": difference(c, report), "kind": kind, "cells": cells}
        )
    return {"heads": heads, "rows": rows}


def figure_table(report: Report) -> Table:
    """Return the same table of the models that could be fitted, for Markdown and a terminal."""
    found = models(report)
    rows = [row for row in found["rows"] if row["kind"] != "failed"]
    best = next((i for i, row in enumerate(rows) if row["kind"] == "best"), -1)
    return Table(
        ["model", *(name for name, _ in found["heads"])],
        [[row["of"].name, *(Mark(as_plain(cell)) for cell, _, _ in row["cells"])] for row in rows],
        best_row=best,
    )


def described(contender: Contender) -> str:
    """Return the library of a peer and how a model was trained, where the name does not say it."""
    parts = [KINDS["peer"] if contender.kind == "peer" else "", contender.learner]
    return ", ".join(part for part in parts if part and part.lower() not in contender.name.lower())


def best_value(contenders: Sequence[Contender], measure: Measure) -> float | None:
    """Return the best figure of a column as it is shown."""
    digits = digits_for(contenders, measure)
    rivals = [c for c in contenders if c.kind != "baseline"]  # who never commits is well calibrated
    found = [round(v, digits) for c in rivals if (v := score(c, measure.key)) is not None]
    return (max if measure.high else min)(found) if len(found) > 1 else None


def difference(contender: Contender, report: Report) -> str:
    """Return in words how far a model is from the best one, and how sure that is."""
    if contender.failed:
        return f"{contender.name}: {contender.failed}"
    if contender.name == report.best:
        return f"{contender.name} is the best model of riskbayes; it is what the others are compared with."
    told = []
    for key, words in (("error", "percentage points of error"), ("log_loss", "of log loss")):
        gap = contender.behind.get(key)
        if gap is None or gap.value is None or not is_known(gap.value):
            continue
        sure = ""
        if gap.error is not None and is_known(gap.error):
            sure = ": hardly chance" if is_clear(gap) else ": may be chance"
        told.append(f"{shown_score(gap, digits_of([gap.error], 3), True)} {words}{sure}")
    return f"{contender.name}, minus {report.best}: " + ("; ".join(told) or "no figures") + "."
