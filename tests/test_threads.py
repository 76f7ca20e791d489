"""Threads of our own or of BLAS, as many as the user lets BLAS have."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sklearn.datasets import load_iris
from threadpoolctl import threadpool_limits

from riskbayes import GaussianNB, search
from riskbayes.learners import RCCV
from riskbayes.threads import OneBlasThread, available_threads


@pytest.fixture(autouse=True)
def nobody_else(monkeypatch):
    """An earlier test whose scan was given up may still count as a user."""
    monkeypatch.setattr(OneBlasThread, "users", 0)


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


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_folds_in_threads_leave_one_thread_to_each(n_jobs, monkeypatch):
    run, seen = search.run, []

    def watched(*arguments):
        seen.append(available_threads())
        return run(*arguments)

    monkeypatch.setattr(search, "run", watched)
    with threadpool_limits(3, user_api="blas"):
        learner = RCCV(cv=3, max_iter=2, n_jobs=n_jobs, random_state=0)
        GaussianNB(learner=learner).fit(*load_iris(return_X_y=True))
        assert available_threads() == 3
    assert seen == [3 if n_jobs is None else 1] * 24
