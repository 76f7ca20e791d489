"""Laws of tables with missing cells: one row among others, batches, marks, and the counts of findings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from functools import cache, cached_property, lru_cache
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import softmax
from scipy.stats import chi2_contingency
from sklearn.base import clone

from fuzzing.cases import (
    HELD,
    REFUSED,
    ROUNDING,
    UNDECIDED,
    Case,
    Refusal,
    Violation,
    attempt,
    random_classes,
)
from fuzzing.estimators import changed, random_estimator, random_kind
from fuzzing.laws import answer, change
from fuzzing.streams import adds_up, taken, whole
from fuzzing.tables import EPS, Array, Table, random_labels, random_weights

ACROSS_ROWS = ("estimate_priors",)
"""Methods that take rows and answer for all of them together."""

TOLERANCE = 1e-7
"""Of answers that differ in the order of sums only; the numbers of these tables are of moderate size."""

CLEAR = 1.5
"""A p-value decides if it is that many times above or below the level."""


class HoledCase(Case):
    """The case of the same seed and number whose table has missing cells, in numbers of moderate size."""

    @cached_property
    def _drawn(self) -> tuple[Table, Array, Any]:
        rng = self.rng(6)
        kind, model = random_kind(self.name, rng)
        table = moderate_table(kind, rng)
        labels = random_classes(table.n_classes, rng)
        estimator = random_estimator(self.name, model, table, labels, rng)
        return with_holes(table, "missing" in estimator.get_params(), rng), labels, estimator


@lru_cache(maxsize=1)
def holed_case(seed: int, number: int) -> HoledCase:
    return HoledCase(seed, number)


def holed(case: Case) -> HoledCase:
    """The case with missing cells, one for all laws, which share its fit."""
    return holed_case(case.seed, case.number)


def moderate_table(kind: str, rng: np.random.Generator) -> Table:
    """A table whose rows determine covariances, with weights whose sizes are alike."""
    m, n, r = int(rng.integers(25, 90)), int(rng.integers(1, 6)), int(rng.integers(2, 4))
    y, traits = random_labels(m, r, rng)
    w, weighting = random_weights(y, rng)
    if weighting == "weights of a size":
        w, weighting = None, "no weights"
    picked = rng.integers(m, size=12)
    if kind == "categories":
        X = (rng.integers(4, size=(m, n)) + (rng.random((m, n)) < 0.5) * y[:, None]) % rng.integers(2, 5, n)
    else:
        X = np.round(rng.standard_normal((m, n)) + rng.standard_normal((r, n))[y], 3)
        X = np.where(rng.random(n) < 0.2, np.round(X), X)  # some columns of few values
    names = tuple(f"c{j}" for j in rng.permutation(n))
    traits = [*traits, weighting]
    return Table(kind, X, y, w, X[picked], X[:0], X[:0], "float64", tuple(traits), names=names)


def with_holes(table: Table, takes_words: bool, rng: np.random.Generator) -> Table:
    """The table with missing cells, at random or by class, in a container that has them.

    The last of the near rows has nothing but missing cells.
    """
    (m, n), X, near = table.X.shape, table.X.astype(float), table.near.astype(float)
    rates = rng.choice([0.0, 0.1, 0.3, 0.6], size=(table.n_classes, n))
    if rng.random() < 0.6:
        rates[:] = rates[:1]  # at random
    missing = rng.random((m, n)) < rates[table.y]
    if rng.random() < 0.3:
        missing[np.argsort(table.y, kind="stable")[: m // 2], rng.integers(n)] = True
    X[missing] = np.nan
    near[rng.random(near.shape) < 0.3], near[-1] = np.nan, np.nan
    holders = ("float64", "pandas", "words", "words") if takes_words else ("float64", "pandas")
    return table.with_(X=X, near=near, holder=str(rng.choice(holders)))


def row_methods(clf: Any) -> Iterator[str]:
    """Yield the names of the methods that take rows and nothing else: found, not listed."""
    for name in sorted(dir(type(clf))):
        if name.startswith(("_", "fit", "set_")) or name in ACROSS_ROWS or not hasattr(clf, name):
            continue
        method = getattr(clf, name)
        given = list(inspect.signature(method).parameters.values()) if callable(method) else []
        if [p.name for p in given if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD] == ["X"]:
            yield name


def cells_of(answer: Any) -> Array:
    """The answer for each row as an array of objects or of floats; of an explanation its contributions."""
    found = getattr(answer, "values", answer) if not isinstance(answer, pd.DataFrame) else answer.to_numpy()
    return np.asarray(found).reshape(len(found), -1)


def far_apart(one: Array, other: Array) -> Array:
    """True where two answers are neither equal nor, as numbers, nearly equal."""
    different = ~((one == other) | ((one != one) & (other != other)))
    for place in zip(*np.nonzero(different), strict=True):
        a, b = one[place], other[place]
        if isinstance(a, float | np.floating) and isinstance(b, float | np.floating):
            different[place] = not abs(a - b) <= TOLERANCE * (1 + abs(a))
    return different


@answer("one row alone has its answer among others, by every method that takes rows")
def alone(case: Case) -> str:
    case = holed(case)
    clf, table = case.fitted, case.table
    if isinstance(clf, Refusal):
        return REFUSED
    m, rng, reference = len(table.near), case.rng(3), table.held(table.X)
    shuffled = rng.permutation(m)

    @cache
    def held(index: tuple[int, ...]) -> Any:
        return table.held(table.near[list(index)])

    @cache
    def arguments(name: str) -> dict[str, Any]:
        ranked = "reference" in inspect.signature(getattr(clf, name)).parameters
        return {"reference": reference} if ranked else {}

    def ask(name: str, index: Array) -> Any:
        rows = held(tuple(index.tolist()))
        return attempt(lambda: cells_of(getattr(clf, name)(rows, **arguments(name))))

    for name in row_methods(clf):
        found = ask(name, np.arange(m))
        if isinstance(found, Refusal) or (name == "predict" and is_a_tie(case)):
            continue
        # Two rows alone, for each method others, and the one of missing cells only.
        for index in (shuffled, *(np.array([i]) for i in (*rng.choice(m - 1, 2, replace=False), m - 1))):
            other = ask(name, index)
            if isinstance(other, Refusal):
                raise Violation(f"{name} of rows {index} is refused: {other.message}")
            if far_apart(found[index], other).any():
                if rounding_tells(case, name, ask, found):
                    return ROUNDING
                raise Violation(f"{name} of rows {index}: {other}, among others {found[index]}")
    return HELD


def rounding_tells(case: Case, name: str, ask: Any, found: Array) -> bool:
    """True if the last digits of the cells move answers as far, as nearly singular covariances let them.

    Ranks among densities jump where densities move at all.
    """
    table, scores = case.table, "score_samples" if name in RANKS else name
    if table.kind == "categories":
        return False
    before = found if scores == name else ask(scores, np.arange(len(table.near)))
    nudged = table.near * (1 + 4 * EPS * np.resize([1.0, -1.0], table.near.shape))
    moved = attempt(lambda: cells_of(getattr(case.fitted, scores)(table.held(nudged))))
    if isinstance(moved, Refusal) or isinstance(before, Refusal) or before.dtype.kind != "f":
        return False
    with np.errstate(invalid="ignore"):
        change = np.nanmax(np.abs(moved - before) / (1 + np.abs(before)), initial=0.0)
    return bool(change > (NEARLY_EQUAL if name in RANKS else TOLERANCE / 1000))


RANKS = ("outlier_score", "is_outlier")
"""Methods that compare densities with those of other rows."""

NEARLY_EQUAL = 1e-10
"""Densities that move by less are ties still."""


def is_a_tie(case: Case) -> bool:
    """True if rounding decides a label."""
    P = case.posterior(case.fitted, case.table)
    best = np.sort(P if P.shape[1] > 1 else np.hstack([P, 1 - P]), axis=1)
    return hasattr(case.fitted, "cost_matrix_") or bool((best[:, -1] - best[:, -2] < TOLERANCE).any())


@change("batches with missing cells are one fit, or refused", adds_up)
def batches_with_holes(case: Case) -> str:
    case = holed(case)
    if not adds_up(case):
        return UNDECIDED
    table, rng, P, clf = case.table, case.rng(3), whole(case), clone(case.closed_form)
    order = np.argsort(table.y, kind="stable") if rng.random() < 0.5 else rng.permutation(len(table.y))
    for index in np.array_split(order, rng.integers(2, 6)):
        part = table.rows(index)
        if isinstance(taken(case, clf, "partial_fit", part, classes=case.labels), Refusal):
            return REFUSED
    Q = case.posterior(clf, table)
    if isinstance(P, Refusal) or isinstance(Q, Refusal):
        return REFUSED
    if far_apart(P, Q).any():
        raise Violation(f"posteriors of batches and of one fit differ by {np.abs(P - Q).max():.3g}")
    return HELD


@change("a row of missing cells only has the prior's posterior")
def nothing_known(case: Case) -> str:
    """As shares of the rows, by closed form; and as `explain` tells it, after any learner.

    Marks of missing cells say something, unless they are tied: by a chi-square test of all rows.
    """
    case = holed(case)
    clf, table = case.fitted, case.table
    if isinstance(clf, Refusal):
        return REFUSED
    if uses_marks(clf) and not marks_are_tied(case, clf):
        return UNDECIDED
    row = table.held(table.near[-1:])
    P, told = case.posterior(clf, table, table.near[-1:]), attempt(lambda: clf.explain(row))
    if isinstance(P, Refusal):
        raise Violation(f"a row of missing cells is refused: {P.message}")
    ended = UNDECIDED
    if not isinstance(told, Refusal):
        compare_priors(P[0], softmax(told.baseline), "the prior of explain")
        ended = HELD
    if case.learner is None or case.name == "ProductOfExperts" or not clf.model_.traits.describes_rows:
        return ended  # no closed form, or priors of several experts, or a comparison with training rows
    free = {"priors": None, "class_prior": None, "class_alpha": 0.0, "fit_prior": True}
    plain = changed(case.closed_form, lambda name, value: free.get(name, value))
    found = case.fit(plain, table)
    if isinstance(found, Refusal):
        return REFUSED
    w = row_masses(case, found)
    P = case.posterior(found, table, table.near[-1:])
    compare_priors(P[0], np.bincount(table.y, weights=w) / w.sum(), "the shares of the classes")
    return HELD


def compare_priors(found: Array, expected: Array, what: str) -> None:
    if np.abs(found - expected).max() > TOLERANCE:
        raise Violation(f"a row of missing cells has {found}; {what}: {expected}")


def uses_marks(clf: Any) -> bool:
    return getattr(clf, "missing", "ignore") == "informative"


def marks_are_tied(case: Case, clf: Any, level: float = 0.01) -> bool:
    """True if a chi-square test clearly finds no mark that depends on the class."""
    table, w = case.table, row_masses(case, clf)
    for mask in np.isnan(table.X).T:
        counts = np.stack([np.bincount(table.y, weights=w * (mask == k)) for k in (False, True)])
        counts = counts[:, counts.sum(axis=0) > 0]
        if not mask.any() or (counts.sum(axis=1) <= 0).any() or counts.shape[1] < 2:
            continue
        if chi2_contingency(counts, correction=False).pvalue < CLEAR * level:
            return False
    return True


def row_masses(case: Case, clf: Any) -> Array:
    weights = getattr(clf, "class_weight_", None)
    return case.table.weights if weights is None else case.table.weights * weights[case.table.y]


def takes_marks(case: Case) -> bool:
    return "missing" in case.estimator.get_params() and case.learner is not None


@change("tied marks cancel", takes_marks)
def tied_marks(case: Case) -> str:
    """If no mark depends on the class, marks of missing cells change no posterior of the closed form."""
    case = holed(case)
    marked = case.fit(clone(case.closed_form).set_params(missing="informative"), case.table)
    ignored = case.fit(clone(case.closed_form).set_params(missing="ignore"), case.table)
    P, Q = case.posterior(marked, case.table), case.posterior(ignored, case.table)
    if isinstance(P, Refusal) or isinstance(Q, Refusal):
        return REFUSED
    if not marks_are_tied(case, marked):
        return UNDECIDED
    if far_apart(P, Q).any():
        raise Violation(f"tied marks move posteriors by {np.abs(P - Q).max():.3g}")
    return HELD


@change("findings count rows, and the rows of a class by their weights as repeats")
def counts_of_findings(case: Case) -> str:
    """A share of missing cells is one of rows, whatever their weights and those of the classes."""
    case = holed(case)
    table, closed = case.table, case.estimator if case.learner is None else case.closed_form
    times = case.rng(3).integers(1, 4, size=len(table.y))
    tables = table.with_(w=times.astype(float)), table.with_(w=None)
    tables += (tables[1].rows(np.repeat(np.arange(len(times)), times)),)
    found = [case.fit(closed, one) for one in tables]
    if any(isinstance(clf, Refusal) for clf in found):
        return REFUSED
    weighted, plain, repeated = (
        {(f.code, f.where): str(f) for f in clf.checks_ if f.code in ("RB005", "RB006", "RB007", "RB008")}
        for clf in found
    )
    if few_of(weighted) != few_of(repeated):
        raise Violation(f"with weights {few_of(weighted)}, with repeated rows {few_of(repeated)}")
    if few_of(weighted, False) != few_of(plain, False):
        raise Violation(f"with weights {weighted}, without {plain}")
    for (code, name), message in plain.items():
        told = re.search(r"in (\d+) % of the rows", message)
        if code == "RB007" and name in table.names and told is not None:
            share = 100 * np.isnan(table.X[:, table.names.index(name)]).mean()
            if abs(int(told[1]) - share) > 0.5 + TOLERANCE:
                raise Violation(f"{message} ({share} %)")
    return HELD


def few_of(findings: dict[tuple[str, str], str], classes: bool = True) -> dict[tuple[str, str], str]:
    """The findings on classes of few rows, or the others."""
    return {key: message for key, message in findings.items() if (key[0] == "RB008") == classes}
