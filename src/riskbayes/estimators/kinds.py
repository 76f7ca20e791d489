"""Encoded columns by kind, and transformers of the members that treat numbers and categories differently."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from riskbayes.arrays import Array


@dataclass(frozen=True)
class Kinds:
    """The encoded columns that are numbers and those that are codes of categories."""

    numbers: tuple[int, ...]
    categories: tuple[int, ...] = ()

    @classmethod
    def of(cls, kinds: Sequence[str]) -> Self:
        """Return the columns of each kind, from the kind of each column."""
        at = enumerate(kinds)
        numbers = [j for j, kind in at if kind == "number"]
        return cls(tuple(numbers), tuple(j for j in range(len(kinds)) if j not in set(numbers)))


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


class OneHotCategories(BaseEstimator):
    """Replace every column of categories by indicators; a missing cell, or an unseen one, has only zeros.

    A category in nearly no row, or in nearly all, has no indicator: a Gaussian of it would be degenerate.

    Parameters
    ----------
    kinds : Kinds
        The columns.
    least : int, default=2
        The least number of rows with a category, and without it.
    """

    def __init__(self, kinds: Kinds, least: int = 2):
        self.kinds = kinds
        self.least = least

    def fit(self, X: Array, y: Any = None) -> Self:
        """Find the categories of each column."""
        self.cells_ = []
        for j in self.kinds.categories:
            codes, counts = np.unique(X[~np.isnan(X[:, j]), j], return_counts=True)
            often = (counts >= self.least) & (counts <= len(X) - self.least)
            self.cells_ += [(j, code) for code in codes[often].tolist()]
        return self

    def transform(self, X: Array) -> Array:
        """Return the numbers, then the indicators."""
        found = np.empty((len(X), len(self.kinds.numbers) + len(self.cells_)))
        found[:, : len(self.kinds.numbers)] = X[:, self.kinds.numbers]
        for place, (j, code) in enumerate(self.cells_, len(self.kinds.numbers)):
            found[:, place] = X[:, j] == code
        return found
