"""Checks whose errors name the parameter, the column or the class, and say what to do."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import compute_class_weight
from sklearn.utils.validation import _check_sample_weight

from riskbayes.arrays import Array, namespace, to_numpy, widest_float
from riskbayes.exceptions import ColumnError, warn
from riskbayes.statistics import Statistics
from riskbayes.tables import plain

MOST_LISTED = 5
"""Values that a message lists."""

LEAST_WEIGHT, MOST_WEIGHT = 1e-100, 1e100
"""Sums of weights: their squares, and their products with squares of values, must be numbers."""


@contextmanager
def unchanged_on_error(estimator: Any) -> Iterator[None]:
    """All or nothing: an estimator that refuses its input, or is interrupted too early, stays as it was.

    Errors of models get the names of the columns. What belongs to callbacks is left to them.
    """
    before = dict(vars(estimator))
    try:
        yield
    except BaseException as error:
        names = getattr(estimator, "feature_names_in_", None)
        for name in set(vars(estimator)) - set(before):
            if not name.startswith(("_callback", "_skl")):
                delattr(estimator, name)
        vars(estimator).update(before)
        if isinstance(error, ColumnError):
            raise error.named(names) from None
        raise


def listed(values: Array) -> str:
    """Labels or numbers for a message, as the user wrote them; of many the first five and how many more."""
    found = to_numpy(values).tolist()
    shown, more = ", ".join(map(repr, found[:MOST_LISTED])), len(found) - MOST_LISTED
    return f"{shown} and {more} more" if more > 0 else shown


def check_one_kind(y: Array, name: str = "y") -> None:
    """Refuse labels that cannot be sorted: strings and others."""
    words = np.array([isinstance(label, str) for label in y.tolist()])
    if words.any() and not words.all():
        raise TypeError(
            f"{name} has labels of several kinds, such as {plain(y[words][0])!r} and "
            f"{plain(y[~words][0])!r}: make all of them strings or all numbers, and drop rows without one."
        )


def check_weights(sample_weight: Any, X: Array, name: str = "sample_weight") -> Array:
    """Weights of the rows as an array, or an error that names them."""
    try:
        w = _check_sample_weight(sample_weight, X, dtype=widest_float(X), ensure_non_negative=True)
    except (TypeError, ValueError) as error:
        said = str(error).splitlines()[0]
        if "weight" not in said.lower():  # of one entry, not of what it belongs to
            said = f"sample_weight must be numbers, one a row: {said}"
        raise ValueError(said.replace("sample_weight", name)) from error
    check_total(w, name)
    return w


def check_total(w: Array, name: str) -> None:
    """Refuse weights that are too large or too small to be multiplied by values."""
    with np.errstate(over="ignore"):
        total = float(namespace(w).sum(w))
    if not total <= MOST_WEIGHT or 0 < total < LEAST_WEIGHT:
        beyond = f"more than {MOST_WEIGHT:g}: weighted sums would over"
        if total < LEAST_WEIGHT:
            beyond = f"less than {LEAST_WEIGHT:g}: weighted sums would under"
        raise ValueError(
            f"{name} sums to {total:g}, {beyond}flow. Scale the weights, for instance to sum to the number "
            "of rows."
        )


def check_class_weight(class_weight: Any) -> None:
    """Refuse weights of classes that are no finite, non-negative numbers."""
    for label, weight in class_weight.items() if isinstance(class_weight, dict) else ():
        if not isinstance(weight, Real) or not 0 <= float(weight) < math.inf:
            raise ValueError(
                f"class_weight of class {plain(label)!r} must be a finite, non-negative number; got "
                f"{plain(weight)!r}."
            )


def check_masses(classes: Array, masses: Array, every: bool = True) -> None:
    """Refuse a class with no weight; where not every class needs one, refuse only if none has."""
    masses = to_numpy(masses)
    if (masses.min() if every else masses.max()) <= 0:
        k = int(np.argmin(masses))
        raise ValueError(
            f"The class {listed(classes[k : k + 1])} has no weight: its rows have sample_weight or "
            "class_weight zero. Drop these rows, or give the class a positive weight."
        )


def check_statistics(S: Statistics, X: Array) -> None:
    """Refuse rows whose statistics overflow; the value that is farthest from their centre is to blame."""
    with np.errstate(over="ignore", invalid="ignore"):
        if S.is_finite():
            return
    centre = S.frame.centre()
    with np.errstate(over="ignore"):
        far = np.abs(to_numpy(X).astype(np.float64) - (0.0 if centre is None else to_numpy(centre)))
    i, j = divmod(int(np.argmax(far)), far.shape[1])
    raise ColumnError(
        j,
        f"holds {float(X[i, j]):g}: the sums of such values, or of their squares, overflow. Treat them as "
        f"missing, or scale the column{or_wider(X)}.",
    )


def or_wider(X: Array) -> str:
    """What else to do where numbers of X overflow: the wider precision, unless X has it."""
    return "" if X.dtype == widest_float(X) else ", or pass it as float64"


def class_weights(class_weight: Any, classes: Array, codes: Array, w: Array) -> Array:
    """Return what `class_weight` multiplies the weights of each class's rows by, on the host."""
    check_class_weight(class_weight)
    labels = to_numpy(classes)
    try:
        return compute_class_weight(
            class_weight, classes=labels, y=labels[to_numpy(codes)], sample_weight=to_numpy(w)
        )
    except ValueError:
        unknown = [plain(label) for label in class_weight if label not in labels]
        raise ValueError(
            f"class_weight has the class {unknown[0]!r}, which is not among the classes {listed(labels)}."
        ) from None


def as_floats(value: Any, name: str) -> Array:
    """Numbers, or an error that names the parameter."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers; got {reprlib.repr(value)}.") from None


def check_class_prior(prior: Any, n_classes: int, name: str, renormalise: bool = False) -> Array:
    """Return a fixed p(y); refuse what is none, or divide it by its sum with a warning."""
    p = as_floats(prior, name)
    if p.shape != (n_classes,):
        raise ValueError(
            f"Number of priors must match number of classes: {name} has shape {p.shape} for {n_classes} "
            "classes. Pass one probability for each class."
        )
    if (p < 0).any() or not (np.isfinite(p).all() and p.any()):
        who = name if renormalise else "Priors"  # scikit-learn's sentences, letter by letter
        raise ValueError(f"{who} must be non-negative, and not all zero; got {name}={listed(p)}.")
    if abs(p.sum() - 1.0) <= 1e-8:
        return p
    if not renormalise:
        raise ValueError(f"The sum of the priors should be 1, got {p.sum():g}: divide {name} by its sum.")
    if abs(p.sum() - 1.0) > 1e-5:
        message = f"The priors do not sum to 1. Renormalizing: {name} was divided by its sum, {p.sum():g}."
        warn(message)
    return p / p.sum()


def check_prior_mean(mean: Any, n: int) -> Array:
    """A centre of the prior on means."""
    mu = as_floats(mean, f"prior_mean, one for each of the {n} features,")
    if mu.shape != (n,) or not np.isfinite(mu).all():
        raise ValueError(f"prior_mean must be {n} finite numbers, one a feature; got shape {mu.shape}.")
    return mu


def check_prior_covariance(covariance: Any, n: int) -> Array:
    """A centre of the prior on covariances: symmetric and positive definite."""
    C = as_floats(covariance, "prior_covariance")
    if C.shape != (n, n) or not np.isfinite(C).all() or not np.allclose(C, C.T):
        raise ValueError(
            f"prior_covariance must be a symmetric matrix of shape ({n}, {n}); got shape {C.shape}."
        )
    if np.linalg.eigvalsh(C)[0] <= 0:
        raise ValueError("prior_covariance must be positive definite.")
    return C


def check_prior_variance(variance: Any, n: int) -> Array:
    """A centre of the prior on variances: positive."""
    v = as_floats(variance, "prior_variance")
    if v.shape != (n,) or not (np.isfinite(v) & (v > 0)).all():
        raise ValueError(f"prior_variance must be {n} positive numbers, one a feature; got shape {v.shape}.")
    return v
