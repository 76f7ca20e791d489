"""Rows of noise and of overlapping classes, and one iteration of RC: what the cases of the bench run."""

from __future__ import annotations

from typing import Any

import numpy as np

from riskbayes.engines.memory import MemoryEngine
from riskbayes.models.base import Fitted
from riskbayes.objectives import LogLoss
from riskbayes.statistics import Array

BINS = 5
LR = 0.1


class Iterations:
    """RC with a fixed step, one iteration a call: parameters, scan, step, and nothing of a fit around them.

    It is made of an estimator of ours that is not fitted, rows and class codes.
    """

    def __init__(self, clf: Any, X: Array, y: Array):
        clf.set_params(learner="closed_form").fit(X, y)
        self.model, self.start = clf.model_, clf.statistics_
        self.S = self.start
        self.engine = MemoryEngine(X, y, None, len(clf.classes_))

    def __call__(self) -> None:
        """Run one more iteration; start from the closed form again where there is no legal step."""
        scan = self.engine.scan(Fitted.of(self.model, self.S), LogLoss())
        assert scan.dS is not None  # there is a residual
        moved = self.S + LR * scan.dS
        self.S = moved if self.model.is_legal(moved) else self.start


def by(*sizes: int) -> str:
    """Return rows x features x classes in words."""
    return " x ".join(map(str, sizes))


def size_of(name: str, X: Array, y: Array) -> str:
    """Return the name of a data set and its size in words."""
    return f"{name}, {by(*X.shape, int(y.max()) + 1)}"


def labels(m: int, r: int) -> Array:
    """Return random class codes, every class among them."""
    return np.random.default_rng(0).permutation(np.arange(m) % r)


def noise_codes(m: int, n: int) -> Array:
    """Return uniform codes: they say nothing of the class, so no posterior saturates and no row is idle."""
    return np.random.default_rng(1).integers(BINS, size=(m, n), dtype=np.uint8)


def gaussian_rows(y: Array, n: int, distance: float = 0.05) -> Array:
    """Return Gaussian classes that overlap, so that no row is idle; at distance 0 they are noise."""
    rng = np.random.default_rng(1)
    means = distance * rng.standard_normal((y.max() + 1, n))
    X = rng.standard_normal((len(y), n))
    X += means[y]
    return X


def synthetic(codes: bool, m: int, n: int, r: int) -> tuple[Array, Array]:
    """Return rows and labels in which no row is idle."""
    y = labels(m, r)
    return noise_codes(m, n) if codes else gaussian_rows(y, n), y
