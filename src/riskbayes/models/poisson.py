"""Naive Bayes of counts: a Poisson rate for each class and column, psi(x) = (1, x)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.special import gammaln
from scipy.stats import poisson

from riskbayes.arrays import Array, namespace, positive, sum_of
from riskbayes.frames import Frame
from riskbayes.models.base import Described, Fitted, log_class_prior
from riskbayes.models.categorical import COUNT_FLOOR, count_floor
from riskbayes.models.coordinates import SMOOTHED, ClassPrior, TableCoordinates, invert_class_prior
from riskbayes.models.counts import (
    CountDensity,
    CountParameters,
    DenseCounts,
    SparseCounts,
    at_least,
    described,
    mass_of,
)
from riskbayes.models.traits import Traits
from riskbayes.statistics import Statistics

NEGLIGIBLE = 1e-12
"""Counts beyond this quantile of every class are left out of sums over the counts of a cell."""

MOST_LOG_RATE = 230.0
"""Bound on the logarithm of a rate that GD reaches."""


@dataclass(frozen=True)
class PoissonParameters(CountParameters):
    """log p(y), and the logarithm of the rate of each class and column."""

    log_prior: Array
    log_rate: Array
    frame: Frame
    floored: Array

    @property
    def weights(self) -> Array:
        """The logarithms of the rates."""
        return self.log_rate

    @cached_property
    def rates(self) -> Array:
        """The rates."""
        return namespace(self.log_rate).exp(self.log_rate)

    @property
    def means(self) -> Array:
        """The rates."""
        return self.rates

    @property
    def cell_constants(self) -> Array:
        """Minus the rate."""
        return -self.rates


@dataclass(frozen=True)
class PoissonModel(CountDensity):
    """Poisson counts, independent given the class; missing cells are left out.

    Parameters
    ----------
    alpha : float
        Strength of the Gamma prior, in rows: it has its mode at the mean of the column over all classes.
        0 is maximum likelihood.
    class_prior : array of shape (n_classes,), optional
        A fixed p(y).
    """

    traits: ClassVar[Traits] = Traits("counts", takes_missing=True, encode_copies=False)  # log x! is SciPy's
    scores, scanner = CountDensity.scores, CountDensity.scanner  # log x! is the same for all classes

    alpha: float = 0.0
    class_prior: Array | None = None

    def parameters(self, S: Statistics) -> PoissonParameters:
        """rate_jy = (s_jy + alpha mean_j) / (m_jy + alpha), numerator and denominator floored.

        The mean of the column is a function of the statistics, and RC leaves it where it is, since the rows
        of a residual sum to zero. Where a class has no observed cell the rate is the mean.
        """
        floor, mass, counts = count_floor(S), mass_of(S), S["counts"]
        mean = sum_of(counts, axis=0) / np.maximum(sum_of(mass, axis=0), floor)
        mean = np.maximum(mean, 0.0)
        prior = self.alpha * mean
        events, floored = at_least(counts + prior, np.where(prior > 0, prior, floor))
        rows = mass + self.alpha
        rate = np.where(rows > floor, events / np.maximum(rows, floor), np.maximum(mean, COUNT_FLOOR))
        log_prior = log_class_prior(S["s0"], 0.0, self.class_prior)
        return PoissonParameters(log_prior, np.log(rate), S.frame, floored)

    def log_joint(self, Z: DenseCounts | SparseCounts, theta: PoissonParameters) -> Array:
        """log p(y) + sum_j x_j log rate_jy - rate_jy - log x_j!."""
        return self.scores(Z, theta) - Z.row_sums(lambda x: gammaln(x + 1.0))[:, None]

    def sample_rows(self, theta: PoissonParameters, y: Array, rng: np.random.Generator) -> Array:
        """Draw each count."""
        return rng.poisson(theta.rates[y])

    def fill(
        self,
        Z: DenseCounts | SparseCounts,
        theta: PoissonParameters,
        y: Array,
        rng: np.random.Generator | None = None,
    ) -> Array:
        """Fill with the rate of the class, or draw a count."""
        X = Z.to_dense()
        if Z.observed is None:
            return X
        return np.where(Z.observed > 0, X, theta.rates[y] if rng is None else self.sample_rows(theta, y, rng))

    def cell_densities(self, Z: Any, theta: PoissonParameters, j: int) -> tuple[Array, Array]:
        """Return the log probabilities of the counts up to the last one that is not negligible."""
        rates = theta.rates[:, j]
        x = np.arange(2.0 + poisson.isf(NEGLIGIBLE, rates.max()))[:, None]
        return (x * theta.log_rate[:, j] - rates - gammaln(x + 1.0))[None], np.ones((1, len(x)))

    def describe(self, theta: PoissonParameters) -> Iterator[Described]:
        """Yield the logarithms of the rates."""
        yield from described("log rate", theta.log_rate)

    def coordinates(self, S: Statistics) -> RateCoordinates:
        """Return log p(y) and the logarithms of the rates."""
        return RateCoordinates(
            S, self.anchor_statistics(S), self.alpha, count_floor(S), ClassPrior(0.0, self.class_prior)
        )

    def inverse_parameters(self, theta: PoissonParameters, total: float) -> Statistics:
        """Return the sums, of complete rows, whose smoothed rates are theta."""
        s0 = invert_class_prior(theta.log_prior, total)
        events = theta.rates * (s0 + self.alpha)[:, None]
        mean = sum_of(events, axis=0) / (total + len(s0) * self.alpha)
        return self.of_sums(s0, events - self.alpha * mean, theta.frame)

    def from_natural(
        self, eta: dict[str, Array], theta: PoissonParameters, simplex: Any, floor: float
    ) -> PoissonParameters:
        """Return the parameters of bounded rates."""
        log_rate = np.clip(eta["eta"], -MOST_LOG_RATE, MOST_LOG_RATE)
        return replace(theta, log_prior=simplex(eta["eta0"]), log_rate=log_rate)


class RateCoordinates(TableCoordinates):
    """log p(y), and the logarithms of the rates of columns of counts."""

    def __init__(self, S: Statistics, closed: Statistics, pseudo: float, floor: float, prior: ClassPrior):
        self.S, self.closed, self.pseudo, self.floor, self.prior = S, closed, pseudo, floor, prior
        pooled = sum_of(closed["counts"], axis=0) / sum_of(closed["s0"])
        counts = (1.0 - SMOOTHED) * closed["counts"] + SMOOTHED * closed["s0"][:, None] * pooled[None, :]
        self.unit = {"s0": positive(closed["s0"]) ** 0.5, "counts": positive(counts) ** 0.5}

    def logs(self, theta: PoissonParameters) -> Array:
        """Return the logarithms of the rates."""
        return theta.log_rate

    def pooled_logs(self) -> Array:
        """Return the logarithms of the rates of all classes together."""
        rows = sum_of(mass_of(self.closed) + 0.0 * self.closed["counts"], axis=0, keepdims=True)
        return super().pooled_logs() - np.log(positive(rows))

    def centred_gradient(self, R: Statistics, fitted: Fitted) -> Array:
        """Return dS - rate times the mass; zero for a rate on its floor that is pushed further down."""
        rates, S = fitted.theta.rates, fitted.S
        found, events = R["counts"] - rates * mass_of(R), rates * (mass_of(S) + self.pseudo)
        prior = self.pseudo * sum_of(S["counts"], axis=0) / positive(sum_of(mass_of(S), axis=0))
        least = np.where(prior > 0, prior, self.floor)
        return np.where((events <= 1.001 * least) & (found < 0), 0.0, found)

    def counts(self, logs: Array, mass: Array) -> Array:
        """Return the sums whose smoothed rates have these logarithms."""
        rows = mass + self.pseudo + 0.0 * logs
        events = np.exp(logs) * rows
        return events - self.pseudo * sum_of(events, axis=0) / positive(sum_of(rows, axis=0))
