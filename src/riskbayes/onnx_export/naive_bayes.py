"""Graphs of the models of independent columns: categories, marks, bins, knots, counts, Gaussians."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from riskbayes.arrays import Array
from riskbayes.models.bernoulli import BernoulliModel
from riskbayes.models.binned import BinnedModel
from riskbayes.models.categorical import CategoricalModel, CategoricalParameters
from riskbayes.models.counts import CountParameters
from riskbayes.models.gaussian import LOG_2PI
from riskbayes.models.gaussian_nb import GaussianNBModel, GaussianNBParameters
from riskbayes.models.hats import Knots
from riskbayes.models.marks import MarkModel
from riskbayes.models.multinomial import ComplementModel, MultinomialModel
from riskbayes.models.poisson import PoissonModel
from riskbayes.models.smooth import SmoothModel, SmoothParameters
from riskbayes.onnx_export.columns import Cells
from riskbayes.onnx_export.graph import Tensor
from riskbayes.onnx_export.scores import Scores, translates


@translates(CategoricalModel, MarkModel)
def categories(model: CategoricalModel, theta: CategoricalParameters, cells: Cells) -> Scores:
    """log p(y) + sum_j log p(x_j | y): indicators of the categories times their log probabilities.

    Where an unseen category has the log probability u_j, the cell adds u_j if it is present, and each known
    category log p - u_j.
    """
    frame, unseen = theta.frame, np.where(cells.unseen, theta.log_unseen, 0.0)
    found, index = cells.indicators(frame.n_categories)
    scores = Scores(theta.log_prior)
    if found is not None:
        column = np.repeat(np.arange(len(frame.n_categories)), frame.n_categories)[index]
        scores = scores.plus(found, (theta.log_prob - frame.spread(unseen))[:, index], cells.owners(column))
    return add_present(scores, cells, unseen)


@translates(BinnedModel)
def bins(model: BinnedModel, theta: CategoricalParameters, cells: Cells) -> Scores:
    """log p(first bin | y), plus the steps from bin to bin at each edge that the number reaches."""
    frame: Any = theta.frame
    scores, first = Scores(theta.log_prior), theta.log_prob[:, frame.offsets]
    if len(frame.edges):
        numbers = cells.repeated(frame.n_categories - 1)
        reached = (numbers >= frame.edges).astype("float64")
        own = cells.owners(np.repeat(np.arange(len(cells.own)), frame.n_categories - 1))
        scores = scores.plus(reached, rises(theta.log_prob, frame), own)
    return add_present(scores, cells, first)


@translates(SmoothModel)
def knots(model: SmoothModel, theta: SmoothParameters, cells: Cells) -> Scores:
    """log p(y), plus the log densities at the knots, interpolated."""
    return interpolate(Scores(theta.log_prior), cells, theta.frame, theta.log_density)


@translates(MultinomialModel, ComplementModel, PoissonModel)
def counts(model: Any, theta: CountParameters, cells: Cells) -> Scores:
    """x @ weights + constants; a missing cell adds nothing."""
    return count_scores(model, theta, cells, cells.numbers())


@translates(BernoulliModel)
def binary(model: BernoulliModel, theta: CountParameters, cells: Cells) -> Scores:
    """The same of zeros and ones."""
    numbers = cells.numbers()
    if model.binarize is not None:
        numbers = (numbers > float(model.binarize)).astype("float64")
    return count_scores(model, theta, cells, numbers)


@translates(GaussianNBModel)
def gaussians(model: GaussianNBModel, theta: GaussianNBParameters, cells: Cells) -> Scores:
    """log p(y) - sum_j (log 2pi var_j + ((x_j - mu_j) / sd_j)^2) / 2."""
    r, n = theta.means.shape
    numbers = cells.repeated(np.full(n, r))
    away = numbers - np.repeat(theta.frame.origin, r) - theta.means.T.reshape(1, -1)
    away = away / np.sqrt(theta.variances).T.reshape(1, -1)
    squares = away * away
    if cells.missing is not False:
        squares = numbers.isnan().where(0.0, squares)
    own = cells.owners(np.repeat(np.arange(n), r))
    scores = Scores(theta.log_prior).plus(squares, -0.5 * np.tile(np.eye(r), n), own)
    return add_present(scores, cells, -0.5 * (np.log(theta.variances) + LOG_2PI))


def count_scores(model: Any, theta: CountParameters, cells: Cells, numbers: Tensor) -> Scores:
    """Return the scores of a model of counts."""
    carried = model.traits.takes_missing and cells.missing is not False
    if carried:
        numbers = cells.numbers().isnan().where(0.0, numbers)
    scores = Scores(theta.class_constants).plus(numbers, theta.weights, cells.owners())
    return scores if theta.cell_constants is None else add_present(scores, cells, theta.cell_constants)


def add_present(scores: Scores, cells: Cells, added: Array) -> Scores:
    """Return the scores plus what each present cell adds, of shape (classes, columns)."""
    if not added.any():
        return scores
    if cells.missing is False and not cells.contributions:
        return replace(scores, constants=scores.constants + added.sum(axis=1))
    return scores.plus(cells.observed(), added, cells.owners())


def interpolate(scores: Scores, cells: Cells, frame: Knots, table: Array) -> Scores:
    """Return the scores plus a table of knots, of shape (classes, knots), interpolated at the numbers.

    That is the entry of the last knot, minus what the table rises by in the pieces that a number does not
    reach. The share of a piece from t to t' that is beyond x is relu(1 - relu((x - t) / (t' - t))): exact at
    the knots, and 0 or 1 outside of the piece, however far.
    """
    last = frame.offsets + frame.n_categories - 1
    if len(last) < len(frame.positions):
        inner = np.setdiff1d(np.arange(len(frame.positions)), last)
        numbers = cells.repeated(frame.n_categories - 1)
        if cells.missing is not False:  # beyond all pieces
            ends = np.repeat(frame.positions[last], frame.n_categories - 1)
            numbers = numbers.isnan().where(ends, numbers)
        start, stop = frame.positions[inner], frame.positions[inner + 1]
        beyond = 1.0 - ((numbers - start) / (stop - start)).relu()
        own = cells.owners(np.repeat(np.arange(len(cells.own)), frame.n_categories - 1))
        scores = scores.plus(beyond.relu(), -rises(table, frame), own)
    return add_present(scores, cells, table[:, last])


def rises(table: Array, frame: Any) -> Array:
    """Return the differences between neighbouring categories of each column, in a table of categories."""
    inner = np.setdiff1d(np.arange(table.shape[1]), frame.offsets + frame.n_categories - 1)
    return table[:, inner + 1] - table[:, inner]
