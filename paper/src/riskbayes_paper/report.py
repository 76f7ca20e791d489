"""Write the report of a reproduction: its tables in four forms, its figures, its page, its documentation.

The page has tables that sort and filter, figures, and a page for each data set.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from riskbayes.markup import element
from riskbayes.new_files import write_files
from riskbayes.pages.shell import Section, page
from riskbayes.pages.table import Cell, Table, as_html
from riskbayes_paper import ExperimentError, tables
from riskbayes_paper import learner_tables as learners
from riskbayes_paper.datasets import PAPER_SETS
from riskbayes_paper.figures import BANDED, Picture, all_figures
from riskbayes_paper.files import reading
from riskbayes_paper.longtable import read_folder
from riskbayes_paper.paper_tables import agreement, only_in_train, paper_table, three_columns
from riskbayes_paper.protocols import ESTIMATES, LEARNERS, LR, MAX_ITER, MODELS, PROTOCOLS, STRATEGIES
from riskbayes_paper.published import PAPER_TABLES
from riskbayes_paper.results import Results
from riskbayes_paper.svg import embed_svg, svg_source
from riskbayes_paper.tables import Measured, as_markdown, markdown_rows

TITLE = "Risk-based calibration: the paper's experiments, measured again"
NOT_PROBABILITY = (
    '<p class="note">“Calibration” here adjusts the statistics of the model; it is not probability '
    "calibration (Platt, isotonic).</p>"
)
COMMANDS = """\
riskbayes reproduce --data-dir FOLDER          # run what the table lacks, then make this page
riskbayes reproduce --models family            # the rows of RiskBayesClassifier
riskbayes reproduce report RESULTS --out HERE  # make this page from tables that are there"""

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
            write_files({out / "tables" / f"{table.name}.{ending}": form(table)})
    drawn = [(picture, svg_source(picture.draw(), picture.name)) for picture in all_figures(results)]
    for picture, svg in drawn:
        write_files({out / "figures" / f"{picture.name}.svg": svg})
    write_files({out / "index.html": results_page(results, found, drawn)})
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


def results_page(results: Results, found: list[Table], pictures: list[tuple[Picture, str]]) -> str:
    """Return the page of these results, of their tables, and of their pictures with the SVG of each."""
    links = {results.label(name): f"#{set_id(name)}" for name in results.sets}
    blocks = {table.name: table_block(table, links) for table in found}
    drawn = [(picture, picture_block(picture, svg)) for picture, svg in pictures]

    def chosen(*parts: str) -> str:
        return "\n".join(html for name, html in blocks.items() if any(part in name for part in parts))

    in_papers_form = {f"{table}_{protocol}" for table in PAPER_TABLES for protocol in PROTOCOLS}
    paper = "\n".join(html for name, html in blocks.items() if name in in_papers_form)
    overview = "\n".join(html for picture, html in drawn if not picture.data_set)
    sections = [
        Section("Is RC better?", chosen("headline"), "headline"),
        Section("Published, held-out, in-train", intro(results) + chosen("agreement", "three"), "columns"),
        Section("The paper's tables", chosen("summary_paper") + paper, "tables"),
        Section("Every learner", chosen("summary_default", "_learners_", "_differences_"), "learners"),
        Section("A family of models", blocks.get("family", ""), "family"),
        Section("Figures", f'<div class="pictures">\n{overview}\n</div>', "figures"),
        Section("Data sets", table_block(data_sets(results), links), "sets"),
        Section("What was run, and how to run it again", settings(results), "settings"),
    ]
    sections = [section for section in sections if section.body.strip()]
    menu = "".join(f'<li><a href="#{s.name}">{escape(s.heading)}</a></li>' for s in sections)
    lead = (
        "<p>What the paper prints, beside what this library measures on the same data sets. A figure is "
        "<em>held out</em> unless the word <em>in-train</em> stands on it: "
        + "; ".join(f"<em>{name}</em> is {escape(words)}" for name, words in PROTOCOLS.items())
        + f".</p>\n<p>{escape(results.coverage)}.</p>\n{NOT_PROBABILITY}\n<nav><ul>{menu}</ul></nav>\n"
        + tools(results)
    )
    sections += [set_page(results, name, drawn) for name in results.sets]
    return page(TITLE, lead, sections, resource("interactive.css"), resource("interactive.js"))


def resource(name: str) -> str:
    """Return the text of a file that lies beside this one."""
    return (files(__package__) / name).read_text(encoding="utf-8")


def set_id(name: str) -> str:
    """Return the address of a set's page."""
    return f"set-{name}"


def table_block(table: Table, links: dict[str, str]) -> str:
    """Return a table with its title and note."""
    html = as_html(table, links)
    body = f'<h3>{escape(table.title)}</h3>\n{html}\n<p class="small">{escape(table.note)}</p>'
    return element("div", body, **{"data-protocol": table.protocol})


def picture_block(picture: Picture, source: str) -> str:
    """Return a figure; a set's own say in themselves what they show."""
    svg = embed_svg(source, picture.caption, picture.name)
    caption = "" if picture.data_set else f"<figcaption>{escape(picture.caption)}</figcaption>"
    protocol = next((name for name in PROTOCOLS if picture.name.endswith(name)), "")
    kind = "light wide" if picture.name == "toy" else ""  # drawn in black, two panels side by side
    return element("figure", caption + svg, **{"class": kind, "data-protocol": protocol})


def tools(results: Results) -> str:
    """Return what one filters and chooses by."""
    labels = {set_id(name): escape(results.label(name)) for name in results.sets}
    names = "".join(element("option", label, value=value) for value, label in labels.items())
    kinds = "".join(element("option", name, value=name) for name in results.protocols)
    return (
        '<div class="tools"><label>Filter rows <input id="filter" type="search" placeholder="iris"></label>\n'
        f'<label>Protocol <select id="protocol"><option value="">both</option>{kinds}</select></label>\n'
        f'<label>Data set <select id="chooser"><option value="">all</option>{names}</select></label></div>'
    )


def intro(results: Results) -> str:
    """Return what the marks mean, and where the published figures agree with one protocol only."""
    words = "stands where the measured mean and the published figure are more than two points apart"
    lines = "".join(f"<li>{escape(line)}</li>" for line in only_in_train(results))
    return f"<p>The mark {tables.FAR_MARK} {words}.</p>\n" + (f"<ul>{lines}</ul>\n" if lines else "")


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


def settings(results: Results) -> str:
    """Return versions, engines, settings and commands, all from the long table."""
    rows = results.rows
    versions = ", ".join(sorted({row.version for row in rows}))
    engines = ", ".join(
        f"{engine} ({', '.join(dict.fromkeys(r.unit.set for r in rows if r.engine == engine))})"
        for engine in sorted({row.engine for row in rows})
    )
    dates = sorted(row.finished for row in rows)
    facts = {
        "Version": f"riskbayes {versions}",
        "Fits": f"{len(rows)} units, finished {dates[0]} to {dates[-1]}",
        "Engines": engines,
        "Splits": "random 75/25 splits with seeds 0, 1, ...; bins and scales see training rows only",
        "Learners": f"learning rate {LR:g} for RC (paper), GD and DFE; at most {MAX_ITER} scans",
        "Models": "; ".join(f"{name}: {words}" for name, words in {**MODELS, **ESTIMATES}.items()),
    }
    listed = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in facts.items())
    used = {(u.model, u.estimate, u.learner): row.settings for row in rows for u in [row.unit]}
    words = {**LEARNERS, **STRATEGIES}
    cells = [
        [model.upper(), "" if learner in STRATEGIES else estimate.upper(), words[learner], classifier]
        for (model, estimate, learner), classifier in sorted(
            used.items(), key=lambda item: (item[0][0], item[0][1] == "map", list(words).index(item[0][2]))
        )
    ]
    table = Table(["model", "estimate", "learner", "classifier"], cells, "Settings", name="settings")
    return f"<dl>{listed}</dl>\n<pre>{escape(COMMANDS)}</pre>\n{as_html(table)}"


def set_page(results: Results, name: str, drawn: list[tuple[Picture, str]]) -> Section:
    """Return everything about one data set."""
    paper, label = PAPER_SETS[name], results.label(name)
    own = next(row for row in results.rows if row.unit.set == name)
    rows: list[list[Cell]] = [
        [setting.title, setting.protocol, *cells]
        for setting in results.settings
        if (cells := results.error_cells(name, [(setting, learner) for learner in LEARNERS]))
    ]
    note = "In percent, mean ± standard deviation over splits."
    headers = ["model", "protocol", *LEARNERS.values()]
    table = Table(headers, rows, f"{label}: test errors", note, f"set_{name}")
    facts = (
        f"{own.m} rows, {own.n} features, {own.classes} classes (the paper: {paper.m} x {paper.n}). "
        f"{paper.origin}; licence: {paper.licence}; read from: {own.source}."
    )
    panels = "\n".join(html for picture, html in drawn if picture.data_set == name)
    body = (
        f'<p class="back"><a href="#sets">All data sets</a></p>\n<p>{escape(facts)}</p>\n'
        f"<pre>riskbayes reproduce --data-dir FOLDER --sets {escape(name)}</pre>\n{table_block(table, {})}\n"
        f"<p>Along the iterations, held out: median over splits, and the range of {LEARNERS[BANDED]}. A "
        "learner that stopped stays with the model it kept.</p>\n"
        f'<div class="pictures paths">\n{panels}\n</div>'
    )
    return Section(label, body, set_id(name), "set")
