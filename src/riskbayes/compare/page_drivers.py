"""What drives a model: columns, cells of example rows, and parameters that calibration moved."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from riskbayes.compare.charts import Scale, Strip, bar, dot, legend, line, span, strips
from riskbayes.compare.numbers import brief, digits_like, fixed, is_known, percent, plural, signed
from riskbayes.compare.page_parts import Cell, Column, Line, cell_value, figure, paragraph, section, table
from riskbayes.markup import element, foreign, text

if TYPE_CHECKING:
    from riskbayes.compare.report import CellContribution, MovedParameter, Report, RowExample, RowLogOdds

MOST_COLUMNS = 15
"""Columns of the bar chart; the table behind it has all."""

NAMED_COLUMNS = 8
"""Columns that are named as not read."""

COUNTED = "Rows are counted from 0, without the header, as <code>riskbayes explain --row</code> takes them."

LEAST_MOVE = 0.015
"""Parameters share a scale if the smallest move is at least this share of it: less could not be seen."""


def drivers_section(report: Report) -> str:
    """Return the section on what drives the best model, or the best one that can be explained."""
    body = ""
    if report.explained != report.best:
        words = f"{foreign(report.best)} is no sum over the columns: it has no contributions to show."
        if report.explained:
            words += (
                f" Those below are of <strong>{foreign(report.explained)}</strong>, the best model here that "
                "has them, and explain its answers only."
            )
            if report.agreement is not None:
                words += f" The two models answer {percent(report.agreement, 1)} of the held-out rows alike."
        body += paragraph(words, "note")
    body += columns_part(report) + examples_part(report) + moved_part(report)
    return section("drivers", "What drives it?", body)


def of_model(report: Report, name: str) -> str:
    """Return what a heading adds about a model that is not the best one."""
    return "" if name == report.best else f" in {foreign(name)}"


def columns_part(report: Report) -> str:
    """Return the contributions of the columns as bars."""
    found = [(c, c.contribution) for c in report.contributions if c.contribution is not None]
    if not found:
        return ""
    found.sort(key=lambda pair: -pair[1])
    scale = Scale.over([size for _, size in found], zero=True)
    top, largest = found[0]
    digits = digits_like(largest)
    rows = [
        Strip(foreign(c.column), bar(scale.at(0), scale.at(size), "for"), fixed(size, digits))
        for c, size in found[:MOST_COLUMNS]
    ]
    label = f"Bar chart of the contributions of {len(rows)} columns; the largest is that of {top.column}."
    columns = [Column("column"), Column("mean |contribution|", True), Column("error of it alone, %", True)]
    unread = [c for c in report.contributions if c.contribution is None]
    lines = [
        Line(
            [
                Cell(foreign(c.column)),
                Cell("not read" if c.contribution is None else fixed(c.contribution, digits), c.contribution),
                Cell(fixed(c.error_alone, 1), c.error_alone),
            ]
        )
        for c in (*(c for c, _ in found), *unread)
    ]
    note = "Mean size of what the column\u2019s cells add to or take from the log-odds of the answer."
    if len(found) > len(rows):
        note += f" The first {len(rows)} of {plural(len(found), 'column')}."
    if unread:
        named = ", ".join(foreign(c.column) for c in unread[:NAMED_COLUMNS])
        more = f" and {len(unread) - NAMED_COLUMNS} more" if len(unread) > NAMED_COLUMNS else ""
        note += f" {foreign(report.explained)} does not read {named}{more}."
    figures = table(columns, lines, "Contributions by column", "table-contributions")
    title = f"Which columns count{of_model(report, report.explained)}?"
    return figure(title, strips(rows, label, scale, "log-odds"), note, figures)


def examples_part(report: Report) -> str:
    """Return a waterfall for each example row; a script shows one at a time."""
    shown = [(row, row.log_odds) for row in report.examples if row.log_odds is not None]
    if not shown:
        return ""
    options = "".join(
        element(
            "option",
            text(f"row {e.row}: {e.predicted}{'' if e.predicted == e.truth else ' (wrong)'}"),
            value=str(i),
        )
        for i, (e, _) in enumerate(shown)
    )
    controls = (
        '<div class="controls" id="example-controls" hidden>'
        '<button type="button" id="example-before" aria-label="previous row">\u2190</button>'
        '<button type="button" id="example-next" aria-label="next row">\u2192</button>'
        f'<select id="example" aria-label="example row">{options}</select></div>'
    )
    other = "" if report.explained == report.best else f" of {foreign(report.explained)}"
    heading = f"<h3>Why this answer{other}? Some held-out rows</h3>"
    words = (
        "Each bar starts where the one above it ended: the prior is what is known before a cell is seen, "
        "then come the cells, the largest contributions first, and the total is the probability that the "
        f"model states. {COUNTED}"
    )
    articles = "\n".join(example(row, odds) for row, odds in shown)
    return heading + paragraph(words, "note") + controls + element("div", articles, id="examples")


def example(row: RowExample, odds: RowLogOdds) -> str:
    """Return the waterfall of a row: from the prior through the cells to the total."""
    steps = [("prior", odds.prior)]
    for cell in row.cells:
        steps.append((f"{foreign(cell.column)} <small>= {cell_value(cell.value)}</small>", cell.contribution))
    if odds.other_columns:
        steps.append((plural(odds.other_columns, "other column"), odds.others))
    places = [0.0, *accumulate(size for _, size in steps)]
    scale = Scale.over([*places, odds.total], most=5, zero=True)
    rows = [
        Strip(name, bar(scale.at(start), scale.at(end), kind_of(size)), signed(size, 2))
        for (name, size), (start, end) in zip(steps, pairwise(places), strict=True)
    ]
    total = bar(scale.at(0), scale.at(odds.total), "total")
    rows.append(Strip("<strong>total</strong>", total, f"<strong>{signed(odds.total, 2)}</strong>"))
    right = row.predicted == row.truth
    verdict = "right" if right else f"wrong: it is {foreign(row.truth)}"
    title = (
        f"Row {row.row}: {foreign(row.predicted)}, sure by {percent(row.probability, 1)} "
        f'<span class="{"right" if right else "wrong"}">({verdict})</span>'
    )
    sides = [("bar for", f"for {foreign(odds.positive)}"), ("bar against", f"for {foreign(odds.negative)}")]
    ends = (
        f"total: {percent(odds.positive_probability, 1)} for {foreign(odds.positive)}, "
        f"{percent(odds.negative_probability, 1)} for {foreign(odds.negative)}"
    )
    label = f"Waterfall of row {row.row}: from the prior to the log-odds of {odds.positive} against "
    label += f"{odds.negative}."
    chart = legend([*sides, ("bar total", ends)])
    chart += strips(rows, label, scale, "log-odds", line(scale.at(0), "zero"))
    caption = element("figcaption", f"<h4>{title}</h4>")
    drawn = element("figure", f"{caption}\n{chart}\n{details_of(row.cells, odds)}")
    return element("article", drawn, class_="example")


def kind_of(size: float) -> str:
    """Return the kind of a bar by its sign: for the class in favour or against it."""
    return "for" if size >= 0 else "against"


def details_of(cells: Sequence[CellContribution], odds: RowLogOdds) -> str:
    """Return the steps of a waterfall as a table, folded away."""
    columns = [Column("column"), Column("cell"), Column("contribution", True)]
    lines = [Line([Cell("prior"), Cell(""), Cell(signed(odds.prior, 2))])]
    lines += [
        Line([Cell(foreign(c.column)), Cell(cell_value(c.value)), Cell(signed(c.contribution, 2))])
        for c in cells
    ]
    if odds.other_columns:
        rest = plural(odds.other_columns, "other column")
        lines.append(Line([Cell(rest), Cell(""), Cell(signed(odds.others, 2))]))
    lines.append(Line([Cell("total"), Cell(""), Cell(signed(odds.total, 2))]))
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
    if report.moved_in != report.best:
        note += f" These are parameters of <strong>{foreign(report.moved_in)}</strong>, not of "
        note += f"{foreign(report.best)}."
    note += " The largest changes, of parameters that enough training rows tell of."
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
    title = f"What did calibration change{of_model(report, report.moved_in)}?"
    return figure(title, chart, note, figures)


def parameter_name(moved: MovedParameter) -> str:
    """Return the name of a parameter and its class."""
    return foreign(moved.name) + (f" <small>class {foreign(moved.label)}</small>" if moved.label else "")
