"""Which missing cell of a row to measure next: the one expected to say most about the class.

The gain of a cell is the mutual information of the class and the cell, given the observed cells of the row:
by how many nats its value is expected to lower the entropy of the posterior.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.special import xlogy

from riskbayes.arrays import Array, to_device, to_numpy
from riskbayes.estimators.joint import on_host, require_method
from riskbayes.estimators.kinds import read_columns
from riskbayes.estimators.prediction import finish_rows
from riskbayes.risks import posterior
from riskbayes.tables import naming_columns

BLOCK_CELLS = 2**21
"""Upper bound on the numbers of an array of densities: 16 MiB of float64."""

USUAL_VALUES = 64
"""Values of a cell for each class that a block of rows is planned for."""


@dataclass(frozen=True)
class NextCell:
    """How much each missing cell of rows is expected to say about the class.

    Attributes
    ----------
    values : ndarray of shape (m, n)
        Expected gain of information of measuring the cell, in nats; NaN where it is not missing.
    columns : list
        Names of the columns that the model reads, or their indices if they have no names.
    """

    values: Array
    columns: list[Any]

    @property
    def best(self) -> list[Any]:
        """The column to measure next in each row; None where no cell is missing."""
        place = np.nan_to_num(self.values, nan=-1.0).argmax(axis=1)
        none = np.isnan(self.values).all(axis=1)
        return [None if gone else self.columns[j] for j, gone in zip(place, none, strict=True)]


def next_cell(clf: Any, X: Any) -> NextCell:
    """Return the expected gain of information of each missing cell."""
    require_method(clf, "cell_densities", "tell what a cell is expected to say")
    rows = clf._encode_new(X, "next_cell")
    if issparse(rows):
        raise ValueError("next_cell looks for missing cells, and sparse rows have none. Pass dense rows.")
    rows = to_numpy(rows).astype(np.float64)
    columns, _ = read_columns(clf, rows.shape[1])
    for column in columns:  # a cell that nobody has measured yet says nothing by being missing
        unknown = np.isnan(rows[:, column.values]).all(axis=1)
        marks = [j for j in column.encoded if j not in column.values]
        rows[np.ix_(unknown, marks)] = np.nan
    P = to_numpy(finish_rows(clf, to_device(rows, clf._fitted_on), "scores", posterior)).astype(np.float64)
    (frame, theta), step = on_host(clf), max(1, BLOCK_CELLS // (USUAL_VALUES * P.shape[1] ** 2))
    found = np.full((len(rows), len(columns)), np.nan)
    with naming_columns(clf):
        for c, column in enumerate(columns):
            for j in column.values:
                missing = np.flatnonzero(np.isnan(rows[:, j]))
                for start in range(0, len(missing), step):
                    own = missing[start : start + step]
                    Z = clf.model_.encode(rows[own], frame)
                    gains = information(P[own], *clf.model_.cell_densities(Z, theta, j))
                    found[own, c] = np.fmax(found[own, c], gains)
    return NextCell(found, [column.name for column in columns])


def information(P: Array, log_density: Array, weights: Array) -> Array:
    """Return the mutual information of the class and a cell, from p(y | x_o) and p(x_j | x_o, y).

    Densities are normalised by their sums, which a quadrature takes. With e = sum_y p(y) p(x_j | y) it is
    sum_y p(y) p(x_j | y) log p(x_j | y) - e log e, summed over x_j.
    """
    log_density = log_density - log_density.max(axis=(1, 2), keepdims=True)
    density = np.exp(log_density)
    masses = (weights[:, None, :] @ density)[:, 0, :]
    density /= masses[:, None, :]
    each = weights[:, :, None] * xlogy(density, density)
    mixed = (density @ P[:, :, None])[:, :, 0]
    return np.maximum((each.sum(axis=1) * P).sum(axis=1) - (weights * xlogy(mixed, mixed)).sum(axis=1), 0.0)
