"""Checks whose errors name the parameter, the column or the class, and say what to do."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils import compute_class_weight
from sklearn.utils._array_api import get_namespace

from riskbayes.arrays import Array, namespace, sent_to, to_numpy, widest_float


@contextmanager
def unchanged_on_error(estimator: Any) -> Iterator[None]:
    """All or nothing: an estimator that refuses its input, or is interrupted too early, stays as it was.

    What belongs to callbacks is left to them.
    """
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        for name in set(vars(estimator)) - set(before):
            if not name.startswith(("_callback", "_skl")):
                delattr(estimator, name)
        vars(estimator).update(before)
        raise


def column_name(estimator: Any, j: int) -> str:
    """How a message calls column j."""
    names = getattr(estimator, "feature_names_in_", None)
    return f"column {j}" if names is None else f"column {names[j]!r}"


def check_finite(estimator: Any, X: Array) -> Array:
    """Refuse NaN and infinity; a sum tells, without a table of booleans, that all is well."""
    xp = namespace(X)
    with np.errstate(over="ignore", invalid="ignore"):
        if math.isfinite(float(xp.sum(X, dtype=widest_float(X)))):
            return X
    for j in range(X.shape[1]):
        column = X[:, j]
        bad = to_numpy(column[~xp.isfinite(column)])
        if bad.size:
            value = "NaN" if np.isnan(bad[0]) else "infinity"
            raise ValueError(
                f"Input X contains {value} in {column_name(estimator, j)} ({bad.size} such values). "
                f"{type(estimator).__name__} does not accept missing values encoded as NaN, nor infinity: "
                "drop the rows, or fill them in, for instance by sklearn.impute.SimpleImputer."
            )
    return X


def check_library(estimator: Any, X: Any) -> None:
    """Refuse arrays of another library, where scikit-learn would pass them on to NumPy's formulas."""
    if isinstance(X, np.ndarray) or not hasattr(X, "__dlpack__") or not get_namespace(X)[1]:
        return
    if not estimator.__sklearn_tags__().array_api_support:
        raise TypeError(
            f"{type(estimator).__name__} takes NumPy arrays, not those of {type(X).__module__}: move X to "
            "the host, or choose an estimator whose tags have array_api_support."
        )


def check_lengths(X: Array, y: Array, X_name: str = "X", y_name: str = "y") -> None:
    """Refuse rows without labels, and labels without rows."""
    if X.shape[0] != y.shape[0]:
        raise ValueError(f"{X_name} has {X.shape[0]} rows and {y_name} has {y.shape[0]} labels.")


def listed(labels: Array) -> list:
    """Labels for a message."""
    return to_numpy(labels).tolist()


def classes_and_codes(labels: Array, X: Array) -> tuple[Array, Array]:
    """The sorted classes, and the code of each label where X is."""
    xp = namespace(labels)
    if xp is np:
        classes, codes = np.unique(labels, return_inverse=True)
        return classes, sent_to(codes, X)
    return tuple(xp.unique_inverse(labels))


def check_masses(classes: Array, y: Array, w: Array | None) -> None:
    """Refuse a class with no weight."""
    if w is None:
        return
    masses = [float(namespace(w).sum(w[y == k])) for k in range(classes.shape[0])]
    if min(masses) <= 0:
        label = listed(classes)[masses.index(min(masses))]
        raise ValueError(
            f"The class {label!r} has no weight: its rows have sample_weight or class_weight zero. "
            "Drop these rows, or give the class a positive weight."
        )


def class_weights(class_weight: Any, classes: Array, codes: Array, w: Array) -> Array:
    """Return what `class_weight` multiplies the weights of each class's rows by, on the host."""
    labels = to_numpy(classes)
    found = compute_class_weight(
        class_weight, classes=labels, y=labels[to_numpy(codes)], sample_weight=to_numpy(w)
    )
    if not (found >= 0).all():
        label = labels[~(found >= 0)].tolist()[0]
        raise ValueError(f"class_weight of class {label!r} must not be negative.")
    return found


def as_floats(value: Any, name: str) -> Array:
    """Numbers, or an error that names the parameter."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers; got {value!r}.") from None


def check_class_prior(prior: Any, n_classes: int, name: str) -> Array | None:
    """A fixed p(y) that is one."""
    if prior is None:
        return None
    p = as_floats(prior, name)
    if p.shape != (n_classes,):
        raise ValueError(
            f"{name} needs one probability for each class. Number of priors must match number of classes: "
            f"got shape {p.shape} for {n_classes} classes."
        )
    if (p < 0).any() or not np.isfinite(p).all():
        raise ValueError(f"{name} must be non-negative probabilities; got {p.tolist()}.")
    if abs(p.sum() - 1.0) > 1e-8:
        raise ValueError(f"The sum of {name} should be 1, got {p.sum():g}: divide it by its sum.")
    return p


def check_prior_mean(mean: Any, n: int) -> Array | None:
    """A centre of the prior on means."""
    if mean is None:
        return None
    mu = as_floats(mean, f"prior_mean, one for each of the {n} features,")
    if mu.shape != (n,) or not np.isfinite(mu).all():
        raise ValueError(f"prior_mean must be {n} finite numbers, one a feature; got shape {mu.shape}.")
    return mu


def check_prior_covariance(covariance: Any, n: int) -> Array | None:
    """A centre of the prior on covariances: symmetric and positive definite."""
    if covariance is None:
        return None
    C = as_floats(covariance, "prior_covariance")
    if C.shape != (n, n) or not np.isfinite(C).all() or not np.allclose(C, C.T):
        raise ValueError(
            f"prior_covariance must be a symmetric matrix of shape ({n}, {n}); got shape {C.shape}."
        )
    if np.linalg.eigvalsh(C)[0] <= 0:
        raise ValueError("prior_covariance must be positive definite.")
    return C


def check_prior_variance(variance: Any, n: int) -> Array | None:
    """A centre of the prior on variances: positive."""
    if variance is None:
        return None
    v = as_floats(variance, "prior_variance")
    if v.shape != (n,) or not (np.isfinite(v) & (v > 0)).all():
        raise ValueError(f"prior_variance must be {n} positive numbers, one a feature; got shape {v.shape}.")
    return v
