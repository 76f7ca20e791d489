"""Graphs of tables of columns and of pairs of columns, which correct a model."""

from __future__ import annotations

from typing import Any

import numpy as np

from riskbayes.arrays import Array
from riskbayes.models.cells import PairBins, TableCells
from riskbayes.models.correction import Correction
from riskbayes.onnx_export.columns import Cells
from riskbayes.onnx_export.graph import Tensor
from riskbayes.onnx_export.naive_bayes import interpolated
from riskbayes.onnx_export.scores import Scores


def corrected(scores: Scores, correction: Correction, cells: Cells) -> Scores:
    """Return the scores to a power, plus the tables of columns and of pairs."""
    own, table, n = correction.cells, correction.tables.T, len(correction.cells.numbers)
    power = correction.power
    found = scores.times(power, power * scores.constants + correction.log_prior)
    if own.knots is not None:
        found = interpolated(found, cells.of(own.numbers), own.knots, table[:, : own.first[n]])
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
    graph, sizes, r, q = cells.graph, own.bins.sizes, len(table), len(own.pairs)
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
    joint = graph.apply("Add", graph.apply("MatMul", bins, steps), starts[None, :])
    gone = graph.as_numbers(graph.apply("Greater", np.zeros((1, 1)), bins))
    gone = graph.apply("Greater", graph.apply("MatMul", gone, either), np.zeros((1, 1)))
    joint = graph.where(gone, np.full((1, 1), len(entries) - 1.0), joint)
    found = graph.apply("Gather", entries, graph.apply("Cast", joint, to="int64"), axis=0)
    found = graph.apply("Reshape", found, np.array([0, q * r]))
    return scores.plus(found, np.tile(np.eye(r), q), owners)


def bins_of(bins: PairBins, cells: Cells) -> Tensor:
    """Return the bin of each number, then the level of each category; -1 for a missing or unknown one."""
    graph, parts = cells.graph, []
    if len(bins.numbers):
        own, number = cells.of(bins.numbers), len(bins.numbers)
        times = np.array([len(edges) for edges in bins.edges])
        edges = np.concatenate(bins.edges)
        found = graph.apply("MatMul", own.observed(), np.zeros((number, number)))
        if len(edges):
            reached = graph.apply("GreaterOrEqual", own.repeated(times), edges[None, :])
            counts = np.repeat(np.eye(number), times, axis=0)
            found = graph.apply("MatMul", graph.as_numbers(reached), counts)
        parts.append(graph.where(own.is_missing(), np.full((1, 1), -1.0), found))
    if len(bins.codes):
        levels = [np.append(own, -1)[:, None].astype(float) for own in bins.levels]
        parts.append(cells.of(bins.codes).look_up(levels))
    return graph.concat(parts)
