"""Encoded columns by kind, and transformers of the members that treat numbers and categories differently."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from riskbayes.arrays import Array
from riskbayes.preprocessing.bins import KMeansBins


@dataclass(frozen=True)
class Kinds:
    """The encoded columns that are numbers, codes of categories, and marks of missing cells."""

    numbers: tuple[int, ...]
    categories: tuple[int, ...] = ()
    marks: tuple[int, ...] = ()

    @property
    def mixed(self) -> bool:
        """True if there are other columns than numbers."""
        return bool(self.categories or self.marks)

    @classmethod
    def of(cls, kinds: Sequence[str]) -> Self:
        """Return the columns of each kind, from the kind of each column."""
        named = ("number", "category", "mark")
        return cls(*(tuple(j for j, kind in enumerate(kinds) if kind == name) for name in named))


def of_numbers(n: int) -> Kinds:
    """Return n columns of numbers."""
    return Kinds(tuple(range(n)))


class OnNumbers(BaseEstimator):
    """Apply a transformer to the numbers of a table; categories follow as they are.

    Parameters
    ----------
    transformer : transformer
        It returns as many columns as it is given.
    kinds : Kinds
        The columns.
    """

    def __init__(self, transformer: Any, kinds: Kinds):
        self.transformer = transformer
        self.kinds = kinds

    def fit(self, X: Array, y: Any = None) -> Self:
        """Fit the transformer to the numbers."""
        self.transformer_ = clone(self.transformer)
        if self.kinds.numbers:
            self.transformer_.fit(X[:, self.kinds.numbers])
        return self

    def transform(self, X: Array) -> Array:
        """Return the table with transformed numbers, in the order of its columns."""
        found = X.copy()
        if self.kinds.numbers:
            found[:, self.kinds.numbers] = self.transformer_.transform(X[:, self.kinds.numbers])
        return found


class BinnedTable(BaseEstimator):
    """Bin the numbers of a table; a missing cell has a code of its own in every column.

    Trees read missing cells faster so than by summing over them.

    Parameters
    ----------
    kinds : Kinds
        The columns.
    """

    def __init__(self, kinds: Kinds):
        self.kinds = kinds

    def fit(self, X: Array, y: Any = None) -> Self:
        """Learn the bins, and the largest code of each column."""
        self.bins_ = OnNumbers(KMeansBins(), self.kinds).fit(X)
        codes = self.bins_.transform(X)
        self.missing_ = np.where(np.isnan(codes), -1.0, codes).max(axis=0) + 1
        return self

    def transform(self, X: Array) -> Array:
        """Return codes from 0."""
        codes = self.bins_.transform(X)
        return np.where(np.isnan(codes), self.missing_, codes).astype(np.int64)


class FilledNumbers(BaseEstimator):
    """Fill the missing numbers of a table by the means of their columns.

    Mixtures read filled columns: to sum over missing cells in each of their components is slow.

    Parameters
    ----------
    kinds : Kinds
        The columns.
    """

    def __init__(self, kinds: Kinds):
        self.kinds = kinds

    def fit(self, X: Array, y: Any = None) -> Self:
        """Learn the means of the cells that are present; zero in a column that has none."""
        present = ~np.isnan(X)
        self.means_ = np.where(present, X, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1)
        return self

    def transform(self, X: Array) -> Array:
        """Return the table without missing numbers."""
        numbers = np.isin(np.arange(X.shape[1]), self.kinds.numbers)
        return np.where(np.isnan(X) & numbers, self.means_, X)


class OneHotCategories(BaseEstimator):
    """Replace every column of categories by indicators; a missing cell, or an unseen one, has only zeros.

    Only the categories whose indicators vary most have one.

    Parameters
    ----------
    kinds : Kinds
        The columns.
    most : int
        The most indicators.
    """

    def __init__(self, kinds: Kinds, most: int):
        self.kinds = kinds
        self.most = most

    def fit(self, X: Array, y: Any = None) -> Self:
        """Find the categories of each column."""
        found = []
        for j in (*self.kinds.categories, *self.kinds.marks):
            codes, counts = np.unique(X[~np.isnan(X[:, j]), j], return_counts=True)
            varies = counts * (len(X) - counts)
            found += [(-v, j, code) for v, code in zip(varies.tolist(), codes.tolist(), strict=True)]
        self.cells_ = sorted((j, code) for _, j, code in sorted(found)[: self.most])
        return self

    def transform(self, X: Array) -> Array:
        """Return the numbers, then the indicators."""
        found = np.empty((len(X), len(self.kinds.numbers) + len(self.cells_)))
        found[:, : len(self.kinds.numbers)] = X[:, self.kinds.numbers]
        for place, (j, code) in enumerate(self.cells_, len(self.kinds.numbers)):
            found[:, place] = X[:, j] == code
        return found
