"""Graphs of augmented naive Bayes (TAN, k-DB): look-ups of joint codes, or messages if cells are missing."""

from __future__ import annotations

from collections.abc import Mapping
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
    if cells.told:
        flat = cells.graph.apply("Reshape", found, np.array([0, n * r]))
        return scores.plus(flat, np.tile(np.eye(r), n), [j for j in cells.owners() for _ in range(r)])
    return scores.plus(cells.graph.apply("ReduceSum", found, np.array([1]), keepdims=0), np.eye(r))


def look_ups(theta: TreeParameters, cells: Cells) -> Tensor:
    """Return the log probabilities of the joint codes, of shape (m, n, r)."""
    frame, graph = theta.frame, cells.graph
    steps = np.eye(len(frame.sizes))
    for i, above in enumerate(frame.parent_lists):
        step = frame.sizes[i] + 1
        for p in above:
            steps[p, i] = step
            step *= frame.sizes[p] + 1
    joint = graph.apply("MatMul", cells.codes(frame.sizes), steps)
    joint = graph.apply("Add", joint, frame.offsets[None, :].astype(float))
    table = theta.log_prob.T
    if cells.missing is not False:  # a row of zeros after the table
        joint = graph.where(cells.is_missing(), np.full((1, 1), len(table)), joint)
        table = np.concatenate([table, np.zeros((1, table.shape[1]))])
    return graph.apply("Gather", table, graph.apply("Cast", joint, to="int64"), axis=0)


def messages(
    theta: TreeParameters, cells: Cells, evidence: Mapping[int, Tensor] = MappingProxyType({})
) -> Tensor:
    """Return log p(x_o | y) by messages from the leaves to the roots, of shape (m, r).

    As in :mod:`riskbayes.models.messages`. A message has the shape (m, r, 1, values); it is divided by its
    maximum, whose logarithm is added, so that products over many features do not underflow. `evidence` is
    what else tells of the values of a feature, of shape (m, r, values).
    """
    frame, graph = theta.frame, cells.graph
    codes, missing = cells.codes(frame.sizes), cells.is_missing()
    below: dict[int, Tensor] = {}
    logs: list[Tensor] = []

    def scaled(message: Tensor) -> Tensor:
        top = graph.apply("ReduceMax", message, np.array([3]), keepdims=1)
        logs.append(graph.apply("Log", top))
        return graph.apply("Div", message, top)

    for i, size in enumerate(frame.sizes.tolist()):
        own = graph.apply("Equal", graph.columns(codes, [i]), np.arange(size + 1.0)[None, :])
        any_value = (np.arange(size + 1) < size).astype(float)[None, :]
        here = graph.where(graph.columns(missing, [i]), any_value, graph.as_numbers(own))
        below[i] = graph.apply("Unsqueeze", here, np.array([1, 2]))
        if i in evidence:
            told = graph.apply("Unsqueeze", evidence[i], np.array([2]))
            below[i] = graph.apply("Mul", below[i], told)
    for i in topological_order(frame.parent_lists)[::-1]:
        table = np.exp(frame.of_feature(theta.log_prob, i)).transpose(0, 2, 1)
        message = scaled(graph.apply("MatMul", below[i], table))
        for p in frame.parent_lists[i]:
            below[p] = scaled(graph.apply("Mul", below[p], message))
    total = logs[0]
    for log in logs[1:]:
        total = graph.apply("Add", total, log)
    return graph.apply("ReduceSum", total, np.array([2, 3]), keepdims=0)
