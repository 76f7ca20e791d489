"""Naive Bayes of word counts: multinomial, and its complement form; psi(x) = (1, x)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from riskbayes.arrays import Array, max_of, namespace, sum_of
from riskbayes.frames import Frame
from riskbayes.models.base import Described, Fitted, log_class_prior, with_log_prior
from riskbayes.models.categorical import count_floor
from riskbayes.models.coordinates import ClassPrior, Coordinates, Point, TableCoordinates, invert_class_prior
from riskbayes.models.counts import (
    CountDensity,
    CountModel,
    CountParameters,
    at_least,
    described,
    pseudo_counts,
    smoothed_floor,
)
from riskbayes.models.traits import Traits
from riskbayes.statistics import Statistics


@dataclass(frozen=True)
class MultinomialParameters(CountParameters):
    """log p(y), log p(word | y), and the mean length of the rows of each class."""

    log_prior: Array
    log_prob: Array
    lengths: Array
    frame: Frame
    floored: Array

    @property
    def weights(self) -> Array:
        """The log probabilities."""
        return self.log_prob

    @property
    def means(self) -> Array:
        """The mean length times p(word | y)."""
        return self.lengths[:, None] * namespace(self.log_prob).exp(self.log_prob)


@dataclass(frozen=True)
class MultinomialModel(CountDensity):
    """Rows of word counts: sum(x) independent draws from p(word | y).

    The length of a row is given, not modelled, and the log joint is that of the words in one order: it
    lacks the multinomial coefficient, which is the same for all classes.

    Parameters
    ----------
    alpha : float or array of shape (n_features,)
        Dirichlet pseudo-counts of each word; 0 is maximum likelihood.
    class_prior : array of shape (n_classes,), optional
        A fixed p(y).
    """

    traits: ClassVar[Traits] = replace(CountModel.traits, normalised=False)

    alpha: float | Array = 0.0
    class_prior: Array | None = None

    def parameters(self, S: Statistics) -> MultinomialParameters:
        """p(j | y) = (s_jy + alpha) / sum_j (s_jy + alpha), each numerator floored."""
        xp, floor = namespace(S["s0"]), smoothed_floor(S, self.alpha)
        counts, floored = at_least(S["counts"] + pseudo_counts(S, self.alpha), floor)
        log_prob = xp.log(counts)
        log_prob -= xp.log(sum_of(counts, axis=1))[:, None]
        log_prior = log_class_prior(S["s0"], 0.0, self.class_prior)
        return MultinomialParameters(log_prior, log_prob, mean_lengths(S), S.frame, floored)

    def sample_rows(self, theta: MultinomialParameters, y: Array, rng: np.random.Generator) -> Array:
        """Draw as many words as the rows of the class have on average, rounded up or down at random."""
        X = np.empty((len(y), theta.log_prob.shape[1]), dtype=np.int64)
        for k in range(len(theta.log_prior)):
            rows = np.flatnonzero(y == k)
            p = np.exp(theta.log_prob[k])
            lengths = np.floor(theta.lengths[k] + rng.random(len(rows))).astype(np.int64)
            X[rows] = rng.multinomial(lengths, p / p.sum())
        return X

    def describe(self, theta: MultinomialParameters) -> Iterator[Described]:
        """Yield the log probabilities of the words."""
        yield from described("log probability", theta.log_prob)

    def expected_statistics(self, theta: MultinomialParameters, total: float) -> Statistics:
        """Return total p(y), and that times the mean length and p(j | y)."""
        xp = namespace(theta.log_prior)
        s0 = total * xp.exp(theta.log_prior)
        return self.of_sums(s0, (s0 * theta.lengths)[:, None] * xp.exp(theta.log_prob), theta.frame)

    def coordinates(self, S: Statistics) -> TableCoordinates:
        """Return log p(y) and the log probabilities of the words."""
        alpha, floor = pseudo_counts(S, self.alpha), smoothed_floor(S, self.alpha)
        groups = partial(sum_of, axis=1, keepdims=True), as_it_is
        prior = ClassPrior(0.0, self.class_prior)
        return TableCoordinates(S, self.anchor_statistics(S), alpha, floor, prior, groups)

    def inverse_parameters(self, theta: MultinomialParameters, total: float) -> Statistics:
        """Return the counts whose smoothed frequencies are theta."""
        s0 = invert_class_prior(theta.log_prior, total)
        alpha = pseudo_counts(Statistics({"s0": s0, "counts": theta.log_prob}), self.alpha)
        tokens = s0 * theta.lengths + sum_of(alpha + 0.0 * theta.log_prob, axis=1)
        counts = namespace(s0).exp(theta.log_prob) * tokens[:, None] - alpha
        return Statistics({"s0": s0, "counts": counts}, theta.frame)

    def natural_gradient(self, dS: Statistics, theta: MultinomialParameters) -> dict[str, Array]:
        """Return the statistics, which are the gradient; zero for a fixed p(y)."""
        return {"eta0": (self.class_prior is None) * dS["s0"], "eta": dS["counts"]}

    def from_natural(
        self, eta: dict[str, Array], theta: MultinomialParameters, simplex: Any, floor: float
    ) -> MultinomialParameters:
        """Return the parameters after projecting both distributions on the simplex."""
        return replace(theta, log_prior=simplex(eta["eta0"]), log_prob=simplex(eta["eta"]))


@dataclass(frozen=True)
class ComplementParameters(CountParameters):
    """log p(y), which enters the scores of a single class only, and the weight of each word by class."""

    log_prior: Array
    word_weights: Array
    frame: Frame
    floored: Array

    @property
    def weights(self) -> Array:
        """The weights of the words."""
        return self.word_weights

    @property
    def class_constants(self) -> Array:
        """Zero, unless there is one class only."""
        one_class = self.log_prior.shape[0] == 1
        return self.log_prior if one_class else namespace(self.log_prior).zeros_like(self.log_prior)


@with_log_prior.register
def _(theta: ComplementParameters, log_prior: Array) -> Any:
    """Raise an error: the scores do not contain p(y)."""
    raise NotImplementedError(
        "ComplementNB does not use class frequencies, as in scikit-learn, so that there are none to replace. "
        "Take MultinomialNB."
    )


@dataclass(frozen=True)
class ComplementModel(CountModel):
    """Complement naive Bayes (Rennie et al. 2003): a class is scored by the words of all other classes.

    Statistics are those of the multinomial; the parameters of class k come from c = sum_l s_l - s_k, the
    counts of the others, and the score is minus the log-likelihood under them. A residual step adds to s_k
    what the label lacks, so takes it from c: as in the multinomial, it is an ascent of the conditional
    likelihood. The scores are no log probabilities, and p(y) does not enter them.

    Parameters
    ----------
    alpha : float or array of shape (n_features,)
        Pseudo-counts of each word.
    class_prior : array of shape (n_classes,), optional
        A fixed p(y), used if there is one class only.
    norm : bool
        If True, the weights of a class are divided by their sum.
    """

    traits: ClassVar[Traits] = replace(CountModel.traits, normalised=False)

    alpha: float | Array = 0.0
    class_prior: Array | None = None
    norm: bool = False

    def baseline(self, theta: ComplementParameters) -> Array:
        """Return zeros: the scores do not contain p(y), unless there is one class only."""
        return theta.class_constants

    def describe(self, theta: ComplementParameters) -> Iterator[Described]:
        """Yield the weights of the words."""
        yield from described("weight", theta.word_weights)

    def parameters(self, S: Statistics) -> ComplementParameters:
        """w_jy = -log c_jy / sum_j c_jy with c_jy = sum_l s_jl + alpha - s_jy, floored."""
        xp, counts, floor = namespace(S["s0"]), S["counts"], smoothed_floor(S, self.alpha)
        others = sum_of(counts, axis=0)[None, :] + pseudo_counts(S, self.alpha) - counts
        others, floored = at_least(others, floor)
        logs = xp.log(others) - xp.log(sum_of(others, axis=1))[:, None]
        weights = -logs
        if self.norm:
            total = sum_of(logs, axis=1)[:, None]
            weights = logs / xp.where(total < 0, total, 1.0)
        mass, _ = at_least(S["s0"][:, None], count_floor(S))
        log_prior = log_class_prior(mass[:, 0], 0.0, self.class_prior)
        return ComplementParameters(log_prior, weights, S.frame, floored)

    def coordinates(self, S: Statistics) -> Coordinates:
        """Return the log frequencies of the other classes' words; of normalised weights the statistics."""
        if self.norm or S["s0"].shape[0] == 1:
            return Coordinates(S)
        return ComplementCoordinates(S, pseudo_counts(S, self.alpha), smoothed_floor(S, self.alpha))

    def is_legal(self, S: Statistics) -> bool:
        """True if all statistics are finite: the masses of the classes do not enter the scores."""
        return S.is_finite() and S.total > 0


class ComplementCoordinates(TableCoordinates):
    """The logarithms of the frequencies of words in all other classes; p(y) is not in the scores.

    With c_k = T + alpha - s_k, where T = sum_l s_l, the sum of all c_k is (r - 1) T + r alpha: it tells T,
    and c_k tells s_k. A class gains what the others lose, so the gradient is minus that of a multinomial.
    """

    def __init__(self, S: Statistics, alpha: Any, floor: Any):
        others = sum_of(S["counts"], axis=0)[None, :] - S["counts"]
        of_others = Statistics({"s0": S["s0"], "counts": others}, S.frame)
        groups = partial(sum_of, axis=1, keepdims=True), as_it_is
        fixed = ClassPrior(0.0, S["s0"])
        super().__init__(of_others, (1.0 / S.total) * of_others, alpha, floor, fixed, groups)

    def logs(self, theta: ComplementParameters) -> Array:
        """Return the logarithms of the frequencies."""
        return -theta.word_weights

    def shares(self, theta: ComplementParameters) -> Array:
        """Return the frequencies."""
        return namespace(theta.word_weights).exp(-theta.word_weights)

    def gradient(self, dS: Statistics, weight: float, fitted: Fitted) -> Point:
        """Return the centred statistics of the others."""
        return super().gradient(-1.0 * dS, weight, fitted)

    def counts(self, logs: Array, mass: Array) -> Array:
        """Return the counts of each class, from those of all others."""
        others = super().counts(logs, mass)
        return sum_of(others, axis=0)[None, :] / (others.shape[0] - 1) - others


def as_it_is(sums: Array) -> Array:
    """Return sums over all words, one for each class, as they are."""
    return sums


def mean_lengths(S: Statistics) -> Array:
    """Return the mean sum of the rows of each class; zero for a class without mass."""
    s0, xp = S["s0"], namespace(S["s0"])
    tokens = xp.clip(sum_of(S["counts"], axis=1), min=0.0)
    return tokens / xp.where(s0 > 0, s0, max(1.0, float(max_of(s0))))
