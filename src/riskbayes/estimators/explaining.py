"""How `explain` finds what each column of a row contributed: as the model's own sum, or by Shapley values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted

from riskbayes.arrays import Array, to_numpy
from riskbayes.estimators.explanation import Explanation
from riskbayes.estimators.prediction import generator
from riskbayes.estimators.shapley import EXACT_COLUMNS, shapley_values
from riskbayes.exceptions import ColumnError
from riskbayes.risks import log_posterior
from riskbayes.tables import cell_values, encoded_names

MOST_EXPLAINED = 2**27
"""Most contributions of sparse rows that are computed: 1 GiB."""


def explain(clf: Any, X: Any, n_orders: int, random_state: Any) -> Explanation:
    """Return what each column of the rows contributed to the log-odds of the classes."""
    check_is_fitted(clf)
    if not isinstance(n_orders, Integral) or n_orders < 4 or n_orders % 2:
        raise ValueError(
            f"n_orders must be an even number of at least 4: an order and its reverse make one draw, and an "
            f"error needs two draws. Got {n_orders!r}."
        )
    rows, classes = clf._encode_new(X, "explain"), to_numpy(clf.classes_)
    if issparse(rows):
        check_explained(*rows.shape, len(classes))
    cells = cell_values(rows if issparse(rows) else X)
    found = clf._contributions(rows)
    if found is None:
        return by_orders(clf, X, rows, cells, int(n_orders), random_state)
    own = Explanation.centred(
        *(found.values, found.baseline, classes, model_columns(clf)),
        *(cells, clf._reads(found.values.shape[1]), X),
    )
    table, pairs = clf._table, found.pairs
    if table is not None:
        own, places = own.by_table_column(table), [j for j, _ in table.encoded]
        pairs = [(places[a], places[b]) for a, b in pairs]
    return own if found.of_pairs is None else own.with_pairs(found.of_pairs, pairs)


def by_orders(clf: Any, X: Any, rows: Array, cells: Array, n_orders: int, random_state: Any) -> Explanation:
    """Return the evidence of each column of the table, averaged over the orders in which they are seen."""
    clf._check_cells_can_miss()
    rows = to_numpy(rows).astype(np.float64)
    host = clf if isinstance(clf._fitted_on, np.ndarray) else clf.__sklearn_array_api_convert__(to_numpy)
    table, read = clf._table, clf._reads(rows.shape[1])
    names: Sequence[Any] = model_columns(clf)
    groups = [[j] for j in range(rows.shape[1])]
    if table is not None:
        names, groups = [reader.column.name for reader in table.readers], [[] for _ in table.readers]
        for place, (j, _) in enumerate(table.encoded):
            groups[j].append(place)
    groups = [[place for place in own if read[place]] for own in groups]
    seen = [j for j, own in enumerate(groups) if own]

    def value(Z: Array) -> Array:
        return host._finish_rows(Z, "scores", log_posterior)

    value(rows)  # refuses rows whose scores overflow, by their own number
    try:
        found = shapley_values(value, rows, [groups[j] for j in seen], n_orders, generator(random_state))
    except ColumnError as error:
        raise far_cell(error, rows) from None
    values, errors = np.zeros((2, len(rows), len(groups), len(found.prior)))
    values[:, seen], errors[:, seen] = found.values, found.errors
    own = Explanation.centred(
        *(values, found.prior, to_numpy(clf.classes_), list(names)),
        *(cells, np.isin(np.arange(len(groups)), seen), X),
    )
    exact = len(seen) <= EXACT_COLUMNS
    return replace(own, errors=errors, n_orders=None if exact else n_orders, is_sum=False)


def far_cell(error: ColumnError, rows: Array) -> ColumnError:
    """Return the error for a row whose scores overflow only while some of its cells are not seen."""
    x = rows[:, error.column]
    i = int(np.nanargmax(np.abs(x)))
    return ColumnError(
        error.column,
        f"of X holds {x[i]:g} in row {i} (counted from 0), too far from the rows of the fit for a finite "
        "score without the other cells of the row. If it stands for a missing value, fill it in or drop the "
        "row; otherwise clip it.",
        error.name,
    )


def model_columns(clf: Any) -> list[Any]:
    """Return the names of the columns that the model reads, or their indices if they have no names."""
    names = encoded_names(clf)
    return list(range(clf.n_features_in_)) if names is None else list(names)


def check_explained(m: int, n: int, r: int) -> None:
    """Refuse sparse rows whose contributions, which are dense, would take too much memory.

    One row is always explained.
    """
    most = max(1, MOST_EXPLAINED // (n * r))
    if m > most:
        raise ValueError(
            f"X has {m} sparse rows, and the contributions of their {n} columns to {r} classes are dense: "
            f"{m * n * r} numbers, which would take too much memory. Explain at most {most} rows at a time."
        )
