"""Mixture discriminant analysis: the base model's statistics, for sub-classes of each class."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from riskbayes.arrays import Array, widest_float
from riskbayes.frames import SideBySide
from riskbayes.models.base import GenerativeModel, Residual
from riskbayes.models.hats import quantiles
from riskbayes.models.lda import LDAModel
from riskbayes.models.moments import Centred
from riskbayes.risks import Risks, posterior_and_risks
from riskbayes.statistics import Statistics


@dataclass(frozen=True)
class MixtureParameters:
    """p(y), what the base model estimated of the components, and how many each class has."""

    log_prior: Array
    components: Any
    sizes: Array
    floored: Array


@dataclass(frozen=True)
class MixtureModel(GenerativeModel):
    """Each class a mixture of components of a base model.

    Statistics are counted by component: a row of class y goes to its components by P(c | x, y). Those of
    the data are shared by `start`, once and for all; the residual of a scan by the present parameters,
    E[c] = E[y] P(c | x, y), which for the log loss is P(c | x, y) - P(c | x).

    Parameters
    ----------
    base : GenerativeModel
        The model of a component.
    sizes : tuple of int, optional
        Components of each class, class after class; None is one each.
    start : parameters of `base`, optional
        What rows of the data are shared by.
    n_components : int, optional
        Components of a class at most, which `learn` finds by k-means and EM. None leaves `sizes` and
        `start` as given.
    em_iter : int
        The most iterations of EM.
    em_log_likelihood : tuple of float
        Mean joint log-likelihood of the rows, EM iteration by iteration. Set by `learn`.
    """

    base: GenerativeModel = field(default_factory=LDAModel)
    sizes: tuple[int, ...] | None = None
    start: Any = None
    n_components: int | None = None
    em_iter: int = 50
    em_log_likelihood: tuple[float, ...] = ()

    @property
    def additive(self) -> bool:
        """True where the components are given."""
        return self.n_components is None and self.base.additive

    def learn(self, X: Array, y: Array, w: Array | None, n_classes: int) -> Self:
        """What the base model learns, and the components of each class by k-means and EM."""
        base = self.base.learn(X, y, w, n_classes)
        if self.n_components is None:
            return replace(self, base=base)
        sizes, start, path = start_components(base, X, y, w, self.n_components, self.em_iter)
        return replace(self, base=base, sizes=sizes, start=start, em_log_likelihood=tuple(path))

    def could_be_counted(self, S: Statistics, ever: Statistics) -> bool:
        """For the components."""
        return self.base.could_be_counted(of_components(S), of_components(ever))

    @property
    def floor_warning(self) -> str | None:  # type: ignore[override]
        """That of the base model."""
        return self.base.floor_warning

    def prepare(self, X: Array, sample_weight: Array | None = None) -> Any:
        """As the base model reads them."""
        return self.base.prepare(X, sample_weight)

    def rows(self, X: Array, theta: MixtureParameters) -> Any:
        """As the base model reads them."""
        return self.base.rows(X, theta.components)

    def for_scan(self, theta: MixtureParameters, Z: Any) -> MixtureParameters:
        """As the base model reads them."""
        return replace(theta, components=self.base.for_scan(theta.components, Z))

    def bind(self, S: Statistics) -> Self:
        """The base model, to the statistics of the components."""
        return replace(self, base=self.base.bind(of_components(S)))

    def writes(self, name: str) -> bool:
        """What it has itself, of components that must have it too."""
        return super().writes(name) and self.base.writes(name)

    def _sizes(self, n_classes: int) -> Array:
        return np.ones(n_classes, dtype=np.int64) if self.sizes is None else np.array(self.sizes)

    def _counted(self, Z: Any, W: Array, shares: Array, sizes: Array) -> Statistics:
        """Statistics of rows whose weights go to components by their shares."""
        S = self.base.statistics(Z, shares * np.repeat(W, sizes, axis=1))
        arrays = {f"0:{name}": value for name, value in S.items()}
        return Statistics({"s0": by_class(np.add, S["s0"], sizes), **arrays}, SideBySide((S.frame,)))

    def statistics(self, Z: Any, W: Array) -> Statistics:
        """Those of the components, by the shares that the start gives them."""
        sizes = self._sizes(W.shape[1])
        if self.start is None:
            return self._counted(Z, W, np.ones(1), sizes)
        shares, _ = shares_and_scores(self.base.scores(in_full(Z), self.start), sizes)
        return self._counted(Z, W, shares, sizes)

    def parameters(self, S: Statistics) -> MixtureParameters:
        """Those of the components; p(y) is the sum of its components."""
        theta, sizes = self.base.parameters(of_components(S)), self._sizes(len(S["s0"]))
        log_prior = np.log(by_class(np.add, np.exp(theta.log_prior), sizes))
        return MixtureParameters(log_prior, theta, sizes, by_class(np.maximum, theta.floored, sizes))

    def is_legal(self, S: Statistics) -> bool:
        """Every component keeps a mass."""
        return self.base.is_legal(of_components(S))

    def log_joint(self, Z: Any, theta: MixtureParameters) -> Array:
        """log sum_c p(x, c) over the components of each class."""
        return shares_and_scores(self.base.log_joint(Z, theta.components), theta.sizes)[1]

    def scores(self, Z: Any, theta: MixtureParameters) -> Array:
        """The same, of the base model's scores."""
        return shares_and_scores(self.base.scores(Z, theta.components), theta.sizes)[1]

    def residual_statistics(self, Z: Any, E: Array, theta: MixtureParameters) -> Statistics:
        """The residual of a class goes to its components by P(c | x, y)."""
        shares, _ = shares_and_scores(self.base.scores(Z, theta.components), theta.sizes)
        return self._counted(Z, E, shares, theta.sizes)

    def scan_chunk(
        self, Z: Any, y: Array, w: Array | None, theta: MixtureParameters, residual: Residual | None
    ) -> tuple[Statistics | None, Risks]:
        """The same, with shares and scores of one product."""
        shares, scores = shares_and_scores(self.base.scores(Z, theta.components), theta.sizes)
        P, risks = posterior_and_risks(scores, y, w, residual)
        if residual is None:
            return None, risks
        E = residual(P, y)
        E = E if w is None else E * w[:, None]
        return self._counted(Z, E, shares, theta.sizes), risks

    def sample(self, theta: MixtureParameters, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """From the components, by the class that owns them."""
        X, component = self.base.sample(theta.components, n, rng)
        return X, np.repeat(np.arange(len(theta.sizes)), theta.sizes)[component]

    def expected_statistics(self, theta: MixtureParameters, total: float) -> Statistics:
        """Those of the components."""
        S = self.base.expected_statistics(theta.components, total)
        arrays = {f"0:{name}": value for name, value in S.items()}
        return Statistics({"s0": by_class(np.add, S["s0"], theta.sizes), **arrays}, SideBySide((S.frame,)))

    def log_likelihood(self, S: Statistics, theta: MixtureParameters) -> float:
        """That of rows whose components are known, as S counts them."""
        return self.base.log_likelihood(of_components(S), theta.components)

    def degrees_of_freedom(self, S: Statistics) -> float:
        """Those of the components."""
        return self.base.degrees_of_freedom(of_components(S))


def of_components(S: Statistics) -> Statistics:
    """The statistics of the base model."""
    return Statistics(S.frame.part(S, 0), S.frame.frames[0])


def by_class(reduce: Any, values: Array, sizes: Array) -> Array:
    """A ufunc over the components of each class, along the last axis."""
    return reduce.reduceat(values, np.cumsum(sizes) - sizes, axis=-1)


def shares_and_scores(scores: Array, sizes: Array) -> tuple[Array, Array]:
    """P(c | x, y) of every component within its class, and the classes' log joints."""
    top = by_class(np.maximum, scores, sizes)
    e = np.exp(scores - np.repeat(top, sizes, axis=1))
    sums = by_class(np.add, e, sizes)
    e /= np.repeat(sums, sizes, axis=1)
    return e, top + np.log(sums)


def in_full(Z: Any) -> Any:
    """The same rows in the widest precision: EM would follow the rounding of narrower log densities."""
    return Centred(Z.X, Z.frame, Z.width, widest_float(Z.X)) if isinstance(Z, Centred) else Z


def start_components(
    base: GenerativeModel,
    X: Array,
    y: Array,
    w: Array | None,
    n_components: int,
    max_iter: int,
    least: float = 2.0,
    tol: float = 1e-4,
) -> tuple[tuple[int, ...], Any, list[float]]:
    """Components of each class by k-means, then EM: their numbers, their parameters, the log-likelihoods.

    Clusters of a weight below `least` are merged with their neighbours. EM ends when the mean
    log-likelihood rises by less than `tol`.
    """
    if w is not None and not w.all():
        X, y, w = X[w > 0], y[w > 0], w[w > 0]
    weight = np.ones(len(y)) if w is None else w
    component, sizes = k_means(X, y, weight, n_components, least)
    V = np.zeros((len(y), sum(sizes)))
    V[np.arange(len(y)), component] = weight
    Z, number, path = in_full(base.prepare(X, w)), np.array(sizes), []
    own = np.repeat(np.arange(len(sizes)), sizes)[None, :] == y[:, None]
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused by `bind`
        bound = base.bind(base.statistics(Z, V))
    while True:
        theta = bound.parameters(base.statistics(Z, V))
        shares, scores = shares_and_scores(bound.log_joint(Z, theta), number)
        path.append(float(weight @ scores[np.arange(len(y)), y] / weight.sum()))
        if len(path) > max_iter or (len(path) > 1 and path[-1] - path[-2] < tol):
            return tuple(sizes), theta, path
        V = np.where(own, shares, 0.0) * weight[:, None]


def k_means(X: Array, y: Array, w: Array, n_components: int, least: float) -> tuple[Array, list[int]]:
    """The component of each row, class after class, and how many each class has; no random choice."""
    U, total = in_own_units(X), w / w.sum()
    U = U - total @ U
    spread = np.sqrt(total @ U**2)
    U /= np.where(spread > len(y) * np.finfo(float).eps, spread, 1.0)  # of a constant column, it is rounding
    component = np.empty(len(y), dtype=np.int64)
    sizes: list[int] = []
    for k in range(int(y.max()) + 1):
        rows = np.flatnonzero(y == k)
        found = clusters(U[rows], w[rows], n_components, least)
        component[rows] = found + sum(sizes)
        sizes.append(int(found.max()) + 1)
    return component, sizes


def in_own_units(X: Array) -> Array:
    """Columns divided by powers of two that bring them to a size below one, so that no square overflows."""
    X = X.astype(np.float64)
    return np.ldexp(X, -np.frexp(np.abs(X).max(axis=0))[1])


def clusters(U: Array, w: Array, n_components: int, least: float) -> Array:
    """The cluster of each row; centres start along the first principal axis."""
    v = w / w.sum()
    mean = v @ U
    axis = np.linalg.eigh((U - mean).T @ ((U - mean) * v[:, None]))[1][:, -1]
    axis = axis * np.sign(axis[np.argmax(np.abs(axis))])
    places, inverse = np.unique(np.round((U - mean) @ axis, 9), return_inverse=True)
    number = min(n_components, max(1, int(w.sum() // least)), len(places))
    levels = (np.arange(number) + 0.5) / number
    chosen = np.unique(quantiles(places, np.bincount(inverse, weights=v), levels))
    centres = mean + chosen[:, None] * axis
    if len(centres) > 1:
        from sklearn.cluster import KMeans  # slow to import, and few need it

        # Lloyd's algorithm to its end: the same for weights as for repeated rows.
        fitted = KMeans(len(centres), init=centres, n_init=1, tol=0.0, max_iter=100).fit(U, sample_weight=v)
        centres = fitted.cluster_centers_
    while True:
        near = np.argmin(((U[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2), axis=1)
        mass = np.bincount(near, weights=w, minlength=len(centres))
        if len(centres) == 1 or mass.min() >= least:
            return near
        centres = np.delete(centres, np.argmin(mass), axis=0)
