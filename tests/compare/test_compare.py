"""`compare`: figures against scikit-learn and SciPy, laws of splits, planted faults, real tables."""

import io
import json
import math
import re
from dataclasses import replace
from decimal import Decimal

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from scipy.stats import binomtest, mannwhitneyu, norm
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score, zero_one_loss

from riskbayes import MixedNB
from riskbayes.compare import Report, compare, comparison, contenders, explained, scores
from riskbayes.compare.contenders import MAJORITY
from riskbayes.compare.data import Data, draw_by_class
from riskbayes.compare.drift import drifts
from riskbayes.compare.report import SCHEMA
from riskbayes.compare.splits import make_split
from riskbayes.compare.study import contenders as contender_figures
from riskbayes.compare.study import run_study
from riskbayes.compare.terminal import print_report
from riskbayes.input.files.table import split_columns
from riskbayes.input.labels import values_of
from riskbayes.two_samples import compare_samples


def made_table(m=240, seed=0, signal=2.0):
    """A table of numbers and categories with missing cells, and a target that two columns tell of."""
    rng = np.random.default_rng(seed)
    y = rng.random(m) < 0.4
    table = pd.DataFrame(
        {
            "size": rng.standard_normal(m) + signal * y,
            "weight": rng.exponential(size=m),
            "colour": np.where(
                rng.random(m) < 0.3 + 0.12 * signal * y, "red", rng.choice(["blue", "green"], m)
            ),
            "town": rng.choice([f"town {i}" for i in range(9)], m),
        }
    )
    table.loc[rng.random(m) < 0.1, "weight"] = np.nan
    return table.assign(bought=np.where(y, "yes", "no"))


def codes_of(report):
    return {(finding.code, finding.where) for finding in report.findings}


@pytest.fixture(scope="module")
def plain():
    """The comparison of the made table, in two folds."""
    return compare(made_table(), "bought", cv=2, name="made.csv", command="riskbayes compare made.csv")


def test_report_travels_without_loss(plain):
    report = plain.report
    assert Report.from_dict(report.to_dict()) == report
    assert Report.from_json(report.to_json()) == report
    later = report.to_dict() | {"new": 1}
    later["data"]["also_new"] = [2]
    assert Report.from_dict(later) == report


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda values: values | {"schema": SCHEMA + 1}, "has layout 4.*Update"),
        (lambda values: values | {"schema": SCHEMA - 1}, "has layout 2.*again"),
        (lambda values: {k: v for k, v in values.items() if k != "schema"}, "no report"),
        (lambda values: {k: v for k, v in values.items() if k != "verdict"}, "lacks report.verdict"),
        (lambda values: values | {"best": 3}, "report.best"),
        (lambda values: values | {"contenders": [1]}, r"report.contenders\[0\]"),
        (lambda values: values | {"labels": "ab"}, "report.labels"),
        (lambda values: [values], "no report"),
    ],
)
def test_what_is_no_report_is_refused(plain, change, message):
    with pytest.raises(ValueError, match=message):
        Report.from_dict(change(plain.report.to_dict()))
    with pytest.raises(ValueError, match="no JSON"):
        Report.from_json("{")


def test_report_says_what_was_done(plain):
    report, model = plain.report, plain.model
    assert report.split.kind == "cv"
    assert report.split.test_rows == report.data.rows == report.data.used_rows == 240
    assert report.labels == ("no", "yes")
    assert np.array(report.confusion).sum() == 240
    assert sum(bin.rows for bin in report.reliability) == 240
    kinds = {contender.kind for contender in report.contenders}
    assert kinds == {"riskbayes", "peer", "baseline"}
    assert not any(contender.failed for contender in report.contenders)
    best = next(c for c in report.contenders if c.name == report.best)
    assert best.kind == "riskbayes"
    wrong = np.array(report.confusion)
    assert best.scores["error"].value == pytest.approx(100 * (1 - np.trace(wrong) / wrong.sum()))
    assert best.behind == {}
    assert best.gain["error"].value < -3 * best.gain["error"].error
    assert report.verdict.startswith("'bought' can be predicted")
    assert "flatters" in report.why
    assert {one.column for one in report.contributions} == {"size", "weight", "colour", "town"}
    assert report.contributions[0].column in ("size", "colour")
    assert report.examples[0].cells[0].column in set(made_table().columns)
    assert report.moved
    assert model.predict(made_table().drop(columns="bought")).tolist()[0] in ("no", "yes")
    assert [f.code for f in report.findings if f.severity == "error"] == []


def test_examples_are_the_rows_of_the_file(plain):
    table = made_table()
    for example in (*plain.report.examples, *plain.report.surest_wrong):
        row = table.iloc[example.row]
        assert row["bought"] == example.truth
        for cell in example.cells:
            missing = pd.isna(row[cell.column])
            assert cell.value in (("", "nan") if missing else (str(row[cell.column]),))
    for example in plain.report.surest_wrong:
        assert example.truth != example.predicted


def without_time(report):
    values = report.to_dict()
    values["run"] = None
    for contender in values["contenders"]:
        contender["fit_seconds"] = contender["predict_seconds"] = None
    return values


def test_same_seed_same_report_whatever_the_library(plain):
    table = made_table()
    again = compare(table, "bought", cv=2, name="made.csv", command="riskbayes compare made.csv").report
    assert without_time(again) == without_time(plain.report)
    for other in (pl.from_pandas(table), pa.Table.from_pandas(table, preserve_index=False)):
        found = without_time(compare(other, "bought", cv=2, name="made.csv").report)
        assert found["contenders"] == without_time(plain.report)["contenders"]
        assert found["data"] == without_time(plain.report)["data"]


def test_markdown_and_terminal_show_hostile_names_as_text():
    table = made_table(80).rename(columns={"size": "a|b<script>", "town": "*x*\n# y"})
    report = compare(table, "bought", cv=2).report
    shown = report.to_markdown()
    assert "a\\|b\\<script\\>" in shown
    assert "\n# y" not in shown
    assert all(line.count("|") - line.count("\\|") in (0, *range(3, 12)) for line in shown.splitlines())
    for width in (60, 100, 200):
        out = io.StringIO()
        print_report(report, Console(file=out, width=width, force_terminal=True, color_system=None))
        assert max(map(len, out.getvalue().splitlines())) <= width
        for contender in report.contenders:
            assert contender.name in out.getvalue()


@given(st.integers(2, 5), st.integers(10, 80), st.integers(0, 2**31))
def test_figures_are_those_of_scikit_learn(r, m, seed):
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.arange(r), rng.integers(r, size=m)])
    P = rng.dirichlet(np.full(r, 0.5), len(codes))
    P = np.maximum(P, 1e-9) / np.maximum(P, 1e-9).sum(axis=1, keepdims=True)
    found = scores.all_scores(P, codes)
    assert found["error"].value == pytest.approx(100 * np.mean(P.argmax(axis=1) != codes))
    assert found["log_loss"].value == pytest.approx(log_loss(codes, P))
    assert found["brier"].value == pytest.approx(brier_score_loss(codes, P if r > 2 else P[:, 1]))
    if r == 2:
        assert found["auc"].value == pytest.approx(roc_auc_score(codes, P[:, 1]))
    values = rng.standard_normal(m)
    assert scores.mean_score(values).error == pytest.approx(values.std(ddof=1) / np.sqrt(m))
    low, high = scores.wilson(int(rng.integers(m + 1)), m)
    assert 0 <= low <= high <= 1
    bins = scores.bins_of(P.max(axis=1))
    assert sorted(np.concatenate(bins).tolist()) == list(range(len(codes)))


@given(st.integers(0, 40), st.integers(1, 40))
def test_intervals_are_those_of_scipy(hits, misses):
    interval = binomtest(hits, hits + misses).proportion_ci(method="wilson")
    assert scores.wilson(hits, hits + misses, 1.959964) == pytest.approx(
        (interval.low, interval.high), abs=1e-5
    )


def test_standard_errors_cover():
    """Of the AUC and of means, of independent rows and of groups: beside the spread of repetitions."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(300):
        codes = (rng.random(150) < 0.3).astype(int)
        alone = probabilities_of(rng.standard_normal(150) + codes)
        groups, y = np.repeat(np.arange(30), 5), np.repeat(rng.permutation(30) < 10, 5).astype(int)
        noise = rng.standard_normal(30)[groups] + rng.standard_normal(150) / 3
        together = scores.all_scores(probabilities_of(noise + y), y, groups)
        found.append(
            [
                scores.all_scores(alone, codes, folds=rng.integers(3, size=150))["auc"],
                together["auc"],
                together["error"],
                scores.mean_score(noise, groups),
            ]
        )
    for figures in zip(*found, strict=True):
        spread = np.std([one.value for one in figures])
        assert np.mean([one.error for one in figures]) == pytest.approx(spread, rel=0.15)


def test_repeated_rows_of_a_group_leave_the_standard_errors_as_they_are():
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=80)
    P, copies = probabilities_of(rng.standard_normal(80) + codes), np.repeat(np.arange(80), 6)
    once, often = scores.all_scores(P, codes), scores.all_scores(P[copies], codes[copies], copies)
    for name, one in once.items():
        assert often[name].value == pytest.approx(one.value), name
        assert often[name].error == pytest.approx(one.error, rel=0.02), name
    narrow, wide = (scores.reliability(P[copies], codes[copies], groups) for groups in (None, copies))
    for a, b, c in zip(scores.reliability(P, codes), narrow, wide, strict=True):
        assert b.high - b.low < a.high - a.low
        assert c.high - c.low == pytest.approx(a.high - a.low, rel=0.1)


def probabilities_of(log_odds):
    p = 1 / (1 + np.exp(-log_odds))
    return np.stack([1 - p, p], axis=1)


@given(st.integers(2, 5), st.integers(20, 80), st.integers(1, 4), st.integers(0, 2**31))
def test_auc_is_that_of_each_fold_averaged(r, m, k, seed):
    rng = np.random.default_rng(seed)
    codes, folds = np.tile(np.arange(r), m)[: r * k * 4], np.repeat(np.arange(k), 4 * r)
    P = rng.dirichlet(np.full(r, 0.5), len(codes)).round(2) + 0.01
    P /= P.sum(axis=1, keepdims=True)
    several = {"multi_class": "ovr", "average": "weighted"} if r > 2 else {}
    areas = [
        roc_auc_score(codes[folds == f], P[folds == f] if r > 2 else P[folds == f, 1], **several)
        for f in range(k)
    ]
    found = scores.all_scores(P, codes, folds=folds)["auc"]
    assert found.value == pytest.approx(np.mean(areas))
    constant = np.tile(P[:k], 1)[folds]  # each fold has its own model, which says nothing
    assert scores.ranking(constant, codes, None, folds) == (0.5, 0, 0)


@given(st.integers(2, 30), st.integers(2, 30), st.integers(0, 2**31))
def test_the_spread_of_mere_chance_is_that_of_scipy(m, n, seed):
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.repeat([0, 1], [m, n]))
    p = np.round(rng.random(m + n), 1)
    found = scores.ranking(np.stack([1 - p, p], axis=1), codes)
    test = mannwhitneyu(p[codes == 1], p[codes == 0], method="asymptotic", use_continuity=False)
    if found.chance:
        assert 2 * norm.sf(abs(found.auc - 0.5) / found.chance) == pytest.approx(test.pvalue, abs=1e-9)


def test_confidence_that_is_right_has_no_calibration_error():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.5, 1, 20000)
    codes = (rng.random(20000) > p).astype(int)
    P = np.stack([p, 1 - p], axis=1)
    assert scores.calibration_error(P, codes).value < 0.015
    sharp = P**3 / (P**3).sum(axis=1, keepdims=True)
    found = scores.overconfidence(sharp, codes)
    assert found.value > 10 * found.error
    assert scores.calibration_error(sharp, codes).value > 0.05


def data_of(table, target="bought", **options):
    return Data.of(
        table, target, **{"time_column": None, "group": None, "max_rows": 10**6, "seed": 0, **options}
    )


@given(st.integers(30, 90), st.integers(2, 5), st.integers(0, 2**31))
def test_folds_hold_every_row_out_once(m, k, seed):
    rng = np.random.default_rng(seed)
    table = made_table(m, seed).assign(person=rng.integers(12, size=m))
    table.loc[0, "bought"] = "once"
    for group in (None, "person"):
        data = data_of(table, group=group)
        split = make_split(data, k, seed % 100)
        assert f"{m - 1} of {m} rows are held out" in split.summary.words
        alone = np.bincount(data.codes)[data.codes] < 2
        assert sorted(split.held.tolist()) == np.flatnonzero(~alone).tolist()
        for kept, held in split.parts:
            assert not set(kept) & set(held)
            assert alone[kept].sum() == 1
            if group and not alone.any():
                assert not set(data.groups[kept]) & set(data.groups[held])


def test_the_last_rows_in_time_are_held_out_whole():
    rng = np.random.default_rng(0)
    day = rng.integers(40, size=200)
    dates = pd.Timestamp("2024-01-01") + pd.to_timedelta(day, unit="D")
    for times in (day, dates, dates.strftime("%Y-%m-%d")):
        data = data_of(made_table(200).assign(day=times), time_column="day")
        ((kept, held),) = make_split(data, None, 0).parts
        assert day[kept].max() < day[held].min()
        assert 0.15 < len(held) / 200 < 0.4
        assert "day" not in [column.name for column in data.columns]


EMPTY = st.sampled_from([None, "", " "])


@settings(max_examples=20, deadline=None)
@given(st.lists(st.one_of(EMPTY, st.sampled_from(["a", "b"])), min_size=30, max_size=60), st.integers(9, 90))
def test_rows_without_a_label_are_left_out_and_counted(labels, most):
    """The rest is what it would be without them; the numbers of rows are those of the table."""
    table = made_table(len(labels)).assign(bought=["a", "a", "b", "b", *labels[4:]])
    kept = np.flatnonzero([str(label).strip() in ("a", "b") for label in table["bought"]])
    expected = data_of(table.iloc[kept].reset_index(drop=True), max_rows=most)
    for way in (lambda t: t, pl.from_pandas, pa.Table.from_pandas):
        found = data_of(way(table), max_rows=most)
        assert found.rows.tolist() == kept[expected.rows].tolist()
        assert found.labels.tolist() == expected.labels.tolist()
        assert found.class_rows == expected.class_rows
        np.testing.assert_array_equal(found.Z, expected.Z)
        assert found.summary("", "").rows_without_target == len(labels) - len(kept)


def test_a_report_counts_the_rows_without_a_label_and_is_else_the_same(plain):
    table = made_table()
    holed = compare(pd.concat([table, table[:3].assign(bought=None, size=1e9)]), "bought", cv=2)
    (finding,) = set(map(str, holed.report.findings)) - set(map(str, plain.report.findings))
    assert finding.startswith("RB028 rows without a target: 3 of 243 rows")
    assert [c.scores for c in holed.report.contenders] == [c.scores for c in plain.report.contenders]
    X = table.drop(columns="bought")
    np.testing.assert_array_equal(holed.model.predict_proba(X), plain.model.predict_proba(X))


TARGETS = {
    "whole numbers as fractions": [float(i % 25) for i in range(300)],
    "whole numbers": [i % 100 for i in range(300)],
    "too many whole numbers": [i % 101 for i in range(300)],
    "fractions": [(i % 4) / 2 for i in range(300)],
    "infinity": [[1.0, np.inf][i % 2] for i in range(300)],
    "words": [f"w{i % 150}" for i in range(300)],
    "too many words": [f"w{i % 1001}" for i in range(3003)],
    "names": [f"w{i % 151}" for i in range(300)],
    "flags": [i % 2 == 0 for i in range(300)],
    "one class": ["a"] * 300,
    "dates": pd.to_datetime([f"2024-01-{1 + i % 9}" for i in range(300)]).date.tolist(),
    "lists": [[i % 2] for i in range(300)],
    "none": [None] * 300,
}


def test_objects_of_any_kind_are_labels_by_their_text():
    for values in ([["a"], ["b"]], [{"a": 1}, None, "x"], [1, "1", 2.5], [True, None, False], [2, None, 3.0]):
        table = pd.DataFrame({"x": np.arange(60), "y": pd.Series([*values, *values][:3] * 20, dtype=object)})
        found = data_of(table, "y")
        assert set(found.texts) == {str(value) for value in found.labels.tolist()}
        assert found.labelled.lost == table["y"].isna().sum()


def test_decimals_are_numbers_as_labels_in_every_library():
    for values in (["0.5", "1.5"], ["1", "2"]):
        labels = [Decimal(value) for value in values] * 30
        for table in (pd.DataFrame, pl.DataFrame, pa.table):
            found = values_of(nw.from_native(table({"y": labels}), eager_only=True)["y"])
            assert found.tolist() == [float(label) for label in labels]


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_is_checked_in_one_way(name):
    """The table of `compare` and that of `fit` are one; a target is taken by both or refused by both."""
    table = pa.table({"x": np.arange(len(TARGETS[name])), "y": TARGETS[name]})
    answers = []
    for read in (lambda: data_of(table, "y").labels, lambda: split_columns(table, "y").y):
        try:
            answers.append(read().tolist())
        except ValueError as error:
            answers.append(str(error))
    assert answers[0] == answers[1]
    refused = isinstance(answers[0], str)
    assert refused == (name not in {"whole numbers as fractions", "whole numbers", "words", "flags", "dates"})
    if not refused:  # and no estimator refuses it after that
        assert len(MixedNB(learner="closed_form").fit(table.select(["x"]), answers[0]).classes_) > 1


@given(st.integers(1, 300), st.integers(0, 2**31))
def test_a_sample_keeps_every_class(most, seed):
    codes = np.random.default_rng(seed).choice(4, 200, p=[0.7, 0.2, 0.09, 0.01])
    rows = draw_by_class(codes, most, seed)
    assert (np.diff(rows) > 0).all()
    assert len(rows) <= most + 4
    assert set(codes[rows]) == set(codes)
    assert len(rows) == 200 or np.allclose(np.bincount(codes[rows]), np.bincount(codes) * most / 200, atol=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "bougth"}, "Did you mean 'bought'"),
        ({"target": "size"}, "240 distinct"),
        ({"target": "key"}, "240 distinct"),
        ({"target": "same"}, "one class only, 'x'"),
        ({"target": "gone"}, "missing in all 240 rows"),
        ({"cv": 1}, "two or more"),
        ({"cv": 200}, "too few"),
        ({"group": "same"}, "one value only"),
        ({"group": "nobody"}, "no column 'nobody' for the group"),
        ({"time_column": "colour"}, "numbers or dates"),
        ({"time_column": "weight"}, "missing cells"),
        ({"time_column": "size", "cv": 2}, "exclude each other"),
        ({"time_column": "size", "group": "town"}, "exclude each other"),
        ({"ignore": ["RB"]}, "no finding with the code"),
        ({"strategies": ()}, "at least one strategy"),
    ],
)
def test_mistakes_are_told_in_a_sentence(options, message):
    table = made_table().assign(key=[f"k{i}" for i in range(240)], same="x", gone=None)
    with pytest.raises(ValueError, match=message) as error:
        compare(table, **{"target": "bought", **options})
    assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match="no column besides"):
        compare(table[["bought"]], "bought")
    with pytest.raises(ValueError, match="no rows"):
        compare(table[:0], "bought")


def test_a_model_that_fails_is_reported(monkeypatch):
    def broken(kinds):
        raise ValueError("It is out of order.\nCall somebody.")

    made = contenders.candidates

    def with_broken(*arguments):
        return [replace(c, make=broken) if c.name == "MixedNB, RC" else c for c in made(*arguments)]

    monkeypatch.setattr("riskbayes.compare.comparison.candidates", with_broken)
    report = compare(made_table(100), "bought", cv=2).report
    failed = [contender for contender in report.contenders if contender.failed]
    assert [(c.name, c.failed) for c in failed] == [("MixedNB, RC", "It is out of order.")]
    assert report.contenders[-1] == failed[0]
    assert report.moved_in not in ("", "MixedNB, RC")
    assert "out of order" in report.to_markdown()


@pytest.fixture
def compared(monkeypatch):
    """`compare` with some of the candidates only; returns the report and what was run for it."""
    made, run = contenders.candidates, comparison.run_study

    def found(table, target, names, **options):
        kept = []

        def keep(*arguments):
            kept.append(run(*arguments))
            return kept[0]

        monkeypatch.setattr(comparison, "run_study", keep)
        monkeypatch.setattr(
            comparison, "candidates", lambda *args: [c for c in made(*args) if c.name in (*names, MAJORITY)]
        )
        return compare(table, target, cv=2, **options).report, kept[0]

    return found


def seen(report):
    """The words of the page."""
    return re.sub("<[^>]*>", "", report.to_html())


NAIVE = "MixedNB, closed form"
NUMBERS = "LDA of the numbers, closed form"
NEIGHBOURS = "RiskBayesClassifier, neighbours"


def quarters(m, r, seed):
    """A table whose answer is a matter of two numbers together, which models of neighbours learn."""
    rng = np.random.default_rng(seed)
    u, v = rng.standard_normal((2, m))
    y = np.where(rng.random(m) < 0.9, ((u > 0) ^ (v > 0)) * (1 + (r > 2) * (u > 0)), rng.integers(r, size=m))
    table = pd.DataFrame(
        {"size": u, "weight": v, "a": rng.choice(["p", "q"], m), "b": rng.choice(["s", "t"], m)}
    )
    for j in range(7):
        table[f"copy {j}"] = (u if j % 2 else v) + 0.1 * rng.standard_normal(m)
    return table.assign(key=[f"k{i}" for i in range(m)], y=np.array(["no", "yes", "also"][:r])[y])


@pytest.mark.parametrize("best", [NEIGHBOURS, NAIVE, NUMBERS])
@pytest.mark.parametrize("r", [2, 3])
def test_contributions_are_of_the_model_whose_answers_stand_beside_them(compared, best, r):
    table = quarters(240, r, seed=r)
    names = [NAIVE, NUMBERS, NEIGHBOURS] if best == NEIGHBOURS else [best]
    report, study = compared(table, "y", names, strategies=("neighbours",))
    assert report.best == best
    assert report.explained == best
    drawn = best == NEIGHBOURS  # it reads all columns at once
    assert report.method == ("Shapley values over 8 orders drawn at random" if drawn else "terms of a sum")
    P, labels = study.trial(best).P, np.array(report.labels)
    chosen = P.argmax(axis=1)
    place = {int(row): i for i, row in enumerate(study.split.held)}
    assert report.examples
    for row in report.examples:
        p, odds = dict(zip(labels, P[place[row.row]], strict=True)), row.log_odds
        assert row.predicted == labels[P[place[row.row]].argmax()]
        assert (row.probability, odds.positive_probability, odds.negative_probability) == (
            *(p[row.predicted], p[odds.positive]),
            p[odds.negative],
        )
        assert odds.positive == (labels[1] if r == 2 else row.predicted)
        parts = odds.prior + sum(cell.contribution for cell in row.cells) + odds.others
        assert parts == pytest.approx(odds.total)
        assert np.log(p[odds.positive] / p[odds.negative]) == pytest.approx(odds.total)
        assert row.truth == table["y"][row.row]
        assert all((cell.standard_error > 0) == drawn for cell in row.cells)
    assert report.surest_wrong
    for row in report.surest_wrong:
        assert row.predicted == labels[chosen[place[row.row]]] != row.truth
        assert row.cells
        assert row.log_odds is not None
    for shown in (seen(report), report.to_markdown()):
        assert report.method in shown
    assert bool(re.search(r"\([+-]\d+\.\d\d ± \d+\.\d\d\)", report.to_markdown())) == drawn


@pytest.mark.parametrize("model", [NAIVE, NUMBERS])
def test_columns_that_a_model_does_not_read_are_no_reasons(compared, model):
    table = quarters(120, 2, seed=0).drop(columns=[f"copy {j}" for j in range(7)])
    report, _ = compared(table, "y", [model])
    unread = {c.column for c in report.contributions if c.contribution is None}
    assert unread == ({"a", "b"} if model == NUMBERS else set())
    assert {c.column for c in report.contributions} == {"a", "b", "size", "weight"}  # the key is left out
    assert all(c.contribution > 0 for c in report.contributions if c.column not in unread)
    for row in (*report.examples, *report.surest_wrong):
        assert {cell.column for cell in row.cells} == {"a", "b", "size", "weight"} - unread
        assert row.log_odds.other_columns == 0
    if unread:
        assert f"{model} does not read a, b." in seen(report)
        assert "not read" in report.to_markdown()


def test_of_a_column_that_is_left_out_only_whether_a_cell_is_missing_is_a_reason(compared):
    table = made_table(120)
    table["key"] = np.where(table["bought"] == "yes", [f"k{i}" for i in range(120)], None)
    report, _ = compared(table, "bought", [NAIVE])
    shown = {
        c.value for row in (*report.examples, *report.surest_wrong) for c in row.cells if c.column == "key"
    }
    assert shown == {"", "not missing"}


def test_what_calibration_changed_is_of_a_named_model_and_of_enough_rows(compared):
    rng = np.random.default_rng(0)
    table = made_table(600, signal=1.0)
    towns = np.minimum(
        rng.geometric(0.25, 600) + 4 * (table["bought"] == "yes") * rng.integers(2, size=600), 25
    )
    table["town"], table["region"] = [f"town {i}" for i in towns], [f"region {i}" for i in towns]
    report, study = compared(table, "bought", ["RiskBayesClassifier, single", "MixedNB, RC"])
    assert report.moved_in == "MixedNB, RC"
    assert f"What did calibration change in {report.moved_in}?" in seen(report)
    train = table.iloc[study.data.rows[study.split.parts[0][0]]]
    rows = train.groupby(["bought", "town"]).size()
    towns = [m for m in report.moved if "town: log probability of " in m.name]
    assert towns
    frame = study.trial("MixedNB, RC").models[0].parameters_frame()
    frame = frame[frame["column"] == "town"].assign(
        label=lambda f: np.array(report.labels)[f["class"]],
        town=lambda f: f["parameter"].str.split(" of ").str[1],
    )
    size = train["bought"].value_counts()[frame["label"]].to_numpy()
    counts = [rows.get((k, town), 0) for k, town in zip(frame["label"], frame["town"], strict=True)]
    smoothed = (np.array(counts) + 1) * size / (size + train["town"].nunique())
    np.testing.assert_allclose(frame["rows"], smoothed, rtol=1e-9)
    assert frame["rows"].iloc[0] < explained.LEAST_ROWS  # what moved most, few rows tell of
    enough = frame[frame["rows"] >= explained.LEAST_ROWS][: len(towns)]
    assert [m.after for m in towns] == pytest.approx(enough["calibrated"].tolist())


@pytest.mark.parametrize(("earlier", "later"), [(1, 1), (6, 1), (6, 2), (20, 3)])
def test_few_later_rows_prove_a_drift_by_their_number_only(earlier, later):
    """All later rows above all earlier ones, or below: two of all the ways to choose their places."""
    x = np.arange(earlier + later, dtype=float)
    distance, p = compare_samples(x[:earlier], x[earlier:], True)
    assert distance == 1
    assert p == pytest.approx(min(1, 2 / math.comb(earlier + later, later)))


def weighted_auc(y, P):
    """The areas of the classes that there are, each against the others, weighted by their rows."""
    return sum((y == c).mean() * roc_auc_score(y == c, P[:, c]) for c in np.unique(y))


@settings(max_examples=20)
@given(st.integers(20, 60), st.integers(2, 4), st.sampled_from([None, "person"]), st.integers(0, 2**31))
def test_figures_of_a_report_are_those_of_scikit_learn_on_its_predictions(m, r, group, seed):
    rng = np.random.default_rng(seed)
    table = made_table(m, seed).assign(bought=np.arange(m) % r, person=rng.integers(12, size=m))
    table["size"] += table["bought"]
    data = data_of(table, group=group)
    some = [c for c in contenders.candidates(data, ["single"], 0) if c.name in (NAIVE, NUMBERS, MAJORITY)]
    study = run_study(data, make_split(data, 2, 0), some)
    held = table["bought"].to_numpy()[study.split.held]
    found = {c.name: c for c in contender_figures(study)}
    base = {}
    for trial in reversed(study.trials):  # the majority class is the last
        P, figures = trial.P, found[trial.candidate.name].scores
        expected = {
            "error": 100 * zero_one_loss(held, P.argmax(axis=1)),
            "log_loss": log_loss(held, P, labels=range(r)),
            "brier": brier_score_loss(held, P if r > 2 else P[:, 1], labels=range(r)),
        }
        base = base or expected
        ends = np.cumsum([len(part.held) for part in study.parts])[:-1]
        pairs = zip(np.split(held, ends), np.split(P, ends), strict=True)
        expected["auc"] = np.mean([weighted_auc(*pair) for pair in pairs if len(set(pair[0])) > 1])
        assert {name: figures[name].value for name in expected} == pytest.approx(expected)
        for name, gain in found[trial.candidate.name].gain.items():
            assert gain.value == pytest.approx(expected[name] - base[name])


def test_a_large_table_is_sampled_and_the_model_reads_all_rows():
    table = made_table(900)
    found = compare(table, "bought", cv=2, max_rows=200)
    assert ("RB016", "") in codes_of(found.report)
    assert found.report.data.rows == 900
    assert found.report.data.used_rows in (200, 201)
    assert sum(one.rows for one in found.report.data.classes) == 900
    assert max(example.row for example in found.report.examples) > 201
    assert without_time(compare(table, "bought", cv=2, max_rows=200).report) == without_time(found.report)


copies = {
    "renamed": lambda y, rng: np.where(y == "yes", "zulu", "alpha"),
    "number": lambda y, rng: (y == "yes") + 1e-6 * rng.standard_normal(len(y)),
    "far": lambda y, rng: 1e12 * (y == "yes") + rng.standard_normal(len(y)),
    "holes": lambda y, rng: np.where(y == "yes", 1.0 + rng.random(len(y)), np.nan),
    "reason": lambda y, rng: np.where(y == "yes", [f"word {i}" for i in range(len(y))], None),
}


@pytest.mark.parametrize("copy", copies)
def test_a_copy_of_the_target_is_suspected(copy):
    table = made_table()
    table["copy"] = copies[copy](table["bought"].to_numpy(), np.random.default_rng(1))
    report = compare(table, "bought", cv=2).report
    leaks = {f.where: f.severity for f in report.findings if f.code == "RB003"}
    assert leaks == {"copy": "error"}
    assert "Do not trust these figures" in report.verdict
    quiet = compare(table, "bought", cv=2, ignore=["RB003"]).report
    assert "RB003" not in {code for code, _ in codes_of(quiet)}
    assert quiet.run.ignored == ("RB003",)


def test_codes_of_many_classes_as_numbers_are_suspected():
    rng = np.random.default_rng(0)
    y = rng.choice(6, 600, p=[0.02, 0.05, 0.4, 0.4, 0.1, 0.03])
    codes = np.array([7.0, 1.0, 9.0, 3.0, 8.0, 2.0])
    table = pd.DataFrame({"x": rng.standard_normal(600), "code": codes[y], "y": y})
    assert ("RB003", "code") in codes_of(compare(table, "y", cv=2).report)


def test_nothing_can_be_predicted_from_a_shuffled_target():
    """Over seeds: RB010 is there in all but a few, and the verdict claims nothing then."""
    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        table = made_table(90 + 10 * seed, seed).drop(columns=["town", "weight"])
        table["bought"] = rng.permutation(table["bought"])
        report = compare(table, "bought", cv=2, seed=seed).report
        codes = {code for code, _ in codes_of(report)}
        found.append("RB010" in codes)
        assert ("RB010" in codes) == report.verdict.startswith("Nothing about 'bought' can be predicted")
        assert not codes & {"RB003", "RB014"} or not found[-1]
    assert sum(found) >= 19


def test_duplicated_rows_across_the_split_are_found():
    table = made_table()
    twice = pd.concat([table, table[:40]], ignore_index=True)
    finding = next(f for f in compare(twice, "bought", cv=2).report.findings if f.code == "RB004")
    assert finding.severity == "warning"
    named = twice.assign(key=[f"k{i}" for i in range(len(twice))])
    finding = next(f for f in compare(named, "bought", cv=2).report.findings if f.code == "RB004")
    assert finding.severity == "info"
    assert "'key'" in finding.message


def test_a_table_without_faults_has_no_heavy_findings(plain):
    of_rc = {("RB017", c.name) for c in plain.report.contenders if c.learner == "RC"}
    assert codes_of(plain.report) <= {("RB014", "size"), ("RB011", ""), *of_rc}
    assert not [f for f in plain.report.findings if f.severity != "info"]


def test_equal_rows_with_different_labels_and_running_numbers_are_found():
    rng = np.random.default_rng(0)
    m = 200
    table = pd.DataFrame(
        {"a": rng.choice(list("xy"), m), "b": rng.choice(list("uv"), m), "n": np.arange(m) + 1000}
    )
    table["y"] = np.where(rng.random(m) < 0.2 + 0.5 * (table["a"] == "x"), "p", "q")
    found = codes_of(compare(table, "y", cv=2).report)
    assert ("RB006", "n") in found
    found = compare(table.drop(columns="n"), "y", cv=2).report
    best = max(table.groupby(["a", "b", "y"]).size().groupby(["a", "b"]).max().sum() / m, 0)
    finding = next(f for f in found.findings if f.code == "RB012")
    assert f"{100 * best:.3g} %" in finding.message
    assert next(f for f in found.findings if f.code == "RB004").severity == "info"


def drifting(m, seed, shift):
    rng = np.random.default_rng(seed)
    table = made_table(m, seed).assign(day=np.arange(m), order=np.arange(m) * 3.0 + rng.random(m))
    table["slow"] = rng.standard_normal(m) + shift * (np.arange(m) > 0.6 * m)
    table["kind"] = np.where(
        rng.random(m) < 0.1 + 0.4 * bool(shift) * (np.arange(m) > 0.75 * m), "new", "old"
    )
    return table


def test_a_drifting_column_is_found_in_a_split_in_time():
    report = compare(drifting(400, 0, 1.5), "bought", time_column="day").report
    found = {f.where: f.severity for f in report.findings if f.code == "RB009"}
    assert found == {"slow": "warning", "kind": "warning", "order": "info"}
    assert report.split.kind == "time"
    assert report.split.column == "day"
    assert "RB009" not in {
        code for code, _ in codes_of(compare(drifting(400, 0, 1.5), "bought", cv=2).report)
    }


def test_columns_that_do_not_drift_are_rarely_reported():
    """No drift, many columns, over seeds: the chance of any report is at most one in a hundred."""
    false = 0
    for seed in range(150):
        data = data_of(drifting(300, seed, 0.0).drop(columns="order"), time_column="day")
        ((kept, held),) = make_split(data, None, 0).parts
        false += bool(drifts(data, kept, held))
    assert false <= 4


def test_groups_stay_together_and_their_errors_are_larger():
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(40), 8)
    y = rng.integers(2, size=40)[person]
    table = pd.DataFrame({"x": y + rng.standard_normal(40)[person], "person": person, "y": y})
    table["x"] += 0.01 * rng.standard_normal(320)
    apart, mixed = (
        compare(table, "y", group="person").report,
        compare(table.drop(columns="person"), "y").report,
    )
    assert apart.split.kind == "groups"
    base = next(c for c in mixed.contenders if c.kind == "baseline")
    assert base.scores["auc"].value == 0.5
    error, naive = (
        next(c for c in report.contenders if c.name == "logistic regression").scores["error"]
        for report in (apart, mixed)
    )
    assert error.error > 1.5 * naive.error
    boosted = [next(c for c in r.contenders if c.name == "histogram boosting") for r in (apart, mixed)]
    assert boosted[0].scores["error"].value > boosted[1].scores["error"].value + 5


def test_unseen_categories_are_found():
    table = made_table(300).assign(day=np.arange(300))
    assert "RB015" not in {code for code, _ in codes_of(compare(table, "bought", time_column="day").report)}
    table["town"] = np.where(table["day"] >= 240, "new " + table["town"], table["town"])
    assert ("RB015", "town") in codes_of(compare(table, "bought", time_column="day").report)


class Sharp(MixedNB):
    """Naive Bayes whose probabilities are sharper than its rows allow."""

    def predict_proba(self, X):
        P = super().predict_proba(X) ** 6
        return P / P.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(("kind", "expected"), [(Sharp, True), (MixedNB, False)])
def test_a_model_that_is_too_sure_is_found(monkeypatch, kind, expected):
    made = contenders.candidates

    def only_one(*arguments):
        one, *others = [c for c in made(*arguments) if c.name in ("MixedNB, RC", "majority class")]
        return [replace(one, make=lambda kinds: kind(learner="closed_form")), *others]

    monkeypatch.setattr("riskbayes.compare.comparison.candidates", only_one)
    report = compare(made_table(600, signal=1.0), "bought", cv=2).report
    assert (("RB002", "MixedNB, RC") in codes_of(report)) == expected


def test_another_model_that_is_better_is_named():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.choice(["p", "q"], 600), "b": rng.choice(["u", "v"], 600)})
    table["n"] = rng.standard_normal(600)
    table["y"] = ((table["a"] == "p") ^ (table["b"] == "u") ^ (rng.random(600) < 0.1)).astype(int)
    report = compare(table, "y", cv=2).report
    assert ("RB013", "histogram boosting") in codes_of(report)
    assert "RB010" not in {code for code, _ in codes_of(report)}
    assert "Another model does" in report.verdict


KINDS = {
    "titanic": (5, 3, 0, 3),
    "credit_approval": (6, 9, 0, 0),
    "house_votes_84": (0, 16, 0, 0),
    "horse_colic": (7, 15, 0, 0),
    "heart_cleveland": (13, 0, 0, 0),
    "bank_marketing": (7, 9, 0, 0),
    "car_evaluation": (0, 6, 0, 0),
    "german_credit": (7, 13, 0, 0),
    "nursery": (0, 8, 0, 0),
    "penguins_raw": (7, 5, 1, 3),
    "hepatitis": (19, 0, 0, 0),
    "telco_churn": (4, 15, 0, 1),
    "adult": (6, 8, 0, 0),
    "redwine": (11, 0, 0, 0),
}
"""Columns by kind (number, category, date, left out), as the sources describe them."""


@pytest.mark.parametrize("name", KINDS)
def test_kinds_of_real_tables(real_table, name):
    kinds = [column.kind for column in data_of(real_table(name), "target").columns]
    assert tuple(map(kinds.count, ("number", "category", "date", "left out"))) == KINDS[name]


EXPECTED = {
    "redwine": {("RB004", "")},
    "telco_churn": {("RB006", "customerID")},
    "penguins_raw": {("RB006", "Individual ID"), ("RB005", "Region"), ("RB005", "Stage")},
    "bank_marketing": {("RB014", "duration")},
}


@pytest.mark.parametrize("name", EXPECTED)
def test_findings_on_real_tables(real_table, name):
    report = compare(real_table(name, 10000), "target", cv=None if name == "bank_marketing" else 2).report
    assert EXPECTED[name] <= codes_of(report)
    assert "RB003" not in {code for code, _ in codes_of(report)}
    assert "RB010" not in {code for code, _ in codes_of(report)}
    assert json.loads(report.to_json())["schema"] == SCHEMA
