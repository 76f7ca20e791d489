"""Structure learning for networks of numbers and categories: at most k parents of a column beside the class.

The worth of an edge is I(x_i; x_j | y), of Gaussians where x_i is a number, less what its parameters cost by
the Bayesian information criterion. Edges that are not worth their cost are left out.

A category has a category as its parent, a number has either. So the best tree consists of two: Chow and Liu's
of the categories, and one of the numbers and a node that stands for all categories, whose edge to a number is
the best of theirs. With k above 1 each column is given more parents among those before it in an order of the
tree, the one of largest worth given the parents that it has first, until none is worth its cost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import xlogy

from riskbayes.arrays import Array
from riskbayes.models.base import Sample
from riskbayes.models.codes import Codes, categories_of, missing_cells
from riskbayes.models.structure import DIGITS, Parents, dependences, topological_order, tree_parents

LARGEST_SHARE = 1.0 - 1e-9
"""Largest share of a variance that a parent explains: with all of it the information is infinite."""

CANCELLED = 1e-12
"""Variances below this share of their second moments are zero."""


MOST_INFORMATION = 32.0
"""More nats than a row can say of a column: of a Gaussian 11, of a category the logarithm of its values."""

MOST_CANDIDATES = 8
"""Columns that are tried as a further parent: those of largest worth on their own."""


class MixedParents(NamedTuple):
    """The parents of the columns of a network."""

    categories: Parents
    """Of each category, among the categories."""
    numbers: Parents
    """Of each number, among the numbers."""
    given: Parents
    """Of each number, among the categories."""


@dataclass(frozen=True)
class Numbers:
    """Numbers of a sample: in units of their columns, with zeros where they are missing."""

    D: Array
    seen: Array
    y: Array
    w: Array
    n_classes: int


def mixed_parents(codes: Sample, numbers: Numbers, sizes: Array, k: int = 1) -> MixedParents:
    """Return the tree of largest worth of categories, with codes of these sizes, and numbers.

    With k above 1 columns have further parents.
    """
    total = max(float(numbers.w.sum()), 1.0)
    cost = numbers.n_classes * math.log(total) / (2.0 * total)
    n = numbers.D.shape[1]
    categories: Parents = ()
    order = np.zeros(0, dtype=np.int64)
    among = by_category = np.zeros((0, n))
    if len(sizes):
        order, between = dependences(codes)
        among = between - cost * np.outer(sizes - 1, sizes - 1)
        tree = tree_parents(order, among)
        categories = tuple(tuple(p for p in above if among[i, p] > 0) for i, above in enumerate(tree))
    found: list[tuple[int, ...]] = [()] * n
    given: list[tuple[int, ...]] = [()] * n
    ranked = np.argsort(-with_class(numbers), kind="stable")
    by_number = with_numbers(numbers) - cost
    if n:
        best = np.full(n, -np.inf)
        if len(sizes):
            by_category = with_categories(codes.X, numbers) - 2.0 * cost * (sizes - 1)[:, None]
            best = by_category.max(axis=0)
        worth = np.full((n + 1, n + 1), -np.inf)  # the first node stands for the categories
        worth[1:, 1:] = by_number
        worth[0, 1:] = worth[1:, 0] = best
        tree = tree_parents(np.append(0, ranked + 1), worth)
        for j, (p,) in enumerate(tree[1:]):
            if worth[j + 1, p] > 0 and p:
                found[j] = (p - 1,)
            elif worth[j + 1, p] > 0:
                given[j] = (int(by_category[:, j].argmax()),)
    parents = MixedParents(categories, tuple(found), tuple(given))
    if k == 1:
        return parents
    more = Growth(codes, numbers, sizes, cost, k)
    return more.grown(parents, (order, ranked), among, by_category, by_number)


@dataclass(frozen=True)
class Growth:
    """What further parents of a column are worth."""

    codes: Sample
    numbers: Numbers
    sizes: Array
    cost: float
    k: int

    def grown(
        self,
        tree: MixedParents,
        ranked: tuple[Array, Array],
        among: Array,
        by_category: Array,
        by_number: Array,
    ) -> MixedParents:
        """Return the tree with further parents; the worths of single ones tell which are tried.

        `ranked` are the categories and the numbers by what they say of the class.
        """
        categories, numbers, given = (list(part) for part in tree)
        before: list[int] = []
        for i in from_roots(tree.categories, ranked[0]):
            categories[i] = self._further(i, (categories[i], ()), (best_of(among[i], before), []), True)[0]
            before.append(i)
        every, before = ranked[0].tolist(), []
        for j in from_roots(tree.numbers, ranked[1]):
            tried = best_of(by_category[:, j], every), best_of(by_number[j], before)
            given[j], numbers[j] = self._further(j, (given[j], numbers[j]), tried, False)
            before.append(j)
        return MixedParents(tuple(categories), tuple(numbers), tuple(given))

    def _further(
        self, i: int, parents: tuple[tuple[int, ...], ...], tried: tuple[list[int], list[int]], category: bool
    ) -> tuple[tuple[int, ...], ...]:
        """Return the categories and the numbers that are parents of a column."""
        while sum(map(len, parents)) < self.k:
            best, choice = 0.0, None
            for kind, candidates in enumerate(tried):
                for p in (p for p in candidates if p not in parents[kind]):
                    more = tuple((*own, p) if kind == at else own for at, own in enumerate(parents))
                    gain = self._gain(i, parents, more, category)
                    if gain > best:
                        best, choice = gain, more
            if choice is None:
                break
            parents = choice
        return parents

    def _gain(
        self, i: int, old: tuple[tuple[int, ...], ...], new: tuple[tuple[int, ...], ...], category: bool
    ) -> float:
        """Return the worth of new parents of a column less that of the old, from the rows that have all."""
        cost = self.cost * (self._parameters(i, new, category) - self._parameters(i, old, category))
        if cost > MOST_INFORMATION:  # nothing is worth it; its table might not fit in memory
            return -cost
        given, numbers = (list(part) for part in new)
        rows = ~missing_or_none(self.codes.X)[:, [*given, *([i] if category else [])]].any(axis=1)
        rows &= self.numbers.seen[:, [*numbers, *([] if category else [i])]].all(axis=1)
        fit = self._of_category if category else self._of_number
        gain = (fit(i, new, rows) - fit(i, old, rows)) / self.numbers.w.sum()
        return round(float(gain - cost), DIGITS)

    def _parameters(self, i: int, parents: tuple[tuple[int, ...], ...], category: bool) -> int:
        """Return how many parameters a column has in each class."""
        cells = math.prod(int(self.sizes[c]) for c in parents[0])
        return cells * (int(self.sizes[i]) - 1 if category else 2 + len(parents[1]))

    def _cells(self, given: tuple[int, ...], rows: Array) -> tuple[Array, int]:
        """Return the cell of each row, by the categories that are parents, and how many there are."""
        cell, cells = np.zeros(int(rows.sum()), dtype=np.int64), 1
        for c in given:
            cell = cell + cells * self.codes.X[rows, c].astype(np.int64)
            cells *= int(self.sizes[c])
        return cell, cells

    def _of_category(self, i: int, parents: tuple[tuple[int, ...], ...], rows: Array) -> float:
        """Return the log-likelihood of a category given its parents."""
        (cell, cells), size = self._cells(parents[0], rows), int(self.sizes[i])
        y, w, value = self.numbers.y[rows], self.numbers.w[rows], self.codes.X[rows, i].astype(np.int64)
        place = (y * cells + cell) * size + value
        counts = np.bincount(place, w, self.numbers.n_classes * cells * size).reshape(-1, size)
        whole = counts.sum(axis=1)
        return float(xlogy(counts, counts).sum() - xlogy(whole, whole).sum())

    def _of_number(self, j: int, parents: tuple[tuple[int, ...], ...], rows: Array) -> float:
        """Return the same of a number whose Gaussian in each cell is about a line in its parents."""
        (cell, cells), d = self._cells(parents[0], rows), len(parents[1])
        place = self.numbers.y[rows] * cells + cell
        table = np.column_stack([self.numbers.D[rows][:, [*parents[1], j]], np.ones(len(place))])
        w, groups = self.numbers.w[rows], self.numbers.n_classes * cells
        moments = np.empty((groups, d + 2, d + 2))
        for a in range(d + 2):
            for b in range(a + 1):
                sums = np.bincount(place, w * table[:, a] * table[:, b], groups)
                moments[:, a, b] = moments[:, b, a] = sums
        mass = moments[:, -1, -1]
        safe = np.where(mass > 0, mass, 1.0)[:, None]
        mean = moments[:, -1, :-1] / safe
        C = moments[:, :-1, :-1] / safe[..., None] - mean[:, :, None] * mean[:, None, :]
        least = CANCELLED * np.diagonal(moments, axis1=1, axis2=2)[:, :-1] / safe + np.finfo(float).tiny
        rest = C[:, d, d]
        total = np.maximum(rest, least[:, d])
        for a in range(d):
            pivot = C[:, a, a]
            varies = pivot > least[:, a]
            C = C - np.where(varies, 1.0 / np.where(varies, pivot, 1.0), 0.0)[:, None, None] * (
                C[:, :, [a]] * C[:, [a], :]
            )
        rest = np.maximum(C[:, d, d], (1.0 - LARGEST_SHARE) * total)
        return float(-0.5 * (mass * np.log(rest)).sum())


def from_roots(parents: Parents, ranked: Array) -> list[int]:
    """Return the columns of a tree by their distance from its roots, and those of one distance by rank."""
    depth = [0] * len(parents)
    for i in topological_order(parents):
        depth[i] = max((depth[p] + 1 for p in parents[i]), default=0)
    return sorted(ranked.tolist(), key=lambda i: depth[i])


def best_of(worth: Array, candidates: list[int]) -> list[int]:
    """Return the candidates of largest worth."""
    return sorted(candidates, key=lambda p: -worth[p])[:MOST_CANDIDATES]


def missing_or_none(codes: Array) -> Array:
    """Return a mask of the missing cells."""
    holes = missing_cells(codes)
    return np.zeros(codes.shape, dtype=bool) if holes is None else holes


def with_class(numbers: Numbers) -> Array:
    """Return I(x_j; y) of Gaussians, in nats of a row, of each number."""
    classes = [numbers.y == k for k in range(numbers.n_classes)]
    V = numbers.w[:, None] * numbers.seen
    mass = np.stack([V[rows].sum(axis=0) for rows in classes])
    first = np.stack([numbers.w[rows] @ numbers.D[rows] for rows in classes])
    second = np.stack([numbers.w[rows] @ numbers.D[rows] ** 2 for rows in classes])
    whole = mass.sum(axis=0)
    log_total = np.log(variance(whole, first.sum(axis=0), second.sum(axis=0)))
    found = 0.5 * (log_total - np.log(variance(mass, first, second))) * mass / numbers.w.sum()
    return np.maximum(found.sum(axis=0), 0.0).round(DIGITS)


def variance(mass: Array, first: Array, second: Array) -> Array:
    """Return variances by moments about the origin; the least that they tell where rows do not vary."""
    mass = np.where(mass > 0, mass, 1.0)
    mean, square = first / mass, second / mass
    return np.maximum(square - mean**2, CANCELLED * square + np.finfo(float).tiny)


def with_numbers(numbers: Numbers) -> Array:
    """Return I(x_i; x_j | y) of Gaussians, from the rows that have both."""
    n = numbers.D.shape[1]
    found = np.zeros((n, n))
    for k in range(numbers.n_classes):
        rows = numbers.y == k
        D, w = numbers.D[rows], numbers.w[rows, None]
        M = numbers.seen[rows].astype(np.float64)
        mass = (M * w).T @ M
        safe = np.where(mass > 0, mass, 1.0)
        mean = (D * w).T @ M / safe  # of i, in the rows that have j
        square = (D * D * w).T @ M / safe
        own = square - mean**2
        covariance = (D * w).T @ D / safe - mean * mean.T
        varies = (own > CANCELLED * square) & (own.T > CANCELLED * square.T)
        explained = covariance**2 / np.where(varies, own * own.T, 1.0)
        explained = np.clip(np.where(varies, explained, 0.0), 0.0, LARGEST_SHARE)
        found -= 0.5 * mass * np.log1p(-explained)
    return (found / numbers.w.sum()).round(DIGITS)


def with_categories(codes: Array, numbers: Numbers) -> Array:
    """Return I(x_j; x_c | y) of each category c and number j: by how much c reduces the variance of j."""
    holes = missing_cells(codes)
    frame = categories_of(codes)
    whole = codes if holes is None else np.where(holes, frame.n_categories, codes)
    found = np.zeros((len(frame.n_categories), numbers.D.shape[1]))
    for k in range(numbers.n_classes):
        rows = numbers.y == k
        hot = Codes(np.asarray(whole[rows], np.int64), frame, missing=holes is not None).one_hot.T
        D, w = numbers.D[rows], numbers.w[rows, None]
        mass, first, second = hot @ (w * numbers.seen[rows]), hot @ (w * D), hot @ (w * D * D)
        sums = [np.add.reduceat(value, frame.offsets, axis=0) for value in (mass, first, second)]
        total, mean, square = (value / np.where(sums[0] > 0, sums[0], 1.0) for value in sums)
        own = square - mean**2
        between = np.add.reduceat(first**2 / np.where(mass > 0, mass, 1.0), frame.offsets, axis=0)
        between = between / np.where(sums[0] > 0, sums[0], 1.0) - mean**2
        varies = (own > CANCELLED * square) & (total > 0)
        explained = np.where(varies, between / np.where(varies, own, 1.0), 0.0)
        found -= 0.5 * sums[0] * np.log1p(-np.clip(explained, 0.0, LARGEST_SHARE))
    return (found / numbers.w.sum()).round(DIGITS)
