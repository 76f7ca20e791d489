"""Graphs of tables of columns and of pairs of columns, which correct a model."""

from __future__ import annotations

from typing import Any

import numpy as np

from riskbayes.arrays import Array
from riskbayes.models.cells import PairBins, TableCells
from riskbayes.models.correction import Correction
from riskbayes.onnx_export.columns import Cells
from riskbayes.onnx_export.graph import Tensor
from riskbayes.onnx_export.naive_bayes import interpolate
from riskbayes.onnx_export.scores import Scores


def correct(scores: Scores, correction: Correction, cells: Cells) -> Scores:
    """Return the scores to a power, plus the tables of columns and of pairs."""
    own, table, n = correction.cells, correction.tables.T, len(correction.cells.numbers)
    power = correction.power
    found = scores.times(power, power * scores.constants + correction.log_prior)
    if own.knots is not None:
        found = interpolate(found, cells.of(own.numbers), own.knots, table[:, : own.first[n]])
    if len(own.codes):
        coded = cells.of(own.codes)
        indicators, index = coded.indicators(own.sizes)
        if indicators is not None:
            column = np.repeat(np.arange(len(own.sizes)), own.sizes)[index]
            found = found.plus(indicators, table[:, own.first[n] + index], coded.owners(column))
    return with_pairs(found, own, table, cells) if len(own.pairs) else found


def with_pairs(scores: Scores, own: TableCells, table: Array, cells: Cells) -> Scores:
    """Return the scores plus the entry of each pair of bins; one that was not observed has zero."""
    assert own.bins is not None
    sizes, r, q = own.bins.sizes, len(table), len(own.pairs)
    steps, either = np.zeros((2, len(sizes), q))
    parts, owners = list[Array](), list[Any]()
    starts = np.zeros(q)
    for c, ((a, b), observed, start) in enumerate(
        zip(own.pairs.tolist(), own.observed, own.first[own.n_columns :], strict=False)
    ):
        part = np.zeros((sizes[a] * sizes[b], r))
        part[observed] = table[:, start : start + len(observed)].T
        starts[c], steps[a, c], steps[b, c] = sum(map(len, parts)), sizes[b], 1.0
        either[[a, b], c] = 1.0
        parts.append(part)
        pair = cells.owners(own.bins.columns[[a, b]])
        owners += [tuple(pair)] * r
    entries = np.concatenate([*parts, np.zeros((1, r))])  # the last one is for a missing cell
    bins = bins_of(own.bins, cells)
    gone = (bins < 0.0).astype("float64") @ either > 0.0
    joint = gone.where(len(entries) - 1.0, bins @ steps + starts)
    found = cells.graph.constant(entries).take(joint.astype("int64"), axis=0)
    return scores.plus(found.reshape(q * r), np.tile(np.eye(r), q), owners)


def bins_of(bins: PairBins, cells: Cells) -> Tensor:
    """Return the bin of each number, then the level of each category; -1 for a missing or unknown one."""
    parts = []
    if len(bins.numbers):
        own, number = cells.of(bins.numbers), len(bins.numbers)
        times = np.array([len(edges) for edges in bins.edges])
        edges = np.concatenate(bins.edges)
        found: Any = 0.0
        if len(edges):
            reached = (own.repeated(times) >= edges).astype("float64")
            found = reached @ np.repeat(np.eye(number), times, axis=0)
        parts.append(own.is_missing().where(-1.0, found))
    if len(bins.codes):
        levels = [np.append(own, -1)[:, None].astype(float) for own in bins.levels]
        parts.append(cells.of(bins.codes).look_up(levels))
    return cells.graph.concat(parts)
