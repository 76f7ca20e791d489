"""Pages: general parts, and the page of a reduced demo."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from rich.console import Console

from riskbayes.experiments.demo import (
    DAGGER,
    Comparison,
    Fit,
    compare,
    comparison_table,
    demo_page,
    run_demo,
    tally,
)
from riskbayes.experiments.report import Cell, Section, Table, html_table, inline_svg, page, path_figure

VOID = {"meta", "br"}


class Checker(HTMLParser):
    """Every element is closed where it should be, and no id is used twice."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.tags = [], [], []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        self.note(tag, attrs)

    def handle_startendtag(self, tag, attrs):
        self.note(tag, attrs)

    def note(self, tag, attrs):
        self.tags.append(tag)
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def checked(html):
    checker = Checker()
    checker.feed(html)
    assert checker.open == []
    assert len(checker.ids) == len(set(checker.ids))
    return checker


def quiet():
    return Console(stderr=True, quiet=True)


@pytest.fixture(scope="module")
def fits():
    return run_demo(["iris", "wine"], ["CategoricalNB", "GaussianNB"], n_splits=2, console=quiet())


def test_long_table(fits):
    assert len(fits) == 2 * 2 * 2 * 2
    for f in fits:
        assert 0 <= f.test_error <= 1
        assert f.n_test == {"iris": 38, "wine": 45}[f.data_set]
        assert round(f.test_error * f.n_test, 9).is_integer()
        assert not f.floored
        if f.learner == "closed_form":
            assert f.path == ()
        else:
            assert len(f.path) > 1
            assert f.path[-1] < f.path[0]


def test_demo_repeats(fits):
    again = run_demo(["iris", "wine"], ["CategoricalNB", "GaussianNB"], n_splits=2, console=quiet())
    assert again == fits


def test_floored_is_marked_and_does_not_warn(capsys):
    pytest.importorskip("matplotlib")
    # Warnings are errors here, so the run itself shows that none escapes.
    fits = run_demo(["digits"], ["LDA"], n_splits=1, console=quiet())
    assert all(f.floored for f in fits)
    assert comparison_table(compare(fits)).rows[0][1] == f"LDA {DAGGER}"
    assert "was floored" in demo_page(fits, "x")
    assert capsys.readouterr().err == ""


def row(learner, split, error, path=()):
    return Fit("set", "model", learner, split, 10, error, path, False)


def test_summary():
    fits = [row("closed_form", 0, 0.1), row("rc", 0, 0.3), row("closed_form", 1, 0.3), row("rc", 1, 0.3)]
    (c,) = compare(fits)
    assert c.closed_form == pytest.approx((10, 30))
    assert c.rc == pytest.approx((30, 30))
    assert c.difference == pytest.approx(10)
    assert c.verdict == "worse"
    assert c.splits == [0, 1, 1]
    assert comparison_table([c]).rows == [
        ["set", "model", "20.00 \u00b1 14.14", "30.00 \u00b1 0.00", Cell("+10.00 worse", "worse"), "0/1/1"]
    ]


@pytest.mark.parametrize(
    ("rc", "verdict"), [((9.0, 10.0), "better"), ((10.0, 10.1), "worse"), ((20.0, 0.0), "equal")]
)
def test_verdict(rc, verdict):
    assert Comparison("set", "model", 10, (10.0, 10.0), rc, False).verdict == verdict


def test_tally_counts_all():
    kinds = [(9.0,), (11.0,), (11.0,), (10.0,)]
    text = tally([Comparison("set", "model", 10, (10.0,), rc, False) for rc in kinds])
    assert "better in 1 of 4 rows, equal in 1 and worse in 2" in text


def test_page_of_the_demo(fits):
    pytest.importorskip("matplotlib")
    html = demo_page(fits, "riskbayes demo --out <here>")
    tags = checked(html).tags
    assert tags.count("svg") == 4
    assert tags.count("table") == 1
    assert tags.count("tr") == 1 + 4
    assert "riskbayes demo --out &lt;here&gt;" in html
    assert "not probability calibration (Platt, isotonic)" in html
    assert html.index("Platt") < html.index("<table")
    assert "Held out: 2 stratified" in html
    assert "in-train" in html
    for c in compare(fits):
        assert f"{np.mean(c.rc):.2f} \u00b1" in html


def test_page_needs_no_network_and_no_script(fits):
    pytest.importorskip("matplotlib")
    html = demo_page(fits, "riskbayes demo")
    assert "http" not in html
    assert "<script" not in html
    assert "src=" not in html
    assert "@import" not in html
    assert 'name="viewport"' in html
    assert "prefers-color-scheme: dark" in html
    assert "@media print" in html


def test_table_is_escaped():
    html = html_table(Table(["a<b", "n"], [["x & y", Cell("1", "better")], ["z", "2"]]))
    checked(html)
    assert "a&lt;b" in html
    assert "x &amp; y" in html
    assert '<td class="better">1</td>' in html
    assert '<th scope="row" class="text">z</th>' in html


def test_groups():
    table = Table(["set", "n"], [["a", "1"], ["a", "2"], ["b", "3"]])
    assert [table.starts_group(i) for i in range(3)] == [True, False, True]


def test_inline_svg():
    pytest.importorskip("matplotlib")

    def draw():
        return inline_svg(path_figure([[3.0, 2.0, 1.0], [4.0]], 2, "y"), 'a "path"', "p1")

    svg = draw()
    checker = checked(svg)
    assert svg.startswith("<svg viewBox=")
    assert 'aria-label="a &quot;path&quot;"' in svg
    assert all(name.startswith("p1-") for name in checker.ids)
    used = set(re.findall(r'(?:url\(|href=")#([^")]+)', svg))
    assert used
    assert used <= set(checker.ids)
    assert "var(--accent" in svg
    assert "<text" in svg
    assert svg == draw()


def test_median_keeps_the_runs_that_stopped():
    pytest.importorskip("matplotlib")
    (ax,) = path_figure([[3.0, 2.0, 1.0], [4.0], [5.0, 4.5]], 2, "y").axes
    thick = max(ax.lines, key=lambda line: line.get_linewidth())
    assert thick.get_ydata().tolist() == [4.0, 4.0, 4.0]
    assert len(ax.lines) == 2 * 3 + 1


def test_page():
    html = page("a & b", "<p>lead</p>", [Section("one", "<p>1</p>"), Section("two", "<p>2</p>")])
    assert checked(html).tags.count("section") == 2
    assert "<title>a &amp; b</title>" in html
    assert html.index("<p>lead") < html.index("<h2>one") < html.index("<h2>two")
