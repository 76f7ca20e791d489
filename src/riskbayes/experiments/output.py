"""Files of a reproduction: the tables in four forms, the figures, the page."""

from __future__ import annotations

from pathlib import Path

from riskbayes.experiments import render
from riskbayes.experiments.figures import all_figures
from riskbayes.experiments.longtable import read_folder
from riskbayes.experiments.page import results_page
from riskbayes.experiments.report import Section, page, svg_source
from riskbayes.experiments.results import Results
from riskbayes.experiments.tables import all_tables, headline


def write_report(folder: Path, out: Path) -> list[str]:
    """Write tables, figures and the page of the long tables in a folder.

    Parameters
    ----------
    folder : Path
        Where the long tables are: every CSV file in it.
    out : Path
        Gets `tables/`, `figures/` and `index.html`.

    Returns
    -------
    lines : list of str
        The headline, in sentences.
    """
    results = Results(read_folder(folder))
    found, pictures = all_tables(results), all_figures(results)
    for name in ("tables", "figures"):
        (out / name).mkdir(parents=True, exist_ok=True)
    for table in found:
        html = page(table.title, "", [Section(table.title, f"{render.as_html(table)}\n<p>{table.note}</p>")])
        forms = {
            "txt": render.as_text(table),
            "csv": render.as_csv(table),
            "tex": render.as_latex(table),
            "html": html,
        }
        for ending, content in forms.items():
            (out / "tables" / f"{table.name}.{ending}").write_text(content, encoding="utf-8")
    drawn = [(picture, svg_source(picture.draw(), picture.name)) for picture in pictures]
    for picture, svg in drawn:
        (out / "figures" / f"{picture.name}.svg").write_text(svg, encoding="utf-8")
    (out / "index.html").write_text(results_page(results, found, drawn), encoding="utf-8")
    return headline(results)
