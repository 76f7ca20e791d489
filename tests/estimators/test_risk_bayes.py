"""RiskBayesClassifier beside the other estimators: costs, weights, paths, densities, callbacks, any scale."""

import pickle
import re
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.callback import ProgressBar, ScoringMonitor
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from riskbayes import RiskBayesClassifier, rows
from riskbayes.estimators import risk_bayes
from riskbayes.estimators.family import family, recipe
from riskbayes.estimators.kinds import of_numbers
from riskbayes.search import HeldOut
from riskbayes.task import Status

DENSITIES = ["LDA", "QDA, n"]


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def labelled(iris):
    """Two overlapping classes of different sizes, with names."""
    X, y = iris
    rows = np.flatnonzero(y > 0)[:80]
    return X[rows], np.array(["virginica", "versicolor"])[(y[rows] == 1).astype(int)]


@pytest.fixture
def only(monkeypatch):
    """A classifier that knows some members only; an ensemble of them has them all."""

    def make(strategy, *names, **params):
        chosen = [member.name for member in family(of_numbers(4)) if member.name in names]
        assert len(chosen) == len(names)
        monkeypatch.setattr(
            risk_bayes, "family", lambda kinds: [member for member in family(kinds) if member.name in names]
        )
        alike = {(i, 2): 1 / max(1, len(names)) for i in range(len(names))}
        monkeypatch.setattr(HeldOut, "ensemble", lambda found: alike)
        folds = StratifiedKFold(2, shuffle=True, random_state=0)  # not repeated
        return RiskBayesClassifier(strategy, cv=folds, random_state=0, **params)

    return make


# Weights of classes, costs, scores


@pytest.mark.parametrize("strategy", ["single", "cv"])
@pytest.mark.parametrize("weighted", [False, True])
def test_class_weight_multiplies_sample_weight(labelled, only, strategy, weighted):
    X, y = labelled
    w = np.random.default_rng(0).uniform(0.5, 2.0, len(y)) if weighted else np.ones(len(y))
    mass = np.array([w[y == "versicolor"].sum(), w[y == "virginica"].sum()])
    for class_weight, by_hand in (
        ({"virginica": 3.0, "versicolor": 0.5}, [0.5, 3.0]),
        ("balanced", w.sum() / (2 * mass)),
    ):
        clf = only(strategy, "LDA", "QDA, n", class_weight=class_weight)
        clf.fit(X, y, w if weighted else None)
        np.testing.assert_allclose(clf.class_weight_, by_hand)
        plain = (
            clone(clf).set_params(class_weight=None).fit(X, y, w * clf.class_weight_[(y == "virginica") * 1])
        )
        assert plain.class_weight_ is None
        np.testing.assert_array_equal(clf.predict_proba(X), plain.predict_proba(X))
        for name in set(clf.leaderboard_) - {"seconds"}:
            assert (clf.leaderboard_[name] == plain.leaderboard_[name]).all()


def test_class_weights_that_are_none_are_refused(labelled):
    X, y = labelled
    with pytest.raises(ValueError, match="class 'versicolor' must be a finite, non-negative number"):
        RiskBayesClassifier(class_weight={"versicolor": -1.0}).fit(X, y)
    with pytest.raises(ValueError, match="class 'virginica' has no weight"):
        RiskBayesClassifier(class_weight={"virginica": 0.0}).fit(X, y)
    with pytest.raises(ValueError, match="class_weight"):
        RiskBayesClassifier(class_weight="even").fit(X, y)


@pytest.mark.parametrize("strategy", ["single", "ensemble"])
def test_decisions_have_the_least_expected_cost(iris, only, strategy):
    X, y = iris
    labels = np.array(["a", "b", "c"])[y]
    clf = only(strategy, "QDA, n", "LDA").fit(X, labels)
    P = clf.predict_proba(X)
    C = np.array([[0.0, 1.0, 5.0], [20.0, 0.0, 1.0], [1.0, 3.0, 0.0]])
    expected = [[sum(p[k] * C[k, j] for k in range(3)) for j in range(3)] for p in P]
    assert clf.decide(X, C).tolist() == clf.classes_[np.argmin(expected, axis=1)].tolist()
    assert (clf.decide(X, 1 - np.eye(3)) == clf.predict(X)).all()
    with pytest.raises(ValueError, match="cost_matrix"):
        clf.decide(X, np.eye(2))
    with pytest.raises(NotFittedError):
        RiskBayesClassifier("single").decide(X, C)


@pytest.mark.parametrize(
    ("strategy", "names"),
    [
        ("single", ()),
        ("cv", ("LDA",)),
        ("cv", ("leaves",)),
        ("neighbours", ()),
        ("ensemble", ("LDA", "QDA, n", "leaves")),
    ],
)
def test_scores_are_log_posteriors(iris, labelled, only, strategy, names):
    for X, y in (iris, labelled):
        clf = only(strategy, *names).fit(X, y)
        P, log_P, scores = clf.predict_proba(X), clf.predict_log_proba(X), clf.decision_function(X)
        np.testing.assert_allclose(np.exp(log_P), P, atol=1e-12)
        if len(clf.classes_) == 2:
            np.testing.assert_allclose(scores, log_P[:, 1] - log_P[:, 0])
            assert (clf.classes_[(scores > 0).astype(int)] == clf.predict(X)).all()
        else:
            np.testing.assert_array_equal(scores, log_P)
            assert (clf.classes_[scores.argmax(axis=1)] == clf.predict(X)).all()


@pytest.mark.parametrize("strategy", ["single", "ensemble"])
def test_log_posteriors_do_not_underflow(labelled, only, strategy):
    X, y = labelled
    clf = only(strategy, "LDA", "QDA, n").fit(X, y)
    far = X.mean(axis=0) + 1e3 * np.random.default_rng(0).standard_normal((5, 4))
    assert (clf.predict_proba(far) == 0).any()
    assert np.isfinite(clf.predict_log_proba(far)).all()
    assert np.isfinite(clf.decision_function(far)).all()


# Paths


def test_the_history_of_one_member_is_its_own(iris, only):
    X, y = iris
    for strategy, names in (("single", ()), ("cv", ["LDA"]), ("cv", ["leaves"])):
        clf = only(strategy, *names).fit(X, y)
        member = clf.members_[0][0]
        assert clf.history_ is member.history_
        assert (clf.n_iter_, clf.status_) == (member.n_iter_, member.status_)
        assert isinstance(clf.status_, Status)
        at = clf.best_iteration_
        assert at == clf.leaderboard_["n_iter"][0]
        if at:  # the closed form is not scanned
            assert 1 - clf.score(X, y) == pytest.approx(clf.history_["error"][at])
            assert len(clf.history_["error"]) == clf.n_iter_ + 1


def test_an_ensemble_has_a_history_for_each_member(iris, only):
    clf = only("ensemble", "LDA", "QDA, n", "leaves").fit(*iris)
    assert len(clf.members_) == 3
    assert clf.history_ == [member.history_ for member, _ in clf.members_]
    assert clf.n_iter_ == [member.n_iter_ for member, _ in clf.members_]
    assert clf.status_ == [member.status_ for member, _ in clf.members_]
    assert len(clf.best_iteration_) == len(clf.members_)


# Densities


@pytest.mark.parametrize("name", DENSITIES)
def test_a_normalised_member_lends_its_density(labelled, only, name):
    X, y = labelled
    clf = only("cv", name).fit(X, y)
    member = clf.members_[0][0]
    np.testing.assert_array_equal(clf.score_samples(X), member.score_samples(X))
    batches = list(clf.score_samples(rows([X[:50], X[50:]])))
    assert [len(batch) for batch in batches] == [50, len(X) - 50]
    np.testing.assert_allclose(np.concatenate(batches), clf.score_samples(X), rtol=1e-12)
    drawn, labels = clf.sample(300, random_state=0)
    own, codes = member.sample(300, random_state=0)
    np.testing.assert_array_equal(drawn, own)
    assert labels.tolist() == clf.classes_[codes].tolist()
    assert clf.score(drawn, labels) > 0.8


def test_densities_that_are_none_are_refused(iris, only):
    X, y = iris
    for strategy, names, words in (
        ("single", [], "product of densities"),
        ("neighbours", [], "product of densities"),
        ("cv", ["leaves"], "product of densities"),
        ("ensemble", ["LDA", "QDA, n", "leaves"], "averages the posteriors of 3 members"),
    ):
        clf = only(strategy, *names)
        with pytest.raises(NotFittedError):
            clf.sample()
        clf.fit(X, y)
        with pytest.raises(NotImplementedError, match=f"no density .*{words}.* such as MixedNB"):
            clf.sample(3)
        with pytest.raises(AttributeError, match="score_samples") as refusal:
            clf.score_samples
        assert re.search(f"no density .*{words}.* such as MixedNB", str(refusal.value.__cause__))


# Columns of any range


@pytest.mark.parametrize("strategy", ["single", "glass", "neighbours", "cv"])
@pytest.mark.parametrize("value", [0.0, -7.5, np.nan])
def test_a_constant_column_of_an_array_changes_nothing(strategy, value):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=120)
    X = rng.standard_normal((120, 3)) + 0.5 * y[:, None]
    wide = np.insert(X, 1, value, axis=1)
    clf = RiskBayesClassifier(strategy, missing="ignore", cv=2, random_state=0)
    plain, other = (clone(clf).fit(A, y) for A in (X, wide))
    np.testing.assert_allclose(other.predict_proba(wide), plain.predict_proba(X), atol=1e-9)
    assert RiskBayesClassifier("single").fit(np.ones((20, 2)), y[:20]).predict_proba(
        np.ones((1, 2))
    ).shape == (1, 2)


def rows_of_few_digits(seed, dtype, m=60):
    """A column of real numbers, one that is often zero, one far from zero, one of few values, a constant."""
    rng = np.random.default_rng(seed)
    y = np.arange(m) % 3
    X = rng.standard_normal((m, 5)) + y[:, None] * rng.standard_normal(5)
    X[:, 1] = np.where(rng.random(m) < 0.4, 0.0, np.abs(X[:, 1]))
    X[:, 2] += 50.0
    X[:, 3] = rng.integers(0, 3, m) + (y == 1)
    X[:, 4] = 3.0
    return (np.round(64 * X) / 64).astype(dtype), y


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", ["single", "neighbours", *(member.name for member in family(of_numbers(5)))])
def test_powers_of_two_change_nothing(only, name, dtype, monkeypatch):
    """Columns of tiny or huge unit once made members guess, or return NaN."""
    if dtype == "f4":  # few scans of the recipe: the rounding of float32 grows along the path of a fit
        monkeypatch.setattr(risk_bayes, "recipe", partial(recipe, 8))
    least, most, close = (-1000, 900, 1e-10) if dtype == "f8" else (-100, 100, 1e-4)
    alone = name in ("single", "neighbours")
    clf = RiskBayesClassifier(name) if alone else only("cv", name)
    for seed in range(2):
        X, y = rows_of_few_digits(seed, dtype)
        plain = clf.fit(X, y).predict_proba(X)
        assert clf.score(X, y) > 0.5 or name == "class frequencies"
        e = np.random.default_rng(seed).integers(least, most, X.shape[1])
        e[seed], e[seed + 1] = least, most
        scaled = np.ldexp(X, e)
        np.testing.assert_allclose(clone(clf).fit(scaled, y).predict_proba(scaled), plain, atol=close)


@pytest.mark.parametrize("factor", [1e-323, 1e-320, 1e-308, 1e-300, 1e-200, 1e-20, 1e200, 1e300])
def test_columns_of_extreme_unit_are_read(iris, factor):
    X, y = np.round(10 * iris[0]), iris[1]
    X = np.c_[factor * X, np.full(len(y), factor)]
    clf = RiskBayesClassifier("single").fit(X, y)
    assert clf.score(X, y) > 0.95
    assert clf.members_[0][0].score(clf._scales.apply(X), y) == clf.score(X, y)


def test_columns_of_usual_range_reach_the_members_as_they_are(iris):
    X, y = iris
    clf = RiskBayesClassifier("single").fit(X, y)
    assert clf._scales.apply(X) is X
    np.testing.assert_allclose(clf.members_[0][0].predict_proba(X), clf.predict_proba(X), rtol=1e-14)


def test_samples_are_in_the_users_unit(labelled, only):
    X, y = labelled
    clf = only("cv", "QDA, n")
    plain, codes = clf.fit(X, y).sample(50, random_state=0)
    e = np.array([-900, 0, 800, -300])
    drawn, again = clone(clf).fit(np.ldexp(X, e), y).sample(50, random_state=0)
    np.testing.assert_allclose(np.ldexp(drawn, -e), plain, rtol=1e-9)
    assert (again == codes).all()
    with pytest.raises(AttributeError) as refusal:
        clone(clf).fit(np.ldexp(X, e), y).score_samples(np.ldexp(X, e))
    assert re.search(r"column 0 in another unit, .* about 2\*\*-899", str(refusal.value.__cause__))


def test_a_value_that_overflows_beside_the_training_rows_is_refused(iris):
    X, y = iris
    clf = RiskBayesClassifier("single").fit(1e-300 * X, y)
    new = 1e-300 * X[:3]
    new[1, 2] = 1e9
    with pytest.raises(ValueError, match=r"Column 2 holds 1e\+09, which overflows beside the training rows"):
        clf.predict(new)


def test_one_value_that_leaves_no_digit_to_the_others_is_refused(iris):
    """It is a fill value: what it was before scaling is not what it would be after."""
    X, y = iris[0].copy(), iris[1]
    X[7, 1] = 1e200
    with pytest.raises(ValueError, match="Column 1 has values whose squares overflow"):
        RiskBayesClassifier("single").fit(X, y)
    w = np.where(np.arange(len(y)) == 7, 0.0, 1.0)
    clf = RiskBayesClassifier("single").fit(X, y, w)  # a row without weight is no row
    np.testing.assert_allclose(
        clf.predict_proba(X[8:]),
        RiskBayesClassifier("single").fit(X[w > 0], y[w > 0]).predict_proba(X[8:]),
        atol=1e-9,
    )


# Callbacks


class Recorder:
    """Writes down the tasks that end, and stops when told to."""

    def __init__(self, stop=()):
        self.stop, self.begun, self.ended, self.torn_down = stop, [], [], 0

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        self.torn_down += 1

    def on_fit_task_begin(self, estimator, context, *, X=None):
        assert X is not None
        self.begun.append(context.task_name)

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None, X=None):
        self.ended.append((context.task_name, context.task_id))
        if fitted_estimator is not None:
            assert np.isfinite(fitted_estimator.predict_proba(X)).all()
        return (context.task_name, context.task_id) == self.stop


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_members_and_folds_are_tasks(iris, only, n_jobs):
    recorder = Recorder()
    clf = only("ensemble", "LDA", "QDA, n", n_jobs=n_jobs).set_callbacks(recorder)
    clf.fit(*iris)
    member = [("fold", 0), ("fold", 1)]
    refits = [("member", i) for i in range(len(clf.members_))]
    assert recorder.ended == [
        *(*member, ("member", 0), *member, ("member", 1)),
        *(*refits, ("refit", 2), ("fit", 0)),
    ]
    assert sorted(recorder.begun) == sorted(name for name, _ in recorder.ended)
    assert recorder.torn_down == 1
    assert not hasattr(clf, "_callback_fit_ctx")
    again = clone(clf).set_callbacks().fit(*iris)
    np.testing.assert_array_equal(clf.predict_proba(iris[0]), again.predict_proba(iris[0]))


def test_one_recipe_is_one_task(iris):
    recorder = Recorder()
    clf = RiskBayesClassifier("single").set_callbacks(recorder).fit(*iris)
    assert recorder.ended == [("member", 0), ("fit", 0)]
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(clf)).predict_proba(iris[0]), clf.predict_proba(iris[0])
    )


@pytest.mark.parametrize("stop", [("member", 0), ("fold", 0)])
def test_a_callback_ends_the_search(iris, only, stop, capsys):
    recorder = Recorder(stop)
    clf = only("cv", "LDA", "QDA, n", "leaves", verbose=1).set_callbacks(recorder).fit(*iris)
    assert len(clf.leaderboard_["member"]) == 1
    assert clf.score(*iris) > 0.9
    assert recorder.ended[-1] == ("fit", 0)
    assert "a callback asked to stop: 2 members were not tried" in capsys.readouterr().out


def test_callbacks_are_torn_down_after_an_error(iris, only):
    class Failing(Recorder):
        def on_fit_task_end(self, estimator, context):
            raise RuntimeError("a fault of the callback")

    for clf in (RiskBayesClassifier("single"), only("cv", "LDA")):
        failing = Failing()
        with pytest.raises(RuntimeError, match="a fault"):
            clf.set_callbacks(failing).fit(*iris)
        assert failing.torn_down == 1
        assert not hasattr(clf, "members_")


def test_a_progress_bar_shows_members_and_iterations(iris, only, capsys):
    only("cv", "LDA", "QDA, n").set_callbacks(ProgressBar()).fit(*iris)
    out = capsys.readouterr().out
    assert "RiskBayesClassifier" in out
    assert "member" in out
    assert "100%" in out
    RiskBayesClassifier("single").set_callbacks(ProgressBar()).fit(*iris)
    assert "ProductOfExperts" in capsys.readouterr().out


def test_a_scoring_monitor_scores_the_whole(iris, only):
    X, y = iris
    for clf in (RiskBayesClassifier("single"), only("cv", "LDA", "QDA, n")):
        monitor = ScoringMonitor(scoring="accuracy")
        clf.set_callbacks(monitor).fit(X, y)
        [row] = [row for row in monitor.get_logs().data if "accuracy" in row and row["task_name"] == "fit"]
        assert row["accuracy"] == clf.score(X, y)


def test_a_progress_bar_on_a_search(iris, only, capsys):
    search = GridSearchCV(only("cv", "LDA", "QDA, n"), {"class_weight": [None, "balanced"]}, cv=2)
    search.set_callbacks(ProgressBar(max_propagation_depth=None)).fit(*iris)
    out = capsys.readouterr().out
    assert "GridSearchCV" in out
    assert "RiskBayesClassifier" in out


# Few rows


def test_four_rows_are_enough(iris):
    rows = [0, 1, 60, 61]
    X, y = iris[0][rows], iris[1][rows]
    clf = RiskBayesClassifier("cv", random_state=0).fit(X, y)
    assert clf.score(X, y) == 1.0
    assert len(clf.leaderboard_["member"]) == len(family(of_numbers(4)))
