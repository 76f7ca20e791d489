"""Graphs of augmented naive Bayes (TAN, k-DB): look-ups of joint codes, or messages if cells are missing."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import add
from types import MappingProxyType

import numpy as np

from riskbayes.models.augmented_nb import TreeModel, TreeParameters
from riskbayes.models.structure import topological_order
from riskbayes.onnx_export.columns import Cells
from riskbayes.onnx_export.graph import Tensor
from riskbayes.onnx_export.scores import Scores, translates


@translates(TreeModel)
def tree(model: TreeModel, theta: TreeParameters, cells: Cells) -> Scores:
    """log p(y) + sum_i log p(x_i | parents, y); in a tree with missing cells the sum over their values."""
    scores, r, n = Scores(theta.log_prior), len(theta.log_prior), len(cells.own)
    if theta.frame.is_tree and cells.missing is not False:
        return scores.plus(messages(theta, cells), np.eye(r))
    found = look_ups(theta, cells)
    if cells.contributions:
        return scores.plus(
            found.reshape(n * r), np.tile(np.eye(r), n), [j for j in cells.owners() for _ in range(r)]
        )
    return scores.plus(found.sum(1, keepdims=False), np.eye(r))


def look_ups(theta: TreeParameters, cells: Cells) -> Tensor:
    """Return the log probabilities of the joint codes, of shape (m, n, r)."""
    frame = theta.frame
    steps = np.eye(len(frame.sizes))
    for i, above in enumerate(frame.parent_lists):
        step = frame.sizes[i] + 1
        for p in above:
            steps[p, i] = step
            step *= frame.sizes[p] + 1
    joint = cells.codes(frame.sizes) @ steps + frame.offsets
    table = theta.log_prob.T
    if cells.missing is not False:  # a row of zeros after the table
        joint = cells.is_missing().where(len(table), joint)
        table = np.concatenate([table, np.zeros((1, table.shape[1]))])
    return cells.graph.constant(table).take(joint.astype("int64"), axis=0)


def messages(
    theta: TreeParameters, cells: Cells, evidence: Mapping[int, Tensor] = MappingProxyType({})
) -> Tensor:
    """Return log p(x_o | y) by messages from the leaves to the roots, of shape (m, r).

    As in :mod:`riskbayes.models.messages`. A message has the shape (m, r, 1, values); it is divided by its
    maximum, whose logarithm is added, so that products over many features do not underflow. `evidence` is
    what else tells of the values of a feature, of shape (m, r, values).
    """
    frame = theta.frame
    codes, missing = cells.codes(frame.sizes), cells.is_missing()
    below: dict[int, Tensor] = {}
    logs: list[Tensor] = []

    def scale(message: Tensor) -> Tensor:
        top = message.max(3)
        logs.append(top.log())
        return message / top

    for i, size in enumerate(frame.sizes.tolist()):
        own = codes.columns([i]).equals(np.arange(size + 1.0)[None, :]).astype("float64")
        here = missing.columns([i]).where(np.arange(size + 1) < size, own)  # a missing cell has any value
        below[i] = here.expand_dims(1, 2)
        if i in evidence:
            below[i] = below[i] * evidence[i].expand_dims(2)
    for i in topological_order(frame.parent_lists)[::-1]:
        table = np.exp(frame.of_feature(theta.log_prob, i)).transpose(0, 2, 1)
        message = scale(below[i] @ table)
        for p in frame.parent_lists[i]:
            below[p] = scale(below[p] * message)
    return reduce(add, logs).sum(2, 3, keepdims=False)
