"""Exact inference in a network of numbers and categories whose columns have several parents.

Each row is completed by every combination of values of its missing categories of which something below is
present. Given these and the class the numbers are jointly normal: what is missing of them is integrated out
with the precision K and the linear term h of its squares. In a tree messages cost less
(:mod:`riskbayes.models.network_messages`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from riskbayes.arrays import Array
from riskbayes.frames import Arrays
from riskbayes.models.categorical import chosen
from riskbayes.models.messages import informed
from riskbayes.models.network import Network
from riskbayes.models.network_messages import BLOCK_CELLS, LOG_2PI, NetworkMessages, blocks
from riskbayes.models.network_rows import NetworkRows
from riskbayes.models.parent_tables import present_families
from riskbayes.models.structure import topological_order

MOST_COMPLETIONS = 2**14
"""Upper bound on the combinations of values of the missing categories of a row."""


def inferences(
    rows: NetworkRows, theta: Any, *, every: bool = False
) -> Iterator[tuple[slice, NetworkMessages | NetworkCompletions]]:
    """Yield slices of rows, and the inference of their missing cells.

    With `every` columns are also counted where nothing in them or below them is present.
    """
    if rows.frame.is_tree:
        for part in blocks(rows, theta):
            yield part, NetworkMessages(rows[part], theta, every=every)
        return
    numbers = [_missing_categories(rows, every)[1].prod(axis=1)] if rows.frame.tables else []
    completions = numbers[0] if numbers else np.ones(len(rows), dtype=np.int64)
    if (most := completions.max(initial=1)) > MOST_COMPLETIONS:
        raise ValueError(
            f"A row has {most:g} combinations of the values that its missing categories may have and that "
            f"other cells depend on, more than {MOST_COMPLETIONS}: with k above 1 these are summed one by "
            "one. Set k=1, where missing cells are exact however many there are, or fill in missing cells."
        )
    n = len(rows.frame.numbers)
    width = len(theta.log_prior) * (8 + n + int((~_seen(rows)).any(axis=0).sum()) ** 2)
    block = (np.cumsum(completions) * width) // (16 * BLOCK_CELLS)
    for start, stop in zip(*_ends(block), strict=True):
        part = slice(start, stop)
        yield part, NetworkCompletions(rows[part], theta, every=every)


def _ends(block: Array) -> tuple[list[int], list[int]]:
    """Return where runs of equal numbers start, and where they stop."""
    starts = np.flatnonzero(np.diff(block, prepend=-1)).tolist()
    return starts, [*starts[1:], len(block)]


def _seen(rows: NetworkRows) -> Array:
    """Return a mask of the numbers that are present."""
    return np.ones(rows.D.shape, dtype=bool) if rows.seen is None else rows.seen


def _missing_categories(rows: NetworkRows, every: bool) -> tuple[Array, Array, Array]:
    """Return the categories to complete, how many values each then has, and which numbers are told of."""
    frame, present = rows.frame, rows.values >= 0
    told, numbers = frame.family(present, _seen(rows))
    if frame.tables:
        told = informed(told, frame.tables[0].parent_lists)
    if every:
        told, numbers = np.ones_like(told), np.ones_like(numbers)
    missing = told & ~present
    sizes = frame.tables[0].sizes if frame.tables else np.ones(0, dtype=np.int64)
    return missing, np.where(missing, sizes, 1).astype(np.float64), numbers


class NetworkCompletions:
    """The completions of some rows, with the probability of each given what is present, and the class.

    Parameters
    ----------
    rows : NetworkRows
        The rows.
    theta : NetworkParameters
        The parameters.
    every : bool
        If True, columns are also counted where nothing in them or below them is present.
    """

    def __init__(self, rows: NetworkRows, theta: Any, *, every: bool = False):
        self.rows, self.theta = rows, theta
        frame: Network = rows.frame
        missing, sizes, self.told = _missing_categories(rows, every)
        counts = sizes.prod(axis=1).astype(np.int64)
        self.of = np.repeat(np.arange(len(rows)), counts)
        """The row of each completion."""
        self.starts = np.cumsum(counts) - counts
        rank = np.arange(len(self.of)) - self.starts[self.of]
        self.values = rows.values[self.of]
        for i in range(missing.shape[1]):
            size = sizes[self.of, i].astype(np.int64)
            self.values[:, i] = np.where(missing[self.of, i], rank % size, self.values[:, i])
            rank = rank // size
        logs: Any = 0.0
        if frame.tables:
            self.codes = present_families(self.values, frame.tables[0])
            logs = self.codes.times(theta.tables.log_prob)[0].T
        logs = logs + self._numbers(_seen(rows))
        top = np.maximum.reduceat(logs, self.starts, axis=1)
        share = np.exp(logs - top[:, self.of])
        sums = np.add.reduceat(share, self.starts, axis=1)
        self.log_joint = top + np.log(sums)
        """log p(x_o | y), of shape (classes, rows)."""
        self.shares = share / sums[:, self.of]
        """The probability of each completion given what is present of its row, by class."""

    def _numbers(self, seen: Array) -> Array:
        """Return log p(numbers that are present | completion, y); keep the Gaussian of the missing ones.

        The exponent is the sum over the numbers of -(e + g u)^2 / 2v, with u those that are missing.
        """
        frame, theta, of = self.rows.frame, self.theta, self.of
        D, told = self.rows.D[of], self.told[of]
        self.gone = self.told & ~seen
        gone = self.gone[of]
        self.missing = np.flatnonzero(gone.any(axis=0))
        place = {int(j): i for i, j in enumerate(self.missing)}
        cells = NetworkRows(frame, D, None, self.values, None, None).cells
        r, m, d = len(theta.log_prior), len(of), len(self.missing)
        K, h, logs = np.zeros((r, m, d, d)), np.zeros((r, m, d)), np.zeros((r, m))
        for j, parents in enumerate(frame.number_parents):
            at, slopes = frame.starts[j] + cells[:, j], frame.groups_of[j].slopes[cells[:, j]]
            variance = theta.variances[:, at]
            rest, free = D[:, j] - theta.means[:, at], [(place[j], 1.0 * gone[:, j])] if j in place else []
            for i, p in enumerate(parents):
                b = theta.slopes[:, slopes[:, i]]
                rest = rest - b * D[:, p]
                if p in place:
                    free.append((place[p], np.where(gone[:, p], -b, 0.0)))
            weight = np.where(told[:, j], 1.0 / variance, 0.0)
            logs -= 0.5 * (weight * rest**2 + np.where(told[:, j], np.log(variance) + LOG_2PI, 0.0))
            for a, g in free:
                h[:, :, a] -= weight * rest * g
                for b, other in free:
                    K[:, :, a, b] += weight * g * other
        places = np.arange(d)
        own = gone[:, self.missing]
        K[:, :, places, places] += ~own
        self.covariance = np.linalg.inv(K) * (own[:, :, None] & own[:, None, :])
        self.means = (self.covariance @ h[..., None])[..., 0]
        logs += 0.5 * ((h * self.means).sum(axis=2) - np.linalg.slogdet(K)[1] + own.sum(axis=1) * LOG_2PI)
        return logs

    def statistics(self, W: Array) -> Arrays:
        """Return the expected statistics of the rows with weights W (rows x classes)."""
        frame, V = self.rows.frame, self.shares.T * W[self.of]
        found: list[Arrays] = []
        n = len(frame.numbers)
        for k in range(V.shape[1]):
            D, C = self.rows.D[self.of], np.zeros((len(self.of), n, n))
            D[:, self.missing] += self.means[k]
            C[:, self.missing[:, None], self.missing] = self.covariance[k]
            own = NetworkRows(frame, D, None, self.values, self.told[self.of], None, covariance=C)
            found.append(own.moments(V[:, [k]]))
        whole = {name: np.concatenate([part[name] for part in found]) for name in found[0]}
        return whole | ({"counts": np.ascontiguousarray(self.codes.counts(V))} if frame.tables else {})

    def fill(self, y: Array, rng: np.random.Generator | None) -> tuple[Array, Array]:
        """Return categories and numbers of rows of classes y: a draw given the cells that are present.

        Without `rng` the completion is the most probable one, and numbers have their means. A column of which
        nothing below it is present then follows its parents.
        """
        frame, theta, rows = self.rows.frame, self.theta, np.arange(len(y))
        shares = self.shares[y[self.of], np.arange(len(self.of))]
        picked = self._picked(shares, rng)
        values, D = self.values[picked], self.rows.D.copy()
        means = self.means[y[self.of], np.arange(len(self.of))]
        if rng is None:
            D[:, self.missing] += np.add.reduceat(shares[:, None] * means, self.starts, axis=0)
        else:
            C = self.covariance[y, picked]
            C[:, np.arange(C.shape[1]), np.arange(C.shape[1])] += ~self.gone[:, self.missing]
            noise = np.linalg.cholesky(C) @ rng.standard_normal((len(y), C.shape[1], 1))
            D[:, self.missing] += np.where(self.gone[:, self.missing], means[picked] + noise[:, :, 0], 0.0)
        for i in topological_order(frame.tables[0].parent_lists) if frame.tables else ():
            left, tables = np.flatnonzero(values[:, i] < 0), frame.tables[0]
            above, step = np.zeros(len(left), dtype=np.int64), 1
            for p in tables.parent_lists[i]:
                above, step = above + step * values[left, p], step * int(tables.sizes[p] + 1)
            logs = tables.of_feature(theta.tables.log_prob, i)[y[left], above, : tables.sizes[i]]
            values[left, i] = chosen(logs, rng)
        cells = NetworkRows(frame, D, None, values, None, None).cells
        blank = ~self.told & ~_seen(self.rows)
        for j in frame.order:
            drawn = theta.line(y, j, cells[:, j], D, rng)
            D[:, j] = np.where(blank[rows, j], drawn, D[:, j])
        return values, D

    def _picked(self, shares: Array, rng: np.random.Generator | None) -> Array:
        """Return one completion of each row: the most probable one, or a draw."""
        if rng is not None:
            shares = np.log(np.maximum(shares, np.finfo(float).tiny)) + rng.gumbel(size=len(shares))
        top = np.maximum.reduceat(shares, self.starts)
        best = np.flatnonzero(shares == top[self.of])
        return best[np.unique(self.of[best], return_index=True)[1]]
