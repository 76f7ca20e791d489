"""Augmented naive Bayes (TAN, k-DB): psi(x) = (1, one-hot of each feature together with its parents).

The parents are given, or learned by :mod:`riskbayes.models.structure`; the frame `Tables` holds them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from riskbayes.arrays import Array, one_hot
from riskbayes.frames import Arrays, Categories, Frame
from riskbayes.loaded import require, require_shape
from riskbayes.models.base import Described, GenerativeModel, Sample, log_class_prior
from riskbayes.models.categorical import COUNT_FLOOR, TINY, chosen
from riskbayes.models.codes import (
    Codes,
    categories_of,
    check_codes,
    check_sizes,
    clipped_codes,
    missing_cells,
)
from riskbayes.models.elimination import family_marginals
from riskbayes.models.messages import expected_counts, informed, observed_log_joint
from riskbayes.models.structure import (
    Parents,
    check_table,
    dependences,
    k_parents,
    topological_order,
    tree_parents,
)
from riskbayes.statistics import Statistics

SWEEPS = 20
"""Passes of `fill` over the missing cells of a table."""

EM_ITER = 20
"""The most iterations of EM, for a tree whose rows lack parents."""

EM_TOLERANCE = 1e-4
"""EM stops when the mean log-likelihood rises by less than this."""


@dataclass(frozen=True, eq=False)
class Tables(Categories):
    """The tables of `counts`: one column per (feature, values of its parents, value), the value fastest.

    Each feature has one more value than categories, for all categories that are unseen in training. As the
    value of a parent it also stands for a missing one.
    """

    sizes: Array
    """Categories of each feature."""
    parents: Array
    """Parents of each feature, one row per feature, padded with -1."""
    start: Any = field(default=None, compare=False)
    """Parameters by which missing parents in the rows of the data are counted; None if none is missing."""
    em_log_likelihood: tuple[float, ...] = field(default=(), compare=False)
    """Mean log-likelihood of the training rows' present cells, by iteration of EM."""

    own: ClassVar[Array]
    """The index of the (feature, value) of each column, in a table of p(x | y)."""
    own_starts: ClassVar[Array]
    """The index of each feature's first value in that table."""
    starts: ClassVar[Array]
    """The first column of each distribution p(x_i | values of its parents, y)."""
    unseen: ClassVar[Array]
    """Mask of the columns of unseen values."""
    free: ClassVar[Array]
    """Mask of the columns of features without parents."""
    to_own: ClassVar[csr_array]
    """Matrix that sums columns to counts of (feature, value)."""

    @property
    def parent_lists(self) -> Parents:
        """The parents of each feature, as tuples."""
        return tuple(tuple(p for p in above if p >= 0) for above in self.parents.tolist())

    @property
    def is_tree(self) -> bool:
        """True if no feature has more than one parent."""
        return self.parents.shape[1] <= 1

    def check_loaded(self, size: int) -> None:
        """Require parents without cycles, and tables of the size of each feature and its parents."""
        n = len(self.n_categories)
        require_shape(self.sizes, (n,), "i", "sizes")
        require_shape(self.parents, (n, self.parents.shape[-1] if self.parents.ndim else 0), "i", "parents")
        require(self.sizes.min(initial=1) >= 1, "a feature has no categories")
        require(
            self.parents.min(initial=-1) >= -1 and self.parents.max(initial=-1) < n, "a parent is unknown"
        )
        topological_order(self.parent_lists)
        values = (self.sizes + 1).tolist()
        cells = [math.prod([values[i], *(values[p] for p in own)]) for i, own in enumerate(self.parent_lists)]
        require(cells == self.n_categories.tolist(), "tables do not have the sizes of their features")
        super().check_loaded(size)

    def _derive(self) -> None:
        super()._derive()
        k, values = self.n_categories, self.sizes + 1
        feature = np.repeat(np.arange(len(k)), k)
        value = (np.arange(len(feature)) - self.offsets[feature]) % values[feature]
        own_starts = np.cumsum(values) - values
        own = own_starts[feature] + value
        ones = (np.ones(len(own)), (own, np.arange(len(own))))
        derived = {
            "own": own,
            "own_starts": own_starts,
            "starts": np.flatnonzero(value == 0),
            "unseen": value == self.sizes[feature],
            "free": (k == values)[feature],
            "to_own": csr_array(ones, shape=(int(values.sum()), len(own))),
        }
        for name, found in derived.items():
            object.__setattr__(self, name, found)

    def join(self, other: Frame) -> Frame:
        """Return this frame; raise an error if the other one has different tables."""
        if self != other:
            raise ValueError(
                "These statistics count other tables. The dependences come from the rows of one fit: fit all "
                "rows together."
            )
        return self

    def convert(self, arrays: Arrays, target: Frame) -> Arrays:
        """Return the arrays; raise an error if the target has different tables."""
        self.join(target)
        return arrays

    def limited_to(self, log_prob: Array, sizes: Array) -> Array:
        """Return the log probabilities given that each feature takes one of its first sizes[i] values."""
        feature = np.repeat(np.arange(len(self.sizes)), self.n_categories)
        value = self.own - self.own_starts[feature]
        p = np.where(value < np.minimum(sizes, self.sizes)[feature], np.exp(log_prob), 0.0)
        with np.errstate(divide="ignore"):
            return np.log(p / self.over_values(self.totals(p)))

    def totals(self, table: Array) -> Array:
        """Return the sums over the values of each distribution, without unseen values."""
        return np.add.reduceat(np.where(self.unseen, 0.0, table), self.starts, axis=1)

    def over_values(self, table: Array) -> Array:
        """Return one number per distribution, repeated for each of its values."""
        return np.repeat(table, np.diff(self.starts, append=len(self.own)), axis=1)

    def of_feature(self, table: Array, i: int) -> Array:
        """Return the table of one feature, of shape (classes, values of the parents, values)."""
        start, stop = self.offsets[i], self.offsets[i] + self.n_categories[i]
        return table[:, start:stop].reshape(len(table), -1, self.sizes[i] + 1)


class TreeCodes(Codes):
    """Joint codes of each feature and its parents, and which rows of a tree need inference.

    Parameters
    ----------
    joint : array of shape (m, n)
        Joint codes; the number of cells of the feature's table if it is missing.
    frame : Tables
        The tables.
    values : array of shape (m, n) or None
        Own codes of the features, -1 for missing cells; None if no cell is missing.
    hard : array of bool, shape (m,), or None
        Rows of a tree in which a feature is missing and a descendant of it present: these need inference, and
        all their joint codes are missing.
    """

    frame: Tables

    def __init__(self, joint: Array, frame: Tables, values: Array | None = None, hard: Array | None = None):
        super().__init__(joint, frame, missing=values is not None)
        self.values, self.hard = values, hard

    def __getitem__(self, rows: slice | Array) -> TreeCodes:
        if isinstance(rows, slice) and rows == slice(0, len(self)):
            return self
        if self.values is None:
            return TreeCodes(self.codes[rows], self.frame)
        hard = None if self.hard is None or not self.hard[rows].any() else self.hard[rows]
        return TreeCodes(self.codes[rows], self.frame, self.values[rows], hard)


@dataclass(frozen=True)
class TreeParameters:
    """log p(y), and log p(x_i | parents, y) in the columns of `frame`."""

    log_prior: Array
    log_prob: Array
    frame: Tables
    floored: Array


@dataclass(frozen=True)
class TreeModel(GenerativeModel):
    """Categorical features, each with parents among the others; without parents this is naive Bayes.

    The factor of a missing feature drops out of the log joint and of the counts, which is the exact marginal
    if all below it is missing too. Where it is missing and a feature below it present:

    - in a tree (one parent at most) the log joint is the exact marginal, by messages along the edges, and
      the statistics are expected counts given what is present. For the rows of the data they are those under
      the frame's start, which EM finds from the families that are present; for the residual of a scan those
      under the current parameters, so that RC steps along the gradient of the marginal.
    - with more parents the sum is too costly. There a missing parent takes a value of its own, the one that
      unseen categories have: p(x_i | parent missing, y) is the frequency in the training rows that lack it,
      smoothed by `backoff` rows of p(x_i | y) (uniform if there are neither). This is a normalised model of
      the features that are present, whose counts add and whose gradient RC follows, but not the marginal.

    Parameters
    ----------
    parents : tuple of tuples of int, optional
        The parents of each feature, without cycles.
    alpha : float
        Dirichlet pseudo-counts per cell of p(x_i | y).
    backoff : float
        Weight of p(x_i | y) in p(x_i | parents, y), in rows.
    class_alpha : float
        Pseudo-counts per class for p(y).
    class_prior : array of shape (n_classes,), optional
        A fixed p(y).
    min_categories : int or array, optional
        Lower bound on the number of categories per feature.
    structure : "tree", int or None
        How `learn` finds the parents: by Chow and Liu's tree, or up to this many per feature by Sahami's
        k-dependence. None takes `parents`.
    """

    support: ClassVar[str] = "categories"
    takes_missing: ClassVar[bool] = True
    non_negative: ClassVar[tuple[str, ...]] = ("s0", "counts")

    parents: Parents | None = None
    alpha: float = 0.0
    backoff: float = 0.0
    class_alpha: float = 0.0
    class_prior: Array | None = None
    min_categories: Array | int | None = None
    structure: str | int | None = None

    @property
    def additive(self) -> bool:  # type: ignore[override]
        """True if the parents are given, not learned."""
        return self.structure is None

    def learn(self, sample: Sample) -> Frame:
        """Return the tables of each feature given its parents, which are learned if `structure` is set.

        A feature without a present cell gets neither parents nor children.
        """
        check_codes(sample.X)
        sizes = categories_of(sample.X, self.min_categories, sample.largest).n_categories
        check_sizes(sizes)
        parents: Parents = ((),) * len(sizes) if self.parents is None else self.parents
        present, whole = present_columns(sample), sample
        if self.structure is not None and len(present):
            least = self.min_categories
            if len(present) < len(sizes):
                sample = replace(sample, X=sample.X[:, present])
                least = least if least is None or np.ndim(least) == 0 else np.asarray(least)[present]
            found = dependences(sample, least)
            tree = self.structure == "tree"
            among = tree_parents(*found) if tree else k_parents(*found, int(self.structure))
            own = {
                int(i): tuple(int(present[p]) for p in above) for i, above in zip(present, among, strict=True)
            }
            parents = tuple(own.get(i, ()) for i in range(len(sizes)))
        return self._with_start(tables_of(sizes, parents), whole)

    def _with_start(self, frame: Tables, sample: Sample) -> Tables:
        """Return the frame with the start that EM finds, if parents are missing in rows of a tree."""
        if missing_cells(sample.X) is None:
            return frame
        Z = self.encode(sample.X, frame)
        if Z.hard is None:
            return frame
        W = one_hot(sample.y, sample.n_classes, sample.w, np.dtype(np.float64))
        S, path, total = self.statistics(Z, W), [], W.sum()
        while True:
            theta = self.parameters(S)
            path.append(float((W * self.log_joint(Z, theta)).sum() / total))
            if len(path) > EM_ITER or (len(path) > 1 and path[-1] - path[-2] < EM_TOLERANCE):
                return replace(frame, start=theta, em_log_likelihood=tuple(path))
            S = self.residual_statistics(Z, W, theta)

    def encode(self, X: Array, frame: Tables) -> TreeCodes:  # type: ignore[override]
        """Return joint codes of each feature and its parents."""
        check_codes(X)
        holes = missing_cells(X)
        # All unseen categories get the same code, and missing parents too.
        codes = clipped_codes(X if holes is None else np.where(holes, np.inf, X), frame.sizes)
        joint = codes.copy()
        for i, above in enumerate(frame.parent_lists):
            step = frame.sizes[i] + 1
            for p in above:
                joint[:, i] += step * codes[:, p]
                step *= frame.sizes[p] + 1
        if holes is None:
            return TreeCodes(joint, frame)
        values = np.where(holes, -1, codes)
        hard = (holes & informed(~holes, frame.parent_lists)).any(axis=1) if frame.is_tree else None
        if hard is None or not hard.any():
            return TreeCodes(np.where(holes, frame.n_categories, joint), frame, values)
        return TreeCodes(np.where(holes | hard[:, None], frame.n_categories, joint), frame, values, hard)

    def statistics(self, Z: TreeCodes, W: Array) -> Statistics:
        """Return weighted counts of classes and of (class, feature, parents).

        In rows of a tree that lack a parent they are expected ones by the start of the frame; without a
        start, the counts of the features whose parent is present.
        """
        return self._counted(Z, W, Z.frame.start)

    def residual_statistics(self, Z: TreeCodes, E: Array, theta: TreeParameters) -> Statistics:
        """Return the same by the current parameters."""
        return self._counted(Z, E, theta)

    def _counted(self, Z: TreeCodes, W: Array, theta: TreeParameters | None) -> Statistics:
        """Return counts, expected under theta in the rows that need inference."""
        counts = np.ascontiguousarray(Z.counts(W))
        if Z.hard is not None and Z.values is not None:
            values = Z.values[Z.hard]
            if theta is None:
                counts += present_families(values, Z.frame).counts(W[Z.hard])
            else:
                counts += expected_counts(values, theta, W[Z.hard])
        return Statistics({"s0": W.sum(axis=0), "counts": counts}, Z.frame)

    def parameters(self, S: Statistics) -> TreeParameters:
        """p(x | parents, y) = (count + backoff p(x | y)) / sum, with p(x | y) smoothed by alpha."""
        frame: Tables = S.frame
        floor = COUNT_FLOOR * max(S.total, TINY)
        counts = np.where(frame.unseen, 0.0, S["counts"])
        own = (frame.to_own @ counts.T).T + self.alpha
        last = np.append(frame.own_starts[1:], own.shape[1]) - 1
        own = np.maximum(own, floor)
        own[:, last] = 0.0  # unseen values
        sums = np.add.reduceat(own, frame.own_starts, axis=1)
        given_class = own / np.repeat(sums, frame.sizes + 1, axis=1)
        p = np.where(frame.free, counts + self.alpha, counts + self.backoff * given_class[:, frame.own])
        floored = (p < floor) & ~frame.unseen
        p = np.where(frame.unseen, 0.0, np.maximum(p, floor))
        totals = frame.over_values(frame.totals(p))
        # Without pseudo-counts an unseen category has the factor 1 in every class.
        unknown = np.repeat(
            self.alpha / sums if self.alpha > 0 else 1.0 + 0 * sums, frame.n_categories, axis=1
        )
        log_prob = np.log(np.where(frame.unseen, unknown, p / totals))
        log_prior = log_class_prior(S["s0"], self.class_alpha, self.class_prior)
        return TreeParameters(log_prior, log_prob, frame, np.count_nonzero(floored, axis=1))

    def is_legal(self, S: Statistics) -> bool:
        """True if every class has a mass. Cells need no check: they are floored."""
        return S.least_mass() + self.class_alpha > 0

    def log_joint(self, Z: TreeCodes, theta: TreeParameters) -> Array:
        """log p(y) + sum_i log p(x_i | parents, y) over the features that are present."""
        joint = Z.times(theta.log_prob)[0] + theta.log_prior
        if Z.hard is not None and Z.values is not None:
            joint[Z.hard] = observed_log_joint(Z.values[Z.hard], theta)
        return joint

    def contributions(self, Z: TreeCodes, theta: TreeParameters) -> Array:
        """Return log p(x_i | parents, y) of each column: a column is given its own factor.

        In rows of a tree that lack a parent, it is given log p(x_i | present columns before it, y), in the
        order of the tree from its root.
        """
        gone = Z.is_missing
        codes = np.where(gone, 0, Z.codes).astype(np.int64)
        found = np.where(gone[:, :, None], 0.0, theta.log_prob.T[codes + theta.frame.offsets])
        if Z.hard is not None and Z.values is not None:
            values, before = Z.values[Z.hard], theta.log_prior
            known = np.full_like(values, -1)
            for i in topological_order(theta.frame.parent_lists):
                known[:, i] = values[:, i]
                joint = observed_log_joint(known, theta)
                found[Z.hard, i] = joint - before
                before = joint
        return found

    def describe(self, theta: TreeParameters) -> Iterator[Described]:
        """Yield the log probabilities of the categories, given those of the parents."""
        frame = theta.frame
        for i, above in enumerate(frame.parent_lists):
            # The value varies fastest, then the first parent; the last value of each is the unseen one.
            of = [frame.sizes[j] for j in (i, *above)]
            codes = np.stack(np.unravel_index(np.arange(frame.n_categories[i]), [k + 1 for k in of[::-1]]))
            known = (of > codes[::-1].T).all(axis=1)
            cells = codes[::-1].T[known]
            named = [
                tuple(pair for j, v in zip((i, *above), cell, strict=True) for pair in ((j, None), (j, v)))[
                    1:
                ]
                for cell in cells.tolist()
            ]
            given = ", ".join(["{} = {}"] * len(above))
            name = f"log probability of {{}} given {given}" if above else "log probability of {}"
            values = frame.of_feature(theta.log_prob, i).reshape(len(theta.log_prior), -1)[:, known]
            yield Described(np.full(len(cells), i), [name] * len(cells), values, np.ones_like(values), named)

    def sample_rows(self, theta: TreeParameters, y: Array, rng: np.random.Generator) -> Array:
        """Draw each feature after its parents, by inverting its cumulative distribution."""
        sizes, n = theta.frame.sizes, len(y)
        X, parents = np.zeros((n, len(sizes)), dtype=np.int64), theta.frame.parent_lists
        for i in topological_order(parents):
            above, step = np.zeros(n, dtype=np.int64), 1
            for p in parents[i]:
                above, step = above + step * X[:, p], step * (sizes[p] + 1)
            p_own = np.exp(theta.frame.of_feature(theta.log_prob, i)[y, above, : sizes[i]])
            X[:, i] = (rng.random(n)[:, None] > np.cumsum(p_own, axis=1)[:, :-1]).sum(axis=1)
        return X

    def fill(
        self, Z: TreeCodes, theta: TreeParameters, y: Array, rng: np.random.Generator | None = None
    ) -> Array:
        """Fill by `SWEEPS` passes over the missing cells, each given all other cells of its row.

        With `rng` a pass draws the cells. This is Gibbs sampling: the draws are from p(missing | present, y)
        as far as the sweeps have forgotten their start. Without, a pass takes the most probable values, until
        none changes: a local maximum of p(missing | present, y). Unseen categories come back as the number of
        categories.
        """
        sizes, parents, logs = theta.frame.sizes, theta.frame.parent_lists, theta.log_prob
        X = Z.codes % (sizes + 1) if Z.values is None else Z.values.copy()
        holes = X < 0
        children = [[c for c, above in enumerate(parents) if i in above] for i in range(len(sizes))]

        def log_probs(i: int, rows: Array) -> Array:
            """Return log p(x_i | parents, y) of the values that the rows hold."""
            known = np.where(X[rows] < 0, sizes, X[rows])
            cell, step = known[:, i], sizes[i] + 1
            for p in parents[i]:
                cell, step = cell + step * known[:, p], step * (sizes[p] + 1)
            return logs[y[rows], theta.frame.offsets[i] + cell]

        order = [i for i in topological_order(parents) if holes[:, i].any()]
        for sweep in range(SWEEPS + 1):  # the first one knows only the parents that are present or filled
            before = X.copy()
            for i in order:
                rows, found = np.flatnonzero(holes[:, i]), []
                for value in range(sizes[i]):
                    X[rows, i] = value
                    factors = [i, *(c for c in children[i] if sweep > 0 or not holes[:, c].any())]
                    found.append(sum(log_probs(f, rows) for f in factors))
                X[rows, i] = chosen(np.stack(found, axis=1), rng)
            if rng is None and (before == X).all():
                break
        return X.astype(np.float64)

    def expected_statistics(self, theta: TreeParameters, total: float) -> Statistics:
        """Return total p(y) p(parents, x_i | y) of rows without missing cells, exactly.

        Under ML `parameters` of these counts is theta. The converse, that theta of the data gives the counts
        of the data, holds if the parents of each feature are in a common family, as in a tree; the model
        takes other parents for less dependent than they may be in the data. Dense networks raise an error
        (see `family_marginals`).
        """
        sizes, s0 = theta.frame.sizes, total * np.exp(theta.log_prior)
        parents = theta.frame.parent_lists
        factors = []
        for i, above in enumerate(parents):
            # The last parent is the slowest axis. The last value of each axis, unseen, is cut off.
            axes = [len(s0), *(sizes[j] + 1 for j in (*above[::-1], i))]
            table = np.exp(theta.frame.of_feature(theta.log_prob, i).reshape(axes))
            factors.append(((*above[::-1], i), table[:, *(slice(k - 1) for k in axes[1:])]))
        marginals = family_marginals(factors, topological_order(parents))
        counts = [
            np.pad(s0.reshape(-1, *(1,) * (p.ndim - 1)) * p, [(0, 0)] + [(0, 1)] * (p.ndim - 1))
            for p in marginals
        ]
        return Statistics(
            {"s0": s0, "counts": np.concatenate([c.reshape(len(s0), -1) for c in counts], axis=1)},
            theta.frame,
        )

    def anchor_statistics(self, S: Statistics) -> Statistics:
        """Return the data's frequencies of parents, times the closed form's p(x_i | parents, y).

        The closed form maximises their likelihood, distribution by distribution; under ML they are the
        statistics of the data, divided by their total. Unlike `expected_statistics` they need no joint
        distribution of the parents, whose cost is exponential in a dense network.
        """
        theta, frame = self.parameters(S), S.frame
        s0, mass = np.exp(theta.log_prior), np.maximum(S["s0"], TINY)
        seen = frame.totals(S["counts"])
        shares = frame.over_values((s0 / mass)[:, None] * seen)
        counts = np.where(frame.unseen, 0.0, shares * np.exp(theta.log_prob))
        return Statistics({"s0": s0, "counts": counts}, frame)

    def degrees_of_freedom(self, S: Statistics) -> float:
        """Return 1 per class, and values - 1 per distribution times the data's share in its estimate."""
        frame: Tables = S.frame
        seen = frame.totals(S["counts"])
        values = np.diff(frame.starts, append=len(frame.own)) - 1
        prior = np.where(frame.free[frame.starts], self.alpha * values, self.backoff)
        share = np.where(seen > 0, seen / np.maximum(seen + prior, TINY), 0.0)
        return float(len(S["s0"]) + (share * (values - 1)).sum())

    def log_likelihood(self, S: Statistics, theta: TreeParameters) -> float:
        """sum_y s0 log p(y) + sum_iy s_iy log p(x_i | parents, y): of rows that are as S counts them."""
        return float(S["s0"] @ theta.log_prior + (S.to_frame(theta.frame)["counts"] * theta.log_prob).sum())


def present_families(values: Array, frame: Tables) -> Codes:
    """Return the joint codes of rows of a tree, missing where the feature or its parent is."""
    joint = values.copy()
    for i, above in enumerate(frame.parent_lists):
        absent = values[:, i] < 0
        for p in above:
            joint[:, i] += (frame.sizes[i] + 1) * values[:, p]
            absent |= values[:, p] < 0
        joint[absent, i] = frame.n_categories[i]
    return Codes(joint, frame, missing=True)


def present_columns(sample: Sample) -> Array:
    """Return the indices of the columns that some row of positive weight has."""
    holes = missing_cells(sample.X)
    if holes is None:
        return np.arange(sample.X.shape[1])
    kept = slice(None) if sample.w is None else sample.w > 0
    return np.flatnonzero(~holes[kept].all(axis=0))


def tables_of(sizes: Array, parents: Parents) -> Tables:
    """Return the tables of features with these numbers of categories, each given its parents."""
    cells = [math.prod(int(sizes[j]) + 1 for j in (i, *above)) for i, above in enumerate(parents)]
    for i, above in enumerate(parents):
        check_table(cells[i], i, above)
    most = max(map(len, parents), default=0)
    filled = np.array([[*above, *[-1] * (most - len(above))] for above in parents], dtype=np.int64)
    return Tables(np.array(cells), sizes, filled)
