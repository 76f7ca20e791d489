"""What each column says on its own: a quick model of one column, judged on the held-out rows.

A column of categories has the frequencies of the classes by category, a column of numbers those of the leaves
of a small tree. A missing cell is a category, or goes its own way in the tree, for that a cell is missing may
give the answer away too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from riskbayes.arrays import Array
from riskbayes.compare.scores import row_losses
from riskbayes.compare.study import Part, Study

MOST_LEAVES, LEAST_ROWS = 32, 5
"""Of the tree of a column of numbers: its leaves, and the rows of a leaf."""

PRIOR_ROWS = 1.0
"""The shares of the classes in all rows count as this number of rows in every category and leaf."""


@dataclass(frozen=True)
class Alone:
    """A column's own model on the held-out rows."""

    column: str
    error: float
    """In percent."""
    log_loss: float


def alone(study: Study) -> list[Alone]:
    """Return the figures of every column that is read, the least log loss first."""
    found, r = [], len(study.data.classes)
    for j, column in enumerate(study.data.columns):
        if column.kind == "left out" and "is missing" not in column.encoded:
            continue
        P = np.concatenate([probabilities(part, j, study.data.codes[part.kept], r) for part in study.parts])
        losses = row_losses(P, study.held)
        found.append(Alone(column.name, float(losses["error"].mean()), float(losses["log_loss"].mean())))
    return sorted(found, key=lambda one: one.log_loss)


def probabilities(part: Part, j: int, codes: Array, r: int) -> Array:
    """Return the probabilities of a part's held-out rows by column j of the table."""
    places = [place for place, (own, _) in enumerate(part.encoder.encoded) if own == j]
    train, test = cells_of(part, j, codes, places)
    prior = np.bincount(codes, minlength=r) / len(codes)
    size = int(max(train.max(initial=0), test.max(initial=0))) + 1
    counts = np.bincount(train * r + codes, minlength=size * r).reshape(size, r) + PRIOR_ROWS * prior
    return (counts / counts.sum(axis=1, keepdims=True))[test]


def cells_of(part: Part, j: int, codes: Array, places: list[int]) -> tuple[Array, Array]:
    """Return the category or leaf of each training row and held-out row."""
    kind = part.encoder.readers[j].column.kind
    if not places:  # constant or an identifier in these training rows, without missing cells
        return np.zeros(len(part.kept), dtype=int), np.zeros(len(part.held), dtype=int)
    if kind in ("category", "left out"):
        train, test = (Z[:, places[0]] for Z in (part.Z_train, part.Z_test))
        return tuple(np.where(np.isnan(z), 0, z + 1).astype(int) for z in (train, test))  # type: ignore[return-value]
    tree = DecisionTreeClassifier(max_leaf_nodes=MOST_LEAVES, min_samples_leaf=LEAST_ROWS, random_state=0)
    train, test = ranks(part.Z_train[:, places], part.Z_test[:, places])
    tree.fit(train, codes)
    return tree.apply(train), tree.apply(test)


def ranks(train: Array, test: Array) -> tuple[Array, Array]:
    """Return each column's values as places among those of training, for trees read float32; NaN stays."""
    found = []
    for Z in (train, test):
        columns = [np.searchsorted(np.unique(own), column) for own, column in zip(train.T, Z.T, strict=True)]
        found.append(np.where(np.isnan(Z), np.nan, np.stack(columns, axis=1)))
    return found[0], found[1]
