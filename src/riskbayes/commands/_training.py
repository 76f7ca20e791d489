"""What `riskbayes fit` does: read, split, fit, measure on held-out rows, and describe."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from riskbayes import estimators
from riskbayes.arrays import Array
from riskbayes.compare.scores import row_losses
from riskbayes.reading.expected import NUMBER, TEXT
from riskbayes.reading.table import open_table, split_columns
from riskbayes.versions import versions

HELD_OUT = 0.25
"""The share of the rows of each class that is held out."""


@dataclass(frozen=True)
class Training:
    """A table to learn from, and where it came from."""

    data: str
    target: str
    weight: str | None
    dropped: Sequence[str]
    X: Any
    y: Array
    weights: Array | None


def read(data: str, target: str, weight: str | None, drop: Sequence[str]) -> Training:
    """Read a file and return its features, labels and weights."""
    table = open_table(data)
    X, y, weights = split_columns(table, target, weight, drop, "standard input" if data == "-" else data)
    return Training(data, target, weight, drop, X, y, weights)


def estimator(model: str, strategy: str | None, learner: str | None, seed: int) -> Any:
    """Return a new estimator by its name."""
    kind = getattr(estimators, model)
    given: dict[str, Any] = {"strategy": strategy, "learner": learner, "random_state": seed}
    known = kind().get_params(deep=False)
    return kind(**{name: value for name, value in given.items() if value is not None and name in known})


def fitted(clf: Any, X: Any, y: Array, weights: Array | None) -> Any:
    """Return a clone of a classifier, fitted."""
    return clone(clf).fit(X, y) if weights is None else clone(clf).fit(X, y, sample_weight=weights)


def held_out_rows(y: Array, seed: int) -> Array:
    """Return a mask of the rows to hold out: a share of each class, none of a class with one row."""
    rng = np.random.default_rng(seed)
    held = np.zeros(len(y), dtype=bool)
    _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    for code, count in enumerate(counts):
        size = min(round(HELD_OUT * count + 1e-9) if count > 2 else count // 2, count - 1)
        held[rng.permutation(np.flatnonzero(codes == code))[:size]] = True
    return held


def held_out_figures(clf: Any, task: Training, seed: int) -> dict[str, Any]:
    """Return figures on held-out rows of a fit to the others; empty if there are too few rows."""
    held = held_out_rows(task.y, seed)
    if not held.any():
        return {}
    w = task.weights
    found = fitted(clf, task.X.filter(~held), task.y[~held], None if w is None else w[~held])
    P = found.predict_proba(task.X.filter(held))
    return figures(P, found.classes_, task.y[held], None if w is None else w[held], task.y[~held])


def figures(P: Array, classes: Array, y: Array, w: Array | None, trained: Array) -> dict[str, Any]:
    """Return error, log loss, Brier score and, of two classes, AUC, and the error of the majority class."""
    w = np.ones(len(y)) if w is None or not w.any() else w
    codes = np.searchsorted(classes, y)
    losses = row_losses(P, codes)
    majority = np.bincount(np.searchsorted(classes, trained)).argmax()
    found: dict[str, Any] = {
        "rows": len(y),
        "error": float(np.average(P.argmax(axis=1) != codes, weights=w)),
        "majority_error": float(np.average(codes != majority, weights=w)),
        **{name: float(np.average(losses[name], weights=w)) for name in ("log_loss", "brier")},
    }
    if len(classes) == 2 and len(np.unique(codes)) == 2:
        found["auc"] = float(roc_auc_score(codes, P[:, 1], sample_weight=w))
    return found


def describe(clf: Any, task: Training, found: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Return what is stored about a model: the file, the rows, the settings, the versions, the figures."""
    import pyarrow as pa  # an optional dependency, slow to import

    numeric = {
        field.name: pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        for field in task.X.schema
    }
    classes, counts = np.unique(task.y, return_counts=True)
    return {
        "file": task.data,
        "sha256": sha256(task.data),
        "rows": len(task.y),
        "target": task.target,
        "classes": {str(label): int(count) for label, count in zip(classes, counts, strict=True)},
        "weight": task.weight,
        "dropped": list(task.dropped),
        "kinds": {name: NUMBER if is_number else TEXT for name, is_number in numeric.items()},
        "model": type(clf).__name__,
        "settings": settings_of(clf),
        "seed": seed,
        "held_out": dict(found) or None,
        "fitted": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
    }


def settings_of(clf: Any) -> dict[str, Any]:
    """Return the parameters of an estimator that are not its defaults, as values that JSON has."""
    default = type(clf)().get_params(deep=False)
    plain = str | int | float | bool | None
    changed = {name: v for name, v in clf.get_params(deep=False).items() if repr(v) != repr(default[name])}
    return {name: v if isinstance(v, plain) else repr(v) for name, v in changed.items()}


def sha256(path: str) -> str | None:
    """Return the hash of a file; None for standard input and folders."""
    if not Path(path).is_file():
        return None
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def summary(about: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return what is stored about a model as names and values to print."""
    counts = ", ".join(f"{label} ({count})" for label, count in list(about["classes"].items())[:8])
    more = len(about["classes"]) - 8
    settings = ", ".join(f"{name}={value!r}" for name, value in about["settings"].items())
    pairs = [
        ("trained on", f"{about['file']}: {about['rows']} rows, {len(about['kinds'])} columns"),
        ("target", f"{about['target']}: {counts}{f' and {more} more' if more > 0 else ''}"),
        ("model", f"{about['model']}({settings})"),
    ]
    found = about.get("held_out")
    if not found:
        return [*pairs, ("held out", "nothing was held out, so there are no figures")]
    names = {"log_loss": "log loss", "brier": "Brier score", "auc": "AUC"}
    rest = ", ".join(f"{label} {found[key]:.4f}" for key, label in names.items() if key in found)
    return [
        *pairs,
        ("held-out error", f"{found['error']:.2%} of {found['rows']} rows"),
        ("beside it", f"{found['majority_error']:.2%} by always saying the most frequent class"),
        ("held-out figures", rest),
    ]
