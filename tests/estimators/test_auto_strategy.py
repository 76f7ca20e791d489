"""The strategy that RiskBayesClassifier() chooses, by where the rows are, their number and their classes."""

import re

import numpy as np
import pandas as pd
import pytest

import riskbayes
from onnx_checks import check
from riskbayes import MixedNB, RiskBayesClassifier
from riskbayes.estimators import strategy


@pytest.fixture
def labelled():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 3))
    return X, np.where(X[:, 0] + 0.5 * rng.standard_normal(120) > 0, "yes", "no")


def same(clf, other, X):
    np.testing.assert_array_equal(clf.predict_proba(X), other.predict_proba(X))


def test_a_default_fit_is_the_ensemble(labelled):
    X, y = labelled
    clf = RiskBayesClassifier(random_state=0).fit(X, y)
    assert clf.strategy_ == strategy.BEST == "ensemble"
    assert clf.strategy_reason_ == "the rows are in memory, and not more than 100000"
    same(clf, RiskBayesClassifier("ensemble", random_state=0).fit(X, y), X)


def test_a_strategy_that_is_named_is_kept(labelled):
    clf = RiskBayesClassifier("cv", cv=2, time_limit=1e-9).fit(*labelled)
    assert (clf.strategy_, clf.strategy_reason_) == ("cv", "strategy='cv'")


def test_many_rows_have_the_recipe(labelled, monkeypatch):
    X, y = labelled
    monkeypatch.setattr(strategy, "MOST_ROWS", len(y))
    assert RiskBayesClassifier(cv=2, time_limit=1e-9).fit(X, y).strategy_ == "ensemble"
    monkeypatch.setattr(strategy, "MOST_ROWS", len(y) - 1)
    clf = RiskBayesClassifier().fit(X, y)
    assert (clf.strategy_, clf.strategy_reason_) == ("single", "120 rows are more than 119")
    same(clf, RiskBayesClassifier("single").fit(X, y), X)
    assert clf.explain(X).values.shape == (120, 3, 2)


def test_rows_in_batches_have_the_recipe(labelled):
    X, y = labelled
    batches = [(X[:50], y[:50]), (X[50:], y[50:])]
    clf = RiskBayesClassifier().fit(riskbayes.rows(lambda: batches))
    assert clf.strategy_ == "single"
    assert "batches" in clf.strategy_reason_
    same(clf, RiskBayesClassifier("single").fit(riskbayes.rows(lambda: batches)), X)


def test_a_checkpoint_has_the_recipe(labelled, tmp_path):
    clf = RiskBayesClassifier().fit(*labelled, checkpoint=tmp_path / "scans")
    assert clf.strategy_ == "single"
    assert "checkpoint" in clf.strategy_reason_


def test_a_class_of_one_row_has_the_recipe(labelled):
    X, y = labelled
    y = y.astype("<U5")
    y[7] = "maybe"
    with pytest.raises(ValueError, match="two rows or more of each class"):
        RiskBayesClassifier("ensemble").fit(X, y)
    clf = RiskBayesClassifier().fit(X, y)
    assert (clf.strategy_, clf.classes_.tolist()) == ("single", ["maybe", "no", "yes"])
    assert "single row" in clf.strategy_reason_
    y[8] = "maybe"
    assert RiskBayesClassifier(time_limit=1e-9).fit(X, y).strategy_ == "ensemble"
    w = np.ones(len(y))
    w[8] = 0.0  # a row without weight is no row
    assert RiskBayesClassifier().fit(X, y, w).strategy_ == "single"


def test_splits_of_the_user_need_no_rows_of_each_class(labelled):
    X, y = labelled
    y = y.astype("<U5")
    y[7] = "maybe"
    clf = RiskBayesClassifier(cv=[(np.arange(80), np.arange(80, 120))], time_limit=1e-9).fit(X, y)
    assert clf.strategy_ == "ensemble"


@pytest.mark.parametrize("time_limit", [None, 1e-9], ids=["several members", "one member"])
def test_what_a_default_fit_has_not_says_which_model_has_it(labelled, time_limit):
    X, y = labelled
    clf = RiskBayesClassifier(random_state=0, time_limit=time_limit).fit(X, y)
    # Without time for more, one model and the class frequencies.
    assert (len(clf.leaderboard_["member"]) > 2) == (time_limit is None)
    with pytest.raises(NotImplementedError, match=r"strategy='auto'.*chose 'ensemble'") as refusal:
        clf.sample()
    assert re.search(r"has no density.*Fit a model that has one, such as MixedNB\(\)", str(refusal.value))
    MixedNB().fit(X, y).sample()
    check(clf, X)  # all that it predicts is a graph, and explained
    odds = clf.explain(X).log_odds()
    np.testing.assert_allclose(odds.total, clf.decision_function(X), atol=1e-9)


def test_a_default_fit_of_few_rows_and_of_a_table():
    for m in (4, 5, 9):
        X, y = np.arange(2.0 * m).reshape(m, 2), np.arange(m) % 2
        assert np.isfinite(RiskBayesClassifier(random_state=0).fit(X, y).predict_proba(X)).all()
    frame = pd.DataFrame({"a": ["u", "v", None, "u"] * 10, "b": np.arange(40.0)})
    clf = RiskBayesClassifier(random_state=0).fit(frame, np.arange(40) > 19)
    assert clf.score(frame, np.arange(40) > 19) > 0.9


def test_on_noise_a_default_fit_promises_nothing():
    """Held out, it is no better than the coin that the labels are, and does not claim to be."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((600, 5)), rng.integers(2, size=600)
    clf = RiskBayesClassifier(random_state=0).fit(X[:300], y[:300])
    P = clf.predict_proba(X[300:])
    assert -np.log(P[np.arange(300), y[300:]]).mean() < np.log(2) + 0.03
    assert np.abs(P - 0.5).max() < 0.35


def test_a_loaded_model_says_what_was_chosen(labelled, tmp_path):
    X, y = labelled
    clf = RiskBayesClassifier(random_state=0, time_limit=1e-9).fit(X, y)
    again = riskbayes.load(clf.save(tmp_path / "model.rb"))
    assert (again.strategy_, again.strategy_reason_) == (clf.strategy_, clf.strategy_reason_)
    same(again, clf, X)
