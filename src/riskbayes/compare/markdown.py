"""The report of a comparison as Markdown, and its figures as a table for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from riskbayes.findings import CODES
from riskbayes.markup import printable

if TYPE_CHECKING:
    from riskbayes.compare.report import CellContribution, Contender, Report, RowExample, Score

FIGURES = {
    "error": ("error, %", 2),
    "log_loss": ("log loss", 3),
    "brier": ("Brier", 3),
    "calibration_error": ("calib. error", 3),
    "auc": ("AUC", 3),
}
"""Figures in the order of the table: their headers and decimals."""

TABLE_NOTE = "± is a standard error; the error minus that of the majority class is paired row by row."


def report_as_markdown(report: Report) -> str:
    """Return the report as Markdown, in the order in which it is read."""
    return "\n".join(lines_of(report)) + "\n"


def lines_of(report: Report) -> Iterator[str]:
    """Yield the lines of the report."""
    data = report.data
    yield from (f"# {text(data.name or data.target)}: can {text(repr(data.target))} be predicted?", "")
    yield from (text(report.verdict), "")
    rows = f"{data.rows} rows, {len(data.columns)} columns, {len(data.classes)} classes"
    sample = f", a sample of {data.used_rows} of them compared" if data.used_rows < data.rows else ""
    yield from (f"{rows}{sample}. {text(report.split.words)}", "")
    yield from ("## Models", "", *table(*figures(report)), "")
    yield from (f"{TABLE_NOTE} The figures are:", "")
    yield from (
        f"- {FIGURES[name][0]}: {words}" for name, words in report.definitions.items() if name in FIGURES
    )
    yield from (
        f"- {text(c.name)} could not be fitted: {text(c.failed)}" for c in report.contenders if c.failed
    )
    yield from ("", f"**{text(report.best)}.** {text(report.why)}", "")
    yield from trust(report)
    yield from drivers(report)
    yield from data_lines(report)
    yield from run_lines(report)


def figures(report: Report) -> tuple[list[str], list[list[str]]]:
    """Return the headers and the rows of the table of models that could be fitted."""
    fitted = [c for c in report.contenders if not c.failed]
    names = [name for name in FIGURES if any(name in c.scores for c in fitted)]
    headers = ["model", *(FIGURES[name][0] for name in names)]
    headers += ["minus majority, %", "fit, s", "predict, s"]
    return headers, [figures_of(contender, names) for contender in fitted]


def figures_of(contender: Contender, names: Sequence[str]) -> list[str]:
    """Return the row of one model."""
    cells = [plus_minus(contender.scores.get(name), FIGURES[name][1]) for name in names]
    gain = contender.gain.get("error")
    times = [f"{s:.2g}" if s is not None else "" for s in (contender.fit_seconds, contender.predict_seconds)]
    return [contender.name, *cells, plus_minus(gain, FIGURES["error"][1]), *times]


def plus_minus(score: Score | None, digits: int) -> str:
    """Return a figure and its standard error; nothing if it cannot be had."""
    if score is None or score.value is None:
        return ""
    error = "" if score.error is None else f" ± {score.error:.{digits}f}"
    return f"{score.value:.{digits}f}{error}"


def trust(report: Report) -> Iterator[str]:
    """Yield what says whether the best model can be trusted."""
    yield from ("## Is it trustworthy?", "", "Held-out rows by true class (down) and answer (across):", "")
    rows = [[label, *map(str, line)] for label, line in zip(report.labels, report.confusion, strict=True)]
    yield from table(["", *report.labels], rows)
    yield from ("", "Confidence and share of right answers:", "")
    bins = [
        [f"{b.predicted:.3f}", f"{b.observed:.3f}", f"{b.low:.3f} to {b.high:.3f}", str(b.rows)]
        for b in report.reliability
    ]
    yield from table(["predicted", "observed", "95 % interval", "rows"], bins)
    yield ""
    if report.surest_wrong:
        yield from ("Surest and wrong:", "", *map(row_line, report.surest_wrong), "")


def row_line(row: RowExample) -> str:
    """Return a row, its answer and what its cells contributed, as an item of a list."""
    answer = f"- row {row.row}: {text(row.predicted)} ({row.probability:.3f}), in truth {text(row.truth)}"
    odds = row.log_odds
    if odds is None:
        return answer
    cells = [
        f"{text(c.column)} = {text(c.value) or 'missing'} ({c.contribution:+.2f}{plus_minus_error(c)})"
        for c in row.cells
    ]
    if odds.other_columns:
        cells.append(f"other columns ({odds.others:+.2f})")
    classes = f"{text(odds.positive)} against {text(odds.negative)}"
    return (
        f"{answer}; log-odds of {classes}: prior ({odds.prior:+.2f}), {', '.join(cells)}; total "
        f"{odds.total:+.2f}"
    )


def plus_minus_error(cell: CellContribution) -> str:
    """Return the standard error of a contribution; nothing if nothing was drawn."""
    return f" ± {cell.standard_error:.2f}" if cell.standard_error else ""


def drivers(report: Report) -> Iterator[str]:
    """Yield what drives the best model."""
    yield from ("## What drives it?", "")
    if not report.explained:
        yield from ("Some rows are too far from the training rows to be explained.", "")
    if report.contributions:
        yield from (
            f"Mean size of each column's part in the log-odds of {text(report.explained)} ({report.method}), "
            "and the held-out error of the column alone:",
            "",
        )
        rows = [
            [
                c.column,
                "not read" if c.contribution is None else f"{c.contribution:.3f}",
                "" if c.error_alone is None else f"{c.error_alone:.1f}",
            ]
            for c in report.contributions
        ]
        yield from table(["column", "contribution", "error alone, %"], rows)
        yield ""
    if report.examples:
        yield from (f"Answers of {text(report.explained)}:", "", *map(row_line, report.examples), "")
    if report.moved:
        yield from (f"Parameters of {text(report.moved_in)} that calibration moved most:", "")
        rows = [[m.name, m.label, f"{m.before:.4g}", f"{m.after:.4g}"] for m in report.moved]
        yield from table(["parameter", "class", "closed form", "calibrated"], rows)
        yield ""


def data_lines(report: Report) -> Iterator[str]:
    """Yield the findings and the columns."""
    yield from ("## What is wrong with the data or the model?", "")
    if not report.findings:
        yield "Nothing was found."
    for finding in report.findings:
        about = CODES[finding.code]
        yield f"- **{finding.code} {about.name}** ({finding.severity}): {text(finding.message)}"
        yield f"  {about.meaning} When not to worry: {about.when_not_to_worry} What to do: {about.what_to_do}"
    yield from ("", "### Columns", "")
    rows = [
        [c.name, c.kind, ", ".join(c.encoded) or c.reason, f"{100 * c.missing:.1f}", str(c.distinct or "")]
        for c in report.data.columns
    ]
    yield from table(["column", "kind", "read as, or why not", "missing, %", "distinct"], rows)
    yield ""


def run_lines(report: Report) -> Iterator[str]:
    """Yield how to run it again."""
    run = report.run
    yield from ("## How to run it again", "")
    if run.command:
        yield from ("```", printable(run.command), "```", "")
    packages = ", ".join(f"{name} {number}" for name, number in run.versions.items())
    yield f"Seed {run.seed}; {text(packages)}; begun {text(run.started)}, {run.seconds:.1f} s."
    if report.data.sha256:
        yield from ("", f"SHA-256 of the file: {text(report.data.sha256)}")


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    yield "| " + " | ".join(map(text, headers)) + " |"
    yield "| --- " + "| ---: " * (len(headers) - 1) + "|"
    for row in rows:
        yield "| " + " | ".join(map(text, row)) + " |"


def text(value: str) -> str:
    """Return a user's text such that it stays text, and in its line."""
    plain = printable(" ".join(value.split()))
    for sign in ("\\", "`", "*", "_", "|", "<", ">", "[", "]", "#", "&", "~"):
        plain = plain.replace(sign, "\\" + sign)
    return plain
