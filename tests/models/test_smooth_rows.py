"""Rows of smooth naive Bayes: sparse and compiled look-ups give what plain hat weights give."""

import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from riskbayes import GenerativeClassifier, SmoothNB
from riskbayes.engines import memory
from riskbayes.exceptions import ColumnError
from riskbayes.learners import RC
from riskbayes.models import ProductModel, QDAModel, SmoothModel
from riskbayes.models import hats as rows_of_smooth
from riskbayes.models.hats import Hats, Places, hats_of, knots_of
from riskbayes.models.smooth import SmoothParameters
from riskbayes.scanners import dense as scans
from riskbayes.scanners import kernels
from riskbayes.scanners.dense import Split
from riskbayes.scanners.kernels import smooth

seeds = st.integers(0, 2**32 - 1)


def table(seed, m=300, dtype=np.float64):
    """Columns of many values, of few, of one, with heavy ones, tiny and huge ones."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((m, 7))
    x[:, 1] = rng.integers(0, 5, size=m)
    x[:, 2] = 3.5
    x[:, 3] = np.where(rng.random(m) < 0.4, 0.0, np.exp(2 * x[:, 3]))
    x[:, 4] *= 1e-12
    x[:, 5] = 1e12 * x[:, 5] + 1e13
    return x.astype(dtype)


def dense(X, frame):
    """Hat weights (m, knots) and lengths in the tails, from their definition."""
    columns, beyond = [], np.zeros(len(X))
    for j, (first, k) in enumerate(zip(frame.offsets, frame.n_categories, strict=True)):
        t, x = frame.positions[first : first + k], X[:, j].astype(np.float64)
        columns += [np.interp(x, t, unit) for unit in np.eye(k)]
        if not frame.few_values[j]:
            low, high = frame.tails[j]
            beyond += np.clip(t[0] - x, 0, None) / low + np.clip(x - t[-1], 0, None) / high
    return np.stack(columns, axis=1), beyond


@contextmanager
def rows_kept(kind):
    """Rows keep hat weights densely or sparsely, or places for compiled look-ups."""
    if kind == "compiled":
        pytest.importorskip("numba", reason="needs the extra `fast`")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "SMALLEST", 0 if kind == "compiled" else 10**9)
        patch.setattr(smooth, "BLOCK", 100)
        patch.setattr(rows_of_smooth, "DENSE_CELLS", 10**9 if kind == "dense" else 0)
        yield


@pytest.mark.parametrize("kind", ["dense", "sparse", "compiled"])
@given(
    seed=seeds,
    r=st.sampled_from([1, 2, 3, 5, 6, 9]),
    dtype=st.sampled_from([np.float32, np.float64]),
    weighted=st.booleans(),
)
def test_scores_and_statistics_are_those_of_hat_weights(kind, seed, r, dtype, weighted):
    X, rng = table(seed, dtype=dtype), np.random.default_rng(seed)
    w = rng.integers(0, 3, size=len(X)).astype(float) if weighted else None
    frame = knots_of(X, w, 6, 20, 0.01)
    new = np.concatenate([X, (5 * rng.standard_normal((50, 7)) * X.std(axis=0)).astype(dtype)])
    H, beyond = dense(new, frame)
    W = rng.standard_normal((len(new), r))  # residuals have both signs
    log_density = 100 * rng.standard_normal((r, H.shape[1]))
    theta = SmoothParameters(np.log(np.full(r, 1 / r)), log_density, frame, np.zeros(r, int))
    model, parts = SmoothModel(), (slice(0, len(new)), slice(40, 333), rng.permutation(len(new))[:99])
    with rows_kept(kind):
        Z = hats_of(new, frame)
        found = [
            (
                model.statistics(Z[part], W[part]),
                model.scores(Z[part], theta),
                model.log_joint(Z[part], theta),
            )
            for part in parts
        ]
    assert isinstance(Z, Places if kind == "compiled" else Hats)
    for part, (S, scores, log_joint) in zip(parts, found, strict=True):
        V, length = W[part], np.abs(W[part]).sum(axis=0)
        close = {"rtol": 1e-12, "atol": 1e-12 * length.max()}  # differences are as exact as what was added
        np.testing.assert_allclose(S["s0"], V.sum(axis=0), **close)
        np.testing.assert_allclose(S["counts"], V.T @ H[part], **close)
        np.testing.assert_allclose(S["beyond"], V.T @ beyond[part], rtol=1e-9, atol=1e-12 * beyond.sum())
        expected = H[part] @ log_density.T + theta.log_prior
        np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-10)
        np.testing.assert_allclose(log_joint, expected - beyond[part, None], rtol=1e-12, atol=1e-9)


@given(seed=seeds, dtype=st.sampled_from([np.float32, np.float64]))
def test_weights_of_rows_are_rows_repeated(seed, dtype):
    X, rng = table(seed, dtype=dtype), np.random.default_rng(seed)
    w = rng.integers(0, 3, size=len(X))
    weighted, repeated = (
        knots_of(X, w.astype(float), 6, 20, 0.01),
        knots_of(X.repeat(w, axis=0), None, 6, 20, 0.01),
    )
    assert (weighted.positions == repeated.positions).all()
    np.testing.assert_allclose(weighted.tails, repeated.tails, rtol=1e-12)


def test_a_compiled_fit_is_the_plain_one_whatever_the_threads(monkeypatch):
    pytest.importorskip("numba", reason="needs the extra `fast`")
    X, y = table(0, m=4000), np.random.default_rng(0).integers(3, size=4000)
    X[:, 0] += y
    X[:, 2] = X[:, 1] ** 2 % 3  # QDA warns of a constant column
    experts = ProductModel((QDAModel(covariance_strength=5.0), SmoothModel(alpha=1.0)))
    model = GenerativeClassifier(experts, learner=RC(max_iter=5))
    plain = clone(model).fit(X, y)
    monkeypatch.setattr(kernels, "SMALLEST", 0)
    monkeypatch.setattr(rows_of_smooth, "THREADED_CELLS", 0)
    monkeypatch.setattr(memory, "ON_HOST", Split(4000))
    fits = []
    for threads in (1, 2, 3):
        for module in (scans, rows_of_smooth, smooth):
            monkeypatch.setattr(module, "available_threads", lambda threads=threads: threads)
        fits.append(clone(model).fit(X, y))
    for name, value in fits[0].statistics_.items():
        assert all((other.statistics_[name] == value).all() for other in fits[1:])
        np.testing.assert_allclose(value, plain.statistics_[name], rtol=1e-9, atol=1e-9 * np.abs(value).max())
    np.testing.assert_allclose(fits[0].predict_proba(X), plain.predict_proba(X), rtol=1e-8, atol=1e-12)


def test_an_overflowing_range_is_refused_in_threads_too(monkeypatch):
    monkeypatch.setattr(rows_of_smooth, "THREADED_CELLS", 0)
    monkeypatch.setattr(rows_of_smooth, "available_threads", lambda: 2)
    X = table(0)
    X[:2, 4] = X[:2, 6] = -1.5e308, 1.5e308
    with pytest.raises(ColumnError, match="range that overflows") as error:
        knots_of(X, None, 6, 20, 0.01)
    assert error.value.column == 4


def test_small_fits_do_not_import_the_compiler():
    code = (
        "import sys, numpy as np; from riskbayes import RiskBayesClassifier; X = np.random.rand(60, 3);"
        "RiskBayesClassifier('single').fit(X, X[:, 0] > 0.5).predict(X); assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_density_is_that_of_its_rows_where_knots_are_far_apart():
    """Of a skewed column: as good as the truth on new rows, up to the few knots."""
    rng = np.random.default_rng(0)
    X, new = (rng.exponential(size=(4000, 1)) for _ in range(2))
    clf = SmoothNB(n_knots=24, learner="closed_form").fit(X, np.arange(4000) % 2)
    assert clf.score_samples(new).mean() == pytest.approx(-new.mean(), abs=0.05)
