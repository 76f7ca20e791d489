"""Predictions of a fitted model (log joint, posterior, class), and samples from its joint."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._array_api import check_same_namespace
from sklearn.utils.metaestimators import available_if
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
from riskbayes.engines import engine_for
from riskbayes.estimators.batches import BatchPredictions
from riskbayes.estimators.checks import or_wider
from riskbayes.exceptions import ColumnError
from riskbayes.input.source import Result
from riskbayes.input.sources import source_of
from riskbayes.models.base import Fitted, GenerativeModel, draw_rows
from riskbayes.objectives import check_cost_matrix
from riskbayes.risks import log_evidence, log_posterior, posterior
from riskbayes.statistics import Statistics
from riskbayes.tables import naming_columns

MOST_SUSPECTS = 64
"""How many columns of a row that overflows are tried one by one, the farthest from the fit's centre first."""


class PredictionMixin(BatchPredictions):
    """The prediction methods of an estimator."""

    model_: GenerativeModel
    parameters_: Any
    statistics_: Statistics
    data_statistics_: Statistics
    classes_: Array

    _has_decision_function: ClassVar[bool] = True
    """False to leave out `decision_function`."""

    def _read(self, X: Any, *, reset: bool, learn: bool) -> Any:
        raise NotImplementedError

    def _encode(self, cells: Any) -> Array:
        raise NotImplementedError

    def _decode(self, X: Array) -> Array:
        """Return encoded rows as the user's values: the inverse of `_encode`."""
        return X

    def _drawn(self, theta: Any) -> Any:
        """Return the parameters that `sample` draws from, given those of the model as NumPy arrays."""
        return theta

    def predict_joint_log_proba(self, X: Any) -> Array:
        """Return the log joint log p(x, y) of each row and class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_joint : ndarray of shape (n_samples, n_classes)
            Columns follow `classes_`.
        """
        return self._predict(X, "predict_joint_log_proba", "log_joint", unchanged)

    def _predict(
        self, X: Any, method: str, formula: str, finish: Callable[[Array], Array], one: bool = False
    ) -> Any:
        """Apply `finish` to the `log_joint` or the `scores` of rows, wherever they come from.

        The result is an array, an iterator over those of batches, or a lazy collection; with `one` it has one
        value a row.
        """
        check_is_fitted(self)
        width = None if one else int(self.classes_.shape[0])
        return source_of(X).map(
            Prediction(self, method, formula, finish), Result(width, np.dtype(np.float64))
        )

    def _map_rows(
        self,
        X: Array,
        formula: str,
        finish: Callable[[Array], Array],
        fitted: Fitted | None = None,
        name: str = "X",
    ) -> Array:
        """Apply `finish` to the `log_joint` or the `scores` of encoded rows, chunk by chunk.

        Rows whose scores overflow are refused. By default the scores are those of the fitted model, where a
        class without rows, which only a stream may have, gets the score -inf.
        """
        seen: Any = None
        if fitted is None:
            fitted = Fitted(self.model_, self.statistics_, self.parameters_)
            seen = self.data_statistics_["s0"] > 0
            seen = None if bool(namespace(seen).all(seen)) else seen[None, :]
        score = getattr(fitted.model, formula)

        def work(Z: Any, theta: Any, first: int) -> Array:
            joint = score(Z, theta)
            if seen is not None:
                joint = namespace(joint).where(seen, joint, -np.inf)
            bad = first_overflow(joint)
            if bad is not None:
                raise self._far_row(X, first + bad, formula, fitted, name)
            return finish(joint)

        engine = engine_for(X, None, None, fitted.S["s0"].shape[0])
        with naming_columns(self), np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused
            return engine.map_rows([fitted], work)[0]

    def _check_rows(self, X: Array, fitted: Fitted, name: str = "X") -> None:
        """Refuse encoded rows whose log joints overflow."""
        self._map_rows(X, "log_joint", most_probable, fitted, name)

    def _far_row(self, X: Array, i: int, formula: str, fitted: Fitted, name: str = "X") -> ColumnError:
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

    @property
    def _fitted_on(self) -> Array:
        """An array of the library and on the device of the fit."""
        return self.data_statistics_["s0"]

    def _encode_again(self, X: Any, method: str) -> Array:
        """Return encoded rows to predict; refuse rows that are not on the device of the fit."""
        check_is_fitted(self)
        check_same_namespace(X, self, attribute="_fitted_on", method=method)
        return self._encode(self._read(X, reset=False, learn=False))

    def score_samples(self, X: Any) -> Array:
        """Return the log density (or log probability) log p(x) of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            Log density under the calibrated joint.
        """
        check_is_fitted(self)
        if not self.model_.traits.describes_rows:
            raise NotImplementedError(
                f"{type(self).__name__} has no density p(x): its model compares rows with training rows, "
                "which tells classes apart, but not likely rows from unlikely ones. Fit a model that has "
                "one, such as SmoothNB."
            )
        return self._predict(X, "score_samples", "log_joint", log_evidence, one=True)

    def predict_log_proba(self, X: Any) -> Array:
        """Return the log posterior log p(y | x).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_proba : ndarray of shape (n_samples, n_classes)
            Columns follow `classes_`.
        """
        return self._predict(X, "predict_log_proba", "scores", log_posterior)

    def predict_proba(self, X: Any) -> Array:
        """Return the posterior p(y | x).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Columns follow `classes_`.
        """
        return self._predict(X, "predict_proba", "scores", posterior)

    def predict(self, X: Any) -> Array:
        """Return the class of the largest posterior; after training for costs, that of least expected cost.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels.
        """
        costs = getattr(self, "cost_matrix_", None)
        decide = most_probable if costs is None else partial(least_cost, C=costs)
        return self._predict_labels(X, "predict", decide)

    def _predict_labels(self, X: Any, method: str, decide: Callable[[Array], Array]) -> Any:
        """Return the labels of the classes whose codes `decide` returns of the scores of rows."""
        check_is_fitted(self)
        result = Result(None, getattr(self.classes_, "dtype", np.dtype(object)))
        return source_of(X).map(Prediction(self, method, "scores", decide, labels=True), result)

    def _labels(self, codes: Array) -> Array:
        """Return the labels of class codes, on their device unless `classes_` is a NumPy array."""
        if isinstance(self.classes_, np.ndarray):
            codes = to_numpy(codes)
        return take_rows(self.classes_, codes)

    def decide(self, X: Any, cost_matrix: Any) -> Array:
        """Return the class of least expected cost under the posterior, however the model was trained.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        cost_matrix : array-like of shape (n_classes, n_classes)
            Entry (i, j) is the cost of deciding for class j if class i is true; both follow `classes_`.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels.
        """
        check_is_fitted(self)
        C = check_cost_matrix(cost_matrix, self.classes_.shape[0], "cost_matrix")
        return self._predict_labels(X, "decide", partial(least_cost, C=C))

    @available_if(lambda self: self._has_decision_function)
    def decision_function(self, X: Any) -> Array:
        """Return the log joint of each class; for two classes the log odds of the second.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            The larger, the more probable the class.
        """
        check_is_fitted(self)
        if self.classes_.shape[0] == 2:  # the constant of a row that scores may lack cancels
            return self._predict(X, "decision_function", "scores", log_odds, one=True)
        return self._predict(X, "decision_function", "log_joint", self._class_scores)

    def _class_scores(self, joint: Array) -> Array:
        """Return the scores of `decision_function` with three classes or more, from log joints."""
        return joint

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Array, Array]:
        """Draw rows and labels from the calibrated joint.

        Categories that only `min_categories` adds have a probability but no value: in columns that are coded
        by value they are not drawn.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows to draw.
        random_state : int, RandomState instance, Generator or None, default=None
            Makes the draw repeatable.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Rows.
        y : ndarray of shape (n_samples,)
            Labels.
        """
        check_is_fitted(self)
        if not isinstance(n_samples, Integral) or n_samples < 1:
            raise ValueError(f"n_samples must be a whole number of at least 1; got {n_samples!r}.")
        if not (self.model_.traits.normalised or self.model_.writes("sample_rows")):
            raise NotImplementedError(
                f"{type(self).__name__} has no distribution to draw from: its joint is not normalised."
            )
        theta = self._drawn(converted(self.parameters_, to_numpy))
        X, y = draw_rows(self.model_, theta, int(n_samples), generator(random_state))
        return self._decode(to_device(X, self._fitted_on)), self._labels(to_device(y, self._fitted_on))


@dataclass(frozen=True)
class Prediction:
    """What an estimator predicts of rows: the method asked for, its formula, and what is made of it."""

    clf: Any
    method: str
    formula: str
    finish: Callable[[Array], Array]
    labels: bool = False
    """True if the results are codes of classes, whose labels are returned."""

    def __call__(self, X: Any) -> Array:
        """Return the results for rows in memory."""
        clf = self.clf
        found = clf._map_rows(clf._encode_again(X, self.method), self.formula, self.finish)
        return clf._labels(found) if self.labels else found


def unchanged(joint: Array) -> Array:
    """Return log joints as they are."""
    return joint


def log_odds(joint: Array) -> Array:
    """Return the log odds of the second class of two."""
    return joint[:, 1] - joint[:, 0]


def generator(random_state: Any) -> np.random.Generator:
    """Return the generator to draw with, for any `random_state` of scikit-learn."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(check_random_state(random_state).randint(2**31))


def first_overflow(joint: Array) -> int | None:
    """Return the first row whose maximum is not finite, or that has a NaN; None if there is none.

    Single entries may be -inf: those of a class without mass.
    """
    if math.isfinite(float(sum_of(joint))):
        return None
    bad = ~namespace(joint).isfinite(max_of(joint, axis=1))  # NaN is the maximum of a row that has it
    rows = np.flatnonzero(to_numpy(bad))
    return int(rows[0]) if len(rows) else None


def most_probable(joint: Array) -> Array:
    """Return the code of the class with the largest posterior."""
    return namespace(joint).argmax(joint, axis=1)


def least_cost(joint: Array, C: Array) -> Array:
    """Return the code of the class with the least expected cost under the posterior."""
    P = posterior(joint)
    return namespace(P).argmin(P @ astype(to_device(C, P), P.dtype), axis=1)
