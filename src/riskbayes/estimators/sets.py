"""Prediction sets by split conformal prediction: sets of classes that hold the true one in 1 - alpha of rows.

A calibration row tells how well a row fits its own class. A class is in the set of a new row unless less than
a share alpha of the calibration rows fit theirs as badly: its conformal p-value is above alpha.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from riskbayes.arrays import Array, to_device, to_numpy
from riskbayes.estimators.checks import class_codes, labels_like
from riskbayes.estimators.joint import DENSITY_ROUNDING
from riskbayes.estimators.prediction import Prediction, unchanged
from riskbayes.exceptions import listed, warn
from riskbayes.loaded import require

SCORES = ("posterior", "density")
"""What a set goes by: p(y | x), compared over all classes, or p(x | y), compared within each class."""


@dataclass(frozen=True, eq=False)
class ConformalScores:
    """How well each calibration row fits its own class."""

    codes: Array
    """The class of each row."""
    posterior: Array
    """The log-odds of its class against all others."""
    density: Array | None
    """log p(x | y) of its class, up to a constant of the class; None if the model has no density."""

    def check_loaded(self, size: int) -> None:
        """Require a score of each row."""
        n = self.codes.shape
        require(len(n) == 1 and self.codes.dtype.kind == "i", "conformal scores have no classes")
        for values in (self.posterior, self.density):
            require(values is None or (values.shape == n and values.dtype.kind == "f"), "conformal scores")

    def by_class(self, score: str, r: int) -> list[Array]:
        """Return the sorted scores that each of r classes is compared with."""
        if score == "posterior":
            return [np.sort(self.posterior)] * r
        assert self.density is not None
        return [np.sort(self.density[self.codes == k]) for k in range(r)]


def conformalize(clf: Any, X: Any, y: Any) -> None:
    """Set the scores of calibration rows."""
    check_is_fitted(clf)
    posterior = in_memory(Prediction(clf, "conformalize", "scores", log_odds_of_each).of(X), X)
    codes = to_numpy(class_codes(labels_like(clf, y, posterior), clf.classes_, "y"))
    if len(codes) != len(posterior):
        raise ValueError(f"X has {len(posterior)} rows and y {len(codes)} labels: pass a label for each row.")
    own, density = np.arange(len(codes)), None
    if clf._has_densities:
        found = in_memory(Prediction(clf, "conformalize", "log_joint", unchanged).of(X), X)
        density = found[own, codes]
    clf._conformal = ConformalScores(codes.astype(np.int64), posterior[own, codes], density)


def in_memory(found: Any, X: Any) -> Array:
    """Return results as a NumPy array of float64; refuse rows that are not in memory."""
    if isinstance(found, Iterator) or hasattr(found, "dask"):
        raise ValueError(
            f"conformalize takes rows in memory; got {type(X).__name__}. A few thousand rows are enough."
        )
    return to_numpy(found).astype(np.float64)


def predict_set(clf: Any, X: Any, alpha: float, score: str) -> Any:
    """Return for each row and class whether the class is in the prediction set of the row."""
    check_is_fitted(clf)
    if not isinstance(alpha, Real) or not 0 < alpha < 1:
        raise ValueError(f"alpha must be a share between 0 and 1; got {alpha!r}.")
    if score not in SCORES:
        raise ValueError(f"score must be one of {', '.join(map(repr, SCORES))}; got {score!r}.")
    scores = clf._conformal
    if scores is None:
        raise NotFittedError(
            f"{type(clf).__name__} knows no calibration rows: call conformalize(X, y) first, with rows that "
            "it was not trained on. `fit`, `with_priors` and what else changes the model discard them."
        )
    if score == "density" and scores.density is None:
        raise NotImplementedError(
            f"{type(clf).__name__} has no densities p(x | y), for it averages posteriors, or compares rows "
            "with training rows. Use score='posterior', or fit a model of densities, such as MixedNB."
        )
    known = scores.by_class(score, clf.classes_.shape[0])
    few = [k for k, own in enumerate(known) if alpha * (len(own) + 1) < 1]
    if few:
        named = "" if score == "posterior" else f" of class {listed(to_numpy(clf.classes_)[few])}"
        warn(
            f"There are too few calibration rows{named} to leave a class out of any set at alpha={alpha:g}: "
            f"at least {int(np.ceil(1 / alpha - 1e-9)) - 1} are needed{' of each class' if named else ''}."
        )
    formula = "scores" if score == "posterior" else "log_joint"
    finish = partial(in_sets, known=known, alpha=float(alpha), score=score)
    return Prediction(clf, "predict_set", formula, finish, dtype="bool").of(X)


def in_sets(joint: Array, known: list[Array], alpha: float, score: str) -> Array:
    """Return which classes have a conformal p-value above alpha, from scores or log joints of rows."""
    values = log_odds_of_each(joint) if score == "posterior" else to_numpy(joint).astype(np.float64)
    # A row is rounded differently alone and among others: equal scores must not be told apart.
    values = np.where(np.isinf(values), values, values + DENSITY_ROUNDING * (1.0 + np.abs(values)))
    found = np.empty(values.shape, dtype=bool)
    for k, own in enumerate(known):
        as_bad = np.searchsorted(own, values[:, k], side="right")
        found[:, k] = 1 + as_bad > alpha * (len(own) + 1) + 1e-9
    return to_device(found, joint) > 0


def log_odds_of_each(joint: Array) -> Array:
    """Return the log-odds of each class against the others; they do not round to one, as p(y | x) does."""
    logs = to_numpy(joint).astype(np.float64)
    logs = logs - logs.max(axis=1, keepdims=True)
    rows, top = np.arange(len(logs)), logs.argmax(axis=1)
    e = np.exp(logs)
    with np.errstate(divide="ignore"):
        others = np.log(e.sum(axis=1, keepdims=True) - e)
    rest = logs.copy()
    rest[rows, top] = -np.inf
    others[rows, top] = logsumexp(rest, axis=1)
    return logs - others
