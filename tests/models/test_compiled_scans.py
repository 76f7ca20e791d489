"""Compiled scans of Gaussians and look-ups give what NumPy gives."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import closed_form
from riskbayes import GenerativeClassifier
from riskbayes.engines import memory
from riskbayes.learners import RC
from riskbayes.models import CategoricalModel, GaussianNBModel, ProductModel, QDAModel, SmoothModel, qda
from riskbayes.objectives import ExpectedCost, LogLoss, SoftError
from riskbayes.scanners import dense, kernels
from riskbayes.scanners.compiled import CompiledScan, CompiledScanner
from riskbayes.scanners.dense import Labels, Scanner, Split

pytest.importorskip("numba", reason="needs the extra `fast`")

CHUNK = CompiledScan.chunk
QDA, SMOOTH = QDAModel(covariance_strength=5.0, mean_strength=1.0), SmoothModel(alpha=1.0)
CODES = CategoricalModel(alpha=0.5)
MODELS = {
    "qda": QDA,
    "smooth": SMOOTH,
    "product": ProductModel((QDA, SMOOTH), (0.3, 0.6)),
    "turned": ProductModel((SMOOTH, QDA), (0.5, -0.1)),
    "codes": ProductModel((CODES, SMOOTH), (1.0, 1.0), ((1, 1), (0, 2, 3))),
    "all": ProductModel((QDA, CODES, SMOOTH), (0.3, 0.7, 0.6), ((0, 2, 3), (1, 1), (0, 1, 2, 3))),
}


@pytest.fixture(autouse=True)
def small_tables_too(monkeypatch):
    monkeypatch.setattr(kernels, "SMALLEST", 0)


def table(seed, m, r, spread, twins=True):
    """Rows far from zero: columns of many values and of few. Classes 0 and 1 share their rows (`twins`)."""
    rng = np.random.default_rng(seed)
    y = rng.integers(r, size=m)
    y[: 3 * r] = np.arange(3 * r) % r
    X = rng.standard_normal((m, 4)) + spread * np.maximum(y, 1)[:, None] + 1e3
    X[:, 1] = rng.integers(0, 5, size=m)
    X[:, 2] += X[:, 0]
    if not twins:
        return X, y
    return np.concatenate([X, X[y < 2]]), np.concatenate([y, 1 - y[y < 2]])


def errors_between(scores, y, w):
    """Least and most weight of wrong rows: of scores that differ by rounding only, any may be the largest."""
    w = np.ones(len(y)) if w is None else w
    near = scores >= (scores.max(axis=1) - 1e-12 * np.maximum(1.0, np.abs(scores).max(axis=1)))[:, None]
    wrong, tied = ~near[np.arange(len(y)), y], near.sum(axis=1) > 1
    return w @ wrong, w @ (wrong | tied)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("objective", [LogLoss(), SoftError()])
@given(
    seed=st.integers(0, 2**32 - 1),
    m=st.sampled_from([21, 255, 256, 700]),
    r=st.integers(2, 7),
    weighted=st.booleans(),
    spread=st.sampled_from([0.3, 3.0, 100.0]),  # up to rows of a posterior of one
    twins=st.booleans(),
    risks_only=st.booleans(),
    dtype=st.sampled_from(["C", "F", int]),
)
def test_a_compiled_scan_is_the_plain_one(
    name, objective, seed, m, r, weighted, spread, twins, risks_only, dtype
):
    X, y = table(seed, m, r, spread, twins)
    X = X.astype(int) if dtype is int else np.asarray(X, order=dtype)
    w = np.random.default_rng(seed).integers(0, 3, size=len(y)) + 0.5 if weighted else None
    _, (model, S, theta) = closed_form(MODELS[name], X, y, w, r)
    Z = model.encode(X, S.frame)
    compiled = model.scanner(Z)
    assert isinstance(compiled, CompiledScanner)
    dS, risks = compiled.scan(theta, Labels(y, w, r), objective, risks_only)
    expected, counted = Scanner(model, Z).scan(theta, Labels(y, w, r), objective)
    assert risks.names == counted.names
    assert risks.weight == counted.weight
    least, most = errors_between(model.scores(Z, theta), y, w)
    assert least == most or twins or dtype is int  # in whole numbers other classes may tie
    error = risks.names.index("error")
    assert least <= risks.sums[error] <= most
    assert least <= counted.sums[error] <= most
    sums, wanted = (np.delete(found.sums, error) for found in (risks, counted))
    np.testing.assert_allclose(sums, wanted, rtol=1e-12, atol=1e-12 * len(y))
    if risks_only:
        assert dS is None
        return
    assert list(dS) == list(expected)
    assert dS.frame == expected.frame
    far = max(1.0, np.abs(X - X.mean(axis=0)).max())
    for key, value in expected.items():
        most = far ** {"s1": 1, "s2": 2, "beyond": 1}.get(key.split(":")[-1], 0)  # of a row's statistics
        np.testing.assert_allclose(dS[key], value, rtol=1e-12, atol=1e-12 * len(y) * most)
        assert np.abs(dS[key].sum(axis=0)).max() <= 1e-15 * r * np.abs(dS[key]).max()


@pytest.mark.parametrize("name", MODELS)
def test_ties_go_to_the_first_class(name):
    X, y = table(0, 300, 2, 1.0)  # both classes have the same rows
    engine, fitted = closed_form(MODELS[name], X, y, None, 2)
    risks = engine.scan(fitted, LogLoss()).risks.mean()
    assert risks["error"] == pytest.approx(0.5)
    assert risks["log_loss"] == pytest.approx(np.log(2))


def test_scores_that_are_no_numbers_have_a_risk_that_is_none():
    X, y = table(0, 300, 3, 1.0)
    engine, fitted = closed_form(QDA, X, y, None, 3)
    broken = fitted._replace(theta=replace(fitted.theta, forms=1e300 * fitted.theta.forms))
    found = engine.scan(broken, SoftError()).risks.mean()
    assert np.isnan([found["soft_error"], found["log_loss"]]).all()


def test_an_impossible_class_stays_so():
    X, y = table(0, 300, 3, 1.0)
    _, (model, S, theta) = closed_form(MODELS["product"], X, y, None, 3)
    prior = np.array([0.5, 0.5, 0.0])
    with np.errstate(divide="ignore"):
        prior = np.log(prior)
    theta = replace(theta, log_prior=prior, experts=tuple(replace(e, log_prior=prior) for e in theta.experts))
    Z = model.encode(X, S.frame)
    rows = y < 2
    dS, risks = model.scanner(Z[rows]).scan(theta, Labels(y[rows], None, 3), LogLoss())
    assert dS["s0"][2] == pytest.approx(0.0, abs=1e-12)
    assert np.isfinite(risks.sums).all()


def test_other_tables_experts_and_objectives_are_scanned_plainly(monkeypatch):
    X, y = table(0, 300, 3, 1.0)

    compiled = []

    def watched(self, *arguments):
        compiled.append(self)
        return CHUNK(self, *arguments)

    monkeypatch.setattr(CompiledScan, "chunk", watched)

    def is_compiled(model, X, objective=None):
        engine, fitted = closed_form(model, X, y, None, 3)
        compiled.clear()
        engine.scan(fitted, objective or LogLoss())
        return bool(compiled)

    product = MODELS["product"]
    assert is_compiled(product, X)
    assert not is_compiled(product, X, ExpectedCost(1 - np.eye(3)))
    assert not is_compiled(product, X.astype(np.float32))
    for experts in ((QDA, QDA), (SMOOTH, GaussianNBModel()), (product, SMOOTH)):
        assert not is_compiled(ProductModel(experts), X)
    monkeypatch.setattr(qda, "MOST_COMPILED", 3)
    assert not is_compiled(QDA, X)
    monkeypatch.setattr(kernels, "SMALLEST", 10**9)
    assert not is_compiled(SMOOTH, X)


@pytest.mark.parametrize("name", MODELS)
def test_threads_change_no_bit(monkeypatch, name):
    X, y = table(1, 5000, 3, 1.0)
    monkeypatch.setattr(memory, "ON_HOST", Split(4000))
    fits = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(dense, "available_threads", lambda threads=threads: threads)
        fits.append(GenerativeClassifier(MODELS[name], learner=RC(max_iter=5)).fit(X, y))
    for other in fits[1:]:
        assert all((other.statistics_[key] == fits[0].statistics_[key]).all() for key in other.statistics_)
