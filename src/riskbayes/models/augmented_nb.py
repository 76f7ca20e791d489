"""Augmented naive Bayes (TAN, k-DB): psi(x) = (1, one-hot of each feature together with its parents).

The parents are given, or learned by :mod:`riskbayes.models.structure`; the frame `Tables` holds them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from riskbayes.arrays import Array, one_hot
from riskbayes.em import em
from riskbayes.frames import Frame
from riskbayes.models.base import Described, GenerativeModel, Sample, log_class_prior
from riskbayes.models.categorical import COUNT_FLOOR, TINY, chosen
from riskbayes.models.codes import (
    categories_of,
    check_codes,
    check_sizes,
    clipped_codes,
    missing_cells,
)
from riskbayes.models.coordinates import ClassPrior, TableCoordinates
from riskbayes.models.elimination import family_marginals
from riskbayes.models.messages import expected_counts, fill_tree, informed, observed_log_joint
from riskbayes.models.parent_tables import Tables, TreeCodes, present_families, tables_of
from riskbayes.models.structure import (
    Parents,
    dependences,
    k_parents,
    topological_order,
    tree_parents,
)
from riskbayes.models.traits import Traits
from riskbayes.statistics import Statistics

SWEEPS = 20
"""Passes of `fill` over the missing cells of a table."""

EM_ITER = 20
"""The most iterations of EM, for a tree whose rows lack parents."""

EM_TOLERANCE = 1e-4
"""EM stops when the mean log-likelihood rises by less than this."""


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

    _non_negative: ClassVar[tuple[str, ...]] = ("s0", "counts")

    parents: Parents | None = None
    alpha: float = 0.0
    backoff: float = 0.0
    class_alpha: float = 0.0
    class_prior: Array | None = None
    min_categories: Array | int | None = None
    structure: str | int | None = None

    @property
    def traits(self) -> Traits:  # type: ignore[override]
        """Statistics of separate fits can be added if the parents are given, not learned."""
        return Traits("categories", takes_missing=True, additive=self.structure is None)

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
        """Return the frame with the start that EM finds, if parents are missing in rows of a tree.

        With pseudo-counts a step may lower the likelihood of the rows: the one before it is returned.
        """
        if missing_cells(sample.X) is None:
            return frame
        Z = self.encode(sample.X, frame)
        if Z.hard is None:
            return frame
        W = one_hot(sample.y, sample.n_classes, sample.w, np.dtype(np.float64))
        total = W.sum()

        def expect(theta: TreeParameters) -> tuple[Statistics, float]:
            value = float((W * self.log_joint(Z, theta)).sum() / total)
            return self.residual_statistics(Z, W, theta), value

        best, path = em(self.statistics(Z, W), self.parameters, expect, EM_ITER, EM_TOLERANCE)
        return replace(frame, start=best, em_log_likelihood=tuple(path))

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
        prior = np.where(frame.free, self.alpha, self.backoff * given_class[:, frame.own])
        p = counts + (prior if frame.prior is None else frame.prior)
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

    def recursive_prior(self, S: Statistics) -> Array:
        """Return pseudo-counts that are `backoff` rows of p(x | all parents but the last, y) in each cell.

        That is smoothed in turn by `backoff` rows without the last but one, down to p(x | y).
        """
        frame: Tables = S.frame
        counts, found = np.where(frame.unseen, 0.0, np.maximum(S["counts"], 0.0)), []
        for i, above in enumerate(frame.parent_lists):
            own = frame.of_feature(counts, i)
            r, values = len(own), own.shape[2]
            known = np.arange(values) < values - 1
            p = own.sum(axis=1, keepdims=True) + np.where(known, self.alpha, 0.0)
            p = p / np.maximum(p.sum(axis=2, keepdims=True), TINY)
            cells = 1
            for parent in above[:-1]:
                cells *= int(frame.sizes[parent] + 1)
                part = own.reshape(r, -1, cells, values).sum(axis=1)
                p = np.tile(p, (1, cells // p.shape[1], 1))
                mass = part.sum(axis=2, keepdims=True) + self.backoff
                p = np.where(mass > 0, (part + self.backoff * p) / np.where(mass > 0, mass, 1.0), p)
            p = self.backoff * np.tile(p, (1, own.shape[1] // p.shape[1], 1))
            found.append((p if above else np.where(known, self.alpha, 0.0) + 0.0 * p).reshape(r, -1))
        return np.concatenate(found, axis=1)

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

    def cell_densities(self, Z: TreeCodes, theta: TreeParameters, j: int) -> tuple[Array, Array]:
        """Return the log probabilities of the values of a cell in a tree, given the observed cells."""
        if not theta.frame.is_tree:
            raise NotImplementedError(
                "With two or more parents a missing cell is left out with the columns that it is a parent "
                "of, so that there is no distribution of the cell. Fit TreeAugmentedNB."
            )
        assert Z.values is not None
        X, before = np.where(Z.values < 0, np.nan, Z.values), self.log_joint(Z, theta)
        found = []
        for value in range(theta.frame.sizes[j]):
            X[:, j] = value
            found.append(self.log_joint(self.encode(X, theta.frame), theta) - before)
        return np.stack(found, axis=1), np.ones((1, len(found)))

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
            units, shares = np.ones_like(values), np.exp(values)
            yield Described(np.full(len(cells), i), [name] * len(cells), values, units, named, shares)

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
        """Return the rows with the mode of p(missing | present, y) in their missing cells, or with a draw.

        Both are exact in a tree. With more parents `SWEEPS` passes go over the missing cells, each given all
        other cells of its row. With `rng` a pass draws the cells. This is Gibbs sampling: the draws are from
        p(missing | present, y) as far as the sweeps have forgotten their start. Without, a pass takes the
        most probable values, until none changes: a local maximum. Unseen categories come back as the number
        of categories.
        """
        sizes, parents, logs = theta.frame.sizes, theta.frame.parent_lists, theta.log_prob
        if Z.values is None:
            return (Z.codes % (sizes + 1)).astype(np.float64)
        if theta.frame.is_tree:
            return fill_tree(Z.values, theta, y, rng).astype(np.float64)
        X, holes = Z.values.copy(), Z.values < 0
        children = [[c for c, above in enumerate(parents) if i in above] for i in range(len(sizes))]

        def log_probs(i: int, rows: Array) -> Array:
            """Return log p(x_i | parents, y) of the values that the rows hold."""
            known = np.where(X[rows] < 0, sizes, X[rows])
            cell, step = known[:, i], sizes[i] + 1
            for p in parents[i]:
                cell, step = cell + step * known[:, p], step * (sizes[p] + 1)
            return logs[y[rows], theta.frame.offsets[i] + cell]

        order = [i for i in topological_order(parents) if holes[:, i].any()]
        for _ in range(SWEEPS):
            before = X.copy()
            for i in order:
                rows, found = np.flatnonzero(holes[:, i]), []
                known = X[rows] >= 0  # in the first pass, the cells that are present or filled already
                for value in range(sizes[i]):
                    X[rows, i] = value
                    below = sum(np.where(known[:, c], log_probs(c, rows), 0.0) for c in children[i])
                    found.append(log_probs(i, rows) + below)
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
        statistics of the data, divided by their total. `backoff` counts as rows of each distribution: nothing
        else holds those that a class has no rows of, which other classes' rows push without end. Unlike
        `expected_statistics` they need no joint distribution of the parents, whose cost is exponential in a
        dense network.
        """
        theta, frame = self.parameters(S), S.frame
        s0, mass = np.exp(theta.log_prior), np.maximum(S["s0"], TINY)
        seen = frame.totals(S["counts"]) + np.where(frame.free[frame.starts], 0.0, self.backoff)
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

    def coordinates(self, S: Statistics) -> BranchCoordinates:
        """Return log p(y) and the log probabilities given the parents."""
        return BranchCoordinates(S, self)

    def log_likelihood(self, S: Statistics, theta: TreeParameters) -> float:
        """sum_y s0 log p(y) + sum_iy s_iy log p(x_i | parents, y): of rows that are as S counts them."""
        return float(S["s0"] @ theta.log_prior + (S.to_frame(theta.frame)["counts"] * theta.log_prob).sum())


def present_columns(sample: Sample) -> Array:
    """Return the indices of the columns that some row of positive weight has."""
    holes = missing_cells(sample.X)
    if holes is None:
        return np.arange(sample.X.shape[1])
    kept = slice(None) if sample.w is None else sample.w > 0
    return np.flatnonzero(~holes[kept].all(axis=0))


class BranchCoordinates(TableCoordinates):
    """log p(y), and the log probabilities of each feature given its parents."""

    def __init__(self, S: Statistics, model: TreeModel):
        frame: Tables = S.frame
        self.alpha, self.backoff = model.alpha, model.backoff
        values = np.diff(frame.starts, append=len(frame.own)) - 1
        each = np.where(frame.free, model.alpha, model.backoff / frame.over_values(values[None, :])[0])
        floor, prior = COUNT_FLOOR * max(S.total, TINY), ClassPrior(model.class_alpha, model.class_prior)
        groups = frame.totals, frame.over_values
        super().__init__(S, model.anchor_statistics(S), each, floor, prior, groups)

    def logs(self, theta: TreeParameters) -> Array:
        """Return the log probabilities; zero for unseen values, which no training row has."""
        return np.where(theta.frame.unseen, 0.0, theta.log_prob)

    def shares(self, theta: TreeParameters) -> Array:
        """Return the probabilities; zero for unseen values."""
        return np.where(theta.frame.unseen, 0.0, np.exp(theta.log_prob))

    def counts(self, logs: Array, mass: Array) -> Array:
        """Return the counts of such statistics.

        With p(x | y) = (T + alpha) / sum (T + alpha), where T are the smoothed counts summed over the
        parents, `parameters` finds the same p(x | y) in these counts.
        """
        frame: Tables = self.S.frame
        if frame.prior is not None:
            return np.where(frame.unseen, 0.0, self.distribution(logs) * self.mass - frame.prior)
        smoothed = np.where(frame.unseen, 0.0, self.distribution(logs) * self.mass)
        own = (frame.to_own @ smoothed.T).T + self.alpha
        own[:, np.append(frame.own_starts[1:], own.shape[1]) - 1] = 0.0  # unseen values
        sums = np.repeat(np.add.reduceat(own, frame.own_starts, axis=1), frame.sizes + 1, axis=1)
        prior = np.where(frame.free, self.alpha, self.backoff * (own / sums)[:, frame.own])
        return np.where(frame.unseen, 0.0, smoothed - prior)
