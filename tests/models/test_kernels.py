"""Compiled scans give what NumPy gives."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import closed_form, encoded
from riskbayes import CategoricalNB
from riskbayes.engines import memory
from riskbayes.learners import RC, TM
from riskbayes.models import CategoricalModel
from riskbayes.models.categorical import JointScanner
from riskbayes.models.codes import Codes
from riskbayes.objectives import ExpectedCost, LogLoss, SoftError
from riskbayes.scanners import dense, kernels
from riskbayes.scanners.dense import Labels, Scanner, Split

pytest.importorskip("numba", reason="needs the extra `fast`")


@pytest.fixture(autouse=True)
def small_tables_too(monkeypatch):
    monkeypatch.setattr(kernels, "SMALLEST", 0)


def table(seed, m=700, n=7, r=3, most=7):
    rng = np.random.default_rng(seed)
    y = rng.integers(r, size=m)
    K = rng.integers(2, most, size=n)
    return (
        np.minimum(rng.integers(0, K, size=(m, n)) + (rng.random((m, n)) < 0.3) * y[:, None], K - 1),
        y,
        rng.random(m),
    )


@pytest.mark.parametrize("risks_only", [False, True])
@pytest.mark.parametrize("objective", [LogLoss(), SoftError(), ExpectedCost(1 - np.eye(3))])
@given(seed=st.integers(0, 2**32 - 1), weighted=st.booleans())
def test_a_compiled_scan_is_the_plain_one(objective, risks_only, seed, weighted):
    X, y, w = table(seed)
    w = w if weighted else None
    engine, fitted = closed_form(CategoricalModel(alpha=0.5), X, y, w, 3)
    model, S, theta = fitted
    Z = model.encode(X, S.frame)
    assert Z.grouping is not None
    assert type(model.scanner(Z)) is JointScanner
    scan = engine.scan(fitted, objective, risks_only=risks_only)
    rows = Codes(Z.codes, Z.frame)
    plain = model.scanner(rows)
    assert type(plain) is Scanner
    dS, risks = plain.scan(theta, Labels(y, w, 3), objective, risks_only)
    assert scan.risks.mean() == pytest.approx(risks.mean(), rel=1e-10)
    if risks_only:
        assert scan.dS is dS is None
    else:
        assert scan.dS.allclose(dS, rtol=1e-9, atol=1e-10)


def test_features_too_wide_to_share_a_byte_are_scanned_plainly():
    X, _, _ = table(0, most=100)
    assert encoded(CategoricalModel(), X).grouping is None


@pytest.mark.parametrize("most", [3, 7, 16])
def test_counts_of_labels_whatever_the_number_of_categories(most):
    X, y, w = table(0, most=most)
    model, S, _ = closed_form(CategoricalModel(), X, y, w, 3)[1]
    for j in range(X.shape[1]):
        start = S.frame.offsets[j]
        for v in range(S.frame.n_categories[j]):
            expected = [w[(y == k) & (X[:, j] == v)].sum() for k in range(3)]
            np.testing.assert_allclose(S["counts"][:, start + v], expected, atol=1e-10)
    assert model.encode(X, S.frame).grouping[0].sizes.max() <= 256


def test_threads_change_no_bit(monkeypatch):
    X, y, _ = table(1, m=5000)
    monkeypatch.setattr(memory, "ON_HOST", Split(4000))
    fits = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(dense, "available_threads", lambda threads=threads: threads)
        fits.append(CategoricalNB(learner=TM(max_iter=6)).fit(X, y))
    for other in fits[1:]:
        assert all((other.statistics_[name] == fits[0].statistics_[name]).all() for name in other.statistics_)


def test_an_estimator_does_not_depend_on_the_path(monkeypatch):
    X, y, w = table(2)
    compiled = CategoricalNB(learner=RC(lr=0.3, step="fixed", generative_weight=0.0)).fit(
        X, y, sample_weight=w
    )
    monkeypatch.setattr(kernels, "SMALLEST", 10**12)
    plain = CategoricalNB(learner=RC(lr=0.3, step="fixed", generative_weight=0.0)).fit(X, y, sample_weight=w)
    assert compiled.statistics_.allclose(plain.statistics_, rtol=1e-8)
    np.testing.assert_allclose(compiled.predict_proba(X), plain.predict_proba(X), atol=1e-9)
