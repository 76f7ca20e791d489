"""The members of :class:`RiskBayesClassifier`, and their cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Integral
from time import perf_counter
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from riskbayes.arrays import Array
from riskbayes.estimators.augmented_nb import KDependenceNB, TreeAugmentedNB
from riskbayes.estimators.base import begin_fit, rows_for
from riskbayes.estimators.callbacks import FitTask
from riskbayes.estimators.kinds import BinnedTable, FilledNumbers, Kinds, OneHotCategories, OnNumbers
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
from riskbayes.estimators.product_of_experts import ProductOfExperts, default_experts
from riskbayes.estimators.qda import QuadraticDiscriminantAnalysis
from riskbayes.estimators.smooth_nb import SmoothNB
from riskbayes.estimators.table_input import MARK_LEVEL
from riskbayes.exceptions import ColumnError
from riskbayes.learners.rc import RC
from riskbayes.models.categorical import CategoricalModel
from riskbayes.models.marks import MarkModel
from riskbayes.preprocessing.bins import KMeansBins
from riskbayes.search import HeldOut, posteriors_along

CATEGORY_POWER, CATEGORY_ALPHA = 0.5, 5.0
"""Power and pseudo-counts of naive Bayes of the categories in a product."""

FEW_KNOTS, MANY_KNOTS, MANY_ROWS = 6, 12, 4000
"""Knots of smooth NB beside categories, and the rows from which on it has many."""

MOST_INDICATORS = 48
"""The most indicators of categories beside the numbers of LDA and QDA."""

RECIPE, MIXED_RECIPE = ((0.25, 0.25), 24), ((0.15, 0.35), 16)
"""Powers of QDA and smooth NB, and the iterations, of the recipe for numbers and beside categories."""

REPEATED_ROWS, MOST_REPEATS = 4000, 4
"""Folds are repeated until about this many rows are held out, at most so often: fewer give a noisy choice."""


def recipe(n_iter: int | None = None, kinds: Kinds | None = None, n_rows: int = 0) -> ProductOfExperts:
    """Return the product of `strategy="single"`; its powers are small, for the experts share evidence.

    Without `kinds` all columns are numbers. Beside categories the anchor fades as the rows grow, and large
    tables have more knots.
    """
    if kinds is None or not kinds.categories:
        powers, usual = RECIPE
        found = ProductOfExperts(weights=list(powers)) if kinds is None else product(kinds, list(powers))
        return found.set_params(learner=family_learner(usual if n_iter is None else n_iter))
    powers, usual = MIXED_RECIPE
    found = product(kinds, list(powers), MANY_KNOTS if n_rows >= MANY_ROWS else FEW_KNOTS)
    learner = family_learner(usual if n_iter is None else n_iter)
    if isinstance(learner, RC):
        learner.set_params(generative_weight="auto")
    return found.set_params(learner=learner)


def gaussian(strength: float) -> QuadraticDiscriminantAnalysis:
    """Return QDA whose prior on covariances counts as this number of rows."""
    return QuadraticDiscriminantAnalysis(prior="recommended", covariance_strength=strength, diagonal_mix=0.3)


def product(kinds: Kinds, weights: list[float], n_knots: int = 6) -> ProductOfExperts:
    """Return the recipe with other powers or knots."""
    return with_categories(kinds, default_experts(len(kinds.numbers), n_knots), weights)


def with_categories(kinds: Kinds, experts: list[Any], weights: list[float]) -> ProductOfExperts:
    """Return the product of experts of numbers, and of naive Bayes of the categories where there are any."""
    if not kinds.mixed:
        return ProductOfExperts(experts, weights)
    triples: list[Any] = []
    if kinds.categories:
        triples.append(("categories", CategoricalModel(alpha=CATEGORY_ALPHA), kinds.categories))
    if kinds.marks:
        triples.append(("marks", MarkModel(alpha=CATEGORY_ALPHA, level=MARK_LEVEL), kinds.marks))
    powers = [CATEGORY_POWER] * len(triples)
    if kinds.numbers:
        triples += [(f"numbers {i}", expert, kinds.numbers) for i, expert in enumerate(experts)]
        powers += weights
    return ProductOfExperts(triples, powers)


def family(kinds: Kinds) -> list[Member]:
    """Return the members for these columns, best first, for a time limit leaves out the last ones."""
    n, mixed = len(kinds.numbers), kinds.mixed
    powers = (MIXED_RECIPE if kinds.categories else RECIPE)[0]
    scores = OnNumbers(NormalScores(), kinds) if mixed else NormalScores()
    bins = BinnedTable(kinds) if mixed else KMeansBins()
    one_hot = OneHotCategories(kinds, MOST_INDICATORS) if mixed else None
    filled = FilledNumbers(kinds) if mixed else None
    tied = MixtureDiscriminantAnalysis(3, covariance_strength=5 * n, diagonal_mix=0.5)
    full = clone(tied).set_params(covariance="full", covariance_strength=20 * n)

    def alone(expert: Any) -> Any:
        """Return an estimator of numbers as it is, or beside the categories."""
        return with_categories(kinds, [expert], [1.0]) if mixed else expert

    members = [
        Member("product", recipe(kinds=kinds)),
        Member("product of normal scores", recipe(kinds=kinds), scores),
        Member("QDA, 20 n", alone(gaussian(20 * n))),
        Member("LDA", LinearDiscriminantAnalysis(covariance_strength=n, diagonal_mix=0.5), one_hot),
        Member("MDA, 3 components", alone(tied), filled),
        Member("smooth NB, 12 knots", alone(SmoothNB(n_knots=12, alpha=5.0))),
        Member("QDA, 5 n, power 1/4", with_categories(kinds, [gaussian(5 * n)], [0.25])),
        Member("product, 12 knots", product(kinds, list(powers), 12)),
        Member("product, mostly smooth NB", product(kinds, [0.1, 0.4])),
        Member("TAN, bagged", TreeAugmentedNB(), bins, bags=5, most=8),
        Member("QDA, n", alone(gaussian(n))),
        Member("2-DB, bagged", KDependenceNB(2), bins, bags=5, most=8),
        Member("product, mostly QDA", product(kinds, [0.4, 0.1])),
        Member("MDA, 3 full components", alone(full), filled, most=16),
    ]
    if mixed:
        indicators = ProductOfExperts([gaussian(5 * (n + MOST_INDICATORS))], [0.25])
        members.insert(3, Member("QDA of indicators", indicators, one_hot))
    of_categories = ("product", "QDA of indicators", "LDA", "TAN, bagged", "2-DB, bagged")
    return members if n else [member for member in members if member.name in of_categories]


def fold_posteriors(
    member: Member,
    X: Array,
    y: Array,
    w: Array | None,
    kept: Array,
    held: Array,
    n_classes: int,
    seed: int,
    learner: Any = None,
) -> Array:
    """Return the posteriors of a fold's held rows at each checkpoint, averaged over the bootstrap samples.

    The learner is the family's by default.
    """
    learner = learner or family_learner(member.most)
    total = np.zeros((len(CHECKPOINTS), len(held), n_classes))
    before = fitted_before(member.before, X[kept])
    X_kept, y_kept, X_held = transformed(before, X[kept]), y[kept], transformed(before, X[held])
    for rows, weights in drawn_bags(member.bags, y_kept, None if w is None else w[kept], seed):
        clf = clone(member.estimator).set_params(learner=learner)
        try:
            task = begin_fit(clf, X_kept[rows], y_kept[rows], weights)
            found = posteriors_along(task, learner, rows_for(clf, X_held), CHECKPOINTS)
            total[:, :, clf.classes_] += found
        except ColumnError:  # this fold's rows cannot be used: a member with NaN is not chosen
            total[:] = np.nan
    return (total / member.bags).astype(np.float32)


def cross_validate(
    members: list[Member],
    X: Array,
    y: Array,
    w: Array | None,
    folds: list[tuple[Array, Array]],
    seed: int,
    combine: bool,
    n_jobs: int | None = None,
    deadline: float = np.inf,
    report: Callable[[str], None] = lambda line: None,
    fit: FitTask | None = None,
) -> tuple[HeldOut, list[float]]:
    """Fit every member in every fold; return their scores on the held rows, and the seconds of each member.

    No member is begun after the deadline. Members and folds are tasks of `fit`; if a callback asks to stop,
    the present member is the last one. With `combine`, posteriors are kept, to choose an ensemble.
    """
    r, fit = int(y.max()) + 1, fit or FitTask()
    judged = np.concatenate([held for _, held in folds])
    found = HeldOut(y[judged], None if w is None else w[judged], r, combine)
    seconds: list[float] = []
    stop = ""
    with Parallel(n_jobs, return_as="generator") as parallel:
        for number, member in enumerate(members):
            start = perf_counter()
            stop = stop or ("time_limit reached" if seconds and start > deadline else "")
            if stop:
                report(f"{stop}: {len(members) - number} members were not tried")
                break
            task = fit.begin("member", len(folds))
            walked = parallel(
                delayed(one_thread)(fold_posteriors, n_jobs, member, X, y, w, kept, held, r, seed + fold)
                for fold, (kept, held) in enumerate(folds)
            )
            stopped: list[bool] = []
            found.add(in_tasks(walked, task, len(folds), stopped))
            seconds.append(perf_counter() - start)
            error = found.errors[-1]
            report(
                f"{number + 1}/{len(members)} {member.name}: cross-validated error {error.min():.4f}, closed "
                f"form {error[0]:.4f}, {seconds[-1]:.1f} s"
            )
            stop = "a callback asked to stop" if task.end() or any(stopped) else stop
    return found, seconds


def in_tasks(walked: Iterator[Array], task: FitTask, n_folds: int, stopped: list[bool]) -> Iterator[Array]:
    """Yield the result of each fold, as a task; append to `stopped` whether a callback asked to stop."""
    for _ in range(n_folds):
        fold = task.begin("fold")
        yield next(walked)
        stopped.append(fold.end())
    next(walked, None)  # joblib requires that its generator is exhausted


def folds_of(cv: Any, X: Array, y: Array, w: Array | None, seed: int) -> list[tuple[Array, Array]]:
    """Return the indices of the rows kept and held out in each fold; rows without weight are in neither."""
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
        # A handful of rows has few partitions; repeated ones are dropped.
        partitions = {
            frozenset(held.tobytes() for _, held in splits[i : i + k]): splits[i : i + k]
            for i in range(0, len(splits), k)
        }
        return [(counted[kept], counted[held]) for folds in partitions.values() for kept, held in folds]
    folds = []
    for fold in check_cv(cv, y, classifier=True).split(X, y):
        # A split may be indices, lists or masks.
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
    """Return work(*args), with one BLAS thread if several jobs run."""
    if n_jobs in (None, 1):  # looking for BLAS takes longer than a fit to few rows
        return work(*args)
    with threadpool_limits(limits=1):
        return work(*args)
