"""One member of the family: an estimator, and the transformer before it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from riskbayes.arrays import Array
from riskbayes.estimators.kinds import Kinds
from riskbayes.estimators.prediction import Finish
from riskbayes.estimators.product_of_experts import ProductOfExperts
from riskbayes.learners.closed_form import ClassFrequencies, ClosedForm
from riskbayes.learners.rc import RC
from riskbayes.models.categorical import CategoricalModel
from riskbayes.models.gaussian_nb import GaussianNBModel
from riskbayes.onnx_export import Formula
from riskbayes.risks import log_posterior

CHECKPOINTS = (0, 1, 2, 4, 8, 16)
"""Iterations of a fit that cross-validation compares."""

RATE, ANCHOR = 0.3, 0.03
"""`lr` and `generative_weight` of the members' learner."""


def family_learner(n_iter: int) -> RC | ClosedForm:
    """Return the learner of the members, with this number of iterations.

    A member that stops early is judged as it is.
    """
    if n_iter == 0:
        return ClosedForm()
    return RC(lr=RATE, max_iter=n_iter, monitor="log_loss", step="fixed", generative_weight=ANCHOR)


@dataclass(frozen=True)
class Member:
    """One model of the family: an estimator of this package, alone or after a transformer."""

    name: str
    estimator: Any
    before: Any = None
    """The transformer whose output the estimator reads."""

    def with_iterations(self, n_iter: int) -> Any:
        """Return an unfitted estimator whose learner has this number of iterations."""
        estimator = clone(self.estimator).set_params(learner=family_learner(n_iter))
        return estimator if self.before is None else MemberClassifier(estimator, self.before)


class SearchedMember(ABC):
    """A member that makes choices of its own by the held-out rows, in all folds at once."""

    name: str

    @abstractmethod
    def walk(
        self, X: Array, y: Array, w: Array | None, folds: Sequence[tuple[Array, Array]]
    ) -> Iterator[Array]:
        """Yield the posteriors of each fold's held rows, of shape (checkpoints, rows, classes).

        They are NaN at checkpoints that it has not.
        """

    @abstractmethod
    def with_iterations(self, n_iter: int) -> Any:
        """Return an unfitted estimator for this checkpoint."""


def frequencies(kinds: Kinds) -> ProductOfExperts:
    """Return a product of one expert, of one column, whose posterior is the class frequencies."""
    column = (*kinds.numbers, *kinds.categories, *kinds.marks)[:1]
    expert = GaussianNBModel() if kinds.numbers else CategoricalModel(alpha=1.0)
    return ProductOfExperts([("frequencies", expert, column)], [1.0], learner=ClassFrequencies())


@dataclass(frozen=True)
class FrequencyMember(SearchedMember):
    """The class frequencies, which are averaged with members that are too sure, and what noise is left to."""

    kinds: Kinds
    name: str = "class frequencies"

    def walk(
        self, X: Array, y: Array, w: Array | None, folds: Sequence[tuple[Array, Array]]
    ) -> Iterator[Array]:
        """Yield the frequencies of each fold's kept rows, at the first checkpoint."""
        r = int(y.max()) + 1
        for kept, held in folds:
            masses = np.bincount(y[kept], None if w is None else w[kept], r)
            found = np.full((len(CHECKPOINTS), len(held), r), np.nan, np.float32)
            found[0] = masses / masses.sum()
            yield found

    def with_iterations(self, n_iter: int) -> Any:
        """Return the unfitted class frequencies."""
        return frequencies(self.kinds)


class ComposedMember(ClassifierMixin, BaseEstimator):
    """Base class of members that do something before or after an estimator; predictions are of its scores.

    A subclass calls `_keep` in `fit`, and implements `_finish_rows`.
    """

    no_density: ClassVar[str]
    """Why its joint is no density of the columns, for a message."""

    def _keep(self, fitted: Any) -> None:
        """Set the fitted estimator, its classes and its path."""
        self.estimator_ = fitted
        self.classes_, self.history_ = fitted.classes_, fitted.history_
        self.n_iter_, self.best_iteration_ = fitted.n_iter_, fitted.best_iteration_
        self.status_ = fitted.status_

    def _finish_rows(self, X: Array, formula: str, finish: Finish) -> Array:
        """Apply `finish` to the scores of encoded rows."""
        raise NotImplementedError

    def predict_log_proba(self, X: Array) -> Array:
        """Return the log posteriors, which do not underflow."""
        check_is_fitted(self)
        return self._finish_rows(X, "scores", log_posterior)

    def predict_proba(self, X: Array) -> Array:
        """Return the posteriors."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Array) -> Array:
        """Return the most probable class."""
        return self.classes_[self.predict_log_proba(X).argmax(axis=1)]


class MemberClassifier(ComposedMember):
    """A transformer, and an estimator that is fitted to its output.

    Parameters
    ----------
    estimator : estimator
        The estimator to fit.
    before : transformer
        The transformer whose output the estimator reads. It is fitted without weights. Its method `reads`
        is a mask of the columns that it reads.

    Attributes
    ----------
    estimator_, before_ : estimator, transformer
        The fitted estimator and transformer.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    history_, n_iter_, best_iteration_, status_
        Those of the estimator.
    """

    no_density = "its member reads transformed columns"

    def __init__(self, estimator: Any, before: Any):
        self.estimator = estimator
        self.before = before

    def fit(self, X: Array, y: Array, sample_weight: Array | None = None) -> Self:
        """Fit the transformer, then the estimator."""
        self.before_ = fitted_before(self.before, X)
        self._keep(clone(self.estimator).fit(self.before_.transform(X), y, sample_weight))
        return self

    def _finish_rows(self, X: Array, formula: str, finish: Finish) -> Array:
        return self.estimator_._finish_rows(self.before_.transform(X), formula, finish)

    def _contributions(self, X: Array) -> None:
        """Return None: the sum is over the columns of the transformer, which are not those of the table."""

    def _reads(self, n: int) -> Array:
        """Return a mask of the columns that the transformer reads."""
        return self.before_.reads(n)

    def _formula(self) -> Formula:
        """Return the estimator and the transformer for a graph."""
        return replace(self.estimator_._formula(), before=self.before_)


def fitted_before(before: Any, X: Array) -> Any:
    """Return a clone of the transformer, fitted to these rows, whose output is always arrays."""
    if before is None:
        return None
    own = clone(before)
    return (own.set_output(transform="default") if hasattr(own, "set_output") else own).fit(X)


def transformed(before: Any, X: Array) -> Array:
    """Return the rows after the transformer, if there is one."""
    return X if before is None else before.transform(X)
