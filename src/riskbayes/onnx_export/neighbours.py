"""Graphs of neighbours: distances by one product, and the nearest of the training rows by TopK."""

from __future__ import annotations

import numpy as np

from riskbayes.models.neighbours import (
    FAR,
    FARTHEST,
    SAME,
    Metric,
    NeighbourParameters,
    NeighboursModel,
    References,
)
from riskbayes.onnx_export.columns import Cells
from riskbayes.onnx_export.graph import Graph, Tensor
from riskbayes.onnx_export.scores import Scores, translates


@translates(NeighboursModel)
def neighbours(model: NeighboursModel, theta: NeighbourParameters, cells: Cells) -> Scores:
    """log q_y(x) - log of the class's share of the training rows + log p(y)."""
    graph, frame = cells.graph, cells.frame
    k = min(model.n_neighbors, len(frame.points))
    index, distance = nearest(graph, frame, places(frame.metric, cells), k)
    unit = graph.columns(distance, [min(int(frame.rank), k) - 1])
    kernel = kernel_of(graph, distance, unit, float(frame.width))
    some = graph.apply("Greater", graph.sum(cells.observed(), 1), np.zeros((1, 1)))
    kernel = graph.where(some, kernel, np.zeros((1, 1)))  # a row without a cell says nothing
    weights = graph.apply("Gather", theta.weights, index, axis=0)
    M = graph.apply("Mul", graph.apply("Unsqueeze", kernel, np.array([2])), weights)
    M = graph.apply("ReduceSum", M, np.array([1]), keepdims=0)
    shares = np.where(theta.shares > 0, theta.shares, 1.0)[None, :]
    lift = graph.apply("Div", graph.apply("Add", M, shares), shares)
    total = graph.apply("Add", graph.sum(M, 1), np.ones((1, 1)))
    logs = graph.apply("Log", graph.apply("Div", lift, total))
    return Scores(theta.log_prior).plus(logs, np.eye(len(theta.log_prior)))


def places(metric: Metric, cells: Cells) -> Tensor:
    """Return the rows as points of the space of distances, of shape (m, d)."""
    graph, parts = cells.graph, []
    numbers = [j for j in range(len(cells.own)) if j not in metric.tables]
    if numbers:
        found = graph.divide_by_powers(cells.of(numbers).numbers(), metric.exponents)
        for sign in (1.0, -1.0):
            far = np.full((1, 1), sign * FAR)
            pair = (found, far) if sign > 0 else (far, found)
            found = graph.where(graph.apply("Greater", *pair), far, found)
        parts.append(found)
    if metric.tables:
        parts.append(cells.of(list(metric.tables)).look_up(list(metric.tables.values())))
    away = graph.apply("Sub", graph.concat(parts), metric.centre[None, :])
    away = graph.where(graph.apply("IsNaN", away), np.zeros((1, 1)), away)
    return graph.apply("MatMul", away, metric.matrix)


def nearest(graph: Graph, frame: References, points: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the indices and distances of the k nearest references, nearest first."""
    squares = graph.sum(graph.apply("Mul", points, points), 1)
    cross = graph.apply("MatMul", points, -2.0 * frame.points.T)
    found = graph.apply("Add", cross, (frame.points**2).sum(axis=1)[None, :])
    found = graph.apply("Add", found, squares)
    index = graph.apply("TopK", found, np.array([k]), axis=1, largest=0, sorted=1)
    distance = graph.apply("Relu", graph.apply("GatherElements", found, index, axis=1))
    distance = graph.apply("Sqrt", distance)
    same = graph.apply("Greater", np.full((1, 1), SAME * np.sqrt(frame.points.shape[1])), distance)
    return index, graph.where(same, np.zeros((1, 1)), distance)


def kernel_of(graph: Graph, distance: Tensor, unit: Tensor, width: float) -> Tensor:
    """Return K = 1 / (u^2 + width^2), with u the distance in units; zero beyond `FARTHEST`."""
    zero, one = np.zeros((1, 1)), np.ones((1, 1))
    apart = graph.apply("Greater", unit, zero)
    # Where the unit is zero, so are the distances that count: others are infinitely far.
    u = graph.apply("Div", distance, graph.where(apart, unit, one))
    positive = graph.where(graph.apply("Greater", distance, zero), np.full((1, 1), 2 * FARTHEST), zero)
    u = graph.where(apart, u, positive)
    found = graph.apply("Add", graph.apply("Mul", u, u), np.full((1, 1), width * width))
    found = graph.apply("Div", one, found)
    return graph.where(graph.apply("Greater", u, np.full((1, 1), FARTHEST)), zero, found)
