"""Graphs of LDA, QDA and of products of experts.

If cells may be missing, a step of elimination for each column leaves the observed part of a Gaussian. If the
columns are to tell what they add, the scores are sums over columns, as `contributions` of the models says.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from riskbayes.arrays import Array
from riskbayes.models.gaussian import LOG_2PI
from riskbayes.models.lda import LDAModel, LDAParameters
from riskbayes.models.product import ProductModel, ProductParameters, possible
from riskbayes.models.qda import QDAModel, QDAParameters, log_determinant_shares
from riskbayes.onnx_export.columns import Cells
from riskbayes.onnx_export.graph import Tensor
from riskbayes.onnx_export.scores import Scores, scores_of, translates

MOST_PATTERNS = 1024
"""The most patterns of missing cells whose shares of the log determinant are a table."""


@translates(LDAModel)
def linear(model: LDAModel, theta: LDAParameters, cells: Cells) -> Scores:
    """x^T Sigma^-1 mu - mu^T Sigma^-1 mu / 2 + log p(y).

    If cells may be missing, log p(y) - |W^T (x - mu)|^2 / 2 of the observed part, where W W^T = Sigma^-1.
    """
    if cells.contributions:
        return linear_contributions(theta, cells)
    centred = cells.numbers() - theta.frame.origin
    if not carries_missing(theta, cells):
        B, c = theta.form
        return Scores(c).plus(centred, B.T)
    r = len(theta.means)
    distances, _ = observed_distances(centred, theta.means, theta.whitener[None])
    return Scores(theta.log_prior).plus(distances, -0.5 * np.eye(r))  # all classes have one determinant


@translates(QDAModel)
def quadratic(model: QDAModel, theta: QDAParameters, cells: Cells) -> Scores:
    """log p(y) - log|Sigma| / 2 - |W^T (x - mu)|^2 / 2, where W W^T = Sigma^-1."""
    if cells.contributions:
        return quadratic_contributions(theta, cells)
    r, n = theta.means.shape
    centred = cells.numbers() - theta.frame.origin
    scores = Scores(theta.log_prior - theta.half_log_det)
    if not carries_missing(theta, cells):
        shift = (theta.means[:, None, :] @ theta.whiteners).reshape(1, r * n)
        whitened = centred @ theta.whiteners.transpose(1, 0, 2).reshape(n, r * n) - shift
        return scores.plus(whitened * whitened, -0.5 * np.repeat(np.eye(r), n, axis=1))
    distances, log_dets = observed_distances(centred, theta.means, theta.whiteners)
    return scores.plus(distances, -0.5 * np.eye(r)).plus(log_dets, -0.5 * np.eye(r))


@translates(ProductModel)
def product(model: ProductModel, theta: ProductParameters, cells: Cells) -> Scores:
    """log p(y) + sum_e weight_e log p_e(x | y)."""
    found, frames = Scores(theta.log_prior), cells.frame.frames
    for i, (expert, weight, own) in enumerate(zip(model.experts, model.weights, theta.experts, strict=True)):
        read = cells.of(None if model.columns is None else model.columns[i]).learned(frames[i])
        part = scores_of(expert, own, read)
        constants = found.constants + weight * (part.constants - possible(expert.baseline(own)))
        found = replace(found, constants=constants).and_those(part.times(weight, part.constants))
    return found


def carries_missing(theta: Any, cells: Cells) -> bool:
    """True if missing cells are carried: by default if the rows of the fit had some, for it takes n steps."""
    return theta.frame.observed is not None if cells.missing is None else cells.missing


def observed_distances(centred: Tensor, means: Array, whiteners: Array) -> tuple[Tensor, Tensor]:
    """Return |W^T z|^2 at its least over the missing part of z = x - mu, and log|P_uu|, each of shape (m, r).

    These are the Mahalanobis distance of the observed part, and what its log determinant differs by: see
    :mod:`riskbayes.models.conditional`. With one W for all classes there is one determinant, of shape (m, 1).
    """
    missing, one = centred.isnan(), len(whiteners) == 1
    z = missing.expand_dims(1).where(0.0, centred.expand_dims(1) - means)
    _, left, log_det = eliminate(missing, z, len(means), whiteners)
    distances, log_dets = (x.sum(1 if one else 2, 3, keepdims=False) for x in ((left * left).sum(3), log_det))
    return distances, log_dets


def eliminate(missing: Tensor, z: Tensor, r: int, whiteners: Array) -> tuple[Tensor, Tensor, Tensor]:
    """Return W and W^T z without what missing columns could explain of them, and log|P_uu|.

    The rows of W that belong to missing columns are made orthogonal one after the other (modified
    Gram-Schmidt), and the other rows and W^T z to all of them. z has the shape (m, r, n), with zeros where a
    cell is missing; the results (m, t, n, n), (m, t, r / t, n) and (m, t, 1, 1).
    """
    t, n, _ = whiteners.shape
    # One table (n + e, n) for each W: its rows, then e rows W^T z.
    e = r // t
    lower = np.concatenate([np.zeros((n, e)), np.eye(e)])
    upper = np.concatenate([whiteners, np.zeros((t, e, n))], axis=1)
    rows = lower @ (z.expand_dims(1 if t == 1 else 2) @ whiteners) + upper
    logs = []
    for j in range(n):
        gone = missing.columns([j]).expand_dims(2, 3)
        own = rows.take([j], axis=2)
        dots = (rows * own).sum(3)
        norm = dots.take([j], axis=2)
        rows = rows - gone.where(dots / norm, 0.0) * own
        logs.append(gone.where(norm.log(), 0.0))
    return rows.take(np.arange(n), axis=2), rows.take(np.arange(n, n + e), axis=2), reduce(add, logs)


def linear_contributions(theta: LDAParameters, cells: Cells) -> Scores:
    """(x_j - mu_kj / 2) (Sigma^-1 mu_k)_j, about the mean of the classes' means."""
    centre = theta.means.mean(axis=0)
    scores, means = Scores(theta.log_prior), theta.means - centre
    centred = cells.numbers() - (theta.frame.origin + centre)
    if not carries_missing(theta, cells):
        slopes = means @ theta.whitener @ theta.whitener.T
        scores = scores.plus(centred, slopes, cells.owners())
        return scores.plus(cells.observed(), -0.5 * means * slopes, cells.owners())
    (r, n), missing = means.shape, centred.isnan()
    gone = missing.expand_dims(1)
    of_W, left, _ = eliminate(missing, gone.where(0.0, means[None]), r, theta.whitener[None])
    products = of_W.expand_dims(2) * left.expand_dims(3)
    away = gone.where(0.0, centred.expand_dims(1) - 0.5 * means)
    found = away.reshape(r * n) * products.sum(4).reshape(r * n)
    return scores.plus(found, np.repeat(np.eye(r), n, axis=1), cells.owners() * r)


def quadratic_contributions(theta: QDAParameters, cells: Cells) -> Scores:
    """-(z_j (P z)_j + log 2pi Sigma_jj + (log R)_jj) / 2 with z = x - mu and P = Sigma^-1."""
    r, n = theta.means.shape
    centred = cells.numbers() - theta.frame.origin
    z = centred.expand_dims(1) - theta.means
    shares: Any
    if carries_missing(theta, cells):
        missing = centred.isnan()
        z = missing.expand_dims(1).where(0.0, z)
        of_W, left, log_det = eliminate(missing, z, r, theta.whiteners)
        products = (of_W * left).sum(3)
        shares = shares_of_patterns(theta, missing, log_det.reshape(r))
    else:
        products = z.expand_dims(2) @ (theta.whiteners @ theta.whiteners.transpose(0, 2, 1))
        shares = shares_of(theta, np.arange(n)).reshape(1, -1)
    found = z.reshape(r * n) * products.reshape(r * n) + shares
    return Scores(theta.log_prior).plus(found, -0.5 * np.repeat(np.eye(r), n, axis=1), cells.owners() * r)


def shares_of(theta: QDAParameters, seen: Array) -> Array:
    """Return log 2pi Sigma_jj + (log R)_jj of the columns seen, zero for others, of shape (r, n)."""
    found = np.zeros(theta.means.shape)
    for k, C in enumerate(theta.covariances):
        own = C[np.ix_(seen, seen)]
        W = theta.whiteners[k] if len(seen) == len(C) else np.linalg.inv(np.linalg.cholesky(own)).T
        found[k, seen] = LOG_2PI + log_determinant_shares(own, W)
    return found


def shares_of_patterns(theta: QDAParameters, missing: Tensor, log_det: Tensor) -> Tensor:
    """Return the same of rows with missing cells, of shape (m, r * n).

    Of many columns there are too many patterns for a table. Then log|R| of the observed columns, which
    `log_det`, log|P_uu| of shape (m, r), gives, is divided equally among them.
    """
    (r, n), gone = theta.means.shape, missing.astype("float64")
    if 2**n <= MOST_PATTERNS:
        patterns = np.arange(2**n)[:, None] >> np.arange(n) & 1
        table = np.stack([shares_of(theta, np.flatnonzero(own == 0)).ravel() for own in patterns])
        code = (gone @ 2.0 ** np.arange(n)[:, None]).astype("int64")
        return missing.graph.constant(table).take(code, axis=0).reshape(r * n)
    logs = np.log(np.diagonal(theta.covariances, axis1=1, axis2=2)).reshape(1, -1)
    of_class = np.repeat(np.eye(r), n, axis=1)
    here = (1.0 - gone) @ np.tile(np.eye(n), r)
    own = here * logs
    number = (1.0 - gone).sum(1)
    rest = log_det + 2 * theta.half_log_det - own @ of_class.T
    rest = rest / (number > 0.0).where(number, 1.0)
    shares = own + here * (rest @ of_class + LOG_2PI)
    return gone.sum(1).equals(0.0).where(shares_of(theta, np.arange(n)).reshape(1, -1), shares)
