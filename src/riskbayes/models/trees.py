"""Extremely randomised trees as arrays: grown by scikit-learn on ranks, read in the unit of the data.

Trees that are grown on ranks do not depend on the unit, the origin or the scale of a column, and thresholds
that are values of the training rows compare exactly in any precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from riskbayes.arrays import Array
from riskbayes.loaded import require, require_shape
from riskbayes.threads import available_threads

BLOCK_NODES = 2**20
"""Rows x trees that go down together: some 60 MB of indices."""

MOST_GROWN = 2**15
"""The most rows that trees are grown on: with 256 leaves, more rows hardly move a threshold."""

FEW_CELLS = 2**15
"""Cells of a table up to which trees grow faster than threads start."""


@dataclass(frozen=True, eq=False)
class Trees:
    """The nodes of all trees, one tree after the other; the children of a leaf are the leaf itself."""

    roots: Array
    """The first node of each tree."""
    feature: Array
    threshold: Array
    """A row goes left if its value is at most this."""
    left: Array
    right: Array
    lost: Array
    """Where a row goes whose cell is missing."""
    leaf: Array
    """The number of each leaf within its tree; -1 for other nodes."""
    orders: dict[int, Array]
    """For each column of categories, the place of each category in the order that the trees split."""

    def check_loaded(self, size: int) -> None:
        """Require children after their nodes, in the same tree, so that every row reaches a leaf."""
        nodes = len(self.leaf)
        for name in ("feature", "left", "right", "lost", "leaf"):
            require_shape(getattr(self, name), (nodes,), "i", name)
        require_shape(self.threshold, (nodes,), "f", "threshold")
        require_shape(self.roots, (len(self.roots),), "i", "roots")
        roots = self.roots
        require(
            nodes and len(roots) and roots[0] == 0 and roots[-1] < nodes and (np.diff(roots) > 0).all(),
            "the roots are not the first nodes of trees",
        )
        own, end = np.arange(nodes), np.repeat(np.append(roots[1:], nodes), np.diff(roots, append=nodes))
        inner = self.leaf < 0
        for children in (self.left, self.right, self.lost):
            require(
                ((children > own) & (children < end))[inner].all(), "a child does not come after its node"
            )
        require(self.feature.min() >= 0 and (self.leaf < nodes).all(), "a node has no feature or leaf")
        require(all(place.ndim == 1 and place.dtype.kind == "f" for place in self.orders.values()), "orders")

    @property
    def sizes(self) -> Array:
        """The number of leaves of each tree."""
        return np.maximum.reduceat(self.leaf, self.roots) + 1

    def codes(self, X: Array) -> Array:
        """Return the leaf of each row in each tree, of shape (m, trees)."""
        require(self.feature.max() < X.shape[1], "trees split other columns than the rows have")
        size = max(1, BLOCK_NODES // len(self.roots))
        blocks = [self._codes(X[start : start + size]) for start in range(0, len(X), size)]
        return np.concatenate(blocks) if blocks else np.empty((0, len(self.roots)), dtype=np.int32)

    def _codes(self, X: Array) -> Array:
        """Return the same of a block of rows: all of them go down all trees, one level at a time."""
        X = np.ascontiguousarray(in_order(X, self.orders))
        holes, cells = bool(np.isnan(X).any()), X.ravel()
        node = np.tile(self.roots, len(X))
        start = np.repeat(np.arange(0, X.size, X.shape[1]), len(self.roots))  # of the row, among the cells
        going = np.flatnonzero(self.leaf[node] < 0)
        here = node[going]
        while len(going):
            value = cells[start[going] + self.feature[here]]
            there = np.where(value <= self.threshold[here], self.left[here], self.right[here])
            if holes:
                there = np.where(np.isnan(value), self.lost[here], there)
            node[going] = there
            on = self.leaf[there] < 0
            going, here = going[on], there[on]
        return self.leaf[node].reshape(len(X), len(self.roots))


def grow(
    X: Array, y: Array, w: Array | None, n_trees: int, max_leaves: int, least: int, categories: Sequence[int]
) -> Trees:
    """Return trees of rows with a positive weight, or of a sample of them.

    Half of the columns are tried at each node.
    """
    from sklearn.ensemble import ExtraTreesClassifier  # slow to import

    rows = np.arange(len(y)) if w is None else np.flatnonzero(w > 0)
    if len(rows) > MOST_GROWN:
        rows = np.sort(np.random.default_rng(0).permutation(rows)[:MOST_GROWN])
    if len(rows) < len(y):
        X, y, w = X[rows], y[rows], None if w is None else w[rows]
    orders = {j: category_order(X[:, j], y, w) for j in categories}
    X = in_order(X, orders)
    values, ranks = [], np.full(X.shape, np.nan, dtype=np.float32)
    for j, column in enumerate(X.T):
        here = ~np.isnan(column)
        found, ranks[here, j] = np.unique(column[here], return_inverse=True)
        values.append(found)
    ranks[:, [len(found) == 0 for found in values]] = 0.0  # a column without a value
    forest = ExtraTreesClassifier(
        n_trees,
        max_leaf_nodes=max_leaves,
        min_samples_leaf=least,
        max_features=0.5,
        random_state=0,
        n_jobs=available_threads() if ranks.size > FEW_CELLS else 1,
    ).fit(ranks, y, w)
    return flattened([clf.tree_ for clf in forest.estimators_], values, orders)


def flattened(trees: Sequence[Any], values: Sequence[Array], orders: dict[int, Array]) -> Trees:
    """Return scikit-learn's trees of ranks as arrays with thresholds among the values of each column."""
    counts = [tree.node_count for tree in trees]
    roots = np.cumsum([0, *counts[:-1]])
    names = ("feature", "threshold", "left", "right", "lost", "leaf")
    parts: dict[str, list[Array]] = {name: [] for name in names}
    for root, tree in zip(roots, trees, strict=True):
        is_leaf = tree.children_left < 0
        own = np.arange(tree.node_count)
        left, right = (np.where(is_leaf, own, child) for child in (tree.children_left, tree.children_right))
        feature = np.where(is_leaf, 0, tree.feature)
        rank = np.where(is_leaf, 0.0, np.floor(tree.threshold)).astype(np.int64)
        threshold = np.zeros(len(own))
        for j in np.unique(feature[~is_leaf]):
            here = ~is_leaf & (feature == j)
            threshold[here] = values[j][rank[here]]
        parts["feature"].append(feature)
        parts["threshold"].append(threshold)
        parts["left"].append(root + left)
        parts["right"].append(root + right)
        parts["lost"].append(root + np.where(tree.missing_go_to_left.astype(bool), left, right))
        parts["leaf"].append(np.where(is_leaf, np.cumsum(is_leaf) - 1, -1).astype(np.int32))
    return Trees(roots=roots, orders=orders, **{name: np.concatenate(part) for name, part in parts.items()})


def in_order(X: Array, orders: dict[int, Array]) -> Array:
    """Return the rows with each category replaced by its place in the order; an unknown one is missing."""
    if not orders:
        return X
    X = X.astype(np.float64)
    for j, place in orders.items():
        known = (X[:, j] >= 0) & (X[:, j] < len(place))  # False for a missing cell
        X[:, j] = np.where(known, place[np.where(known, X[:, j], 0).astype(np.int64)], np.nan)
    return X


def category_order(codes: Array, y: Array, w: Array | None) -> Array:
    """Return the place of each category along the direction in which their class frequencies vary most."""
    known = ~np.isnan(codes)
    number, r = int(codes[known].max(initial=-1)) + 1, int(y.max()) + 1
    counts = np.zeros((number, r))
    np.add.at(counts, (codes[known].astype(np.int64), y[known]), 1.0 if w is None else w[known])
    mass = counts.sum(axis=1)
    pooled = counts.sum(axis=0) / (mass.sum() or 1.0)
    shares = (counts + pooled) / (mass + 1.0)[:, None] - pooled
    _, axes = np.linalg.eigh((shares * mass[:, None]).T @ shares)
    along = shares @ axes[:, -1]
    place = np.empty(number)
    place[np.lexsort((np.arange(number), along.round(12)))] = np.arange(number)
    return place
