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
    graph, sizes, own = cells.graph, theta.sizes, theta.components
    r, most = len(sizes), int(sizes.max())
    cells = cells.learned(cells.frame.frames[0])
    components = scores_of(model.base, replace(own, log_prior=possible(own.log_prior)), cells)
    place = np.minimum(np.arange(most), sizes[:, None] - 1) + (np.cumsum(sizes) - sizes)[:, None]
    beyond = np.where(np.arange(most) < sizes[:, None], 0.0, -np.inf)  # a class has fewer than `most`
    found = graph.apply("Gather", components.to_tensor(cells), place, axis=1)
    found = graph.apply("Add", found, beyond[None])
    top = graph.apply("ReduceMax", found, np.array([2]), keepdims=1)
    sums = graph.sum(graph.apply("Exp", graph.apply("Sub", found, top)), 2)
    logs = graph.apply("Reshape", graph.apply("Add", top, graph.apply("Log", sums)), np.array([0, r]))
    impossible = np.where(np.isneginf(theta.log_prior), -np.inf, 0.0)
    return Scores(impossible).plus(logs, np.eye(r))
