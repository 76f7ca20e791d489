"""LDA and QDA as sums over columns, as `contributions` of the models says what each of them adds."""

from __future__ import annotations

from typing import Any

import numpy as np

from riskbayes.arrays import Array
from riskbayes.models.gaussian import LOG_2PI
from riskbayes.models.lda import LDAParameters
from riskbayes.models.qda import QDAParameters, log_determinant_shares
from riskbayes.onnx_export.columns import Cells
from riskbayes.onnx_export.elimination import carries_missing, eliminated
from riskbayes.onnx_export.graph import Tensor
from riskbayes.onnx_export.scores import Scores

MOST_PATTERNS = 1024
"""The most patterns of missing cells whose shares of the log determinant are a table."""


def told_linear(theta: LDAParameters, cells: Cells) -> Scores:
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
    of_W, left, _ = eliminated(missing, gone.where(0.0, means[None]), r, theta.whitener[None])
    products = of_W.expand_dims(2) * left.expand_dims(3)
    away = gone.where(0.0, centred.expand_dims(1) - 0.5 * means)
    found = away.reshape(r * n) * products.sum(4).reshape(r * n)
    return scores.plus(found, np.repeat(np.eye(r), n, axis=1), cells.owners() * r)


def told_quadratic(theta: QDAParameters, cells: Cells) -> Scores:
    """-(z_j (P z)_j + log 2pi Sigma_jj + (log R)_jj) / 2 with z = x - mu and P = Sigma^-1."""
    r, n = theta.means.shape
    centred = cells.numbers() - theta.frame.origin
    z = centred.expand_dims(1) - theta.means
    shares: Any
    if carries_missing(theta, cells):
        missing = centred.isnan()
        z = missing.expand_dims(1).where(0.0, z)
        of_W, left, log_det = eliminated(missing, z, r, theta.whiteners)
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
    told = own + here * (rest @ of_class + LOG_2PI)
    return gone.sum(1).equals(0.0).where(shares_of(theta, np.arange(n)).reshape(1, -1), told)
