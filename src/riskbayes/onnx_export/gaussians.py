"""Graphs of LDA, QDA and of products of experts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from riskbayes.models.lda import LDAModel, LDAParameters
from riskbayes.models.product import ProductModel, ProductParameters, possible
from riskbayes.models.qda import QDAModel, QDAParameters
from riskbayes.onnx_export.columns import Cells
from riskbayes.onnx_export.elimination import carries_missing, observed_distances
from riskbayes.onnx_export.gaussian_columns import told_linear, told_quadratic
from riskbayes.onnx_export.scores import Scores, scores_of, translates


@translates(LDAModel)
def linear(model: LDAModel, theta: LDAParameters, cells: Cells) -> Scores:
    """x^T Sigma^-1 mu - mu^T Sigma^-1 mu / 2 + log p(y).

    If cells may be missing, log p(y) - |W^T (x - mu)|^2 / 2 of the observed part, where W W^T = Sigma^-1.
    """
    if cells.told:
        return told_linear(theta, cells)
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
    if cells.told:
        return told_quadratic(theta, cells)
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
