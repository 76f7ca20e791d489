"""The one estimator to try first."""

from __future__ import annotations

import warnings
from contextlib import suppress
from importlib import import_module
from numbers import Integral, Real
from time import perf_counter
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from riskbayes.arrays import Array
from riskbayes.estimators.checks import (
    check_library,
    check_masses,
    check_one_kind,
    check_weights,
    listed,
    naming_columns,
    unchanged_on_error,
)
from riskbayes.estimators.family import Paths, cross_validate, family, recipe
from riskbayes.estimators.member import CHECKPOINTS
from riskbayes.estimators.tables import validated_numbers
from riskbayes.exceptions import FlooredWarning
from riskbayes.learners.rc import SMALL_WEIGHT


class RiskBayesClassifier(ClassifierMixin, BaseEstimator):
    """A classifier from a family of generative models trained by risk-based calibration.

    Takes tables of numbers. An interrupt leaves it as it was before `fit`. How accurate it is, and where it
    is not: `doc/accuracy.md`.

    Parameters
    ----------
    strategy : {"single", "cv", "ensemble"}, default="single"
        "single" fits one recipe, the product of a Gaussian a class, held by a prior, and smooth naive
        Bayes: no search, nothing to tune. "cv" walks the path of every member of the family in every
        fold, and refits the member and the iteration of the least cross-validated error and log loss.
        "ensemble" averages the posteriors of several, chosen greedily by the same of their average.
    cv : int, splitter or iterable of splits, default=4
        Number of stratified folds (fewer where a class has fewer rows), shuffled by `random_state` and, for
        tables of few rows, repeated up to four times; or splits, as in scikit-learn, where None is five folds
        that are not shuffled.
    time_limit : float or None, default=None
        Seconds after which no further member is tried. The members tried so far are chosen from and
        refitted, so a fit takes somewhat longer.
    n_jobs : int or None, default=None
        Folds walked at the same time.
    random_state : int, RandomState instance or None, default=None
        For the folds and the bags; "single" makes no random choice.
    verbose : int, default=0
        Print a line a member.

    Attributes
    ----------
    members_ : list of (estimator, weight)
        The fitted estimators whose posteriors are averaged; of "single" and "cv" there is one. Their classes
        are codes, places in `classes_`.
    leaderboard_ : data frame
        A row for each member tried, best first: `member`, cross-validated `error` at the best iteration and
        of its `closed_form`, `log_loss`, the `score` that choices are made by (the error and the log loss),
        best `n_iter`, `seconds` of all folds, `weight` in the classifier. For "single" they are those
        of the training rows. A pandas data frame, a polars one where only that is installed, and a list of
        dicts where neither is.
    classes_ : ndarray of shape (n_classes,)
        Class labels.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from riskbayes import RiskBayesClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = RiskBayesClassifier().fit(X, y)
    >>> clf.predict(X[:2])
    array([0, 0])
    >>> clf.leaderboard_["member"][0]
    'product'
    """

    _parameter_constraints: ClassVar[dict] = {
        "strategy": [StrOptions({"single", "cv", "ensemble"})],
        "cv": ["cv_object"],
        "time_limit": [Interval(Real, 0, None, closed="neither"), None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        strategy: str = "single",
        *,
        cv: Any = 4,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.strategy = strategy
        self.cv = cv
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose members and fit them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        with unchanged_on_error(self), warnings.catch_warnings():
            # Priors hold what the rows do not determine, and a constant column tells nothing.
            warnings.simplefilter("ignore", FlooredWarning)
            self._fit_rows(X, y, sample_weight)
        return self

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any) -> None:
        start = perf_counter()
        check_library(self, X)
        X, y = validated_numbers(self, X, y=y)
        check_one_kind(y)
        check_classification_targets(y)
        w = None if sample_weight is None else check_weights(sample_weight, X)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two classes in y; got one class, "
                f"{listed(self.classes_)}."
            )
        check_masses(self.classes_, codes, w)
        if w is not None and w.sum() < SMALL_WEIGHT * len(w):
            warnings.warn(
                f"The weights of {len(w)} rows sum to {w.sum():g}, and priors count as rows: they will "
                "outweigh the data. Scale the weights to sum to the number of rows.",
                UserWarning,
                stacklevel=4,
            )
        if self.strategy == "single":
            self._fit_recipe(X, codes, w, start)
            return
        seed = check_random_state(self.random_state).randint(2**31 - 1000)
        deadline = np.inf if self.time_limit is None else start + self.time_limit
        members = family(X.shape[1])
        paths = cross_validate(members, X, codes, w, self.cv, seed, self.n_jobs, deadline, self._say)
        if not np.isfinite(paths.scores()).any():
            raise ValueError(
                "No member of the family has finite posteriors on these rows: look for values of extreme "
                "size, and scale them."
            )
        weights = paths.winner() if self.strategy == "cv" else paths.greedy()
        self.members_ = refitted(paths, weights, X, codes, w, seed)
        self._leaders = leaders(paths, weights)

    def _fit_recipe(self, X: Array, codes: Array, w: Array | None, start: float) -> None:
        clf = recipe().fit(X, codes, w)
        self.members_ = [(clf, 1.0)]
        history = clf.history_
        last = np.flatnonzero(history["accepted"])[-1]
        errors, losses = history["error"], history["log_loss"]
        seconds = perf_counter() - start
        self._leaders = [leader("product", errors[last], errors[0], losses[last], int(last), seconds, 1.0)]

    def _say(self, line: str) -> None:
        if self.verbose:
            print(f"[{type(self).__name__}] {line}")

    def predict_proba(self, X: Any) -> Array:
        """Posterior of each class, averaged over the members.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        P : ndarray of shape (n_samples, n_classes)
            Columns follow `classes_`.
        """
        check_is_fitted(self)
        check_library(self, X)
        X = validated_numbers(self, X, reset=False)
        with naming_columns(self):
            return sum(weight * clf.predict_proba(X) for clf, weight in self.members_)

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of `predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_P : ndarray of shape (n_samples, n_classes)
            Columns follow `classes_`.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> Array:
        """The most probable class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels.
        """
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    @property
    def leaderboard_(self) -> Any:
        """A row for each member tried, best first."""
        check_is_fitted(self)
        for library in ("pandas", "polars"):
            with suppress(ImportError):
                return import_module(library).DataFrame(self._leaders)
        return self._leaders


def refitted(
    paths: Paths, weights: dict[tuple[int, int], float], X: Array, y: Array, w: Array | None, seed: int
) -> list[tuple[Any, float]]:
    """The chosen members, fitted on all rows for as many iterations as were best."""
    if w is not None:
        X, y, w = X[w > 0], y[w > 0], w[w > 0]
    chosen = [(paths.members[i].with_iterations(CHECKPOINTS[place], seed), i, place) for i, place in weights]
    return [(clf.fit(X, y, w), float(weights[i, place])) for clf, i, place in chosen]


def leader(
    member: str,
    error: float,
    closed_form: float,
    log_loss: float,
    n_iter: int,
    seconds: float,
    weight: float,
) -> dict[str, Any]:
    """A row of the leaderboard."""
    return {
        "member": member,
        "error": float(error),
        "closed_form": float(closed_form),
        "log_loss": float(log_loss),
        "score": float(error + log_loss),
        "n_iter": n_iter,
        "seconds": seconds,
        "weight": weight,
    }


def leaders(paths: Paths, weights: dict[tuple[int, int], float]) -> list[dict[str, Any]]:
    """Rows of the leaderboard, best first."""
    errors, losses, scores = paths.errors(), paths.log_losses(), paths.scores()
    best = scores.argmin(axis=1)
    return [
        leader(
            paths.members[i].name,
            errors[i, best[i]],
            errors[i, 0],
            losses[i, best[i]],
            CHECKPOINTS[best[i]],
            paths.seconds[i],
            float(sum(v for (m, _), v in weights.items() if m == i)),
        )
        for i in np.argsort(scores.min(axis=1), kind="stable")
    ]
