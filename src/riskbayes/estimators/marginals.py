"""What a fitted classifier says of rows of one or two columns, the others being missing, for pictures."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from riskbayes.arrays import Array, converted, to_numpy
from riskbayes.estimators.base import BaseGenerativeClassifier
from riskbayes.estimators.prediction import finish_rows, unchanged
from riskbayes.models.base import Fitted
from riskbayes.risks import log_posterior
from riskbayes.tables import names_of


def encoded_values(clf: Any, X: Any, column: Any) -> tuple[str, int, Array]:
    """Return the name of a column of numbers, its place among the encoded columns, and its values in rows.

    The column is given by its name or number in the user's table.
    """
    check_is_fitted(clf)
    names, _ = names_of(clf)
    j = column if isinstance(column, int) else names.index(column) if column in names else -1
    if not 0 <= j < len(names):
        raise ValueError(f"column={column!r} is no column of the classifier.")
    table, rows = clf._table, to_numpy(clf._encode_new(X, "explain"))
    place = j
    if table is not None:
        kinds = zip(table.encoded, table.kinds, strict=True)
        places = [i for i, ((own, _), kind) in enumerate(kinds) if own == j and kind == "number"]
        if not places:
            raise ValueError(
                f"Column {names[j]!r} is not read as a number, so that it has no density to draw. "
                "ParametersDisplay shows the probabilities of categories."
            )
        place = places[0]
    return str(names[j]), place, rows[:, place].astype(np.float64)


def closed_form_of(clf: Any) -> Fitted | None:
    """Return the closed form of an estimator of one generative model; None of one that chooses members."""
    if not isinstance(clf, BaseGenerativeClassifier):
        return None
    S = converted(clf.data_statistics_, to_numpy)
    return Fitted.of(clf.model_, S)


def log_posteriors(clf: Any, rows: Array, fitted: Fitted | None = None) -> Array:
    """Return the log posteriors of encoded rows, by default those of the calibrated classifier."""
    if fitted is None:
        return to_numpy(clf._finish_rows(rows, "scores", log_posterior))
    return finish_rows(clf, to_numpy(rows), "scores", log_posterior, fitted)


def column_density(clf: Any, grid: Array, place: int) -> tuple[Array, Array]:
    """Return p(x_j | y) at the values of a grid, in the closed form and calibrated, of shape (points, r)."""
    closed = closed_form_of(clf)
    if closed is None or not clf.model_.traits.normalised:
        raise NotImplementedError(
            f"{type(clf).__name__} has no density p(x | y): draw that of a model that has one, such as "
            "GaussianNB, QuadraticDiscriminantAnalysis or MixedNB."
        )
    rows = rows_of(clf, grid[:, None], (place,))
    found = []
    for fitted in (closed, Fitted(clf.model_, *converted((clf.statistics_, clf.parameters_), to_numpy))):
        joint = finish_rows(clf, rows, "log_joint", unchanged, fitted)
        found.append(np.exp(joint - fitted.theta.log_prior))
    return found[0], found[1]


def pair_posteriors(clf: Any, grid: Array, places: tuple[int, int]) -> tuple[Array, Array | None]:
    """Return the log posteriors over two columns, calibrated and in the closed form where there is one."""
    rows, closed = rows_of(clf, grid, places), closed_form_of(clf)
    return log_posteriors(clf, rows), None if closed is None else log_posteriors(clf, rows, closed)


def rows_of(clf: Any, values: Array, places: tuple[int, ...]) -> Array:
    """Return encoded rows with these values, and all other cells missing."""
    table = clf._table
    n = clf.n_features_in_ if table is None else len(table.kinds)
    if n > len(places):
        clf._check_cells_can_miss()
    rows = np.full((len(values), n), np.nan)
    rows[:, list(places)] = values
    return rows
