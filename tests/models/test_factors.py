"""Cholesky factors and their inverses are those of SciPy, computed without the GIL where they are large."""

import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import cholesky, solve_triangular
from threadpoolctl import threadpool_limits

from riskbayes.models.whitening import factorise, inverse_of


def covariance(n, seed, scale=1.0):
    A = np.random.default_rng(seed).standard_normal((n, n + 5))
    return scale * (A @ A.T) / n


@given(
    n=st.sampled_from([1, 3, 64, 65, 90, 200]),
    seed=st.integers(0, 1000),
    scale=st.sampled_from([1e-200, 1.0, 1e200]),
    by_columns=st.booleans(),
)
def test_same_as_scipy(n, seed, scale, by_columns):
    C = covariance(n, seed, scale)
    C = np.asfortranarray(C) if by_columns else C
    before, expected = C.copy(), cholesky(C, lower=True)
    L = factorise(C)
    np.testing.assert_allclose(L, expected, rtol=1e-9, atol=1e-12 * np.sqrt(scale))
    inverse = inverse_of(L)
    whole = solve_triangular(expected, np.eye(n), lower=True)
    np.testing.assert_allclose(inverse, whole, rtol=1e-8, atol=1e-11 * np.abs(whole).max())
    np.testing.assert_array_equal(C, before)


@pytest.mark.parametrize("n", [5, 100])
@pytest.mark.parametrize("value", [-1.0, 0.0])
def test_not_positive_definite(n, value):
    C = covariance(n, 0)
    C[n - 1, n - 1] = value
    assert factorise(C) is None


@pytest.mark.parametrize("work", [factorise, lambda C: inverse_of(np.linalg.cholesky(C))])
def test_releases_the_lock(work):
    """Another thread gets its turn during a long call: SciPy's own wrapper holds the lock to its end."""
    C, turns, done = covariance(1500, 0), [], threading.Event()

    def count():
        while not done.is_set():
            turns.append(time.perf_counter())
            time.sleep(0)

    counting = threading.Thread(target=count)
    with threadpool_limits(1):
        counting.start()
        begin = len(turns)
        work(C)
        during = len(turns) - begin
        done.set()
        counting.join()
    assert during > 2
