"""The one predict path: log joint, log-sum-exp, argmax; and draws from the joint."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._array_api import check_same_namespace
from sklearn.utils.validation import check_is_fitted

from riskbayes.arrays import Array, as_kind, converted, namespace, sent_to, take_rows, to_numpy
from riskbayes.engines.array_api import ArrayEngine
from riskbayes.engines.memory import CHUNK_CELLS, row_chunks
from riskbayes.engines.threads import available_threads, in_threads
from riskbayes.learners.objectives import check_cost_matrix
from riskbayes.models.base import GenerativeModel
from riskbayes.risks import log_evidence
from riskbayes.statistics import Statistics


class PredictionMixin:
    """What a fitted model answers."""

    model_: GenerativeModel
    parameters_: Any
    data_statistics_: Statistics
    classes_: Array

    def _encode(self, X: Any, *, reset: bool, learn: bool) -> Array:
        raise NotImplementedError

    def _decode(self, X: Array) -> Array:
        return X

    def _drawn(self, theta: Any) -> Any:
        """What `sample` draws from, of the parameters on the host."""
        return theta

    def predict_joint_log_proba(self, X: Any) -> Array:
        """Log joint log p(x, y) of each row and class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_joint : ndarray of shape (n_samples, n_classes)
            Columns follow `classes_`.
        """
        return self._log_joint(X, "predict_joint_log_proba", "log_joint")

    def _log_joint(self, X: Any, method: str, formula: str) -> Array:
        """The model's `log_joint` or `scores` of every row, a chunk at a time."""
        X = self._encode_again(X, method)
        model, r, score = self.model_, self.classes_.shape[0], getattr(self.model_, formula)
        Z = model.rows(X, self.parameters_)
        theta = model.for_scan(self.parameters_, Z)
        device = not isinstance(X, np.ndarray)
        parts = row_chunks(X.shape[0], X.shape[1] + r, ArrayEngine.chunk_cells if device else CHUNK_CELLS)
        threads = 1 if device or len(parts) == 1 else min(len(parts), available_threads())
        found = list(in_threads(lambda part: score(Z[part], theta), parts, threads))
        out = found[0] if len(found) == 1 else namespace(X).concat(found, axis=0)
        masses = self.data_statistics_["s0"]
        if self._all_classes_have_rows():
            return out
        xp = namespace(out)
        return xp.where((masses > 0)[None, :], out, -xp.inf)

    def _all_classes_have_rows(self) -> bool:
        """False only in a stream that has not seen them all."""
        return float(namespace(self._fitted_on).min(self._fitted_on)) > 0

    @property
    def _fitted_on(self) -> Array:
        """An array that tells the library and the device of the fit."""
        return self.data_statistics_["s0"]

    def _encode_again(self, X: Any, method: str) -> Array:
        """Rows to predict, on the device of the fit."""
        check_is_fitted(self)
        check_same_namespace(X, self, attribute="_fitted_on", method=method)
        return self._encode(X, reset=False, learn=False)

    def _log_posterior(self, X: Any, method: str) -> Array:
        joint = self._log_joint(X, method, "scores")
        return joint - log_evidence(joint)[:, None]

    def score_samples(self, X: Any) -> Array:
        """Log density (or log probability) log p(x) of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            Under the calibrated joint.
        """
        return log_evidence(self._log_joint(X, "score_samples", "log_joint"))

    def predict_log_proba(self, X: Any) -> Array:
        """Log posterior log p(y | x).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_proba : ndarray of shape (n_samples, n_classes)
            Columns follow `classes_`.
        """
        return self._log_posterior(X, "predict_log_proba")

    def predict_proba(self, X: Any) -> Array:
        """Posterior p(y | x).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Columns follow `classes_`.
        """
        log_posterior = self._log_posterior(X, "predict_proba")
        return namespace(log_posterior).exp(log_posterior)

    def predict(self, X: Any) -> Array:
        """The class of the largest posterior; after training for costs, that of least expected cost.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels.
        """
        scores = self._log_joint(X, "predict", "scores")
        costs = getattr(self, "cost_matrix_", None)
        if costs is None:
            return self._labels(namespace(scores).argmax(scores, axis=1))
        return self._labels(least_cost(scores, costs))

    def _labels(self, codes: Array) -> Array:
        """The classes of codes, where the codes are, or on the host if labels are strings."""
        if isinstance(self.classes_, np.ndarray):
            codes = to_numpy(codes)
        return take_rows(self.classes_, codes)

    def decide(self, X: Any, cost_matrix: Any) -> Array:
        """The decision of least expected cost under the posterior, however the model was trained.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        cost_matrix : array-like of shape (n_classes, n_classes)
            What it costs to decide for the class of the column where that of the row is true; both
            follow `classes_`.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels.
        """
        scores = self._log_joint(X, "decide", "scores")
        C = check_cost_matrix(cost_matrix, self.classes_.shape[0], "cost_matrix")
        return self._labels(least_cost(scores, C))

    def decision_function(self, X: Any) -> Array:
        """Log joint of each class; for two classes the log odds of the second.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            The larger, the more probable the class.
        """
        joint = self._log_joint(X, "decision_function", "log_joint")
        return joint[:, 1] - joint[:, 0] if self.classes_.shape[0] == 2 else joint

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Array, Array]:
        """Rows and labels drawn from the calibrated joint.

        Parameters
        ----------
        n_samples : int, default=1
            How many.
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
        rng = random_state
        if not isinstance(rng, np.random.Generator):
            rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
        theta = self._drawn(converted(self.parameters_, to_numpy))
        X, y = self.model_.sample(theta, int(n_samples), rng)
        return self._decode(sent_to(X, self._fitted_on)), self._labels(sent_to(y, self._fitted_on))


def least_cost(joint: Array, C: Array) -> Array:
    """The code of the decision of least expected cost under the posterior."""
    xp = namespace(joint)
    posterior = xp.exp(joint - log_evidence(joint)[:, None])
    return xp.argmin(posterior @ as_kind(sent_to(C, joint), joint.dtype), axis=1)
