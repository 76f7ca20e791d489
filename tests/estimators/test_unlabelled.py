"""Rows without a label: EM against scikit-learn's, its laws, and what the learner leaves in place."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.metrics import log_loss
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit

from conftest import MODELS, closed_form, random_rows
from riskbayes import (
    CategoricalNB,
    GaussianNB,
    LinearDiscriminantAnalysis,
    MixedNB,
    MixtureDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
    SmoothNB,
    TreeAugmentedNB,
)
from riskbayes.estimators import unlabelled
from riskbayes.learners import RC, RCCV
from riskbayes.learners.rc_cv import POOLED_SHARES
from riskbayes.models import CategoricalModel, GaussianNBModel, LDAModel, QDAModel
from riskbayes.models.base import Fitted
from riskbayes.risks import posterior
from riskbayes.task import Task

X, y = load_iris(return_X_y=True)
HIDDEN = np.random.default_rng(0).random(150) < 0.7
PART = np.where(HIDDEN, -1, y)
seeds = st.integers(0, 2**32 - 1)
KINDS = [
    GaussianNB,
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
    SmoothNB,
    MixtureDiscriminantAnalysis,
]


def naive_mixed(**options):
    """Gaussian naive Bayes, as part of a product."""
    return MixedNB("gaussian", **options)


def paths(model, X, y, hidden, w, steps, monkeypatch):
    """The log-likelihood of labelled and other rows after 1, 2, ... iterations of EM."""
    r = int(y.max()) + 1
    engine, fitted = closed_form(model, X[~hidden], y[~hidden], w[~hidden], r)
    task = Task(model, engine, fitted.S)
    found = []
    monkeypatch.setattr(unlabelled, "TOLERANCE", -1.0)
    for n in range(1, steps + 1):
        monkeypatch.setattr(unlabelled, "MAX_ITER", n)
        S, _ = unlabelled.expectation_maximisation(task, X[hidden], w[hidden])
        theta = model.parameters(S)
        joint = model.log_joint(model.encode(X[hidden], S.frame), theta)
        found.append(unlabelled.joint_log_likelihood(model, fitted.S, theta, joint, w[hidden]))
    return found


@pytest.mark.parametrize(
    "model",
    [GaussianNBModel(var_smoothing=0.0), LDAModel(), QDAModel(), CategoricalModel()],
    ids=lambda model: type(model).__name__,
)
@given(seed=seeds, r=st.integers(2, 3))
def test_the_likelihood_never_falls(model, seed, r):
    rng = np.random.default_rng(seed)
    A, b, w = random_rows(model, rng, m=60, n=2, r=r)
    hidden = np.arange(len(A)) >= r * 6
    with pytest.MonkeyPatch.context() as patch:
        found = paths(model, A, b, hidden, w, 6, patch)
    assert (np.diff(found) >= -1e-7 * np.abs(found[0])).all()


@pytest.mark.parametrize(
    ("kind", "covariance"), [(LDAModel, "tied"), (QDAModel, "full"), (GaussianNBModel, "diag")]
)
def test_em_is_that_of_scikit_learns_mixtures(kind, covariance, monkeypatch):
    """With labelled rows of no weight to speak of, from the same start, for the same number of iterations."""
    model = kind(var_smoothing=0.0) if kind is GaussianNBModel else kind()
    engine, fitted = closed_form(model, X, y, np.full(150, 1e-9), 3)
    theta = fitted.theta
    C = {
        "tied": lambda: np.linalg.inv(theta.covariance),
        "full": lambda: np.linalg.inv(theta.covariances),
        "diag": lambda: 1 / theta.variances,
    }[covariance]()
    means = theta.means + theta.frame.origin
    theirs = GaussianMixture(
        3, covariance_type=covariance, reg_covar=0.0, tol=0.0, max_iter=5,
        weights_init=np.full(3, 1 / 3), means_init=means, precisions_init=C,
    )  # fmt: skip
    with pytest.warns(Warning, match="converge"):
        theirs.fit(X)
    monkeypatch.setattr(unlabelled, "TOLERANCE", -1.0)
    monkeypatch.setattr(unlabelled, "MAX_ITER", 6)  # the last statistics are not judged
    S, expected = unlabelled.expectation_maximisation(Task(model, engine, fitted.S), X, None)
    assert expected.total == pytest.approx(150)
    ours = model.parameters(S)
    np.testing.assert_allclose(np.exp(ours.log_prior), theirs.weights_, atol=1e-6)
    np.testing.assert_allclose(ours.means + ours.frame.origin, theirs.means_, atol=1e-5)


@pytest.mark.parametrize("kind", [*KINDS, CategoricalNB, TreeAugmentedNB], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("learner", ["closed_form", "rc"])
@pytest.mark.filterwarnings("ignore::riskbayes.FlooredWarning")
def test_every_estimator_takes_rows_without_labels(kind, learner):
    rows = np.round(X).astype(int) if kind in (CategoricalNB, TreeAugmentedNB) else X
    plain = {"prior": None} if "prior" in kind().get_params() else {}  # as the closed form has none
    clf = kind(learner=learner, **plain).fit(rows, PART, unlabelled=-1)
    assert clf.classes_.tolist() == [0, 1, 2]
    assert clf.data_statistics_.total == pytest.approx(150)
    assert clf.statistics_.total == pytest.approx(150)
    assert clf.score(rows, y) > 0.6
    if learner == "rc":  # risks are those of the labelled rows
        start = kind(learner="closed_form").fit(rows, PART, unlabelled=-1)
        error = np.mean(start.predict(rows[~HIDDEN]) != y[~HIDDEN])
        assert clf.history_["error"][0] == pytest.approx(error)


@pytest.mark.parametrize(
    ("labels", "marker"),
    [
        (PART, -1),
        (np.where(HIDDEN, np.nan, y), np.nan),
        (np.array([None if h else k for h, k in zip(HIDDEN, y, strict=True)]), None),
        (pd.Series(y).where(~HIDDEN), None),
        (pd.Series(y, dtype="Int64").where(~HIDDEN), np.nan),
        (pd.Series(PART, index=np.arange(150)[::-1]), -1),
        (PART.tolist(), -1),
        (np.array(["a", "b", "c", "?"])[PART], "?"),
    ],
    ids=["-1", "nan", "None", "series with nan", "series with NA", "series", "list", "strings"],
)
def test_labels_may_be_missing_in_several_ways(labels, marker):
    clf = GaussianNB().fit(X, labels, unlabelled=marker)
    usual = GaussianNB().fit(X, PART, unlabelled=-1)
    assert (clf.predict_proba(X) == usual.predict_proba(X)).all()
    assert clf.classes_.shape == (3,)


@pytest.mark.parametrize("kind", [*KINDS, naive_mixed], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("learner", ["closed_form", RC(max_iter=3)], ids=str)
@pytest.mark.filterwarnings("ignore::riskbayes.FlooredWarning")
def test_rows_of_weight_zero_change_nothing_whatever_they_lack(kind, learner):
    """Rows with a label or without one; they may have the only missing cells."""
    where, rest = np.arange(150) % 10 == 0, np.arange(150) % 10 > 0
    rows, w = X.copy(), np.where(where, 0.0, 1.0)
    rows[where, 1] = np.nan
    for labels in (y, PART):
        known = np.where(where, -1, labels)
        expected = kind(learner=learner).fit(X[rest], labels[rest], unlabelled=-1).predict_proba(X)
        for some in (labels, known):
            found = kind(learner=learner).fit(rows, some, w, unlabelled=-1).predict_proba(X)
            np.testing.assert_allclose(found, expected, atol=1e-7)


@pytest.mark.parametrize("kind", [*KINDS, naive_mixed], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("learner", ["closed_form", RC(max_iter=3)], ids=str)
@pytest.mark.filterwarnings("ignore::riskbayes.FlooredWarning")
def test_only_rows_without_a_label_may_have_missing_cells(kind, learner):
    """A labelled row with a missing cell and hardly a weight makes no difference."""
    rows = X.copy()
    rows[HIDDEN & (np.arange(150) % 3 == 0), 2] = np.nan
    found = kind(learner=learner).fit(rows, PART, unlabelled=-1)
    more, w = np.r_[rows, [[5.0, np.nan, 3.0, 1.0]]], np.r_[np.ones(150), 1e-9]
    expected = kind(learner=learner).fit(more, np.r_[PART, 0], w, unlabelled=-1)
    np.testing.assert_allclose(found.predict_proba(rows), expected.predict_proba(rows), atol=1e-5)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_if_every_row_has_a_label_nothing_changes(kind):
    a, b = kind().fit(X, y), kind().fit(X, y, unlabelled=-1)
    assert (a.predict_proba(X) == b.predict_proba(X)).all()


def test_tables_of_other_kinds_are_split_too():
    usual = GaussianNB().fit(X, PART, unlabelled=-1).predict_proba(X)
    frame = pd.DataFrame(X, columns=list("abcd"), index=np.arange(150)[::-1])
    for table in (frame, X.tolist()):
        found = GaussianNB().fit(table, PART, unlabelled=-1).predict_proba(table)
        np.testing.assert_allclose(found, usual, atol=1e-9)


def test_a_weight_of_two_counts_a_row_twice():
    times = np.random.default_rng(1).integers(1, 4, size=150)
    for learner in ("closed_form", RC(max_iter=10)):
        a = GaussianNB(learner=learner).fit(X, PART, times, unlabelled=-1)
        b = GaussianNB(learner=learner).fit(X.repeat(times, axis=0), PART.repeat(times), unlabelled=-1)
        np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X), atol=1e-7)


def test_the_learner_leaves_the_expected_statistics_in_place():
    """Residuals are those of labelled rows: without them the learner does not move."""
    learner = RC(lr=0.1, max_iter=1, step="fixed", generative_weight=0.0)
    clf = GaussianNB(learner=learner, prior=None).fit(X, PART, unlabelled=-1)
    start = GaussianNB(learner="closed_form").fit(X, PART, unlabelled=-1)
    Z = start.model_.encode(X[~HIDDEN], start.statistics_.frame)
    E = np.eye(3)[y[~HIDDEN]] - start.predict_proba(X[~HIDDEN])
    expected = start.statistics_ + 0.1 * start.model_.statistics(Z, E)
    assert clf.history_["accepted"][1]
    assert clf.statistics_.allclose(expected, rtol=1e-9)


@pytest.mark.parametrize("holes", ["everywhere", "labelled", "unlabelled"])
def test_em_of_naive_bayes_ends_at_the_weighted_means_of_the_cells_that_are_there(holes, monkeypatch):
    monkeypatch.setattr(unlabelled, "TOLERANCE", 1e-13)
    monkeypatch.setattr(unlabelled, "MAX_ITER", 1000)
    where = {"everywhere": True, "labelled": ~HIDDEN[:, None], "unlabelled": HIDDEN[:, None]}[holes]
    rows = np.where((np.random.default_rng(0).random(X.shape) < 0.3) & where, np.nan, X)
    clf = GaussianNB(learner="closed_form", var_smoothing=0.0).fit(rows, PART, unlabelled=-1)
    P = np.where(HIDDEN[:, None], clf.predict_proba(rows), np.eye(3)[y])
    means = (P.T @ np.nan_to_num(rows)) / (P.T @ np.isfinite(rows))
    np.testing.assert_allclose(clf.theta_, means, atol=1e-5)


def test_em_helps_where_the_model_is_right():
    rng = np.random.default_rng(0)
    b = rng.integers(2, size=2000)
    A = rng.standard_normal((2000, 5)) + 1.2 * b[:, None]
    part = np.where(np.arange(2000) < 16, b, -1)
    with_em = LinearDiscriminantAnalysis(learner="closed_form").fit(A, part, unlabelled=-1).score(A, b)
    without = LinearDiscriminantAnalysis(learner="closed_form").fit(A[:16], b[:16]).score(A, b)
    assert with_em > without + 0.02


@pytest.mark.parametrize(
    "options", [{"early_stopping": True, "random_state": 0}, {"n_restarts": 1, "random_state": 0}]
)
def test_held_out_rows_and_restarts_go_with_rows_without_labels(options):
    clf = GaussianNB(learner=RC(step="adaptive", **options)).fit(X, PART, unlabelled=-1)
    assert clf.statistics_.total == pytest.approx(150)
    assert clf.score(X, y) > 0.9


@pytest.mark.parametrize("kind", [GaussianNB, LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis])
@pytest.mark.parametrize("folds", [False, True])
def test_held_out_rows_are_judged_by_kept_and_unlabelled_rows(kind, folds):
    """The first model of a fold: kept rows with the weight of all labelled ones, and the expected rows."""
    rc = RC(max_iter=1, early_stopping=True, validation_fraction=0.3, random_state=0)
    cv = RCCV(cv=3, objectives=["log_loss"], generative_weights=[0], max_iter=1, random_state=0)
    fitted = kind(learner=cv if folds else rc, prior=None).fit(X, PART, unlabelled=-1)
    closed = kind(learner="closed_form").fit(X, PART, unlabelled=-1)
    model, frame, rows = closed.model_, closed.statistics_.frame, np.flatnonzero(~HIDDEN)

    def counted(own):
        return model.statistics(model.encode(X[own], frame), np.eye(3)[y[own]])

    expected = closed.statistics_ - counted(rows)
    splitter = (
        StratifiedKFold(3, shuffle=True, random_state=0)
        if folds
        else StratifiedShuffleSplit(
            1, test_size=round(0.3 * len(rows)), random_state=np.random.RandomState(0)
        )
    )
    wrong, losses = [], []
    for kept, held in splitter.split(rows, y[rows]):
        S = model.fix_prior(len(rows) / len(kept) * counted(rows[kept]) + expected)
        P = posterior(model.log_joint(model.encode(X[rows[held]], frame), model.parameters(S)))
        wrong += (P.argmax(axis=1) != y[rows[held]]).tolist()
        losses.append(log_loss(y[rows[held]], P, labels=[0, 1, 2]))
    if folds:
        place = len(POOLED_SHARES)  # of the closed form, after the class frequencies and what is between
        assert fitted.learner_.cv_error_[place] == pytest.approx(np.mean(wrong))
    else:
        assert fitted.history_["val_log_loss"][0] == pytest.approx(losses[0], rel=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X, np.full(150, -1), None, -1), "Every label in y is -1"),
        ((X, PART[:10], None, -1), "X has 150 rows and y has 10 labels"),
        ((X, PART, np.ones(3), -1), r"sample_weight has shape \(3,\), and X has 150 rows"),
        ((X, PART, np.where(HIDDEN, -1.0, 1.0), -1), "Negative values in data passed to `sample_weight`"),
        ((X, PART, np.where(HIDDEN, np.nan, 1.0), -1), "sample_weight contains NaN"),
        ((X, np.where(PART == 1, 1, -1), None, -1), "at least two classes"),
        ((np.where(HIDDEN[:, None], 1e200, X), PART, None, -1), "Column . of X holds 1e\\+200"),
        ((np.where(HIDDEN[:, None], np.inf, X), PART, None, -1), "contains infinity in column 0"),
    ],
)
def test_bad_input_leaves_the_estimator_unfitted(arguments, message):
    rows, labels, w, marker = arguments
    clf = GaussianNB()
    with pytest.raises(ValueError, match=message):
        clf.fit(rows, labels, w, unlabelled=marker)
    assert not hasattr(clf, "model_")


def test_every_model_has_em_statistics():
    """EM weights rows by posteriors through `posterior_statistics`, whose sum keeps their mass."""
    rng = np.random.default_rng(0)
    for kind in MODELS:
        A, b, w = random_rows(kind(), rng, r=2)
        engine, fitted = closed_form(kind(), A, b, w, 2)
        S, expected = unlabelled.expectation_maximisation(Task(kind(), engine, fitted.S), A[:20], None)
        assert expected.total == pytest.approx(20)
        assert S.total == pytest.approx(fitted.S.total + 20)
        assert Fitted.of(kind(), S).model.is_legal(S)
        assert replace(Task(kind(), engine, S), other_rows=expected).other_rows is expected
