"""Graphs of leaves of trees: all trees are gone down together, one level after the other."""

from __future__ import annotations

import numpy as np

from riskbayes.arrays import Array
from riskbayes.models.categorical import CategoricalParameters
from riskbayes.models.leaves import LeavesModel
from riskbayes.models.trees import Trees
from riskbayes.onnx_export.columns import Cells
from riskbayes.onnx_export.graph import Tensor
from riskbayes.onnx_export.scores import Scores, translates


@translates(LeavesModel)
def leaves(model: LeavesModel, theta: CategoricalParameters, cells: Cells) -> Scores:
    """log p(y) + sum_t of the score of the leaf of tree t: look-ups of nodes, level by level."""
    trees: Trees = theta.frame.trees  # type: ignore[attr-defined]
    graph = cells.graph
    rows, feature = order_columns(trees, cells)
    value, node = rows.columns(feature[trees.roots]), graph.constant(trees.roots[None, :])
    for level in range(max(1, depth(trees))):
        if level:
            value = graph.apply("GatherElements", rows, graph.constant(feature).take(node, axis=0), axis=1)
        threshold, left, right, lost = (
            graph.constant(own).take(node, axis=0)
            for own in (trees.threshold, trees.left, trees.right, trees.lost)
        )
        node = value.isnan().where(lost, (threshold >= value).where(left, right))
    is_leaf = trees.leaf >= 0
    tree = np.searchsorted(trees.roots, np.arange(len(is_leaf)), side="right") - 1
    scores = np.zeros((len(is_leaf), len(theta.log_prior)))
    scores[is_leaf] = theta.log_prob[:, theta.frame.offsets[tree[is_leaf]] + trees.leaf[is_leaf]].T
    found = graph.constant(scores).take(node, axis=0).sum(1, keepdims=False)
    return Scores(theta.log_prior).plus(found, np.eye(len(theta.log_prior)))


def order_columns(trees: Trees, cells: Cells) -> tuple[Tensor, Array]:
    """Return the numbers and the places of the categories, and the column of each node among these."""
    n = len(cells.own)
    categories = sorted(trees.orders)
    numbers = [j for j in range(n) if j not in trees.orders]
    parts = [cells.of(numbers).numbers()] if numbers else []
    if categories:
        tables = [np.append(trees.orders[j], -1.0)[:, None] for j in categories]
        places = cells.of(categories).look_up(tables)
        parts.append((places < 0.0).where(np.nan, places))
    moved = np.empty(n, dtype=np.int64)
    moved[[*numbers, *categories]] = np.arange(n)
    return cells.graph.concat(parts), moved[trees.feature]


def depth(trees: Trees) -> int:
    """Return the number of levels of the deepest tree, without its root."""
    node, levels = trees.roots, 0
    while len(node):
        node = np.unique(node[trees.leaf[node] < 0])
        node = np.unique(np.concatenate([trees.left[node], trees.right[node]]))
        levels += 1
    return levels - 1
