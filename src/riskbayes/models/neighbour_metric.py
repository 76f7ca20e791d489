"""The space in which neighbours are near: whitened, and stretched where the classes differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from riskbayes.arrays import Array, positive
from riskbayes.models.base import Sample

CORRELATED, ALONE, RIDGE = 0.7, 0.3, 0.001
"""Shares of the within-class covariance, its diagonal and the identity in the metric."""

LEAST_STRETCH = 0.05
"""What a direction without differences between the classes counts, beside one that is all difference."""

CATEGORY_ROWS = 10.0
"""Rows of the whole table that are added to those of a category, for its class frequencies."""

PARTS = 5
"""A training row has the place of its category by the rows of the other parts, in which its label is not."""

FAR = 2.0**20
"""Numbers are at most so many times as far from zero as the training rows: beyond, all is equally far."""


@dataclass(frozen=True, eq=False)
class Metric:
    """The map to the space in which distances are measured."""

    exponents: Array
    """Numbers are first multiplied by two to minus this power, so that no square overflows."""
    tables: dict[int, Array]
    """For each column of categories, the place of each category; the last row is for all other cells."""
    centre: Array
    matrix: Array

    def places(self, X: Array) -> Array:
        """Return the rows as points of the space; a missing cell is in the middle of its column."""
        U = unfolded(X, self.exponents, self.tables) - self.centre
        return np.where(np.isnan(U), 0.0, U) @ self.matrix


def learn_metric(sample: Sample, w: Array, categories: Sequence[int]) -> tuple[Metric, Array]:
    """Return the map to the space of distances, from the rows with a weight, and the places of all rows.

    The places of these rows do not depend on their own labels but through the map as a whole.
    """
    counted = w > 0
    if not counted.all():
        kept = Sample(sample.X[counted], sample.y[counted], None, sample.n_classes)
        metric, own_places = learn_metric(kept, w[counted], categories)
        places = metric.places(sample.X)
        places[counted] = own_places
        return metric, places
    X, y, share, r = sample.X, sample.y, w / w.sum(), sample.n_classes
    numbers = [j for j in range(X.shape[1]) if j not in set(categories)]
    largest = np.fmax.reduce(np.abs(X[:, numbers]), axis=0, initial=0.0)
    exponents = np.frexp(largest)[1]
    tables = {j: class_frequencies(X[:, j], y, w, r) for j in categories}
    own = [class_frequencies_of_others(X[:, j], y, w, r) for j in categories]
    U = np.concatenate([scaled(X[:, numbers], exponents), *own], axis=1)
    present = ~np.isnan(U)
    U = np.where(present, U, 0.0)
    mass = np.maximum(share @ present, np.finfo(float).tiny)
    centre = (share @ U) / mass
    U = np.where(present, U - centre, 0.0)
    spread = np.sqrt((share @ U**2) / mass)
    constant = spread <= len(X) * np.finfo(float).eps  # what varies there is rounding
    spread = np.where(constant, 1.0, spread)
    U /= spread
    labels = np.zeros((len(y), r))
    labels[np.arange(len(y)), y] = share
    prior = labels.sum(axis=0)
    means = (labels.T @ U) / positive(prior)[:, None]
    within = (U * share[:, None]).T @ U - (means * prior[:, None]).T @ means
    variances, axes = np.linalg.eigh(CORRELATED * within + np.diag(ALONE * np.diag(within) + RIDGE))
    white = axes / np.sqrt(np.maximum(variances, RIDGE / 2))
    centred = (means - prior @ means) @ white
    ratio, turn = np.linalg.eigh((centred * prior[:, None]).T @ centred)
    stretch = np.sqrt(np.maximum(ratio, 0.0) / (1.0 + np.maximum(ratio, 0.0)) + LEAST_STRETCH)
    matrix = white @ turn * stretch
    return Metric(exponents, tables, centre, matrix / spread[:, None]), U @ matrix


def scaled(X: Array, exponents: Array) -> Array:
    """Return numbers on a scale of about one, bounded by `FAR`."""
    with np.errstate(over="ignore"):
        return np.clip(np.ldexp(X.astype(np.float64), -exponents), -FAR, FAR)


def unfolded(X: Array, exponents: Array, tables: dict[int, Array]) -> Array:
    """Return the numbers of a table on a scale of about one, then the places of its categories."""
    parts = [scaled(X[:, [j for j in range(X.shape[1]) if j not in tables]], exponents)]
    for j, table in tables.items():
        other = len(table) - 1
        known = (X[:, j] >= 0) & (X[:, j] < other)  # False for a missing cell
        parts.append(table[np.where(known, X[:, j], other).astype(np.int64)])
    return np.concatenate(parts, axis=1)


def class_frequencies(codes: Array, y: Array, w: Array, n_classes: int) -> Array:
    """Return the class frequencies of each category; the last row, of all rows, is for other cells.

    The distance of two categories is then the value difference metric. Rare ones are near all rows.
    """
    return shares_of_classes(class_counts(codes, y, w, n_classes), y, w)


def class_frequencies_of_others(codes: Array, y: Array, w: Array, n_classes: int) -> Array:
    """Return the class frequencies of the category of each row, by the rows of the other `PARTS`.

    With its own label in them, the frequencies of a rare category would tell the class of its rows.
    """
    counts = class_counts(codes, y, w, n_classes)
    cell = np.where(np.isnan(codes), len(counts) - 1, codes).astype(np.int64)
    part = np.arange(len(y)) % PARTS
    found = np.empty((len(y), 1 if n_classes == 2 else n_classes))
    for number in range(PARTS):
        here = part == number
        others = counts.copy()
        known = here & (cell < len(counts) - 1)
        np.add.at(others, (cell[known], y[known]), -w[known])
        found[here] = shares_of_classes(others, y, w)[cell[here]]
    return found


def class_counts(codes: Array, y: Array, w: Array, n_classes: int) -> Array:
    """Return the weight of each class in each category; the last row, for other cells, is empty."""
    known = ~np.isnan(codes)
    counts = np.zeros((int(codes[known].max(initial=-1)) + 2, n_classes))
    np.add.at(counts, (codes[known].astype(np.int64), y[known]), w[known])
    return counts


def shares_of_classes(counts: Array, y: Array, w: Array) -> Array:
    """Return counts as shares of each category, with `CATEGORY_ROWS` rows of the whole table added."""
    counts = counts + CATEGORY_ROWS * np.bincount(y, w, counts.shape[1]) / w.sum()
    found = counts / counts.sum(axis=1, keepdims=True)
    return found[:, 1:] if counts.shape[1] == 2 else found  # the two columns would say the same
