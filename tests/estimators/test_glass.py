"""`strategy="glass"`: the recipe, with tables of columns and of pairs where held-out rows gain by them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.metrics import log_loss

import riskbayes
from onnx_checks import check
from riskbayes import RiskBayesClassifier
from riskbayes.estimators import glass, glass_search
from riskbayes.estimators.family import folds_of, recipe
from riskbayes.estimators.glass import GlassClassifier, Walk
from riskbayes.estimators.glass_search import GlassSearch
from riskbayes.estimators.kinds import of_numbers
from riskbayes.exceptions import ColumnError
from riskbayes.models.correction import Ridge


def exclusive_or(seed=0, m=500):
    """Two categories whose exclusive or is the class, and two numbers of no use; some cells are missing."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.choice(list("xy"), m), "b": rng.choice(list("pq"), m)})
    X["u"], X["v"] = rng.normal(size=(2, m))
    y = np.where((X["a"] == "x") ^ (X["b"] == "p"), "yes", "no")
    X.loc[rng.random(m) < 0.1, "u"] = np.nan
    return X, y


@pytest.fixture(scope="module")
def xor():
    X, y = exclusive_or()
    return X, y, RiskBayesClassifier("glass").fit(X, y)


def test_pairs_learn_an_exclusive_or(xor):
    new, y = exclusive_or(1)
    assert (RiskBayesClassifier("single").fit(*xor[:2]).predict(new) != y).mean() > 0.3
    assert (xor[2].predict(new) != y).mean() < 0.02
    assert xor[2].leaderboard_["member"][0] == "tables and pairs"


@pytest.mark.parametrize("value", [-1.7e308, 1.7e308, 1e200])
def test_values_that_overflow_are_refused_by_their_column(value):
    """The recipe names the column; tables read the cells after it, and NumPy does not warn."""
    X, y = load_iris(return_X_y=True)
    clf = GlassClassifier(recipe(kinds=of_numbers(4)), of_numbers(4), tables=1.0).fit(X, y)
    X[5, 1] = value
    with pytest.raises(ColumnError) as refused:
        clf.predict_proba(X)
    assert refused.value.column == 1


def test_tables_learn_a_sum():
    rng = np.random.default_rng(0)
    X = rng.choice(list("abc"), (900, 9))
    y = (X == "a").sum(axis=1) - (X == "b").sum(axis=1) > 0
    kept, new = slice(600), slice(600, 900)
    wrong = {
        strategy: (RiskBayesClassifier(strategy).fit(X[kept], y[kept]).predict(X[new]) != y[new]).mean()
        for strategy in ("single", "glass")
    }
    assert wrong["glass"] < 0.03
    assert wrong["glass"] <= wrong["single"]


@pytest.mark.parametrize("frame", [True, False])
def test_explanations_add_up(xor, frame):
    X, y, clf = xor
    if not frame:
        rng = np.random.default_rng(0)
        X = rng.uniform(0.0, 3.0, size=(800, 3))  # a chequerboard of two columns
        y = np.where((X[:, 0].astype(int) + X[:, 1].astype(int)) % 2, 2, X[:, 2] > 1.5)
        clf = RiskBayesClassifier("glass").fit(X, y)
    for fitted in (clf, clf.with_priors(np.full(len(clf.classes_), 1 / len(clf.classes_)))):
        found = fitted.explain(X)
        joint = found.baseline + found.values.sum(axis=1)
        logs = fitted.predict_log_proba(X)
        np.testing.assert_allclose(joint - joint[:, :1], logs - logs[:, :1], atol=1e-9)
    assert ("a x b" if frame else "0 x 1") in found.columns
    assert found.cells.shape == found.values.shape[:2]
    assert len(found.to_frame()) == found.values.size


def test_the_tables_of_a_pair_are_told_by_the_values_of_both(xor):
    X, _, clf = xor
    found = clf.explain(X[:1])
    at = found.columns.index("a x b")
    assert found.cells[0, at] == f"{X['a'][0]} x {X['b'][0]}"
    odds = found.log_odds("yes", "no")
    assert abs(odds.values[0, at]) == abs(odds.values[0]).max()


def test_noise_is_not_learned():
    """On labels without a rule it is about as good as the class frequencies, where the recipe is too sure."""
    losses, n_tables = [], 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(240, 5)), rng.integers(0, 2, 240)
        kept, new = slice(120), slice(120, 240)
        glass, single, none = (
            clf.fit(X[kept], y[kept])
            for clf in (RiskBayesClassifier("glass"), RiskBayesClassifier("single"), DummyClassifier())
        )
        n_tables += glass.leaderboard_["member"][glass.leaderboard_["weight"] > 0][0].startswith("tables")
        losses.append([log_loss(y[new], clf.predict_proba(X[new])) for clf in (glass, single, none)])
    ours, of_recipe, of_frequencies = np.mean(losses, axis=0)
    assert n_tables <= 6
    assert ours < of_frequencies + 0.03 < of_recipe


def test_without_a_gain_it_is_the_recipe():
    X, y = load_iris(return_X_y=True)
    clf = RiskBayesClassifier("glass").fit(X, y)
    assert clf.leaderboard_["member"][clf.leaderboard_["weight"] > 0] == ["recipe"]
    assert (clf.predict_proba(X) == RiskBayesClassifier("single").fit(X, y).predict_proba(X)).all()


def test_held_rows_lend_nothing_but_their_score(monkeypatch):
    for name, values in (("POWERS", (1.0,)), ("TABLES", (3.0,)), ("PAIRS", (1.0,))):
        monkeypatch.setattr(glass_search, name, values)
    X, y = load_iris(return_X_y=True)
    kept, held = folds_of(3, y, None, 0)[0]
    other = y.copy()
    other[held] = np.random.default_rng(0).permutation(y[held])
    kinds = of_numbers(4)
    one, two = (GlassSearch(recipe(kinds=kinds), kinds, X, own, None, [(kept, held)]) for own in (y, other))
    assert len(one.tried) == 6
    for a, b in zip(one.tried, two.tried, strict=True):
        assert (a.log_posteriors == b.log_posteriors).all()
        assert (a.log_loss != b.log_loss).any()


def test_no_choice_is_random(xor):
    X, y, clf = xor
    again = RiskBayesClassifier("glass", random_state=7).fit(X, y)
    assert (again.predict_proba(X) == clf.predict_proba(X)).all()


def test_what_is_refitted_is_what_was_chosen(xor):
    clf = xor[2]
    board = clf.leaderboard_
    names = ["class frequencies", "closed form", "power", "recipe", "tables", "tables and pairs"]
    assert sorted(board["member"]) == names
    assert board["weight"].tolist() == [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert (np.diff(board["cv_score"]) >= 0).all()
    strengths = dict(zip(board["member"], board["strength"], strict=True))
    member = clf.members_[0][0]
    assert (member.tables, member.pairs) == (strengths["tables"], strengths["tables and pairs"])


def test_files_hold_the_tables(xor, tmp_path):
    X, _, clf = xor
    loaded = riskbayes.load(clf.save(tmp_path / "glass.rb"))
    new = X.copy()
    new.loc[0, "a"] = "new"
    assert (loaded.predict_proba(new) == clf.predict_proba(new)).all()
    assert (loaded.explain(new).values == clf.explain(new).values).all()


def test_a_graph_holds_the_tables(xor):
    assert xor[2].members_[0][0].pairs_
    new, _ = exclusive_or(1)
    check(xor[2], new)


def test_what_glass_has_not_is_refused(xor):
    with pytest.raises(NotImplementedError, match="posteriors tables correct"):
        xor[2].sample(2)
    assert not hasattr(xor[2], "partial_fit")


def test_folds_that_cannot_be_judged_leave_the_recipe(xor, monkeypatch):
    def refuse(*args):
        raise ColumnError(0, "holds a value too far from the rows of the fit.")

    monkeypatch.setattr(GlassSearch, "__init__", refuse)
    X, y, _ = xor
    clf = RiskBayesClassifier("glass").fit(X, y)
    assert clf.leaderboard_["member"].tolist() == ["product"]
    assert (clf.predict_proba(X) == RiskBayesClassifier("single").fit(X, y).predict_proba(X)).all()
    board = RiskBayesClassifier("ensemble", random_state=0).fit(X, y).leaderboard_
    assert dict(zip(board["member"], board["weight"], strict=True))["product with tables"] == 0


def test_a_class_of_one_row_leaves_the_recipe():
    X, y = np.arange(12.0).reshape(6, 2), [0, 0, 0, 0, 0, 1]
    assert RiskBayesClassifier("glass").fit(X, y).leaderboard_["member"].tolist() == ["product"]


def test_lines_say_what_was_taken(xor, capsys):
    RiskBayesClassifier("glass", verbose=1).fit(*xor[:2])
    lines = capsys.readouterr().out.splitlines()
    assert [line.endswith("taken") for line in lines] == [False, False, False, False, True, False]


def test_weights_of_classes_count_in_the_tables(xor):
    X, y, _ = xor
    w = np.where(y == "yes", 3.0, 1.0)
    weighted = RiskBayesClassifier("glass").fit(X, y, w)
    named = RiskBayesClassifier("glass", class_weight={"yes": 3.0, "no": 1.0}).fit(X, y)
    np.testing.assert_allclose(weighted.predict_proba(X), named.predict_proba(X), atol=1e-9)


def test_after_the_time_limit_nothing_weaker_is_tried(xor):
    clf = RiskBayesClassifier("glass", time_limit=1e-6).fit(*xor[:2])
    assert "tables and pairs" not in clf.leaderboard_["member"]


def test_an_ensemble_has_the_tables(xor):
    X, y, _ = xor
    board = RiskBayesClassifier("ensemble", random_state=0).fit(X, y).leaderboard_
    weights = dict(zip(board["member"], board["weight"], strict=True))
    assert weights["product with tables"] > 0


def test_only_columns_whose_tables_say_most_are_paired(monkeypatch):
    monkeypatch.setattr(glass, "MOST_COLUMNS", 2)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    y = (X[:, 1] + X[:, 4] ** 3 + X[:, 1] * X[:, 4] > 1).astype(int)
    kinds = of_numbers(5)
    walk = Walk(recipe(kinds=kinds, n_iter=1), kinds, X, y, None, 2)
    walk.to(Ridge(1.0))
    most = np.argsort(-walk.effects())[:2]
    walk.add_pairs()
    assert set(walk.gain.cells.bins.columns.tolist()) == set(most.tolist()) == {1, 4}


def test_many_rows_have_finer_knots():
    """Coarse knots cannot tell sixteen stripes; explanations and graphs add up both tables of a column."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"stripes": rng.uniform(size=4000), "none": rng.normal(size=4000)})
    X["few"] = rng.integers(3, size=4000)
    y = np.floor(16 * X["stripes"]).to_numpy() % 2
    X = X.mask(rng.random(X.shape) < 0.02)
    clf = RiskBayesClassifier("glass").fit(X[:3000], y[:3000])
    assert clf.members_[0][0].correction_.cells.numbers.tolist() == [0, 1, 2, 0, 1]
    new = X[3000:].reset_index(drop=True)
    assert (clf.predict(new) != y[3000:]).mean() < 0.1
    found, logs = clf.explain(new), clf.predict_log_proba(new)
    joint = found.baseline + found.values.sum(axis=1)
    np.testing.assert_allclose(joint - joint[:, :1], logs - logs[:, :1], atol=1e-9)
    check(clf, new)
