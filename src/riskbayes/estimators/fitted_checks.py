"""Findings that a fitted model tells of itself: `checks_` of every estimator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from unicodedata import normalize

import numpy as np

from riskbayes.arrays import Array, to_numpy
from riskbayes.estimators.joint import model_columns
from riskbayes.exceptions import listed
from riskbayes.findings import Finding
from riskbayes.input.files.options import kind_option
from riskbayes.preprocessing.encoder import REASONS, Column
from riskbayes.tables import plain
from riskbayes.task import Status

FEW_ROWS = 20
"""A class with a weight of fewer rows is one of few rows."""

MISSING, MANY_MISSING = 0.2, 0.5
"""Shares of missing cells in a column that are mentioned, and that weigh as a warning."""

STILL_FALLING = 1e-3
"""A last iteration that lowers the log loss by more than this share of it could have gone on."""

ROUNDED = 1e-12
"""A variance below this share of the mean square is a rounded zero."""

TINY = 1e-300
"""Least divisor: a class may have the weight zero."""

MOST_SINGLE = 5
"""Up to this number of columns have a finding each; more share one."""


def model_findings(clf: Any) -> Iterator[Finding]:
    """Yield the findings of one generative model and its learner."""
    yield from floored_classes(clf)
    yield from table_findings(clf, masses_of(clf))
    yield from stopped_early(clf)


def table_findings(clf: Any, masses: Array) -> Iterator[Finding]:
    """Yield the findings on the columns of a table, if there was one, and on the classes.

    Missing cells are counted by rows, and so is what they are a share of. The mass of a class counts a row of
    weight two as two rows; the weight of the class itself makes no rows.
    """
    table = clf._table
    if table is not None and table.n_rows:
        yield from column_findings(table.columns, table.n_rows)
    weights = 1.0 if clf.class_weight_ is None else np.maximum(to_numpy(clf.class_weight_), TINY)
    labels = [str(plain(label)) for label in to_numpy(clf.classes_)]
    yield from few_rows(labels, masses / weights)
    yield from labels_alike(labels)


def labels_alike(labels: Sequence[str]) -> Iterator[Finding]:
    """Yield RB020 for labels that differ by case, blanks or the coding of accents only."""
    alike: dict[str, list[str]] = {}
    for label in labels:
        alike.setdefault(" ".join(normalize("NFC", label).casefold().split()), []).append(label)
    for own in alike.values():
        if own[1:]:
            shown = ", ".join(map(repr, own[:MOST_SINGLE])) + (", ..." if own[MOST_SINGLE:] else "")
            yield Finding("RB020", f"Labels {shown} count as {len(own)} classes.", own[0])


def column_findings(columns: Sequence[Column], rows: int) -> Iterator[Finding]:
    """Yield findings on columns that were left out (RB005, RB006, RB032) or lack many cells (RB007)."""
    constant, ids, texts = {}, {}, {}
    for column in columns:
        if not column.reason or column.reason in REASONS.values():
            continue
        kind, _, many = column.reason.partition(": ")
        example = f", such as {column.example}" if column.example else ""
        kept = f"{example}, and was left out; {kind_option(column.name, 'category')} keeps it"
        if kind == "an identifier":
            ids[column.name] = f"has {many} of {rows - (column.n_missing or 0)} cells{kept}"
        elif kind == "text":
            texts[column.name] = f"holds free text ({many}){kept}"
        else:
            constant[column.name] = f"is {column.reason}"
    yield from grouped("RB005", constant, "have one value or none, and were left out", "info")
    yield from grouped("RB006", ids, "name rows, and were left out")
    yield from grouped("RB032", texts, "hold free text, and were left out")
    shares = {c.name: (c.n_missing or 0) / rows for c in columns if c.reason != "missing everywhere"}
    for severity, low, high in (("warning", MANY_MISSING, 2.0), ("info", MISSING, MANY_MISSING)):
        named = {
            name: f"is missing in {100 * share:.0f} % of the rows"
            for name, share in shares.items()
            if low <= share < high
        }
        yield from grouped("RB007", named, f"are missing in {100 * low:.0f} % of the rows or more", severity)


def grouped(code: str, named: dict[str, str], together: str, severity: str = "warning") -> Iterator[Finding]:
    """Yield a finding for each column, or one for all of them if they are many.

    `named` says by column what was found, after its name; `together` says it of several.
    """
    if len(named) <= MOST_SINGLE:
        for name, words in named.items():
            yield Finding(code, f"Column {name!r} {words}.", name, severity)
        return
    yield Finding(code, f"{len(named)} columns {together}: {listed(named)}.", "", severity)


def few_rows(labels: Sequence[str], masses: Array) -> Iterator[Finding]:
    """Yield RB008 for every class of few rows, or one finding if they are many."""
    least = FEW_ROWS * (1 - 1e-9)  # sums of weights are rounded
    rare = {label: float(n) for label, n in zip(labels, to_numpy(masses), strict=True) if n < least}
    if len(rare) > MOST_SINGLE:
        found = f"{len(rare)} classes have fewer than {FEW_ROWS} rows: {listed(rare)}."
        yield Finding("RB008", found)
        return
    for label, n in rare.items():
        yield Finding("RB008", f"Class {label!r} has {n:g} {'row' if n == 1 else 'rows'}.", label)


def floored_classes(clf: Any) -> Iterator[Finding]:
    """Yield RB001 if covariances or variances of the fitted model were raised to a floor."""
    floored = getattr(clf.parameters_, "floored", None)
    if floored is None or clf.model_.floor_warning is None:
        return
    counts = to_numpy(floored)
    if not counts.any():
        return
    classes = [str(plain(label)) for label in to_numpy(clf.classes_)[counts > 0]]
    yield Finding(
        "RB001",
        f"Up to {int(counts.max())} variances of {'class' if len(classes) == 1 else 'classes'} "
        f"{listed(classes)} are on a floor.{constant_columns(clf)}",
        classes[0] if len(classes) == 1 else "",
    )


def constant_columns(clf: Any) -> str:
    """Return a sentence that names columns that do not vary within a class, where the statistics tell."""
    S = clf.data_statistics_
    if "s2_diagonal" not in S or "observed" in S:
        return ""
    mass, s1, s2 = (to_numpy(S[name]) for name in ("s0", "s1", "s2_diagonal"))
    mean, square = s1 / mass[:, None], s2 / mass[:, None]
    still = np.flatnonzero((square - mean * mean <= ROUNDED * square).any(axis=0)).tolist()
    if not still:
        return ""
    names = [str(model_columns(clf)[j]) for j in still]
    return f" Columns that do not vary within a class: {listed(names)}."


def stopped_early(clf: Any) -> Iterator[Finding]:
    """Yield RB011 if the last iteration before max_iter still lowered the log loss."""
    if clf.status_ is not Status.MAX_ITER:
        return
    loss = clf.history_["log_loss"][clf.history_["accepted"]]
    if len(loss) < 2 or not loss[-2] - loss[-1] > STILL_FALLING * abs(loss[-2]):
        return
    yield Finding(
        "RB011",
        f"The last of {clf.n_iter_} iterations lowered the log loss of the training rows by "
        f"{100 * (1 - loss[-1] / loss[-2]):.2g} %, to {loss[-1]:.3g}.",
        severity="info",
    )


def masses_of(clf: Any) -> Array:
    """Return the weight of each class in the training rows."""
    return np.asarray(to_numpy(clf.data_statistics_["s0"]), dtype=np.float64)
