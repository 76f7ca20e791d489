"""Threads of our own or of BLAS, as many as the user lets BLAS have."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from itertools import permutations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from threadpoolctl import threadpool_info, threadpool_limits

from riskbayes import GaussianNB, GenerativeClassifier, search
from riskbayes.learners import RC, RCCV
from riskbayes.learners.rc_cv import SHARES
from riskbayes.models import LDAModel
from riskbayes.threads import OneBlasThread, available_threads


@pytest.mark.parametrize("order", [*permutations((0, 1, 2))])
@pytest.mark.parametrize("blas", [2, 3])
def test_whoever_leaves_last_restores_what_blas_had(blas, order):
    """Threads that live on enter one after another and leave in any order; the user's limit holds again."""
    threads = [ThreadPoolExecutor(1) for _ in order]
    with threadpool_limits(blas, user_api="blas"):
        entered = [OneBlasThread() for _ in threads]
        for thread, context in zip(threads, entered, strict=True):
            thread.submit(context.__enter__).result()
            assert blas_threads() == {1}
        for i in order:
            threads[i].submit(entered[i].__exit__).result()
        assert blas_threads() == {blas}
        with threadpool_limits(blas + 1, user_api="blas"):
            assert blas_threads() == {blas + 1}
    for thread in threads:
        thread.shutdown()


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.mark.parametrize("openmp", [1, 4])
@pytest.mark.parametrize("blas", [1, 2, 3])
def test_the_limit_for_blas_is_ours_in_every_thread(blas, openmp):
    """Limits for OpenMP, which hold in one thread only, are for others."""
    limits = threadpool_limits(blas, user_api="blas"), threadpool_limits(openmp, user_api="openmp")
    with ThreadPoolExecutor(1) as other, limits[0], limits[1]:
        assert available_threads() == other.submit(available_threads).result() == blas
        with OneBlasThread():
            assert available_threads() == other.submit(available_threads).result() == 1
        assert available_threads() == blas


class WatchedModel(LDAModel):
    """Notes the threads that BLAS and we may use."""

    def parameters(self, S):
        SEEN.append((blas_threads(), available_threads()))
        if FAIL:
            raise ArithmeticError
        return super().parameters(S)

    def log_joint(self, Z, theta):
        SEEN.append((blas_threads(), available_threads()))
        return super().log_joint(Z, theta)


SEEN, FAIL = [], []


@pytest.mark.parametrize(("shape", "blas"), [((60, 4), 3), ((60, 16), 1), ((700, 256), 3)])
def test_blas_has_threads_for_large_products_only(shape, blas):
    """For tiny ones BLAS starts none, and is not limited.

    Our own threads stay as many as the user lets BLAS have, whose limit holds again whatever happens.
    """
    X, y = np.random.default_rng(0).standard_normal(shape), np.arange(shape[0]) % 2
    clf = GenerativeClassifier(WatchedModel(covariance_strength=1.0), learner=RC(max_iter=2))
    with threadpool_limits(3, user_api="blas"):
        for fails in (False, True):
            SEEN.clear()
            FAIL[:] = [1] * fails
            with pytest.raises(ArithmeticError) if fails else nullcontext():
                clf.fit(X, y).predict_log_proba(X)
            FAIL.clear()
            assert SEEN
            assert all(seen == ({blas}, 3) for seen in SEEN)
            assert (blas_threads(), available_threads()) == ({3}, 3)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_folds_in_threads_leave_one_thread_to_each(n_jobs, monkeypatch):
    run, seen = search.run, []

    def watched(*arguments):
        seen.append(available_threads())
        return run(*arguments)

    monkeypatch.setattr(search, "run", watched)
    folds = 3 * len(SHARES)  # then comes the path on all rows
    with threadpool_limits(3, user_api="blas"):
        learner = RCCV(cv=3, max_iter=2, n_jobs=n_jobs, random_state=0)
        GaussianNB(learner=learner).fit(*load_iris(return_X_y=True))
        assert available_threads() == 3
    assert len(seen) > folds
    assert seen == [3 if n_jobs is None else 1] * folds + [3] * (len(seen) - folds)
