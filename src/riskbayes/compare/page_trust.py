"""Whether the best model can be trusted: its probabilities, its mix-ups, and where it is surest and wrong."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor
from typing import TYPE_CHECKING

from riskbayes.compare.numbers import NONE, count, percent, plural, signed
from riskbayes.compare.page_drivers import COUNTED
from riskbayes.compare.page_parts import (
    Cell,
    Column,
    Line,
    cell_value,
    figure,
    more,
    paragraph,
    section,
    table,
)
from riskbayes.markup import element, foreign, text

if TYPE_CHECKING:
    from riskbayes.compare.report import ReliabilityBin, Report, RowExample

MOST_CLASSES = 20
"""A confusion matrix of more classes is shown as its largest mix-ups."""

FEW_CLASSES = 6
"""A confusion matrix of more classes has the whole width, and its headings stand upright."""

MOST_MIX_UPS = 10
TOLD_CELLS = 3
"""Cells that are named beside a row that the model got wrong."""

SIMILAR = 1.2
"""Bins whose numbers of rows differ by no more than this factor have equally many."""

LEFT, TOP, SIDE = 64, 8, 300
"""Place and size of the square of the reliability diagram, in pixels."""


def trust_section(report: Report) -> str:
    """Return the section on the best model's probabilities and mistakes."""
    parts = [reliability_part(report), confusion_part(report)]
    body = paragraph(f"All of this is about <strong>{foreign(report.best)}</strong> on held-out rows.")
    body += element("div", "\n".join(parts), class_="two")
    return section("trust", "Can it be trusted?", body + surest_part(report))


def reliability_part(report: Report) -> str:
    """Return the reliability diagram, what it says on average, and how to read it."""
    bins = [b for b in report.reliability if b.rows > 0]
    if not bins:
        return element("div", paragraph("There are no figures on its probabilities.", "none"))
    rows = sum(b.rows for b in bins)
    said = sum(b.rows * b.predicted for b in bins) / rows
    was = sum(b.rows * b.observed for b in bins) / rows
    note = (
        f"On average it says {percent(said)} and is right in {percent(was)} of the rows. Below the diagonal "
        "the model is surer than it should be. Lines are 95 % intervals"
    )
    note += "; columns at the foot show how many rows are that sure." if differ(bins) else "."
    columns = [Column("says", True), Column("is right", True), Column("95 % interval", True)]
    lines = [
        Line(
            [
                Cell(percent(b.predicted, 1)),
                Cell(percent(b.observed, 1)),
                Cell(f"{percent(b.low, 1)} to {percent(b.high, 1)}"),
                Cell(count(b.rows)),
            ]
        )
        for b in bins
    ]
    figures = table([*columns, Column("rows", True)], lines, "Reliability")
    return figure("Is it right as often as it says?", reliability_chart(report), note, figures)


def differ(bins: Sequence[ReliabilityBin]) -> bool:
    """True if bins have different numbers of rows: those of equally many need no columns that say so."""
    return max(b.rows for b in bins) > SIMILAR * min(b.rows for b in bins)


def reliability_chart(report: Report) -> str:
    """Return the reliability diagram: stated probability to the right, observed share of hits upwards."""
    bins = [b for b in report.reliability if b.rows > 0]
    least = min(min(b.predicted, b.low) for b in bins)
    low = min(max(floor(10 * least + 1e-9) / 10, 0.0), 0.9)
    foot, most = 34 if differ(bins) else 0, max(b.rows for b in bins)

    def x(share: float) -> float:
        return LEFT + SIDE * (share - low) / (1 - low)

    def y(share: float) -> float:
        return TOP + SIDE - SIDE * (share - low) / (1 - low)

    step = 0.2 if 1 - low > 0.61 else 0.1 if 1 - low > 0.21 else 0.05
    ticks = [1 - i * step for i in range(21) if 1 - i * step > low - 1e-9]
    parts = []
    for tick in ticks:
        parts.append(f'<path class="grid" d="M{LEFT} {y(tick):.1f}h{SIDE}M{x(tick):.1f} {TOP}v{SIDE}"/>')
        shown = text(percent(tick))
        parts.append(f'<text x="{LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{shown}</text>')
        under = TOP + SIDE + foot + 18
        parts.append(f'<text x="{x(tick):.1f}" y="{under}" text-anchor="middle">{shown}</text>')
    parts.append(f'<path class="diagonal" d="M{x(low):.1f} {y(low):.1f}L{x(1):.1f} {y(1):.1f}"/>')
    for b in bins if differ(bins) else ():
        height = max((foot - 4) * b.rows / most, 1)
        place = f'x="{x(b.predicted) - 5:.1f}" y="{TOP + SIDE + foot + 2 - height:.1f}"'
        parts.append(f'<rect class="bar quiet" {place} width="10" height="{height:.1f}"/>')
    for b in bins:
        left, up, down = x(b.predicted), y(b.high), y(max(b.low, low))
        ends = f"M{left - 3:.1f} {up:.1f}h6M{left - 3:.1f} {down:.1f}h6"
        parts.append(f'<path class="interval" d="M{left:.1f} {up:.1f}V{down:.1f}{ends}"/>')
    points = " ".join(f"{x(b.predicted):.1f},{y(max(b.observed, low)):.1f}" for b in bins)
    parts.append(f'<polyline class="through" points="{points}"/>')
    for b in bins:
        told = f"says {percent(b.predicted)}, is right in {percent(b.observed)} of {plural(b.rows, 'row')}"
        at = f'cx="{x(b.predicted):.1f}" cy="{y(max(b.observed, low)):.1f}"'
        parts.append(f'<g class="dot riskbayes"><circle {at} r="5"><title>{text(told)}</title></circle></g>')
    height = TOP + SIDE + foot + 42
    middle = LEFT + SIDE / 2
    parts.append(f'<text class="unit" x="{middle}" y="{height - 5}" text-anchor="middle">what it says</text>')
    turned = f'transform="translate(11 {TOP + SIDE / 2}) rotate(-90)"'
    parts.append(f'<text class="unit" text-anchor="middle" {turned}>how often it is right</text>')
    label = "Reliability diagram: stated probability against the observed share of hits."
    box = {"viewBox": f"0 0 {LEFT + SIDE + 20} {height}", "role": "img", "aria-label": label}
    return element("svg", "".join(parts), class_="square", **box)


def confusion_part(report: Report) -> str:
    """Return the confusion matrix as a heat map with numbers, or the largest mix-ups of many classes."""
    if not report.confusion:
        return element("div", paragraph("There is no confusion matrix.", "none"))
    labels, counts = report.labels, report.confusion
    wrong = [
        (n, i, j)
        for i, row in enumerate(counts)
        for j, n in enumerate(row)
        if i != j and n > 0  # the diagonal is right
    ]
    wrong.sort(key=lambda found: (-found[0], found[1], found[2]))
    total = sum(map(sum, counts))
    missed = sum(n for n, _, _ in wrong)
    words = f"{plural(missed, 'wrong answer')} in {plural(total, 'held-out row')}."
    if wrong:
        n, i, j = wrong[0]
        words += f" Most often: {count(n)} of {foreign(labels[i])} taken for {foreign(labels[j])}."
    columns = [Column("truly"), Column("taken for"), Column("rows", True), Column("of its class", True)]
    lines = [
        Line(
            [
                Cell(foreign(labels[i])),
                Cell(foreign(labels[j])),
                Cell(count(n), n),
                Cell(percent(n / sum(counts[i])), n / sum(counts[i])),
            ]
        )
        for n, i, j in wrong[:MOST_MIX_UPS]
    ]
    largest = table(columns, lines, "Largest mix-ups")
    title = "What does it take for what?"
    if len(labels) > MOST_CLASSES:
        caption = element("figcaption", f"<h3>{title}</h3>{paragraph(words, 'note')}")
        return element("figure", caption + largest)
    words += " The shade is the share of the true class; right answers stand in a frame."
    folded = more("The largest mix-ups", largest) if wrong else ""
    caption = element("figcaption", f"<h3>{title}</h3>{paragraph(words, 'note')}")
    kind = "whole" if len(labels) > FEW_CLASSES else ""
    return element("figure", f"\n{caption}\n{heat_map(report)}\n{folded}\n", class_=kind)


def heat_map(report: Report) -> str:
    """Return the confusion matrix as a table whose cells are shaded by their share of the true class."""
    labels = report.labels
    head = "".join(element("th", foreign(label), scope="col", class_="number") for label in labels)
    lines = []
    for i, row in enumerate(report.confusion):
        total, cells = sum(row), []
        for j, n in enumerate(row):
            share = n / total if total else 0.0
            told = f"{count(n)} of {count(total)} ({percent(share)}) of {labels[i]} taken for {labels[j]}"
            kind = "number hit" if i == j else "number miss" if n else "number zero"
            cells.append(element("td", count(n), class_=kind, style=f"--share:{share:.3f}", title=told))
        lines.append(element("tr", element("th", foreign(labels[i]), scope="row") + "".join(cells)))
    corner = '<th scope="col"><span class="corner">truly \u2193 taken for \u2192</span></th>'
    whole = f"<thead><tr>{corner}{head}</tr></thead>\n<tbody>" + "\n".join(lines) + "</tbody>"
    many = "heat many" if len(labels) > FEW_CLASSES else "heat"
    box = {"tabindex": "0", "role": "region", "aria_label": "Confusion matrix"}
    return element("div", element("table", whole, class_=many), class_="scroll", **box)


def surest_part(report: Report) -> str:
    """Return the rows that the model is surest and wrong about: wrong labels are often among them."""
    rows = report.surest_wrong
    heading = "<h3>Where it is surest, and wrong</h3>"
    if not rows:
        return heading + paragraph("It is wrong about no held-out row.", "none")
    words = (
        "Look at these rows first: a wrong label, a misread cell or a case that the columns do not describe. "
        f"{COUNTED}"
    )
    columns = [Column("row", True), Column("truly"), Column("it said"), Column("sure by", True)]
    explained = any(row.log_odds is not None for row in rows)
    if explained:
        columns.append(Column("because of"))
        two = [foreign(label) for label in report.labels[::-1]] if len(report.labels) == 2 else ()
        words += " Numbers are contributions to the log-odds of " + (
            " against ".join(two) + "." if two else "what it said against the next class."
        )
    else:
        words += f" {foreign(report.best)} is no sum over the columns, so that no cell can be named."
    lines = []
    for row in rows:
        cells = [
            Cell(str(row.row), row.row),
            Cell(foreign(row.truth)),
            Cell(foreign(row.predicted)),
            Cell(percent(row.probability, 1), row.probability),
        ]
        lines.append(Line([*cells, Cell(because(row), None, "wrap")] if explained else cells))
    return heading + paragraph(words, "note") + table(columns, lines, "Surest and wrong", "table-surest")


def because(row: RowExample) -> str:
    """Return the cells that spoke most for the answer."""
    sign = 1 if row.log_odds is None or row.log_odds.positive == row.predicted else -1
    speaking = [cell for cell in row.cells if sign * cell.contribution > 0][:TOLD_CELLS]
    told = (
        element(
            "span",
            f"{foreign(c.column)} = {cell_value(c.value)} <small>{signed(c.contribution, 1)}</small>",
            class_="cell",
            title=f"{c.column} = {c.value}",
        )
        for c in speaking
    )
    return " ".join(told) or NONE
