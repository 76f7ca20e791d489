"""Write the report of a reproduction: its tables in four forms, its figures, its page, its documentation.

The page has tables that sort and filter, figures, and a page for each data set.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from riskbayes.new_files import write_files
from riskbayes.pages.shell import environment
from riskbayes.pages.table import Cell, Table
from riskbayes_paper import ExperimentError, tables
from riskbayes_paper import learner_tables as learners
from riskbayes_paper.datasets import PAPER_SETS
from riskbayes_paper.figures import BANDED, all_figures
from riskbayes_paper.files import reading
from riskbayes_paper.paper_tables import agreement, only_in_train, paper_table, three_columns
from riskbayes_paper.protocols import ESTIMATES, LEARNERS, LR, MAX_ITER, MODELS, PROTOCOLS, STRATEGIES
from riskbayes_paper.published import PAPER_TABLES
from riskbayes_paper.results import Results
from riskbayes_paper.rows import read_folder
from riskbayes_paper.svg import embed_svg, svg_source
from riskbayes_paper.tables import Measured, as_markdown, markdown_rows

IN_DOC = ("agreement", "summary_default", "family", "qda_ml_three_columns", "nb_ml_three_columns")
"""Tables of the documentation page, below the headline."""

BEGIN, END = "<!-- begin: made by `make reproduce` -->", "<!-- end: made by `make reproduce` -->"
BEGIN_HEADLINE = "<!-- begin: the headline, made by `make reproduce` -->"
END_HEADLINE = "<!-- end: the headline, made by `make reproduce` -->"
MARKS = ((BEGIN_HEADLINE, END_HEADLINE), (BEGIN, END))
"""Of a page that takes the headline alone, and of one that takes it with a few tables."""

TEMPLATES = environment(__package__)
TEMPLATES.globals |= {"PROTOCOLS": PROTOCOLS, "FAR_MARK": tables.FAR_MARK}


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
            write_files({out / "tables" / f"{table.name}.{ending}": form(table)})
    pictures = []
    for picture in all_figures(results):
        source = svg_source(picture.draw(), picture.name)
        write_files({out / "figures" / f"{picture.name}.svg": source})
        pictures.append({**picture._asdict(), "svg": embed_svg(source, picture.caption)})
    write_files({out / "index.html": results_page(results, found, pictures)})
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
    return TEMPLATES.get_template("table.html").render(table=table)


def doc_part(first: Table, lines: list[str], found: list[Table]) -> str:
    """Return the headline and a few tables, in Markdown."""
    shown = [as_markdown(table) for name in IN_DOC for table in found if table.name == name]
    return "\n".join([as_markdown(first), *(f"- {line}" for line in lines), "", *shown, tables.LEGEND])


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
    write_files({doc: text})


def results_page(results: Results, found: list[Table], pictures: list[dict[str, Any]]) -> str:
    """Return the page of these results, of their tables, and of their pictures with the SVG of each."""

    def chosen(*parts: str) -> list[Table]:
        return [table for table in found if any(part in table.name for part in parts)]

    paper = [f"{table}_{protocol}" for table in PAPER_TABLES for protocol in PROTOCOLS]
    sections = [
        ("headline", "Is RC better?", chosen("headline")),
        ("columns", "Published, held-out, in-train", chosen("agreement", "three")),
        ("tables", "The paper's tables", [*chosen("summary_paper"), *(t for t in found if t.name in paper)]),
        ("learners", "Every learner", chosen("summary_default", "_learners_", "_differences_")),
        ("family", "A family of models", [table for table in found if table.name == "family"]),
        ("figures", "Figures", pictures),
        ("sets", "Data sets", [data_sets(results)]),
        ("settings", "What was run, and how to run it again", [settings(results)]),
    ]
    return TEMPLATES.get_template("page.html").render(
        results=results,
        sections=[section for section in sections if section[-1]],
        pictures=pictures,
        links={results.label(name): f"#set-{name}" for name in results.sets},
        lines=only_in_train(results),
        facts=facts(results),
        sets=[of_set(results, name) for name in results.sets],
        banded=LEARNERS[BANDED],
    )


def data_sets(results: Results) -> Table:
    """Return the paper's sets, those that are missing too."""
    rows: list[list[Cell]] = []
    for paper in PAPER_SETS.values():
        own = [row for row in results.rows if row.unit.set == paper.name]
        label = results.label(paper.name) if own else f"{paper.name.replace('_', ' ')} (missing)"
        found = [own[0].m, own[0].n, own[0].classes] if own else [None] * 3
        numbers = [*found, paper.m, len({row.unit.split for row in own})]
        cells = [Measured(None if n is None else float(n), digits=0) for n in numbers]
        rows.append([label, *cells, paper.origin, own[0].source if own else "-", paper.licence])
    sizes = ["rows", "features", "classes", "paper's rows", "splits"]
    headers = ["data set", *sizes, "origin", "from", "licence"]
    return Table(headers, rows, "The paper's data sets", f"{results.coverage}.", "data_sets")


def facts(results: Results) -> dict[str, str]:
    """Return what was run, by versions, engines and settings, all from the long table."""
    rows = results.rows
    versions = ", ".join(sorted({row.version for row in rows}))
    engines = ", ".join(
        f"{engine} ({', '.join(dict.fromkeys(r.unit.set for r in rows if r.engine == engine))})"
        for engine in sorted({row.engine for row in rows})
    )
    dates = sorted(row.finished for row in rows)
    return {
        "Version": f"riskbayes {versions}",
        "Fits": f"{len(rows)} units, finished {dates[0]} to {dates[-1]}",
        "Engines": engines,
        "Splits": "random 75/25 splits with seeds 0, 1, ...; bins and scales see training rows only",
        "Learners": f"learning rate {LR:g} for RC (paper), GD and DFE; at most {MAX_ITER} scans",
        "Models": "; ".join(f"{name}: {words}" for name, words in {**MODELS, **ESTIMATES}.items()),
    }


def settings(results: Results) -> Table:
    """Return the classifiers that were fitted, with their settings."""
    used = {(u.model, u.estimate, u.learner): row.settings for row in results.rows for u in [row.unit]}
    words = {**LEARNERS, **STRATEGIES}
    cells = [
        [model.upper(), "" if learner in STRATEGIES else estimate.upper(), words[learner], classifier]
        for (model, estimate, learner), classifier in sorted(
            used.items(), key=lambda item: (item[0][0], item[0][1] == "map", list(words).index(item[0][2]))
        )
    ]
    return Table(["model", "estimate", "learner", "classifier"], cells, "Settings", name="settings")


def of_set(results: Results, name: str) -> dict[str, Any]:
    """Return everything about one data set."""
    label = results.label(name)
    rows: list[list[Cell]] = [
        [setting.title, setting.protocol, *cells]
        for setting in results.settings
        if (cells := results.error_cells(name, [(setting, learner) for learner in LEARNERS]))
    ]
    note = "In percent, mean ± standard deviation over splits."
    headers = ["model", "protocol", *LEARNERS.values()]
    table = Table(headers, rows, f"{label}: test errors", note, f"set_{name}")
    own = next(row for row in results.rows if row.unit.set == name)
    return {"name": name, "label": label, "own": own, "paper": PAPER_SETS[name], "table": table}
