"""Naive Bayes of categorical features: psi(x) = (1, one-hot of each feature); models of codes in general."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from riskbayes.arrays import (
    Array,
    astype,
    clip_below,
    max_of,
    namespace,
    positive,
    sum_of,
    to_device,
    to_numpy,
    to_widest,
)
from riskbayes.frames import CountsByFeature
from riskbayes.models.base import (
    COUNT_ROUNDING,
    SINGLE_ROUNDING,
    Described,
    GenerativeModel,
    Sample,
    log_class_prior,
)
from riskbayes.models.codes import Codes, DeviceCodes, categories_of, check_codes, check_sizes, make_codes
from riskbayes.models.coordinates import ClassPrior, TableCoordinates, invert_class_prior
from riskbayes.models.traits import Traits
from riskbayes.scanners import Scanner
from riskbayes.scanners.compiled import CodesPart, CompiledScanner
from riskbayes.scanners.dense import Labels
from riskbayes.statistics import Statistics

TINY = float(np.finfo(float).tiny)
COUNT_FLOOR = 1e-9
"""Lower bound on cell counts, as a share of the total weight."""


class CellModel(GenerativeModel):
    """Base class of naive Bayes of cells: a feature has a table of probabilities of its cells in each class.

    A missing cell has the factor 1 in every class and is not counted, which is the exact marginal: each
    feature has a mass of its own in each class, the sum of its counts.

    Parameters
    ----------
    alpha : float
        Dirichlet pseudo-counts per cell; 0 is maximum likelihood.
    class_alpha : float
        Pseudo-counts per class for p(y).
    class_prior : array of shape (n_classes,), optional
        A fixed p(y).
    """

    _non_negative: ClassVar[tuple[str, ...]] = ("s0", "counts")

    alpha: float
    class_alpha: float
    class_prior: Array | None

    def is_legal(self, S: Statistics) -> bool:
        """True if every class has a mass. Cells need no check: they are floored."""
        return S.least_mass() + self.class_alpha > 0

    def log_prior(self, S: Statistics) -> Array:
        """Return log p(y)."""
        return log_class_prior(S["s0"], self.class_alpha, self.class_prior)

    def floor(self, S: Statistics) -> float:
        """Return the lower bound on a smoothed count."""
        return count_floor(S)

    def tables(
        self, S: Statistics, kind: type[TableCoordinates] = TableCoordinates, tied: Array | None = None
    ) -> TableCoordinates:
        """Return the coordinates of this kind, with cells that no step moves."""
        prior = ClassPrior(self.class_alpha, self.class_prior)
        return kind(S, self.anchor_statistics(S), self.alpha, self.floor(S), prior, tied=tied)


@dataclass(frozen=True)
class CategoricalParameters:
    """log p(y), log p(x_i | y) in the columns of `frame`, and the log probability of an unseen category."""

    log_prior: Array
    log_prob: Array
    log_unseen: Array
    frame: CountsByFeature
    floored: Array


class JointScanner(CompiledScanner):
    """Compiled scans of codes of a few features each."""

    kind = CodesPart

    def part(self, theta: CategoricalParameters) -> CodesPart:
        """Return the codes of a compiled scan."""
        groups, table = self.Z.grouping[0], self.Z.grouping[0].table(theta.log_prob)
        return CodesPart(self.Z.frame, groups.first, groups.back, table, theta.log_prior)

    def chunk_of_labels(self, Z: Codes, labels: Labels) -> Statistics:
        """Return the counts of labelled rows."""
        assert Z.grouping is not None
        s0 = np.bincount(labels.y, weights=labels.w, minlength=labels.n_classes).astype(np.float64)
        counts = Z.grouping[0].label_counts(Z.grouping[1], *labels)
        return Statistics({"s0": s0, "counts": counts}, Z.frame)


@dataclass(frozen=True)
class CodedModel(CellModel):
    """Base class of models whose rows are codes: their scores are a sum over the codes that are present."""

    traits: ClassVar[Traits] = Traits("categories", array_api=True, takes_missing=True)

    alpha: float = 0.0
    class_alpha: float = 0.0
    class_prior: Array | None = None

    @abstractmethod
    def learn(self, sample: Sample) -> CountsByFeature:
        """Return the categories of each feature."""

    def cast(self, theta: CategoricalParameters, Z: Codes | DeviceCodes) -> CategoricalParameters:
        """Return theta in the dtype of one-hot rows."""
        if Z.dtype == theta.log_prob.dtype:
            return theta
        logs = ("log_prior", "log_prob", "log_unseen")
        return replace(theta, **{name: astype(getattr(theta, name), Z.dtype) for name in logs})

    def scanner(self, Z: Codes | DeviceCodes) -> Scanner:
        """Return a compiled scanner of rows that are coded jointly."""
        kind = Scanner if Z.grouping is None else JointScanner
        return kind(self, Z, cells=Z.cells, releases_lock=Z.grouping is not None)

    def statistics(self, Z: Codes | DeviceCodes, W: Array) -> Statistics:
        """Return weighted counts of classes and of (class, feature, category); missing cells have none."""
        V = astype(W, Z.dtype)
        return Statistics({"s0": to_widest(sum_of(W, axis=0)), "counts": to_widest(Z.counts(V))}, Z.frame)

    def log_joint(self, Z: Codes | DeviceCodes, theta: CategoricalParameters) -> Array:
        """log p(y) + sum_i log p(x_i | y) over the features that are present."""
        known, unseen = Z.times(theta.log_prob)
        joint = known + theta.log_prior[None, :]
        return joint if unseen is None else joint + unseen @ theta.log_unseen.T


@dataclass(frozen=True)
class CategoryProbabilities(CodedModel):
    """Base class of naive Bayes of codes: features are independent given the class."""

    def floor(self, S: Statistics) -> float:
        """Return the lower bound on a smoothed count; pseudo-counts need none."""
        return min(count_floor(S), self.alpha) if self.alpha > 0 else count_floor(S)

    def parameters(self, S: Statistics) -> CategoricalParameters:
        """p(x_i = v | y) = (s_ivy + alpha) / sum_v (s_ivy + alpha), each numerator floored."""
        frame, xp = S.frame, namespace(S["s0"])
        counts = S["counts"] + self.alpha
        floor = self.floor(S)
        floored = counts < floor
        counts = clip_below(counts, floor)
        log_sums = xp.log(frame.sums(counts))
        log_prob = xp.log(counts) - frame.spread(log_sums)
        # Without pseudo-counts an unseen category has the factor 1 in every class.
        log_unseen = math.log(self.alpha) - log_sums if self.alpha > 0 else 0.0 * log_sums
        below = xp.count_nonzero(floored, axis=1)
        return CategoricalParameters(self.log_prior(S), log_prob, log_unseen, frame, below)

    def is_attainable(self, S: Statistics, ever: Statistics) -> bool:
        """False for negative counts, and for a feature that is counted more often than its class."""
        slack = COUNT_ROUNDING if isinstance(S["s0"], np.ndarray) else SINGLE_ROUNDING
        most = S["s0"][:, None] + slack * max_of(ever["s0"])
        excess = S.frame.sums(S["counts"]) > most
        return super().is_attainable(S, ever) and not to_numpy(excess).any()

    def contributions(self, Z: Codes, theta: CategoricalParameters) -> Array:
        """Return log p(x_i | y) of each column."""
        codes, sizes = Z.codes.astype(np.int64), theta.frame.n_categories
        found = theta.log_prob.T[np.minimum(codes, sizes - 1) + theta.frame.offsets]
        found = np.where((codes > sizes)[:, :, None], theta.log_unseen.T, found)
        return np.where((codes == sizes)[:, :, None], 0.0, found)

    def cell_densities(self, Z: Codes, theta: CategoricalParameters, j: int) -> tuple[Array, Array]:
        """Return the log probabilities of the categories of column j."""
        first, k = int(theta.frame.offsets[j]), int(theta.frame.n_categories[j])
        return theta.log_prob[:, first : first + k].T[None], np.ones((1, k))

    def describe(self, theta: CategoricalParameters) -> Iterator[Described]:
        """Yield the log probabilities of the categories."""
        feature, category = theta.frame.columns(theta.log_prob)
        named = [((j, code),) for j, code in zip(feature.tolist(), category.tolist(), strict=True)]
        names = ["log probability of {}"] * len(named)
        yield Described(
            feature, names, theta.log_prob, np.ones_like(theta.log_prob), named, np.exp(theta.log_prob)
        )

    def expected_statistics(self, theta: CategoricalParameters, total: float) -> Statistics:
        """Return the counts total p(y) p(x_i | y) of rows without missing cells."""
        xp = namespace(theta.log_prior)
        s0 = total * xp.exp(theta.log_prior)
        return Statistics({"s0": s0, "counts": s0[:, None] * xp.exp(theta.log_prob)}, theta.frame)

    def anchor_statistics(self, S: Statistics) -> Statistics:
        """Return the expected statistics of the closed form, times the share of cells that are present."""
        found = self.expected_statistics(self.parameters(S), 1.0)
        shares = S.frame.spread(shares_present(S))
        return Statistics({"s0": found["s0"], "counts": shares * found["counts"]}, S.frame)

    def degrees_of_freedom(self, S: Statistics) -> float:
        """Return the number of masses and counts; a feature without a present cell in a class has none."""
        present = to_numpy(S.frame.sums(S["counts"])) > 0
        return float(len(present) + (present * S.frame.n_categories).sum())

    def coordinates(self, S: Statistics) -> TableCoordinates:
        """Return log p(y) and the log probabilities: convex without missing cells, and without floors."""
        return self.tables(S)

    def log_likelihood(self, S: Statistics, theta: CategoricalParameters) -> float:
        """sum_y s0 log p(y) + sum_iy s_iy log p(x_i | y)."""
        counts = S.to_frame(theta.frame)["counts"]
        return float(S["s0"] @ theta.log_prior + sum_of(counts * theta.log_prob))

    def inverse_parameters(self, theta: CategoricalParameters, total: float) -> Statistics:
        """Return the counts whose smoothed frequencies are theta, of rows without missing cells."""
        alpha = self.class_alpha if self.class_prior is None else 0.0
        s0 = invert_class_prior(theta.log_prior, total, alpha)
        cells = to_device(theta.frame.n_categories.astype(np.float64), s0)[None, :]
        sums = theta.frame.spread(s0[:, None] + self.alpha * cells)
        counts = namespace(s0).exp(theta.log_prob) * sums - self.alpha
        return Statistics({"s0": s0, "counts": counts}, theta.frame)

    def to_natural(self, theta: CategoricalParameters) -> dict[str, Array]:
        """Return log p(y) and log p(x_i | y); the log-partition is zero."""
        return {"eta0": theta.log_prior, "eta": theta.log_prob}

    def natural_gradient(self, dS: Statistics, theta: CategoricalParameters) -> dict[str, Array]:
        """Return the statistics, which are the gradient; zero for a fixed p(y)."""
        dS, fixed = dS.to_frame(theta.frame), self.class_prior is not None
        return {"eta0": 0.0 * dS["s0"] if fixed else dS["s0"], "eta": dS["counts"]}

    def from_natural(
        self, eta: dict[str, Array], theta: CategoricalParameters, simplex: Any, floor: float
    ) -> CategoricalParameters:
        """Return the parameters after projecting each distribution on the simplex."""
        ends = [*theta.frame.offsets[1:].tolist(), eta["eta"].shape[1]]
        cells = [eta["eta"][:, a:b] for a, b in zip(theta.frame.offsets.tolist(), ends, strict=True)]
        log_prob = namespace(eta["eta"]).concat([simplex(cell) for cell in cells], axis=1)
        return replace(theta, log_prior=simplex(eta["eta0"]), log_prob=log_prob)


@dataclass(frozen=True)
class CategoricalModel(CategoryProbabilities):
    """Categorical features, independent given the class.

    Parameters
    ----------
    min_categories : int or array, optional
        Lower bound on the number of categories per feature.
    """

    min_categories: Array | int | None = None

    def learn(self, sample: Sample) -> CountsByFeature:
        """Return the categories: 0 to the largest code of each feature."""
        check_codes(sample.X)
        frame = categories_of(sample.X, self.min_categories, sample.largest)
        check_sizes(frame.n_categories)
        return frame

    def encode(self, X: Array, frame: CountsByFeature) -> Codes | DeviceCodes:  # type: ignore[override]
        """Return the codes in a small dtype."""
        return make_codes(X, frame)

    def sample_rows(self, theta: CategoricalParameters, y: Array, rng: np.random.Generator) -> Array:
        """Draw each feature by inverting its cumulative distribution."""
        n = len(y)
        X = np.empty((n, len(theta.frame.n_categories)), dtype=np.int64)
        cells = np.split(np.exp(theta.log_prob), theta.frame.offsets[1:], axis=1)
        for j, p in enumerate(cells):
            below = np.cumsum(p, axis=1)[:, :-1]
            X[:, j] = (rng.random(n)[:, None] > below[y]).sum(axis=1)
        return X

    def fill(
        self, Z: Codes, theta: CategoricalParameters, y: Array, rng: np.random.Generator | None = None
    ) -> Array:
        """Fill with the most probable category of p(x_i | y), or draw it.

        A category that the frame does not have comes back as the number of categories.
        """
        codes, holes, frame = Z.codes.astype(np.float64), Z.is_missing, theta.frame
        X = np.minimum(codes, frame.n_categories)
        for j, (first, k) in enumerate(zip(frame.offsets, frame.n_categories, strict=True)):
            rows = np.flatnonzero(holes[:, j])
            X[rows, j] = chosen(theta.log_prob[:, first : first + k][y[rows]], rng)
        return X


def shares_present(S: Statistics) -> Array:
    """Return the share of each class's mass whose cell is present, by feature: exactly one without holes."""
    xp, mass = namespace(S["s0"]), S["s0"][:, None]
    found = S.frame.sums(S["counts"]) / positive(mass)
    slack = COUNT_ROUNDING if xp is np else SINGLE_ROUNDING  # on a device no cell is missing
    return xp.where(xp.abs(found - 1.0) < slack, 1.0, found)


def chosen(logs: Array, rng: np.random.Generator | None) -> Array:
    """Return the index of the largest of the logarithms of each row, or one drawn in proportion to them."""
    if rng is None or not len(logs):
        return logs.argmax(axis=1)
    below = np.cumsum(np.exp(logs - logs.max(axis=1, keepdims=True)), axis=1)
    return (rng.random(len(logs))[:, None] * below[:, -1:] > below[:, :-1]).sum(axis=1)


def count_floor(S: Statistics) -> float:
    """Return the lower bound on counts: a share of the total weight."""
    return COUNT_FLOOR * max(S.total, TINY)
