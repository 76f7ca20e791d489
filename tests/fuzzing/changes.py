"""Laws of a second fit: on rows that say the same in another way, or by another's formulas."""

from __future__ import annotations

import pickle
import warnings
from functools import partial
from importlib.util import find_spec
from typing import Any

import array_api_strict
import numpy as np
import sklearn.discriminant_analysis as their_da
import sklearn.naive_bayes as their_nb
from sklearn import config_context
from sklearn.base import clone

from fuzzing.cases import COVARIANCES, HELD, REFUSED, UNDECIDED, Case, Refusal, Violation, attempt
from fuzzing.estimators import changed, uses
from fuzzing.laws import change, goes_to_optimum, near_and_far, row_weights
from fuzzing.tables import EPS, EPS32, FLOATS, Array, Table, unnamed
from riskbayes.arrays import to_numpy
from riskbayes.learners import DFE, GD, RC, RCCV, ClosedForm
from riskbayes.learners.base import resolve_learner
from riskbayes.models import LeavesModel, NeighboursModel
from riskbayes.task import Status


def picks_rows(case: Case) -> bool:
    """True if a fit picks rows by place: held out, in batches, in bootstrap samples, one by one."""
    learner = case.learner
    return (
        uses(case.estimator, "early_stopping", "batch_size", "n_restarts")
        or isinstance(learner, RCCV)
        or learner == RCCV.name
        or (isinstance(learner, DFE) and learner.mode == "online")
        or getattr(case.estimator, "strategy", "single") != "single"
    )


# The same estimator, and what became of it.


@change(
    "the objective is never above the closed form's", lambda case: case.learner not in (None, ClosedForm.name)
)
def never_worse(case: Case) -> str:
    """The risk alone: an anchor is least at the closed form, so that the risk must not rise either."""
    clf, table = case.fitted, case.table
    if isinstance(clf, Refusal):
        return REFUSED
    learner = clf.learner_
    if table.validation is not None or (getattr(learner, "early_stopping", False) and not learner.refit):
        return UNDECIDED  # the rows that were kept, or held, decide
    if isinstance(learner, RCCV):
        if learner.pooled_share_ > 0:
            return UNDECIDED  # held-out rows chose less than the closed form
        learner = RC(objective=learner.objective_, generative_weight=learner.generative_weight_)
    objective, monitor = getattr(learner, "objective", "log_loss"), getattr(learner, "monitor", "soft_error")
    if monitor is None:
        monitor = "soft_error" if learner.step == "fixed" else "objective"
    anchored = getattr(learner, "generative_weight", 0) != 0 and monitor == "objective"
    if anchored and ("Smooth" in repr(case.estimator) or case.name == "ProductOfExperts"):
        return UNDECIDED  # the closed form of smooth densities is a plug-in, not their largest likelihood
    if monitor == "objective":
        monitor = objective if isinstance(objective, str) else "cost"
    closed, w = case.fit(case.closed_form, table), row_weights(clf, table)
    ours, theirs = (w @ losses(found, table, monitor, objective) / w.sum() for found in (clf, closed))
    if not ours <= theirs + (1e-9 if table.eps == EPS else 1e-4) * (1 + abs(theirs)):
        raise Violation(f"the {monitor} is {ours:.9g}, by closed form {theirs:.9g}")
    return HELD


def losses(clf: Any, table: Table, name: str, objective: Any) -> Array:
    """A loss of each training row."""
    L = attempt(lambda: clf.predict_log_proba(table.held(table.X))).astype(float)
    own = L[np.arange(len(table.y)), table.y]
    if name == "cost":
        return (np.exp(L) * np.asarray(objective)[table.y]).sum(axis=1)
    return -own if name == "log_loss" else 1 - np.exp(own)


@change("a fit can be repeated, and pickled")
def repeatable(case: Case) -> str:
    if isinstance(case.answer, Refusal):
        return REFUSED
    again = case.posterior(case.fit(case.estimator, case.table), case.table)
    unpickled = case.posterior(pickle.loads(pickle.dumps(case.fitted)), case.table)
    for P, what in ((again, "a second fit"), (unpickled, "a pickle")):
        if not np.array_equal(P, case.answer):
            raise Violation(f"{what} differs by {np.abs(P - case.answer).max():.3g}")
    return HELD


@change("samples can be predicted", lambda case: hasattr(case.estimator, "sample"))
def samples(case: Case) -> str:
    clf, table = case.fitted, case.table
    if not hasattr(clf, "sample"):  # refused, or what was fitted is no density
        return REFUSED
    drawn = attempt(lambda: clf.sample(12, random_state=0))
    if isinstance(drawn, Refusal):
        return REFUSED
    X, y = drawn
    if not np.isin(y, case.labels).all() or np.shape(X) != (12, table.X.shape[1]):
        raise Violation(f"samples of shape {np.shape(X)} with labels {sorted(set(y.tolist()))}")
    rows = X
    if table.has_names and isinstance(X, np.ndarray):
        rows = type(table.held(table.X))({name: X[:, j] for j, name in enumerate(table.names)})
    P = attempt(lambda: clf.predict_proba(rows))
    if isinstance(P, Refusal) or not np.isfinite(P).all():
        raise Violation(f"samples cannot be predicted: {P}")
    return HELD


# The order of rows, columns and classes.


@change("row order", lambda case: not picks_rows(case))
def row_order(case: Case) -> str:
    return case.same_answer(case.table.rows(case.rng(3).permutation(len(case.table.y))))


def tells_columns_apart(case: Case) -> bool:
    """False where dependences are learned from few of the rows: columns that these do not tell apart tie."""
    return not picks_rows(case) or case.name not in (
        "ConditionalGaussianNB",
        "KDependenceNB",
        "RiskBayesClassifier",
        "TreeAugmentedNB",
    )


@change("column order", tells_columns_apart)
def column_order(case: Case) -> str:
    order = case.rng(3).permutation(case.table.X.shape[1])

    def permuted(name: str, value: Any) -> Any:
        if name not in ("prior_mean", "prior_variance", "prior_covariance") or value is None:
            return value
        return value[order] if np.ndim(value) == 1 else value[np.ix_(order, order)]

    if has_twins_by_weight(case.table):
        return (
            UNDECIDED  # which of two columns is whose parent matters in rows to predict that tell them apart
        )
    return case.same_answer(case.table.columns(order), estimator=changed(case.estimator, permuted))


@change("relabelling")
def relabelling(case: Case) -> str:
    """Other labels; in another order, where no random choice goes by class."""
    r = case.table.n_classes
    places = np.arange(r) if picks_rows(case) else case.rng(3).permutation(r)
    labels, old = np.array([f"label {k:02d}" for k in range(r)])[places], np.argsort(places)

    def renamed(name: str, value: Any) -> Any:
        if name == "class_weight" and isinstance(value, dict):
            return {labels[k]: value[label] for k, label in enumerate(case.labels.tolist())}
        if name == "objectives":
            return [renamed("objective", objective) for objective in value]
        if name in ("priors", "class_prior") and value is not None:
            return value[old]
        return value[np.ix_(old, old)] if name == "objective" and not isinstance(value, str) else value

    Q = case.posterior(case.fit(changed(case.estimator, renamed), case.table, labels), case.table)
    Q = Q if isinstance(Q, Refusal) else Q[:, places]
    return case.compare(case.answer, Q, case.estimator, case.table)


# The units of columns.


def is_free_of_units(case: Case) -> bool:
    """True if only the columns have units: hyper-parameters may have them, and GD steps in the data's own."""
    given = uses(case.estimator, "prior_mean", "prior_variance", "prior_covariance", "reg_param")
    by_gd = isinstance(case.learner, GD) or case.learner == GD.name
    return case.table.kind == "real" and case.table.holder in FLOATS and not given and not by_gd


def has_room(case: Case) -> bool:
    """True if multiplying or dividing the columns by 2^60 (float32: 2^15) loses no digit of squares.

    Nor of squares times weights, which moments are sums of: those of tiny weights underflow.
    """
    size = np.abs(np.concatenate([case.table.X, case.table.near]))
    most = 1e10 if case.table.eps > EPS else 1e130
    roots = np.sqrt(case.table.weights[case.table.weights > 0])

    def within(low: float, high: float, limit: float) -> bool:
        return bool(((size == 0) | ((size * low > 1 / limit) & (size * high < limit))).all())

    return is_free_of_units(case) and within(1.0, 1.0, most) and within(roots.min(), roots.max(), 1e130)


def compares_columns(case: Case) -> bool:
    """True if variances of columns are averaged, or the largest counts for all, as in `var_smoothing`."""
    smoothed = case.name in ("GaussianNB", "GenerativeClassifier", "ProductOfExperts")
    exact = "var_smoothing=0.0" in repr(case.estimator)
    return uses(case.estimator, "shrinkage", "var_smoothing") or (smoothed and not exact)


def has_twins_by_weight(table: Table) -> bool:
    """True if columns of categories are told apart by rows without weight alone."""
    if table.kind != "categories":
        return False
    counted = unnamed(table.X[table.weights > 0])
    return len(np.unique(counted, axis=1).T) < len(np.unique(unnamed(table.X), axis=1).T)


@change("a power of two as the unit of all columns", has_room)
def common_unit(case: Case) -> str:
    """No digit of the rows changes, only exponents."""
    return in_units(case, case.rng(3).integers(-60, 61, size=1))


@change(
    "a power of two as the unit of each column", lambda case: has_room(case) and not compares_columns(case)
)
def own_units(case: Case) -> str:
    return in_units(case, case.rng(3).integers(-60, 61, size=case.table.X.shape[1]))


def in_units(case: Case, powers: Array) -> str:
    units = 2.0 ** (powers // 4 if case.table.eps > EPS else powers)
    return case.same_answer(case.table.of_cells(lambda X: X * units))


def has_digits(case: Case) -> bool:
    """True if numbers of the size of a million can be added to the columns."""
    small = np.abs(case.table.X).max() < 1e6 and "scaled" not in case.table.traits
    return is_free_of_units(case) and case.table.eps == EPS and bool(small)


@change("a shift of all columns", has_digits)
def shift(case: Case) -> str:
    """Of rows that it loses no digit of."""
    by = 2.0 ** case.rng(3).integers(4, 20, size=case.table.X.shape[1])
    rounded = case.table.of_cells(lambda X: (X + by) - by)
    return case.same_answer(rounded.of_cells(lambda X: X + by), rounded)


def is_affine(case: Case) -> bool:
    """True if the rows determine covariances, and a product with a matrix loses no digits of them."""
    if COVARIANCES.get(case.name) not in ("tied", "full") or not has_digits(case):
        return False
    spread = case.table.X.std(axis=0).min()
    similar = spread > 0 and np.abs(case.table.X).max() < 1e3 * spread  # it rounds by the largest column
    return bool(similar) and case.table.condition(COVARIANCES[case.name]) < 1e6


@change("an affine change of columns", is_affine)
def affine(case: Case) -> str:
    """Without the hyper-parameters that give columns a direction.

    The way of quasi-Newton steps, whose metric has a unit for each column, does; their optimum does not.
    """
    free = {"shrinkage": None, "prior": None, "diagonal_mix": 0.0}
    estimator = changed(case.estimator, lambda name, value: free.get(name, value))
    learner = resolve_learner(estimator.learner)
    to_optimum = goes_to_optimum(learner)
    if to_optimum:
        estimator.set_params(learner=learner.set_params(max_iter=500, tol=0.0))
    rng, n = case.rng(3), case.table.X.shape[1]
    A = np.linalg.qr(rng.standard_normal((n, n)))[0] * rng.uniform(0.5, 2.0, size=n)
    tables = case.table, case.table.of_cells(lambda X: X @ A)
    found = [case.fit(estimator, table) for table in tables]
    if to_optimum and any(getattr(clf, "status_", None) is not Status.CONVERGED for clf in found):
        return REFUSED if all(isinstance(clf, Refusal) for clf in found) else UNDECIDED
    P, Q = (case.posterior(clf, table) for clf, table in zip(found, tables, strict=True))
    return case.compare(P, Q, estimator, case.table)


# Weights.


def counts_rows(case: Case) -> bool:
    """True if a model tells rows from weights: a row is no neighbour of its own, and its repeat is one."""
    return isinstance(getattr(case.estimator, "model", None), NeighboursModel | LeavesModel)


@change("weights are repeats", lambda case: not picks_rows(case) and not counts_rows(case))
def weights_as_repeats(case: Case) -> str:
    table = case.table
    times = case.rng(3).integers(1, 4, size=len(table.y))
    repeats = table.rows(np.repeat(np.arange(len(times)), times))
    return case.same_answer(repeats, table.with_(w=table.weights * times))


@change(
    "zero weight is absence", lambda case: not uses(case.estimator, "batch_size", "n_restarts", "shuffle")
)
def zero_weight(case: Case) -> str:
    """Rows without weight are not held out either; batches and bootstrap samples go by place."""
    table = case.table
    gone = case.rng(3).random(len(table.y)) < 0.3
    gone[np.unique(table.y, return_index=True)[1]] = False
    kept = table.rows(~gone)
    if (np.bincount(kept.y, weights=kept.weights) <= 0).any() or not same_categories(table, kept):
        return UNDECIDED
    return case.same_answer(kept, table.with_(w=np.where(gone, 0.0, table.weights)))


def same_categories(table: Table, part: Table) -> bool:
    """True if part of a table shows all its categories: as in scikit-learn, those of weight zero count."""
    pairs = zip(table.X.T, part.X.T, strict=True)
    return table.kind == "real" or all(set(one.tolist()) == set(other.tolist()) for one, other in pairs)


# Batches, containers, precision, devices.

SAME_CELLS = {
    ("categories", "int64"): ("float64", "float32", "int16", "uint8"),
    ("categories", "uint8"): ("float64", "int64"),
    ("categories", "float64"): ("int64", "uint8"),
    ("real", "float64"): ("list", "fortran", "strided"),
    ("real", "uint8"): ("int64", "float64"),
}
"""Containers that hold the same cells."""


@change("one row's answer does not depend on its batch, nor on its dtype")
def batch(case: Case) -> str:
    table, clf, rows = case.table, case.fitted, near_and_far(case)
    P = case.posterior(clf, table, rows)
    if isinstance(P, Refusal):
        return REFUSED
    # Products of one row and of many are rounded differently, by the size of their terms: that of the joint,
    # and more where whitened columns are differences of similar ones.
    sizes = np.repeat([1.0, 1e6], [len(table.near), len(table.far)])
    if hasattr(clf, "predict_joint_log_proba"):
        sizes = 1 + np.abs(attempt(lambda: clf.predict_joint_log_proba(table.held(rows)))).max(axis=1)
    if table.kind == "real" and case.name != "SmoothNB":
        sizes = sizes * min(table.condition(), 1e12) ** 0.5
    tolerance = 1e-9 + 256 * table.eps * sizes
    for i in case.rng(3).choice(len(rows), size=6, replace=False):
        alone = case.posterior(clf, table, rows[i : i + 1])
        if isinstance(alone, Refusal) or np.abs(alone[0] - P[i]).max() > tolerance[i]:
            raise Violation(f"alone a row has {alone}, in a batch {P[i]}")
    for holder in SAME_CELLS.get((table.kind, table.holder), ()):
        fit = (rows <= 255).all(axis=1) if holder == "uint8" else np.full(len(rows), True)
        Q = case.posterior(clf, table.with_(holder=holder), rows[fit])
        if isinstance(Q, Refusal) or (np.abs(P[fit] - Q).max(axis=1) > tolerance[fit]).any():
            raise Violation(f"rows as {holder} have other posteriors than as {table.holder}")
    return HELD


LAYOUTS = {
    "real": ("float64", "fortran", "strided", "list", "pandas", "polars"),
    "categories": ("int64", "int16", "float64", "float32", "pandas"),
}
"""Containers of the same cells to fit on."""


@change("the container does not matter", lambda case: case.table.holder in LAYOUTS[case.table.kind])
def container(case: Case) -> str:
    return case.same_answer(case.table.with_(holder=str(case.rng(3).choice(LAYOUTS[case.table.kind]))))


@change("float32 rows have nearly the answers of float64", lambda case: case.table.eps == EPS32)
def single_precision(case: Case) -> str:
    if isinstance(case.answer, Refusal):
        return REFUSED  # its range is smaller, too
    if "far from zero" in case.table.traits:
        if isinstance(getattr(case.estimator, "learner", None), GD):
            return UNDECIDED  # natural parameters are about zero, whatever the rows: their terms cancel
        if case.is_within_float32(case.table):
            return UNDECIDED
    exact = case.table.with_(holder="float64")
    Q = case.posterior(case.fit(case.estimator, exact), exact)
    return case.compare(case.answer, Q, case.estimator, case.table)


def takes_devices(case: Case) -> bool:
    holders = ("float64", "float32") if case.table.kind == "real" else ("int64", "uint8")
    supported = case.estimator.__sklearn_tags__().array_api_support
    return supported and case.table.holder in holders and case.table.validation is None


@change("arrays of other libraries have NumPy's answers", takes_devices)
def devices(case: Case) -> str:
    table, clf, xp = case.table, clone(case.estimator), array_api_strict
    device: Any = array_api_strict.Device("device1")
    if find_spec("torch") is not None and case.rng(3).random() < 0.5:
        import array_api_compat.torch as xp  # large, and seldom there

        device = "cpu"

    def sent(x: Array) -> Any:
        return x if x.dtype.kind == "U" else xp.asarray(np.array(x), device=device)

    rows = near_and_far(case) if table.kind == "categories" else table.near

    def answered() -> Any:
        weights = {} if table.w is None else {"sample_weight": sent(table.w)}
        clf.fit(sent(table.held(table.X)), sent(case.labels[table.y]), **weights)
        return to_numpy(clf.predict_proba(sent(table.held(rows))))

    with config_context(array_api_dispatch=True):
        Q = attempt(answered)
    return case.compare(case.posterior(case.fitted, table, rows), Q, case.estimator, table)


# What scikit-learn computes.

TWINS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "CategoricalNB": (their_nb.CategoricalNB, ("alpha", "fit_prior", "class_prior")),
    "GaussianNB": (their_nb.GaussianNB, ("priors", "var_smoothing")),
    # With its own tol it leaves out directions of strongly correlated columns.
    "LinearDiscriminantAnalysis": (partial(their_da.LinearDiscriminantAnalysis, tol=1e-12), ("priors",)),
    "QuadraticDiscriminantAnalysis": (their_da.QuadraticDiscriminantAnalysis, ("priors", "reg_param")),
}
"""scikit-learn's classes, and the arguments that both have."""


def has_a_twin(case: Case) -> bool:
    """True if scikit-learn fits these rows too, and they determine the answer."""
    holder = case.table.holder
    if case.name not in TWINS or holder in ("strings", "dates"):
        return False
    if case.table.kind == "categories":  # without pseudo-counts it takes the logarithm of zero
        return holder in ("int64", "int16", "uint8", "float64") and case.estimator.alpha > 0
    return min(np.bincount(case.table.y)) > 1 and twin_bound(case) < 1e-4


def twin_bound(case: Case) -> float:
    """How far rounding may move scikit-learn's P: it neither scales the columns nor centres them."""
    if case.table.kind == "categories":
        return 1e-9
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        units = case.table.X.std(axis=0)
    if not (units.min() > 1e-100 and units.max() < 1e100):
        return np.inf
    lost = (units.max() / units.min()) ** 2 * (1 + np.abs(case.table.X / units).max())
    return 1e-8 + 1e3 * EPS * lost * case.table.with_(w=None).condition(COVARIANCES[case.name])


@change("the closed form is scikit-learn's", has_a_twin)
def scikit_learn(case: Case) -> str:
    """Of Gaussians without weights: discriminant analysis takes none there, nor does GaussianNB's epsilon."""
    (twin, shared), categories = TWINS[case.name], case.table.kind == "categories"
    table = case.table if categories else case.table.with_(w=None, holder="float64")
    if table.w is not None:  # to scikit-learn a category is there that only rows without weight have
        table = table.rows(table.w > 0)
    arguments = {name: getattr(case.estimator, name) for name in shared}
    weights = {} if table.w is None else {"sample_weight": table.w}
    ours, theirs = type(case.estimator)(learner=ClosedForm.name, **arguments), twin(**arguments)
    X, y = table.held(table.X), case.labels[table.y]
    try:
        with warnings.catch_warnings(action="ignore"):
            Q = theirs.fit(X, y, **weights).predict_proba(X)
    except np.linalg.LinAlgError:
        return UNDECIDED  # it gives covariances up sooner
    P = attempt(lambda: ours.fit(X, y, **weights).predict_proba(X))
    return case.compare(P, Q, case.closed_form, table, twin_bound(case))
