"""Tables of counts, dense or CSR without a dense copy; and what the estimators of counts share.

As their counterparts in scikit-learn, those that refuse negative values have no `decision_function` and no
`class_weight`: its checks of both fit negative values, whatever the tags say.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse

from riskbayes.arrays import Array
from riskbayes.estimators.checks import check_alpha, check_class_prior
from riskbayes.estimators.inputs import NumberInput
from riskbayes.input.schema import Schema
from riskbayes.learners import RC
from riskbayes.models.counts import has_missing
from riskbayes.tables import check_non_negative, naming_columns, validated_numbers

COUNT_LEARNERS = {"rc": RC(generative_weight=0.01)}
"""The anchor of the usual "rc" grows with the number of columns: with thousands of words the model would
hardly leave its closed form (`benchmarks/docstrings.py`)."""

FREE_LEARNERS = {"rc": RC(generative_weight=0.0)}
"""The same for scores that are no log probabilities: they have no anchor."""


class CountInput(NumberInput):
    """Dense rows of counts, or CSR."""

    tags: ClassVar = {"sparse": True, "positive_only": True}

    def read(self, clf: Any, X: Any, *, reset: bool, learn: bool) -> Array:
        """Return the validated cells of rows, sparse ones without duplicates; refuse negative values."""
        X = validated_numbers(clf, X, reset=reset, accept_sparse="csr")
        if issparse(X) and not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        self.check(clf, X)
        return X

    def check(self, clf: Any, X: Array) -> None:
        """Refuse cells that are no counts."""
        with naming_columns(clf):
            check_non_negative(clf, X)

    def decide(self, clf: Any, schema: Schema, more: bool) -> None:
        """Set the dtype of fitted attributes: that of scikit-learn's, whatever the rows."""
        clf._row_dtype = "float64"

    def check_counted(self, clf: Any, X: Array) -> None:
        """Refuse missing cells where no row of the fit had one."""
        if not (clf.statistics_.frame.missing or issparse(X)) and has_missing(X):
            raise ValueError(
                "X has missing cells (NaN), and no row of the fit had one: these rows were not fitted. Add "
                "them by partial_fit."
            )


def fixed_prior(clf: Any) -> Array | None:
    """Return the p(y) that `class_prior` or `fit_prior` fixes, or None if it is estimated."""
    r = clf.classes_.shape[0]
    if clf.class_prior is not None:
        return check_class_prior(clf.class_prior, r, "class_prior", renormalise=True)
    return None if clf.fit_prior else np.full(r, 1.0 / r)


def pseudo_counts(clf: Any) -> float | Array:
    """Return alpha as the models take it."""
    return check_alpha(clf.alpha, clf.force_alpha, clf.n_features_in_)


def feature_count(clf: Any) -> Array:
    """Sum of each column in the data, by class."""
    return clf.data_statistics_["counts"]


def class_count(clf: Any) -> Array:
    """Weight of each class in the data."""
    return clf.data_statistics_["s0"]


def class_log_prior(clf: Any) -> Array:
    """Calibrated log p(y)."""
    return clf.parameters_.log_prior
