"""Pages: general parts, and the page of a reduced demo."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from rich.console import Console
from sklearn.datasets import load_wine
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline

from riskbayes import CategoricalNB
from riskbayes.experiments.demo import (
    DAGGER,
    Comparison,
    comparison_table,
    demo_page,
    run_demo,
    tally,
)
from riskbayes.experiments.figures import path_figure
from riskbayes.experiments.page import Section, page
from riskbayes.experiments.svg import FINE, compact, embed_svg, relative, svg_source
from riskbayes.experiments.tables import Mark, Table, as_html, plain
from riskbayes.preprocessing import KMeansBins

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
def comparisons():
    return run_demo(["iris", "wine"], ["CategoricalNB", "GaussianNB"], n_splits=2, console=quiet())


def test_comparisons(comparisons):
    assert [(c.data_set, c.model) for c in comparisons] == [
        (name, model) for name in ("iris", "wine") for model in ("CategoricalNB", "GaussianNB")
    ]
    for c in comparisons:
        assert c.n_test == {"iris": 38, "wine": 45}[c.data_set]
        assert len(c.closed_form) == len(c.rc) == len(c.paths) == 2
        for error in (*c.closed_form, *c.rc):
            assert 0 <= error <= 100
            assert round(error / 100 * c.n_test, 9).is_integer()
        assert not c.floored
        for path in c.paths:
            assert len(path) > 1
            assert path[-1] < path[0]


def test_demo_repeats(comparisons):
    again = run_demo(["iris", "wine"], ["CategoricalNB", "GaussianNB"], n_splits=2, console=quiet())
    assert again == comparisons


@pytest.mark.parametrize("learner", ["closed_form", "rc"])
def test_the_demo_agrees_with_a_pipeline(comparisons, learner):
    X, y = load_wine(return_X_y=True)
    errors = []
    for train, test in StratifiedShuffleSplit(2, test_size=0.25, random_state=0).split(X, y):
        clf = make_pipeline(KMeansBins(), CategoricalNB(learner=learner)).fit(X[train], y[train])
        errors.append(100 * (1 - clf.score(X[test], y[test])))
    (own,) = (c for c in comparisons if (c.data_set, c.model) == ("wine", "CategoricalNB"))
    assert getattr(own, learner) == pytest.approx(errors)


def test_floored_is_marked_and_does_not_warn(capsys):
    pytest.importorskip("matplotlib")
    # Warnings are errors here, so the run itself shows that none escapes.
    comparisons = run_demo(["digits"], ["LDA"], n_splits=1, console=quiet())
    assert all(c.floored for c in comparisons)
    assert comparison_table(comparisons).rows[0][1] == f"LDA {DAGGER}"
    assert "was floored" in demo_page(comparisons, "x")
    assert capsys.readouterr().err == ""


def test_summary():
    c = Comparison("set", "model", 10, (10.0, 30.0), (30.0, 30.0))
    assert c.difference == pytest.approx(10)
    assert c.verdict == "worse"
    assert c.splits == [0, 1, 1]
    (row,) = comparison_table([c]).rows
    assert row[4] == Mark("+10.00 worse", "worse")
    assert [plain(cell) for cell in row] == [
        *("set", "model", "20.00 \u00b1 14.14", "30.00 \u00b1 0.00", "+10.00 worse", "0/1/1")
    ]


@pytest.mark.parametrize(
    ("rc", "verdict"), [((9.0, 10.0), "better"), ((10.0, 10.1), "worse"), ((20.0, 0.0), "equal")]
)
def test_verdict(rc, verdict):
    assert Comparison("set", "model", 10, (10.0, 10.0), rc).verdict == verdict


def test_tally_counts_all():
    kinds = [(9.0,), (11.0,), (11.0,), (10.0,)]
    text = tally([Comparison("set", "model", 10, (10.0,), rc) for rc in kinds])
    assert "better in 1 of 4 rows, equal in 1 and worse in 2" in text


def test_page_of_the_demo(comparisons):
    pytest.importorskip("matplotlib")
    html = demo_page(comparisons, "riskbayes demo --out <here>")
    tags = checked(html).tags
    assert tags.count("svg") == 4
    assert tags.count("table") == 1
    assert tags.count("tr") == 1 + 2 + 4  # a header, two groups, four rows
    assert "riskbayes demo --out &lt;here&gt;" in html
    assert "not probability calibration (Platt, isotonic)" in html
    assert html.index("Platt") < html.index("<table")
    assert "Held out: 2 stratified" in html
    assert "in-train" in html
    for c in comparisons:
        assert f"<td>{np.mean(c.rc):.2f}<small> \u00b1" in html


def test_page_needs_no_network_and_no_script(comparisons):
    pytest.importorskip("matplotlib")
    html = demo_page(comparisons, "riskbayes demo")
    assert "http" not in html
    assert "<script" not in html
    assert "src=" not in html
    assert "@import" not in html
    assert 'name="viewport"' in html
    assert "prefers-color-scheme: dark" in html
    assert "@media print" in html


def test_table_is_escaped():
    html = as_html(Table(["a<b", "n"], [["x & y", Mark("1", "better")], ["z", "2"]]))
    checked(html)
    assert "a&lt;b" in html
    assert "x &amp; y" in html
    assert '<td class="better">1</td>' in html
    assert '<th scope="row" class="text">z</th>' in html


def test_groups():
    table = Table(["set", "n"], [["a", "1"], ["a", "2"], ["b", "3"]])
    assert [table.starts_group(i) for i in range(3)] == [True, False, True]


def test_groups_are_headings_of_their_rows():
    table = Table(["set", "model", "n"], [["a", "x", Mark("1 \u00b1 2")], ["a", "y", "2"], ["b", "x", "3"]])
    html = as_html(table)
    checked(html)
    assert re.findall(r'<th scope="rowgroup" colspan="2">(\w)</th>', html) == ["a", "b"]
    assert re.findall(r"<t[hd](?: [^>]*)?>(.*?)</t[hd]>", html) == [
        *("model", "n", "a", "x", "1<small> \u00b1 2</small>", "y", "2", "b", "x", "3")
    ]


def test_svg_in_a_page():
    pytest.importorskip("matplotlib")

    def draw():
        figure = path_figure([[3.0, 2.0, 1.0], [4.0]], 2, "y")
        figure.axes[0].set_xlim(0.5, 2)  # so that something is clipped
        return embed_svg(svg_source(figure, "p1"), 'a "path"', "p1")

    svg = draw()
    checker = checked(svg)
    assert svg.startswith('<svg role="img" aria-label="a &quot;path&quot;" viewBox=')
    assert all(name.startswith("p1-") for name in checker.ids)
    used = set(re.findall(r'(?:url\(|href=")#([^")]+)', svg))
    assert len(used) == 2  # the dot at the end of a run, and the frame that clips
    assert used == set(checker.ids)
    assert "var(--accent)" in svg
    assert "<text" in svg
    assert "http" not in svg
    assert svg == draw()


def distance(point, line):
    """From a point to a line of several points."""
    start, step = line[:-1], np.diff(line, axis=0)
    share = np.clip(((point - start) * step).sum(axis=1) / np.maximum((step**2).sum(axis=1), 1e-300), 0, 1)
    return np.hypot(*(point - start - share[:, None] * step).T).min()


def test_a_line_stays_where_it_was():
    """Points that are left out, and those that are rounded, move a line by less than the eye sees."""
    rng = np.random.default_rng(0)
    for n in (2, 3, 20, 65, 401):
        for shape in (
            rng.normal(size=n).cumsum(),
            np.exp(-np.arange(n) / 8.0),
            np.zeros(n),
            rng.random(n) < 0.5,
        ):
            points = np.column_stack([np.linspace(20.18, 227.4, n), 50.123 + 20 * np.asarray(shape, float)])
            d = relative(points, closed=False)
            steps = np.array(re.findall(r"-?(?:\d*\.)?\d+", d), dtype=float).reshape(-1, 2)
            drawn = steps.cumsum(axis=0)
            if len(drawn) == 1:
                drawn = np.concatenate([drawn, drawn])
            assert len(drawn) <= n
            assert max(distance(point, drawn) for point in points) < FINE + 0.08
    back_and_forth = np.array([[0, 0], [9, 0], [3, 0], [5.0, 0]])
    assert relative(back_and_forth, closed=True) == "M0 0l9 0-6 0 2 0z"


def test_small_svg_keeps_what_is_seen():
    """A fraction of matplotlib's bytes: every text, every colour, no part of a line."""
    pytest.importorskip("matplotlib")
    import io

    from matplotlib import rc_context

    from riskbayes.experiments.toy import run_toy, toy_figure

    rng = np.random.default_rng(0)
    paths = [(5 + rng.random() + 9 * np.exp(-np.arange(65) / 9)).tolist() for _ in range(5)]
    for figure, share in ((path_figure(paths, 64, "soft error, %"), 0.2), (toy_figure(run_toy()), 0.35)):
        whole = io.StringIO()
        with rc_context({"svg.fonttype": "none", "svg.hashsalt": "x"}):
            figure.savefig(whole, format="svg", transparent=True, metadata={"Date": None})
        small = svg_source(figure, "x")
        assert small == compact(whole.getvalue())
        assert len(small) < share * len(whole.getvalue())
        ElementTree.fromstring(small)
        for pattern in (r"<(?:text|tspan)[^>]*>([^<\s][^<]*)<", r"(#[0-9a-f]{6})\b"):
            found = [sorted(re.findall(pattern, svg)) for svg in (whole.getvalue(), small)]
            assert set(found[0]) == set(found[1])


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
