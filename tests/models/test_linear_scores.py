"""What linear discriminant analysis need not compute: squares for log odds, and their sums in RC."""

import numpy as np
import pytest

import riskbayes.models.lda as lda
from conftest import closed_form, encoded, random_rows
from riskbayes import (
    GaussianNB,
    LinearDiscriminantAnalysis,
    MixtureDiscriminantAnalysis,
    ProductOfExperts,
    QuadraticDiscriminantAnalysis,
    SmoothNB,
)
from riskbayes.learners import RC
from riskbayes.models import LDAModel
from riskbayes.objectives import ExpectedCost, LogLoss, SoftError
from riskbayes.scanners.dense import label_statistics

OBJECTIVES = [LogLoss(), SoftError()]


def separated(rng, r, apart, dtype, m=400, n=5):
    """Rows of r classes, so far apart that their residuals are near one, or near 1e-300."""
    y = np.arange(m) % r
    return (rng.standard_normal((m, n)) + apart * rng.standard_normal((r, n))[y]).astype(dtype), y


# --- the rows of a residual sum to zero -------------------------------------------------------------


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda objective: objective.risk)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("apart", [0.1, 1.0, 4.0, 20.0])
@pytest.mark.parametrize("r", [2, 3, 10])
def test_no_row_is_in_the_product_of_a_residual(monkeypatch, r, apart, dtype, objective):
    """Overlapping or separated, in both precisions, with weights: x x^T is of no class and never moves."""
    rng = np.random.default_rng(r)
    X, y = separated(rng, r, apart, dtype)
    taken = []

    def spy(A, rows):
        taken.append(len(rows))
        return A[rows]

    for w in (None, np.exp(3 * rng.standard_normal(len(y)))):
        engine, fitted = closed_form(LDAModel(), X, y, w, r)
        monkeypatch.setattr(lda, "take_rows", spy)
        dS = engine.scan(fitted, objective).dS
        monkeypatch.undo()
        assert sum(taken) == 0
        assert (dS["s2_tied"] == 0).all()
        np.testing.assert_allclose(dS["s0"].sum(), 0.0, atol=1e-5 * fitted.S.total)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_no_row_is_in_the_product_of_a_mixtures_residual(dtype):
    X, y = separated(np.random.default_rng(0), 3, 1.0, dtype)
    clf = MixtureDiscriminantAnalysis(
        2, learner=RC(lr=0.1, max_iter=3, step="fixed", generative_weight=0.0)
    ).fit(X, y)
    assert clf.n_iter_ > 0
    np.testing.assert_array_equal(clf.statistics_["0:s2_tied"], clf.data_statistics_["0:s2_tied"])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_of_small_weight_are_in_the_product_of_the_labels(dtype):
    """They are small, not zero: what cancels is told from what is small."""
    rng = np.random.default_rng(0)
    X, y = separated(rng, 3, 1.0, dtype, m=60)
    w = 10.0 ** -rng.uniform(0, 25, len(y))
    X *= (1 / np.sqrt(w)).astype(dtype)[:, None]  # each row counts as much as another
    model = LDAModel()
    Z = encoded(model, X, w)
    S = label_statistics(model, Z, y, w, 3)
    D = X.astype(np.float64) - Z.frame.origin
    np.testing.assert_allclose(S["s2_tied"], (D * w[:, None]).T @ D, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("r", [2, 3, 10])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_residuals_sum_to_zero_relative_to_themselves(r, dtype):
    """1 - P[y] has lost its digits where P[y] is near one; the sum of the other P has them."""
    rng = np.random.default_rng(r)
    scores = rng.standard_normal((200, r)) * np.geomspace(1e-3, 60, 200)[:, None]
    P = np.exp(scores - scores.max(axis=1, keepdims=True))
    P = (P / P.sum(axis=1, keepdims=True)).astype(dtype)
    y = rng.integers(r, size=len(P))
    for objective in OBJECTIVES:
        E = objective.residual(P, y)
        assert E.dtype == dtype
        size = np.abs(E).sum(axis=1)
        assert (np.abs(E.sum(axis=1)) <= 4 * r * np.finfo(dtype).eps * size).all()
        exact = np.eye(r)[y] - P
        exact *= 1.0 if objective.risk == "log_loss" else P[np.arange(len(P)), y, None]
        np.testing.assert_allclose(E, exact, atol=8 * np.finfo(dtype).eps)
    costs = ExpectedCost(1.0 - np.eye(r)).residual(P, y)
    np.testing.assert_allclose(costs, SoftError().residual(P, y), atol=8 * np.finfo(dtype).eps)


# --- log odds --------------------------------------------------------------------------------------

TWO_CLASSES = [
    *(LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis, GaussianNB, SmoothNB),
    *(ProductOfExperts, MixtureDiscriminantAnalysis),
]


@pytest.mark.parametrize("kind", TWO_CLASSES, ids=lambda kind: kind.__name__)
def test_log_odds_are_those_of_the_log_joint(kind):
    X, y, _ = random_rows(LDAModel(), np.random.default_rng(0), r=2)
    clf = kind().fit(X, y)
    joint = clf.predict_joint_log_proba(X)
    np.testing.assert_allclose(clf.decision_function(X), joint[:, 1] - joint[:, 0], atol=1e-9)
    np.testing.assert_allclose(clf.decision_function(X), np.diff(clf.predict_log_proba(X))[:, 0], atol=1e-9)


@pytest.mark.parametrize("kind", [LinearDiscriminantAnalysis, MixtureDiscriminantAnalysis])
def test_log_odds_need_no_distances(monkeypatch, kind):
    X, y, _ = random_rows(LDAModel(), np.random.default_rng(0), r=2)
    clf = kind().fit(X, y)
    expected = clf.decision_function(X)

    def never(*args):
        raise AssertionError("the squares of all distances were computed")

    monkeypatch.setattr(LDAModel, "log_joint", never)
    np.testing.assert_array_equal(clf.decision_function(X), expected)


def test_log_odds_far_away_keep_their_digits():
    """Beside a squared distance of 1e24 the difference of two log joints would be lost."""
    X, y, _ = random_rows(LDAModel(), np.random.default_rng(0), r=2)
    clf = LinearDiscriminantAnalysis().fit(X, y)
    far = X + 1e12
    linear = (far @ clf.coef_.T + clf.intercept_)[:, 0]
    np.testing.assert_allclose(clf.decision_function(far), linear, rtol=1e-6)
