"""Naive Bayes of binary features: psi(x) = (1, x) with x in {0, 1}."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, issparse

from riskbayes.arrays import Array, astype, float_dtype, namespace, positive, sum_of, to_numpy
from riskbayes.frames import Frame
from riskbayes.models.base import COUNT_ROUNDING, SINGLE_ROUNDING, Described, Fitted, log_class_prior
from riskbayes.models.coordinates import SMOOTHED, ClassPrior, TableCoordinates, invert_class_prior
from riskbayes.models.counts import (
    CountDensity,
    CountParameters,
    DenseCounts,
    SparseCounts,
    at_least,
    described,
    mass_of,
    pseudo_counts,
    smoothed_floor,
)
from riskbayes.models.traits import Traits
from riskbayes.statistics import Statistics

MOST_LOG_ODDS = 21.0
"""Bound on log odds that GD reaches: probabilities of about 1e-9."""


@dataclass(frozen=True)
class BernoulliParameters(CountParameters):
    """log p(y), log p(x_j = 1 | y) and log p(x_j = 0 | y)."""

    log_prior: Array
    log_prob: Array
    log_not: Array
    frame: Frame
    floored: Array

    @property
    def weights(self) -> Array:
        """The log odds."""
        return self.log_prob - self.log_not

    @cached_property
    def means(self) -> Array:
        """p(x_j = 1 | y)."""
        return namespace(self.log_prob).exp(self.log_prob)

    @property
    def cell_constants(self) -> Array:
        """log p(x_j = 0 | y): an empty cell counts too."""
        return self.log_not


@dataclass(frozen=True)
class BernoulliModel(CountDensity):
    """Binary features, independent given the class; missing cells are left out.

    Parameters
    ----------
    alpha : float or array of shape (n_features,)
        Pseudo-counts of ones and of zeros; 0 is maximum likelihood.
    class_prior : array of shape (n_classes,), optional
        A fixed p(y).
    binarize : float or None
        Values above this are one, others zero; None: the rows hold 0 and 1.
    """

    traits: ClassVar[Traits] = Traits("counts", array_api=True, takes_missing=True)

    alpha: float | Array = 0.0
    class_prior: Array | None = None
    binarize: float | None = 0.0

    def encode(self, X: Any, frame: Frame) -> DenseCounts | SparseCounts:
        """Return the rows as zeros and ones."""
        if issparse(X) and self.binarize is not None:
            X = csr_array(((X.data > self.binarize).astype(X.dtype), X.indices, X.indptr), shape=X.shape)
        Z = super().encode(X, frame)
        if isinstance(Z, SparseCounts) or self.binarize is None:
            return Z
        return DenseCounts(astype(self.binarize < Z.X, float_dtype(Z.X)) * observed(Z), Z.observed, frame)

    def parameters(self, S: Statistics) -> BernoulliParameters:
        """p(x_j = 1 | y) = (s_jy + alpha) / (m_jy + 2 alpha); ones and zeros are floored."""
        xp, floor, alpha = namespace(S["s0"]), smoothed_floor(S, self.alpha), pseudo_counts(S, self.alpha)
        ones, few = at_least(S["counts"] + alpha, floor)
        zeros, many = at_least(mass_of(S) - S["counts"] + alpha, floor)
        log_all = xp.log(ones + zeros)
        log_prior = log_class_prior(S["s0"], 0.0, self.class_prior)
        return BernoulliParameters(
            log_prior, xp.log(ones) - log_all, xp.log(zeros) - log_all, S.frame, few + many
        )

    def is_attainable(self, S: Statistics, ever: Statistics) -> bool:
        """False if a column has a negative count, or more ones than cells."""
        rounding = COUNT_ROUNDING if isinstance(S["s0"], np.ndarray) else SINGLE_ROUNDING
        zeros = to_numpy(mass_of(S) - S["counts"])
        most = np.abs(to_numpy(mass_of(ever))).max(initial=0.0)
        return super().is_attainable(S, ever) and bool(zeros.min(initial=0.0) >= -rounding * most)

    def sample_rows(self, theta: BernoulliParameters, y: Array, rng: np.random.Generator) -> Array:
        """Draw each feature: 1 with probability p(x_j = 1 | y), else 0."""
        p = theta.means[y]
        return (rng.random(p.shape) < p).astype(np.int64)

    def cell_densities(self, Z: Any, theta: BernoulliParameters, j: int) -> tuple[Array, Array]:
        """Return the log probabilities of zero and one."""
        return np.stack([theta.log_not[:, j], theta.log_prob[:, j]])[None], np.ones((1, 2))

    def describe(self, theta: BernoulliParameters) -> Iterator[Described]:
        """Yield the log probabilities of one."""
        one = "of 1" if self.binarize is None else f"above {self.binarize:g}"
        yield from described(f"log probability {one}", theta.log_prob)

    def coordinates(self, S: Statistics) -> OddsCoordinates:
        """Return log p(y) and the log odds."""
        alpha, floor = pseudo_counts(S, self.alpha), smoothed_floor(S, self.alpha)
        return OddsCoordinates(S, self.anchor_statistics(S), alpha, floor, ClassPrior(0.0, self.class_prior))

    def inverse_parameters(self, theta: BernoulliParameters, total: float) -> Statistics:
        """Return the counts, of complete rows, whose smoothed frequencies are theta."""
        s0 = invert_class_prior(theta.log_prior, total)
        alpha = pseudo_counts(Statistics({"s0": s0}), self.alpha)
        counts = theta.means * (s0[:, None] + 2 * alpha) - alpha
        return self.of_sums(s0, counts, theta.frame)

    def from_natural(
        self, eta: dict[str, Array], theta: BernoulliParameters, simplex: Any, floor: float
    ) -> BernoulliParameters:
        """Return the parameters of bounded log odds."""
        xp = namespace(eta["eta"])
        odds = xp.clip(eta["eta"], min=-MOST_LOG_ODDS, max=MOST_LOG_ODDS)
        log_not = -xp.log1p(xp.exp(odds))
        return replace(theta, log_prior=simplex(eta["eta0"]), log_prob=odds + log_not, log_not=log_not)


class OddsCoordinates(TableCoordinates):
    """log p(y), and the log odds of binary features."""

    def __init__(self, S: Statistics, closed: Statistics, pseudo: Any, floor: Any, prior: ClassPrior):
        self.S, self.closed, self.pseudo, self.floor, self.prior = S, closed, pseudo, floor, prior
        ones, cells = closed["counts"], mass_of(closed)
        pooled = sum_of(ones, axis=0) / positive(sum_of(cells + 0.0 * ones, axis=0))
        p = (1.0 - SMOOTHED) * ones / positive(cells) + SMOOTHED * pooled[None, :]
        self.unit = {"s0": positive(closed["s0"]) ** 0.5, "counts": positive(cells * p * (1.0 - p)) ** 0.5}

    def logs(self, theta: Any) -> Array:
        """Return the log odds."""
        return theta.weights

    def pooled_logs(self) -> Array:
        """Return the log odds of all classes together."""
        xp, ones = namespace(self.S["s0"]), sum_of(self.closed["counts"], axis=0, keepdims=True)
        zeros = sum_of(mass_of(self.closed) + 0.0 * self.closed["counts"], axis=0, keepdims=True) - ones
        return xp.log(positive(ones)) - xp.log(positive(zeros))

    def centred_gradient(self, R: Statistics, fitted: Fitted) -> Array:
        """Return dS - p times the mass; zero for odds on their floor that are pushed further out."""
        xp, theta, mass = namespace(R["s0"]), fitted.theta, mass_of(fitted.S) + 2.0 * self.pseudo
        found = R["counts"] - theta.means * mass_of(R)
        few, many = (xp.exp(logs) * mass <= 1.001 * self.floor for logs in (theta.log_prob, theta.log_not))
        return xp.where((few & (found < 0)) | (many & (found > 0)), 0.0, found)

    def counts(self, logs: Array, mass: Array) -> Array:
        """Return the counts of ones whose smoothed log odds these are."""
        return (mass + 2.0 * self.pseudo) / (1.0 + namespace(logs).exp(-logs)) - self.pseudo


def observed(Z: DenseCounts) -> Any:
    """Return the mask of the observed cells, or one."""
    return 1.0 if Z.observed is None else astype(Z.observed, float_dtype(Z.X))
