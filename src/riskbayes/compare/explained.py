"""What drives a model: contributions by column and by cell, and the parameters that RC moved most.

The model is the best one where that can be explained. Where it cannot, it is the best of the others, whose
own answers and probabilities then stand beside its contributions: they are no reasons of the best model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import narwhals as nw
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
from riskbayes.tables import is_missing, plain

MOST_ROWS, MOST_CELLS, MOST_WRONG, MOST_MOVED, MOST_CLASSES = 1000, 8, 5, 12, 3
"""Rows that contributions are averaged over; cells of a row, wrong rows, parameters and classes shown."""

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
    agreement: float | None
    """Share of the held-out rows that it answers as the best model does."""
    moved_in: str
    """Name of the model whose parameters are shown; empty if none moved."""


def explain_study(study: Study, found: Sequence[Contender], by_column: Sequence[Alone]) -> Explained:
    """Explain the best model; where it is no sum over columns, the best one that is.

    `found` are the models, the best first.
    """
    ranked = [study.trial(c.name) for c in found if c.kind == "riskbayes" and not c.failed]
    m, best = len(study.held), study.best
    rows = np.unique(np.linspace(0, m - 1, min(m, MOST_ROWS)).astype(int))
    wrong, moved, moved_in = surest_wrong(study), *moved_parameters(study, ranked)
    for trial in ranked:
        try:
            odds, read = log_odds(study, trial, rows)
        except (NotImplementedError, ValueError):
            continue
        alike = float((trial.P.argmax(axis=1) == best.P.argmax(axis=1)).mean())
        return Explained(
            column_contributions(study, odds, read, {one.column: one.error for one in by_column}),
            examples_of(study, best, wrong, trial is best),
            examples_of(study, trial, typical(trial.P), True),
            *(moved, trial.candidate.name, alike, moved_in),
        )
    return Explained((), examples_of(study, best, wrong, False), (), moved, "", None, moved_in)


def log_odds(study: Study, trial: Trial, rows: Array) -> tuple[LogOdds, Array]:
    """Return the log-odds of rows as `Explanation.log_odds` has them, and a mask of the columns read.

    `rows` are places among the held-out rows; each is explained by the model that did not see it. Classes are
    codes.
    """
    m, n = len(rows), len(study.data.columns)
    found = LogOdds(np.zeros((m, n)), *np.zeros((2, m)), *np.zeros((2, m), dtype=int))
    read, first = np.zeros(n, dtype=bool), 0
    for part, model in zip(study.parts, trial.models, strict=True):
        own = np.flatnonzero((rows >= first) & (rows < first + len(part.held)))
        if len(own):
            explanation = model.explain(study.data.taken(part.held[rows[own] - first]))
            read |= explanation.read
            for whole, some in zip(found, explanation.log_odds(), strict=True):
                whole[own] = some
        first += len(part.held)
    return found, read


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
    odds, read = log_odds(study, trial, rows) if explain and len(rows) else (None, None)
    for i, row in enumerate(rows.tolist()):
        at, k = int(study.split.held[row]), int(P[row].argmax())
        cells: tuple[CellContribution, ...] = ()
        sums = None
        if odds is not None and read is not None:
            values, line = odds.values[i], cells_of_row(data, at)
            order = np.argsort(-np.abs(values), kind="stable")
            order = order[read[order]]
            shown, rest = order[:MOST_CELLS].tolist(), order[MOST_CELLS:]
            cells = tuple(CellContribution(data.columns[j].name, line[j], float(values[j])) for j in shown)
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
    table = nw.from_native(data.taken(np.array([row])), eager_only=True)
    values = [column.to_list()[0] for column in table.iter_columns()]
    shown = ["" if is_missing(value) else str(plain(value)) for value in values]
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
