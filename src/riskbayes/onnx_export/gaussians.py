"""Graphs of LDA, QDA and of products of experts."""

from __future__ import annotations

from typing import Any

import numpy as np

from riskbayes.arrays import Array
from riskbayes.models.lda import LDAModel, LDAParameters
from riskbayes.models.product import ProductModel, ProductParameters, possible
from riskbayes.models.qda import QDAModel, QDAParameters
from riskbayes.onnx_export.columns import Cells
from riskbayes.onnx_export.graph import Graph, Tensor
from riskbayes.onnx_export.scores import Scores, scores_of, translates


@translates(LDAModel)
def linear(model: LDAModel, theta: LDAParameters, cells: Cells) -> Scores:
    """x^T Sigma^-1 mu - mu^T Sigma^-1 mu / 2 + log p(y).

    If cells may be missing, log p(y) - |W^T (x - mu)|^2 / 2 of the observed part, where W W^T = Sigma^-1.
    """
    centred = cells.graph.apply("Sub", cells.numbers(), theta.frame.origin[None, :])
    if not carries_missing(theta, cells):
        B, c = theta.form
        return Scores(c).plus(centred, B.T)
    r = len(theta.means)
    distances, _ = observed_distances(cells.graph, centred, theta.means, theta.whitener[None])
    return Scores(theta.log_prior).plus(
        distances, -0.5 * np.eye(r)
    )  # the determinants are those of all classes


@translates(QDAModel)
def quadratic(model: QDAModel, theta: QDAParameters, cells: Cells) -> Scores:
    """log p(y) - log|Sigma| / 2 - |W^T (x - mu)|^2 / 2, where W W^T = Sigma^-1."""
    graph, (r, n) = cells.graph, theta.means.shape
    centred = graph.apply("Sub", cells.numbers(), theta.frame.origin[None, :])
    scores = Scores(theta.log_prior - theta.half_log_det)
    if not carries_missing(theta, cells):
        whitened = graph.apply("MatMul", centred, theta.whiteners.transpose(1, 0, 2).reshape(n, r * n))
        shift = (theta.means[:, None, :] @ theta.whiteners).reshape(1, r * n)
        whitened = graph.apply("Sub", whitened, shift)
        return scores.plus(graph.apply("Mul", whitened, whitened), -0.5 * np.repeat(np.eye(r), n, axis=1))
    distances, log_dets = observed_distances(graph, centred, theta.means, theta.whiteners)
    return scores.plus(distances, -0.5 * np.eye(r)).plus(log_dets, -0.5 * np.eye(r))


@translates(ProductModel)
def product(model: ProductModel, theta: ProductParameters, cells: Cells) -> Scores:
    """log p(y) + sum_e weight_e log p_e(x | y)."""
    found = Scores(theta.log_prior)
    for i, (expert, weight, own) in enumerate(zip(model.experts, model.weights, theta.experts, strict=True)):
        part = scores_of(expert, own, cells.of(None if model.columns is None else model.columns[i]))
        constants = found.constants + weight * (part.constants - possible(expert.baseline(own)))
        weights = tuple(weight * table for table in part.weights)
        found = Scores(constants, found.features + part.features, found.weights + weights)
    return found


def carries_missing(theta: Any, cells: Cells) -> bool:
    """True if missing cells are carried: by default if the rows of the fit had some, for it takes n steps."""
    return theta.frame.observed is not None if cells.missing is None else cells.missing


def observed_distances(
    graph: Graph, centred: Tensor, means: Array, whiteners: Array
) -> tuple[Tensor, Tensor]:
    """Return |W^T z|^2 at its least over the missing part of z = x - mu, and log|P_uu|, each of shape (m, r).

    These are the Mahalanobis distance of the observed part, and what its log determinant differs by: see
    :mod:`riskbayes.models.conditional`. The rows of W that belong to missing columns are made orthogonal one
    after the other (modified Gram-Schmidt), and W^T z to all of them. With one W for all classes there is one
    determinant, of shape (m, 1).
    """
    (r, n), t = means.shape, len(whiteners)
    e = r // t  # rows W^T z beside each W
    missing = graph.apply("IsNaN", centred)
    z = graph.apply("Sub", graph.apply("Unsqueeze", centred, np.array([1])), means[None])
    z = graph.where(graph.apply("Unsqueeze", missing, np.array([1])), np.zeros((1, 1, 1)), z)
    white = graph.apply("MatMul", graph.apply("Unsqueeze", z, np.array([1 if t == 1 else 2])), whiteners)
    # One table (n + e, n) for each W: its rows, then W^T z.
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
    left = graph.apply("Gather", rows, np.arange(n, n + e), axis=2)
    squares = graph.sum(graph.apply("Mul", left, left), 3)
    flat = [
        graph.apply("ReduceSum", x, np.array([1 if t == 1 else 2, 3]), keepdims=0) for x in (squares, log_det)
    ]
    return flat[0], flat[1]
