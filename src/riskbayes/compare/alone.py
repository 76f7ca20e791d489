"""What each column says on its own: a quick model of one column, judged on the held-out rows.

A column of categories has the frequencies of the classes by category, a column of numbers those of the leaves
of a small tree: a coarse one, or a fine one where that has the lower log loss, as for a copy of many classes.
A missing cell is a category, or goes its own way in the tree, for that a cell is missing may give the answer
away too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from riskbayes.arrays import Array
from riskbayes.compare.scores import Ranking, ranking, row_losses
from riskbayes.compare.study import Part, Study

TREES = ((8, 20), (32, 5), (4, 0.05))
"""Of the trees of a column of numbers: the most leaves, and the fewest rows of a leaf or their share. The
last one, of large leaves, is for rare classes: leaves with a few rows of them have no reliable shares."""

PRIOR_ROWS = 1.0
"""The shares of the classes in all rows count as this number of rows in every category and leaf."""


@dataclass(frozen=True)
class Alone:
    """A column's own model on the held-out rows."""

    column: str
    error: float
    """In percent."""
    log_loss: float
    area: Ranking | None
    """How well it ranks rows; None if no part of the split has two classes."""


def alone(study: Study) -> list[Alone]:
    """Return the figures of every column that is read, the least log loss first."""
    found, r = [], len(study.data.classes)
    for j, column in enumerate(study.data.columns):
        if column.kind == "left out" and "is missing" not in column.encoded:
            continue
        tried = []
        for tree in TREES if "number" in column.encoded else TREES[:1]:
            known = [(part, study.data.codes[part.kept]) for part in study.parts]
            P = np.concatenate([probabilities(part, j, codes, r, tree) for part, codes in known])
            losses = row_losses(P, study.held)
            error, log_loss = (float(losses[name].mean()) for name in ("error", "log_loss"))
            area = ranking(P, study.held, study.groups, study.folds)
            tried.append(Alone(column.name, error, log_loss, area))
        found.append(min(tried, key=lambda one: one.log_loss))
    return sorted(found, key=lambda one: one.log_loss)


def probabilities(part: Part, j: int, codes: Array, r: int, tree: tuple[int, float]) -> Array:
    """Return the probabilities of a part's held-out rows by column j of the table."""
    places = [place for place, (own, _) in enumerate(part.encoder.encoded) if own == j]
    return leaf_shares(*cells_of(part, j, codes, places, tree), codes, r)


def leaf_shares(train: Array, test: Array, codes: Array, r: int) -> Array:
    """Return the shares of the r classes among training rows in the category or leaf of each held-out row."""
    prior = np.bincount(codes, minlength=r) / len(codes)
    size = int(max(train.max(initial=0), test.max(initial=0))) + 1
    counts = np.bincount(train * r + codes, minlength=size * r).reshape(size, r) + PRIOR_ROWS * prior
    return (counts / counts.sum(axis=1, keepdims=True))[test]


def cells_of(
    part: Part, j: int, codes: Array, places: list[int], size: tuple[int, float]
) -> tuple[Array, Array]:
    """Return the category or leaf of each training row and held-out row; `size` is one of `TREES`."""
    kind = part.encoder.readers[j].column.kind
    if not places:  # constant or an identifier in these training rows, without missing cells
        return np.zeros(len(part.kept), dtype=int), np.zeros(len(part.held), dtype=int)
    if kind in ("category", "left out"):
        train, test = (Z[:, places[0]] for Z in (part.Z_train, part.Z_test))
        return tuple(np.where(np.isnan(z), 0, z + 1).astype(int) for z in (train, test))  # type: ignore[return-value]
    return leaves_of(part.Z_train[:, places], part.Z_test[:, places], codes, size)


def leaves_of(train: Array, test: Array, codes: Array, size: tuple[int, float]) -> tuple[Array, Array]:
    """Return the leaf of each training row and held-out row in a tree of these columns.

    It reads values as places among those of training, for trees read float32; NaN stays.
    """
    found = []
    for Z in (train, test):
        columns = [np.searchsorted(np.unique(own), column) for own, column in zip(train.T, Z.T, strict=True)]
        found.append(np.where(np.isnan(Z), np.nan, np.stack(columns, axis=1)))
    leaves, rows = size
    tree = DecisionTreeClassifier(max_leaf_nodes=leaves, min_samples_leaf=rows, random_state=0)
    tree.fit(found[0], codes)
    return tree.apply(found[0]), tree.apply(found[1])
