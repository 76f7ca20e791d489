"""Signs that the answer leaked into the columns: near copies of the target, values that give it away, and
errors near zero, with the two columns that lead to them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import combinations

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import binom

from riskbayes.arrays import Array
from riskbayes.compare.alone import TREES, Alone, leaf_shares, leaves_of
from riskbayes.compare.data import Data, counts_by_class
from riskbayes.compare.scores import row_losses
from riskbayes.compare.study import Part, Study
from riskbayes.findings import Finding
from riskbayes.preprocessing.encoder import FEW_VALUES
from riskbayes.tables import shown

LEAK_SHARE, LEAST_WRONG = 0.05, 10
"""A column that alone makes at most this share of the errors of the majority class, which makes at least so
many, is suspected of a leak."""

NEAR_COPY, SAME_LABELS, LEAST_COPIED = 0.75, 0.6, 60
"""A column is like a copy of the target with errors if Cohen's kappa of the two is at least this, or the
second where its values are the labels themselves, on at least so many rows."""

PURE, FREQUENT, GIVEN_AWAY, LEVEL = 0.99, 0.8, 0.25, 1e-4
"""A value gives the answer away if the first share of its rows is of one class, which has at most the second
share of all rows, by chance at most with the last probability. It is reported if values of a column do so for
the third share of the rows, or of the rows of a class."""

ALMOST_NONE = 0.02
"""An error is near zero if it is at most this share of that of the majority class."""

MOST_PAIRED, PAIRED_ROWS = 40, 5000
"""Pairs are looked for among at most this number of columns, by trees of at most so many training rows."""


def leaking_columns(study: Study, by_column: list[Alone]) -> list[Alone]:
    """Return the columns that alone give the answer away almost without error."""
    wrong = study.base_error
    if wrong * len(study.held) / 100 < LEAST_WRONG:
        return []
    return [one for one in by_column if one.error <= LEAK_SHARE * wrong]


def columns_of_few_values(data: Data) -> Iterator[tuple[str, str, list[str], Array]]:
    """Yield name, part, values as text and the code of each row (-1: missing) of columns of few values."""
    for values, (j, part) in zip(data.Z.T, data.encoder.encoded, strict=True):
        column, known = data.columns[j], ~np.isnan(values)
        codes = np.full(len(values), -1)
        if part == "is missing":
            yield column.name, part, ["present", "missing"], values.astype(int)
        elif part == "category" or (column.kind == "number" and (column.n_values or 0) <= FEW_VALUES):
            found, codes[known] = np.unique(values[known], return_inverse=True)
            names = data.encoder.readers[j].categories
            texts = [shown(names[int(v)]) if part == "category" else f"{v:g}" for v in found]
            yield column.name, part, texts, codes


def partial_leaks(study: Study, leaks: list[Alone]) -> Iterator[Finding]:
    """Yield RB023 and RB024 for other columns than those that leak without error, one finding for each."""
    told = {one.column for one in leaks}
    copies = list(near_copies(study, told))
    yield from copies
    yield from giving_away(study, told | {finding.where for finding in copies})


def near_copies(study: Study, told: Collection[str]) -> Iterator[Finding]:
    """Yield RB023 for columns that are like a copy of the target with errors in it."""
    data = study.data
    r = len(data.classes)
    for name, part, texts, codes in columns_of_few_values(data):
        known = codes >= 0
        if part == "is missing" or name in told or len(texts) != r or known.sum() < LEAST_COPIED:
            continue
        shares = counts_by_class(data, codes) / known.sum()
        value, label = linear_sum_assignment(-shares)
        right = float(shares[value, label].sum())
        chance = float(shares.sum(axis=1)[value] @ shares.sum(axis=0)[label])
        named = [(texts[v], shown(data.classes[c])) for v, c in zip(value, label, strict=True)]
        least = SAME_LABELS if all(own == label for own, label in named) else NEAR_COPY
        if right - chance >= least * (1 - chance):
            pairs = ", ".join(f"{own} for {label}" for own, label in named[:5]) + (", ..." if r > 5 else "")
            yield Finding(
                "RB023",
                f"Column {name!r} has a value for each class ({pairs}), and that is the right one in "
                f"{100 * right:.3g} % of the {int(known.sum())} rows that have one; by chance it would be in "
                f"{100 * chance:.3g} %.",
                name,
            )


def giving_away(study: Study, told: Collection[str]) -> Iterator[Finding]:
    """Yield RB024 for columns with values whose rows are all of one class, where that says much."""
    data = study.data
    m, r = len(data.codes), len(data.classes)
    masses = np.bincount(data.codes, minlength=r)
    found = [one for one in columns_of_few_values(data) if one[0] not in told]
    tests = sum(len(texts) for _, _, texts, _ in found)
    for name, _, texts, codes in found:
        counts = counts_by_class(data, codes)
        rows, label = counts.sum(axis=1), counts.argmax(axis=1)
        hits = counts.max(axis=1)
        shares = masses[label] / m
        chance = binom.sf(hits - 1, rows, shares) * tests
        pure = np.flatnonzero((hits >= PURE * rows) & (shares <= FREQUENT) & (chance < LEVEL))
        by_class = np.bincount(label[pure], hits[pure], minlength=r)
        if by_class.sum() < GIVEN_AWAY * m and (by_class < GIVEN_AWAY * masses).all():
            continue
        v = pure[rows[pure].argmax()]
        c = label[v]
        yield Finding(
            "RB024",
            f"Column {name!r} gives the answer away on {int(rows[pure].sum())} of {m} rows: of the "
            f"{int(rows[v])} rows in which it is {texts[v]}, {100 * hits[v] / rows[v]:.3g} % are "
            f"{data.texts[c]!r}, of all rows {100 * shares[v]:.3g} %.",
            name,
        )


def almost_no_errors(study: Study, leaks: list[Alone]) -> Iterator[Finding]:
    """Yield RB025 if a model makes almost no errors and no single column explains it."""
    wrong = study.base_error
    errors = {trial.candidate.name: study.risk(trial, "error") for trial in study.usable}
    name = min(errors, key=errors.__getitem__)
    few = wrong * len(study.held) / 100 < LEAST_WRONG
    if few or leaks or errors[name] > ALMOST_NONE * wrong:
        return
    message = (
        f"{name} is wrong on {errors[name]:.2g} % of the held-out rows, the most frequent class on "
        f"{wrong:.3g} %: a leak, a rule, or classes far apart."
    )
    pair = leaking_pair(study, LEAK_SHARE * wrong)
    if pair is not None:
        first, second, error = pair
        message += (
            f" Columns {first!r} and {second!r} are enough: a tree of these two is wrong on {error:.2g} %."
        )
    yield Finding("RB025", message, severity="warning" if pair is None else "error")


def leaking_pair(study: Study, most: float) -> tuple[str, str, float] | None:
    """Return the two columns whose tree makes the fewest errors, at most this many percent; None if none.

    They are looked for in the first part of the split, and judged by the held-out rows of all parts.
    """
    first, columns = study.parts[0], study.data.columns
    places = [place for place in first.encoder.encoded if place[1] != "is missing"]
    if not places[1:] or len(places) > MOST_PAIRED:
        return None
    errors = {pair: errors_of_pair(study, first, pair).mean() for pair in combinations(places, 2)}
    pair = min(errors, key=errors.__getitem__)
    if errors[pair] > most:
        return None
    error = float(np.concatenate([errors_of_pair(study, part, pair) for part in study.parts]).mean())
    return (columns[pair[0][0]].name, columns[pair[1][0]].name, error) if error <= most else None


def errors_of_pair(study: Study, part: Part, pair: Collection[tuple[int, str]]) -> Array:
    """Return the error of each held-out row of a part by a tree of two encoded columns.

    The tree also reads their difference and their sum. A column that this part does not read is constant.
    """
    codes, known = study.data.codes, part.encoder.encoded
    kept, sides = codes[part.kept][:PAIRED_ROWS], (part.Z_train[:PAIRED_ROWS], part.Z_test)
    cells = [
        [Z[:, known.index(place)] if place in known else np.zeros(len(Z)) for place in pair] for Z in sides
    ]
    with np.errstate(over="ignore"):
        train, test = (np.column_stack([a, b, a - b, a + b]) for a, b in cells)
    P = leaf_shares(*leaves_of(train, test, kept, TREES[-1]), kept, len(study.data.classes))
    return row_losses(P, codes[part.held])["error"]
