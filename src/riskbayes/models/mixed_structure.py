"""Structure learning for trees of numbers and categories: one parent at most of each column beside the class.

The worth of an edge is I(x_i; x_j | y), of Gaussians where x_i is a number, less what its parameters cost by
the Bayesian information criterion. Edges that are not worth their cost are left out.

A category has a category as its parent, a number has either. So the best tree consists of two: Chow and Liu's
of the categories, and one of the numbers and a node that stands for all categories, whose edge to a number is
the best of theirs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from riskbayes.arrays import Array
from riskbayes.models.base import Sample
from riskbayes.models.codes import Codes, categories_of, missing_cells
from riskbayes.models.structure import DIGITS, Parents, dependences, tree_parents

LARGEST_SHARE = 1.0 - 1e-9
"""Largest share of a variance that a parent explains: with all of it the information is infinite."""

CANCELLED = 1e-12
"""Variances below this share of their second moments are zero."""


class MixedParents(NamedTuple):
    """The parents of the columns of a tree."""

    categories: Parents
    """Of each category, among the categories."""
    numbers: Array
    """Of each number its number, or -1."""
    given: Array
    """Of each number its category, or -1."""


@dataclass(frozen=True)
class Numbers:
    """Numbers of a sample: in units of their columns, with zeros where they are missing."""

    D: Array
    seen: Array
    y: Array
    w: Array
    n_classes: int


def mixed_parents(codes: Sample, numbers: Numbers, sizes: Array) -> MixedParents:
    """Return the tree of largest worth of categories, with codes of these sizes, and numbers."""
    total = max(float(numbers.w.sum()), 1.0)
    cost = numbers.n_classes * math.log(total) / (2.0 * total)
    n = numbers.D.shape[1]
    categories: Parents = ()
    if len(sizes):
        order, between = dependences(codes)
        worth = between - cost * np.outer(sizes - 1, sizes - 1)
        tree = tree_parents(order, worth)
        categories = tuple(tuple(p for p in above if worth[i, p] > 0) for i, above in enumerate(tree))
    if not n:
        return MixedParents(categories, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    best, given = np.full(n, -np.inf), np.full(n, -1)
    if len(sizes):
        worth = with_categories(codes.X, numbers) - 2.0 * cost * (sizes - 1)[:, None]
        best, given = worth.max(axis=0), worth.argmax(axis=0)
    worth = np.full((n + 1, n + 1), -np.inf)  # the first node stands for the categories
    worth[1:, 1:] = with_numbers(numbers) - cost
    worth[0, 1:] = worth[1:, 0] = best
    order = np.argsort(-with_class(numbers), kind="stable")
    tree = tree_parents(np.append(0, order + 1), worth)
    above = np.array([p for (p,) in tree[1:]])
    kept = worth[np.arange(1, n + 1), above] > 0
    return MixedParents(
        categories, np.where(kept & (above > 0), above - 1, -1), np.where(kept & (above == 0), given, -1)
    )


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
