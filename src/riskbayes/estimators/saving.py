"""What a model file tells of an estimator, and what is checked of one that comes from a file."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from riskbayes.arrays import to_numpy
from riskbayes.frames import Frame
from riskbayes.loaded import require
from riskbayes.tables import plain


def describe(clf: Any) -> dict[str, Any]:
    """Return what `riskbayes.persistence.describe` tells of an estimator."""
    weight = float(clf._class_masses().sum())
    names = getattr(clf, "feature_names_in_", None)
    return {
        "parameters": {name: shown(value) for name, value in clf.get_params(deep=False).items()},
        "n_features": int(clf.n_features_in_),
        "feature_names": None if names is None else [str(name) for name in names],
        "classes": [shown(label) for label in to_numpy(clf.classes_).tolist()],
        "rows": int(weight) if weight == int(weight) else weight,
    }


def shown(value: Any) -> Any:
    """Return a parameter as JSON holds it, or as Python shows it."""
    value = plain(value)
    is_json = value is None or isinstance(value, bool | int | str)
    return value if is_json or (isinstance(value, float) and math.isfinite(value)) else repr(value)


def check_loaded(clf: Any, size: int) -> None:
    """Refuse parameters that `fit` refuses, no columns or classes, and other names than columns."""
    clf._validate_params()
    n, classes = clf.n_features_in_, clf.classes_
    names = getattr(clf, "feature_names_in_", None)
    require(type(n) is int and 1 <= n <= size, "n_features_in_ is not a number of columns")
    require(classes.ndim == 1 and len(classes) > 0, "classes_ is not a list of classes")
    named = names is None or (names.shape == (n,) and all(isinstance(name, str) for name in names))
    require(named, "feature_names_in_ has not a name for each column")
    table = clf._table
    require(table is None or len(table.readers) == n, "the encoder reads other columns")
    clf._input.check_loaded(clf)


def check_fitted(clf: Any) -> None:
    """Require statistics and parameters of the form that the model itself makes of one row.

    Classes, columns, frame, statistics and parameters then fit one another, so that no scan reads beyond an
    array.
    """
    table = clf._table
    r, n = len(clf.classes_), clf.n_features_in_ if table is None else len(table.kinds)
    model, S, theta = clf.model_, clf.statistics_, clf.parameters_
    require(S["s0"].shape == (r,), f"it has {r} classes, and statistics of {len(S['s0'])}")
    row, none = np.zeros((1, n)), np.zeros((1, r))
    with np.errstate(all="ignore"):
        Z = model.encode(row, S.frame)
        counted = {name: value.shape for name, value in model.statistics(Z, none).items()}
        for found in (S, clf.data_statistics_):
            shapes = {name: value.shape for name, value in found.items()}
            require(shapes == counted, f"statistics have the shapes {shapes}, the model's {counted}")
            require(found.frame is S.frame or found.frame == S.frame, "statistics have other frames")
        if clf._forgotten is not None:
            clf._forgotten + S  # in their common frame, or it raises
        require(same_form(theta, model.parameters(S)), "parameters are not those of the statistics")
        scores = model.scores(Z, model.cast(theta, Z))
    require(np.shape(scores) == (1, r), f"the model has {np.shape(scores)[1:]} classes, not {r}")


def same_form(a: Any, b: Any) -> bool:
    """True if two values have the same types, and arrays of the same shapes and dtypes, through all parts.

    Frames must be equal. None, which stands for an optional part, has the form of any value.
    """
    if a is None or b is None or a is b:
        return True
    if isinstance(a, np.ndarray | np.generic) and isinstance(b, np.ndarray | np.generic):
        return a.shape == b.shape and a.dtype == b.dtype
    if type(a) is not type(b) or (isinstance(a, Frame) and a != b):
        return False
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(same_form, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same_form(a[key], b[key]) for key in a)
    if is_dataclass(a):
        return all(same_form(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    return True
