"""Input of the estimators of counts: dense rows, or CSR without a dense copy; and what they share."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from sklearn.utils._param_validation import Interval

from riskbayes.arrays import Array
from riskbayes.estimators.checks import check_alpha, check_class_prior
from riskbayes.estimators.streaming import StreamingClassifier
from riskbayes.input.schema import Schema
from riskbayes.learners import RC, Learner
from riskbayes.models.counts import has_missing
from riskbayes.tables import check_non_negative, naming_columns, validated_numbers


class CountClassifier(StreamingClassifier):
    """Base class of the estimators of counts."""

    _named_learners: ClassVar[dict[str, Learner]] = {"rc": RC(step="adaptive")}
    """The anchor of the usual "rc" grows with the number of columns: with thousands of words the model would
    hardly leave its closed form (`benchmarks/docstrings.py`)."""

    _positive_only: ClassVar[bool] = True
    """True if negative values are refused."""

    _parameter_constraints: ClassVar[dict] = {
        **StreamingClassifier._parameter_constraints,
        "alpha": ["array-like", Interval(Real, 0, None, closed="left")],
        "force_alpha": ["boolean"],
        "fit_prior": ["boolean"],
        "class_prior": ["array-like", None],
    }

    _poor_score: ClassVar[bool] = True
    """The tag of scikit-learn's twins: on the Gaussian tables of its checks their scores are poor."""

    alpha: Any
    force_alpha: bool
    fit_prior: bool
    class_prior: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = self._positive_only
        tags.classifier_tags.poor_score = self._poor_score
        return tags

    def _decide(self, schema: Schema, more: bool) -> None:
        self._row_dtype = "float64"  # as in scikit-learn, whatever the rows

    def _read(self, X: Any, *, reset: bool, learn: bool) -> Array:
        X = validated_numbers(self, X, reset=reset, accept_sparse="csr")
        if issparse(X) and not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        if self._positive_only:
            with naming_columns(self):
                check_non_negative(self, X)
        return X

    def _check_counted(self, X: Array) -> None:
        if not (self.statistics_.frame.missing or issparse(X)) and has_missing(X):
            raise ValueError(
                "X has missing cells (NaN), and no row of the fit had one: these rows were not fitted. Add "
                "them by partial_fit."
            )

    def _prior(self) -> Array | None:
        """Return the fixed p(y), or None if it is estimated."""
        r = self.classes_.shape[0]
        if self.class_prior is not None:
            return check_class_prior(self.class_prior, r, "class_prior", renormalise=True)
        return None if self.fit_prior else np.full(r, 1.0 / r)

    def _pseudo_counts(self) -> float | Array:
        """Return alpha as the models take it."""
        return check_alpha(self.alpha, self.force_alpha, self.n_features_in_)

    @property
    def feature_count_(self) -> Array:
        """Sum of each column in the data, by class."""
        return self.data_statistics_["counts"]

    @property
    def class_count_(self) -> Array:
        """Weight of each class in the data."""
        return self.data_statistics_["s0"]

    @property
    def class_log_prior_(self) -> Array:
        """Calibrated log p(y)."""
        return self.parameters_.log_prior


class NonNegativeClassifier(CountClassifier):
    """Base class of those that refuse negative values.

    As their twins in scikit-learn they have no `decision_function` and no `class_weight`: its checks of both
    fit negative values, whatever the tags say. The log odds are differences of `predict_log_proba`;
    `sklearn.utils.class_weight.compute_sample_weight` turns weights of classes into those of rows.
    """

    _has_decision_function = False
    class_weight = None

    _parameter_constraints: ClassVar[dict] = {
        name: kinds
        for name, kinds in CountClassifier._parameter_constraints.items()
        if name != "class_weight"
    }
