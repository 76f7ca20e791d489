"""Augmented naive Bayes: psi(x) = (1, one-hot of each feature together with its parents)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from scipy.sparse import csr_array

from riskbayes.arrays import Array
from riskbayes.frames import Arrays, Categories, Frame
from riskbayes.models.base import GenerativeModel, draw_classes, log_class_prior
from riskbayes.models.categorical import COUNT_FLOOR, TINY
from riskbayes.models.codes import Codes, categories_of, check_codes
from riskbayes.statistics import Statistics

Parents = tuple[tuple[int, ...], ...]

MOST_CELLS = 2**28
"""Cells of a table of counts: more would not fit in memory, and have hardly a row each."""


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
        leaves them as given.
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
    def additive(self) -> bool:
        """True where the parents are given."""
        return self.structure is None

    def learn(self, X: Array, y: Array, w: Array | None, n_classes: int) -> Self:
        """The parents that the dependences between these rows' features determine."""
        if self.structure is None:
            return self
        check_codes(X)
        found = dependences(X, y, w, n_classes)
        parents = tree_parents(*found) if self.structure == "tree" else k_parents(*found, int(self.structure))
        return replace(self, parents=parents)

    def _parents(self, n: int) -> Parents:
        return ((),) * n if self.parents is None else self.parents

    def prepare(self, X: Array, sample_weight: Array | None = None) -> Codes:
        """Joint codes of each feature and its parents."""
        return self._joint(X, categories_of(X, self.min_categories).n_categories)

    def rows(self, X: Array, theta: TreeParameters) -> Codes:
        """The same, in the tables of theta."""
        return self._joint(X, theta.frame.sizes)

    def _joint(self, X: Array, sizes: Array) -> Codes:
        check_codes(X)
        codes = np.minimum(X.astype(np.int64), sizes)  # one code stands for all that are unknown
        joint, number, parents = codes.copy(), sizes + 1, self._parents(X.shape[1])
        for i, above in enumerate(parents):
            check_table(math.prod(int(sizes[j]) + 1 for j in (i, *above)), i, above)
            for p in above:
                joint[:, i] += number[i] * codes[:, p]
                number = number.copy()
                number[i] *= sizes[p] + 1
        most = max(map(len, parents), default=0)
        table = np.array([[*above, *[-1] * (most - len(above))] for above in parents], dtype=np.int64)
        return Codes(joint, Tables(number, sizes, table))

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
        lengths = np.diff(frame.starts, append=p.shape[1])
        totals = np.repeat(np.add.reduceat(p, frame.starts, axis=1), lengths, axis=1)
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
        return Z.times(theta.log_prob, theta.frame)[0] + theta.log_prior

    def sample(self, theta: TreeParameters, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """A class, then each feature after its parents, by inverting its cumulative distribution."""
        sizes, y = theta.frame.sizes, draw_classes(theta.log_prior, n, rng)
        X, parents = np.zeros((n, len(sizes)), dtype=np.int64), self._parents(len(sizes))
        for i in topological_order(parents):
            above, step = np.zeros(n, dtype=np.int64), 1
            for p in parents[i]:
                above, step = above + step * X[:, p], step * (sizes[p] + 1)
            p_own = np.exp(theta.frame.of_feature(theta.log_prob, i)[y, above, : sizes[i]])
            X[:, i] = (rng.random(n)[:, None] > np.cumsum(p_own, axis=1)[:, :-1]).sum(axis=1)
        return X, y

    def log_likelihood(self, S: Statistics, theta: TreeParameters) -> float:
        """sum_y s0 log p(y) + sum_iy s_iy log p(x_i | parents, y)."""
        return float(S["s0"] @ theta.log_prior + (S.to_frame(theta.frame)["counts"] * theta.log_prob).sum())


def check_table(cells: int, column: int, parents: tuple[int, ...] = ()) -> None:
    """Refuse tables of counts that cannot be kept."""
    if cells > MOST_CELLS:
        given = f" with its {len(parents)} parents" if parents else " and its pairs with the others"
        raise ValueError(
            f"Column {column}{given} has {cells:.3g} cells to count, more than {MOST_CELLS:.3g}. Merge its "
            "rare categories, code its categories from 0, or give it fewer parents."
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


def dependences(X: Array, y: Array, w: Array | None, n_classes: int) -> tuple[Array, Array]:
    """I(x_i; y) of every feature and I(x_i; x_j | y) of every pair, from the counts of pairs by class."""
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
    between = np.add.reduceat(np.add.reduceat(pair, starts, axis=0), starts, axis=1)
    return np.add.reduceat(single, starts), between


def tree_parents(with_class: Array, between: Array) -> Parents:
    """Chow and Liu's tree, of largest mutual information given the class."""
    n = len(with_class)
    lengths = between.max() + 1.0 - between  # positive: an entry of zero would be no edge
    from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree  # here: slow to import

    tree = minimum_spanning_tree(csr_array(np.triu(lengths, 1)))
    root = int(np.argmax(with_class))
    _, above = breadth_first_order(tree, root, directed=False)
    return tuple(() if i == root or above[i] < 0 else (int(above[i]),) for i in range(n))


def k_parents(with_class: Array, between: Array, k: int) -> Parents:
    """Sahami's k-dependence: features that tell most of the class first, each with up to k before it."""
    order = np.argsort(-with_class, kind="stable")
    parents: list[tuple[int, ...]] = [()] * len(order)
    for place, i in enumerate(order):
        before = order[:place]
        best = before[np.argsort(-between[i, before], kind="stable")[:k]]
        parents[i] = tuple(int(p) for p in best)
    return tuple(parents)
