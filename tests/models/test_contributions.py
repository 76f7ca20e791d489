"""Contributions of columns to scores: laws of every model that offers them, and of missing cells."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.stats import bernoulli, multivariate_normal, norm, poisson

from conftest import MODELS, calibrated, random_rows
from riskbayes.learners import RC
from riskbayes.models import (
    CategoricalModel,
    GaussianNBModel,
    LDAModel,
    MixtureModel,
    ProductModel,
    QDAModel,
    SmoothModel,
    TreeModel,
)
from riskbayes.models.bernoulli import BernoulliModel
from riskbayes.models.binned import BinnedModel
from riskbayes.models.hats import Hats, Places
from riskbayes.models.leaves import LeavesModel
from riskbayes.models.multinomial import ComplementModel, MultinomialModel
from riskbayes.models.neighbours import NeighboursModel
from riskbayes.models.poisson import PoissonModel
from riskbayes.scanners.kernels import smooth as kernel

seeds = st.integers(0, 2**32 - 1)
EXPLAINED = [kind for kind in MODELS if kind().implements("contributions")]
every_explained = pytest.mark.parametrize("kind", EXPLAINED, ids=lambda kind: kind.__name__)


def without_row_constant(scores):
    return scores - scores.mean(axis=1, keepdims=True)


def without_class_mean(values):
    return values - values.mean(axis=-1, keepdims=True)


def covariance_of(theta, k):
    if hasattr(theta, "variances"):
        return np.diag(theta.variances[k])
    return theta.covariance if hasattr(theta, "covariance") else theta.covariances[k]


def rows_of(fitted, X):
    return fitted.model.encode(X, fitted.S.frame)


def test_all_models_but_those_of_all_columns_at_once_offer_contributions():
    assert set(MODELS) - set(EXPLAINED) == {MixtureModel, NeighboursModel, LeavesModel}


@every_explained
@given(seed=seeds, r=st.integers(2, 4), n=st.integers(1, 5), scale=st.sampled_from([1e-3, 1.0, 1e6]))
def test_contributions_sum_to_the_scores(kind, seed, r, n, scale):
    rng = np.random.default_rng(seed)
    X, y, w = random_rows(kind(), rng, n=n, r=r)
    X = X * scale + 100 * scale if kind().traits.support == "real" else X
    fitted = calibrated(
        kind(), X, y, w, r, RC(lr=0.1, max_iter=4, step="fixed", generative_weight=0.0)
    ).fitted
    new = X[rng.permutation(len(X))[:9]]
    # Categories that the fit has not seen, too.
    new = new + rng.integers(0, 3, new.shape) if kind().traits.support == "categories" else new * 1.5
    Z = rows_of(fitted, new)
    found = kind().contributions(Z, fitted.theta)
    assert found.shape == (9, n, r)
    total = without_row_constant(kind().baseline(fitted.theta) + found.sum(axis=1))
    scores = without_row_constant(kind().scores(Z, fitted.theta))
    np.testing.assert_allclose(total, scores, rtol=1e-9, atol=1e-9 * max(1.0, np.abs(scores).max()))


@every_explained
@given(seed=seeds)
def test_contributions_follow_the_order_of_the_columns(kind, seed):
    rng = np.random.default_rng(seed)
    X, y, w = random_rows(kind(), rng, n=4, r=3)
    order = rng.permutation(4)
    a, b = (
        calibrated(kind(), T, y, w, 3, RC(lr=0.1, max_iter=3, step="fixed", generative_weight=0.0)).fitted
        for T in (X, X[:, order])
    )
    ours = kind().contributions(rows_of(a, X), a.theta)
    theirs = kind().contributions(rows_of(b, X[:, order]), b.theta)
    np.testing.assert_allclose(ours[:, order], theirs, atol=1e-7)


@pytest.mark.parametrize("kind", [BernoulliModel, PoissonModel])
@given(seed=seeds)
def test_a_column_of_counts_contributes_its_own_probability(kind, seed):
    rng = np.random.default_rng(seed)
    X, y, w = random_rows(kind(), rng)
    theta = (
        fitted := calibrated(
            kind(), X, y, w, 3, RC(lr=0.1, max_iter=3, step="fixed", generative_weight=0.0)
        ).fitted
    ).theta
    found = kind().contributions(rows_of(fitted, X), theta)
    rounding = 0.0
    if kind is BernoulliModel:
        expected = bernoulli(np.exp(theta.log_prob).T).logpmf((X > 0)[:, :, None])
        # SciPy is given p, not log p: of a p that is nearly one it knows few digits of 1 - p.
        rounding = 8 * np.finfo(float).eps / -np.expm1(theta.log_prob).max()
    else:
        expected = poisson(theta.rates.T).logpmf(X[:, :, None])
    found, expected = without_class_mean(found), without_class_mean(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 + rounding)


@pytest.mark.parametrize("kind", [BernoulliModel, ComplementModel, MultinomialModel, PoissonModel])
@given(seed=seeds)
def test_sparse_rows_have_the_contributions_of_dense_ones(kind, seed):
    rng = np.random.default_rng(seed)
    X, y, w = random_rows(kind(), rng)
    fitted = calibrated(
        kind(), X, y, w, 3, RC(lr=0.1, max_iter=3, step="fixed", generative_weight=0.0)
    ).fitted
    dense, sparse = (kind().contributions(rows_of(fitted, T)[3:20], fitted.theta) for T in (X, csr_array(X)))
    assert (dense == sparse).all()


def test_complement_naive_bayes_weighs_its_words_without_the_class_frequencies():
    X, y, w = random_rows(ComplementModel(), np.random.default_rng(0))
    model = ProductModel((GaussianNBModel(), ComplementModel(alpha=1.0)), (1.0, 0.5))
    fitted = calibrated(model, X, y, w, 3, RC(max_iter=0)).fitted
    gaussian, words = fitted.theta.experts
    expected = model.experts[0].log_joint(rows_of(fitted, X).parts[0], gaussian) + 0.5 * X @ words.weights.T
    np.testing.assert_allclose(model.log_joint(rows_of(fitted, X), fitted.theta), expected, rtol=1e-12)
    assert (model.experts[1].baseline(words) == 0).all()


@given(seed=seeds)
def test_a_column_of_naive_bayes_contributes_its_own_density(seed):
    rng = np.random.default_rng(seed)
    X, y, w = random_rows(GaussianNBModel(), rng)
    fitted = calibrated(
        GaussianNBModel(), X, y, w, 3, RC(lr=0.1, max_iter=3, step="fixed", generative_weight=0.0)
    ).fitted
    theta = fitted.theta
    mean, deviation = theta.means + theta.frame.origin, np.sqrt(theta.variances)
    found = fitted.model.contributions(rows_of(fitted, X), theta)
    np.testing.assert_allclose(found, norm(mean.T, deviation.T).logpdf(X[:, :, None]), rtol=1e-9, atol=1e-9)


@given(seed=seeds, n=st.integers(2, 5))
def test_uncorrelated_columns_of_qda_contribute_as_in_naive_bayes(seed, n):
    rng = np.random.default_rng(seed)
    corners = np.array(np.meshgrid(*[[-1.0, 1.0]] * n)).reshape(n, -1).T
    X = np.concatenate([corners * rng.uniform(0.5, 2, n) + rng.standard_normal(n) for _ in range(2)])
    y, w = np.repeat([0, 1], len(corners)), np.ones(2 * len(corners))
    found = []
    for model in (QDAModel(), GaussianNBModel(var_smoothing=0.0)):
        fitted = calibrated(model, X, y, w, 2, RC(max_iter=0)).fitted
        found.append(model.contributions(rows_of(fitted, X), fitted.theta))
    np.testing.assert_allclose(*found, atol=1e-9)


@given(seed=seeds)
def test_two_classes_of_lda_contribute_coefficients_times_distances_from_the_middle(seed):
    rng = np.random.default_rng(seed)
    X, y, w = random_rows(LDAModel(), rng, n=4, r=2)
    fitted = calibrated(
        LDAModel(), X, y, w, 2, RC(lr=0.1, max_iter=3, step="fixed", generative_weight=0.0)
    ).fitted
    theta = fitted.theta
    found = fitted.model.contributions(rows_of(fitted, X), theta)
    slope = np.linalg.solve(theta.covariance, theta.means[1] - theta.means[0])
    middle = theta.means.mean(axis=0) + theta.frame.origin
    np.testing.assert_allclose(found[:, :, 1] - found[:, :, 0], (X - middle) * slope, atol=1e-8)


@pytest.mark.parametrize("kind", [LDAModel, QDAModel, GaussianNBModel])
@given(seed=seeds)
def test_missing_cells_contribute_nothing_and_the_rest_as_the_marginal_density(kind, seed):
    rng = np.random.default_rng(seed)
    X, y, w = random_rows(kind(), rng, n=4, r=2)
    fitted = calibrated(
        kind(), X, y, w, 2, RC(lr=0.1, max_iter=3, step="fixed", generative_weight=0.0)
    ).fitted
    theta, holes = fitted.theta, X[:12].copy()
    holes[rng.random(holes.shape) < 0.4] = np.nan
    found = kind().contributions(rows_of(fitted, holes), theta)
    assert (found[np.isnan(holes)] == 0).all()
    for x, total in zip(holes, found.sum(axis=1), strict=True):
        seen = np.flatnonzero(~np.isnan(x))
        if len(seen) == 0:
            continue
        logs = []
        for k in range(2):
            C = covariance_of(theta, k)
            mean = (theta.means[k] + theta.frame.origin)[seen]
            logs.append(multivariate_normal(mean, C[np.ix_(seen, seen)]).logpdf(x[seen]))
        assert total[1] - total[0] == pytest.approx(logs[1] - logs[0], rel=1e-8, abs=1e-7)


@pytest.mark.parametrize(
    "kind", [CategoricalModel, TreeModel, SmoothModel, BinnedModel, BernoulliModel, PoissonModel]
)
@given(seed=seeds)
def test_missing_cells_of_categories_knots_and_counts_contribute_nothing(kind, seed):
    rng = np.random.default_rng(seed)
    X, y, w = random_rows(kind(), rng, n=4, r=3)
    model = TreeModel(structure="tree", alpha=1.0, backoff=5.0) if kind is TreeModel else kind(alpha=1.0)
    X = X.astype(float)
    X[rng.random(X.shape) < 0.2] = np.nan
    fitted = calibrated(model, X, y, w, 3, RC(lr=0.1, max_iter=3, step="fixed", generative_weight=0.0)).fitted
    Z = rows_of(fitted, X)
    found = model.contributions(Z, fitted.theta)
    assert (found[np.isnan(X)] == 0).all()
    np.testing.assert_allclose(
        fitted.theta.log_prior + found.sum(axis=1), model.scores(Z, fitted.theta), rtol=1e-9, atol=1e-9
    )


def test_compiled_rows_of_smooth_naive_bayes_have_the_same_contributions():
    pytest.importorskip("numba")
    rng = np.random.default_rng(0)
    X, y, w = random_rows(SmoothModel(), rng, n=3, r=3)
    X[:, 1] = np.round(X[:, 1])
    X[rng.random(X.shape) < 0.2] = np.nan
    model, S, theta = calibrated(
        SmoothModel(), X, y, w, 3, RC(lr=0.1, max_iter=3, step="fixed", generative_weight=0.0)
    ).fitted
    usual, compiled = model.encode(X, S.frame), Places(*kernel.encode(X, S.frame), S.frame)
    assert type(usual) is Hats
    found = model.contributions(usual, theta)
    np.testing.assert_allclose(model.contributions(compiled, theta), found, rtol=1e-9, atol=1e-12)


def test_experts_contribute_to_their_own_columns():
    rng = np.random.default_rng(1)
    X, y, w = random_rows(QDAModel(), rng, n=4, r=3)
    model = ProductModel((QDAModel(), SmoothModel(alpha=1.0)), (1.0, 0.7), ((2, 0), (0,)))
    fitted = calibrated(model, X, y, w, 3, RC(lr=0.1, max_iter=3, step="fixed", generative_weight=0.0)).fitted
    Z = rows_of(fitted, X)
    found = model.contributions(Z, fitted.theta)
    assert (found[:, [1, 3]] == 0).all()
    assert model.traits.columns == (0, 2)
    nested = ProductModel((model, SmoothModel()), (1.0, 1.0), ((1, 2, 3, 0), (4,)))
    assert nested.traits.columns == (1, 3, 4)
    total = without_row_constant(fitted.theta.log_prior + found.sum(axis=1))
    np.testing.assert_allclose(total, without_row_constant(model.scores(Z, fitted.theta)), atol=1e-9)
    gaussian = model.experts[0].contributions(Z.parts[0], fitted.theta.experts[0])
    np.testing.assert_allclose(found[:, 2], gaussian[:, 0])
    described = list(model.describe(fitted.theta))
    blocks = {(name, int(j)) for b in described for name, j in zip(b.names, b.columns, strict=True)}
    assert {("QDA: mean", 2), ("QDA: mean", 0)} <= blocks
    assert {j for _, j in blocks} == {0, 2}


def test_a_product_weights_its_experts():
    rng = np.random.default_rng(1)
    X, y, w = random_rows(QDAModel(), rng, n=3, r=3)
    model = ProductModel((QDAModel(), SmoothModel(alpha=1.0)), (0.3, 0.7))
    fitted = calibrated(model, X, y, w, 3, RC(lr=0.1, max_iter=3, step="fixed", generative_weight=0.0)).fitted
    Z = rows_of(fitted, X)
    own = [
        e.contributions(part, t)
        for e, part, t in zip(model.experts, Z.parts, fitted.theta.experts, strict=True)
    ]
    np.testing.assert_allclose(model.contributions(Z, fitted.theta), 0.3 * own[0] + 0.7 * own[1], rtol=1e-12)
