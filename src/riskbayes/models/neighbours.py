"""Neighbours: a kernel density whose statistics are a weight for each class and training row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from riskbayes.arrays import Array, positive
from riskbayes.frames import Frame
from riskbayes.loaded import require
from riskbayes.models.base import GenerativeModel, Sample, log_class_prior
from riskbayes.models.neighbour_metric import Metric, learn_metric
from riskbayes.models.traits import Traits
from riskbayes.statistics import Statistics

SAME = 0.001
"""Rows nearer than this, times the square root of the number of directions, are at distance zero."""

FARTHEST = 3.0
"""The kernel is zero beyond this many times the distance of the k-th neighbour."""

RANKS, WIDTHS = (3, 6, 12, 24), (0.03, 0.1, 0.3, 1.0)
"""The k and the epsilon of the kernel that are compared on the training rows."""

JUDGED = 4096
"""The most training rows that the kernel is chosen by."""


@dataclass(frozen=True, eq=False)
class References(Frame):
    """The training rows that others are compared with, and the kernel."""

    of_one_fit: ClassVar[str] = (
        "These statistics are weights of other training rows: neighbours of separate fits cannot be added. "
        "Fit all rows together."
    )

    points: Array
    """Their places, of shape (N, d)."""
    rank: Array
    """The k of the kernel: its unit is the distance of the k-th neighbour."""
    width: Array
    """The epsilon of the kernel: it is largest, 1 / epsilon^2, at distance zero."""
    metric: Metric = field(compare=False)

    saved_version: ClassVar[int] = 2

    @staticmethod
    def migrate(state: dict[str, Any], version: int) -> dict[str, Any]:
        """Drop the numbers that the points had among the training rows, which older files hold."""
        return {name: state[name] for name in state if name != "rows"}

    def check_loaded(self, size: int) -> None:
        """Require points, and a kernel of a rank and a width."""
        require(self.points.ndim == 2 and len(self.points) and self.points.dtype.kind == "f", "points")
        require(np.isfinite(self.points).all(), "a point is not finite")
        require(self.rank.ndim == 0 and self.rank.dtype.kind == "i" and self.rank >= 1, "rank")
        require(self.width.ndim == 0 and self.width > 0, "width")
        super().check_loaded(size)


@dataclass(frozen=True)
class NeighbourRows:
    """Rows as their nearest references: indices and kernel weights, of shape (m, k), and where they count."""

    index: Array
    kernel: Array
    home: Array
    """The reference that the weight of the row is counted for: itself, or the nearest one."""
    frame: References

    @property
    def shape(self) -> tuple[int, int]:
        """Rows, and the cells that a scan reads of each."""
        return self.index.shape[0], 2 * self.index.shape[1]

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, rows: Any) -> NeighbourRows:
        return NeighbourRows(self.index[rows], self.kernel[rows], self.home[rows], self.frame)

    def matrix(self, n_references: int) -> csr_array:
        """Return K(x, x_i) as a sparse matrix of rows x references."""
        m, k = self.index.shape
        pointers = np.arange(m + 1) * k
        return csr_array((self.kernel.ravel(), self.index.ravel(), pointers), shape=(m, n_references))

    def sums(self, table: Array) -> Array:
        """Return sum_i K(x, x_i) table[i], of shape (m, r)."""
        return self.matrix(len(table)) @ table


@dataclass(frozen=True)
class NeighbourParameters:
    """log p(y), and the weight of each class in each reference, of shape (N, r), none below zero."""

    log_prior: Array
    weights: Array
    shares: Array
    """The shares of the classes in the training rows, which q_y is where no reference is near."""
    floored: Array


@dataclass(frozen=True)
class NeighboursModel(GenerativeModel):
    """p(y | x) by the classes of the nearest training rows, as a density p(x | y) up to a factor of x.

    q_y(x) = (sum_i K(x, x_i) a[y, i] + pi_y) / (sum_ki K(x, x_i) a[k, i] + 1) with pi_y the share of the
    class in the training rows, and log p(x | y) = log q_y(x) - log pi_y. The closed form has a = one-hot
    labels; RC moves the weights of single rows.

    Distances are measured after whitening by the within-class covariance, with the directions stretched in
    which the classes differ. K = 1 / (u^2 + epsilon^2), with u the distance in units of that of the k-th
    neighbour, and zero beyond `FARTHEST`; k and epsilon have the least log loss on the training rows, each of
    which is left out of its own neighbours, there and during calibration.

    Nothing is drawn at random, but the order of rows matters: of references at equal distance the first ones
    are neighbours, and `PARTS` of the rows, for the places of categories, are taken in turn.

    Parameters
    ----------
    n_neighbors : int
        The number of neighbours of each row.
    max_references : int
        The most training rows that are kept. The weights of others are counted for the nearest one kept.
    categories : tuple of int
        Columns of category codes. Their distance is that of the class frequencies of the categories.
    class_prior : array of shape (n_classes,), optional
        A fixed p(y).
    """

    traits: ClassVar[Traits] = Traits(
        takes_missing=True, normalised=False, describes_rows=False, additive=False
    )
    _non_negative: ClassVar[tuple[str, ...]] = ("s0", "weights")

    n_neighbors: int = 32
    max_references: int = 2**14
    categories: tuple[int, ...] = ()
    class_prior: Array | None = None

    def learn(self, sample: Sample) -> References:
        """Return the places of the training rows, and the kernel of the least leave-one-out log loss."""
        return self.learn_own(sample)[0]

    def learn_own(self, sample: Sample) -> tuple[References, NeighbourRows]:
        """Return the same, and the nearest references of the training rows, without the one that the row
        counts for.
        """
        w = np.ones(len(sample.X)) if sample.w is None else sample.w
        rows = np.flatnonzero(w > 0)
        if len(rows) > self.max_references:
            rows = np.sort(np.random.default_rng(0).permutation(rows)[: self.max_references])
        metric, points = learn_metric(sample, w, self.categories)
        references = points if len(rows) == len(points) else points[rows]
        index, distance = nearest(points, references, self.n_neighbors + 1)
        home = index[:, 0].copy()
        home[rows] = np.arange(len(rows))
        index, distance = without(index, distance, home)
        weights = np.zeros((len(rows), sample.n_classes))
        weights[np.arange(len(rows)), sample.y[rows]] = w[rows]
        judged = rows if len(rows) <= JUDGED else rows[np.linspace(0, len(rows) - 1, JUDGED).astype(int)]
        rank, width = best_kernel(index[judged], distance[judged], sample.y[judged], w[judged], weights)
        frame = References(references, np.array(rank), np.array(width), metric)
        kernel = kernel_of_cells(sample.X, distance, rank, width)
        return frame, NeighbourRows(index, kernel, home, frame)

    def encode(self, X: Array, frame: References) -> NeighbourRows:  # type: ignore[override]
        """Return the nearest references of new rows."""
        index, distance = nearest(frame.metric.places(X), frame.points, self.n_neighbors)
        kernel = kernel_of_cells(X, distance, int(frame.rank), float(frame.width))
        return NeighbourRows(index, kernel, index[:, 0], frame)

    def statistics(self, Z: NeighbourRows, W: Array) -> Statistics:
        """Return the masses of the classes, and the weight of each class (rows) in each reference."""
        N = len(Z.frame.points)
        weights = np.stack([np.bincount(Z.home, weights=column, minlength=N) for column in W.T])
        return Statistics({"s0": W.sum(axis=0, dtype=np.float64), "weights": weights}, Z.frame)

    def parameters(self, S: Statistics) -> NeighbourParameters:
        """Return the weights, with negative ones raised to zero."""
        weights = S["weights"]
        floored = np.count_nonzero(weights < 0, axis=1)
        weights = np.ascontiguousarray(np.maximum(weights, 0.0).T)
        shares = np.exp(log_class_prior(S["s0"]))
        log_prior = log_class_prior(S["s0"], 0.0, self.class_prior)
        return NeighbourParameters(log_prior, weights, shares, floored)

    def log_joint(self, Z: NeighbourRows, theta: NeighbourParameters) -> Array:
        """Return log q_y(x) - log of the class's share of the training rows + log p(y)."""
        M = Z.sums(theta.weights)
        some = np.where(theta.shares > 0, theta.shares, 1.0)  # a class without mass has log p(y) = -inf
        lift = (M + some) / some
        return np.log(lift / (M.sum(axis=1, keepdims=True) + 1.0)) + theta.log_prior

    def anchor_statistics(self, S: Statistics) -> Statistics:
        """Return the statistics of the labels, with total one."""
        return (1.0 / S.total) * S

    def degrees_of_freedom(self, S: Statistics) -> float:
        """Return about one for each class and k neighbours that decide together."""
        return float(S["weights"].size / int(S.frame.rank))


def best_kernel(index: Array, distance: Array, y: Array, w: Array, weights: Array) -> tuple[int, float]:
    """Return the k and the epsilon of the kernel of least log loss, of rows left out of their neighbours."""
    prior = weights.sum(axis=0) / weights.sum()
    right, total = weights[index, y[:, None]], weights.sum(axis=1)[index]
    best, chosen = np.inf, (RANKS[0], WIDTHS[0])
    for rank in RANKS:
        for width in WIDTHS:
            kernel = kernel_of(distance, rank, width)
            q = ((kernel * right).sum(axis=1) + prior[y]) / ((kernel * total).sum(axis=1) + 1.0)
            loss = -(w @ np.log(q))
            if loss < best - 1e-9 * abs(loss):
                best, chosen = loss, (rank, width)
    return chosen


def nearest(points: Array, references: Array, k: int) -> tuple[Array, Array]:
    """Return the indices and distances of the k nearest references, nearest first."""
    from sklearn.neighbors import NearestNeighbors  # slow to import

    search = NearestNeighbors(n_neighbors=min(k, len(references)), algorithm="brute").fit(references)
    if not len(points):
        return np.zeros((0, search.n_neighbors), dtype=np.int32), np.zeros((0, search.n_neighbors))
    distance, index = search.kneighbors(points)
    same = SAME * np.sqrt(references.shape[1])
    return index.astype(np.int32), np.where(distance < same, 0.0, distance)


def without(index: Array, distance: Array, own: Array) -> tuple[Array, Array]:
    """Return neighbours without one of them for each row; without the last if that one is not among them."""
    left_out = index == own[:, None]
    left_out[:, -1] |= ~left_out.any(axis=1)
    shape = len(index), index.shape[1] - 1
    return index[~left_out].reshape(shape), distance[~left_out].reshape(shape)


def kernel_of_cells(X: Array, distance: Array, rank: int, width: float) -> Array:
    """Return the kernel of rows; zero for a row without a cell, which says nothing: q_y is then pi_y."""
    return np.where(np.isnan(X).all(axis=1)[:, None], 0.0, kernel_of(distance, rank, width))


def kernel_of(distance: Array, rank: int, width: float) -> Array:
    """Return K = 1 / (u^2 + width^2), with u the distance in units of that of the neighbour of this rank."""
    if not distance.shape[1]:
        return distance
    unit = distance[:, min(rank, distance.shape[1]) - 1 :][:, :1]
    # Where the unit is zero, so are the distances that count: others are infinitely far.
    u = np.where(distance > 0, distance / positive(unit), 0.0)
    far = (u > FARTHEST) | ((unit == 0) & (distance > 0))
    return np.where(far, 0.0, 1.0 / (u * u + width * width))
