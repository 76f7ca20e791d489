"""Explanations, parameters, other class frequencies, outliers, imputation: laws over every estimator."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.sparse import csc_matrix, csr_array
from scipy.special import softmax
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import GaussianNB as SklearnGaussianNB

import riskbayes
from riskbayes import (
    CategoricalNB,
    GaussianNB,
    GenerativeClassifier,
    KDependenceNB,
    LinearDiscriminantAnalysis,
    MixedNB,
    MixtureDiscriminantAnalysis,
    ProductOfExperts,
    QuadraticDiscriminantAnalysis,
    RiskBayesClassifier,
    SmoothNB,
    TreeAugmentedNB,
)
from riskbayes.engines import MemoryEngine
from riskbayes.estimators.base import BaseGenerativeClassifier
from riskbayes.learners import RC
from riskbayes.models import BinnedModel
from riskbayes.models.base import with_log_prior
from riskbayes.plotting import ParametersDisplay, new_figure

X, y = load_iris(return_X_y=True)
CODES = np.round(X).astype(int)
seeds = st.integers(0, 2**32 - 1)

ESTIMATORS = [
    kind
    for name in riskbayes.__all__
    if isinstance(kind := getattr(riskbayes, name), type)
    and issubclass(kind, BaseGenerativeClassifier)
    and kind is not GenerativeClassifier
]
COUNTS = [riskbayes.BernoulliNB, riskbayes.ComplementNB, riskbayes.MultinomialNB, riskbayes.PoissonNB]
EXPLAINED = [kind for kind in ESTIMATORS if kind is not MixtureDiscriminantAnalysis]
each = pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
each_explained = pytest.mark.parametrize("kind", EXPLAINED, ids=lambda kind: kind.__name__)
each_learner = pytest.mark.parametrize("learner", ["closed_form", "rc"])


def rows_for(kind):
    if kind is riskbayes.BernoulliNB:
        return (X.mean(axis=0) < X).astype(float)  # all lengths are above zero
    return CODES if kind().__sklearn_tags__().input_tags.categorical else X


def fitted(kind, learner="rc", **parameters):
    return kind(learner=learner, **parameters).fit(rows_for(kind), y)


def log_odds_of(clf, rows, k, other):
    logs = clf.predict_log_proba(rows)
    return logs[:, k] - logs[:, other]


@each
@each_learner
def test_contributions_sum_to_the_log_odds(kind, learner):
    clf = fitted(kind, learner)
    explanation = clf.explain(rows_for(kind))
    np.testing.assert_allclose(
        explanation.values.mean(axis=2), 0.0, atol=1e-9 * np.abs(explanation.values).max()
    )
    for k, other in [(0, 1), (2, 0), (1, 2)]:
        odds = explanation.log_odds(k, other)
        np.testing.assert_allclose(odds.baseline + odds.values.sum(axis=1), odds.total, rtol=1e-12)
        expected = log_odds_of(clf, rows_for(kind), k, other)
        np.testing.assert_allclose(odds.total, expected, rtol=1e-9, atol=1e-9)
    assert explanation.columns == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", COUNTS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("library", [csr_array, csc_matrix, pd.DataFrame])
def test_sparse_rows_are_explained_as_dense_ones(kind, library):
    rows = np.random.default_rng(0).poisson(0.5, size=X.shape).astype(float) + np.eye(3, 4)[y]
    dense = pd.DataFrame(rows, columns=list("pqrs")) if library is pd.DataFrame else rows
    table = dense.astype(pd.SparseDtype("float", 0.0)) if library is pd.DataFrame else library(rows)
    if library is pd.DataFrame:
        try:
            table.sparse.to_coo()
        except ImportError as error:  # pandas asks for a newer SciPy than we do
            pytest.skip(str(error))
    clf = kind().fit(dense, y)
    found, expected = clf.explain(table), clf.explain(dense)
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-12)
    assert (found.cells == rows).all()
    assert len(found.to_frame()) == found.values.size
    odds, logs = found.log_odds(2, 0), clf.predict_log_proba(table)
    np.testing.assert_allclose(odds.total, logs[:, 2] - logs[:, 0], rtol=1e-9, atol=1e-9)


def test_too_many_sparse_rows_are_not_explained():
    n = 2**14
    clf = riskbayes.MultinomialNB(learner="closed_form").fit(csr_array(np.eye(3, n)), [0, 1, 2])
    with pytest.raises(ValueError, match=r"X has 4096 sparse rows.*Explain at most 2730 rows at a time"):
        clf.explain(csr_array((4096, n)))
    assert clf.explain(csr_array((2, n))).values.shape == (2, n, 3)


def test_by_default_two_classes_favour_the_second_and_more_the_most_probable():
    A, b = load_breast_cancer(return_X_y=True)
    clf = QuadraticDiscriminantAnalysis(prior="recommended").fit(A, np.where(b, "yes", "no"))
    odds = clf.explain(A).log_odds()
    np.testing.assert_allclose(odds.total, clf.decision_function(A), rtol=1e-9, atol=1e-9)
    assert set(odds.positive) == {"yes"}
    clf = GaussianNB().fit(X, y)
    odds = clf.explain(X).log_odds()
    logs = np.sort(clf.predict_log_proba(X), axis=1)
    np.testing.assert_allclose(odds.total, logs[:, -1] - logs[:, -2], rtol=1e-9, atol=1e-9)
    assert (odds.positive == clf.predict(X)).all()


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_explanations_are_tidy_frames_of_the_library_of_the_rows(library):
    names = ["length", "width", "other length", "other width"]
    frame = pd.DataFrame(X[:, :4], columns=names)
    frame = {"pandas": frame, "polars": pl.from_pandas(frame), "pyarrow": pa.Table.from_pandas(frame)}[
        library
    ]
    clf = GaussianNB().fit(frame, y)
    tidy = clf.explain(frame).to_frame()
    assert type(tidy) is type(frame)
    table = {"pandas": lambda t: t, "polars": lambda t: t.to_pandas(), "pyarrow": lambda t: t.to_pandas()}[
        library
    ](tidy)
    assert list(table.columns) == ["row", "column", "value", "class", "contribution", "standard_error"]
    assert (table["standard_error"] == 0).all()
    assert len(table) == 150 * 4 * 3
    one = table[(table["row"] == 7) & (table["column"] == "width") & (table["class"] == 2)]
    assert one["value"].item() == X[7, 1]
    assert one["contribution"].item() == clf.explain(frame).values[7, 1, 2]


def test_cells_of_several_types_are_shown_as_the_user_wrote_them():
    frame = pd.DataFrame(
        {"colour": ["red", "blue"] * 10, "size": pd.Series([1, 2, 2, 1] * 5, dtype="category")}
    )
    clf = CategoricalNB().fit(frame, [0, 1] * 10)
    tidy = clf.explain(frame[:1]).to_frame()
    assert tidy["value"].tolist() == ["red", "red", "1", "1"]


def test_explanations_refuse_what_they_cannot_do():
    with pytest.raises(NotFittedError):
        GaussianNB().explain(X)
    explanation = GaussianNB().fit(X, y).explain(X[:3])
    with pytest.raises(ValueError, match="positive=7 is not a class; the classes are 0, 1, 2"):
        explanation.log_odds(7)
    with pytest.raises(ValueError, match="the same class, 1"):
        explanation.log_odds(1, 1)
    with pytest.raises(ValueError, match="row=3 is none of the 3"):
        explanation.plot(3)
    with pytest.raises(ValueError, match="Column 1 of X holds 1e\\+200 in row 0"):
        GaussianNB().fit(X, y).explain([[0.0, 1e200, 0.0, 0.0]])


@pytest.mark.parametrize("priors", [None, [0.1, 0.2, 0.7]])
def test_the_recipe_is_explained_in_the_units_and_labels_of_the_user(priors):
    names = np.array(["a", "b", "c"])[y]
    frame = pd.DataFrame(X * [1.0, 1e90, 1.0, 1e-90], columns=list("pqrs"))
    clf = RiskBayesClassifier("single").fit(frame, names)
    clf = clf if priors is None else clf.with_priors(priors)
    explanation = clf.explain(frame)
    assert explanation.columns == list("pqrs")
    assert explanation.classes.tolist() == ["a", "b", "c"]
    assert explanation.cells[3, 1] == frame.iloc[3, 1]
    odds = explanation.log_odds("b", "c")
    np.testing.assert_allclose(odds.total, log_odds_of(clf, frame, 1, 2), rtol=1e-9, atol=1e-9)


def ensemble_of_two(labels):
    """An ensemble of given members: to choose them would take long."""
    clf = RiskBayesClassifier("single").fit(X, labels).set_params(strategy="ensemble")
    clf.members_ = [(clf.members_[0][0], 0.7), (GaussianNB().fit(X, y), 0.3)]
    return clf


def test_an_average_of_posteriors_is_explained():
    clf = ensemble_of_two(y)
    odds = clf.explain(X).log_odds(1, 2)
    np.testing.assert_allclose(odds.total, log_odds_of(clf, X, 1, 2), rtol=1e-9, atol=1e-9)


@each_explained
def test_the_closed_form_has_not_moved_and_rc_is_sorted_by_what_moved_most(kind):
    plain = {"prior": None} if "prior" in kind().get_params() else {}
    clf = fitted(kind, **plain)
    still, moved = fitted(kind, "closed_form").parameters_frame(), clf.parameters_frame()
    assert (still["change"] == 0).all()
    assert (still["closed_form"] == still["calibrated"]).all()
    assert (moved["change"].abs().diff().dropna() <= 0).all()
    assert moved["change"].abs().max() > 0
    keys = ["class", "column", "parameter"]
    both = still.merge(moved, on=keys)
    assert len(both) == len(still) == len(moved)
    np.testing.assert_allclose(both["closed_form_x"], both["closed_form_y"])
    prior = moved[moved["column"] == "(prior)"].sort_values("class")
    np.testing.assert_allclose(prior["calibrated"], clf.parameters_.log_prior)


def test_parameters_of_gaussian_naive_bayes_are_those_of_its_attributes():
    clf = fitted(GaussianNB)
    frame = clf.parameters_frame().set_index(["parameter", "class", "column"])
    for k in range(3):
        for j in range(4):
            mean, deviation = frame.loc[("mean", k, str(j))], frame.loc[("standard deviation", k, str(j))]
            assert mean["calibrated"] == pytest.approx(clf.theta_[k, j])
            assert deviation["calibrated"] ** 2 == pytest.approx(clf.var_[k, j])
            assert mean["closed_form"] == pytest.approx(X[y == k, j].mean())
            by = (clf.theta_[k, j] - X[y == k, j].mean()) / deviation["closed_form"]
            assert mean["change"] == pytest.approx(by)


@pytest.mark.parametrize(
    "clf", [CategoricalNB(), TreeAugmentedNB(), KDependenceNB(2)], ids=lambda c: type(c).__name__
)
def test_probabilities_of_categories_are_named_by_value_and_sum_to_one(clf):
    rng = np.random.default_rng(0)
    words = pd.DataFrame({"a": rng.choice(["x", "y"], 200), "b": rng.choice(["{u}", "v", "w"], 200)})
    words["c"] = np.where(rng.random(200) < 0.7, words["a"], "z")
    frame = clf.fit(words, rng.integers(2, size=200)).parameters_frame()
    frame = frame[frame["column"] != "(prior)"]
    parts = frame["parameter"].str.extract(r"log probability of (?P<value>\S+)(?: given (?P<given>.*))?")
    assert set(parts["value"]) == {"x", "y", "z", "{u}", "v", "w"}
    sums = (
        np.exp(frame["calibrated"])
        .groupby([frame["class"], frame["column"], parts["given"].fillna("")])
        .sum()
    )
    np.testing.assert_allclose(sums, 1.0)
    if isinstance(clf, TreeAugmentedNB):
        given = parts["given"].dropna()
        assert given.str.fullmatch(r"[abc] = \S+").all()
        # A cell by hand: the share of its value among the rows of the parent's value.
        log_prob, frame_of = clf.parameters_.log_prob, clf.parameters_.frame
        assert set(np.round(frame["calibrated"], 9)) <= set(
            np.round(log_prob[:, ~frame_of.unseen], 9).ravel()
        )


def test_correlations_and_columns_are_named():
    frame = pd.DataFrame(X, columns=list("pqrs"))
    clf = QuadraticDiscriminantAnalysis(learner="closed_form").fit(frame, y)
    found = clf.parameters_frame().set_index(["parameter", "class", "column"])["closed_form"]
    assert found["correlation with s", 1, "q"] == pytest.approx(np.corrcoef(X[y == 1].T)[1, 3])


@each
@each_learner
@pytest.mark.parametrize("p", [[0.2, 0.3, 0.5], [1e-6, 0.0, 1 - 1e-6]])
def test_with_priors_weights_posteriors_by_the_ratio_of_the_frequencies(kind, learner, p):
    clf, rows = fitted(kind, learner), rows_for(kind)
    before = clf.predict_proba(rows)
    if kind is riskbayes.ComplementNB:
        with pytest.raises(NotImplementedError, match="does not use class frequencies"):
            clf.with_priors(p)
        return
    other = clf.with_priors(p)
    expected = before * np.array(p) * 3  # the training rows have a third of each class
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(other.predict_proba(rows), expected, atol=1e-9)
    assert (clf.predict_proba(rows) == before).all()
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(other.predict_log_proba(rows), np.log(expected), atol=1e-6)
    if learner == "closed_form":
        np.testing.assert_allclose(np.exp(other.parameters_.log_prior), p, atol=1e-12)
    if 0.0 not in p:
        again = other.with_priors(dict.fromkeys(range(3), 1 / 3)).predict_proba(rows)
        np.testing.assert_allclose(again, before, atol=1e-9)


def test_with_priors_is_scikit_learns_fixed_prior():
    p = [0.7, 0.2, 0.1]
    theirs = SklearnGaussianNB(priors=p).fit(X, y)
    ours = GaussianNB(learner="closed_form").fit(X, y).with_priors(p)
    np.testing.assert_allclose(ours.predict_log_proba(X), theirs.predict_log_proba(X), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(ours.class_prior_, p)


@each
def test_samples_and_densities_follow_the_new_frequencies(kind):
    if kind is riskbayes.ComplementNB:
        pytest.skip("it does not use class frequencies")
    clf = fitted(kind, "closed_form").with_priors([0.1, 0.1, 0.8])
    rows = rows_for(kind)
    joint = clf.predict_joint_log_proba(rows)
    np.testing.assert_allclose(softmax(joint, axis=1), clf.predict_proba(rows), atol=1e-9)
    if clf.model_.traits.normalised:
        assert np.bincount(clf.sample(2000, random_state=0)[1])[2] == pytest.approx(1600, abs=80)


@pytest.mark.parametrize(
    "make", [lambda b: RiskBayesClassifier("single").fit(X, b), ensemble_of_two], ids=["one", "two"]
)
def test_with_priors_of_the_family(make):
    clf = make(np.array(["a", "b", "c"])[y])
    np.testing.assert_allclose(clf.class_prior_, 1 / 3)
    before = clf.predict_proba(X)
    other = clf.with_priors({"c": 0.8, "a": 0.1, "b": 0.1})
    expected = before * [0.1, 0.1, 0.8]
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(other.predict_proba(X), expected, atol=1e-9)
    assert (clf.predict_proba(X) == before).all()
    back = other.with_priors(np.full(3, 1 / 3)).predict_proba(X)
    np.testing.assert_allclose(back, before, atol=1e-9)


def test_a_new_fit_of_the_family_returns_to_the_frequencies_of_the_rows():
    clf = RiskBayesClassifier("single").fit(X, y)
    other = clf.with_priors([0.1, 0.1, 0.8]).fit(X, y)
    assert (other.predict_proba(X) == clf.predict_proba(X)).all()


def test_costs_are_decided_under_the_new_frequencies():
    C = np.array([[0.0, 1.0, 1.0], [5.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    clf = GaussianNB(learner=RC(objective=C, max_iter=5)).fit(X, y).with_priors([0.5, 0.3, 0.2])
    assert (clf.predict(X) == (clf.predict_proba(X) @ C).argmin(axis=1)).all()


@pytest.mark.parametrize(
    ("p", "message"),
    [
        ({0: 0.5, 1: 0.5}, "2 is missing"),
        ({0: 0.5, 1: 0.2, 2: 0.2, 5: 0.1}, "5 is none of them"),
        ([0.5, 0.5], "must match number of classes"),
        ([0.5, 0.5, 0.5], "sum of the priors should be 1"),
        ([-0.5, 0.5, 1.0], "non-negative"),
    ],
)
@pytest.mark.parametrize("clf", [GaussianNB(), RiskBayesClassifier("single")], ids=["one", "family"])
def test_bad_frequencies_are_refused(clf, p, message):
    with pytest.raises(ValueError, match=message):
        clf.fit(X, y).with_priors(p)


def test_frequencies_of_a_class_without_rows_are_refused():
    clf = GaussianNB(learner="closed_form").partial_fit(X[:100], y[:100], classes=[0, 1, 2])
    with pytest.raises(ValueError, match="Class 2 had probability zero"):
        clf.with_priors([0.3, 0.3, 0.4])
    assert clf.with_priors([0.3, 0.7, 0.0]).predict_proba(X[:1]).shape == (1, 3)


def test_partial_fit_returns_to_the_frequencies_of_the_rows():
    clf = GaussianNB(learner="closed_form").fit(X, y)
    other = clf.with_priors([0.1, 0.1, 0.8]).partial_fit(X, y)
    np.testing.assert_allclose(other.predict_proba(X), clf.predict_proba(X), atol=1e-12)
    again = other.with_priors([1 / 3, 1 / 3, 1 / 3]).predict_proba(X)
    np.testing.assert_allclose(again, clf.predict_proba(X), atol=1e-12)


@given(seed=seeds, share=st.floats(0.05, 0.95))
def test_estimated_frequencies_maximise_the_likelihood(seed, share):
    rng = np.random.default_rng(seed)
    b = rng.integers(2, size=300)
    A = rng.standard_normal((300, 1)) + 1.5 * b[:, None]
    clf = GaussianNB(learner="closed_form").fit(A, b)
    new = rng.standard_normal((200, 1)) + 1.5 * (rng.random((200, 1)) < share)
    ratios = clf.predict_proba(new) / clf.class_prior_

    def negative(p):
        return -np.log(ratios @ [1 - p, p]).sum()

    best = minimize_scalar(negative, bounds=(0, 1), method="bounded", options={"xatol": 1e-9}).x
    found = clf.estimate_priors(new, tol=1e-10, max_iter=100000)
    assert found.sum() == pytest.approx(1.0)
    assert found[1] == pytest.approx(best, abs=1e-4)


@each
@each_learner
def test_frequencies_are_estimated_where_they_can_be_set(kind, learner):
    """Scores without p(y) are no joint: a division by p(y) would make another estimate of them."""
    clf, rows = fitted(kind, learner), rows_for(kind)
    try:
        clf.with_priors(np.full(len(clf.classes_), 1 / len(clf.classes_)))
    except NotImplementedError as error:
        with pytest.raises(NotImplementedError, match=str(error)):
            clf.estimate_priors(rows)
    else:
        assert clf.estimate_priors(rows, tol=1e-3).sum() == pytest.approx(1.0)


def test_estimates_that_have_not_settled_warn():
    with pytest.warns(UserWarning, match="more than tol=1e-12. Raise max_iter"):
        GaussianNB().fit(X, y).estimate_priors(X[:60], tol=1e-12, max_iter=2)


@pytest.mark.parametrize("clf", [GaussianNB(), RiskBayesClassifier("single")], ids=["one", "family"])
def test_estimates_do_not_depend_on_the_assumed_frequencies(clf):
    clf.fit(X, y)
    new = np.concatenate([X[:50], X[100:110]])
    a, b = clf.estimate_priors(new), clf.with_priors([0.2, 0.2, 0.6]).estimate_priors(new)
    np.testing.assert_allclose(a, b, atol=1e-4)
    assert a[0] == pytest.approx(5 / 6, abs=0.03)


@each
def test_at_most_a_share_fpr_of_the_training_rows_is_flagged(kind):
    clf, rows = fitted(kind), rows_for(kind)
    score, density = clf.outlier_score(rows), clf.score_samples(rows)
    assert ((score >= 0) & (score <= 1)).all()
    order = np.argsort(density)
    assert (np.diff(score[order]) <= 0).all()
    for fpr in (0.01, 0.05, 0.3):
        flagged = clf.is_outlier(rows, fpr)
        assert flagged.mean() <= fpr
        assert flagged.sum() == sum((density <= d).mean() < fpr for d in density)
    np.testing.assert_allclose(clf.outlier_score(rows, reference=rows), score)


def test_far_rows_are_outliers_and_others_are_compared_with_the_reference():
    clf = QuadraticDiscriminantAnalysis().fit(X, y)
    assert clf.outlier_score(X.mean(axis=0, keepdims=True) + 100).item() == 1.0
    assert clf.is_outlier(X.mean(axis=0, keepdims=True) + 100, reference=X + 200).item() == np.False_


@pytest.mark.parametrize(
    "change",
    [
        lambda clf: clf.partial_fit(X[:9], y[:9]),
        lambda clf: clf.merge(GaussianNB().fit(X, y)),
        lambda clf: clf.forget(X[:9], y[:9]),
        lambda clf: clf.calibrate(X, y),
        lambda clf: clf.with_priors([0.2, 0.2, 0.6]),
        lambda clf: clf.set_params(learner="closed_form").fit(X, y),
    ],
)
def test_densities_of_another_model_are_forgotten(change):
    clf = change(GaussianNB().fit(X, y))
    with pytest.raises(ValueError, match="Pass rows to compare with as `reference`"):
        clf.outlier_score(X)
    assert clf.is_outlier(X, 0.1, reference=X).mean() <= 0.1


@pytest.mark.parametrize("fpr", [0, 1, -0.1, "0.01", np.nan])
def test_a_bad_fpr_is_refused(fpr):
    with pytest.raises(ValueError, match="fpr must be a share between 0 and 1"):
        GaussianNB().fit(X, y).is_outlier(X, fpr)


@given(seed=seeds, m=st.integers(1, 200), size=st.integers(1, 50))
def test_thinned_rows_follow_the_weights(seed, m, size):
    rng = np.random.default_rng(seed)
    w = rng.uniform(0, 1, m) * (rng.random(m) < 0.7) + 1e-9
    rows = np.arange(m, dtype=float)[:, None]
    codes = np.zeros(m, dtype=int)
    thinned = MemoryEngine(rows, codes, w, 1).thinned(size)
    picked = thinned._X[:, 0].astype(int)
    assert len(picked) == thinned.mass == min(m, size)  # a row that is there as often as it weighs weighs one
    expected = w / w.sum() * len(picked)
    assert (np.abs(np.bincount(picked, minlength=m) - expected) < 1 + 1e-9).all()
    plain = MemoryEngine(rows, codes, None, 1).thinned(size)._X[:, 0]
    assert len(np.unique(plain)) == min(m, size)


@each
@each_learner
def test_a_row_alone_is_answered_as_among_others(kind, learner):
    rows, rng = rows_for(kind), np.random.default_rng(0)
    clf, reference = fitted(kind, learner), rows[::3]
    if clf._takes_missing:
        rows = np.where(rng.random(rows.shape) < 0.4, np.nan, rows)
    methods = {"outlier_score": lambda A: clf.outlier_score(A, reference)}
    if kind in EXPLAINED:
        methods["explain"] = lambda A: clf.explain(A).values
    if clf.model_.implements("fill"):
        methods["impute"] = clf.impute
    for name, method in methods.items():
        together = method(rows)
        for i in range(0, len(rows), 4):
            alone = method(rows[i : i + 1])[0]
            np.testing.assert_allclose(alone, together[i], rtol=1e-9, atol=1e-9, err_msg=name)


@given(seed=seeds, parents=st.integers(1, 2), n=st.integers(2, 6))
def test_imputed_categories_do_not_depend_on_other_rows(seed, parents, n):
    rng = np.random.default_rng(seed)
    rows = np.minimum(rng.geometric(0.4, size=(60, n)), 4) - 1.0
    rows[:, 1:] = np.where(rng.random((60, n - 1)) < 0.5, rows[:, :-1], rows[:, 1:])
    labels = (rng.random(60) < 0.3 + 0.15 * rows[:, 0]).astype(int)
    kind = TreeAugmentedNB if parents == 1 else KDependenceNB
    clf = kind(learner="closed_form").fit(rows, labels)
    holes = np.where(rng.random(rows.shape) < 0.5, np.nan, rows)
    together = clf.impute(holes)
    for i, row in enumerate(holes):
        assert (clf.impute(row[None])[0] == together[i]).all()


@pytest.mark.parametrize("kind", [SmoothNB, MixedNB, GaussianNB], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("library", [np.array, pd.DataFrame, pl.DataFrame])
def test_a_number_of_few_values_is_imputed_by_its_mean(kind, library):
    rng = np.random.default_rng(0)
    values = np.array([0.0, 1.0, 2.0, 21.0])
    b = rng.integers(2, size=400)
    cells = np.where(b, values[rng.integers(1, 4, size=400)], values[rng.integers(0, 3, size=400)])
    other = rng.standard_normal(400) + b
    X = np.column_stack([cells, other])
    rows = np.column_stack([np.full(9, np.nan), np.linspace(-2, 3, 9)])
    if library is not np.array:
        X, rows = (library({"a": A[:, 0], "b": A[:, 1]}) for A in (X, rows))
    clf = kind(learner="closed_form", **({} if kind is GaussianNB else {"alpha": 0.0})).fit(X, b)
    means = np.array([cells[b == k].mean() for k in range(2)])
    found = clf.impute(rows)
    found = found[:, 0] if library is np.array else np.asarray(found["a"])
    np.testing.assert_allclose(found, clf.predict_proba(rows) @ means, rtol=1e-6)


@pytest.mark.parametrize(
    "whole",
    [pd.Series([None] * 11, dtype="Int8"), pl.Series([None] * 11, dtype=pl.UInt16), pa.nulls(11, pa.int32())],
    ids=["pandas", "polars", "Arrow"],
)
def test_imputed_whole_numbers_are_the_nearest_ones(whole):
    rng = np.random.default_rng(0)
    b = np.arange(300) % 2
    table = {pd.Series: pd.DataFrame, pl.Series: pl.DataFrame, pa.Int32Array: pa.table}[type(whole)]
    X = table({"whole": np.repeat([3, 7], 150)[np.argsort(b)] + rng.integers(0, 40, 300), "other": b + 0.0})
    clf = MixedNB("gaussian", learner="closed_form").fit(X, b)
    other = np.linspace(0, 1, 11)
    exact = np.asarray(clf.impute(table({"whole": np.full(11, np.nan), "other": other}))["whole"])
    found = np.asarray(clf.impute(table({"whole": whole, "other": other}))["whole"])
    assert (exact % 1 > 0.5).any()
    np.testing.assert_array_equal(found.astype(float), np.round(exact))


@pytest.mark.parametrize("library", [np.array, pd.DataFrame, pl.DataFrame, pa.table, list])
def test_imputed_cells_are_means_under_the_posterior(library):
    clf = GaussianNB(learner="closed_form").fit(X, y)
    holes = X.copy()
    rng = np.random.default_rng(0)
    holes[rng.random(X.shape) < 0.3] = np.nan
    holes[5] = np.nan
    names = list("abcd")
    table = {
        np.array: holes,
        list: holes.tolist(),
        pd.DataFrame: pd.DataFrame(holes, columns=names, index=np.arange(150)[::-1]),
        pl.DataFrame: pl.DataFrame(dict(zip(names, holes.T, strict=True))).fill_nan(None),
        pa.table: pa.table(dict(zip(names, holes.T, strict=True))),
    }[library]
    if library is not list and library is not np.array:
        clf.fit(library(dict(zip(names, X.T, strict=True))), y)
    filled = clf.impute(table)
    assert type(filled) is (np.ndarray if library is list else type(table))
    if library is pd.DataFrame:
        assert (filled.index == table.index).all()
        assert list(filled.columns) == names
    found = (
        np.column_stack([np.asarray(filled[k]) for k in names])
        if hasattr(filled, "columns") and library is not np.array
        else filled
    )
    seen = ~np.isnan(holes)
    assert (found[seen] == holes[seen]).all()
    P = clf.predict_proba(holes if library in (list, np.array) else table)
    expected = P @ (clf.parameters_.means + clf.parameters_.frame.origin)
    np.testing.assert_allclose(found[~seen], expected[~seen])
    np.testing.assert_allclose(expected[5], X.mean(axis=0))


def test_drawn_cells_repeat_by_seed_and_have_the_spread_of_the_rows():
    clf = GaussianNB(learner="closed_form").fit(X, y)
    holes = np.full((4000, 4), np.nan)
    a, b, c = (clf.impute(holes, random_state=seed) for seed in (0, 0, 1))
    assert (a == b).all()
    assert (a != c).all()
    np.testing.assert_allclose(a.mean(axis=0), X.mean(axis=0), atol=0.15)
    np.testing.assert_allclose(np.cov(a.T).diagonal(), np.cov(X.T).diagonal(), rtol=0.1)
    assert abs(np.corrcoef(a.T)[2, 3]) > 0.8  # cells of a row are of one class


def test_a_table_without_holes_is_returned_as_it_is_and_models_without_fill_refuse():
    clf = GaussianNB(learner="closed_form").fit(X, y)
    assert (clf.impute(X) == X).all()
    assert clf.impute(X) is not X
    with pytest.raises(NotImplementedError, match="GenerativeClassifier cannot fill in missing cells"):
        GenerativeClassifier(BinnedModel()).fit(X, y).impute(X)


def test_counts_are_imputed_by_rates_or_draws_and_sparse_tables_have_no_holes():
    rng = np.random.default_rng(0)
    rows, labels = rng.poisson([[1.0, 4.0]], size=(200, 2)).astype(float), rng.integers(2, size=200)
    clf = riskbayes.PoissonNB(learner="closed_form").fit(rows, labels)
    holes = np.array([[np.nan, 3.0], [2.0, 1.0], [np.nan, np.nan]])
    seen, expected = ~np.isnan(holes), clf.predict_proba(holes) @ clf.rate_
    filled = clf.impute(holes)
    assert (filled[seen] == holes[seen]).all()
    np.testing.assert_allclose(filled[~seen], expected[~seen])
    drawn = clf.impute(np.full((2000, 2), np.nan), random_state=0)
    assert (drawn == drawn.round()).all()
    np.testing.assert_allclose(drawn.mean(axis=0), rows.mean(axis=0), rtol=0.1)
    np.testing.assert_allclose(drawn.var(axis=0), clf.rate_.mean(axis=0), rtol=0.2)
    sparse = csr_array(rows)
    assert (clf.impute(sparse) != sparse).nnz == 0
    frame = pd.DataFrame({"visits": rows[:, 0], "other": rng.standard_normal(200)})
    frame.loc[3, "visits"] = np.nan
    whole = MixedNB(count_features=["visits"]).fit(frame, labels).impute(frame)
    assert not whole.isna().any().any()


@pytest.mark.parametrize("kind", [CategoricalNB, TreeAugmentedNB], ids=lambda kind: kind.__name__)
def test_categories_are_imputed_by_the_most_probable_value(kind):
    rng = np.random.default_rng(0)
    colour = np.repeat(["red", "blue"], 50)
    words = np.stack([colour, np.where(rng.random(100) < 0.9, colour, "green")], axis=1).astype(object)
    clf = kind(learner="closed_form").fit(words, colour == "red")
    holes = np.array([["red", None], ["blue", "never seen"], [None, "blue"], ["red", "green"]], dtype=object)
    filled = clf.impute(holes)
    assert filled.tolist() == [["red", "red"], ["blue", "never seen"], ["blue", "blue"], ["red", "green"]]
    drawn = clf.impute(np.full((500, 2), None), random_state=0)
    assert 0.3 < np.mean(drawn[:, 0] == "red") < 0.7
    assert np.mean(drawn[:, 0] == drawn[:, 1]) > 0.6  # cells of a row are of one class


def mixed_table():
    """A table with a category, a number, a date, an identifier and holes, and labels that depend on all."""
    rng = np.random.default_rng(0)
    m = 200
    b = rng.integers(2, size=m)
    frame = pd.DataFrame(
        {
            "word": np.where(rng.random(m) < 0.2 + 0.6 * b, "yes", "no"),
            "name": [f"row {i}" for i in range(m)],
            "number": rng.standard_normal(m) + b,
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, m) + 30 * b, unit="D"),
        }
    )
    frame.loc[rng.random(m) < 0.1 + 0.2 * b, "number"] = np.nan
    frame.loc[rng.random(m) < 0.1, "word"] = None
    return frame, b


@pytest.mark.parametrize("options", [{}, {"missing": "informative"}], ids=["ignored", "informative"])
@pytest.mark.parametrize("convert", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_tables_are_explained_and_imputed_by_their_own_columns(options, convert):
    frame, b = mixed_table()
    table = convert(frame)
    clf = MixedNB(**options).fit(table, b)
    explanation = clf.explain(table)
    assert explanation.columns == ["word", "name", "number", "day"]
    np.testing.assert_allclose(
        explanation.log_odds().total, clf.decision_function(table), rtol=1e-9, atol=1e-9
    )
    assert (explanation.values[:, 1] == 0).all()  # identifiers are left out
    assert (explanation.values[frame["word"].isna(), 0] == 0).all()  # holes at random: their mark is tied
    holes = frame["number"].isna().to_numpy()
    assert (np.abs(explanation.values[holes, 2]).max() > 0) == bool(options)  # a hole is a sign by itself
    filled = clf.impute(table)
    assert type(filled) is type(table)
    found = filled if convert is pd.DataFrame else filled.to_pandas()
    assert not found.isna().any().any()
    assert (found["number"][~holes] == frame["number"][~holes]).all()
    seen = frame["word"].notna()
    assert (found["word"][seen] == frame["word"][seen]).all()
    assert set(found["word"]) == {"yes", "no"}
    parameters = clf.parameters_frame()
    told = parameters[parameters["parameter"].str.contains("log probability|log density")]
    told = told.groupby(["class", "column"])["rows"].sum()
    assert len(told) >= 8
    masses = np.bincount(b)[told.index.get_level_values("class")]
    np.testing.assert_allclose(told, masses, rtol=1e-9)  # every row tells of one value of a column
    names = set(parameters["parameter"])
    assert {"Categorical: log probability of yes", "Categorical: log probability of no"} <= names


def test_the_recipe_explains_tables():
    frame, b = mixed_table()
    frame, b = frame.dropna(), b[frame.notna().all(axis=1)]
    clf = RiskBayesClassifier("single").fit(frame, b)
    explanation = clf.explain(frame)
    assert explanation.columns == ["word", "name", "number", "day"]
    np.testing.assert_allclose(
        explanation.log_odds().total, clf.decision_function(frame), rtol=1e-9, atol=1e-9
    )


@pytest.fixture
def ax():
    pytest.importorskip("matplotlib")
    return new_figure(6, 4).add_subplot()


@pytest.mark.parametrize("max_columns", [1, 2, 4, 10])
def test_the_waterfall_leads_from_the_prior_to_the_total(ax, max_columns):
    clf = QuadraticDiscriminantAnalysis().fit(pd.DataFrame(X, columns=list("pqrs")), y)
    frame = pd.DataFrame(X, columns=list("pqrs"))
    odds = clf.explain(frame).log_odds(1, 2)
    display = clf.explain(frame).plot(70, positive=1, negative=2, max_columns=max_columns, ax=ax)
    *steps, total = (bar.get_width() for bar in display.bars_)
    assert sum(steps) == pytest.approx(odds.total[70]) == pytest.approx(total)
    assert steps[0] == pytest.approx(odds.baseline[70], abs=1e-12)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels[0] == "prior"
    assert labels[-1] == "total"
    largest = np.argmax(np.abs(odds.values[70]))
    assert labels[1] == f"{'pqrs'[largest]} = {X[70, largest]:.4g}"
    rest = 4 - min(4, max_columns)
    assert [label for label in labels if "other column" in label] == (
        [f"{rest} other column{'s' * (rest > 1)}"] if rest else []
    )
    assert "of 1 against 2" in ax.get_xlabel()
    ends = np.cumsum(steps)
    starts = [bar.get_x() for bar in display.bars_][1:-1]
    np.testing.assert_allclose(starts, ends[:-1], atol=1e-12)


def test_the_parameters_that_moved_most_are_drawn(ax):
    clf = GaussianNB().fit(X, y)
    display = ParametersDisplay.from_estimator(clf, max_parameters=5, ax=ax)
    frame = clf.parameters_frame()[:5]
    np.testing.assert_allclose(display.changes, frame["change"])
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels[0] == f"{frame['column'][0]}, {frame['parameter'][0]}, class {frame['class'][0]}"
    assert display.texts[0] == f"{frame['closed_form'][0]:.3g} → {frame['calibrated'][0]:.3g}"


def test_parameters_that_are_no_dataclass_need_a_function():
    with pytest.raises(NotImplementedError, match="object is no dataclass and no NamedTuple"):
        with_log_prior(object(), np.zeros(2))
    assert LinearDiscriminantAnalysis().fit(X, y).with_priors([0.2, 0.3, 0.5]).classes_.shape == (3,)
    assert SmoothNB in EXPLAINED
    assert ProductOfExperts in EXPLAINED
