"""Parts of rows that are in blocks, by small values: folds, held rows, draws and weights of a block.

A part says which rows of block `number` it takes, and with which weights, from their labels and weights only.
It is small however many rows there are, so that it can be sent to where the block is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from riskbayes.arrays import Array

Picked = tuple[Array | None, Array | None]
"""Indices of rows, None for all of them, and the weights of the picked rows, None for one each."""


class Part(ABC):
    """Rows of blocks, picked or weighted anew."""

    @abstractmethod
    def of(self, number: int, y: Array, w: Array | None) -> Picked:
        """Return the rows of block `number` with labels y and weights w, and their weights."""


@dataclass(frozen=True)
class Scaled(Part):
    """All rows, with weights multiplied by a factor, and by one of their class."""

    factor: float = 1.0
    by_class: Array | None = None

    def of(self, number: int, y: Array, w: Array | None) -> Picked:
        """Return all rows with other weights."""
        w = np.ones(len(y)) if w is None else w
        return None, self.factor * w * (1.0 if self.by_class is None else self.by_class[y])


@dataclass(frozen=True)
class Chosen(Part):
    """A number of rows of positive weight, drawn at random from each block and class; or the other rows."""

    sizes: Array
    """Rows of each block (first axis) and class."""
    seed: int
    others: bool = False

    def of(self, number: int, y: Array, w: Array | None) -> Picked:
        """Return the drawn rows in their order, or the rows of positive weight that were not drawn."""
        rank = ranks(y, w, self.sizes.shape[1], [self.seed, number])
        taken = (rank >= 0) & ((rank < self.sizes[number][y]) != self.others)
        rows = np.flatnonzero(taken)
        return rows, None if w is None else w[rows]


@dataclass(frozen=True)
class Fold(Part):
    """The rows that a fold holds, or the others: the rows of each class in turn, shuffled in a block."""

    before: Array
    """Rows of positive weight in earlier blocks, by block and class, from a random first fold on."""
    fold: int
    n_folds: int
    seed: int
    others: bool = False

    def of(self, number: int, y: Array, w: Array | None) -> Picked:
        """Return the rows of positive weight in the fold, or outside of it."""
        rank = ranks(y, w, self.before.shape[1], [self.seed, number])
        held = (self.before[number][y] + rank) % self.n_folds == self.fold
        rows = np.flatnonzero((rank >= 0) & (held != self.others))
        return rows, None if w is None else w[rows]


@dataclass(frozen=True)
class Drawn(Part):
    """All rows, weighted by how often each was drawn with replacement."""

    sizes: Array
    """Draws of each block."""
    seed: int

    def of(self, number: int, y: Array, w: Array | None) -> Picked:
        """Return all rows with their weights times the number of draws."""
        random = np.random.default_rng([self.seed, number])
        drawn = random.integers(len(y), size=int(self.sizes[number]))
        times = np.bincount(drawn, minlength=len(y)).astype(np.float64)
        return None, times if w is None else times * w


@dataclass(frozen=True)
class Batch(Part):
    """One of several random shares of the rows of one block."""

    number: int
    share: int
    n_shares: int
    seed: int

    def of(self, number: int, y: Array, w: Array | None) -> Picked:
        """Return the rows of the share in random order."""
        order = np.random.default_rng([self.seed, number]).permutation(len(y))
        rows = np.array_split(order, self.n_shares)[self.share]
        return rows, None if w is None else w[rows]


@dataclass(frozen=True)
class Thinned(Part):
    """Rows at evenly spaced shares of the total weight, as often as they are met; each counts once."""

    before: Array
    """The weight of earlier blocks, by block, and that of all at the end."""
    size: int

    def of(self, number: int, y: Array, w: Array | None) -> Picked:
        """Return the rows of the block that the shares meet."""
        places = (np.arange(self.size) + 0.5) * (self.before[-1] / self.size)
        first, last = np.searchsorted(places, self.before[number : number + 2])
        within = np.cumsum(np.ones(len(y)) if w is None else w)
        rows = np.searchsorted(within, places[first:last] - self.before[number])
        return np.minimum(rows, len(y) - 1), None


def ranks(y: Array, w: Array | None, n_classes: int, seed: list[int]) -> Array:
    """Return the place of each row in a random order of the rows of its class; -1 without weight."""
    order = np.random.default_rng(seed).permutation(len(y))
    if w is not None:
        order = order[w[order] > 0]
    order = order[np.argsort(y[order], kind="stable")]
    counts = np.bincount(y[order], minlength=n_classes)
    rank = np.full(len(y), -1)
    rank[order] = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    return rank


def allotted(counts: Array, size: float) -> Array:
    """Return about `size` of these counts in all, evenly: whole numbers, none above its count."""
    ends = np.floor(np.cumsum(counts.ravel()) * (size / max(1, counts.sum())) + 1e-9)
    return np.diff(ends, prepend=0.0).astype(np.int64).reshape(counts.shape)
