"""A table of results as text, CSV, LaTeX, HTML and Markdown."""

from __future__ import annotations

import csv
import io
from html import escape
from math import isnan

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from riskbayes.experiments.report import element
from riskbayes.experiments.tables import Cell, ResultTable, Value

FAR_MARK = "≠"
NONE = "-"
BEST_MARK = "*"
LEGEND = (
    f"{BEST_MARK} or bold: lowest. [in brackets]: the paper's figure; {FAR_MARK}: more than two points apart."
)
LATEX = {"±": r"$\pm$", "≠": r"$\neq$", "_": r"\_", "%": r"\%", "&": r"\&", "#": r"\#"}


def number(cell: Value) -> str:
    """The measured number alone."""
    sign = "+" if cell.signed else ""
    return NONE if cell.mean is None else f"{cell.mean:{sign}.{cell.digits}f}"


def spread(cell: Value) -> str:
    """What stands behind the ±; a single split has none."""
    known = cell.spread is not None and not isnan(cell.spread)
    return f" ± {cell.spread:.{cell.digits}f}" if known else ""


def printed(cell: Value) -> str:
    """The paper's figure in its place beside the measured one, with the mark."""
    figure = NONE if cell.published is None else f"{cell.published:g}"
    return (figure if cell.beside else "") + (FAR_MARK if cell.far else "")


def plain(cell: Cell, best: str = f"{{}}{BEST_MARK}") -> str:
    """A cell in a line of text; `best` is how the lowest number is shown."""
    if isinstance(cell, str):
        return cell
    mean = best.format(number(cell)) if cell.best else number(cell)
    return mean + spread(cell) + (f" [{printed(cell)}]" if printed(cell) else "")


def as_text(table: ResultTable) -> str:
    """For a terminal, a file or a mail."""
    shown = Table(title=table.title, box=box.SIMPLE_HEAD, title_justify="left", show_edge=False)
    words = text_columns(table)
    for j, header in enumerate(table.headers):
        shown.add_column(header, justify="left" if j in words else "right", no_wrap=True)
    for row in table.rows:
        shown.add_row(*(Text(plain(cell)) for cell in row))
    out = io.StringIO()
    Console(file=out, width=400, color_system=None).print(shown)
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    return "\n".join([*lines, "", table.note, LEGEND]) + "\n"


def as_markdown(table: ResultTable) -> str:
    """For a documentation page."""
    return f"**{table.title}.** {table.note}\n\n{markdown_rows(table)}\n"


def markdown_rows(table: ResultTable) -> str:
    """Return the table alone, in Markdown."""
    words = text_columns(table)

    def line(cells: list[str]) -> str:
        return f"| {' | '.join(cells)} |"

    rule = ["---" if j in words else "---:" for j in range(len(table.headers))]
    rows = [line([plain(cell, "**{}**") for cell in row]) for row in table.rows]
    return "\n".join([line(table.headers), line(rule), *rows])


def as_csv(table: ResultTable) -> str:
    """For a program: a column for each part of a cell that the table uses."""
    parts = {
        "": lambda v: v.mean,
        "spread": lambda v: v.spread,
        "published": lambda v: v.published,
        "far": lambda v: int(v.far) if v.published is not None and v.is_error else None,
        "best": lambda v: int(v.best) if v.is_error else None,
        "verdict": lambda v: v.kind or None,
    }
    columns: list[tuple[str, list[str]]] = []
    for j, header in enumerate(table.headers):
        cells = [row[j] for row in table.rows]
        for part, get in parts.items():
            if part and j in text_columns(table):
                continue
            values = [get(cell) if isinstance(cell, Value) else None if part else cell for cell in cells]
            if not part or any(value is not None for value in values):
                columns.append((f"{header} {part}".strip(), ["" if v is None else figure(v) for v in values]))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([header for header, _ in columns])
    writer.writerows(zip(*(values for _, values in columns), strict=True))
    return out.getvalue()


def figure(value: object) -> str:
    """A number for a program."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def as_latex(table: ResultTable) -> str:
    """A tabular of booktabs; the paper's figure in brackets."""

    def cell(value: Cell) -> str:
        if isinstance(value, str):
            return latex(value)
        mean = rf"\textbf{{{latex(number(value))}}}" if value.best else latex(number(value))
        behind = f" [{latex(printed(value))}]" if printed(value) else ""
        return mean + latex(spread(value)) + behind

    words = text_columns(table)
    layout = "".join("l" if j in words else "r" for j in range(len(table.headers)))
    lines = [" & ".join(cell(value) for value in row) + r" \\" for row in table.rows]
    heading = " & ".join(map(latex, table.headers)) + r" \\"
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\begin{{tabular}}{{{layout}}}",
            r"\toprule",
            heading,
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            rf"\caption{{{latex(table.title)}. {latex(table.note)}}}",
            r"\end{table}",
            "",
        ]
    )


def latex(words: str) -> str:
    """Words that LaTeX takes as they are meant."""
    return "".join(LATEX.get(letter, letter) for letter in words)


def as_html(table: ResultTable, links: dict[str, str] | None = None) -> str:
    """A table that a script can sort: every cell knows its number; `links` leads on from a first cell."""

    def cell(j: int, value: Cell) -> str:
        if isinstance(value, str):
            target = (links or {}).get(value) if j == 0 else None
            body = element("a", escape(value), href=target) if target else escape(value)
            return element("th", body, scope="row", **{"class": "text"}) if j in words else f"<td>{body}</td>"
        parts = [escape(number(value))]
        if spread(value):
            parts.append(element("small", escape(spread(value))))
        if value.is_error and value.published is not None and not value.beside:
            parts.append(element("span", FAR_MARK if value.far else "", **{"class": "mark"}))
        elif printed(value):
            parts.append(element("span", printed(value), title="the paper's figure", **{"class": "printed"}))
        names = [
            value.kind,
            *(n for n, on in (("best", value.best), ("far", value.far), ("group", j in groups)) if on),
        ]
        known = "" if value.mean is None else f"{value.mean:.6g}"
        return element("td", "".join(parts), **{"class": " ".join(filter(None, names)), "data-sort": known})

    words, first = text_columns(table), [header.split()[0] for header in table.headers]
    # A line stands before the columns of each method.
    groups = {j for j in range(1, len(first)) if first[j] != first[j - 1] and first.count(first[j]) > 1}
    head = "".join(
        element(
            "th",
            escape(h),
            scope="col",
            **{"class": "text" if j in words else "group" if j in groups else ""},
        )
        for j, h in enumerate(table.headers)
    )
    body = "\n".join(
        element(
            "tr",
            "".join(cell(j, value) for j, value in enumerate(row)),
            **{"class": "last" if row[0] == "average rank" else ""},
        )
        for row in table.rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(table.title)}">'
        f'<table class="results" id="table-{table.name}">\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table></div>"
    )


def text_columns(table: ResultTable) -> set[int]:
    """Columns of words: those of strings, with a letter in one."""
    return {
        j
        for j in range(len(table.headers))
        for cells in [[row[j] for row in table.rows]]
        if all(isinstance(cell, str) for cell in cells) and any(c.isalpha() for c in "".join(map(str, cells)))
    }
