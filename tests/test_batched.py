"""Statistics of wide rows, summed at once by blocks of columns, are the sums that they stand for."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from riskbayes.models import QDAModel
from riskbayes.models.base import Sample


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
