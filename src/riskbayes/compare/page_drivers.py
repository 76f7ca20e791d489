"""What drives the best model: columns, cells of example rows, and parameters that calibration moved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from riskbayes.compare.charts import Scale, Strip, bar, dot, legend, line, span, strips
from riskbayes.compare.numbers import brief, digits_like, fixed, is_known, percent, plural, signed
from riskbayes.compare.page_parts import Cell, Column, Line, cell_value, figure, paragraph, section, table
from riskbayes.markup import element, foreign, text

if TYPE_CHECKING:
    from riskbayes.compare.report import CellContribution, MovedParameter, Report, RowExample

MOST_COLUMNS = 15
"""Columns of the bar chart; the table behind it has all."""

MOST_CELLS = 10
"""Cells of a waterfall; the others are one bar."""


LEAST_MOVE = 0.015
"""Parameters share a scale if the smallest move is at least this share of it: less could not be seen."""


def drivers_section(report: Report) -> str:
    """Return the section on what drives the best model."""
    body = ""
    if report.explained and report.explained != report.best:
        body += paragraph(
            f"{foreign(report.best)} is no sum over the columns; the contributions are those of "
            f"<strong>{foreign(report.explained)}</strong>.",
            "note",
        )
    body += columns_part(report) + examples_part(report.examples) + moved_part(report)
    return section("drivers", "What drives it?", body)


def columns_part(report: Report) -> str:
    """Return the contributions of the columns as bars."""
    found = sorted(report.contributions, key=lambda c: -c.contribution)
    if not found:
        words = f"{foreign(report.best)} is no sum over the columns: it has no contributions to show."
        return paragraph(words, "none")
    scale = Scale.over([c.contribution for c in found], zero=True)
    top = found[0]
    digits = digits_like(top.contribution)
    rows = [
        Strip(
            foreign(c.column),
            bar(scale.at(0), scale.at(c.contribution), "for"),
            fixed(c.contribution, digits),
        )
        for c in found[:MOST_COLUMNS]
    ]
    label = f"Bar chart of the contributions of {len(rows)} columns; the largest is that of {top.column}."
    columns = [Column("column"), Column("mean |contribution|", True), Column("error of it alone, %", True)]
    lines = [
        Line(
            [
                Cell(foreign(c.column)),
                Cell(fixed(c.contribution, digits), c.contribution),
                Cell(fixed(c.error_alone, 1), c.error_alone),
            ]
        )
        for c in found
    ]
    note = "Mean size of what the column\u2019s cells add to or take from the log-odds of the answer."
    if len(found) > len(rows):
        note += f" The first {len(rows)} of {plural(len(found), 'column')}."
    figures = table(columns, lines, "Contributions by column", "table-contributions")
    return figure("Which columns count?", strips(rows, label, scale, "log-odds"), note, figures)


def examples_part(examples: Sequence[RowExample]) -> str:
    """Return a waterfall for each example row; a script shows one at a time."""
    shown = [row for row in examples if row.cells]
    if not shown:
        return ""
    options = "".join(
        element(
            "option",
            text(f"row {e.row}: {e.predicted}{'' if e.predicted == e.truth else ' (wrong)'}"),
            value=str(i),
        )
        for i, e in enumerate(shown)
    )
    controls = (
        '<div class="controls" id="example-controls" hidden>'
        '<button type="button" id="example-before" aria-label="previous row">\u2190</button>'
        '<button type="button" id="example-next" aria-label="next row">\u2192</button>'
        f'<select id="example" aria-label="example row">{options}</select></div>'
    )
    heading = "<h3>Why this answer? Some held-out rows</h3>"
    words = (
        "Each bar starts where the one above it ended: to the right it speaks for the answer, to the left "
        "against it. Zero is what is known before a cell is looked at; the largest contributions come first."
    )
    articles = "\n".join(example(row) for row in shown)
    return heading + paragraph(words, "note") + controls + element("div", articles, id="examples")


def example(row: RowExample) -> str:
    """Return the waterfall of a row."""
    cells = list(row.cells)
    others = sum(cell.contribution for cell in cells[MOST_CELLS:])
    places, total = [0.0], 0.0
    for cell in cells[:MOST_CELLS]:
        total += cell.contribution
        places.append(total)
    if len(cells) > MOST_CELLS:
        places.append(total + others)
    scale = Scale.over(places, most=5, zero=True)
    rows = []
    for i, cell in enumerate(cells[:MOST_CELLS]):
        name = f"{foreign(cell.column)} <small>= {cell_value(cell.value)}</small>"
        rows.append(step(name, scale, places[i], places[i + 1]))
    if len(cells) > MOST_CELLS:
        rest = plural(len(cells) - MOST_CELLS, "other column")
        rows.append(step(rest, scale, places[-2], places[-1]))
    right = row.predicted == row.truth
    verdict = "right" if right else f"wrong: it is {foreign(row.truth)}"
    title = (
        f"Row {row.row}: {foreign(row.predicted)}, sure by {percent(row.probability, 1)} "
        f'<span class="{"right" if right else "wrong"}">({verdict})</span>'
    )
    label = f"Waterfall of row {row.row}: what its cells add to the log-odds of {row.predicted}."
    chart = strips(rows, label, scale, "log-odds", line(scale.at(0), "zero"))
    caption = element("figcaption", f"<h4>{title}</h4>")
    drawn = element("figure", f"{caption}\n{chart}\n{details_of(cells)}")
    return element("article", drawn, class_="example")


def step(name: str, scale: Scale, start: float, end: float) -> Strip:
    """Return a bar of a waterfall."""
    kind = "for" if end >= start else "against"
    return Strip(name, bar(scale.at(start), scale.at(end), kind), signed(end - start, 2))


def details_of(cells: Sequence[CellContribution]) -> str:
    """Return all cells of a row as a table, folded away."""
    columns = [Column("column"), Column("cell"), Column("contribution", True)]
    lines = [
        Line([Cell(foreign(c.column)), Cell(cell_value(c.value)), Cell(signed(c.contribution, 2))])
        for c in cells
    ]
    inner = table(columns, lines, "Contributions of the cells")
    return f"<details>\n<summary>The figures of this chart</summary>\n{inner}\n</details>"


def moved_part(report: Report) -> str:
    """Return the parameters that calibration moved most, before and after it."""
    known = [m for m in report.moved if is_known(m.before) and is_known(m.after)]
    if not known:
        return ""
    ends = [value for m in known for value in (m.before, m.after)]
    shares = all(0 <= value <= 1 for value in ends)
    least = min(abs(m.after - m.before) for m in known)
    together = shares or least >= LEAST_MOVE * (max(ends) - min(ends))
    common = Scale.over(ends, zero=shares) if together else None
    digits = digits_like(max(ends))

    def shown(value: float) -> str:
        return fixed(value, digits) if shares else brief(value)

    rows = []
    for m in known:
        scale = common or Scale.over([m.before, m.after], zero=True)
        before, after = scale.at(m.before), scale.at(m.after)
        marks = ("" if common else line(scale.at(0), "zero")) + span(before, after, "moved")
        marks += dot(before, "before") + dot(after, "after")
        rows.append(Strip(parameter_name(m), marks, f"{shown(m.before)} \u2192 {shown(m.after)}"))
    note = "Calibration starts from the closed form and moves the statistics that it is computed from."
    note += f" Parameters of <strong>{foreign(report.moved_in)}</strong>." if report.moved_in else ""
    note += "" if common else " Each line has a scale of its own, from zero."
    label = f"Dumbbell chart of {len(rows)} parameters, before and after calibration."
    columns = [Column("parameter"), Column("class"), Column("closed form", True), Column("calibrated", True)]
    lines = [
        Line(
            [
                Cell(foreign(m.name)),
                Cell(foreign(m.label) if m.label else ""),
                Cell(shown(m.before)),
                Cell(shown(m.after)),
            ]
        )
        for m in known
    ]
    chart = legend([("before", "closed form"), ("after", "calibrated")])
    chart += strips(rows, label, common)
    figures = table(columns, lines, "Parameters before and after calibration")
    return figure("What did calibration change?", chart, note, figures)


def parameter_name(moved: MovedParameter) -> str:
    """Return the name of a parameter and its class."""
    return foreign(moved.name) + (f" <small>class {foreign(moved.label)}</small>" if moved.label else "")
