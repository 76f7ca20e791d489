"""What is wrong with the data, what its columns are, and how to run the comparison again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from riskbayes.compare.numbers import NONE, count, percent, plural, seconds
from riskbayes.compare.page_parts import Cell, Column, Line, more, paragraph, section, table
from riskbayes.findings import Finding
from riskbayes.markup import element, foreign, text

if TYPE_CHECKING:
    from riskbayes.compare.report import ColumnSummary, Report

SEVERITIES = {
    "error": ("error", "errors", "\u2715"),
    "warning": ("warning", "warnings", "!"),
    "info": ("note", "notes", "i"),
}
"""One and many of a severity, and its sign."""

SHOWN_FINDINGS = 5
"""Findings of one code that are listed at once; the others are folded away."""

SHOWN_PARTS = 3
"""Parts of a column that are named."""

SHOWN_COLUMNS = 25
"""A table of more columns is folded away."""


def data_section(report: Report) -> str:
    """Return the section on the data: findings, classes and columns."""
    body = findings_part(report.findings)
    if report.run.ignored:
        body += paragraph(f"Not looked for, as asked: {text(', '.join(report.run.ignored))}.", "note")
    body += classes_part(report) + columns_part(report.data.columns)
    return section("data", "What is wrong with the data?", body)


def findings_part(findings: Sequence[Finding]) -> str:
    """Return the findings, grouped by code, the gravest first; boxes hide a severity."""
    if not findings:
        return paragraph("Nothing was found.", "none")
    boxes, groups = "", ""
    for severity, (one, many, _) in SEVERITIES.items():
        own = [finding for finding in findings if finding.severity == severity]
        if not own:
            continue
        tick = f'<input type="checkbox" checked data-severity="{severity}">'
        boxes += element("label", f"{tick} {plural(len(own), one, many)}")
        for code in sorted({finding.code for finding in own}):
            groups += group([finding for finding in own if finding.code == code], severity)
    words = (
        "An error means that the figures above cannot be trusted; a warning, that something deserves a look; "
        "a note needs nothing."
    )
    controls = f'<div class="controls" id="severities" hidden><span>Show</span> {boxes}</div>'
    return paragraph(words, "note") + controls + element("div", groups, id="findings")


def group(findings: Sequence[Finding], severity: str) -> str:
    """Return all findings of one code."""
    about, (one, _, sign) = findings[0].about, SEVERITIES[severity]
    mark = element("span", sign, class_="sign", aria_hidden="true")
    code = element("code", text(findings[0].code))
    title = f"<h3>{mark} {code} {text(about.name)} <small>{one}</small></h3>"
    items = [element("li", said(finding)) for finding in findings]
    listed = element("ul", "".join(items[:SHOWN_FINDINGS]))
    if items[SHOWN_FINDINGS:]:
        rest = element("ul", "".join(items[SHOWN_FINDINGS:]))
        listed += more(f"{len(items) - SHOWN_FINDINGS} more", rest)
    answers = (
        ("What it means", about.meaning),
        ("When not to worry", about.when_not_to_worry),
        ("What to do", about.what_to_do),
    )
    told = "".join(f"<div><dt>{question}</dt><dd>{text(answer)}</dd></div>" for question, answer in answers)
    told = f"<dl>{told}</dl>"
    body = f"{title}\n{listed}\n" + (more("What this means", told) if severity == "info" else told)
    return element("article", body, class_=f"finding {severity}", data_severity=severity)


def said(finding: Finding) -> str:
    """Return a finding in its own words, with what it is about unless the words name it."""
    where = (
        f"<strong>{foreign(finding.where)}</strong>: "
        if finding.where and finding.where not in finding.message
        else ""
    )
    return where + element("span", text(finding.message), dir="auto")


def classes_part(report: Report) -> str:
    """Return the classes and their shares of the rows."""
    columns = [Column("class"), Column("rows", True), Column("share", True)]
    lines = [
        Line([Cell(foreign(c.label)), Cell(count(c.rows), c.rows), Cell(percent(c.share, 1), c.share)])
        for c in report.data.classes
    ]
    shown = table(columns, lines, "Classes of the target", "table-classes")
    name = f"The {plural(len(lines), 'class', 'classes')} of {report.data.target}"
    return more(name, shown)


def columns_part(columns: Sequence[ColumnSummary]) -> str:
    """Return what the columns are, what was made of them, and what was left out."""
    lacking = any(c.missing > 0 for c in columns)
    remade = any(map(read_as, columns))
    dropped = any(c.reason for c in columns)
    heads = [Column("column"), Column("kind"), Column("missing", True), Column("distinct", True)]
    heads += [Column("read as")] * remade + [Column("left out because")] * dropped
    lines = []
    for c in columns:
        cells = [
            Cell(foreign(c.name)),
            Cell(text(c.kind)),
            Cell(percent(c.missing, 1) if c.missing else "0" if lacking else NONE, c.missing),
            Cell(NONE if c.distinct is None else count(c.distinct), c.distinct),
        ]
        cells += [Cell(read_as(c), None, "wrap")] * remade + [Cell(text(c.reason), None, "wrap")] * dropped
        lines.append(Line(cells, "out" if c.reason else ""))
    shown = table(heads, lines, "Columns of the table", "table-columns")
    out = sum(bool(c.reason) for c in columns)
    name = f"The {plural(len(columns), 'column')}" + (f", {out} of them left out" if out else "")
    search = ""
    if len(columns) > SHOWN_COLUMNS:
        search = (
            '<div class="controls" id="column-controls" hidden><label>Find a column '
            '<input type="search" id="column-filter"></label></div>'
        )
    return more(name, search + shown, len(columns) <= SHOWN_COLUMNS)


def read_as(column: ColumnSummary) -> str:
    """Return what was made of a column, where that is more than itself."""
    if column.encoded in ((column.name,), (column.kind,)):
        return ""
    first, rest = column.encoded[:SHOWN_PARTS], len(column.encoded) - SHOWN_PARTS
    return ", ".join(map(foreign, first)) + (f" and {rest} more" if rest > 0 else "")


def run_section(report: Report) -> str:
    """Return how to run it again: command, versions, seed, time and the hash of the data."""
    run, data = report.run, report.data
    copy = '<button type="button" id="copy" hidden>Copy</button>'
    code = element("pre", element("code", text(run.command), id="command"), tabindex="0")
    command = element("div", code + copy, class_="command")
    versions = ", ".join(f"{text(name)} {text(version)}" for name, version in run.versions.items())
    facts = {
        "Data": f"{foreign(data.name)}, {plural(data.rows, 'row')}",
        "SHA-256 of the data": element("code", text(data.sha256)) if data.sha256 else "",
        "Held out": text(report.split.words),
        "Seed": str(run.seed),
        "Versions": versions,
        "Started": element("time", text(when(run.started)), datetime=run.started),
        "Took": seconds(run.seconds),
    }
    shown = "".join(f"<div><dt>{name}</dt><dd>{words}</dd></div>" for name, words in facts.items() if words)
    return section("again", "How to run it again", command + element("dl", shown, class_="facts"))


def when(started: str) -> str:
    """Return an ISO time to the minute, in words; another text as it is."""
    try:
        return datetime.fromisoformat(started).astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
    except ValueError:
        return started
