"""Covariances: exact where the rows determine them, bounded where calibration takes from them."""

import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.linalg import eigh
from sklearn import discriminant_analysis, naive_bayes

import riskbayes
from conftest import calibrated, closed_form, posterior
from riskbayes import FlooredWarning
from riskbayes.learners import RC, TM
from riskbayes.models import GaussianNBModel, LDAModel, QDAModel

seeds = st.integers(0, 2**32 - 1)

PAIRS = {
    "qda": (
        riskbayes.QuadraticDiscriminantAnalysis,
        discriminant_analysis.QuadraticDiscriminantAnalysis(tol=0),
    ),
    "lda": (riskbayes.LinearDiscriminantAnalysis, discriminant_analysis.LinearDiscriminantAnalysis(tol=0)),
    "gaussian_nb": (riskbayes.GaussianNB, naive_bayes.GaussianNB()),
}


def quiet_fit(clf, X, y, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FlooredWarning)
        return clf.fit(X, y, **more)


def gaussian_rows(rng, r, n, spread=1.0, correlation=0.0, m=60):
    """Classes of different shapes, `spread` times their size apart, with columns that are nearly equal."""
    y = np.repeat(np.arange(r), m)
    X = rng.standard_normal((len(y), n))
    X[:, 1:] = correlation * X[:, :1] + np.sqrt(1 - correlation**2) * X[:, 1:]
    X *= np.exp(rng.uniform(-1, 1, size=(r, 1)))[y]
    return X + spread * rng.standard_normal((r, n))[y], y


@pytest.mark.parametrize("name", PAIRS)
@given(
    seed=seeds,
    r=st.integers(2, 4),
    n=st.integers(2, 5),
    spread=st.sampled_from([1.0, 100.0, 3000.0]),
    correlation=st.sampled_from([0.0, 0.9, 0.99999]),
    dtype=st.sampled_from([np.float64, np.float32]),
)
def test_closed_forms_that_rows_determine_are_those_of_scikit_learn(
    name, seed, r, n, spread, correlation, dtype
):
    """Whatever lies between the classes, and however near to one a correlation is."""
    # Rows are scored in their own precision, which must resolve the thinnest direction of a class.
    thin = np.exp(-1) * np.sqrt(1 - correlation**2)
    resolved = float(np.finfo(dtype).eps) * spread / thin
    assume(resolved < 1e-3)
    X, y = gaussian_rows(np.random.default_rng(seed), r, n, spread, correlation)
    X = X.astype(dtype)
    kind, twin = PAIRS[name]
    ours = kind(learner="closed_form").fit(X, y)  # a warning of a floor would be an error
    theirs = twin.fit(X.astype(np.float64), y).predict_proba(X.astype(np.float64))
    # Second moments about a common origin lose as many digits again.
    moments = float(np.finfo(np.float64).eps) * (spread / thin) ** 2
    np.testing.assert_allclose(ours.predict_proba(X), theirs, atol=100 * (resolved + moments))


def test_a_far_class_does_not_bend_the_others():
    r = np.random.default_rng(0)
    X = np.vstack([r.normal(size=(300, 2)), 5 * r.normal(size=(300, 2)), r.normal(size=(300, 2)) + 2000])
    y = np.repeat([0, 1, 2], 300)
    peer = discriminant_analysis.QuadraticDiscriminantAnalysis().fit(X, y).score(X, y)
    clf = riskbayes.QuadraticDiscriminantAnalysis(learner="closed_form", store_covariance=True).fit(X, y)
    assert clf.score(X, y) == peer
    np.testing.assert_allclose(clf.covariance_[0], np.cov(X[:300].T, bias=True), atol=1e-9)
    assert riskbayes.QuadraticDiscriminantAnalysis().fit(X, y).score(X, y) >= peer


def covariances_of(theta):
    """Of every class, or the one of all."""
    return theta.covariances if hasattr(theta, "covariances") else theta.covariance[None]


@pytest.mark.parametrize("kind", [QDAModel, LDAModel])
@pytest.mark.parametrize(
    "learner", [RC(lr=2.0, max_iter=6, step="fixed", generative_weight=0.0), TM(max_iter=6)], ids=["rc", "tm"]
)
@given(seed=seeds, n=st.integers(1, 4), floor=st.sampled_from([0.5, 0.1, 1e-2]))
def test_calibration_leaves_every_direction_a_share_of_its_closed_form(kind, learner, seed, n, floor):
    """Generalised eigenvalues of Sigma against the closed form's Sigma: no unit, no other class enters."""
    X, y = gaussian_rows(np.random.default_rng(seed), 3, n, m=20) if n > 1 else one_column(seed)
    fitted = calibrated(kind(covariance_floor=floor), X, y, None, 3, learner).fitted
    first = covariances_of(closed_form(kind(), X, y, None, 3)[1].theta)
    for C, C0 in zip(covariances_of(fitted.theta), first, strict=True):
        assert eigh(C, C0, eigvals_only=True).min() >= floor * (1 - 1e-8)


def one_column(seed):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(3), 20)
    return rng.standard_normal((60, 1)) * np.array([1.0, 3.0, 0.2])[y][:, None] + y[:, None], y


@given(seed=seeds, floor=st.sampled_from([0.5, 0.1, 1e-2]))
def test_variances_keep_a_share_of_their_closed_form(seed, floor):
    X, y = gaussian_rows(np.random.default_rng(seed), 3, 3, m=15)
    model, learner = (
        GaussianNBModel(covariance_floor=floor),
        RC(lr=2.0, max_iter=6, step="fixed", generative_weight=0.0),
    )
    _, S, theta = calibrated(model, X, y, None, 3, learner).fitted
    assert (theta.variances >= floor * (1 - 1e-12) * S.frame.settled.reference).all()


@pytest.mark.parametrize("kind", [QDAModel, LDAModel])
@pytest.mark.parametrize("flat", [False, True], ids=["determined", "undetermined"])
@given(seed=seeds, n=st.integers(3, 5), lr=st.sampled_from([0.1, 1.0]))
def test_floors_do_not_depend_on_units_and_axes(kind, flat, seed, n, lr):
    """Calibrated posteriors are the same after any invertible affine change, with active floors too.

    Undetermined: one class has fewer rows than columns, and lies in a subspace.
    """
    rng = np.random.default_rng(seed)
    X, y = gaussian_rows(rng, 3, n, m=25)
    if flat:
        X, y = X[25 - n + 1 :], y[25 - n + 1 :]
    A = np.linalg.qr(rng.standard_normal((n, n)))[0] * 10.0 ** rng.uniform(-2, 2, size=n)
    model = kind(covariance_floor=0.2)
    before, after = (
        calibrated(model, Z, y, None, 3, RC(lr=lr, max_iter=4, step="fixed", generative_weight=0.0))
        for Z in (X, X @ A + 5.0)
    )
    np.testing.assert_array_equal(before.history["floored"] > 0, after.history["floored"] > 0)
    P, moved = (posterior(found.fitted, Z) for found, Z in ((before, X), (after, X @ A + 5.0)))
    np.testing.assert_allclose(moved, P, atol=1e-5)


@pytest.mark.parametrize(
    "kind", [riskbayes.QuadraticDiscriminantAnalysis, riskbayes.LinearDiscriminantAnalysis]
)
def test_what_rows_do_not_determine_is_a_share_of_the_pooled_covariance(kind):
    """A repeated column, a sum of columns, a constant one, fewer rows than columns."""
    rng = np.random.default_rng(3)
    X, y = gaussian_rows(rng, 2, 3, m=40)
    for more in (X[:, :1], X[:, :1] + X[:, 1:2], np.full((80, 1), 7.0)):
        with pytest.warns(FlooredWarning, match="do not determine the covariance"):
            clf = kind(learner="closed_form").fit(np.hstack([X, more]), y)
        plain = kind(learner="closed_form").fit(X, y)
        np.testing.assert_allclose(clf.predict_proba(np.hstack([X, more])), plain.predict_proba(X), atol=1e-6)
    few = np.hstack([X[:, :2], rng.standard_normal((80, 60))])
    assert np.isfinite(quiet_fit(kind(), few, y).predict_log_proba(few)).any(axis=1).all()


@pytest.mark.parametrize(
    "kind",
    [
        riskbayes.LinearDiscriminantAnalysis,
        riskbayes.QuadraticDiscriminantAnalysis,
        riskbayes.MixtureDiscriminantAnalysis,
        riskbayes.GaussianNB,
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(max_examples=6)
@given(seed=seeds, value=st.sampled_from([1.7e9, 0.1, -3e7, 1e30, 1e-30]))
def test_a_constant_column_tells_nothing_whatever_its_size_and_the_order_of_rows(kind, dtype, seed, value):
    rng = np.random.default_rng(seed)
    X, y = gaussian_rows(rng, 2, 2, m=30)
    order = rng.permutation(len(y))
    wide = np.hstack([X, np.full((len(y), 1), value)]).astype(dtype)
    clf = quiet_fit(kind(learner="closed_form"), wide, y)
    other = quiet_fit(kind(learner="closed_form"), wide[order], y[order])
    plain = quiet_fit(kind(learner="closed_form"), X.astype(dtype), y)
    tolerance = 1e-4 if dtype is np.float32 else 1e-8
    if kind is not riskbayes.MixtureDiscriminantAnalysis:  # components depend on the number of columns
        np.testing.assert_allclose(
            clf.predict_proba(wide), plain.predict_proba(X.astype(dtype)), atol=tolerance
        )
    np.testing.assert_allclose(clf.predict_proba(wide), other.predict_proba(wide), atol=tolerance)


@pytest.mark.parametrize(
    "kind",
    [riskbayes.LinearDiscriminantAnalysis, riskbayes.QuadraticDiscriminantAnalysis, riskbayes.GaussianNB],
)
def test_squares_that_underflow_are_refused_by_column(kind):
    X, y = gaussian_rows(np.random.default_rng(0), 2, 3)
    X[:, 1] *= 1e-200
    with pytest.raises(ValueError, match="Column 1 has values whose squares underflow"):
        kind().fit(X, y)
    X[:, 1] *= 1e60  # 1e-140: squares are numbers
    kind().fit(X, y)
