"""How well this can be predicted, and which model does it: the chart and the table of the contenders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from riskbayes.compare.charts import Scale, Strip, dot, legend, line, sample, span, strips
from riskbayes.compare.numbers import NONE, digits_of, fixed, is_known, plural, seconds, signed
from riskbayes.compare.page_parts import Cell, Column, Line, figure, more, paragraph, section, table
from riskbayes.markup import element, foreign, text

if TYPE_CHECKING:  # the report calls this page, so it imports it first
    from riskbayes.compare.report import Contender, Report, Score

NORMAL = 1.96
"""Standard errors to each side of a 95 % interval."""

PLUS_MINUS = "\u202f\u00b1\u202f"


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
    Measure("error", "error, %", "Share of the held-out rows with a wrong answer. Lower is better.", 1),
    Measure("log_loss", "log loss", "Mean of \u2212log p(true class) on held-out rows. Lower is better.", 3),
    Measure("brier", "Brier", "Mean squared distance of probabilities and answers. Lower is better.", 3),
    Measure(
        "calibration_error",
        "calib. error",
        "How far stated probabilities are from observed shares. Lower is better.",
        3,
    ),
    Measure("auc", "AUC", "How often a row of a class ranks above one of another. 0.5 is a coin.", 3, True),
)
KINDS = {"riskbayes": "riskbayes", "peer": "scikit-learn", "baseline": "baseline"}


def score(contender: Contender, key: str) -> float | None:
    """Return a figure of a model, or None."""
    found = contender.scores.get(key)
    return found.value if found is not None and is_known(found.value) else None


def majority(contenders: Sequence[Contender]) -> Contender | None:
    """Return the baseline, if it is there."""
    return next((c for c in contenders if c.kind == "baseline"), None)


def logistic_regression(contenders: Sequence[Contender]) -> Contender | None:
    """Return logistic regression, if it is there."""
    return next((c for c in contenders if c.kind == "peer" and "logistic" in c.name.lower()), None)


def shown_score(found: Score | None, digits: int, sign: bool = False) -> str:
    """Return a figure and its standard error as HTML."""
    if found is None or not is_known(found.value):
        return NONE
    value = (signed if sign else fixed)(found.value, digits)
    known = found.error is not None and is_known(found.error)
    return value + (element("small", PLUS_MINUS + fixed(found.error, digits)) if known else "")


def plain_score(found: Score | None, digits: int, sign: bool = False) -> str:
    """Return a figure and its standard error as text."""
    return shown_score(found, digits, sign).replace("<small>", "").replace("</small>", "")


def digits_for(contenders: Sequence[Contender], measure: Measure) -> int:
    """Return the decimals of a column: a typical standard error has one digit."""
    found = [c.scores[measure.key].error for c in contenders if measure.key in c.scores]
    return digits_of(found, measure.digits)


def answer_section(report: Report) -> str:
    """Return the first section: the verdict, its figures in large, and the models beside the baseline."""
    lead = next(m for m in MEASURES if m.key == report.lead)
    digits, unit = digits_for(report.contenders, lead), "<small> %</small>" if lead.key == "error" else ""
    best = next((c for c in report.contenders if c.name == report.best), None)
    tiles = [(best, "best of riskbayes"), (majority(report.contenders), "always the most frequent class")]
    tiles.append((logistic_regression(report.contenders), "the usual yardstick"))
    shown = "".join(
        element(
            "div",
            element("dt", foreign(c.name) + (f" <small>{text(words)}</small>" if words else ""))
            + element("dd", shown_score(c.scores.get(lead.key), digits) + unit),
        )
        for c, words in tiles
        if c is not None
    )
    rows = plural(report.split.test_rows, "held-out row")
    what = "Wrong answers in" if lead.key == "error" else f"{lead.name} on"
    held = f"{what} {rows}, \u00b1 standard error. {text(report.split.words)}"
    body = paragraph(text(report.verdict), "verdict") + paragraph(held, "note")
    body += element("dl", shown, class_="tiles")
    body += figure(
        f"{'Error' if lead.key == 'error' else lead.name} on held-out rows, by model",
        lead_chart(report, lead, digits),
        f"Dots further to the {'right' if lead.high else 'left'} are better. Models whose intervals overlap "
        "may still differ beyond chance: they answer the same rows, so their difference has an error of its "
        "own, in the table below.",
        lead_figures(report, lead, digits),
    )
    return section("answer", "How well can it be predicted?", body)


def lead_chart(report: Report, lead: Measure, digits: int) -> str:
    """Return a figure as dots with 95 % intervals, and the baseline and logistic regression as lines."""
    contenders = report.contenders
    ends: list[float] = []
    for c in contenders:
        if (value := score(c, lead.key)) is not None:
            half = NORMAL * (c.scores[lead.key].error or 0.0)
            ends += [max(value - half, 0.0), min(value + half, lead.most)]
    scale = Scale.over(ends or [0.0, lead.most])
    base, logistic = majority(report.contenders), logistic_regression(report.contenders)
    behind, lines = "", []
    for reference, kind in ((base, "reference majority"), (logistic, "reference logistic")):
        if reference is not None and (at := score(reference, lead.key)) is not None:
            behind += line(scale.at(at), kind)
            lines.append((kind, foreign(reference.name)))
    rows = []
    for c in contenders:
        value, kind = score(c, lead.key), "best" if c.name == report.best else ""
        if value is None:
            words = text(c.failed) or "no figure"
            rows.append(Strip(foreign(c.name), "", "failed" if c.failed else NONE, "failed", words))
            continue
        half = NORMAL * (c.scores[lead.key].error or 0.0)
        marks = span(scale.at(value - half), scale.at(value + half), "interval") if half else ""
        marks += dot(scale.at(value), c.kind)
        rows.append(Strip(foreign(c.name), marks, shown_score(c.scores[lead.key], digits), kind))
    kinds = [kind for kind in KINDS if any(c.kind == kind for c in contenders)]
    entries = [(kind, KINDS[kind]) for kind in kinds] + [("interval", "95 % interval"), *lines]
    known = [c for c in contenders if score(c, lead.key) is not None]
    end = max if lead.high else min
    first = end(known, key=lambda c: score(c, lead.key) or 0.0).name if known else ""
    label = f"Dot chart of {lead.name} of {len(contenders)} models; the best is that of {first}."
    return legend(entries) + strips(rows, label, scale, lead.name, behind)


def lead_figures(report: Report, lead: Measure, digits: int) -> str:
    """Return the figures of the chart."""
    columns = [Column("model"), Column(lead.name, True), Column("95 % interval", True)]
    lines = []
    for c in report.contenders:
        value, found = score(c, lead.key), c.scores.get(lead.key)
        half = NORMAL * found.error if found is not None and found.error is not None else None
        ends = NONE
        if value is not None and half is not None:
            ends = f"{fixed(max(value - half, 0), digits)} to {fixed(min(value + half, lead.most), digits)}"
        lines.append(Line([Cell(foreign(c.name)), Cell(shown_score(found, digits)), Cell(ends)]))
    return table(columns, lines, "Figures and their intervals")


def models_section(report: Report) -> str:
    """Return the second section: why that model, and the table of all."""
    body = paragraph(f"<strong>{foreign(report.best)}.</strong> {text(report.why)}", "lead")
    body += models_table(report)
    best = f"<strong>{foreign(report.best)}</strong>"
    body += element(
        "p",
        f"Point at a model, or tap it, to see how far it is from {best}.",
        class_="told",
        id="told",
        aria_live="polite",
        hidden="hidden",
    )
    body += paragraph(
        "\u00b1 standard error over held-out rows. \u201cBehind\u201d is the error of a model minus that of "
        f"{best}, row by row: below zero it is better, and beyond two standard errors hardly by chance. "
        "A row in bold is the best model of riskbayes; a figure in bold the best of its column.",
        "note",
    )
    defined = [(m.name, report.definitions[m.key]) for m in MEASURES if m.key in report.definitions]
    if defined:
        meant = "".join(f"<div><dt>{text(name)}</dt><dd>{text(words)}</dd></div>" for name, words in defined)
        body += more("What the figures mean", element("dl", meant, class_="facts"))
    return section("models", "Which model, and why?", body)


def models_table(report: Report) -> str:
    """Return the table of the contenders; a tap on a row tells its difference to the best."""
    contenders = report.contenders
    measures = [m for m in MEASURES if any(score(c, m.key) is not None for c in contenders)]
    digits = {m.key: digits_for(contenders, m) for m in measures}
    gaps = digits_of([c.behind["error"].error for c in contenders if "error" in c.behind], 1)
    lowest = {m.key: best_value(contenders, m) for m in measures}
    columns = [Column("model"), *(Column(m.name, True, m.about) for m in measures)]
    columns[2:2] = [Column("behind", True, f"Error minus that of {report.best}, paired row by row.")]
    columns += [Column("fit", True, "Seconds to fit."), Column("predict", True, "Seconds to predict.")]
    lines = []
    for c in contenders:
        how = described(c)
        name = sample(c.kind) + foreign(c.name) + (element("small", f" {text(how)}") if how else "")
        if c.failed:
            name += element("small", f" {text(c.failed)}", class_="failed")
        cells = [Cell(name)]
        for m in measures:
            value = score(c, m.key)
            rival = c.kind != "baseline"
            is_best = value is not None and rival and round(value, digits[m.key]) == lowest[m.key]
            shown = shown_score(c.scores.get(m.key), digits[m.key])
            cells.append(Cell(shown, value, "first" if is_best else ""))
        behind = c.behind.get("error")
        gap = "best" if c.name == report.best else shown_score(behind, gaps, True)
        cells[2:2] = [Cell(gap, 0.0 if c.name == report.best else behind.value if behind else None)]
        cells += [Cell(seconds(s), s) for s in (c.fit_seconds, c.predict_seconds)]
        told = difference(c, report)
        kind = "best" if c.name == report.best else "failed" if c.failed else ""
        lines.append(Line(cells, kind, {"data_told": told, "tabindex": "0"}))
    return table(columns, lines, "Figures of all models on held-out rows", "table-models")


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
            sure = ": beyond chance" if abs(gap.value) > NORMAL * gap.error else ": within chance"
        told.append(f"{plain_score(gap, digits_of([gap.error], 3), True)} {words}{sure}")
    return f"{contender.name}, minus {report.best}: " + ("; ".join(told) or "no figures") + "."
