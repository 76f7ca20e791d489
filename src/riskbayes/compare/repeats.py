"""Rows that are equal in every column that models read: across the split, and with different labels."""

from __future__ import annotations

from dataclasses import dataclass

import narwhals as nw
import numpy as np

from riskbayes.arrays import Array
from riskbayes.compare.study import Study


@dataclass(frozen=True)
class Repeats:
    """How often rows repeat."""

    alike: Array
    """Mask of the held-out rows that have a training row of equal columns and label."""
    same: Array
    """Mask of those that are equal also in the columns that name rows, which models do not read."""
    names: tuple[str, ...]
    """These columns."""
    distinct: float
    """Number of distinct rows divided by that of all rows."""
    contradictory: int
    """Rows that no model gets right: those whose label is not the most frequent one of their equals."""


def repeats(study: Study) -> Repeats:
    """Return how often rows repeat in the table and across the split."""
    data, r = study.data, len(study.data.classes)
    row = codes_of_rows(data.Z)
    labelled = row * r + data.codes
    found, counts = np.unique(labelled, return_counts=True)
    most = np.zeros(int(row.max()) + 1, dtype=int)
    np.maximum.at(most, found // r, counts)
    ids = tuple(column.name for column in data.columns if column.reason.startswith("an identifier"))
    whole = labelled
    for name in ids:
        values = nw.from_native(data.X, eager_only=True)[name].to_list()
        whole = paired(whole, np.unique([str(value) for value in values], return_inverse=True)[1])
    alike, same = (
        np.concatenate([np.isin(rows[part.held], rows[part.kept]) for part in study.parts])
        for rows in (labelled, whole)
    )
    return Repeats(alike, same, ids, len(most) / len(row), int(len(row) - most.sum()))


def codes_of_rows(Z: Array) -> Array:
    """Return a number for each row, the same for equal rows; missing cells are equal to each other."""
    table = np.ascontiguousarray(Z + 0.0)  # a copy without negative zeros
    table[np.isnan(table)] = np.nan  # of which there is more than one
    whole = table.view(np.dtype((np.void, table.dtype.itemsize * table.shape[1]))).ravel()
    return np.unique(whole, return_inverse=True)[1]


def paired(first: Array, second: Array) -> Array:
    """Return a number for each pair of numbers, the same for equal pairs."""
    return np.unique(first * (int(second.max()) + 1) + second, return_inverse=True)[1]
