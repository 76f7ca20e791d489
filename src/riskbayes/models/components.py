"""Components of classes: how they share a row, and where a mixture starts, by k-means and then EM."""

from __future__ import annotations

from typing import Any

import numpy as np

from riskbayes.arrays import Array
from riskbayes.em import em
from riskbayes.frames import Frame
from riskbayes.models.base import GenerativeModel, Sample
from riskbayes.models.centred import Centred
from riskbayes.models.quantiles import quantiles, value_masses
from riskbayes.scanners.dense import label_statistics
from riskbayes.statistics import Statistics

LEAST_WEIGHT = 2.0
"""Lower bound on the weight of the rows of a component."""

EM_TOLERANCE = 1e-4
"""EM stops when the mean log-likelihood rises by less than this."""

FIRST_ROUNDS = 5
"""With missing cells, how often their expected statistics are taken before the prior and floors are fixed."""


def by_class(reduce: Any, values: Array, sizes: Array) -> Array:
    """Apply a ufunc's reduce over the components of each class, along the last axis."""
    return reduce.reduceat(values, np.cumsum(sizes) - sizes, axis=-1)


def shares_and_scores(scores: Array, sizes: Array) -> tuple[Array, Array]:
    """Return P(c | x, y) of every component within its class, and the log joints of the classes."""
    top = by_class(np.maximum, scores, sizes)
    e = np.exp(scores - np.repeat(top, sizes, axis=1))
    sums = by_class(np.add, e, sizes)
    e /= np.repeat(sums, sizes, axis=1)
    return e, top + np.log(sums)


def in_full(Z: Any) -> Any:
    """Return the rows in the widest dtype: in a narrower one rounding would decide when EM stops."""
    return Z.in_full() if isinstance(Z, Centred) else Z


def start_components(
    base: GenerativeModel, sample: Sample, frame: Frame, n_components: int, max_iter: int
) -> tuple[list[int], Any, list[float]]:
    """Find components by k-means, then EM; return their numbers, parameters, and the log-likelihoods.

    With a prior a step may lower the likelihood of the rows: the one before it is returned.
    """
    X, y, w = sample.X, sample.y, sample.w
    if w is not None and not w.all():
        X, y, w = X[w > 0], y[w > 0], w[w > 0]
    weight = np.ones(len(y)) if w is None else w
    Z = in_full(base.encode(X, frame))
    missing = bool(np.isnan(X).any())
    if missing:  # for k-means, and for the first parameters of the components
        S = label_statistics(base, Z, y, w, sample.n_classes)
        X = base.fill(Z, base.parameters(base.fix_prior(S)), y)
    component, sizes = k_means(X, y, weight, n_components)
    V = np.zeros((len(y), sum(sizes)))
    V[np.arange(len(y)), component] = weight
    number = np.array(sizes)
    own = np.repeat(np.arange(len(sizes)), sizes)[None, :] == y[:, None]
    with np.errstate(over="ignore", invalid="ignore"):  # `fix_prior` raises an error for what overflows
        S = base.statistics(in_full(base.encode(X, frame)) if missing else Z, V)
        for _ in range(FIRST_ROUNDS if missing else 0):
            S = base.posterior_statistics(Z, V, base.parameters(base.fix_prior(S)))
        settled = base.fix_prior(S).frame

    def expect(theta: Any) -> tuple[Statistics, float]:
        shares, scores = shares_and_scores(base.log_joint(Z, theta), number)
        value = float(weight @ scores[np.arange(len(y)), y] / weight.sum())
        return base.posterior_statistics(Z, np.where(own, shares, 0.0) * weight[:, None], theta), value

    best, path = em(S, lambda S: base.parameters(S.to_frame(settled)), expect, max_iter, EM_TOLERANCE)
    return sizes, best, path


def k_means(X: Array, y: Array, w: Array, n_components: int) -> tuple[Array, list[int]]:
    """Return the component of each row, and the number of components of each class, without random choices.

    The columns are standardised, after a division by powers of two so that no square overflows.
    """
    X, share = X.astype(np.float64), w / w.sum()
    U = np.ldexp(X, -np.frexp(np.abs(X).max(axis=0))[1])
    U = U - share @ U
    spread = np.sqrt(share @ U**2)
    U /= np.where(spread > len(y) * np.finfo(float).eps, spread, 1.0)  # a constant column has only rounding
    component = np.empty(len(y), dtype=np.int64)
    sizes: list[int] = []
    for k in range(int(y.max()) + 1):
        rows = np.flatnonzero(y == k)
        found = clusters(U[rows], w[rows], n_components)
        component[rows] = found + sum(sizes)
        sizes.append(int(found.max()) + 1)
    return component, sizes


def clusters(U: Array, w: Array, n_components: int) -> Array:
    """Return the cluster of each row, by k-means that starts along the first principal axis.

    A cluster lighter than `LEAST_WEIGHT` is dissolved: its rows go to the nearest other one.
    """
    v = w / w.sum()
    mean = v @ U
    axis = np.linalg.eigh((U - mean).T @ ((U - mean) * v[:, None]))[1][:, -1]
    axis = axis * np.sign(axis[np.argmax(np.abs(axis))])
    places, mass = value_masses(np.round((U - mean) @ axis, 9), v)
    number = min(n_components, max(1, int(w.sum() // LEAST_WEIGHT)), len(places))
    levels = (np.arange(number) + 0.5) / number
    chosen = np.unique(quantiles(places, mass, levels))
    centres = mean + chosen[:, None] * axis
    if len(centres) > 1:
        from sklearn.cluster import KMeans  # slow to import

        # Run until nothing changes, so that weights give the same clusters as repeated rows.
        fitted = KMeans(len(centres), init=centres, n_init=1, tol=0.0, max_iter=100).fit(U, sample_weight=v)
        centres = fitted.cluster_centers_
    while True:
        near = np.argmin(((U[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2), axis=1)
        mass = np.bincount(near, weights=w, minlength=len(centres))
        if len(centres) == 1 or mass.min() >= LEAST_WEIGHT:
            return near
        centres = np.delete(centres, np.argmin(mass), axis=0)
