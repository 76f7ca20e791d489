"""Compiled scans of sparse rows give what SciPy gives, in one thread and in several."""

import gc
import weakref

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from conftest import closed_form
from riskbayes import BernoulliNB, MultinomialNB
from riskbayes.engines import MemoryEngine
from riskbayes.learners import DFE, RC, TM
from riskbayes.learners.dfe import LabelSoftError
from riskbayes.models import BernoulliModel, ComplementModel, MultinomialModel, PoissonModel
from riskbayes.models.counts import Cells, SparseCounts
from riskbayes.objectives import ExpectedCost, LogLoss, SoftError
from riskbayes.risks import posterior
from riskbayes.scanners.dense import Labels, label_statistics
from riskbayes.scanners.kernels import sparse as kernels
from riskbayes.scanners.kernels.sparse import SparseScan
from riskbayes.scanners.sparse import SparseScanner

pytest.importorskip("numba", reason="needs the extra `fast`")
from riskbayes.scanners.kernels import loops

MODELS = [MultinomialModel, BernoulliModel, ComplementModel, PoissonModel]
OBJECTIVES = {
    "log loss": lambda r: LogLoss(),
    "soft error": lambda r: SoftError(),
    "costs": lambda r: ExpectedCost(1.0 - np.eye(r) + np.arange(r)),
    "dfe": lambda r: LabelSoftError(),
}
seeds = st.integers(0, 2**32 - 1)
tables = {
    "seed": seeds,
    "m": st.sampled_from([40, 511, 512, 1100]),
    "r": st.one_of(st.just(2), st.integers(2, 12), st.just(33)),
    "weighted": st.booleans(),
    "dtype": st.sampled_from([np.float32, np.float64]),
    "whole": st.booleans(),
    "far": st.sampled_from([1.0, 30.0]),  # up to rows of a posterior of one
}


def table(seed, m, r, weighted, dtype, whole, far):
    """CSR with empty rows, empty columns and a column that all other rows have; labels and weights."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    y = np.concatenate([np.arange(r), rng.integers(r, size=m - r)])
    X = rng.poisson(far * rng.gamma(0.2, size=(r, n))[y]).astype(float)
    X[:, 0] = 1 + rng.integers(3, size=m)
    X[:, rng.random(n) < 0.1] = 0.0
    X[rng.random(m) < 0.1] = 0.0
    X = X if whole else X * np.where(rng.random(n) < 0.5, 0.1, 1.0)  # of a tenth float32 has seven digits
    w = rng.uniform(0, 2, size=m) if weighted else None
    return sp.csr_array(X.astype(dtype)), y, w


def assert_close(dS, expected, X):
    """Both are sums of the values of X times numbers of at most about one, which may cancel."""
    assert set(dS) == set(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(dS[name], value, rtol=1e-9, atol=1e-12 * (X.shape[0] + abs(X).sum()))


def compiled_engine(X, y, w, r, patch):
    """An engine whose scans are compiled, in several shares."""
    patch.setattr(kernels, "SMALLEST", 0)
    patch.setattr(kernels, "SMALLEST_SHARE", 16)
    return MemoryEngine(X, y, w, r)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", OBJECTIVES)
@given(**tables)
def test_compiled_scans_are_those_of_scipy(kind, name, **drawn):
    (X, y, w), r = table(**drawn), drawn["r"]
    objective = OBJECTIVES[name](r)
    if kind is BernoulliModel:
        X = X.astype(bool).astype(X.dtype)
    engine, fitted = closed_form(kind(alpha=0.5), X, y, w, r)
    plain = engine.scan(fitted, objective)
    part = np.arange(0, len(y), 2)
    with pytest.MonkeyPatch.context() as patch:
        engine = compiled_engine(X, y, w, r, patch)
        for number in range(3):  # of CSR, of blocks that are sorted now, of the same blocks
            found = engine.scan(fitted, objective)
            plan = engine._scanner.last
            assert isinstance(plan, SparseScan) == (objective.power is not None)
            if isinstance(plan, SparseScan):
                assert (plan.shares is None) == (number == 0 or r > kernels.MOST_CLASSES)
            assert_close(found.dS, plain.dS, X)
            assert found.risks.mean() == pytest.approx(plain.risks.mean(), rel=1e-9, abs=1e-12)
            only = engine.scan(fitted, objective, risks_only=True)
            assert only.dS is None
            assert only.risks.mean() == pytest.approx(plain.risks.mean(), rel=1e-9, abs=1e-12)
        some = engine.scan(fitted, objective, part)
    other = MemoryEngine(X.toarray(), y, w, r).scan(fitted, objective, part)
    assert_close(some.dS, other.dS, X)


@given(**{**tables, "r": st.sampled_from([2, 3, 9, 33])})
def test_scans_do_not_depend_on_the_number_of_threads(**drawn):
    (X, y, w), r = table(**drawn), drawn["r"]
    _, fitted = closed_form(MultinomialModel(alpha=0.5), X, y, w, r)
    with pytest.MonkeyPatch.context() as patch:
        engines = [compiled_engine(X, y, w, r, patch) for _ in (1, 2, 3)]
        for _ in range(2):
            scans = []
            for threads, engine in zip((1, 2, 3), engines, strict=True):
                patch.setattr(kernels, "available_threads", lambda threads=threads: threads)
                scans.append(engine.scan(fitted, LogLoss()))
            for scan in scans[1:]:
                assert scan.dS == scans[0].dS
                np.testing.assert_array_equal(scan.risks.sums, scans[0].risks.sums)


@pytest.mark.parametrize("r", [1, 2, 7, 20])
def test_sums_by_class_do_not_depend_on_the_number_of_threads(r, monkeypatch):
    rng = np.random.default_rng(r)
    X = sp.random_array((600, 30), density=0.3, format="csr", rng=rng)
    W = rng.standard_normal((600, r))
    W[::3] = 0.0
    Z = SparseCounts.of(X, Cells(np.array(False)))
    found = []
    for threads in (1, 3):
        monkeypatch.setattr(kernels, "available_threads", lambda threads=threads: threads)
        found.append(kernels.sums_by_class(Z, W))
    np.testing.assert_array_equal(*found)
    np.testing.assert_allclose(found[0], W.T @ X.toarray(), atol=1e-12)


@given(seed=seeds, least=st.integers(1, 500))
def test_shares_are_all_rows_in_order(seed, least):
    rng = np.random.default_rng(seed)
    X = sp.random_array((int(rng.integers(1, 200)), 10), density=0.2, format="csr", rng=rng)
    start = int(rng.integers(X.shape[0]))
    Z = SparseCounts.of(X, None)[start:]
    shares = kernels.shares_of(Z, least)
    rows = np.concatenate([np.arange(share.start, share.stop) for share in shares])
    np.testing.assert_array_equal(rows, np.arange(len(Z)))
    assert len(shares) in (1, 2, 4, 8, 16)
    assert len(shares) * least <= max(least, Z.indptr[-1] - Z.indptr[0])


@given(seed=seeds, size=st.sampled_from([3, 512]))
def test_sorted_blocks_hold_the_rows(seed, size):
    rng = np.random.default_rng(seed)
    X = sp.random_array((50, 20), density=rng.random(), format="csr", rng=rng)
    values = np.empty(X.nnz), np.empty(X.nnz, np.uint32), np.empty(X.nnz, np.uint16)
    loops.sort_blocks(*kernels.stored(X), 20, size, *values)
    x, columns, places = values
    for start in range(0, 50, size):
        stop = min(50, start + size)
        part = slice(X.indptr[start], X.indptr[stop])
        assert (np.diff(columns[part].astype(int)) >= 0).all()
        block = sp.coo_array((x[part], (places[part], columns[part])), shape=(stop - start, 20))
        np.testing.assert_array_equal(block.toarray(), X[start:stop].toarray())


def test_values_are_narrowed_only_if_none_of_them_changes():
    assert kernels.narrowest(np.array([0.0, 3.0, 2.0**24])) is np.float32
    assert kernels.narrowest(np.array([0.1], np.float32)) is np.float32
    for value in (0.1, 2.0**24 + 1, 1e300, 1e-300):
        assert kernels.narrowest(np.array([1.0, value])) is np.float64


def test_a_sparse_table_after_one_with_holes_has_masses_by_column(monkeypatch):
    monkeypatch.setattr(kernels, "SMALLEST", 0)
    X, y, _ = table(0, 40, 3, False, np.float64, True, 1.0)
    X = X.astype(bool).astype(float)
    model, frame = BernoulliModel(), Cells(np.array(True))
    Z = model.encode(X, frame)
    S = label_statistics(model, Z, y, None, 3)
    theta = model.parameters(S)
    scanner = model.scanner(Z)
    assert isinstance(scanner, SparseScanner)
    dS, _ = scanner.scan(theta, Labels(y, None, 3), LogLoss())
    E = LogLoss().residual(posterior(Z.scores(theta)), y)
    assert dS.allclose(model.statistics(Z, E), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", [MultinomialNB, BernoulliNB])
@pytest.mark.parametrize("r", [2, 4])
@pytest.mark.parametrize(
    "learner",
    [
        RC(),
        RC(objective="soft_error"),
        TM(max_iter=10),
        DFE(max_iter=5),
        RC(early_stopping=True, random_state=0),
    ],
    ids=["rc", "soft error", "tm", "dfe", "early stopping"],
)
def test_fits_are_those_of_scipy(kind, r, learner, monkeypatch):
    X, y, w = table(1, 400, r, True, np.float64, True, 1.0)
    plain = kind(learner=learner).fit(X, y, w)
    monkeypatch.setattr(kernels, "SMALLEST", 0)
    found = kind(learner=learner).fit(X, y, w)
    assert found.status_ == plain.status_
    assert found.statistics_.allclose(plain.statistics_, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.history_["log_loss"], plain.history_["log_loss"], rtol=1e-9)


def test_sorted_rows_are_let_go_when_the_fit_ends(monkeypatch):
    monkeypatch.setattr(kernels, "SMALLEST", 0)
    X, y, _ = table(1, 400, 2, False, np.float64, True, 1.0)
    held, sort = [], kernels.sorted_shares

    def watched(*arguments):
        shares = sort(*arguments)
        held.extend(weakref.ref(share) for share in shares)
        return shares

    monkeypatch.setattr(kernels, "sorted_shares", watched)
    gc.disable()  # so that a cycle of references would keep them
    try:
        MultinomialNB(learner=RC(max_iter=4)).fit(X, y)
        assert held
        assert not any(share() for share in held)
    finally:
        gc.enable()
