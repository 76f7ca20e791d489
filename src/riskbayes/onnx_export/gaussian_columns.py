"""LDA and QDA as sums over columns, as `contributions` of the models says what each of them adds."""

from __future__ import annotations

import numpy as np

from riskbayes.arrays import Array
from riskbayes.models.gaussian import LOG_2PI
from riskbayes.models.lda import LDAParameters
from riskbayes.models.qda import QDAParameters, log_determinant_shares
from riskbayes.onnx_export.columns import Cells
from riskbayes.onnx_export.elimination import carries_missing, eliminated
from riskbayes.onnx_export.graph import Graph, Tensor
from riskbayes.onnx_export.scores import Scores

MOST_PATTERNS = 1024
"""The most patterns of missing cells whose shares of the log determinant are a table."""


def told_linear(theta: LDAParameters, cells: Cells) -> Scores:
    """(x_j - mu_kj / 2) (Sigma^-1 mu_k)_j, about the mean of the classes' means."""
    graph, centre = cells.graph, theta.means.mean(axis=0)
    scores, means = Scores(theta.log_prior), theta.means - centre
    centred = graph.apply("Sub", cells.numbers(), (theta.frame.origin + centre)[None, :])
    missing = graph.apply("IsNaN", centred)
    if not carries_missing(theta, cells):
        slopes = means @ theta.whitener @ theta.whitener.T
        scores = scores.plus(centred, slopes, cells.owners())
        return scores.plus(cells.observed(), -0.5 * means * slopes, cells.owners())
    r, n = means.shape
    gone = graph.apply("Unsqueeze", missing, np.array([1]))
    z = graph.where(gone, np.zeros((1, 1, 1)), means[None])
    of_W, left, _ = eliminated(graph, missing, z, r, theta.whitener[None])
    products = graph.apply(
        "Mul", graph.apply("Unsqueeze", of_W, np.array([2])), graph.apply("Unsqueeze", left, np.array([3]))
    )
    away = graph.apply("Sub", graph.apply("Unsqueeze", centred, np.array([1])), 0.5 * means[None])
    away = graph.where(gone, np.zeros((1, 1, 1)), away)
    found = graph.apply("Mul", flat(graph, away, r * n), flat(graph, graph.sum(products, 4), r * n))
    return scores.plus(found, np.repeat(np.eye(r), n, axis=1), cells.owners() * r)


def told_quadratic(theta: QDAParameters, cells: Cells) -> Scores:
    """-(z_j (P z)_j + log 2pi Sigma_jj + (log R)_jj) / 2 with z = x - mu and P = Sigma^-1."""
    graph, (r, n) = cells.graph, theta.means.shape
    centred = graph.apply("Sub", cells.numbers(), theta.frame.origin[None, :])
    z = graph.apply("Sub", graph.apply("Unsqueeze", centred, np.array([1])), theta.means[None])
    if carries_missing(theta, cells):
        missing = graph.apply("IsNaN", centred)
        z = graph.where(graph.apply("Unsqueeze", missing, np.array([1])), np.zeros((1, 1, 1)), z)
        of_W, left, log_det = eliminated(graph, missing, z, r, theta.whiteners)
        products = graph.sum(graph.apply("Mul", of_W, left), 3)
        shares = shares_of_patterns(graph, theta, missing, flat(graph, log_det, r))
    else:
        precisions = theta.whiteners @ theta.whiteners.transpose(0, 2, 1)
        products = graph.apply("MatMul", graph.apply("Unsqueeze", z, np.array([2])), precisions)
        shares = graph.constant(shares_of(theta, np.arange(n)).reshape(1, -1))
    found = graph.apply("Mul", flat(graph, z, r * n), flat(graph, products, r * n))
    found = graph.apply("Add", found, shares)
    return Scores(theta.log_prior).plus(found, -0.5 * np.repeat(np.eye(r), n, axis=1), cells.owners() * r)


def shares_of(theta: QDAParameters, seen: Array) -> Array:
    """Return log 2pi Sigma_jj + (log R)_jj of the columns seen, zero for others, of shape (r, n)."""
    found = np.zeros(theta.means.shape)
    for k, C in enumerate(theta.covariances):
        own = C[np.ix_(seen, seen)]
        W = theta.whiteners[k] if len(seen) == len(C) else np.linalg.inv(np.linalg.cholesky(own)).T
        found[k, seen] = LOG_2PI + log_determinant_shares(own, W)
    return found


def shares_of_patterns(graph: Graph, theta: QDAParameters, missing: Tensor, log_det: Tensor) -> Tensor:
    """Return the same of rows with missing cells, of shape (m, r * n).

    Of many columns there are too many patterns for a table. Then log|R| of the observed columns, which
    `log_det`, log|P_uu| of shape (m, r), gives, is divided equally among them.
    """
    (r, n), gone = theta.means.shape, graph.as_numbers(missing)
    if 2**n <= MOST_PATTERNS:
        patterns = np.arange(2**n)[:, None] >> np.arange(n) & 1
        table = np.stack([shares_of(theta, np.flatnonzero(own == 0)).ravel() for own in patterns])
        code = graph.apply("MatMul", gone, 2.0 ** np.arange(n)[:, None])
        return flat(graph, graph.apply("Gather", table, graph.apply("Cast", code, to="int64"), axis=0), r * n)
    logs = np.log(np.diagonal(theta.covariances, axis1=1, axis2=2))
    here = graph.apply("Sub", np.ones((1, 1)), gone)
    each, of_class = np.tile(np.eye(n), r), np.repeat(np.eye(r), n, axis=1)
    here = graph.apply("MatMul", here, each)
    own = graph.apply("Mul", here, logs.reshape(1, -1))
    whole = graph.apply("Add", log_det, 2 * theta.half_log_det[None, :])
    rest = graph.apply("Sub", whole, graph.apply("MatMul", own, of_class.T))
    number = graph.sum(graph.apply("MatMul", here, np.eye(r * n)[:, :n]), 1)
    number = graph.where(graph.apply("Greater", number, np.zeros((1, 1))), number, np.ones((1, 1)))
    rest = graph.apply("MatMul", graph.apply("Div", rest, number), of_class)
    told = graph.apply("Add", own, graph.apply("Mul", here, graph.apply("Add", rest, np.array([[LOG_2PI]]))))
    whole_row = graph.apply("Equal", graph.sum(gone, 1), np.zeros((1, 1)))
    return graph.where(whole_row, shares_of(theta, np.arange(n)).reshape(1, -1), told)


def flat(graph: Graph, x: Tensor, width: int) -> Tensor:
    """Return a tensor of shape (m, width)."""
    return graph.apply("Reshape", x, np.array([0, width]))
