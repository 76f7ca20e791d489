"""Augmented naive Bayes (TAN, k-DB): psi(x) = (1, one-hot of each feature together with its parents)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.sparse import csr_array

from riskbayes.arrays import Array
from riskbayes.exceptions import ColumnError
from riskbayes.frames import Arrays, Categories, Frame
from riskbayes.models.base import GenerativeModel, Sample, draw_classes, log_class_prior
from riskbayes.models.categorical import COUNT_FLOOR, TINY
from riskbayes.models.codes import Codes, categories_of, check_codes, check_sizes, clipped_codes
from riskbayes.models.column_order import column_order
from riskbayes.models.elimination import family_marginals
from riskbayes.statistics import Statistics

Parents = tuple[tuple[int, ...], ...]

MOST_CELLS = 2**28
"""Cells of a table of counts: more would not fit in memory, and have hardly a row each."""

DIGITS = 9
"""Decimals of a mutual information that count."""


@dataclass(frozen=True, eq=False)
class Tables(Categories):
    """`counts` has one column a (feature, values of its parents, value), the value fastest.

    Beside its categories each feature has one more, for what was not there in training.
    """

    sizes: Array
    """Categories of each feature."""
    parents: Array
    """Parents of each feature, a row each, filled up with -1."""

    own: ClassVar[Array]
    """For each column, the place of its (feature, value) among those of p(x | y)."""
    own_starts: ClassVar[Array]
    """Where each feature begins among these."""
    starts: ClassVar[Array]
    """Where each distribution, of a feature given its parents, begins."""
    unseen: ClassVar[Array]
    """Columns of the value that was not there in training."""
    free: ClassVar[Array]
    """Columns of features without parents."""
    to_own: ClassVar[csr_array]
    """Adds columns up to the counts of (feature, value)."""

    @property
    def parent_lists(self) -> Parents:
        """The parents of each feature."""
        return tuple(tuple(p for p in above if p >= 0) for above in self.parents.tolist())

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
        """The same tables, or none."""
        if self != other:
            raise ValueError(
                "These statistics count other tables. The dependences come from the rows of one fit: fit all "
                "rows together."
            )
        return self

    def convert(self, arrays: Arrays, target: Frame) -> Arrays:
        """Nothing to convert between the same tables."""
        self.join(target)
        return arrays

    def __getstate__(self) -> dict:
        return {name: getattr(self, name) for name in ("n_categories", "sizes", "parents")}

    def __setstate__(self, state: dict) -> None:
        object.__setattr__(self, "sizes", state["sizes"])
        object.__setattr__(self, "parents", state["parents"])
        super().__setstate__(state)

    def limited_to(self, log_prob: Array, sizes: Array) -> Array:
        """Return the log probabilities given that each feature takes one of its first sizes[i] values."""
        feature = np.repeat(np.arange(len(self.sizes)), self.n_categories)
        value = self.own - self.own_starts[feature]
        p = np.where(value < np.minimum(sizes, self.sizes)[feature], np.exp(log_prob), 0.0)
        with np.errstate(divide="ignore"):
            return np.log(p / self.over_values(self.totals(p)))

    def totals(self, table: Array) -> Array:
        """Return the sums over the values of each distribution, without what was not there in training."""
        return np.add.reduceat(np.where(self.unseen, 0.0, table), self.starts, axis=1)

    def over_values(self, table: Array) -> Array:
        """Return the numbers of distributions, repeated for each of their values."""
        return np.repeat(table, np.diff(self.starts, append=len(self.own)), axis=1)

    def of_feature(self, table: Array, i: int) -> Array:
        """The table of one feature, of shape (classes, values of the parents, values)."""
        start, stop = self.offsets[i], self.offsets[i] + self.n_categories[i]
        return table[:, start:stop].reshape(len(table), -1, self.sizes[i] + 1)


@dataclass(frozen=True)
class TreeParameters:
    """Logarithms of p(y) and of p(x_i | parents, y) in the columns of `frame`."""

    log_prior: Array
    log_prob: Array
    frame: Tables
    floored: Array


@dataclass(frozen=True)
class TreeModel(GenerativeModel):
    """Categorical features, each with parents among the others; without parents it is naive Bayes.

    Parameters
    ----------
    parents : tuple of tuples of int, optional
        The parents of each feature, without cycles.
    alpha : float
        Dirichlet pseudo-counts a cell of p(x_i | y).
    backoff : float
        Rows' worth of p(x_i | y) in p(x_i | parents, y).
    class_alpha : float
        Pseudo-counts a class for p(y).
    class_prior : array of shape (n_classes,), optional
        A fixed p(y).
    min_categories : int or array, optional
        At least so many categories a feature, observed or not.
    structure : "tree", int or None
        How `learn` chooses the parents: Chow and Liu's tree, or so many parents a feature at most. None
        takes `parents`.
    """

    support: ClassVar[str] = "categories"
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
        """True where the parents are given."""
        return self.structure is None

    def learn(self, sample: Sample) -> Frame:
        """Return the tables of each feature and its parents, which dependences between features determine."""
        check_codes(sample.X)
        sizes = categories_of(sample.X, self.min_categories, sample.largest).n_categories
        check_sizes(sizes)
        parents: Parents = ((),) * len(sizes) if self.parents is None else self.parents
        if self.structure is not None:
            found = dependences(sample, self.min_categories)
            tree = self.structure == "tree"
            parents = tree_parents(*found) if tree else k_parents(*found, int(self.structure))
        return tables_of(sizes, parents)

    def encode(self, X: Array, frame: Tables) -> Codes:  # type: ignore[override]
        """Return joint codes of each feature and its parents."""
        check_codes(X)
        codes = clipped_codes(X, frame.sizes)  # one code stands for all that are unseen
        joint = codes.copy()
        for i, above in enumerate(frame.parent_lists):
            step = frame.sizes[i] + 1
            for p in above:
                joint[:, i] += step * codes[:, p]
                step *= frame.sizes[p] + 1
        return Codes(joint, frame)

    def statistics(self, Z: Codes, W: Array) -> Statistics:
        """Weighted counts of classes and of (class, feature, parents)."""
        return Statistics({"s0": W.sum(axis=0), "counts": np.ascontiguousarray(Z.counts(W))}, Z.frame)

    def parameters(self, S: Statistics) -> TreeParameters:
        """p(x | parents, y) = (count + backoff p(x | y)) / sum, with p(x | y) smoothed by alpha."""
        frame: Tables = S.frame
        floor = COUNT_FLOOR * max(S.total, TINY)
        counts = np.where(frame.unseen, 0.0, S["counts"])
        own = (frame.to_own @ counts.T).T + self.alpha
        last = np.append(frame.own_starts[1:], own.shape[1]) - 1
        own = np.maximum(own, floor)
        own[:, last] = 0.0  # what was not there in training
        sums = np.add.reduceat(own, frame.own_starts, axis=1)
        given_class = own / np.repeat(sums, frame.sizes + 1, axis=1)
        p = np.where(frame.free, counts + self.alpha, counts + self.backoff * given_class[:, frame.own])
        floored = (p < floor) & ~frame.unseen
        p = np.where(frame.unseen, 0.0, np.maximum(p, floor))
        totals = frame.over_values(frame.totals(p))
        # Without pseudo-counts nothing is known of an unseen category: it says nothing of the class.
        unknown = np.repeat(
            self.alpha / sums if self.alpha > 0 else 1.0 + 0 * sums, frame.n_categories, axis=1
        )
        log_prob = np.log(np.where(frame.unseen, unknown, p / totals))
        log_prior = log_class_prior(S["s0"], self.class_alpha, self.class_prior)
        return TreeParameters(log_prior, log_prob, frame, np.count_nonzero(floored, axis=1))

    def is_legal(self, S: Statistics) -> bool:
        """Every class keeps a mass; cells are floored."""
        return S.least_mass() + self.class_alpha > 0

    def log_joint(self, Z: Codes, theta: TreeParameters) -> Array:
        """log p(y) + sum_i log p(x_i | parents, y)."""
        return Z.times(theta.log_prob)[0] + theta.log_prior

    def sample(self, theta: TreeParameters, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """A class, then each feature after its parents, by inverting its cumulative distribution."""
        sizes, y = theta.frame.sizes, draw_classes(theta.log_prior, n, rng)
        X, parents = np.zeros((n, len(sizes)), dtype=np.int64), theta.frame.parent_lists
        for i in topological_order(parents):
            above, step = np.zeros(n, dtype=np.int64), 1
            for p in parents[i]:
                above, step = above + step * X[:, p], step * (sizes[p] + 1)
            p_own = np.exp(theta.frame.of_feature(theta.log_prob, i)[y, above, : sizes[i]])
            X[:, i] = (rng.random(n)[:, None] > np.cumsum(p_own, axis=1)[:, :-1]).sum(axis=1)
        return X, y

    def expected_statistics(self, theta: TreeParameters, total: float) -> Statistics:
        """Counts of `total` rows: total p(y) p(parents, x_i | y), exactly.

        Under ML `parameters` gives theta back. The converse, the data's own counts from their theta, holds
        where the parents of a feature have a family in common, as in a tree; other parents the model takes
        for less dependent than the data may have them. Dense networks are refused (see `family_marginals`).
        """
        sizes, s0 = theta.frame.sizes, total * np.exp(theta.log_prior)
        parents = theta.frame.parent_lists
        factors = []
        for i, above in enumerate(parents):
            # The last parent is the slowest; what was not there in training never occurs.
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
        """The data's shares of the values of parents, and the closed form's values of features given them.

        The closed form has the largest likelihood of them, distribution by distribution; under ML they are
        the data's own statistics, of total one. They need no joint distribution of the parents, whose cost
        is exponential where a network is dense.
        """
        theta, frame = self.parameters(S), S.frame
        s0, mass = np.exp(theta.log_prior), np.maximum(S["s0"], TINY)
        seen = frame.totals(S["counts"])
        shares = frame.over_values((s0 / mass)[:, None] * seen)
        counts = np.where(frame.unseen, 0.0, shares * np.exp(theta.log_prob))
        return Statistics({"s0": s0, "counts": counts}, frame)

    def degrees_of_freedom(self, S: Statistics) -> float:
        """By class, 1 and all values but one of each distribution, by the data's share in its estimate."""
        frame: Tables = S.frame
        seen = frame.totals(S["counts"])
        values = np.diff(frame.starts, append=len(frame.own)) - 1
        prior = np.where(frame.free[frame.starts], self.alpha * values, self.backoff)
        share = np.where(seen > 0, seen / np.maximum(seen + prior, TINY), 0.0)
        return float(len(S["s0"]) + (share * (values - 1)).sum())

    def log_likelihood(self, S: Statistics, theta: TreeParameters) -> float:
        """sum_y s0 log p(y) + sum_iy s_iy log p(x_i | parents, y)."""
        return float(S["s0"] @ theta.log_prior + (S.to_frame(theta.frame)["counts"] * theta.log_prob).sum())


def tables_of(sizes: Array, parents: Parents) -> Tables:
    """Return the tables of features with so many categories, each given its parents."""
    cells = []
    for i, above in enumerate(parents):
        cells.append(math.prod(int(sizes[j]) + 1 for j in (i, *above)))
        check_table(cells[-1], i, above)
    most = max(map(len, parents), default=0)
    filled = np.array([[*above, *[-1] * (most - len(above))] for above in parents], dtype=np.int64)
    return Tables(np.array(cells), sizes, filled)


def check_table(cells: int, column: int, parents: tuple[int, ...] = ()) -> None:
    """Refuse tables of counts that cannot be kept."""
    if cells > MOST_CELLS:
        given = f"with its {len(parents)} parents" if parents else "and its pairs with the others"
        raise ColumnError(
            column,
            f"{given} has {cells:.3g} cells to count, more than {MOST_CELLS:.3g}. Merge its rare categories, "
            "code its categories from 0, or give it fewer parents.",
        )


def topological_order(parents: Parents) -> list[int]:
    """Features, each after its parents."""
    order: list[int] = []
    while len(order) < len(parents):
        ready = [i for i, above in enumerate(parents) if i not in order and set(above) <= set(order)]
        if not ready:
            raise ValueError("The parents of the features go round in a circle.")
        order += ready
    return order


def dependences(sample: Sample, least: Array | int | None = None) -> tuple[Array, Array]:
    """Return the features in the order of I(x_i; y), and I(x_i; x_j | y) of every pair.

    Both come from the counts of pairs by class. Where features tell as much of the class, `column_order`
    decides; those of other numbers of categories, at least `least`, are never interchangeable.
    """
    X, y, w, n_classes = sample.X, sample.y, sample.w, sample.n_classes
    frame = categories_of(X)
    largest = int(np.argmax(frame.n_categories))
    check_table(n_classes * int(frame.n_categories.sum()) ** 2, largest)
    weight = np.ones(len(y)) if w is None else w
    pairs = []
    for k in range(n_classes):
        hot = Codes(X[y == k], frame).one_hot
        weighted = csr_array(
            (hot.data * np.repeat(weight[y == k], X.shape[1]), hot.indices, hot.indptr), hot.shape
        )
        pairs.append((hot.T @ weighted).toarray())
    joint = np.stack(pairs) / weight.sum()
    cells = np.diagonal(joint, axis1=1, axis2=2)
    by_class = cells[:, : frame.n_categories[0]].sum(axis=1)
    given = cells / by_class[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(joint / (given[:, :, None] * cells[:, None, :]))
        pair = np.where(joint > 0, joint * ratio, 0.0).sum(axis=0)
        single = np.where(cells > 0, cells * np.log(given / cells.sum(axis=0)), 0.0).sum(axis=0)
    starts = frame.offsets
    # Their last digits depend on the order of rows and columns: they decide nothing.
    between = np.add.reduceat(np.add.reduceat(pair, starts, axis=0), starts, axis=1).round(DIGITS)
    with_class = np.add.reduceat(single, starts).round(DIGITS)
    sizes = categories_of(X, least).n_categories
    return column_order(X, y, w, -with_class, sizes, np.diagonal(between)), between


def tree_parents(order: Array, between: Array) -> Parents:
    """Chow and Liu's tree, of largest mutual information given the class; the first column is its root."""
    from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree  # here: slow to import

    n = len(order)
    place = np.argsort(order)
    a, b = np.triu_indices(n, 1)
    first, last = np.minimum(place[a], place[b]), np.maximum(place[a], place[b])
    # Lengths are places in a strict order of edges, for there is one shortest tree then; zero is no edge.
    lengths = np.zeros((n, n))
    lengths[a, b] = 1.0 + np.argsort(np.lexsort((last, first, -between[a, b])))
    tree = minimum_spanning_tree(csr_array(lengths))
    root = int(order[0])
    _, above = breadth_first_order(tree, root, directed=False)
    return tuple(() if i == root or above[i] < 0 else (int(above[i]),) for i in range(n))


def k_parents(order: Array, between: Array, k: int) -> Parents:
    """Sahami's k-dependence: features that tell most of the class first, each with up to k before it."""
    parents: list[tuple[int, ...]] = [()] * len(order)
    for place, i in enumerate(order):
        before = order[:place]
        best = before[np.argsort(-between[i, before], kind="stable")[:k]]
        parents[i] = tuple(int(p) for p in best)
    return tuple(parents)
