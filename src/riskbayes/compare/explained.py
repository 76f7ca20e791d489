"""What drives the best model: contributions by column and by cell, and the parameters that RC moved most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from riskbayes.arrays import Array
from riskbayes.compare.alone import Alone
from riskbayes.compare.report import CellContribution, ColumnContribution, MovedParameter, RowExample
from riskbayes.compare.study import Study, Trial
from riskbayes.tables import is_missing, plain

MOST_ROWS, MOST_CELLS, MOST_WRONG, MOST_MOVED, MOST_CLASSES = 1000, 8, 5, 12, 3
"""Rows that contributions are averaged over; cells of a row, wrong rows, parameters and classes shown."""

READABLE = "MixedNB, RC"
"""The model whose parameters are shown: each belongs to one column and one class."""


@dataclass(frozen=True)
class Explained:
    """All that the report says about the inside of models."""

    contributions: tuple[ColumnContribution, ...]
    surest_wrong: tuple[RowExample, ...]
    examples: tuple[RowExample, ...]
    moved: tuple[MovedParameter, ...]
    explained: str
    """Name of the model that was explained; empty if there is none."""
    moved_in: str
    """Name of the model whose parameters are shown; empty if none moved."""


def explain_study(study: Study, by_column: list[Alone]) -> Explained:
    """Explain the best model; where it is no sum over columns, the best one that is."""
    trial = explainable(study)
    errors = {one.column: one.error for one in by_column}
    moved = moved_parameters(study)
    return Explained(
        column_contributions(study, trial, errors),
        examples_of(study, trial, surest_wrong(study)),
        examples_of(study, trial, typical(study)),
        moved,
        "" if trial is None else trial.candidate.name,
        READABLE if moved else "",
    )


def explainable(study: Study) -> Trial | None:
    """Return the best model of riskbayes that can explain rows; None if there is none."""
    best = study.best
    others = [t for t in study.usable if t.candidate.kind == "riskbayes" and t is not best]
    for trial in (best, *others):
        try:
            contributions(study, trial, np.arange(1))
        except (NotImplementedError, ValueError):
            continue
        return trial
    return None


def contributions(study: Study, trial: Trial, rows: Array) -> Array:
    """Return what each column adds to the log-odds of the predicted class against the next one.

    `rows` are places among the held-out rows; each is explained by the model that did not see it.
    """
    found = np.zeros((len(rows), len(study.data.columns)))
    first = 0
    for part, model in zip(study.parts, trial.models, strict=True):
        own = np.flatnonzero((rows >= first) & (rows < first + len(part.held)))
        if len(own):
            explanation = model.explain(study.data.taken(part.held[rows[own] - first]))
            joint = explanation.baseline + explanation.values.sum(axis=1)
            order = np.argsort(joint, axis=1)
            i, values = np.arange(len(own)), explanation.values
            found[own] = values[i, :, order[:, -1]] - values[i, :, order[:, -2]]
        first += len(part.held)
    return found


def column_contributions(
    study: Study, trial: Trial | None, errors: dict[str, float]
) -> tuple[ColumnContribution, ...]:
    """Return the mean absolute contribution of every column that is read, the largest first."""
    if trial is None:
        return ()
    m = len(study.held)
    rows = np.unique(np.linspace(0, m - 1, min(m, MOST_ROWS)).astype(int))
    size = np.abs(contributions(study, trial, rows)).mean(axis=0)
    found = [
        ColumnContribution(column.name, float(value), errors.get(column.name))
        for column, value in zip(study.data.columns, size, strict=True)
        if column.kind != "left out" or value > 0
    ]
    return tuple(sorted(found, key=lambda one: -one.contribution))


def surest_wrong(study: Study) -> Array:
    """Return the places of the held-out rows that the best model is surest and wrong about."""
    P, held = study.best.P, study.held
    wrong = np.flatnonzero(P.argmax(axis=1) != held)
    return wrong[np.argsort(-P[wrong].max(axis=1), kind="stable")[:MOST_WRONG]]


def typical(study: Study) -> Array:
    """Return rows to show: of the most frequent answers one each, of median confidence, and a close call."""
    P = study.best.P
    answer, top = P.argmax(axis=1), np.sort(P, axis=1)
    found = []
    for k in np.argsort(-np.bincount(answer, minlength=P.shape[1]), kind="stable")[:MOST_CLASSES]:
        own = np.flatnonzero(answer == k)
        if len(own):
            found.append(own[np.argsort(P[own, k], kind="stable")[len(own) // 2]])
    found.append(np.argmin(top[:, -1] - top[:, -2]))
    return np.array(list(dict.fromkeys(int(i) for i in found)))


def examples_of(study: Study, trial: Trial | None, rows: Array) -> tuple[RowExample, ...]:
    """Return held-out rows with the best model's answers and the largest contributions of their cells."""
    data, P = study.data, study.best.P
    values = None if trial is None or not len(rows) else contributions(study, trial, rows)
    found = []
    for i, row in enumerate(rows.tolist()):
        at = int(study.split.held[row])
        cells: list[CellContribution] = []
        if values is not None:
            line = cells_of_row(data.taken(np.array([at])))
            order = np.argsort(-np.abs(values[i]), kind="stable")[:MOST_CELLS]
            cells = [
                CellContribution(data.columns[j].name, line[j], float(values[i, j]))
                for j in order.tolist()
                if values[i, j]
            ]
        k = int(P[row].argmax())
        found.append(
            RowExample(
                int(data.rows[at]) + 1,
                *(data.texts[data.codes[at]], data.texts[k]),
                *(float(P[row, k]), tuple(cells)),
            )
        )
    return tuple(found)


def cells_of_row(table: Any) -> list[str]:
    """Return the cells of a table with one row as text; a missing one is empty."""
    values = [column.to_list()[0] for column in nw.from_native(table, eager_only=True).iter_columns()]
    return ["" if is_missing(value) else str(plain(value)) for value in values]


def moved_parameters(study: Study) -> tuple[MovedParameter, ...]:
    """Return the parameters of naive Bayes that calibration moved most, of the first part of the split."""
    trial = next((t for t in study.usable if t.candidate.name == READABLE), None)
    if trial is None:
        return ()
    table = trial.models[0]._parameters_table()
    texts, found = study.data.texts, list[MovedParameter]()
    names = ("class", "column", "parameter", "closed_form", "calibrated", "change")
    for k, column, name, before, after, change in zip(*(table[n] for n in names), strict=True):
        if len(found) == MOST_MOVED or not change:
            break
        if np.isfinite(before) and np.isfinite(after):
            words = str(name).split(": ")[-1]
            found.append(MovedParameter(f"{column}: {words}", float(before), float(after), texts[int(k)]))
    return tuple(found)
