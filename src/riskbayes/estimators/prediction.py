"""The one predict path: log joint, log-sum-exp, argmax; and draws from the joint."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from riskbayes.engines.memory import row_chunks
from riskbayes.learners.objectives import check_cost_matrix
from riskbayes.models.base import GenerativeModel
from riskbayes.risks import log_evidence
from riskbayes.statistics import Array, Statistics


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

    def _drawn_parameters(self) -> Any:
        """What `sample` draws from."""
        return self.parameters_

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
        check_is_fitted(self)
        X = self._encode(X, reset=False, learn=False)
        Z = self.model_.rows(X, self.parameters_)
        out = np.empty((len(X), len(self.classes_)))
        for part in row_chunks(len(X), X.shape[1] + len(self.classes_)):
            out[part] = self.model_.log_joint(Z[part], self.parameters_)
        out[:, self.data_statistics_["s0"] <= 0] = -np.inf
        return out

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
        return log_evidence(self.predict_joint_log_proba(X))

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
        joint = self.predict_joint_log_proba(X)
        return joint - log_evidence(joint)[:, None]

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
        return np.exp(self.predict_log_proba(X))

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
        joint = self.predict_joint_log_proba(X)
        costs = getattr(self, "cost_matrix_", None)
        if costs is None:
            return self.classes_[joint.argmax(axis=1)]
        return self.classes_[least_cost(joint, costs)]

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
        joint = self.predict_joint_log_proba(X)
        C = check_cost_matrix(cost_matrix, len(self.classes_), "cost_matrix")
        return self.classes_[least_cost(joint, C)]

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
        joint = self.predict_joint_log_proba(X)
        return joint[:, 1] - joint[:, 0] if len(self.classes_) == 2 else joint

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
        X, y = self.model_.sample(self._drawn_parameters(), int(n_samples), rng)
        return self._decode(X), self.classes_[y]


def least_cost(joint: Array, C: Array) -> Array:
    """The code of the decision of least expected cost under the posterior."""
    return (np.exp(joint - log_evidence(joint)[:, None]) @ C).argmin(axis=1)
