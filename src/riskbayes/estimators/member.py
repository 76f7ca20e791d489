"""One member of the family: an estimator, the transformer before it, its number of bootstrap samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.preprocessing import QuantileTransformer
from sklearn.utils.validation import check_is_fitted

from riskbayes.arrays import Array
from riskbayes.learners.closed_form import ClosedForm
from riskbayes.learners.rc import RC
from riskbayes.preprocessing.bins import range_exponents

CHECKPOINTS = (0, 1, 2, 4, 8, 16, 24, 32)
"""Iterations of a fit that cross-validation compares."""

RATE, ANCHOR = 0.3, 0.03
"""`lr` and `generative_weight` of the members' learner."""


def family_learner(n_iter: int) -> RC | ClosedForm:
    """Return the learner of the members, with this number of iterations."""
    if n_iter == 0:
        return ClosedForm()
    return RC(lr=RATE, max_iter=n_iter, monitor="log_loss", generative_weight=ANCHOR)


@dataclass(frozen=True)
class Member:
    """One model of the family: an estimator of this package, alone or after a transformer."""

    name: str
    estimator: Any
    before: Any = None
    """The transformer whose output the estimator reads."""
    bags: int = 1
    """Number of bootstrap samples ("bags") whose posteriors are averaged; 1 is the rows themselves."""
    most: int = CHECKPOINTS[-1]
    """The most iterations of a fit."""

    def with_iterations(self, n_iter: int, random_state: int) -> Any:
        """Return an unfitted estimator whose learner has this number of iterations."""
        estimator = clone(self.estimator).set_params(learner=family_learner(n_iter))
        if self.before is None and self.bags == 1:
            return estimator
        return MemberClassifier(estimator, self.before, self.bags, random_state)


class NormalScores(BaseEstimator):
    """Transform columns to Gaussian quantiles, clipped to [-3, 3].

    Each column is first multiplied by a power of two, to a range of about one: QuantileTransformer maps
    values within 1e-7 of the least or largest, in any unit, to that end. Missing values (NaN) have no part in
    the quantiles and stay missing.
    """

    def fit(self, X: Array, y: Any = None) -> Self:
        """Learn the quantiles."""
        scores = QuantileTransformer(
            n_quantiles=min(100, max(1, len(X) // 2)), output_distribution="normal", subsample=None
        )
        self.exponents_ = range_exponents(X)
        empty = np.isnan(X).all(axis=0)  # a column without a value has no quantiles
        X = np.where(empty, 0.0, X) if empty.any() else X
        self.scores_ = scores.set_output(transform="default").fit(np.ldexp(X, -self.exponents_))
        return self

    def transform(self, X: Array) -> Array:
        """Return the scores, between -3 and 3."""
        with np.errstate(over="ignore"):
            # Infinity becomes the largest number; NaN stays.
            scaled = np.nan_to_num(np.ldexp(X, -self.exponents_), nan=np.nan)
        return np.clip(self.scores_.transform(scaled), -3.0, 3.0)


class MemberClassifier(ClassifierMixin, BaseEstimator):
    """A transformer, and an estimator that is fitted to bootstrap samples of its output.

    Parameters
    ----------
    estimator : estimator
        The estimator to fit.
    before : transformer or None, default=None
        The transformer whose output the estimator reads. It is fitted without weights.
    bags : int, default=1
        Number of bootstrap samples; 1 is the rows themselves.
    random_state : int, default=0
        Seed of the bootstrap samples.

    Attributes
    ----------
    estimators_ : list
        The fitted estimators, one per bootstrap sample.
    before_ : transformer or None
        The fitted transformer.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    history_, n_iter_, status_
        Those of the first estimator.
    """

    def __init__(self, estimator: Any, before: Any = None, bags: int = 1, random_state: int = 0):
        self.estimator = estimator
        self.before = before
        self.bags = bags
        self.random_state = random_state

    def fit(self, X: Array, y: Array, sample_weight: Array | None = None) -> Self:
        """Fit the transformer, then one estimator per bootstrap sample."""
        X, y = np.asarray(X), np.asarray(y)
        sample_weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        self.classes_ = np.unique(y)
        self.before_ = fitted_before(self.before, X)
        columns = transformed(self.before_, X)
        self.estimators_ = [
            clone(self.estimator).fit(columns[rows], y[rows], weights)
            for rows, weights in drawn_bags(self.bags, y, sample_weight, self.random_state)
        ]
        first = self.estimators_[0]
        self.history_, self.n_iter_, self.status_ = first.history_, first.n_iter_, first.status_
        return self

    def predict_proba(self, X: Array) -> Array:
        """Return the posteriors averaged over the estimators; one that lacks a class gives it zero."""
        check_is_fitted(self)
        columns = transformed(self.before_, np.asarray(X))
        total = np.zeros((len(X), len(self.classes_)))
        for clf in self.estimators_:
            total[:, np.searchsorted(self.classes_, clf.classes_)] += clf.predict_proba(columns)
        return total / len(self.estimators_)

    def predict_log_proba(self, X: Array) -> Array:
        """Return the logarithm of `predict_proba`, which does not underflow."""
        check_is_fitted(self)
        columns = transformed(self.before_, np.asarray(X))
        logs = np.full((len(self.estimators_), len(X), len(self.classes_)), -np.inf)
        for log_P, clf in zip(logs, self.estimators_, strict=True):
            log_P[:, np.searchsorted(self.classes_, clf.classes_)] = clf.predict_log_proba(columns)
        return logsumexp(logs, axis=0) - np.log(len(logs))

    def explain(self, X: Array) -> Any:
        """Return what each column contributed, if there is one bag and the transformer keeps the columns."""
        check_is_fitted(self)
        if len(self.estimators_) > 1:
            raise NotImplementedError(
                f"The posteriors of {len(self.estimators_)} bootstrap samples are averaged, so that the "
                "log-odds are no sum over columns."
            )
        columns = transformed(self.before_, np.asarray(X))
        if columns.shape[1] != np.shape(X)[1]:
            raise NotImplementedError(
                f"{type(self.before_).__name__} makes other columns of those of the table, and what they "
                "contribute cannot be told apart."
            )
        return self.estimators_[0].explain(columns)

    def predict(self, X: Array) -> Array:
        """Return the most probable class."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]


def fitted_before(before: Any, X: Array) -> Any:
    """Return a clone of the transformer, fitted to these rows, whose output is always arrays."""
    if before is None:
        return None
    own = clone(before)
    return (own.set_output(transform="default") if hasattr(own, "set_output") else own).fit(X)


def transformed(before: Any, X: Array) -> Array:
    """Return the rows after the transformer, if there is one."""
    return X if before is None else before.transform(X)


def drawn_bags(bags: int, y: Array, w: Array | None, seed: int) -> Iterator[tuple[Any, Array | None]]:
    """Yield the rows and weights of each bootstrap sample, or all rows if there is one.

    Rows are drawn with probability proportional to their weight, and then share the total weight equally.
    """
    if bags == 1:
        yield slice(None), w
        return
    m, rng = len(y), np.random.default_rng(seed)
    p = None if w is None else w / w.sum()
    each = None if w is None else np.full(m, w.sum() / m)
    for _ in range(bags):
        rows = rng.choice(m, m, p=p)
        if (y[rows] == y[rows[0]]).all():  # a classifier needs two classes
            rows[-1] = rng.choice(np.flatnonzero(y != y[rows[0]]))
        yield rows, each
