"""Findings: codes, the page about them, and `checks_` of fitted estimators."""

import pickle
import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import riskbayes
from riskbayes import GaussianNB, MixedNB, QuadraticDiscriminantAnalysis, RiskBayesClassifier
from riskbayes.findings import CODES, Finding, without
from riskbayes.learners import RC

ROOT = Path(__file__).parents[1]


def codes(clf):
    return [finding.code for finding in clf.checks_]


def numbers(m=120, n=4, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=m)
    return rng.standard_normal((m, n)) + y[:, None], y


def test_pages_equal_what_the_code_says():
    pages = runpy.run_path(str(ROOT / "benchmarks" / "contract_pages.py"))["pages"]()
    for name, page in pages.items():
        written = (ROOT / "doc" / name).read_text(encoding="utf-8")
        assert written == page, f"run python benchmarks/contract_pages.py: doc/{name} is not what it makes"
    assert all(f"## {code} {about.name}" in pages["findings.md"] for code, about in CODES.items())


def test_ignoring_leaves_the_others_and_refuses_unknown_codes():
    found = [Finding("RB001", "a"), Finding("RB002", "b")]
    assert without(found, ["RB001"]) == found[1:]
    with pytest.raises(ValueError, match="no finding with the code 'RB999'"):
        without(found, ["RB999"])


def test_nothing_is_found_in_a_plain_model():
    X, y = numbers()
    assert codes(RiskBayesClassifier("single").fit(X, y)) == []
    assert codes(QuadraticDiscriminantAnalysis(learner="closed_form").fit(X, y)) == []


def test_a_model_that_is_not_fitted_has_no_checks():
    with pytest.raises(NotFittedError):
        GaussianNB().checks_
    assert not hasattr(GaussianNB(), "checks_")
    assert not hasattr(RiskBayesClassifier("single"), "checks_")


@pytest.mark.filterwarnings("ignore::riskbayes.FlooredWarning")
def test_a_floored_covariance_names_classes_and_columns():
    X, y = numbers()
    X = pd.DataFrame(X, columns=list("abcd"))
    X.loc[y == 1, "c"] = 3.0
    (found,) = (
        f for f in GaussianNB(var_smoothing=0.0, learner="closed_form").fit(X, y).checks_ if f.code == "RB001"
    )
    assert found.where == "1"
    assert "'c'" in found.message
    assert "'a'" not in found.message
    X["e"] = X["a"] + X["b"]
    assert "RB001" in codes(QuadraticDiscriminantAnalysis(learner="closed_form").fit(X, y))


@pytest.mark.parametrize("make", [RiskBayesClassifier, MixedNB])
def test_columns_of_a_table_are_told(make):
    rng = np.random.default_rng(0)
    y = rng.choice(["no", "yes"], size=90, p=[0.9, 0.1])
    y[:2] = "yes", "no"
    X = pd.DataFrame(
        {
            "size": rng.standard_normal(90),
            "same": "x",
            "key": [f"id {i}" for i in range(90)],
            "hole": np.where(np.arange(90) % 3, np.nan, rng.standard_normal(90)),
            "empty": np.full(90, None),
        }
    )
    found = make().fit(X, y).checks_
    where = {(f.code, f.where) for f in found}
    assert {("RB005", "same"), ("RB005", "empty"), ("RB006", "key"), ("RB007", "hole")} <= where
    assert ("RB008", "yes") in where
    assert "size" not in {f.where for f in found}


def test_nothing_is_found_about_columns_that_the_user_leaves_out():
    X, y = numbers(m=60)
    table = pd.DataFrame(X).assign(key=[f"id {i}" for i in range(60)], same="x")
    table["note"] = [f"they called {i} times and paid" for i in range(60)]
    table.columns = list(map(str, table.columns))
    told = {"key": "id", "note": "text", "same": "drop"}
    assert {("RB006", "key"), ("RB032", "note"), ("RB005", "same")} <= {
        (f.code, f.where) for f in MixedNB().fit(table, y).checks_
    }
    assert not {f.where for f in MixedNB(columns=told).fit(table, y).checks_} & told.keys()


def test_more_values_than_are_counted_are_told(monkeypatch):
    monkeypatch.setattr("riskbayes.input.schema.MOST_VALUES", 50)
    X, y = numbers(m=60)
    table = pd.DataFrame({"x": X[:, 0], "key": [f"id {i}" for i in range(60)]})
    (found,) = (f for f in MixedNB().fit(table, y).checks_ if f.code == "RB006")
    assert " of 60 cells" in found.message
    assert "None" not in found.message


def test_many_columns_share_one_finding():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({f"c{i}": ["x"] * 60 for i in range(30)} | {"z": rng.standard_normal(60)})
    (found,) = (f for f in MixedNB().fit(X, np.arange(60) % 2).checks_ if f.code == "RB005")
    assert found.message.startswith("30 columns")
    assert "and 25 more" in found.message


def test_a_fit_that_could_have_gone_on_is_told():
    X, y = numbers(seed=1)
    assert "RB011" in codes(
        GaussianNB(learner=RC(lr=0.05, max_iter=2, step="fixed", generative_weight=0.0)).fit(X, y)
    )
    assert "RB011" not in codes(GaussianNB(learner="closed_form").fit(X, y))


def test_checks_are_computed_on_demand_and_travel():
    X, y = numbers(m=30)
    y[:] = 0
    y[:4] = 1
    clf = RiskBayesClassifier("single").fit(X, y)
    assert "checks_" not in vars(clf)
    assert pickle.loads(pickle.dumps(clf)).checks_ == clf.checks_ != []
    ensemble = RiskBayesClassifier("ensemble", random_state=0, cv=2).fit(X, y)
    assert [f.code for f in ensemble.checks_] == ["RB008"]


def test_classes_of_few_rows_count_weights():
    X, y = numbers(m=60)
    assert "RB008" not in codes(GaussianNB().fit(X, y))
    assert "RB008" in codes(GaussianNB().fit(X, y, sample_weight=np.full(60, 0.5)))


@pytest.mark.filterwarnings("ignore:The weights of .* rows sum to")
@pytest.mark.parametrize("make", [RiskBayesClassifier, MixedNB])
@pytest.mark.parametrize("class_weight", [None, "balanced", {"no": 0.01, "yes": 7.0}], ids=str)
def test_counts_in_findings_do_not_depend_on_weights_of_classes_or_their_unit(make, class_weight):
    rng = np.random.default_rng(0)
    m = 300
    y = np.where(np.arange(m) < 12, "yes", "no")
    X = pd.DataFrame({"size": rng.standard_normal(m), "word": rng.choice(["a", "b", None], size=m)})
    X["rare"] = np.where(np.arange(m) % 5 < 3, np.nan, rng.standard_normal(m))
    X["key"] = [f"row {i}" for i in range(m)]
    expected = make().fit(X, y).checks_
    told = {f.code: f.message for f in expected}
    assert told["RB007"] in (
        "Column 'rare' is missing in 60 % of the rows.",
        f"Column 'word' is missing in {100 * X['word'].isna().mean():.0f} % of the rows.",
    )
    assert told["RB006"] == (
        "Column 'key' has 300 distinct values of 300 cells, such as 'row 0', and was left out; "
        "--kind key=category keeps it."
    )
    assert told["RB008"] == "Class 'yes' has 12 rows."
    clf = make(class_weight=class_weight)
    assert clf.fit(X, y).checks_ == expected
    columns = [f for f in expected if f.code != "RB008"]
    for w in (np.full(m, 0.01), np.where(y == "yes", 40.0, 0.1), rng.uniform(0.1, 9, m)):
        assert [f for f in clf.fit(X, y, sample_weight=w).checks_ if f.code != "RB008"] == columns


def test_a_class_of_weighted_rows_has_as_many_as_their_repeats():
    X, y = numbers(m=60)
    y[:] = np.arange(60) < 6
    times = np.random.default_rng(0).integers(1, 4, size=60)
    for class_weight in (None, {0: 0.2, 1: 30.0}):
        clf = GaussianNB(class_weight=class_weight)
        assert clf.fit(X, y, times).checks_ == clf.fit(X.repeat(times, axis=0), y.repeat(times)).checks_ != []


def test_shares_of_missing_cells_are_those_of_all_batches():
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    X = pd.DataFrame({"size": rng.standard_normal(400), "word": rng.choice(["a", "b"], size=400)})
    X.loc[100:, "word"] = None
    X.loc[[100, 101], "word"] = "c"
    y = pd.Series(y)
    parts = [(X[i : i + 100], y[i : i + 100]) for i in (0, 100, 200, 300)]
    clf = MixedNB("gaussian", learner="closed_form").fit(riskbayes.rows(lambda: iter(parts)))
    assert [c.n_missing for c in clf.columns_] == [0, 298]
    assert "Column 'word' is missing in 74 % of the rows." in [f.message for f in clf.checks_]


def test_labels_that_differ_by_case_or_blanks_are_told():
    X, _ = numbers(m=120)
    y = np.array(["yes", "Yes ", "no", "YES", " no", "caf\u00e9", "cafe\u0301", "maybe"])[np.arange(120) % 8]
    found = {f.where: f.message for f in RiskBayesClassifier("single").fit(X, y).checks_ if f.code == "RB020"}
    assert sorted(map(str.strip, found)) == ["YES", "cafe\u0301", "no"]
    assert found["YES"] == "Labels 'YES', 'Yes ', 'yes' count as 3 classes."
    assert "RB020" not in codes(GaussianNB().fit(X, np.array(["yes", "no", "y es"])[np.arange(120) % 3]))
