"""Class frequencies that differ from those of the training rows: set them, or estimate them."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from riskbayes.arrays import Array, to_numpy
from riskbayes.estimators.checks import check_class_prior
from riskbayes.exceptions import listed, warn


def with_priors(clf: Any, p: Any) -> Any:
    """Return a copy of a fitted classifier for rows with the class frequencies p."""
    check_is_fitted(clf)
    known = current_prior(clf)
    wanted = checked_priors(clf, p, known)
    found = copy(clf)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(wanted) - np.log(known)
    found._set_log_ratio(np.where(wanted > 0, ratio, -np.inf))
    found._priors, found._conformal = wanted, None
    return found


def current_prior(clf: Any) -> Array:
    """Return the class frequencies that the posteriors are for."""
    return clf._training_prior() if clf._priors is None else to_numpy(clf._priors)


def checked_priors(clf: Any, p: Any, known: Array) -> Array:
    """Return class frequencies in the order of `classes_`; refuse classes that had none so far."""
    if isinstance(p, Mapping):
        labels = to_numpy(clf.classes_).tolist()
        odd = [label for label in p if label not in labels] or [k for k in labels if k not in p]
        if odd:
            raise ValueError(
                f"p must have one frequency for each of the classes {listed(clf.classes_)}; "
                f"{odd[0]!r} is {'missing' if odd[0] in labels else 'none of them'}."
            )
        p = [p[label] for label in labels]
    found = check_class_prior(p, clf.classes_.shape[0], "p")
    unseen = (found > 0) & (known <= 0)
    if unseen.any():
        raise ValueError(
            f"Class {listed(to_numpy(clf.classes_)[unseen])} had probability zero so far: nothing is "
            "known of it, and p must be zero there."
        )
    return found


def estimate_priors(clf: Any, X: Any, tol: float, max_iter: int) -> Array:
    """Return the class frequencies of rows without labels, by the EM algorithm of Saerens et al. (2002)."""
    check_is_fitted(clf)
    known = current_prior(clf)
    with_priors(clf, known)  # refused where the posteriors do not contain p(y)
    return frequencies_of(to_numpy(clf.predict_proba(X)).astype(np.float64), known, tol, max_iter)


def frequencies_of(P: Array, known: Array, tol: float = 1e-6, max_iter: int = 1000) -> Array:
    """Return the class frequencies of rows, given their posteriors for the frequencies `known`."""
    ratios = np.divide(P, known, out=np.zeros_like(P), where=known > 0)  # p(x | y) up to a constant
    p = known
    for _ in range(max_iter):
        joint = ratios * p
        new = (joint / joint.sum(axis=1, keepdims=True)).mean(axis=0)
        change, p = np.abs(new - p).max(), new
        if change < tol:
            return p
    warn(
        f"estimate_priors changed a frequency by {change:.1g} in the last of {max_iter} iterations, more "
        f"than tol={tol:g}. Raise max_iter."
    )
    return p
