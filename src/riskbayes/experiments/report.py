"""Write the report of a reproduction: its tables in four forms, its figures, its page, its documentation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from riskbayes.experiments import ExperimentError, tables
from riskbayes.experiments import learner_tables as learners
from riskbayes.experiments.figures import all_figures
from riskbayes.experiments.files import reading
from riskbayes.experiments.longtable import read_folder
from riskbayes.experiments.page import Section, page
from riskbayes.experiments.paper_tables import agreement, only_in_train, paper_table, three_columns
from riskbayes.experiments.published import PAPER_TABLES
from riskbayes.experiments.results import Results
from riskbayes.experiments.results_page import results_page
from riskbayes.experiments.svg import svg_source
from riskbayes.experiments.tables import LEGEND, Table, as_html, as_markdown, markdown_rows

IN_DOC = ("agreement", "summary_default", "family", "qda_ml_three_columns", "nb_ml_three_columns")
"""Tables of the documentation page, below the headline."""

BEGIN, END = "<!-- begin: made by `make reproduce` -->", "<!-- end: made by `make reproduce` -->"
BEGIN_HEADLINE = "<!-- begin: the headline, made by `make reproduce` -->"
END_HEADLINE = "<!-- end: the headline, made by `make reproduce` -->"
MARKS = ((BEGIN_HEADLINE, END_HEADLINE), (BEGIN, END))
"""Of a page that takes the headline alone, and of one that takes it with a few tables."""


def write_report(folder: Path, out: Path, docs: Sequence[Path] = ()) -> tuple[Table, list[str]]:
    """Write `tables/`, `figures/` and `index.html` of the long tables in a folder: every CSV file in it.

    The part of the Markdown pages `docs` between two marks is written anew. Returned are the headline, which
    is RC against its first rivals, and sentences on where published figures agree with one protocol only.
    """
    for doc in docs:
        check_marks(doc)
    results = Results(read_folder(folder))
    if not results.rows:
        raise ExperimentError(
            f"The tables in {str(folder)!r} have no results. Run riskbayes reproduce --out {folder} first."
        )
    found = all_tables(results)
    for name in ("tables", "figures"):
        (out / name).mkdir(parents=True, exist_ok=True)
    for table in found:
        forms = {"txt": tables.as_text, "csv": tables.as_csv, "tex": tables.as_latex, "html": table_page}
        for ending, form in forms.items():
            (out / "tables" / f"{table.name}.{ending}").write_text(form(table), encoding="utf-8")
    drawn = [(picture, svg_source(picture.draw(), picture.name)) for picture in all_figures(results)]
    for picture, svg in drawn:
        (out / "figures" / f"{picture.name}.svg").write_text(svg, encoding="utf-8")
    (out / "index.html").write_text(results_page(results, found, drawn), encoding="utf-8")
    first, lines = learners.headline(results), only_in_train(results)
    for doc in docs:
        write_parts(doc, markdown_rows(first), doc_part(first, lines, found))
    return first, lines


def all_tables(results: Results) -> list[Table]:
    """Return every table that these results can fill."""
    found = [learners.headline(results), learners.default_summary(results), learners.paper_summary(results)]
    found += [agreement(results), learners.family_table(results)]
    found += [three_columns(results, name, paper) for name, paper in PAPER_TABLES.items()]
    for protocol in results.protocols:
        found += [paper_table(results, name, paper, protocol) for name, paper in PAPER_TABLES.items()]
    for setting in results.settings:
        found += [learners.learner_table(results, setting), learners.difference_table(results, setting)]
    return [table for table in found if table.rows]


def table_page(table: Table) -> str:
    """Return a table as a page of its own."""
    return page(table.title, "", [Section(table.title, f"{as_html(table)}\n<p>{table.note}</p>")])


def doc_part(first: Table, lines: list[str], found: list[Table]) -> str:
    """Return the headline and a few tables, in Markdown."""
    shown = [as_markdown(table) for name in IN_DOC for table in found if table.name == name]
    return "\n".join([as_markdown(first), *(f"- {line}" for line in lines), "", *shown, LEGEND])


def check_marks(doc: Path) -> str:
    """Return the text of a page that has marks; refuse another one."""
    with reading(doc):
        text = doc.read_text(encoding="utf-8")
    pairs = [(text.count(begin), text.count(end)) for begin, end in MARKS]
    if (1, 1) not in pairs or not set(pairs) <= {(0, 0), (1, 1)}:
        raise ExperimentError(f"{doc} must have one line {BEGIN!r}, and one {END!r} below it.")
    return text


def write_parts(doc: Path, *parts: str) -> None:
    """Put texts between the marks of a page, each between its own."""
    text = check_marks(doc)
    for (begin, end), part in zip(MARKS, parts, strict=True):
        if begin in text:
            before, after = text[: text.index(begin)], text[text.index(end) :]
            text = f"{before}{begin}\n\n{part}\n\n{after}"
    doc.write_text(text, encoding="utf-8")
