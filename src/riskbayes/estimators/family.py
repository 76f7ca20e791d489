"""The members of :class:`RiskBayesClassifier`, their cross-validated paths, and choices among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from time import perf_counter
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from riskbayes.arrays import Array
from riskbayes.engines.array_api import engine_for
from riskbayes.estimators.augmented_nb import KDependenceNB, TreeAugmentedNB
from riskbayes.estimators.callbacks import FitTask
from riskbayes.estimators.lda import LinearDiscriminantAnalysis
from riskbayes.estimators.member import (
    CHECKPOINTS,
    Member,
    NormalScores,
    drawn_bags,
    family_learner,
    fitted_before,
    transformed,
)
from riskbayes.estimators.mixture import MixtureDiscriminantAnalysis
from riskbayes.estimators.prediction import posterior
from riskbayes.estimators.product_of_experts import ProductOfExperts, default_experts
from riskbayes.estimators.qda import QuadraticDiscriminantAnalysis
from riskbayes.estimators.smooth_nb import SmoothNB
from riskbayes.exceptions import ColumnError
from riskbayes.loop import Iteration, Status, Task
from riskbayes.models.base import GenerativeModel
from riskbayes.preprocessing import KMeansBins

ROUNDS = 30
"""Members that the greedy selection takes, with repeats."""

REPEATED_ROWS, MOST_REPEATS = 4000, 4
"""Few rows are folded again and again, until about so many were judged: a choice by few is mostly noise."""


def recipe(n_iter: int = 24) -> ProductOfExperts:
    """The fixed product of `strategy="single"`: powers below one make up for what its experts both say."""
    return ProductOfExperts(weights=[0.25, 0.25], learner=family_learner(n_iter))


def gaussian(strength: float) -> QuadraticDiscriminantAnalysis:
    """QDA whose covariances are held by a prior of so many rows."""
    return QuadraticDiscriminantAnalysis(prior="recommended", covariance_strength=strength, diagonal_mix=0.3)


def product(weights: list[float], n: int, n_knots: int = 6) -> ProductOfExperts:
    """The recipe with other powers or knots."""
    return ProductOfExperts(default_experts(n, n_knots), weights)


def family(n: int) -> list[Member]:
    """The members for so many columns, best first: a limit of time leaves out the last."""
    scores, bins = NormalScores(), KMeansBins()
    tied = MixtureDiscriminantAnalysis(3, covariance_strength=5 * n, diagonal_mix=0.5)
    full = clone(tied).set_params(covariance="full", covariance_strength=20 * n)
    return [
        Member("product", recipe()),
        Member("product of normal scores", recipe(), scores),
        Member("QDA, 20 n", gaussian(20 * n)),
        Member("LDA", LinearDiscriminantAnalysis(covariance_strength=n, diagonal_mix=0.5)),
        Member("MDA, 3 components", tied),
        Member("smooth NB, 12 knots", SmoothNB(n_knots=12, alpha=5.0)),
        Member("QDA, 5 n, power 1/4", ProductOfExperts([gaussian(5 * n)], [0.25])),
        Member("product, 12 knots", product([0.25, 0.25], n, 12)),
        Member("product, mostly smooth NB", product([0.1, 0.4], n)),
        Member("TAN, bagged", TreeAugmentedNB(), bins, bags=5, most=8),
        Member("QDA, n", gaussian(n)),
        Member("2-DB, bagged", KDependenceNB(2), bins, bags=5, most=8),
        Member("product, mostly QDA", product([0.4, 0.1], n)),
        Member("MDA, 3 full components", full, most=16),
    ]


def path_posteriors(
    member: Member, X: Array, y: Array, w: Array | None, X_held: Array, learner: Any = None
) -> Array:
    """Posteriors of the held rows at each checkpoint, of one path on rows whose classes are codes.

    The path is that of the family's learner, or of another.
    """
    learner = learner or family_learner(member.most)
    estimator = clone(member.estimator).set_params(learner=learner)
    encoded = estimator._encode(X, reset=True, learn=True)
    estimator.classes_, codes = np.unique(y, return_inverse=True)
    estimator.class_weight_ = None
    engine, S = estimator._begin(encoded, codes, w)
    good: list[tuple[int, Any]] = []

    def keep(iteration: Iteration) -> bool:
        good.append((iteration.number, iteration.theta))
        return False

    model = estimator.model_
    task = Task(model, engine, S, on_iteration=keep)
    if learner.fit_statistics(task).status is Status.INTERRUPTED:
        raise KeyboardInterrupt  # half a path is nothing to choose by
    # All models of a path read the same rows: they are encoded once.
    Z = model.rows(estimator._encode(X_held, reset=False, learn=False), good[0][1])
    held = engine_for(model, Z, np.zeros(len(X_held), np.intp), None, len(estimator.classes_))
    found: list[Array] = []
    at = -1
    for checkpoint in CHECKPOINTS:
        last = max(i for i, (number, _) in enumerate(good) if number <= checkpoint)
        if last != at:
            at, theta = last, model.for_scan(good[last][1], Z)
            P = held.map_rows(partial(finite_or_nan, model, theta))
        found.append(P)
    return np.stack(found)


def finite_or_nan(model: GenerativeModel, theta: Any, rows: Any) -> Array:
    """Posteriors; of held rows that overflow NaN, which no choice takes."""
    with np.errstate(over="ignore", invalid="ignore"):
        return posterior(model.scores(rows, theta))


def fold_posteriors(
    member: Member, X: Array, y: Array, w: Array | None, kept: Array, held: Array, n_classes: int, seed: int
) -> Array:
    """Posteriors of one fold's held rows at each checkpoint, averaged over the bags."""
    total = np.zeros((len(CHECKPOINTS), len(held), n_classes))
    before = fitted_before(member.before, X[kept])
    X_kept, y_kept, X_held = transformed(before, X[kept]), y[kept], transformed(before, X[held])
    for rows, weights in drawn_bags(member.bags, y_kept, None if w is None else w[kept], seed):
        present = np.unique(y_kept[rows])
        try:
            total[:, :, present] += path_posteriors(member, X_kept[rows], y_kept[rows], weights, X_held)
        except ColumnError:  # a fold whose rows it cannot read: what is not finite is not chosen
            total[:] = np.nan
    return (total / member.bags).astype(np.float32)


@dataclass
class Paths:
    """Cross-validated posteriors of members along their paths; rows go fold by fold."""

    members: list[Member]
    posteriors: Array
    """Of shape (members, checkpoints, rows, classes)."""
    seconds: list[float]
    y: Array
    w: Array | None

    def mean(self, values: Array) -> Array:
        """The weighted mean over rows, which are the last axis."""
        return np.average(values, axis=-1, weights=self.w)

    def errors(self) -> Array:
        """Cross-validated error, members x checkpoints."""
        return self.mean(self.posteriors.argmax(axis=-1) != self.y)

    def log_losses(self) -> Array:
        """Cross-validated log loss, members x checkpoints."""
        own = self.posteriors[:, :, np.arange(len(self.y)), self.y]
        return self.mean(-np.log(np.maximum(own, 1e-15)))

    def scores(self) -> Array:
        """What choices are made by, members x checkpoints: the error and the log loss.

        The log loss tells apart what the error of few rows leaves equal. What is not finite is not chosen.
        """
        scores = (self.errors() + self.log_losses()).round(12)
        return np.where(np.isfinite(scores), scores, np.inf)

    def winner(self, only: Sequence[int] = range(len(CHECKPOINTS))) -> dict[tuple[int, int], float]:
        """The member and checkpoint of the least score; of equal ones the first."""
        columns = list(only)
        scores = self.scores()[:, columns]
        member, column = np.unravel_index(np.argmin(scores), scores.shape)
        return {(int(member), columns[column]): 1.0}

    def greedy(self, only: Sequence[int] = range(len(CHECKPOINTS))) -> dict[tuple[int, int], float]:
        """Weights of members and checkpoints: each round adds the one that leaves the least score."""
        columns = list(only)
        P = self.posteriors[:, columns].reshape(-1, *self.posteriors.shape[2:])
        row, total, chosen, best = np.arange(len(self.y)), np.zeros(P.shape[1:], np.float32), [], np.inf
        kept = 0
        for number in range(1, ROUNDS + 1):
            scores = []
            for own in P:
                mixed = total + own
                error = self.mean(mixed.argmax(axis=1) != self.y)
                loss = self.mean(-np.log(np.maximum(mixed[row, self.y] / number, 1e-15)))
                scores.append(error + loss if np.isfinite(loss) else np.inf)
            pick = int(np.argmin(scores))
            chosen.append(pick)
            total += P[pick]
            if scores[pick] < best - 1e-12:
                best, kept = scores[pick], number
        counts = np.bincount(chosen[:kept], minlength=len(P))
        places = [divmod(int(i), len(columns)) for i in np.flatnonzero(counts)]
        return {(m, columns[c]): counts[m * len(columns) + c] / kept for m, c in places}


def cross_validate(
    members: list[Member],
    X: Array,
    y: Array,
    w: Array | None,
    cv: Any,
    seed: int,
    n_jobs: int | None = None,
    deadline: float = np.inf,
    report: Callable[[str], None] = lambda line: None,
    fit: FitTask | None = None,
) -> Paths:
    """Walk the path of every member in every fold; past the deadline no further member is begun.

    Members and folds are tasks of `fit`. If a callback asks to stop, the member at hand is the last.
    """
    r, folds, fit = int(y.max()) + 1, folds_of(cv, X, y, w, seed), fit or FitTask()
    judged = np.concatenate([held for _, held in folds])
    y_judged, w_judged = y[judged], None if w is None else w[judged]
    done: list[Member] = []
    posteriors, seconds = [], []
    stop = ""
    with Parallel(n_jobs, return_as="generator") as parallel:
        for number, member in enumerate(members):
            start = perf_counter()
            stop = stop or ("time_limit reached" if done and start > deadline else "")
            if stop:
                report(f"{stop}: {len(members) - number} members were not tried")
                break
            task = fit.begin("member", len(folds))
            walked = parallel(
                delayed(one_thread)(fold_posteriors, n_jobs, member, X, y, w, kept, held, r, seed + fold)
                for fold, (kept, held) in enumerate(folds)
            )
            parts = []
            for _ in folds:
                fold_task = task.begin("fold")
                parts.append(next(walked))
                stop = "a callback asked to stop" if fold_task.end() else stop
            next(walked, None)  # joblib must see the end of it
            P = np.concatenate(parts, axis=1)
            done.append(member)
            posteriors.append(P)
            seconds.append(perf_counter() - start)
            error = np.average(P.argmax(axis=2) != y_judged, axis=1, weights=w_judged)
            report(
                f"{number + 1}/{len(members)} {member.name}: cross-validated error {error.min():.4f}, closed "
                f"form {error[0]:.4f}, {seconds[-1]:.1f} s"
            )
            stop = "a callback asked to stop" if task.end() else stop
    return Paths(done, np.stack(posteriors), seconds, y_judged, w_judged)


def folds_of(cv: Any, X: Array, y: Array, w: Array | None, seed: int) -> list[tuple[Array, Array]]:
    """Rows kept and rows held, fold after fold; rows without weight are in none."""
    from sklearn.model_selection import RepeatedStratifiedKFold, check_cv  # here: slow to import

    counted = np.arange(len(y)) if w is None else np.flatnonzero(w > 0)
    if isinstance(cv, Integral):
        fewest = int(np.bincount(y[counted]).min())
        if fewest < 2:
            raise ValueError("strategy='cv' and 'ensemble' need two rows or more of each class.")
        repeats = min(max(REPEATED_ROWS // len(counted), 1), MOST_REPEATS)
        k = min(int(cv), fewest)
        splitter = RepeatedStratifiedKFold(n_splits=k, n_repeats=repeats, random_state=seed)
        splits = list(splitter.split(X[counted], y[counted]))
        # A handful of rows has few partitions: one that comes again tells nothing new.
        partitions = {
            frozenset(held.tobytes() for _, held in splits[i : i + k]): splits[i : i + k]
            for i in range(0, len(splits), k)
        }
        return [(counted[kept], counted[held]) for folds in partitions.values() for kept, held in folds]
    folds = []
    for fold in check_cv(cv, y, classifier=True).split(X, y):
        # Indices, lists or masks.
        kept, held = (np.arange(len(y))[np.asarray(part)] if len(part) else counted[:0] for part in fold)
        folds.append((kept[np.isin(kept, counted)], held[np.isin(held, counted)]))
    if not folds:
        raise ValueError("cv has no splits: if it is a generator, it may be used up; pass a list.")
    for number, (kept, held) in enumerate(folds):
        if not len(held) or len(np.unique(y[kept])) < 2:
            raise ValueError(
                f"Split {number} of cv must hold out rows, and keep rows of two classes or more (rows "
                "without weight do not count)."
            )
    return folds


def one_thread(work: Callable, n_jobs: int | None, *args: Any) -> Any:
    """The work with one BLAS thread where several jobs run."""
    if n_jobs in (None, 1):  # to look for BLAS takes longer than a path on few rows
        return work(*args)
    with threadpool_limits(limits=1):
        return work(*args)
