"""Laws of statistics that add and subtract: batches, merging, forgetting, a warm start; and of folds."""

from __future__ import annotations

import pickle
import re
from typing import Any

import numpy as np
from sklearn.base import clone

from fuzzing.cases import COVARIANCES, HELD, REFUSED, UNDECIDED, Case, Refusal, Violation, attempt
from fuzzing.changes import same_categories
from fuzzing.laws import change, check_mass, row_weights
from fuzzing.tables import Array, Table
from riskbayes.learners import RC, RCCV, TM

STREAMING = ("CategoricalNB", *COVARIANCES)
"""Estimators that take every batch; a model of one's own may need all rows at once, and say so."""


def adds_up(case: Case) -> bool:
    """True if statistics of parts add up: where class weights are known before all rows are.

    A column with negative numbers is coded by value, and one without by itself: parts may differ in that.
    """
    known = hasattr(case.estimator, "partial_fit") and case.estimator.class_weight != "balanced"
    return known and case.table.holder != "negative"


def whole(case: Case, estimator: Any = None) -> Any:
    """P of one fit on all rows, by closed form unless said otherwise."""
    found = case.fit(case.closed_form if estimator is None else estimator, case.table)
    return case.posterior(found, case.table)


def taken(case: Case, clf: Any, method: str, part: Table, **arguments: Any) -> Any:
    """What `partial_fit`, `forget` or `calibrate` makes of some rows, or a Refusal."""
    if part.w is not None:
        arguments["sample_weight"] = part.w
    return attempt(lambda: getattr(clf, method)(part.held(part.X), case.labels[part.y], **arguments))


def refused(case: Case, found: Any, what: str) -> str:
    """End a law whose rows were refused.

    They may be by a model of one's own, or where a part of the table underflows, or has no weight.
    """
    if case.name in STREAMING and not re.search("underflow|at least one non-zero", found.message):
        raise Violation(f"{what} is refused: {found.message}")
    return REFUSED


def halves(case: Case) -> tuple[Table, Table] | None:
    """The table in two parts, each with rows of every class; None where there are too few."""
    table, half = case.table, np.zeros(len(case.table.y), dtype=bool)
    for k in range(table.n_classes):
        rows = case.rng(3, k).permutation(np.flatnonzero((table.y == k) & (table.weights > 0)))
        if len(rows) < 2:
            return None
        half[rows[: len(rows) // 2]] = True
    return table.rows(half), table.rows(~half)


@change("batches of partial_fit are one fit", adds_up)
def batches(case: Case) -> str:
    table, rng, P, clf = case.table, case.rng(3), whole(case), clone(case.closed_form)
    # Sorted by class, the first batches lack some.
    order = np.argsort(table.y, kind="stable") if rng.random() < 0.5 else rng.permutation(len(table.y))
    for index in np.array_split(order, rng.integers(2, 5)):
        part = table.rows(index)
        found = taken(case, clf, "partial_fit", part, classes=case.labels)
        if isinstance(found, Refusal):
            if not part.weights.any():  # refused as a batch of no rows is
                if table.kind == "categories":
                    return UNDECIDED  # one fit counts the categories of its rows too
                continue
            return REFUSED if isinstance(P, Refusal) else refused(case, found, "a batch")
    return recentred(case, P, case.posterior(clf, table), case.closed_form)


def recentred(case: Case, P: Any, Q: Any, estimator: Any) -> str:
    """Compare answers, one from moments that were recentred.

    Where rounding leaves directions of a covariance open, it is larger after recentring, and may leave more
    of them open: what stands in for them then differs. So it is where an outlier moves the origin of a part
    by far more than the others vary.
    """
    table = case.table
    try:
        return case.compare(P, Q, estimator, table)
    except Violation:
        outliers = {"with_an_outlier", "heavy_tailed"} & set(table.traits)
        open_directions = table.kind == "real" and (outliers or np.isinf(table.condition("full")))
        if open_directions and case.name != "SmoothNB":
            return UNDECIDED
        raise


@change("merge is one fit", adds_up)
def merge(case: Case) -> str:
    return merged(case, case.closed_form)


@change(
    "merge with class_weight='balanced' is one fit, or refused", lambda case: hasattr(case.estimator, "merge")
)
def merge_balanced(case: Case) -> str:
    return merged(case, clone(case.closed_form).set_params(class_weight="balanced"))


def merged(case: Case, estimator: Any) -> str:
    """How a merge of two halves agrees with one fit."""
    parts = halves(case)
    if parts is None:
        return UNDECIDED
    P, (one, other) = whole(case, estimator), (case.fit(estimator, part) for part in parts)
    if any(isinstance(found, Refusal) for found in (P, one, other)):
        return REFUSED
    found = attempt(lambda: one.merge(other))
    if isinstance(found, Refusal):
        return REFUSED if estimator.class_weight == "balanced" else refused(case, found, "a merge")
    if estimator.class_weight != "balanced":
        check_mass(case, one, row_weights(one, case.table).sum())
    return recentred(case, P, case.posterior(one, case.table), estimator)


@change("forget is the inverse of partial_fit", adds_up)
def forget(case: Case) -> str:
    """Rows forgotten leave the fit on the others; taken in again, they leave nothing."""
    parts, table = halves(case), case.table
    if parts is None:
        return UNDECIDED
    (kept, gone), clf = parts, case.fit(case.closed_form, table)
    P, Q = case.posterior(clf, table), case.posterior(case.fit(case.closed_form, kept), kept)
    if isinstance(P, Refusal) or isinstance(Q, Refusal):
        return REFUSED
    found = taken(case, clf, "forget", gone)
    if isinstance(found, Refusal):
        return refused(case, found, "to forget rows that were fitted")
    check_mass(case, clf, row_weights(clf, kept).sum())
    bound = bound_after_forgetting(case, kept)
    if case.name in STREAMING and bound < 1e-3:
        case.compare(Q, case.posterior(clf, kept), case.closed_form, kept, bound)
    found = taken(case, clf, "partial_fit", gone)
    if isinstance(found, Refusal):
        return refused(case, found, "to take in what was forgotten")
    again = case.posterior(clf, table)
    return case.compare(P, again, case.closed_form, table) if bound < 1e-3 else UNDECIDED


def bound_after_forgetting(case: Case, kept: Table) -> float:
    """How far rounding may move P when moments of other rows are subtracted, which may be larger by far."""
    if case.table.kind == "categories":
        return 1e-9 if same_categories(case.table, kept) else np.inf
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        total = ((case.table.X - case.table.X.mean(axis=0)) ** 2).sum(axis=0)
        rows = [kept.X[kept.y == k] for k in range(kept.n_classes)]
        shrunk = np.max(total / np.min([((own - own.mean(axis=0)) ** 2).sum(axis=0) for own in rows], axis=0))
    return float(1e-8 + 1e4 * kept.eps * kept.condition() * np.nan_to_num(shrunk, nan=np.inf))


def has_moments(case: Case) -> bool:
    numbers = case.table.holder in ("float64", "float32", "fortran", "strided", "list")
    return adds_up(case) and case.name in COVARIANCES and numbers and "scaled" not in case.table.traits


@change("rows that were never fitted are not forgotten", has_moments)
def strangers(case: Case) -> str:
    """Rows a hundred standard deviations away leave what no rows can have; those of another class may."""
    table, rng, clf = case.table, case.rng(3), case.fit(case.closed_form, case.table)
    k, other = rng.choice(table.n_classes, size=2, replace=False)
    rows = table.rows(np.flatnonzero((table.y == k) & (table.weights > 0))[:2])
    # A covariance for all classes tells only what is far beside all rows; light rows leave hardly a trace.
    spread = table.X.std(axis=0) if COVARIANCES[case.name] == "tied" else table.X[table.y == k].std(axis=0)
    light = rows.weights.min() < 1e-3 * table.weights.sum()
    if isinstance(clf, Refusal) or light:
        return REFUSED
    moved = rows.with_(X=rows.X + 100 * spread + 1e-3 * np.abs(table.X).max(axis=0) + 1e-3)
    if not isinstance(taken(case, pickle.loads(pickle.dumps(clf)), "forget", moved), Refusal):
        raise Violation("rows 100 standard deviations away are forgotten")
    if isinstance(taken(case, clf, "forget", rows.with_(y=np.full(len(rows.y), other))), Refusal):
        return HELD
    least = np.linalg.eigvalsh(scatters(clf.data_statistics_)).min()
    if least < -1e-4:  # statistics do not tell the dtype of the rows that they came from
        raise Violation(f"forgetting rows of another class leaves a scatter with the eigenvalue {least:.3g}")
    P = case.posterior(clf, table)
    if isinstance(P, Refusal) or not np.isfinite(P).all():
        raise Violation("forgetting rows of another class leaves no posteriors")
    return HELD


def scatters(S: Any) -> Array:
    """Scatter matrices about the means of the classes, as shares of the second moments of all rows."""
    s0, s1 = S["s0"], S["s1"]
    means = s1[:, :, None] * s1[:, None, :] / s0[:, None, None]
    if "s2_tied" in S:
        second, means = S["s2_tied"][None], means.sum(axis=0)[None]
    elif "s2" in S:
        second = S["s2"]
    else:
        second, means = (np.eye(s1.shape[1]) * A for A in (S["s2_diagonal"][:, :, None], means))
    units = np.sqrt(np.maximum(np.diagonal(second, axis1=1, axis2=2).sum(axis=0), 1e-300))
    return (second - means) / np.outer(units, units)


@change("a stream keeps its mass and its posteriors", adds_up)
def stream(case: Case) -> str:
    """By the case's own learner: batches, calibration, rows forgotten, a merge, a warm start."""
    parts, table, clf = halves(case), case.table, clone(case.estimator)
    if parts is None or isinstance(case.fitted, Refusal):
        return UNDECIDED
    first, second = parts
    program = [("partial_fit", first, 1), ("partial_fit", second, 1), ("calibrate", table, 0)]
    program += [("forget", second, -1), ("calibrate", first, 0)]
    total = 0.0
    for method, part, sign in program:
        classes = {"classes": case.labels} if method == "partial_fit" else {}
        if isinstance(taken(case, clf, method, part, **classes), Refusal):
            return REFUSED
        total += sign * row_weights(clf, part).sum()
        check_stream(case, clf, total)
    if not isinstance(attempt(lambda: clf.merge(case.fitted)), Refusal):
        check_stream(case, clf, total + row_weights(clf, table).sum())
    clf.set_params(warm_start=True)
    if not isinstance(taken(case, clf, "fit", table), Refusal):
        check_stream(case, clf, row_weights(clf, table).sum())
    return HELD


def check_stream(case: Case, clf: Any, total: float) -> None:
    check_mass(case, clf, total)
    P = case.posterior(clf, case.table)
    if isinstance(P, Refusal) or not np.isfinite(P).all():
        raise Violation("a stream leaves no posteriors")


@change("names of columns are checked", lambda case: case.table.has_names and case.table.X.shape[1] > 1)
def names(case: Case) -> str:
    """By predict; a merge or a warm start may also take the columns by their names."""
    if isinstance(case.fitted, Refusal):
        return REFUSED
    swapped = case.table.columns(np.roll(np.arange(case.table.X.shape[1]), 1))
    if not isinstance(case.posterior(case.fitted, swapped), Refusal):
        raise Violation("columns with permuted names are predicted")
    for what, join in (("merge", merged_with), ("warm_start", started_from)):
        Q = join(case, swapped)
        if isinstance(Q, np.ndarray) and np.abs(join(case, case.table) - Q).max() > 1e-6:
            raise Violation(f"{what} takes columns by their places, not by their names")
    return HELD


def merged_with(case: Case, table: Table) -> Any:
    """P after a merge with the closed form of another table; None where the estimator does not merge."""
    if not hasattr(case.estimator, "merge"):
        return None
    one, other = case.fit(case.closed_form, case.table), case.fit(case.closed_form, table)
    found = attempt(lambda: one.merge(other))
    return found if isinstance(found, Refusal) else case.posterior(one, case.table)


def started_from(case: Case, table: Table) -> Any:
    """P of a fit on the case's rows that starts where one on another table ended; None without a learner."""
    if case.learner is None:
        return None
    clf = clone(case.estimator).set_params(warm_start=True, learner=TM(max_iter=2))
    first, second = (taken(case, clf, "fit", rows) for rows in (table, case.table))
    return (
        None if isinstance(first, Refusal) or isinstance(second, Refusal) else case.posterior(clf, case.table)
    )


def noise_error(case: Case) -> float | None:
    """The held-out error of a closed form on labels that are noise; None for an estimator without a learner.

    Everything that a fold learns from held rows with their labels makes it less than one half in the mean.
    """
    if case.learner is None:
        return None
    rng, m, n = case.rng(4), 80, 12
    y, seed = rng.permutation(np.arange(m) % 2), int(rng.integers(2**31))
    X = rng.integers(0, 3, size=(m, n)) if case.table.kind == "categories" else rng.standard_normal((m, n))
    learner: Any = RC(max_iter=1, early_stopping=True, validation_fraction=0.3, random_state=seed)
    if rng.random() < 0.3:
        learner = RCCV(cv=3, generative_weights=(0,), objectives=("log_loss",), max_iter=1, random_state=seed)
    given = {"model": type(case.estimator.model)()} if hasattr(case.estimator, "model") else {}
    clf = attempt(lambda: type(case.estimator)(**given, learner=learner).fit(X, y))
    if isinstance(clf, Refusal):
        return None
    errors = clf.history_["val_error"] if isinstance(learner, RC) else clf.learner_.cv_error_
    return float(errors[0])
