"""Figures, files and the page, the last in a real browser where there is one."""

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from html_checks import checked
from riskbayes.cli import main
from riskbayes_paper.datasets import STAND_IN
from riskbayes_paper.results import Results, Setting
from riskbayes_paper.rows import read_folder
from riskbayes_paper.tables import markdown_rows

from .test_reproduce_tables import made_up, write_table

figures = pytest.importorskip("riskbayes_paper.figures")
pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The folder of a report on made-up results."""
    folder, out = tmp_path_factory.mktemp("results"), tmp_path_factory.mktemp("report")
    rows = made_up(("iris", "sonar", "mnist"))
    write_table(folder / "results.csv", rows[: len(rows) // 2])
    write_table(folder / "more.csv", rows[len(rows) // 2 :])
    result = CliRunner().invoke(main, ["reproduce", "report", str(folder), "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert "held-out  Naive Bayes by ML     0 / 0 / 3  3 / 0 / 0  3 / 0 / 0" in result.stdout
    assert result.stdout.splitlines()[-1] == f"The page: {out / 'index.html'}"
    return out


def test_files(report):
    names = {path.stem for path in (report / "tables").iterdir()}
    assert {
        "summary_default",
        "agreement",
        "qda_ml_held-out",
        "dfe_in-train",
        "nb_map_three_columns",
    } <= names
    for name in names:
        for ending in ("txt", "csv", "tex", "html"):
            text = (report / "tables" / f"{name}.{ending}").read_text(encoding="utf-8")
            assert text.strip()
            if ending == "html":
                checked(text)
            if ending == "csv":
                assert len({len(line) for line in csv.reader(io.StringIO(text))}) == 1
    pictures = {path.stem for path in (report / "figures").iterdir()}
    assert len([name for name in pictures if name.startswith("paths_")]) == 3 * 4
    assert len([name for name in pictures if name.startswith("ranks_")]) == 8
    assert {"scatter_held-out", "scatter_in-train", "toy"} <= pictures


def test_stand_ins_are_named_in_their_figures(report):
    for name in ("paths_mnist_qda_ml", "scatter_held-out", "ranks_qda_ml_held-out"):
        assert STAND_IN in (report / "figures" / f"{name}.svg").read_text(encoding="utf-8")
    assert STAND_IN not in (report / "figures" / "paths_iris_qda_ml.svg").read_text(encoding="utf-8")


def test_page_is_whole_and_needs_no_network(report):
    html = (report / "index.html").read_text(encoding="utf-8")
    tags = checked(html.replace('<input id="filter" type="search" placeholder="iris">', "")).tags
    assert tags.count("svg") == len(list((report / "figures").iterdir()))
    assert "src=" not in html
    assert "http" not in html.replace("http-equiv", "")
    assert "3 of 20 data sets; SqueezeNet stand-in: mnist; missing: climate_model" in html
    assert "yearbook (missing)" in html
    assert "mnist (SqueezeNet stand-in)" in html


def test_report_without_results(tmp_path):
    result = CliRunner().invoke(main, ["reproduce", "report", str(tmp_path)])
    assert result.exit_code == 2
    assert "run riskbayes reproduce first" in result.stderr


def test_paths_show_every_median_and_one_range():
    """Bands of several learners would hide each other."""
    results = Results(made_up(("iris",), splits=3))
    setting = Setting("qda", "ml", "held-out")
    upper, lower = figures.paths(results, "iris", setting).axes
    assert len(upper.lines) == len(lower.lines) == len(results.learners(setting)) > 5
    assert len(upper.collections) == len(lower.collections) == 1
    line = next(line for line in upper.lines if line.get_label() == "RC (paper)")
    assert line.get_ydata() == pytest.approx(np.full(65, 24))  # of 23, 24, 25
    band = upper.collections[0].get_paths()[0].vertices
    assert (band[:, 1].min(), band[:, 1].max()) == pytest.approx((26, 28))  # of RC (default)
    soft = next(line for line in lower.lines if line.get_label() == "RC (paper)")
    ends = [row.soft_error[-1] for row in results.of("iris", setting, "rc_paper")]
    assert soft.get_ydata()[-1] == pytest.approx(100 * np.median(ends))
    for ax in (upper, lower):
        low, high = ax.get_ylim()
        assert low <= ax.dataLim.y0
        assert high >= ax.dataLim.y1


def test_a_page_of_nineteen_sets_is_light(report):
    """A picture of paths takes what matplotlib writes, without what no page needs: there are dozens."""
    sizes = [path.stat().st_size for path in (report / "figures").glob("paths_*.svg")]
    assert max(sizes) < 16_000


def test_critical_difference():
    # The table of Demsar (2006): q at 5 % is 1.960 for two, 2.343 for three, 2.850 for six.
    for k, q in ((2, 1.960), (3, 2.343), (6, 2.850)):
        assert figures.critical_distance(k, 14) == pytest.approx(q * np.sqrt(k * (k + 1) / 84), abs=2e-3)
    assert figures.cliques(np.array([1.0, 2.0, 3.5, 4.0]), 1.2) == [(0, 1), (2, 3)]
    assert figures.cliques(np.array([1.0, 2.0, 3.0]), 2.0) == [(0, 2)]
    assert figures.cliques(np.array([1.0, 3.0]), 1.0) == []


@pytest.fixture
def page(browser, report):
    browser.resize(1400, 1000)
    browser.errors.clear()
    browser.open((report / "index.html").as_uri())
    yield browser
    assert browser.errors == []


TABLE = 'document.getElementById("table-qda_ml_held-out")'
FIRST = f"[...{TABLE}.tBodies[0].rows].map(row => row.cells[0].textContent)"
SHOWN = (
    f"[...{TABLE}.tBodies[0].rows].filter(row => row.offsetHeight > 0).map(row => row.cells[0].textContent)"
)


def test_page_loads(page, report):
    assert page.run("document.title").startswith("Risk-based calibration")
    assert page.run("document.querySelectorAll('svg').length") == len(list((report / "figures").iterdir()))
    seen = (
        "[...document.querySelectorAll('#figures svg')].every(svg => svg.getBoundingClientRect().height > 50)"
    )
    assert page.run(seen)


def test_sort(page):
    rows = page.run(FIRST)
    assert rows == ["iris", "sonar", "mnist (SqueezeNet stand-in)", "average rank"]
    click = f"{TABLE}.tHead.rows[0].cells[0].querySelector('button').click()"
    page.run(click)
    assert page.run(FIRST) == ["iris", "mnist (SqueezeNet stand-in)", "sonar", "average rank"]
    page.run(click)
    assert page.run(FIRST) == ["sonar", "mnist (SqueezeNet stand-in)", "iris", "average rank"]
    assert page.run(f"{TABLE}.tHead.rows[0].cells[0].getAttribute('aria-sort')") == "descending"


def test_sort_by_number(page):
    table = 'document.getElementById("table-data_sets")'
    page.run(f"{table}.tHead.rows[0].cells[4].querySelector('button').click()")
    sizes = page.run(f"[...{table}.tBodies[0].rows].map(row => Number(row.cells[4].dataset.sort))")
    assert sizes == sorted(sizes)
    assert len(sizes) == 20


def type_in(words):
    return f"filter.value = '{words}'; filter.dispatchEvent(new Event('input'))"


def test_filter(page):
    page.run(type_in("SONAR"))
    assert page.run(SHOWN) == ["sonar", "average rank"]
    page.run(type_in(""))
    assert len(page.run(SHOWN)) == 4


def test_protocol(page):
    page.run("protocol.value = 'in-train'; protocol.dispatchEvent(new Event('change'))")
    assert page.run(SHOWN) == []
    assert page.run("document.getElementById('table-qda_ml_in-train').offsetHeight") > 0
    rows = "[...document.querySelectorAll('#table-summary_default tbody tr')].filter(row => !row.hidden)"
    assert set(page.run(f"{rows}.map(row => row.cells[0].textContent)")) == {"in-train"}


def test_pages_of_the_sets(page, report):
    assert page.run("[...document.querySelectorAll('section.set')].every(s => s.hidden)")
    page.run("chooser.value = 'set-sonar'; chooser.dispatchEvent(new Event('change'))")
    page.open((report / "index.html").as_uri() + page.run("location.hash"))
    assert page.run(
        "[...document.querySelectorAll('section.set')].filter(s => !s.hidden).map(s => s.id)"
    ) == ["set-sonar"]
    assert page.run("document.querySelectorAll('#set-sonar svg').length") == 4
    assert page.run("document.getElementById('headline').offsetHeight") == 0


def test_narrow_and_print(page, report):
    page.resize(390, 800)
    page.open((report / "index.html").as_uri())
    assert page.run("document.documentElement.scrollWidth") == 390  # tables scroll in themselves
    assert page.pdf().startswith(b"%PDF")


DRAWN = "new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))"
CUT = "[...document.querySelectorAll('.scroll, figure.wide')].filter(b => b.scrollWidth > b.clientWidth)"
HINT = "getComputedStyle(b, '::before').content.includes('scroll sideways')"


@pytest.mark.parametrize("width", [390, 360])
def test_a_phone_shows_the_answer_and_says_where_there_is_more(page, report, width):
    page.resize(width, 800)
    page.open((report / "index.html").as_uri())
    page.run(DRAWN)
    box = "document.getElementById('table-headline').parentElement"
    assert page.run(f"{box}.scrollWidth <= {box}.clientWidth")
    hints = page.run(f"{CUT}.map(b => {HINT})")
    assert len(hints) > 10
    assert all(hints)
    page.open((report / "index.html").as_uri() + "#set-sonar")
    page.run(DRAWN)
    assert page.run(f"{CUT}.map(b => {HINT})") == [True]
    widths = "[...document.querySelectorAll('#set-sonar svg')].map(svg => svg.getBoundingClientRect().right)"
    assert max(page.run(widths)) <= width


def test_a_wide_screen_has_no_hint(page):
    page.run(DRAWN)
    assert page.run(f"{CUT}.length") == 0
    assert page.run("document.querySelectorAll('.more').length") == 0


def test_summary_in_documentation_pages(tmp_path):
    from riskbayes_paper.report import BEGIN, BEGIN_HEADLINE, END, END_HEADLINE, write_report

    write_table(tmp_path / "results.csv", made_up(("sonar",), splits=1))
    docs = tmp_path / "doc.md", tmp_path / "readme.md"
    docs[0].write_text(f"# Before\n\n{BEGIN}\nstale words\n{END}\n\nAfter.\n")
    docs[1].write_text(f"# Before\n\n{BEGIN_HEADLINE}\nstale words\n{END_HEADLINE}\n\nAfter.\n")
    first, lines = write_report(tmp_path, tmp_path / "out", docs)
    once = [doc.read_text(encoding="utf-8") for doc in docs]
    for text in once:
        assert text.startswith("# Before\n\n")
        assert text.endswith("\n\nAfter.\n")
        assert "stale" not in text
        assert f"\n\n{markdown_rows(first)}\n" in text
    assert all(f"- {line}" in once[0] for line in lines)
    assert "| sonar | 28 |" in once[0]
    assert "sonar" not in once[1]
    write_report(tmp_path, tmp_path / "out", docs)
    assert [doc.read_text(encoding="utf-8") for doc in docs] == once
    for wrong in ("no marks", f"{BEGIN}\n{BEGIN}\n{END}", f"{BEGIN}\n{END}\n{BEGIN_HEADLINE}"):
        docs[0].write_text(wrong)
        with pytest.raises(ValueError, match="must have one line"):
            write_report(tmp_path, tmp_path / "out", docs)


def test_committed_documentation_says_what_the_committed_table_says():
    from riskbayes_paper.learner_tables import headline
    from riskbayes_paper.paper_tables import only_in_train
    from riskbayes_paper.report import all_tables, doc_part

    root = Path(__file__).parents[2]
    folder = root / "benchmarks" / "results" / "reproduction"
    if not folder.is_dir():
        pytest.skip("the results of a full run are not committed yet")
    results = Results(read_folder(folder))
    part = doc_part(headline(results), only_in_train(results), all_tables(results))
    assert part in (root / "doc" / "reproduction.md").read_text(encoding="utf-8")
    assert markdown_rows(headline(results)) in (root / "README.md").read_text(encoding="utf-8")
