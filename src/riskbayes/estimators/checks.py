"""Checks of parameters, labels and weights; their errors name the culprit and say what to do."""

from __future__ import annotations

import math
import reprlib
from numbers import Real
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import compute_class_weight
from sklearn.utils._array_api import move_to
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, _check_y

from riskbayes.arrays import Array, device_of, namespace, take_rows, to_numpy, widest_float
from riskbayes.exceptions import ColumnError, listed, warn
from riskbayes.models.base import GenerativeModel
from riskbayes.statistics import Statistics
from riskbayes.tables import is_missing, plain

MOST_COUNTED = 2**16
"""Integer labels below this are counted, not sorted."""

ALPHA_MIN = 1e-10
"""The least `alpha` if `force_alpha` is False, as in scikit-learn."""

LEAST_WEIGHT, MOST_WEIGHT = 1e-100, 1e100
"""Bounds on a sum of weights: its square, and its products with squares of values, must not overflow."""


def labels_like(estimator: Any, y: Any, X: Array) -> Array:
    """Return checked labels as an array of X's library, on its device; strings stay NumPy arrays.

    Whole numbers and strings are classes; scikit-learn's check, which sorts them, would only take time. Where
    labels are missing, the error says in which rows.
    """
    try:
        labels = _check_y(y, estimator=estimator)
        if not isinstance(labels, np.ndarray) or labels.dtype.kind not in "biuUS":
            check_labels(labels)
    except (TypeError, ValueError):
        found = list_of(y)
        gone = [i for i, label in enumerate(found) if is_missing(label)]
        if not gone:
            raise
        raise ValueError(
            f"y has no label in {len(gone)} of {len(found)} rows; the first is row {gone[0]}, with "
            f"{found[gone[0]]!r}. Drop these rows; an estimator of one model also takes them as rows "
            "without a label, by fit(..., unlabelled=None)."
        ) from None
    if isinstance(X, np.ndarray) or (isinstance(labels, np.ndarray) and labels.dtype.kind in "OUST"):
        return labels
    return move_to(labels, xp=namespace(X), device=device_of(X))


def list_of(y: Any) -> list:
    """Return labels of any library as a list; an empty one for what is no sequence."""
    if hasattr(y, "tolist") or hasattr(y, "to_list"):
        found = y.tolist() if hasattr(y, "tolist") else y.to_list()
        return found if isinstance(found, list) else []
    return list(y) if hasattr(y, "__iter__") else []


def check_labels(y: Array) -> None:
    """Refuse labels that are no classes, and strings together with other types, which cannot be sorted."""
    objects = isinstance(y, np.ndarray) and y.dtype.kind == "O"
    words = [isinstance(label, str) for label in y.tolist()] if objects else [False]
    if all(words):
        return
    if any(words):
        word, other = y[words.index(True)], y[words.index(False)]
        raise TypeError(
            f"y has labels of several kinds, such as {plain(word)!r} and {plain(other)!r}: make all of "
            "them strings or all numbers, and drop rows without one."
        )
    if objects and type_of_target(y) == "unknown":
        raise ValueError(
            f"Unknown label type: y holds objects such as {y.flat[0]!r}. Make the labels strings, whole "
            "numbers or booleans, for instance by `.astype(str)`."
        )
    check_classification_targets(y)


def distinct_labels(labels: Array) -> tuple[Array, Array]:
    """Return the sorted distinct labels and the code of each; few values of many rows are not sorted."""
    if not isinstance(labels, np.ndarray):
        return tuple(namespace(labels).unique_inverse(labels))
    if labels.dtype.kind in "iu" and labels.min() >= 0 and labels.max() < MOST_COUNTED:
        whole = labels.astype(np.intp, copy=False)
        classes = np.flatnonzero(np.bincount(whole))
        place = np.zeros(classes[-1] + 1, dtype=np.intp)
        place[classes] = np.arange(len(classes))
        return classes.astype(labels.dtype), place[whole]
    if labels.dtype.kind in "OU" and isinstance(labels[0], str):
        listed_labels = labels.tolist()
        seen = {label: number for number, label in enumerate(dict.fromkeys(listed_labels))}
        classes, place = np.unique(np.array(list(seen), dtype=labels.dtype), return_inverse=True)
        return classes, place[np.fromiter(map(seen.__getitem__, listed_labels), np.intp, len(labels))]
    return np.unique(labels, return_inverse=True)


def check_weights(sample_weight: Any, X: Array, name: str, whole: bool = True) -> Array:
    """Return the weights of the rows as an array, or raise an error with the name of the argument.

    Those of a batch may all be zero; those of the `whole` may not.
    """
    try:
        w = _check_sample_weight(
            sample_weight,
            X,
            dtype=widest_float(X),
            ensure_non_negative=True,
            allow_all_zero_weights=not whole,
        )
    except (TypeError, ValueError) as error:
        said = str(error).splitlines()[0]
        if "weight" not in said.lower():  # the error describes one entry, without its argument
            said = f"sample_weight must be numbers, one a row: {said}"
        raise ValueError(said.replace("sample_weight", name)) from error
    check_total(w, name)
    return w


def check_total(w: Array, name: str) -> None:
    """Refuse weights whose sum is so large or small that weighted sums would overflow or underflow."""
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


def class_codes(labels: Array, classes: Array, name: str) -> Array:
    """Return the index of each label in the sorted classes; refuse labels that are not among them."""
    xp = namespace(labels)
    if xp is np:
        found = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    else:
        found = xp.clip(xp.searchsorted(classes, labels), max=classes.shape[0] - 1)
    known = take_rows(classes, found) == labels
    if not bool(xp.all(known)):
        unknown = xp.unique_values(labels[~known])
        raise ValueError(
            f"The target label(s) {listed(unknown)} in {name} do not exist in the initial classes "
            f"{listed(classes)}. Drop these rows, or fit with all classes."
        )
    return found


def class_weights(class_weight: Any, classes: Array, masses: Array) -> Array:
    """Return the weight of each class, as a NumPy array; refuse weights that are not valid.

    `masses` are the weights of all rows of each class; a class without any has none here too.
    """
    for label, weight in class_weight.items() if isinstance(class_weight, dict) else ():
        if not isinstance(weight, Real) or not 0 <= float(weight) < math.inf:
            raise ValueError(
                f"class_weight of class {plain(label)!r} must be a finite, non-negative number; got "
                f"{plain(weight)!r}."
            )
    labels, masses = to_numpy(classes), to_numpy(masses)
    if isinstance(class_weight, str):  # "balanced"
        return np.divide(masses.sum(), np.count_nonzero(masses) * masses, out=0.0 * masses, where=masses > 0)
    try:
        return compute_class_weight(class_weight, classes=labels, y=labels)
    except ValueError:
        unknown = [plain(label) for label in class_weight if label not in labels]
        raise ValueError(
            f"class_weight has the class {unknown[0]!r}, which is not among the classes {listed(labels)}."
        ) from None


def check_masses(classes: Array, masses: Array, every: bool = True) -> None:
    """Refuse a class without weight; if not `every` class needs one, refuse only if no class has any."""
    masses = to_numpy(masses)
    if (masses.min() if every else masses.max()) <= 0:
        k = int(np.argmin(masses))
        raise ValueError(
            f"The class {listed(classes[k : k + 1])} has no weight: its rows have sample_weight or "
            "class_weight zero. Drop these rows, or give the class a positive weight."
        )


def check_finite(model: GenerativeModel, S: Statistics, X: Array | None) -> None:
    """Refuse rows whose statistics overflow; the error names the value farthest from their centre.

    X is None for rows that are not in memory.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if S.is_finite():
            return
    if X is None:
        raise ValueError("The sums of values of X, or of their squares, overflow. Scale the columns.")
    centre = model.centre(S.frame)
    if issparse(X):
        place = int(np.argmax(np.abs(X.data)))
        j, value = int(X.indices[place]), float(X.data[place])
    else:
        with np.errstate(over="ignore"):
            far = np.abs(to_numpy(X).astype(np.float64) - (0.0 if centre is None else to_numpy(centre)))
        i, j = divmod(int(np.nanargmax(far)), far.shape[1])  # a missing cell does not overflow
        value = float(X[i, j])
    raise ColumnError(
        j,
        f"holds {value:g}: the sums of such values, or of their squares, overflow. Treat them as "
        f"missing, or scale the column{or_wider(X)}.",
    )


def or_wider(X: Array) -> str:
    """Return the end of a message about numbers that overflow: advises float64, unless X has it."""
    return "" if X.dtype == widest_float(X) else ", or pass it as float64"


def as_floats(value: Any, name: str) -> Array:
    """Return a parameter as a float64 array, or raise an error that names it."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers; got {reprlib.repr(value)}.") from None


def check_alpha(alpha: Any, force_alpha: bool, n: int) -> float | Array:
    """Return pseudo-counts, a number or one for each of n columns; small ones are raised unless forced."""
    found = as_floats(alpha, "alpha")
    if found.ndim and found.shape != (n,):
        raise ValueError(
            f"When alpha is an array, it should contains `n_features`, here {n} numbers; got shape "
            f"{found.shape}."
        )
    if not (np.isfinite(found) & (found >= 0)).all():
        raise ValueError("All values in alpha must be greater than 0, or zero for maximum likelihood.")
    if found.min(initial=ALPHA_MIN) < ALPHA_MIN and not force_alpha:
        warn(
            f"alpha too small will result in numeric errors, setting alpha = {ALPHA_MIN:.1e}. Use "
            "`force_alpha=True` to keep alpha unchanged."
        )
        found = np.maximum(found, ALPHA_MIN)
    return found if found.ndim else float(found)


def check_class_prior(prior: Any, n_classes: int, name: str, renormalise: bool = False) -> Array:
    """Return a fixed p(y) as an array; if its sum is not one, refuse or `renormalise` it with a warning."""
    p = as_floats(prior, name)
    if p.shape != (n_classes,):
        raise ValueError(
            f"Number of priors must match number of classes: {name} has shape {p.shape} for {n_classes} "
            "classes. Pass one probability for each class."
        )
    if (p < 0).any() or not (np.isfinite(p).all() and p.any()):
        who = name if renormalise else "Priors"  # the messages begin with scikit-learn's sentences
        raise ValueError(f"{who} must be non-negative, and not all zero; got {name}={listed(p)}.")
    if abs(p.sum() - 1.0) <= 1e-8:
        return p
    if not renormalise:
        raise ValueError(f"The sum of the priors should be 1, got {p.sum():g}: divide {name} by its sum.")
    if abs(p.sum() - 1.0) > 1e-5:
        warn(f"The priors do not sum to 1. Renormalizing: {name} was divided by its sum, {p.sum():g}.")
    return p / p.sum()


def check_prior_mean(mean: Any, n: int) -> Array:
    """Return the centre of the prior on means as an array: finite numbers."""
    mu = as_floats(mean, f"prior_mean, one for each of the {n} features,")
    if mu.shape != (n,) or not np.isfinite(mu).all():
        raise ValueError(f"prior_mean must be {n} finite numbers, one a feature; got shape {mu.shape}.")
    return mu


def check_prior_covariance(covariance: Any, n: int) -> Array:
    """Return the centre of the prior on covariances as an array: symmetric and positive definite."""
    C = as_floats(covariance, "prior_covariance")
    if C.shape != (n, n) or not np.isfinite(C).all() or not np.allclose(C, C.T):
        raise ValueError(
            f"prior_covariance must be a symmetric matrix of shape ({n}, {n}); got shape {C.shape}."
        )
    if np.linalg.eigvalsh(C)[0] <= 0:
        raise ValueError("prior_covariance must be positive definite.")
    return C


def check_prior_variance(variance: Any, n: int) -> Array:
    """Return the centre of the prior on variances as an array: positive numbers."""
    v = as_floats(variance, "prior_variance")
    if v.shape != (n,) or not (np.isfinite(v) & (v > 0)).all():
        raise ValueError(f"prior_variance must be {n} positive numbers, one a feature; got shape {v.shape}.")
    return v
