"""Mixture discriminant analysis: the base model's statistics, for sub-classes of each class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from riskbayes.arrays import Array, widest_float
from riskbayes.frames import Arrays, Frame, SideBySide, same_values
from riskbayes.models.base import GenerativeModel, Sample
from riskbayes.models.centred import Centred
from riskbayes.models.hats import quantiles
from riskbayes.models.lda import LDAModel
from riskbayes.objectives import Objective
from riskbayes.risks import Risks, posterior_and_risks
from riskbayes.statistics import Statistics


@dataclass(frozen=True, eq=False)
class Components(SideBySide):
    """The frame of the base model, and the components that rows of each class are shared among."""

    sizes: Array
    """Components of each class, class after class."""
    start: Any = field(default=None, compare=False)
    """Parameters of the base model that rows of the data are shared by; None where classes have one each."""
    em_log_likelihood: tuple[float, ...] = field(default=(), compare=False)
    """Mean joint log-likelihood of the rows, EM iteration by iteration."""

    def join(self, other: Frame) -> Frame:
        """Return the frame of the same components."""
        if not isinstance(other, Components) or not same_values(self.sizes, other.sizes):
            return Frame.join(self, other)
        return super().join(other)

    def to_arrays(self) -> Arrays:
        """Return the arrays of the base model's frame, and the numbers of components."""
        return super().to_arrays() | {f"{type(self).__name__}.sizes": self.sizes}

    @classmethod
    def of_fields(cls, arrays: Mapping[str, Array]) -> Frame:
        """Return the frame of these arrays; the start, which only counts new rows, is not among them."""
        rest = {name: value for name, value in arrays.items() if name != "sizes"}
        return cls(SideBySide.of_fields(rest).frames, arrays["sizes"])  # type: ignore[attr-defined]


class ComponentRows:
    """Rows as the base model reads them, with the components that they are shared among."""

    def __init__(self, base: Any, frame: Components):
        self.base, self.frame, self.shape = base, frame, base.shape

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | Array) -> ComponentRows:
        return ComponentRows(self.base[rows], self.frame)


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
    the data are shared by the start of the frame, once and for all; the residual of a scan by the present
    parameters, E[c] = E[y] P(c | x, y), which for the log loss is P(c | x, y) - P(c | x).

    Parameters
    ----------
    base : GenerativeModel
        The model of a component.
    n_components : int, optional
        Components of a class at most, which `learn` finds by k-means and EM. None is one each.
    em_iter : int
        The most iterations of EM.
    """

    base: GenerativeModel = field(default_factory=LDAModel)
    n_components: int | None = None
    em_iter: int = 50

    @property
    def additive(self) -> bool:  # type: ignore[override]
        """True where each class has one component."""
        return self.n_components is None and self.base.additive

    def learn(self, sample: Sample) -> Frame:
        """Return the base model's frame, and the components of each class by k-means and EM."""
        frame = self.base.learn(sample)
        if self.n_components is None:
            return Components((frame,), np.ones(sample.n_classes, dtype=np.int64))
        sizes, start, path = start_components(self.base, sample, frame, self.n_components, self.em_iter)
        return Components((frame,), np.array(sizes), start, tuple(path))

    def encode(self, X: Array, frame: Components) -> ComponentRows:  # type: ignore[override]
        """Return the rows as the base model reads them."""
        return ComponentRows(self.base.encode(X, frame.frames[0]), frame)

    def settle(self, S: Statistics) -> Statistics:
        """Settle the statistics of the components."""
        return self._of_classes(self.base.settle(of_components(S)), S.frame)

    def row_cells(self, Z: ComponentRows) -> float:
        """Return those of the base model."""
        return self.base.row_cells(Z.base)

    def releases_lock(self, Z: ComponentRows) -> bool:
        """True if scans of the base model do."""
        return self.base.releases_lock(Z.base)

    def plan(self, Z: ComponentRows, theta: MixtureParameters) -> MixtureParameters:
        """Return the parameters as the base model plans them."""
        return replace(theta, components=self.base.plan(Z.base, theta.components))

    def could_be_counted(self, S: Statistics, ever: Statistics) -> bool:
        """For the components."""
        return self.base.could_be_counted(of_components(S), of_components(ever))

    @property
    def floor_warning(self) -> str | None:  # type: ignore[override]
        """That of the base model."""
        return self.base.floor_warning

    def writes(self, name: str) -> bool:
        """True if the base model implements the method too."""
        return super().writes(name) and self.base.writes(name)

    def _of_classes(self, S: Statistics, frame: Components) -> Statistics:
        """Return statistics of the components with the masses of the classes."""
        arrays = {f"0:{name}": value for name, value in S.items()}
        s0 = by_class(np.add, S["s0"], frame.sizes)
        return Statistics({"s0": s0, **arrays}, replace(frame, frames=(S.frame,)))

    def _counted(self, Z: ComponentRows, W: Array, shares: Array) -> Statistics:
        """Return statistics of rows whose weights go to components by their shares."""
        S = self.base.statistics(Z.base, shares * np.repeat(W, Z.frame.sizes, axis=1))
        return self._of_classes(S, Z.frame)

    def statistics(self, Z: ComponentRows, W: Array) -> Statistics:
        """Return those of the components, by the shares that the start gives them."""
        frame = Z.frame
        if frame.start is None:
            return self._counted(Z, W, np.ones(1))
        shares, _ = shares_and_scores(self.base.scores(in_full(Z.base), frame.start), frame.sizes)
        return self._counted(Z, W, shares)

    def parameters(self, S: Statistics) -> MixtureParameters:
        """Return those of the components; p(y) is the sum of its components."""
        theta, sizes = self.base.parameters(of_components(S)), S.frame.sizes
        log_prior = np.log(by_class(np.add, np.exp(theta.log_prior), sizes))
        return MixtureParameters(log_prior, theta, sizes, by_class(np.maximum, theta.floored, sizes))

    def is_legal(self, S: Statistics) -> bool:
        """Every component keeps a mass."""
        return self.base.is_legal(of_components(S))

    def log_joint(self, Z: ComponentRows, theta: MixtureParameters) -> Array:
        """log sum_c p(x, c) over the components of each class."""
        return shares_and_scores(self.base.log_joint(Z.base, theta.components), theta.sizes)[1]

    def scores(self, Z: ComponentRows, theta: MixtureParameters) -> Array:
        """The same, of the base model's scores."""
        return shares_and_scores(self.base.scores(Z.base, theta.components), theta.sizes)[1]

    def residual_statistics(self, Z: ComponentRows, E: Array, theta: MixtureParameters) -> Statistics:
        """The residual of a class goes to its components by P(c | x, y)."""
        shares, _ = shares_and_scores(self.base.scores(Z.base, theta.components), theta.sizes)
        return self._counted(Z, E, shares)

    def scan_chunk(
        self,
        Z: ComponentRows,
        y: Array,
        w: Array | None,
        plan: MixtureParameters,
        objective: Objective,
        risks_only: bool,
    ) -> tuple[Statistics | None, Risks]:
        """Scan a chunk, with shares and scores of one product."""
        shares, scores = shares_and_scores(self.base.scores(Z.base, plan.components), plan.sizes)
        P, risks = posterior_and_risks(scores, y, w, objective)
        if risks_only:
            return None, risks
        E = objective.residual(P, y)
        return self._counted(Z, E if w is None else E * w[:, None], shares), risks

    def sample(self, theta: MixtureParameters, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """From the components, by the class that owns them."""
        X, component = self.base.sample(theta.components, n, rng)
        return X, np.repeat(np.arange(len(theta.sizes)), theta.sizes)[component]

    def expected_statistics(self, theta: MixtureParameters, total: float) -> Statistics:
        """Return those of the components."""
        S = self.base.expected_statistics(theta.components, total)
        return self._of_classes(S, Components((S.frame,), theta.sizes))

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
    """Return the rows in the widest dtype: EM would follow the rounding of narrower log densities."""
    return Centred(Z.X, Z.frame, widest_float(Z.X)) if isinstance(Z, Centred) else Z


def start_components(
    base: GenerativeModel,
    sample: Sample,
    frame: Frame,
    n_components: int,
    max_iter: int,
    least: float = 2.0,
    tol: float = 1e-4,
) -> tuple[list[int], Any, list[float]]:
    """Return components of each class by k-means, then EM: their numbers, parameters, the log-likelihoods.

    Clusters of a weight below `least` are merged with their neighbours. EM ends when the mean
    log-likelihood rises by less than `tol`.
    """
    X, y, w = sample.X, sample.y, sample.w
    if w is not None and not w.all():
        X, y, w = X[w > 0], y[w > 0], w[w > 0]
    weight = np.ones(len(y)) if w is None else w
    component, sizes = k_means(X, y, weight, n_components, least)
    V = np.zeros((len(y), sum(sizes)))
    V[np.arange(len(y)), component] = weight
    Z, number, path = in_full(base.encode(X, frame)), np.array(sizes), []
    own = np.repeat(np.arange(len(sizes)), sizes)[None, :] == y[:, None]
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused by `settle`
        settled = base.settle(base.statistics(Z, V)).frame
    while True:
        theta = base.parameters(base.statistics(Z, V).to_frame(settled))
        shares, scores = shares_and_scores(base.log_joint(Z, theta), number)
        path.append(float(weight @ scores[np.arange(len(y)), y] / weight.sum()))
        if len(path) > max_iter or (len(path) > 1 and path[-1] - path[-2] < tol):
            return sizes, theta, path
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
