"""Encoded columns by kind, and the transformer of members that read indicators of categories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from riskbayes.arrays import Array


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
