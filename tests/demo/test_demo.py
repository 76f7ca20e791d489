"""Pages: general parts, and the page of a reduced demo."""

import hashlib
import re

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedShuffleSplit, train_test_split

from html_checks import as_html, checked
from made_reports import made as made_report
from riskbayes import GaussianNB, MixedNB
from riskbayes.datasets import adult_sample_csv, load_adult_sample
from riskbayes.demo.boundary import COLUMNS, find_boundary, path_of, zero_line
from riskbayes.demo.experiment import SetErrors, adult_report, run_demo
from riskbayes.demo.page import change_table, demo_page, error_table, tally
from riskbayes.pages.table import Mark, Table, plain


@pytest.fixture(scope="module")
def results():
    return run_demo(["iris", "adult_sample"], n_splits=2)


@pytest.fixture(scope="module")
def report():
    return adult_report("riskbayes compare <here>/adult_sample.csv --target income")


def test_errors_of_the_demo(results):
    assert [(r.data_set, r.n_test) for r in results] == [("iris", 38), ("adult sample", 750)]
    for r in results:
        models = list(r.errors)
        assert models[0] == "RiskBayesClassifier, single"
        assert models[-4:] == ["logistic regression", "random forest", "histogram boosting", "majority class"]
        for name in ("MixedNB", "LDA", "QDA"):
            assert {f"{name}, closed form", f"{name}, RC"} <= set(models)
        for errors in r.errors.values():
            assert len(errors) == 2
            for error in errors:
                assert round(error / 100 * r.n_test, 9).is_integer()
        assert max(r.errors, key=r.mean) == "majority class"


def test_demo_repeats(results):
    assert run_demo(["iris"], n_splits=2) == results[:1]


@pytest.mark.parametrize("learner", ["closed_form", "rc"])
def test_the_demo_agrees_with_the_estimator_alone(results, learner):
    X, y = load_adult_sample(return_X_y=True)
    _, codes = np.unique(np.asarray(y), return_inverse=True)
    errors = []
    for train, test in StratifiedShuffleSplit(2, test_size=0.25, random_state=0).split(codes, codes):
        clf = MixedNB(missing="informative", learner=learner).fit(X.iloc[train], codes[train])
        errors.append(100 * (1 - clf.score(X.iloc[test], codes[test])))
    name = {"closed_form": "MixedNB, closed form", "rc": "MixedNB, RC"}[learner]
    assert results[1].errors[name] == pytest.approx(errors)


def made(closed_form, rc, **others):
    """The errors of a made-up set."""
    errors = {"QDA, closed form": closed_form, "QDA, RC": rc, "majority class": (50.0,)}
    return SetErrors("set", 10, {"RiskBayesClassifier, single": (1.0,), **errors, **others})


def test_tables_of_the_demo():
    found = [made((10.0, 30.0), (30.0, 31.0)), made((10.0,), ()), made((9.0,), (9.0,))]
    table = error_table(found)
    assert table.headers == ["model", "set", "set", "set"]
    shown = [[plain(cell) for cell in row] for row in table.rows]
    assert shown[0] == ["RiskBayesClassifier, single", "1.0*", "1.0*", "1.0*"]
    assert shown[1] == ["QDA, closed form", "20.0", "10.0", "9.0"]
    assert shown[2] == ["QDA, RC", "30.5", "-", "9.0"]
    (row,) = change_table(found).rows
    assert [plain(cell) for cell in row] == ["QDA", "+10.5", "-", "0.0"]
    assert [cell.kind for cell in row[1:]] == ["worse", "", "equal"]


def test_tally_counts_all_pairs():
    rcs = [(9.0,), (11.0,), (11.0,), (10.0,)]
    words = tally([made((10.0,), rc, forest=(0.5,)) for rc in rcs])
    assert "better than the closed form in 1 of 4 pairs, equal in 1 and worse in 2" in words
    assert "place 2, 2, 2, 2 of 4" in words


def test_page_of_the_demo(results, report):
    html = demo_page(results, report, "riskbayes demo --out <here>")
    tags = checked(html).tags
    assert tags.count("svg") == 1
    assert tags.count("table") == 2
    assert "riskbayes demo --out &lt;here&gt;" in html
    assert "riskbayes compare &lt;here&gt;/adult_sample.csv --target income" in html
    assert 'href="report.html"' in html
    assert "10.24432/C5XW20" in html
    assert "not probability calibration (Platt, isotonic)" in html
    assert html.index("Platt") < html.index("<table")
    assert "Held out: 2 stratified" in html
    for r in results:
        assert f">{r.mean('QDA, RC'):.1f}<" in html


def test_page_needs_no_network_and_no_script(results, report):
    html = demo_page(results, report, "riskbayes demo")
    assert "http" not in html.replace("http-equiv", "")
    assert "<script" not in html
    assert "src=" not in html
    assert "@import" not in html
    assert 'name="viewport"' in html
    assert "prefers-color-scheme: dark" in html
    assert "@media print" in html


def test_report_of_the_demo(report):
    assert (report.data.rows, report.data.target) == (3000, "income")
    assert report.data.sha256 == hashlib.sha256(adult_sample_csv()).hexdigest()
    assert len(report.to_html()) > 10_000


def test_the_boundary_is_where_the_model_is_undecided():
    found = find_boundary()
    data = load_breast_cancer()
    X = data.data[:, [list(data.feature_names).index(name) for name in COLUMNS]]
    train, _, y, _ = train_test_split(X, data.target, test_size=0.25, stratify=data.target, random_state=0)
    for learner, segments in found.lines.items():
        assert len(segments) > 20
        P = GaussianNB(learner=learner).fit(train, y).predict_proba(segments.reshape(-1, 2))
        assert np.abs(P[:, 1] - 0.5).max() < 0.02
    assert found.errors["rc"] < found.errors["closed_form"]


def test_the_zero_line_of_a_circle():
    xs, ys = np.linspace(-2, 2, 41), np.linspace(-1.5, 1.5, 31)
    radius = 1.0321  # through no corner of a cell
    segments = zero_line(xs[None, :] ** 2 + ys[:, None] ** 2 - radius**2, xs, ys)
    assert np.hypot(*segments.reshape(-1, 2).T) == pytest.approx(radius, abs=0.01)
    assert np.hypot(*np.diff(segments, axis=1)[:, 0].T).sum() == pytest.approx(2 * np.pi * radius, rel=0.01)
    (path,) = re.findall("M[^M]*", path_of(100 * segments))  # one closed line
    points = np.array(re.findall(r"-?[\d.]+", path), dtype=float).reshape(-1, 2)
    assert points[0] == pytest.approx(points[-1])
    assert len(points) == len(segments) + 1


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


@pytest.mark.parametrize("width", [390, 360])
def test_a_phone_shows_the_answer_of_the_demo(browser, tmp_path, width):
    models = ("MixedNB, closed form", "MixedNB, RC", "QDA, closed form", "QDA, RC", "histogram boosting")
    errors = {"RiskBayesClassifier, single": (8.0,)} | {m: (19.0 - i, 21.0 - i) for i, m in enumerate(models)}
    results = [
        SetErrors(name, 143, errors) for name in ("iris", "wine", "breast cancer", "digits", "adult sample")
    ]
    html = demo_page(results, made_report(), "riskbayes demo")
    (tmp_path / "index.html").write_text(html, encoding="utf-8")
    browser.errors.clear()
    browser.resize(width, 800)
    browser.open((tmp_path / "index.html").as_uri())
    answers = "[...document.querySelectorAll('td')].map(cell => cell.getBoundingClientRect())"
    found = browser.run(f"{answers}.map(box => [box.left, box.right])")
    assert len(found) == 6 * 5 + 2 * 5
    assert all(0 < left < right < width for left, right in found)
    assert browser.run("document.documentElement.scrollWidth") == width
    assert browser.errors == []
