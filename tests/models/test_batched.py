"""Statistics of wide rows, summed at once by blocks of columns, are the sums that they stand for."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from conftest import closed_form
from riskbayes import QuadraticDiscriminantAnalysis
from riskbayes.learners import RC
from riskbayes.models import QDAModel
from riskbayes.models.base import Sample
from riskbayes.objectives import LogLoss


@pytest.mark.parametrize("n", [65, 128, 300])
@pytest.mark.parametrize("sparse", [False, True], ids=["all rows", "few rows"])
def test_moments_by_blocks_are_moments_whatever_the_threads(n, sparse):
    rng = np.random.default_rng(n)
    X, W = 5.0 + rng.standard_normal((700, n)), rng.standard_normal((700, 3))
    W[:: 1 + sparse * 2] *= 1.0 - sparse
    model = QDAModel()
    frame = model.learn(Sample(X, np.zeros(700, dtype=np.int64), None, 3))
    Z, D = model.encode(X, frame), X - frame.origin
    with threadpool_limits(1):
        one = model.statistics(Z, W)
    with threadpool_limits(4):
        several = model.statistics(Z, W)
    assert one == several
    np.testing.assert_allclose(one["s1"], W.T @ D, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(one["s2"], np.einsum("ik,ia,ib->kab", W, D, D), rtol=1e-10, atol=1e-9)


def wide(seed=0, m=900, n=70, r=3):
    """Rows of more columns than one product computes at once, of classes that overlap."""
    rng = np.random.default_rng(seed)
    y = rng.integers(r, size=m)
    return rng.standard_normal((m, n)) + 0.1 * rng.standard_normal((r, n))[y], y


@pytest.mark.parametrize("strength", [0.0, 20.0])
def test_the_anchor_of_wide_rows_is_that_of_expected_statistics(strength):
    """Their second moments are not stored, but computed class by class whenever the anchor asks."""
    X, y = wide()
    model = QDAModel(covariance_strength=strength)
    engine, fitted = closed_form(model, X, y, None, 3)
    value = model.anchor_likelihood(fitted.S)
    for theta in (fitted.theta, model.parameters(fitted.S + 0.1 * engine.scan(fitted, LogLoss()).dS)):
        expected = model.log_likelihood(model.anchor_statistics(fitted.S), theta)
        assert value(theta) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("learner", ["rc", RC.paper(), RC(early_stopping=True, random_state=0)])
def test_large_parameters_are_estimated_again(learner, monkeypatch):
    X, y = wide(1)
    kept = QuadraticDiscriminantAnalysis(learner=learner).fit(X, y)
    monkeypatch.setattr("riskbayes.loop.LARGE", 0)
    found = QuadraticDiscriminantAnalysis(learner=learner).fit(X, y)
    assert found.n_iter_ > 1
    np.testing.assert_array_equal(found.predict_proba(X), kept.predict_proba(X))
    np.testing.assert_array_equal(found.parameters_.forms, kept.parameters_.forms)
