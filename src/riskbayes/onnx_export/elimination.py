"""Gaussians of which cells are missing, in plain operators: a step of elimination for each column."""

from __future__ import annotations

from typing import Any

import numpy as np

from riskbayes.arrays import Array
from riskbayes.onnx_export.columns import Cells
from riskbayes.onnx_export.graph import Graph, Tensor


def carries_missing(theta: Any, cells: Cells) -> bool:
    """True if missing cells are carried: by default if the rows of the fit had some, for it takes n steps."""
    return theta.frame.observed is not None if cells.missing is None else cells.missing


def observed_distances(
    graph: Graph, centred: Tensor, means: Array, whiteners: Array
) -> tuple[Tensor, Tensor]:
    """Return |W^T z|^2 at its least over the missing part of z = x - mu, and log|P_uu|, each of shape (m, r).

    These are the Mahalanobis distance of the observed part, and what its log determinant differs by: see
    :mod:`riskbayes.models.conditional`. With one W for all classes there is one determinant, of shape (m, 1).
    """
    missing, t = graph.apply("IsNaN", centred), len(whiteners)
    z = graph.apply("Sub", graph.apply("Unsqueeze", centred, np.array([1])), means[None])
    z = graph.where(graph.apply("Unsqueeze", missing, np.array([1])), np.zeros((1, 1, 1)), z)
    _, left, log_det = eliminated(graph, missing, z, len(means), whiteners)
    squares = graph.sum(graph.apply("Mul", left, left), 3)
    flat = [
        graph.apply("ReduceSum", x, np.array([1 if t == 1 else 2, 3]), keepdims=0) for x in (squares, log_det)
    ]
    return flat[0], flat[1]


def eliminated(
    graph: Graph, missing: Tensor, z: Tensor, r: int, whiteners: Array
) -> tuple[Tensor, Tensor, Tensor]:
    """Return W and W^T z without what missing columns could explain of them, and log|P_uu|.

    The rows of W that belong to missing columns are made orthogonal one after the other (modified
    Gram-Schmidt), and the other rows and W^T z to all of them. z has the shape (m, r, n), with zeros where a
    cell is missing; the results (m, t, n, n), (m, t, r / t, n) and (m, t, 1, 1).
    """
    t, n, _ = whiteners.shape
    white = graph.apply("MatMul", graph.apply("Unsqueeze", z, np.array([1 if t == 1 else 2])), whiteners)
    # One table (n + e, n) for each W: its rows, then e rows W^T z.
    e = r // t
    lower = np.concatenate([np.zeros((n, e)), np.eye(e)])
    upper = np.concatenate([whiteners, np.zeros((t, e, n))], axis=1)
    rows = graph.apply("Add", graph.apply("MatMul", lower, white), upper)
    log_det: Tensor | None = None
    for j in range(n):
        gone = graph.apply("Unsqueeze", graph.columns(missing, [j]), np.array([2, 3]))
        own = graph.apply("Gather", rows, np.array([j]), axis=2)
        dots = graph.sum(graph.apply("Mul", rows, own), 3)
        norm = graph.apply("Gather", dots, np.array([j]), axis=2)
        share = graph.where(gone, graph.apply("Div", dots, norm), np.zeros((1, 1, 1, 1)))
        rows = graph.apply("Sub", rows, graph.apply("Mul", share, own))
        added = graph.where(gone, graph.apply("Log", norm), np.zeros((1, 1, 1, 1)))
        log_det = added if log_det is None else graph.apply("Add", log_det, added)
    assert log_det is not None
    of_W = graph.apply("Gather", rows, np.arange(n), axis=2)
    return of_W, graph.apply("Gather", rows, np.arange(n, n + e), axis=2), log_det
