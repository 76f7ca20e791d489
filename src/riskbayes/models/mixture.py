"""Mixture discriminant analysis: each class is a mixture of components of a base model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from riskbayes.arrays import Array
from riskbayes.frames import Frame, SideBySide, same_values
from riskbayes.loaded import require
from riskbayes.models.base import GenerativeModel, Sample, with_log_prior
from riskbayes.models.components import by_class, in_full, shares_and_scores, start_components
from riskbayes.models.composite_coordinates import ComponentCoordinates
from riskbayes.models.lda import LDAModel
from riskbayes.models.traits import Traits
from riskbayes.scanners.dense import Scanner
from riskbayes.statistics import Statistics


@dataclass(frozen=True, eq=False)
class Components(SideBySide):
    """The frame of the base model, and the components of each class."""

    sizes: Array
    """The number of components of each class."""
    start: Any = field(default=None, compare=False)
    """Parameters that divide the rows of the data among components; None if each class has one component."""
    em_log_likelihood: tuple[float, ...] = field(default=(), compare=False)
    """Mean joint log-likelihood of the rows, by iteration of EM."""

    def check_loaded(self, size: int) -> None:
        """Require the frame of the base model, and numbers of components."""
        require(len(self.frames) == 1, "it has not one frame of the base model")
        check_components(self.sizes, size)
        super().check_loaded(size)

    def join(self, other: Frame) -> Frame:
        """Join the frames of the base model; raise an error if the numbers of components differ."""
        if not isinstance(other, Components) or not same_values(self.sizes, other.sizes):
            return Frame.join(self, other)
        return super().join(other)


class ComponentRows:
    """Rows as the base model encodes them, with the frame of components."""

    def __init__(self, base: Any, frame: Components):
        self.base, self.frame, self.shape = base, frame, base.shape

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | Array) -> ComponentRows:
        return ComponentRows(self.base[rows], self.frame)


class MixtureScanner(Scanner):
    """Scans in which the components of a class share its residual by P(c | x, y)."""

    model: MixtureModel

    def __init__(self, model: MixtureModel, Z: ComponentRows, base: Scanner):
        super().__init__(model, Z, cells=base.cells, releases_lock=base.releases_lock)
        self.base = base

    def begin(
        self, Z: ComponentRows, theta: MixtureParameters
    ) -> tuple[Array, Callable[[Array], Statistics]]:
        """Return the scores and the function of dS, from one computation of the scores of the components."""
        own, statistics = self.base.begin(Z.base, theta.components)
        shares, scores = shares_and_scores(own, theta.sizes)
        return scores, lambda E: self.model.divided(statistics, Z, E, shares)


@dataclass(frozen=True)
class MixtureParameters:
    """log p(y), the base model's parameters of the components, and the number of components of each class."""

    log_prior: Array
    components: Any
    sizes: Array
    floored: Array

    def check_loaded(self, size: int) -> None:
        """Require numbers of components."""
        check_components(self.sizes, size)


@with_log_prior.register
def _(theta: MixtureParameters, log_prior: Array) -> MixtureParameters:
    """Return theta with another log p(y); the components keep their shares of the class."""
    with np.errstate(invalid="ignore"):
        shift = np.where(np.isneginf(log_prior), -np.inf, log_prior - theta.log_prior)
    own = theta.components
    components = with_log_prior(own, own.log_prior + np.repeat(shift, theta.sizes))
    return replace(theta, log_prior=log_prior, components=components)


def check_components(sizes: Array, size: int) -> None:
    """Raise a ValueError unless these are numbers of components, of fewer than a file has bytes."""
    require(sizes.ndim == 1 and sizes.dtype.kind == "i" and len(sizes), "sizes are no numbers of components")
    require(sizes.min() >= 1 and sum(sizes.tolist()) <= size, "a class has no components, or too many")


@dataclass(frozen=True)
class MixtureModel(GenerativeModel):
    """Each class is a mixture of components of a base model.

    The statistics are those of the components: a row of class y is divided among its components by
    P(c | x, y). For the rows of the data this P is that of the frame's start and does not change; for the
    residual of a scan it is that of the current parameters: E[c] = E[y] P(c | x, y), which for the log loss
    is P(c | x, y) - P(c | x).

    Parameters
    ----------
    base : GenerativeModel
        The model of a component.
    n_components : int, optional
        The most components of a class, which `learn` finds by k-means and EM. None is one per class.
    em_iter : int
        The most iterations of EM.
    """

    base: GenerativeModel = field(default_factory=LDAModel)
    n_components: int | None = None
    em_iter: int = 50

    @property
    def traits(self) -> Traits:  # type: ignore[override]
        """Those of the base model; statistics can be added if each class has one component."""
        base = self.base.traits
        return Traits(
            takes_missing=base.takes_missing,
            normalised=base.normalised,
            additive=self.n_components is None and base.additive,
        )

    def learn(self, sample: Sample) -> Frame:
        """Return the base model's frame, and the components of each class by k-means and EM."""
        frame = self.base.learn(sample)
        if self.n_components is None:
            return Components((frame,), np.ones(sample.n_classes, dtype=np.int64))
        sizes, start, path = start_components(self.base, sample, frame, self.n_components, self.em_iter)
        return Components((frame,), np.array(sizes), start, tuple(path))

    def encode(self, X: Array, frame: Components) -> ComponentRows:  # type: ignore[override]
        """Return the rows as the base model encodes them."""
        return ComponentRows(self.base.encode(X, frame.frames[0]), frame)

    def centre(self, frame: Components) -> Array | None:  # type: ignore[override]
        """Return the centre of the base model."""
        return self.base.centre(frame.frames[0])

    def fix_prior(self, S: Statistics) -> Statistics:
        """Settle the statistics of the components."""
        return self._of_classes(self.base.fix_prior(of_components(S)), S.frame)

    def cast(self, theta: MixtureParameters, Z: ComponentRows) -> MixtureParameters:
        """Return theta with the parameters of the components in the dtype of the rows."""
        return replace(theta, components=self.base.cast(theta.components, Z.base))

    def scanner(self, Z: ComponentRows) -> Scanner:
        """Return a scanner for which P(c | x, y) and the scores of classes come from the same scores."""
        return MixtureScanner(self, Z, self.base.scanner(Z.base))

    def is_attainable(self, S: Statistics, ever: Statistics) -> bool:
        """False if no rows of non-negative weight have the statistics of the components."""
        return self.base.is_attainable(of_components(S), of_components(ever))

    @property
    def floor_warning(self) -> str | None:  # type: ignore[override]
        """The warning of the base model."""
        return self.base.floor_warning

    def implements(self, name: str) -> bool:
        """True if the base model implements the method too."""
        return super().implements(name) and self.base.implements(name)

    def _of_classes(self, S: Statistics, frame: Components) -> Statistics:
        """Return the statistics S of components together with the masses of the classes."""
        arrays = {f"0:{name}": value for name, value in S.items()}
        s0 = by_class(np.add, S["s0"], frame.sizes)
        return Statistics({"s0": s0, **arrays}, replace(frame, frames=(S.frame,)))

    def divided(
        self, count: Callable[[Array], Statistics], Z: ComponentRows, W: Array, shares: Array
    ) -> Statistics:
        """Return the statistics of rows whose weights W (rows x classes) are divided by P(c | x, y).

        `count` returns those of the components, given the weights of these.
        """
        return self._of_classes(count(shares * np.repeat(W, Z.frame.sizes, axis=1)), Z.frame)

    def statistics(self, Z: ComponentRows, W: Array) -> Statistics:
        """Return the statistics of the components, with P(c | x, y) by the start of the frame."""
        frame = Z.frame
        if frame.start is None:
            return self._of_classes(self.base.statistics(Z.base, W), frame)
        shares, _ = shares_and_scores(self.base.scores(in_full(Z.base), frame.start), frame.sizes)
        return self.divided(lambda V: self.base.posterior_statistics(Z.base, V, frame.start), Z, W, shares)

    def parameters(self, S: Statistics) -> MixtureParameters:
        """Return the parameters of the components; p(y) is the sum of p(c) over its components."""
        theta, sizes = self.base.parameters(of_components(S)), S.frame.sizes
        log_prior = np.log(by_class(np.add, np.exp(theta.log_prior), sizes))
        return MixtureParameters(log_prior, theta, sizes, by_class(np.maximum, theta.floored, sizes))

    def is_legal(self, S: Statistics) -> bool:
        """True if the statistics of the components are legal for the base model."""
        return self.base.is_legal(of_components(S))

    def log_joint(self, Z: ComponentRows, theta: MixtureParameters) -> Array:
        """log sum_c p(x, c) over the components of each class."""
        return class_scores(self.base.log_joint(Z.base, theta.components), theta)

    def scores(self, Z: ComponentRows, theta: MixtureParameters) -> Array:
        """Return the same from the scores of the base model."""
        return class_scores(self.base.scores(Z.base, theta.components), theta)

    def residual_statistics(self, Z: ComponentRows, E: Array, theta: MixtureParameters) -> Statistics:
        """Return the statistics of the residual E[c] = E[y] P(c | x, y)."""
        own = theta.components
        shares, _ = shares_and_scores(self.base.scores(Z.base, own), theta.sizes)
        return self.divided(lambda V: self.base.residual_statistics(Z.base, V, own), Z, E, shares)

    def posterior_statistics(self, Z: ComponentRows, P: Array, theta: MixtureParameters) -> Statistics:
        """Return the statistics of rows without a label, by P(c | x) = P(y | x) P(c | x, y)."""
        own = theta.components
        shares, _ = shares_and_scores(self.base.scores(Z.base, own), theta.sizes)
        return self.divided(lambda V: self.base.posterior_statistics(Z.base, V, own), Z, P, shares)

    def sample_rows(self, theta: MixtureParameters, y: Array, rng: np.random.Generator) -> Array:
        """Draw a component of each class by its share, then a row of it."""
        share = np.exp(theta.components.log_prior)
        first = np.cumsum(theta.sizes) - theta.sizes
        component = np.empty(len(y), dtype=np.int64)
        for k, (start, size) in enumerate(zip(first, theta.sizes, strict=True)):
            own, p = np.flatnonzero(y == k), share[start : start + size]
            component[own] = start + rng.choice(size, len(own), p=p / p.sum())
        return self.base.sample_rows(theta.components, component, rng)

    def fill(
        self, Z: ComponentRows, theta: MixtureParameters, y: Array, rng: np.random.Generator | None = None
    ) -> Array:
        """Return rows with their missing cells filled by the components of their class.

        That is the mean over the components by P(c | x_o, y), or a draw of a component and then of the cells.
        """
        scores = self.base.log_joint(Z.base, theta.components)
        shares, _ = shares_and_scores(scores, theta.sizes)
        first = (np.cumsum(theta.sizes) - theta.sizes)[y]
        if rng is not None:
            within = np.arange(shares.shape[1]) - first[:, None]
            own = np.where((within >= 0) & (within < theta.sizes[y][:, None]), shares, 0.0)
            drawn = rng.random(len(y))[:, None] * own.sum(axis=1, keepdims=True)
            component = np.argmax((np.cumsum(own, axis=1) > drawn) & (own > 0), axis=1)
            return self.base.fill(Z.base, theta.components, component, rng)
        found: Any = 0.0
        for c in range(int(theta.sizes.max())):
            component = first + np.minimum(c, theta.sizes[y] - 1)
            share = np.where(c < theta.sizes[y], shares[np.arange(len(y)), component], 0.0)
            found = found + share[:, None] * self.base.fill(Z.base, theta.components, component)
        return found

    def expected_statistics(self, theta: MixtureParameters, total: float) -> Statistics:
        """Return the expected statistics of the components."""
        S = self.base.expected_statistics(theta.components, total)
        return self._of_classes(S, Components((S.frame,), theta.sizes))

    def coordinates(self, S: Statistics) -> ComponentCoordinates:
        """Return those of the components."""
        base, join = self.base.coordinates(of_components(S)), partial(self._of_classes, frame=S.frame)
        return ComponentCoordinates(S, base, of_components, join)

    def log_likelihood(self, S: Statistics, theta: MixtureParameters) -> float:
        """Return the log-likelihood of rows whose components are known, as S counts them."""
        return self.base.log_likelihood(of_components(S), theta.components)

    def degrees_of_freedom(self, S: Statistics) -> float:
        """Return the degrees of freedom of the components."""
        return self.base.degrees_of_freedom(of_components(S))


def of_components(S: Statistics) -> Statistics:
    """Return the statistics of the base model, one class for each component."""
    return Statistics(S.frame.part(S, 0), S.frame.frames[0])


def class_scores(scores: Array, theta: MixtureParameters) -> Array:
    """Return the log joints of the classes; -inf for a class of probability zero."""
    gone = np.isneginf(theta.log_prior)
    if not gone.any():
        return shares_and_scores(scores, theta.sizes)[1]
    with np.errstate(invalid="ignore"):  # -inf minus itself, in those classes
        return np.where(gone, -np.inf, shares_and_scores(scores, theta.sizes)[1])
