"""Encoded columns by kind, and the transformer of members that read indicators of categories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator

from riskbayes.arrays import Array
from riskbayes.onnx_export.columns import Columns, Encoded
from riskbayes.tables import encoded_names, plain


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


class ReadColumn(NamedTuple):
    """A column of the table, and what models read of it."""

    name: Any
    encoded: list[int]
    """The encoded columns that were made of it."""
    values: list[int]
    """Those of them that hold its values; others are marks of missing cells. Of a column that is only marked,
    the mark."""


def read_columns(clf: Any, n: int) -> tuple[list[ReadColumn], list[str]]:
    """Return the columns of the table that a classifier reads, and the kind of each of n encoded columns."""
    table, names = clf._table, encoded_names(clf)
    if table is None:
        kinds = ["category" if each else "number" for each in clf._input.category_mask(clf)]
        named = range(n) if names is None else [plain(name) for name in names]
        return [ReadColumn(name, [j], [j]) for j, name in enumerate(named)], kinds
    found: dict[int, ReadColumn] = {}
    for j, ((owner, _), kind) in enumerate(zip(table.encoded, table.kinds, strict=True)):
        column = found.setdefault(owner, ReadColumn(table.readers[owner].column.name, [], []))
        column.encoded.append(j)
        if kind != "mark":
            column.values.append(j)
    return [one if one.values else one._replace(values=one.encoded) for one in found.values()], table.kinds


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

    def reads(self, n: int) -> Array:
        """Return a mask of the n columns that are read."""
        return np.isin(np.arange(n), [*self.kinds.numbers, *(j for j, _ in self.cells_)])

    def transform(self, X: Array) -> Array:
        """Return the numbers, then the indicators."""
        found = np.empty((len(X), len(self.kinds.numbers) + len(self.cells_)))
        found[:, : len(self.kinds.numbers)] = X[:, self.kinds.numbers]
        for place, (j, code) in enumerate(self.cells_, len(self.kinds.numbers)):
            found[:, place] = X[:, j] == code
        return found

    def onnx_columns(self, columns: Columns) -> Columns:
        """Return what the transformed columns are made of, given the encoded ones."""
        kept = [columns.encoded[j] for j in self.kinds.numbers]
        asked = [(columns.encoded[j], int(code)) for j, code in self.cells_]
        made = [Encoded(of.source, "indicator", of=of, code=code) for of, code in asked]
        return replace(columns, encoded=(*kept, *made))
