"""Graphs of mixtures: the log-sum-exp of the scores of the components of each class."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from riskbayes.models.mixture import MixtureModel, MixtureParameters
from riskbayes.models.product import possible
from riskbayes.onnx_export.columns import Cells
from riskbayes.onnx_export.scores import Scores, scores_of, translates


@translates(MixtureModel)
def mixture(model: MixtureModel, theta: MixtureParameters, cells: Cells) -> Scores:
    """log sum_c p(x, c) over the components of each class."""
    sizes, own = theta.sizes, theta.components
    r, most = len(sizes), int(sizes.max())
    cells = cells.learned(cells.frame.frames[0])
    components = scores_of(model.base, replace(own, log_prior=possible(own.log_prior)), cells)
    place = np.minimum(np.arange(most), sizes[:, None] - 1) + (np.cumsum(sizes) - sizes)[:, None]
    beyond = np.where(np.arange(most) < sizes[:, None], 0.0, -np.inf)  # a class has fewer than `most`
    found = components.to_tensor(cells).take(place, axis=1) + beyond
    top = found.max(2)
    logs = (top + (found - top).exp().sum(2).log()).reshape(r)
    impossible = np.where(np.isneginf(theta.log_prior), -np.inf, 0.0)
    return Scores(impossible).plus(logs, np.eye(r))
