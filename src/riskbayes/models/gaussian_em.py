"""EM for Gaussians with missing cells: the parameters that expected statistics of the data are taken under.

First one covariance for all classes is found, started from the observed cells of each column alone; then the
covariances of the model itself. Both have a fixed prior, so that the likelihood of the observed cells times
the prior never falls. The share of the diagonal in the model's prior is left out: it regularises the scores
of rows, and the regressions of missing cells on observed ones are worse with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from riskbayes.arrays import Array, one_hot
from riskbayes.em import em
from riskbayes.models.base import Sample
from riskbayes.models.centred import Centred, Origin
from riskbayes.models.correlated import CorrelatedModel
from riskbayes.models.missing import Holes
from riskbayes.statistics import Statistics
from riskbayes.threads import available_threads, in_threads

MAX_ITER = 100
"""The most iterations of each EM."""

TOLERANCE = 1e-3
"""EM stops when the mean log-likelihood of a row rises by less than this."""

TIED_STRENGTH = 0.1
"""Rows per column that the prior on the common covariance weighs; its centre are the columns' variances."""

CHUNK = 2048
"""Rows of a part of an E-step."""


@np.errstate(over="ignore", invalid="ignore")  # `fix_prior` raises an error for what overflows
def em_start(
    model: CorrelatedModel, tied: Callable[..., CorrelatedModel], sample: Sample, frame: Origin
) -> Origin:
    """Return the frame with the parameters that EM finds, and with the log-likelihoods of its iterations.

    `tied` makes a model with one covariance for all classes.
    """
    V = one_hot(sample.y, sample.n_classes, sample.w, np.float64)
    holes = Holes.of(sample.X)
    assert holes is not None
    Z, parts = Centred(sample.X, frame, holes=holes), parts_of(holes, sample.y)
    means, variances = available_cases(Z, V)
    model = replace(model, diagonal_mix=0.0)
    seen = np.count_nonzero(Z.observed.any(axis=0))  # one that is missing everywhere changes nothing
    pooled = tied(covariance_strength=TIED_STRENGTH * seen, prior_covariance=np.diag(variances))
    own = Z.about(pooled.frame_kind(frame.origin, frame.eps))
    S = pooled.from_moments(V.sum(axis=0), means, np.diag(variances), own.frame)
    common, _ = run_em(pooled, own, V, S, parts)
    S = model.from_moments(V.sum(axis=0), common.means, common.covariance, frame)
    theta, path = run_em(model, Z, V, e_step(model, Z, V, model.parameters(S), parts)[0], parts)
    return replace(frame, start=theta, em_log_likelihood=tuple(path))


def available_cases(Z: Centred, V: Array) -> tuple[Array, Array]:
    """Return the means of the observed cells by class and column, and their variances within classes.

    A column without cells in a class has the mean of all classes there, one without any cell the variance 1.
    """
    D, seen = Z.exact, Z.observed
    mass = V.T @ seen
    means = np.divide(V.T @ D, mass, out=np.zeros(mass.shape), where=mass > 0)
    total = mass.sum(axis=0)
    squares = sum((V[:, k] @ ((D - mean) * seen) ** 2 for k, mean in enumerate(means)), np.zeros(D.shape[1]))
    return means, np.divide(squares, total, out=np.ones(D.shape[1]), where=total > 0)


class Part(NamedTuple):
    """Rows of one class."""

    rows: Array
    holes: Holes
    """Their missing cells, with the groups of their patterns."""


def parts_of(holes: Holes, y: Array) -> list[Part]:
    """Return the parts of an E-step: rows of one class have one set of factors for each pattern."""
    classes = (np.flatnonzero(y == k) for k in range(int(y.max()) + 1))
    rows = [own[start : start + CHUNK] for own in classes for start in range(0, len(own), CHUNK)]
    return [Part(own, holes[own]) for own in rows]


def run_em(
    model: CorrelatedModel, Z: Centred, V: Array, S: Statistics, parts: list[Part]
) -> tuple[Any, list[float]]:
    """Return the parameters that EM finds from the statistics S, and the log-likelihood by iteration.

    The prior is that of S, and stays. Iterations end when it rises by less than a tolerance. It may fall only
    for a closed form that is no maximum of the likelihood (a shrinkage): the best parameters are returned.
    """
    S, total, frame = model.fix_prior(S), float(V.sum()), Z.frame
    settled = S.frame

    def expect(theta: Any) -> tuple[Statistics, float]:
        found, value = e_step(model, Z, V, theta, parts)
        return found.with_frame(settled), (value + log_prior(model, theta, settled.settled)) / total

    best, path = em(S, model.parameters, expect, MAX_ITER, TOLERANCE)
    assert best is not None
    return replace(best, frame=frame), path


def e_step(
    model: CorrelatedModel, Z: Centred, V: Array, theta: Any, parts: list[Part]
) -> tuple[Statistics, float]:
    """Return the expected statistics of the rows under theta, and their log-likelihood, in threads."""
    theta.conditional  # noqa: B018 (made here, once for all threads)

    def expect(part: Part) -> tuple[Statistics, float]:
        own = Centred(Z.X[part.rows], Z.frame, Z.dtype, None, part.holes)
        return model.expected(own, V[part.rows], theta)

    found = list(in_threads(expect, parts, min(len(parts), available_threads())))
    return Statistics.merge(*(S for S, _ in found)), sum(value for _, value in found)


def log_prior(model: CorrelatedModel, theta: Any, settled: Any) -> float:
    """Return the log density of the prior, up to a constant, whose mode the closed form is."""
    m1, m2, given = model.mean_strength, model.covariance_strength, theta.conditional
    value = 0.0
    if m2:
        W = given.whiteners
        traces = ((settled.covariance @ W) * W).sum(axis=(1, 2))
        value -= m2 * float((theta.half_log_det + 0.5 * traces).sum())
    if m1:
        W = given.whiteners
        moved = ((theta.means - settled.mean)[:, None, :] @ W)[:, 0, :]
        value -= 0.5 * m1 * float((moved * moved).sum())
    if model.class_alpha and model.class_prior is None:
        value += model.class_alpha * float(theta.log_prior.sum())
    return value
