"""The members of :class:`RiskBayesClassifier`, and their cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from numbers import Integral
from time import perf_counter
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from riskbayes.arrays import Array
from riskbayes.estimators.callbacks import FitTask
from riskbayes.estimators.fitting import begin_fit, rows_for
from riskbayes.estimators.glass_search import GlassMember
from riskbayes.estimators.kinds import Kinds, OneHotCategories
from riskbayes.estimators.lda import LinearDiscriminantAnalysis
from riskbayes.estimators.member import (
    CHECKPOINTS,
    FrequencyMember,
    Member,
    SearchedMember,
    family_learner,
    fitted_before,
    transformed,
)
from riskbayes.estimators.product_of_experts import ProductOfExperts, default_experts
from riskbayes.estimators.qda import QuadraticDiscriminantAnalysis
from riskbayes.estimators.table_input import MARK_LEVEL
from riskbayes.exceptions import ColumnError
from riskbayes.input.source import ArraySource
from riskbayes.learners.closed_form import ClosedForm
from riskbayes.learners.rc import RC
from riskbayes.models.categorical import CategoricalModel
from riskbayes.models.leaves import LeavesModel
from riskbayes.models.marks import MarkModel
from riskbayes.models.neighbours import NeighboursModel
from riskbayes.search import HeldOut, posteriors_along

CATEGORY_POWER, CATEGORY_ALPHA = 0.5, 5.0
"""Power and pseudo-counts of naive Bayes of the categories in a product."""

FEW_KNOTS, MANY_KNOTS, MANY_ROWS = 6, 12, 4000
"""Knots of smooth NB beside categories, and the rows from which on it has many."""

NEIGHBOUR_POWER, NEIGHBOUR_ITERATIONS = 0.5, 16
"""Power of the neighbours beside the recipe, whose powers are halved, and the iterations of the product."""

MOST_INDICATORS = 48
"""The most indicators of categories beside the numbers of LDA and QDA."""

RECIPE, MIXED_RECIPE = ((0.25, 0.25), 0.15), ((0.15, 0.35), "auto")
"""Powers of QDA and smooth NB, and the anchor, of the recipe for numbers and beside categories."""

LEAST_FALL = 1e-5
"""The recipe ends where a scan lowers its objective by less: held-out scores hardly change after it."""

ENOUGH_HELD = 1000
"""Rows that are enough to choose by: no more folds are walked than hold out so many."""


def recipe(n_iter: int = 32, kinds: Kinds | None = None, n_rows: int = 0) -> ProductOfExperts:
    """Return the product of `strategy="single"`; its powers are small, for the experts share evidence.

    Without `kinds` all columns are numbers. Beside categories the anchor fades as the rows grow, and large
    tables have more knots.
    """
    powers, anchor = MIXED_RECIPE if kinds is not None and kinds.categories else RECIPE
    if kinds is None:
        found = ProductOfExperts(weights=list(powers))
    else:
        many = kinds.categories and n_rows >= MANY_ROWS
        found = product(kinds, list(powers), MANY_KNOTS if many else FEW_KNOTS)
    learner = RC(max_iter=n_iter, generative_weight=anchor, tol=LEAST_FALL) if n_iter else ClosedForm()
    return found.set_params(learner=learner)


def neighbour_recipe(kinds: Kinds, n_iter: int = NEIGHBOUR_ITERATIONS) -> ProductOfExperts:
    """Return the product of `strategy="neighbours"`: the recipe with half its powers, and the neighbours."""
    powers = [power / 2 for power in (MIXED_RECIPE if kinds.categories else RECIPE)[0]]
    triples, weights = experts_of(kinds, default_experts(len(kinds.numbers)), powers, CATEGORY_POWER / 2)
    columns, codes = measured_columns(kinds)
    if columns:  # there may be marks only
        triples.append(("neighbours", NeighboursModel(categories=codes), columns))
        weights.append(NEIGHBOUR_POWER)
    return ProductOfExperts(triples, weights, learner=family_learner(n_iter))


def gaussian(strength: float) -> QuadraticDiscriminantAnalysis:
    """Return QDA whose prior on covariances counts as this number of rows."""
    return QuadraticDiscriminantAnalysis(prior="recommended", covariance_strength=strength, diagonal_mix=0.3)


def product(kinds: Kinds, weights: list[float], n_knots: int = 6) -> ProductOfExperts:
    """Return the recipe with other powers or knots."""
    experts = default_experts(len(kinds.numbers), n_knots)
    return ProductOfExperts(*(experts_of(kinds, experts, weights) if kinds.mixed else (experts, weights)))


def experts_of(
    kinds: Kinds, experts: list[Any], powers: list[float], category_power: float = CATEGORY_POWER
) -> tuple[list[tuple[str, Any, Any]], list[float]]:
    """Return (name, expert, columns) and powers of these experts of numbers, of categories and of marks."""
    triples: list[tuple[str, Any, Any]] = []
    weights: list[float] = []
    if kinds.categories:
        triples.append(("categories", CategoricalModel(alpha=CATEGORY_ALPHA), kinds.categories))
        weights.append(category_power)
    if kinds.marks:
        triples.append(("marks", MarkModel(alpha=CATEGORY_ALPHA, level=MARK_LEVEL), kinds.marks))
        weights.append(CATEGORY_POWER)
    if kinds.numbers:
        triples += [(f"numbers {i}", expert, kinds.numbers) for i, expert in enumerate(experts)]
        weights += powers
    return triples, weights


def measured_columns(kinds: Kinds) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the columns of numbers and categories, and the places of the categories among them."""
    columns = tuple(sorted((*kinds.numbers, *kinds.categories)))
    return columns, tuple(columns.index(j) for j in kinds.categories)


def family(kinds: Kinds) -> list[Member | SearchedMember]:
    """Return the class frequencies, and the members for these columns, best first.

    A time limit leaves out the last ones. `benchmarks/compose.py` compares them with what was left out.
    """
    n, (columns, codes) = len(kinds.numbers), measured_columns(kinds)
    trees = ProductOfExperts([("leaves", LeavesModel(categories=codes), columns)], [1.0])
    one_hot = OneHotCategories(kinds, MOST_INDICATORS) if kinds.mixed else None
    indicators = ProductOfExperts([gaussian(5 * (n + MOST_INDICATORS))], [0.25])
    return [
        FrequencyMember(kinds),
        Member("product with neighbours", neighbour_recipe(kinds)),
        GlassMember(partial(recipe, kinds=kinds), kinds),
        *([Member("leaves", trees)] if columns else []),  # there may be marks only
        Member("QDA of indicators", indicators, one_hot) if kinds.mixed else Member("QDA, n", gaussian(n)),
        Member("LDA", LinearDiscriminantAnalysis(covariance_strength=n, diagonal_mix=0.5), one_hot),
    ]


def fold_posteriors(
    member: Member,
    X: Array,
    y: Array,
    w: Array | None,
    kept: Array,
    held: Array,
    n_classes: int,
    learner: Any = None,
    checkpoints: Sequence[int] = CHECKPOINTS,
) -> Array:
    """Return the posteriors of a fold's held rows at each checkpoint; the learner is the family's by default.

    They are NaN if the fold's rows cannot be used, so that the member is not chosen.
    """
    learner = learner or family_learner(checkpoints[-1])
    found = np.zeros((len(checkpoints), len(held), n_classes), np.float32)
    before = fitted_before(member.before, X[kept])
    X_kept, X_held = transformed(before, X[kept]), transformed(before, X[held])
    clf = clone(member.estimator).set_params(learner=learner)
    try:
        task = begin_fit(clf, ArraySource(X_kept, y[kept], None if w is None else w[kept]))
        with task.engine.one_blas_thread():
            found[:, :, clf.classes_] = posteriors_along(task, learner, rows_for(clf, X_held), checkpoints)
    except ColumnError:
        found[:] = np.nan
    return found


def cross_validate(
    members: Sequence[Member | SearchedMember],
    X: Array,
    y: Array,
    w: Array | None,
    folds: list[tuple[Array, Array]],
    combine: bool,
    n_jobs: int | None = None,
    deadline: float = np.inf,
    report: Callable[[str], None] = lambda line: None,
    fit: FitTask | None = None,
) -> tuple[HeldOut, list[float]]:
    """Fit every member in every fold; return their scores on the held rows, and the seconds of each member.

    No member but the first two is begun after the deadline. Members and folds are tasks of `fit`; if a
    callback asks to stop, the present member is the last one. With `combine`, posteriors are kept, to choose
    an ensemble.
    """
    r, fit = int(y.max()) + 1, fit or FitTask()
    judged = np.concatenate([held for _, held in folds])
    found = HeldOut(y[judged], None if w is None else w[judged], r, combine, judged)
    seconds: list[float] = []
    stop = ""
    with Parallel(n_jobs, return_as="generator") as parallel:
        for number, member in enumerate(members):
            start = perf_counter()
            stop = stop or ("time_limit reached" if number > 1 and start > deadline else "")
            if stop:
                report(f"{stop}: {len(members) - number} members were not tried")
                break
            task = fit.begin("member", len(folds))
            if isinstance(member, SearchedMember):
                walked = member.walk(X, y, w, folds)
            else:
                walked = parallel(
                    delayed(one_thread)(fold_posteriors, n_jobs, member, X, y, w, kept, held, r)
                    for kept, held in folds
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


def folds_of(cv: Any, y: Array, counted: Array | None, seed: int) -> list[tuple[Array, Array]]:
    """Return the places of the rows kept and held out in each fold, among the rows that have a weight.

    `y` are the codes of all rows of the user, which splits are made of, and `counted` a mask of those with a
    weight; None if all have one. If `cv` is a number, no more folds are returned than hold out `ENOUGH_HELD`
    rows.
    """
    from sklearn.model_selection import StratifiedKFold, check_cv  # here: slow to import

    weighted = np.ones(len(y), dtype=bool) if counted is None else counted
    own, place = y[weighted], np.cumsum(weighted) - 1
    folds = []
    if isinstance(cv, Integral):
        fewest = int(np.bincount(own).min())
        if fewest < 2:
            raise ValueError("strategy='cv' and 'ensemble' need two rows or more of each class.")
        splitter, judged = StratifiedKFold(min(int(cv), fewest), shuffle=True, random_state=seed), 0
        for kept, held in splitter.split(own, own):
            if judged < ENOUGH_HELD:
                folds.append((kept, held))
                judged += len(held)
        return folds
    for fold in check_cv(cv, y, classifier=True).split(y, y):
        # A split may be indices, lists or masks.
        parts = (np.arange(len(y))[np.asarray(part)] if len(part) else place[:0] for part in fold)
        kept, held = (place[part[weighted[part]]] for part in parts)
        folds.append((kept, held))
    if not folds:
        raise ValueError("cv has no splits: if it is a generator, it may be used up; pass a list.")
    for number, (kept, held) in enumerate(folds):
        if not len(held) or len(np.unique(own[kept])) < 2:
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
