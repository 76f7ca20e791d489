"""Predictions of fitted classifiers for rows wherever they are, and samples from their joint."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._array_api import check_same_namespace
from sklearn.utils.validation import check_is_fitted

from riskbayes.arrays import (
    Array,
    astype,
    converted,
    dense_row,
    max_of,
    namespace,
    sum_of,
    take_rows,
    to_device,
    to_numpy,
)
from riskbayes.engines.memory import MemoryEngine
from riskbayes.estimators.checks import or_wider
from riskbayes.exceptions import ColumnError
from riskbayes.input.source import Result
from riskbayes.input.sources import source_of
from riskbayes.models.base import Fitted, draw_rows
from riskbayes.new_files import new_files
from riskbayes.risks import posterior
from riskbayes.tables import naming_columns

Finish = Callable[[Array], Array]
"""What makes a prediction of log joints or scores."""

MOST_SUSPECTS = 64
"""How many columns of a row that overflows are tried one by one, the farthest from the fit's centre first."""

PREDICTIONS = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "predict_joint_log_proba",
    "decision_function",
    "score_samples",
    "predict_set",
)
"""Methods that `predict_to` writes the results of."""


@dataclass(frozen=True)
class Prediction:
    """What a classifier predicts of rows: the method asked for, its formula, and what is made of it."""

    clf: Any
    method: str
    formula: str
    """"log_joint", or "scores", which are log joints up to a constant of the row."""
    finish: Finish
    one: bool = False
    """True if the results are one value a row, otherwise one of each class."""
    labels: bool = False
    """True if they are codes of classes, whose labels are returned."""
    dtype: str = "float64"
    """Of the results, unless they are labels."""

    def __call__(self, X: Any) -> Array:
        """Return the results for rows in memory."""
        clf = self.clf
        found = clf._finish_rows(clf._encode_new(X, self.method), self.formula, self.finish)
        return labels_of(clf, found) if self.labels else found

    def of(self, X: Any) -> Any:
        """Return the results for rows wherever they are: an array, an iterator, or a lazy collection."""
        clf = self.clf
        check_is_fitted(clf)
        dtype = getattr(clf.classes_, "dtype", np.dtype(object)) if self.labels else np.dtype(self.dtype)
        return source_of(X).map(self, Result(None if self.one else clf.classes_.shape[0], dtype))


def labels_of(clf: Any, codes: Array) -> Array:
    """Return the labels of class codes, on their device unless `classes_` is a NumPy array."""
    return take_rows(clf.classes_, to_numpy(codes) if isinstance(clf.classes_, np.ndarray) else codes)


def encode_new(clf: Any, X: Any, method: str) -> Array:
    """Return encoded rows to predict; refuse rows that are not on the device of the fit."""
    check_same_namespace(X, clf, attribute="_fitted_on", method=method)
    return clf._input.encode(clf, clf._input.read(clf, X, reset=False, learn=False))


def finish_rows(
    clf: Any, X: Array, formula: str, finish: Finish, fitted: Fitted | None = None, name: str = "X"
) -> Array:
    """Apply `finish` to the `log_joint` or the `scores` of encoded rows, chunk by chunk.

    Rows whose scores overflow are refused. By default the scores are those of the fitted model, where a
    class without rows, which only a stream may have, gets the score -inf.
    """
    seen: Any = None
    if fitted is None:
        fitted = Fitted(clf.model_, clf.statistics_, clf.parameters_)
        seen = clf.data_statistics_["s0"] > 0
        seen = None if bool(namespace(seen).all(seen)) else seen[None, :]
    score = getattr(fitted.model, formula)

    def work(Z: Any, theta: Any, first: int) -> Array:
        joint = score(Z, theta)
        if seen is not None:
            joint = namespace(joint).where(seen, joint, -np.inf)
        bad = first_overflow(joint)
        if bad is not None:
            raise far_row(X, first + bad, formula, fitted, name)
        return finish(joint)

    engine = MemoryEngine(X, None, None, fitted.S["s0"].shape[0])
    with naming_columns(clf), np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused
        return engine.map_rows([fitted], work)[0]


def check_rows(clf: Any, X: Array, fitted: Fitted, name: str = "X") -> None:
    """Refuse encoded rows whose log joints overflow."""
    finish_rows(clf, X, "log_joint", most_probable, fitted, name)


def far_row(X: Array, i: int, formula: str, fitted: Fitted, name: str = "X") -> ColumnError:
    """Return the error for row i, whose scores overflow; it names the column that causes the overflow.

    That is the farthest column from the fit's centre whose value overflows even in a row that is at the
    centre otherwise; if there is none, the farthest column.
    """
    x = dense_row(X, i).astype(np.float64)
    centre = fitted.model.centre(fitted.S.frame)
    centre = np.zeros_like(x) if centre is None else to_numpy(centre)
    suspects = np.argsort(-np.abs(x - centre))[:MOST_SUSPECTS]
    rows = np.tile(centre, (len(suspects), 1))
    rows[np.arange(len(suspects)), suspects] = x[suspects]
    Z = fitted.model.encode(astype(to_device(rows, X), X.dtype), fitted.S.frame)
    bad = first_overflow(getattr(fitted.model, formula)(Z, fitted.model.cast(fitted.theta, Z)))
    j = int(suspects[0 if bad is None else bad])
    return ColumnError(
        j,
        f"of {name} holds {x[j]:g} in row {i} (counted from 0), too far from the rows of the fit for a "
        "finite score. If it stands for a missing value, fill it in or drop the row; otherwise clip it"
        f"{or_wider(X)}.",
    )


def first_overflow(joint: Array) -> int | None:
    """Return the first row whose maximum is not finite, or that has a NaN; None if there is none.

    Single entries may be -inf: those of a class without mass.
    """
    if math.isfinite(float(sum_of(joint))):
        return None
    bad = ~namespace(joint).isfinite(max_of(joint, axis=1))  # NaN is the maximum of a row that has it
    rows = np.flatnonzero(to_numpy(bad))
    return int(rows[0]) if len(rows) else None


def unchanged(joint: Array) -> Array:
    """Return log joints as they are."""
    return joint


def log_odds(joint: Array) -> Array:
    """Return the log odds of the second class of two."""
    return joint[:, 1] - joint[:, 0]


def most_probable(joint: Array) -> Array:
    """Return the code of the class with the largest posterior."""
    return namespace(joint).argmax(joint, axis=1)


def least_cost(joint: Array, C: Array) -> Array:
    """Return the code of the class with the least expected cost under the posterior."""
    P = posterior(joint)
    return namespace(P).argmin(P @ astype(to_device(C, P), P.dtype), axis=1)


def sample(clf: Any, n_samples: int, random_state: Any) -> tuple[Array, Array]:
    """Draw rows and labels from the joint of a fitted model."""
    check_is_fitted(clf)
    if not isinstance(n_samples, Integral) or n_samples < 1:
        raise ValueError(f"n_samples must be a whole number of at least 1; got {n_samples!r}.")
    if not (clf.model_.traits.normalised or clf.model_.implements("sample_rows")):
        raise NotImplementedError(
            f"{type(clf).__name__} has no distribution to draw from: its joint is not normalised."
        )
    theta = clf._input.drawn(clf, converted(clf.parameters_, to_numpy))
    X, y = draw_rows(clf.model_, theta, int(n_samples), generator(random_state))
    return clf._input.decode(clf, to_device(X, clf._fitted_on)), labels_of(clf, to_device(y, clf._fitted_on))


def generator(random_state: Any) -> np.random.Generator:
    """Return the generator to draw with, for any `random_state` of scikit-learn."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(check_random_state(random_state).randint(2**31))


def predict_to(clf: Any, X: Any, path: Any, method: str) -> Path:
    """Write the results of a method to a Parquet file, batch after batch."""
    import pyarrow as pa  # an optional dependency, slow to import
    import pyarrow.parquet as pq

    check_is_fitted(clf)
    if method not in PREDICTIONS or not hasattr(clf, method):
        known = ", ".join(repr(name) for name in PREDICTIONS if hasattr(clf, name))
        raise ValueError(f"predict_to writes the results of {known}; got {method!r}.")
    found = getattr(clf, method)(X)
    with new_files(path) as (file,), ExitStack() as opened:
        writer = None
        for batch in found if isinstance(found, Iterator) else [found]:
            values = np.asarray(batch)
            names = [method] if values.ndim == 1 else map(str, clf.classes_)
            table = pa.table(dict(zip(names, np.atleast_2d(values.T), strict=True)))
            writer = writer or opened.enter_context(pq.ParquetWriter(file, table.schema))
            writer.write_table(table)
        if writer is None:
            raise ValueError("The rows are empty: there is nothing to predict.")
    return Path(path)
