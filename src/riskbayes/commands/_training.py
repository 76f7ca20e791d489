"""What `riskbayes fit` does: read, split, fit, measure on held-out rows, and describe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from riskbayes import estimators
from riskbayes.arrays import Array
from riskbayes.commands._replacing import place_of, sha256
from riskbayes.compare.scores import row_losses
from riskbayes.compare.splits import default_folds, random_parts, too_few
from riskbayes.findings import Finding
from riskbayes.input.files.notation import NUMBER, TEXT, Notation
from riskbayes.input.files.options import Options
from riskbayes.input.files.table import read_table, split_columns
from riskbayes.input.labels import rows_without_target
from riskbayes.versions import versions


@dataclass(frozen=True)
class Training:
    """A table to learn from, and where it came from."""

    origin: dict[str, Any]
    """What is stored about the table, as `origin_of` returns it."""
    X: Any
    y: Array
    weights: Array | None
    findings: Sequence[Finding] = ()
    """What reading the file found."""


def read(data: str, target: str, weight: str | None, options: Options) -> Training:
    """Read a file and return its features, labels and weights."""
    found = read_table(data, options, [target])
    name = "standard input" if data == "-" else data
    X, y, weights, lost = split_columns(found.table, target, weight, options.unread, name)
    labels, counts = np.unique(y, return_counts=True)
    classes = {str(label): int(count) for label, count in zip(labels, counts, strict=True)}
    origin = origin_of(data, target, X.schema, classes, lost, weight, options.unread, found.notations)
    return Training(origin, X, y, weights, found.findings)


def origin_of(
    data: str,
    target: str,
    schema: Any,
    classes: Mapping[str, int],
    lost: int,
    weight: str | None,
    dropped: Sequence[str],
    notations: Mapping[str, Notation],
) -> dict[str, Any]:
    """Return what is stored about a table: `classes` are the rows of each class, `lost` those without one."""
    import pyarrow as pa  # an optional dependency, slow to import

    numeric = {
        each.name: pa.types.is_integer(each.type) or pa.types.is_floating(each.type) for each in schema
    }
    return {
        "file": data,
        "sha256": sha256(data),
        "path_sha256": place_of(data),
        "rows": sum(classes.values()),
        "rows_without_target": lost,
        "target": target,
        "classes": dict(classes),
        "weight": weight,
        "dropped": list(dropped),
        "kinds": {name: NUMBER if is_number else TEXT for name, is_number in numeric.items()},
        "notation": {name: how.to_store() for name, how in notations.items() if name in numeric},
    }


def estimator(
    model: str, strategy: str | None, learner: str | None, columns: dict[str, str], seed: int
) -> Any:
    """Return a new estimator by its name; `columns` are kinds that the user says.

    By default the strategy is the one that explains its predictions and is written as ONNX.
    """
    kind = getattr(estimators, model)
    given: dict[str, Any] = {"strategy": strategy or "single", "learner": learner, "random_state": seed}
    given["columns"] = columns or None
    known = kind().get_params(deep=False)
    return kind(**{name: value for name, value in given.items() if value is not None and name in known})


def held_out_figures(clf: Any, task: Training, seed: int) -> dict[str, Any]:
    """Return figures on the rows that `compare` with this seed holds out; empty if there are too few rows."""
    classes, codes = np.unique(task.y, return_inverse=True)
    k = default_folds(codes)
    target = task.origin["target"]
    if too_few(codes, k, target):
        return {}
    w = np.ones(len(codes)) if task.weights is None else task.weights
    parts = random_parts(codes, None, k, seed, target)
    P, majority = np.zeros((len(codes), len(classes))), np.zeros(len(codes), dtype=int)
    for kept, held in parts:
        train, test = (np.isin(np.arange(len(codes)), rows) for rows in (kept, held))
        weights = None if task.weights is None else w[kept]
        found = clone(clf).fit(task.X.filter(train), task.y[kept], sample_weight=weights)
        P[np.ix_(held, np.searchsorted(classes, found.classes_))] = found.predict_proba(task.X.filter(test))
        majority[held] = np.bincount(codes[kept], weights=w[kept]).argmax()
    return figures(P, codes, majority, w, [held for _, held in parts])


def figures(P: Array, codes: Array, majority: Array, w: Array, parts: Sequence[Array]) -> dict[str, Any]:
    """Return error, log loss, Brier score and, of two classes, AUC, and the error of the majority class.

    `parts` are the held-out rows of each fit; the AUC is that of each of them, averaged.
    """
    rows = np.concatenate(parts)
    weights = w[rows] if w[rows].any() else np.ones(len(rows))
    losses = row_losses(P[rows], codes[rows])
    found: dict[str, Any] = {
        "rows": len(rows),
        "error": float(np.average(losses["error"], weights=weights)) / 100,
        "majority_error": float(np.average(codes[rows] != majority[rows], weights=weights)),
        **{name: float(np.average(losses[name], weights=weights)) for name in ("log_loss", "brier")},
    }
    both = [held for held in parts if all(w[held][codes[held] == c].any() for c in (0, 1))]
    if P.shape[1] == 2 and both:
        areas = [roc_auc_score(codes[held], P[held, 1], sample_weight=w[held]) for held in both]
        found["auc"] = float(np.mean(areas))
    return found


def describe(clf: Any, origin: Mapping[str, Any], found: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Return what is stored about a model: its table, the settings, the versions, the held-out figures."""
    return {
        **origin,
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
    lost = rows_without_target(about.get("rows_without_target", 0), about["rows"], about["target"])
    pairs += [("finding", str(finding)) for finding in lost]
    found = about.get("held_out")
    if not found:
        return [*pairs, ("held out", "nothing was held out, so there are no figures")]
    names = {"log_loss": "log loss", "brier": "Brier score", "auc": "AUC"}
    weighed = f", by {about['weight']!r}" if about.get("weight") else ""
    rest = ", ".join(f"{label} {found[key]:.4f}" for key, label in names.items() if key in found)
    return [
        *pairs,
        ("held-out error", f"{found['error']:.2%} of {found['rows']} rows{weighed}"),
        ("beside it", f"{found['majority_error']:.2%} by always saying the most frequent class"),
        ("held-out figures", rest),
    ]
