"""What drives the best model: contributions by column and by cell, and the parameters that RC moved most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from riskbayes.arrays import Array
from riskbayes.compare.alone import Alone
from riskbayes.compare.data import Data
from riskbayes.compare.report import (
    CellContribution,
    ColumnContribution,
    Contender,
    MovedParameter,
    RowExample,
    RowLogOdds,
)
from riskbayes.compare.study import Study, Trial
from riskbayes.estimators.base import BaseGenerativeClassifier
from riskbayes.estimators.explanation import LogOdds
from riskbayes.estimators.joint import parameters_table
from riskbayes.estimators.shapley import n_predictions
from riskbayes.tables import is_missing, plain

MOST_ROWS, MOST_CELLS, MOST_WRONG, MOST_MOVED, MOST_CLASSES = 1000, 8, 5, 12, 3
"""Rows that contributions are averaged over; cells of a row, wrong rows, parameters and classes shown."""

MOST_PREDICTIONS, LEAST_EXPLAINED, N_ORDERS = 20000, 20, 8
"""Shapley values of rows are averaged over by so many predictions at most, but so many rows at least; and the
orders that are drawn for each row there: the rows average what these differ in."""

LEAST_ROWS = 30
"""Training rows of a class that must tell of a parameter that is shown: what fewer tell of moves far."""


@dataclass(frozen=True)
class Explained:
    """All that the report says about the inside of models."""

    contributions: tuple[ColumnContribution, ...]
    surest_wrong: tuple[RowExample, ...]
    examples: tuple[RowExample, ...]
    moved: tuple[MovedParameter, ...]
    explained: str
    """Name of the model that was explained; empty if there is none."""
    method: str
    """How its contributions were found."""
    moved_in: str
    """Name of the model whose parameters are shown; empty if none moved."""


def explain_study(study: Study, found: Sequence[Contender], by_column: Sequence[Alone]) -> Explained:
    """Explain the best model. `found` are all models, the best first."""
    ranked = [study.trial(c.name) for c in found if c.kind == "riskbayes" and not c.failed]
    best, wrong = study.best, surest_wrong(study)
    moved, moved_in = moved_parameters(study, ranked)
    try:
        rows = rows_to_average(study)
        odds, read, method = log_odds(study, best, rows, N_ORDERS)
    except ValueError:  # rows too far from the training rows for finite scores
        examples = examples_of(study, best, wrong, False)
        return Explained((), examples, (), moved, "", "", moved_in)
    return Explained(
        column_contributions(study, odds, read, {one.column: one.error for one in by_column}),
        examples_of(study, best, wrong, True),
        examples_of(study, best, typical(best.P), True),
        *(moved, best.candidate.name, method, moved_in),
    )


def rows_to_average(study: Study) -> Array:
    """Return the places of held-out rows to average contributions over, fewer where a row takes long."""
    m, model = len(study.held), study.best.models[0]
    most = MOST_ROWS
    if model._contributions(model._encode_new(study.parts[0].test[:1], "explain")) is None:
        each = n_predictions(len(study.data.columns), N_ORDERS)
        most = min(most, max(LEAST_EXPLAINED, MOST_PREDICTIONS // each))
    return np.unique(np.linspace(0, m - 1, min(m, most)).astype(int))


def log_odds(study: Study, trial: Trial, rows: Array, n_orders: int = 32) -> tuple[LogOdds, Array, str]:
    """Return the log-odds of rows as `Explanation.log_odds` has them, a mask of the columns read, and how.

    `rows` are places among the held-out rows; each is explained by the model that did not see it. Classes are
    codes. What pairs of columns contribute is divided among the two.
    """
    m, n = len(rows), len(study.data.columns)
    zeros = np.zeros((m, n))
    sums, codes = np.zeros((2, m)), np.zeros((2, m), dtype=int)
    found = LogOdds(zeros, sums[0], sums[1], codes[0], codes[1], zeros.copy())
    read, first, method = np.zeros(n, dtype=bool), 0, ""
    for part, model in zip(study.parts, trial.models, strict=True):
        own = np.flatnonzero((rows >= first) & (rows < first + len(part.held)))
        if len(own):
            table = study.data.take(part.held[rows[own] - first])
            explanation = model.explain(table, n_orders=n_orders).by_column()
            read, method = read | explanation.read, explanation.method
            for whole, some in zip(found, explanation.log_odds(), strict=True):
                whole[own] = some
        first += len(part.held)
    return found, read, method


def column_contributions(
    study: Study, odds: LogOdds, read: Array, errors: dict[str, float]
) -> tuple[ColumnContribution, ...]:
    """Return the mean absolute contribution of every column, the largest first; last those not read.

    Columns that were left out are not among them.
    """
    sizes = np.abs(odds.values).mean(axis=0).tolist()
    found = [
        ColumnContribution(column.name, size if own else None, errors.get(column.name))
        for column, size, own in zip(study.data.columns, sizes, read.tolist(), strict=True)
        if own or column.kind != "left out"
    ]
    return tuple(sorted(found, key=lambda one: (one.contribution is None, -(one.contribution or 0.0))))


def surest_wrong(study: Study) -> Array:
    """Return the places of the held-out rows that the best model is surest and wrong about."""
    P, held = study.best.P, study.held
    wrong = np.flatnonzero(P.argmax(axis=1) != held)
    return wrong[np.argsort(-P[wrong].max(axis=1), kind="stable")[:MOST_WRONG]]


def typical(P: Array) -> Array:
    """Return rows to show: of the most frequent answers one each, of median confidence, and a close call."""
    answer, top = P.argmax(axis=1), np.sort(P, axis=1)
    found = []
    for k in np.argsort(-np.bincount(answer, minlength=P.shape[1]), kind="stable")[:MOST_CLASSES]:
        own = np.flatnonzero(answer == k)
        if len(own):
            found.append(own[np.argsort(P[own, k], kind="stable")[len(own) // 2]])
    found.append(np.argmin(top[:, -1] - top[:, -2]))
    return np.array(list(dict.fromkeys(int(i) for i in found)))


def examples_of(study: Study, trial: Trial, rows: Array, explain: bool) -> tuple[RowExample, ...]:
    """Return held-out rows with a model's answers and, to `explain` them, what its cells contributed."""
    data, P, found = study.data, trial.P, []
    odds, read, _ = log_odds(study, trial, rows) if explain and len(rows) else (None, None, "")
    for i, row in enumerate(rows.tolist()):
        at, k = int(study.split.held[row]), int(P[row].argmax())
        cells: tuple[CellContribution, ...] = ()
        sums = None
        if odds is not None and read is not None:
            values, line = odds.values[i], cells_of_row(data, at)
            order = np.argsort(-np.abs(values), kind="stable")
            order = order[read[order]]
            shown, rest = order[:MOST_CELLS].tolist(), order[MOST_CELLS:]
            cells = tuple(
                CellContribution(data.columns[j].name, line[j], float(values[j]), float(odds.errors[i, j]))
                for j in shown
            )
            yes, no = int(odds.positive[i]), int(odds.negative[i])
            sums = RowLogOdds(
                *(data.texts[yes], float(P[row, yes]), data.texts[no], float(P[row, no])),
                *(float(odds.baseline[i]), len(rest), float(values[rest].sum()), float(odds.total[i])),
            )
        found.append(
            RowExample(
                *(int(data.rows[at]), data.texts[data.codes[at]], data.texts[k], float(P[row, k])),
                *(cells, sums),
            )
        )
    return tuple(found)


def cells_of_row(data: Data, row: int) -> list[str]:
    """Return the cells of a row as text; a missing one is empty.

    Of a column that was left out, models read at most whether the cell is missing.
    """
    shown = ("" if is_missing(value) else str(plain(value)) for value in data.cells(row))
    pairs = zip(data.columns, shown, strict=True)
    return ["not missing" if text and column.kind == "left out" else text for column, text in pairs]


def moved_parameters(study: Study, ranked: Sequence[Trial]) -> tuple[tuple[MovedParameter, ...], str]:
    """Return the parameters that calibration moved most, in the first part of the split, and their model.

    It is the best model that was trained by RC and lists its parameters. Those that few training rows tell
    of are passed over: rare categories would fill the list.
    """
    texts, found = study.data.texts, list[MovedParameter]()
    for trial in ranked:
        model = trial.models[0]
        if trial.candidate.learner != "RC" or not isinstance(model, BaseGenerativeClassifier):
            continue
        table = parameters_table(model)
        names = ("class", "column", "parameter", "closed_form", "calibrated", "change", "rows")
        for k, column, name, before, after, change, rows in zip(*(table[n] for n in names), strict=True):
            if len(found) == MOST_MOVED or not change:
                break
            if rows >= LEAST_ROWS and np.isfinite(before) and np.isfinite(after):
                words = str(name).split(": ")[-1]
                found.append(MovedParameter(f"{column}: {words}", float(before), float(after), texts[int(k)]))
        if found:
            return tuple(found), trial.candidate.name
    return (), ""
