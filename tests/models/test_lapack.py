"""LAPACK without Python's lock gives what SciPy's wrappers give, in threads too."""

import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg.lapack import dpotrf, dtrtri, dtrtrs
from threadpoolctl import threadpool_limits

from riskbayes.models import lapack


def covariance(n, seed, scale=1.0):
    A = np.random.default_rng(seed).standard_normal((n, n + 5))
    return scale * (A @ A.T) / n


@given(
    n=st.sampled_from([1, 3, 64, 65, 90]),
    seed=st.integers(0, 1000),
    scale=st.sampled_from([1e-200, 1.0, 1e200]),
    by_columns=st.booleans(),
)
def test_same_as_scipy(n, seed, scale, by_columns):
    C = covariance(n, seed, scale)
    C = np.asfortranarray(C) if by_columns else C
    before = C.copy()
    factor, failed = dpotrf(C.T, lower=0, clean=1)
    L = lapack.factorise(C)
    assert failed == 0
    np.testing.assert_array_equal(L, factor.T)
    np.testing.assert_array_equal(lapack.inverse_of(L), dtrtri(factor, lower=0)[0].T)
    B = np.random.default_rng(seed + 1).standard_normal((n, 4))
    np.testing.assert_array_equal(
        lapack.solve_upper(factor, B), dtrtrs(np.ascontiguousarray(factor).T, B, lower=1, trans=1)[0]
    )
    np.testing.assert_array_equal(C, before)
    np.testing.assert_array_equal(lapack.inverse_of(L.copy(), overwrite=True), lapack.inverse_of(L))


@pytest.mark.parametrize("n", [5, 100])
@pytest.mark.parametrize("value", [-1.0, 0.0])
def test_not_positive_definite(n, value):
    C = covariance(n, 0)
    C[n - 1, n - 1] = value
    assert lapack.factorise(C) is None


def test_signature_that_is_unknown_falls_back(monkeypatch):
    C = covariance(100, 0)
    expected = lapack.factorise(C), lapack.inverse_of(np.tril(C)), lapack.solve_upper(np.triu(C), C)
    lapack.routine.cache_clear()
    monkeypatch.setattr(lapack, "KINDS", {})
    try:
        assert lapack.routine("dpotrf") is None
        found = lapack.factorise(C), lapack.inverse_of(np.tril(C)), lapack.solve_upper(np.triu(C), C)
    finally:
        lapack.routine.cache_clear()
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_releases_the_lock():
    """Another thread gets its turn during a long call: SciPy's own wrapper holds the lock to its end."""
    C, turns, done = covariance(1500, 0), [], threading.Event()

    def count():
        while not done.is_set():
            turns.append(time.perf_counter())
            time.sleep(0)

    counting = threading.Thread(target=count)
    with threadpool_limits(1):
        counting.start()
        L = np.tril(C)
        begin = len(turns)
        lapack.inverse_of(L, overwrite=True)
        during = len(turns) - begin
        done.set()
        counting.join()
    assert during > 2
