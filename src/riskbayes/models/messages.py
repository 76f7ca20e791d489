"""Exact inference in a tree of categories whose cells are missing in part, by messages along its edges.

Messages have the shape (classes, rows, values). The last value of a feature is "unseen": a cell may hold it,
but missing cells are not summed over it. A feature below which nothing is present drops out: the sum over its
values is one, and it is not counted. Rows are read in blocks, so that these arrays stay small.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from riskbayes.arrays import Array
from riskbayes.models.structure import Parents, topological_order

BLOCK_CELLS = 2**18
"""Cells of the messages of a block of rows, over all features and classes."""


def observed_log_joint(values: Array, theta: Any) -> Array:
    """Return log p(x_o, y=k) of rows whose missing cells are -1, of shape (m, r)."""
    found = [Messages(values[rows], theta).log_joint.T for rows in blocks(values, theta)]
    return np.concatenate(found) + theta.log_prior


def expected_counts(values: Array, theta: Any, W: Array) -> Array:
    """Return sum_i W[i, k] p(x_j, parent of j | x_o, y=k) in the columns of the tables' counts."""
    counts = np.zeros_like(theta.log_prob)
    for rows in blocks(values, theta):
        counts += Messages(values[rows], theta).counts(W[rows])
    return counts


def fill_tree(values: Array, theta: Any, y: Array, rng: np.random.Generator | None) -> Array:
    """Return rows of classes y whose missing cells, -1, are the mode of p(missing | present, y), or a draw.

    Both are exact: messages of maxima or of sums to the roots, then a value of each feature after its parent.
    """
    parts = [
        Messages(values[rows], theta, most_probable=rng is None).fill(y[rows], rng)
        for rows in blocks(values, theta)
    ]
    return np.concatenate([values[:0], *parts])


def informed(present: Array, parents: Parents) -> Array:
    """Return a mask (rows x features) of the features of which they or a descendant are present."""
    found = present.copy()
    for i in topological_order(parents)[::-1]:
        for p in parents[i]:
            found[:, p] |= found[:, i]
    return found


def blocks(values: Array, theta: Any) -> Iterator[slice]:
    """Yield slices of rows whose messages have about `BLOCK_CELLS` cells."""
    width = len(theta.log_prior) * int((theta.frame.sizes + 1).sum())
    size = max(16, BLOCK_CELLS // width)
    for start in range(0, len(values), size):
        yield slice(start, start + size)


class Messages:
    """The messages of some rows from the leaves of the tree to its roots, and the log joint that they give.

    Parameters
    ----------
    values : array of int, shape (m, n)
        Codes; -1 for a missing cell.
    theta : TreeParameters
        Tables of features that have one parent at most.
    most_probable : bool
        If True, messages are maxima over the values of missing cells, not sums, and there are no counts.
    evidence : mapping of int to array of shape (r, m, values), optional
        What else tells of a feature: the likelihood of each of its values, with a maximum of one.
    present : array of bool, shape (m, n), optional
        Features that are present or that the evidence tells of; by default those present.
    """

    def __init__(
        self,
        values: Array,
        theta: Any,
        *,
        most_probable: bool = False,
        evidence: Mapping[int, Array] = MappingProxyType({}),
        present: Array | None = None,
    ):
        frame, r = theta.frame, len(theta.log_prior)
        self.frame, self.parents = frame, frame.parent_lists
        self.tables = [np.exp(frame.of_feature(theta.log_prob, i)) for i in range(len(self.parents))]
        self.order = topological_order(self.parents)
        self.informed = informed(values >= 0 if present is None else present, self.parents)
        self.below: list[Array] = []
        """For each feature, p(what is present in it and below | its value), up to a factor of the row."""
        for i, size in enumerate(frame.sizes):
            own = values[:, [i]]
            here = np.where(own < 0, np.arange(size + 1) < size, own == np.arange(size + 1))
            here = np.repeat(here[None].astype(np.float64), r, axis=0)
            self.below.append(here * evidence[i] if i in evidence else here)
        self.sent: dict[int, Array] = {}
        """For each feature, its message to its parent: the same, summed over its values."""
        self.log_joint = np.zeros((r, len(values)))
        """log p(x_o | y)."""
        for i in self.order[::-1]:
            if most_probable:
                by_parent = self.tables[i].transpose(1, 0, 2)[:, :, None]
                message = np.stack([(self.below[i] * p).max(axis=2) for p in by_parent], axis=2)
            else:
                message = self.below[i] @ self.tables[i].transpose(0, 2, 1)
                message = np.where(self.informed[:, i, None], message, 1.0)
            self.sent[i] = self._scaled(message)
            for p in self.parents[i]:
                self.below[p] = self._scaled(self.below[p] * self.sent[i])

    def _scaled(self, message: Array) -> Array:
        """Return the message with a maximum of one, and add its logarithm to the log joint."""
        top = message.max(axis=2, keepdims=True)
        self.log_joint += np.log(top[:, :, 0])
        return message / top

    def _downwards(self) -> Iterator[tuple[int, Array, Array]]:
        """Yield each feature after its parent, with what the rest says of its parent and of itself."""
        above: dict[int, Array] = {}
        for i in self.order:
            rest = np.ones((*self.log_joint.shape, 1))  # a root has a parent of one value
            for p in self.parents[i]:
                rest = above[p] * self.below[p] / self.sent[i]
            into = rest @ self.tables[i]
            yield i, rest, into
            above[i] = into / into.max(axis=2, keepdims=True)

    def counts(self, W: Array) -> Array:
        """Return the expected counts of (feature, parent), weighted by W (rows x classes)."""
        counts: list[tuple[int, Array]] = []
        for i, rest, into in self._downwards():
            evidence = (into * self.below[i]).sum(axis=2)
            weights = np.where(self.informed[:, i], W.T / evidence, 0.0)
            pairs = (rest * weights[:, :, None]).transpose(0, 2, 1) @ self.below[i]
            counts.append((i, (pairs * self.tables[i]).reshape(len(pairs), -1)))
        return np.concatenate([found for _, found in sorted(counts, key=lambda pair: pair[0])], axis=1)

    def posteriors(self) -> dict[int, Array]:
        """Return p(x_i | what is present, y) of each feature, of shape (r, m, values)."""
        found = {i: into * self.below[i] for i, _, into in self._downwards()}
        return {i: p / p.sum(axis=2, keepdims=True) for i, p in found.items()}

    def fill(self, y: Array, rng: np.random.Generator | None) -> Array:
        """Return the values of rows of classes y: the most probable ones (`most_probable`), or a draw."""
        rows = np.arange(len(y))
        own = np.empty((len(y), len(self.parents)), dtype=np.int64)
        for i in self.order:
            parent = next((own[:, p] for p in self.parents[i]), 0)
            p_own = self.tables[i][y, parent] * self.below[i][y, rows]
            if rng is None:
                own[:, i] = p_own.argmax(axis=1)
            else:
                below = np.cumsum(p_own, axis=1)
                own[:, i] = (rng.random(len(own))[:, None] * below[:, -1:] > below[:, :-1]).sum(axis=1)
        return own
