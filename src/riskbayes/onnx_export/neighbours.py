"""Graphs of neighbours: distances by one product, and the nearest of the training rows by TopK."""

from __future__ import annotations

import numpy as np

from riskbayes.models.neighbour_metric import FAR, Metric
from riskbayes.models.neighbours import FARTHEST, SAME, NeighbourParameters, NeighboursModel, References
from riskbayes.onnx_export.columns import Cells
from riskbayes.onnx_export.graph import Tensor
from riskbayes.onnx_export.scores import Scores, translates


@translates(NeighboursModel)
def neighbours(model: NeighboursModel, theta: NeighbourParameters, cells: Cells) -> Scores:
    """log q_y(x) - log of the class's share of the training rows + log p(y)."""
    frame = cells.frame
    k = min(model.n_neighbors, len(frame.points))
    index, distance = nearest(frame, places(frame.metric, cells), k)
    kernel = kernel_of(distance, distance.columns([min(int(frame.rank), k) - 1]), float(frame.width))
    kernel = (cells.observed().sum(1) > 0.0).where(kernel, 0.0)  # a row without a cell says nothing
    M = kernel.expand_dims(2) * cells.graph.constant(theta.weights).take(index, axis=0)
    M = M.sum(1, keepdims=False)
    shares = np.where(theta.shares > 0, theta.shares, 1.0)
    logs = ((M + shares) / shares / (M.sum(1) + 1.0)).log()
    return Scores(theta.log_prior).plus(logs, np.eye(len(theta.log_prior)))


def places(metric: Metric, cells: Cells) -> Tensor:
    """Return the rows as points of the space of distances, of shape (m, d)."""
    graph, parts = cells.graph, []
    numbers = [j for j in range(len(cells.own)) if j not in metric.tables]
    if numbers:
        found = graph.divide_by_powers(cells.of(numbers).numbers(), metric.exponents)
        found = (found > FAR).where(FAR, found)
        parts.append((found < -FAR).where(-FAR, found))
    if metric.tables:
        parts.append(cells.of(list(metric.tables)).look_up(list(metric.tables.values())))
    away = graph.concat(parts) - metric.centre
    return away.isnan().where(0.0, away) @ metric.matrix


def nearest(frame: References, points: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the indices and distances of the k nearest references, nearest first."""
    graph, squares = points.graph, (points * points).sum(1)
    found = points @ (-2.0 * frame.points.T) + (frame.points**2).sum(axis=1) + squares
    index = graph.apply("TopK", found, np.array([k]), axis=1, largest=0, sorted=1)
    distance = graph.apply("GatherElements", found, index, axis=1).relu().sqrt()
    same = distance < SAME * np.sqrt(frame.points.shape[1])
    return index, same.where(0.0, distance)


def kernel_of(distance: Tensor, unit: Tensor, width: float) -> Tensor:
    """Return K = 1 / (u^2 + width^2), with u the distance in units; zero beyond `FARTHEST`."""
    apart = unit > 0.0
    # Where the unit is zero, so are the distances that count: others are infinitely far.
    beyond = (distance > 0.0).where(2 * FARTHEST, 0.0)
    u = apart.where(distance / apart.where(unit, 1.0), beyond)
    return (u > FARTHEST).where(0.0, 1.0 / (u * u + width * width))
