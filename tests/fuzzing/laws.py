"""Laws of one fit, and where laws are registered.

A law is a function of a case that returns how it ended (`HELD` and its neighbours) or raises a Violation.
Those of `ANSWERS` are about the case's own fit and hold in every case. Those of `CHANGES`, in `changes.py`
and `streams.py`, fit again: a case takes a few of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.base import clone

from conftest import WatchedRC
from fuzzing.cases import HELD, REFUSED, ROUNDINGS, UNDECIDED, Case, Refusal, Violation, attempt
from fuzzing.tables import EPS, Array, Table
from riskbayes.learners import DFE, RC
from riskbayes.learners.quasi_newton import NOTHING_LEFT, OPTIMAL, SMALL
from riskbayes.task import Status

Law = Callable[[Case], str]
ANSWERS: dict[str, Law] = {}
CHANGES: dict[str, tuple[Law, Callable[[Case], bool]]] = {}


def answer(name: str) -> Callable[[Law], Law]:
    """Register a law of one fit."""

    def register(law: Law) -> Law:
        ANSWERS[name] = law
        return law

    return register


def change(name: str, applies: Callable[[Case], bool] = lambda case: True) -> Callable[[Law], Law]:
    """Register a law that fits again, and where it applies."""

    def register(law: Law) -> Law:
        CHANGES[name] = law, applies
        return law

    return register


@answer("posteriors are finite and sum to one")
def posteriors(case: Case) -> str:
    ended = [check_posteriors(case, rows) for rows in (case.table.X, case.table.near, case.table.far)]
    if REFUSED in ended[:2] and not isinstance(case.fitted, Refusal):
        raise Violation("rows like those that were fitted are refused")
    return ended[0]


@answer("cells that overflow are refused or answered")
def overflow(case: Case) -> str:
    return check_posteriors(case, case.table.beyond) if len(case.table.beyond) else HELD


def check_posteriors(case: Case, rows: Array) -> str:
    P, table = case.posterior(case.fitted, case.table, rows), case.table
    if isinstance(P, Refusal):
        return REFUSED
    if P.shape != (len(rows), table.n_classes) or not np.isfinite(P).all() or (P < 0).any():
        raise Violation(f"posteriors of shape {P.shape} are not finite")
    off = np.abs(P.sum(axis=1) - 1).max()
    if off > 16 * table.n_classes * table.eps:
        raise Violation(f"posteriors sum to 1 + {off:.3g}")
    return HELD


@answer("predict takes the largest posterior, or the least cost")
def decision(case: Case) -> str:
    P, table, clf = case.answer, case.table, case.fitted
    if isinstance(P, Refusal):
        return REFUSED
    costs = getattr(clf, "cost_matrix_", None)
    gain = P if costs is None else -(P @ costs)
    predicted = attempt(lambda: clf.predict(table.held(table.near)))
    if not np.isin(predicted, case.labels).all():
        raise Violation(f"labels {sorted(set(predicted.tolist()))} are predicted")
    lost = gain.max(axis=1) - gain[np.arange(len(gain)), np.searchsorted(case.labels, predicted)]
    if lost.max() > 16 * table.eps * np.abs(gain).max():  # ties are decided by rounding
        raise Violation(f"the label predicted is {lost.max():.3g} below the best")
    return HELD


@answer("predict_log_proba is the logarithm of predict_proba")
def logarithm(case: Case) -> str:
    table, clf, rows = case.table, case.fitted, near_and_far(case)
    P = case.posterior(clf, table, rows)
    if isinstance(P, Refusal):
        return REFUSED
    L = attempt(lambda: clf.predict_log_proba(table.held(rows)))
    # Both come from one joint, whose size cancels before anything is rounded.
    tolerance, off = 1e-11 if table.eps == EPS else 1e-5, np.abs(np.exp(L) - P).max()
    if not off <= tolerance:
        raise Violation(f"exp(predict_log_proba) is off by {off:.3g}")
    shown = P > 1e-30
    off = (np.abs(L[shown] - np.log(P[shown])) / (1 + np.abs(L[shown]))).max()
    if off > tolerance:
        raise Violation(f"predict_log_proba is off by {off:.3g}")
    return HELD


def near_and_far(case: Case) -> Array:
    return np.concatenate([case.table.near, case.table.far])


@answer("the joint gives the posterior, the density and the decision function")
def joint(case: Case) -> str:
    table, clf = case.table, case.fitted
    if isinstance(case.answer, Refusal) or not hasattr(clf, "predict_joint_log_proba"):
        return REFUSED
    X = table.held(table.near)
    J, density = attempt(lambda: clf.predict_joint_log_proba(X)), attempt(lambda: clf.score_samples(X))
    if isinstance(density, Refusal):  # of a model without a density p(x), such as neighbours
        return REFUSED
    # What cancels in all that is compared leaves its rounding: terms of the size of the joint, and squares of
    # distances from the mean of all rows.
    rounding = 1e-9 + 1e3 * table.eps * (1 + np.abs(J).max(axis=1) + squared_distances(table))
    evidence = logsumexp(J.astype(float), axis=1)
    if (np.abs(density - evidence) > rounding).any():
        raise Violation("score_samples is not the log of the sum of the joint")
    off = np.abs(np.exp(J - evidence[:, None]) - case.answer).max(axis=1)
    if (off > rounding).any() and (off > rounding + ROUNDINGS * moved_by_rounding(case)).any():
        raise Violation(f"the joint's posterior is off by {off.max():.3g}")
    if case.is_noise_of_float32(table):
        return UNDECIDED  # the joint is computed in float32, linear scores in float64
    scores = attempt(lambda: clf.decision_function(X))
    best = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
    if (J.max(axis=1) - J[np.arange(len(J)), best] > rounding).any():
        raise Violation("decision_function is largest for a class that is not the most probable")
    return HELD


def moved_by_rounding(case: Case) -> float:
    """How far posteriors of the near rows move with the last digits of their cells.

    Columns that are nearly collinear, and a far row, make linear scores differences of large numbers.
    """
    near = case.table.near
    nudged = near * (1 + 4 * case.table.eps * np.resize([1.0, -1.0], near.shape))
    moved = case.posterior(case.fitted, case.table, nudged)
    return 0.0 if isinstance(moved, Refusal) else float(np.abs(moved - case.answer).max())


def squared_distances(table: Table) -> Array:
    """How far the near rows are from the mean of all, in the spread of most rows: a component may have it."""
    if table.kind == "categories":
        return np.zeros(len(table.near))
    unit = np.abs(table.X).max(axis=0) + 1e-300
    X, near = table.X / unit, table.near / unit
    spread = np.median(np.abs(X - np.median(X, axis=0)), axis=0)
    return (((near - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)) ** 2).sum(axis=1)


@answer("mass is kept")
def mass(case: Case) -> str:
    if isinstance(case.fitted, Refusal) or not hasattr(case.fitted, "statistics_"):
        return REFUSED
    check_mass(case, case.fitted, row_weights(case.fitted, case.table).sum())
    return HELD


def row_weights(clf: Any, table: Table) -> Array:
    """The weight of each row, that of its class included."""
    return table.weights if clf.class_weight_ is None else table.weights * clf.class_weight_[table.y]


def check_mass(case: Case, clf: Any, expected: float) -> None:
    """Both statistics have the mass of the rows; those of DFE grow."""
    data, own = clf.data_statistics_.total, clf.statistics_.total
    tolerance = 1e-9 if case.table.eps == EPS else 1e-4  # residuals of float32 rows sum to its rounding
    if abs(data - expected) > tolerance * expected:
        raise Violation(f"data_statistics_ have the mass {data:.9g}; the rows have {expected:.9g}")
    grow = isinstance(case.learner, DFE) or case.learner == DFE.name
    if not grow and abs(own - data) > tolerance * data:
        raise Violation(f"statistics_ have the mass {own:.9g}; the rows have {data:.9g}")


def goes_to_optimum(learner: Any) -> bool:
    """True if a learner takes quasi-Newton steps on all rows.

    Whoever picks rows has runs of its own, and of the best one it keeps the status.
    """
    return isinstance(learner, RC) and learner.step in (None, "quasi_newton") and not learner.picks_rows


ENDING = "quasi-Newton steps end where the gradient is small, or their scans are used up"


@answer(ENDING)
def ending(case: Case) -> str:
    clf = case.fitted
    if isinstance(clf, Refusal):
        return REFUSED
    learner = getattr(clf, "learner_", None)
    if not goes_to_optimum(learner) or clf.status_ in GOES_ON or not clf.model_.traits.describes_rows:
        return UNDECIDED
    watched = WatchedRC(**learner.get_params(deep=False))
    again = case.fit(clone(case.estimator).set_params(learner=watched), case.table)
    if isinstance(again, Refusal) or again.status_ is not clf.status_:
        raise Violation(f"the same fit ends by {clf.status_.value} and then otherwise: {again}")
    return check_ending(again)


GOES_ON = (Status.MAX_ITER, Status.TOLERANCE, Status.VALIDATION)


def check_ending(clf: Any) -> str:
    """How the law of the ending holds for a fit by a `WatchedRC`."""
    if clf.status_ in GOES_ON or not clf.model_.traits.describes_rows:
        return UNDECIDED  # of a joint that is no density the residual's statistics are no gradient
    sizes = clf.learner_.sizes
    told_apart = clf.history_["log_loss"][clf.best_iteration_] <= NOTHING_LEFT
    enough = OPTIMAL if clf.status_ is Status.CONVERGED else SMALL * max(sizes)
    if sizes[-1] > 1.001 * enough and not told_apart:
        raise Violation(
            f"the fit ends by {clf.status_.value} with a gradient of {sizes[-1]:.3g}, and began with "
            f"{sizes[0]:.3g}; {enough:.3g} is small"
        )
    return HELD
