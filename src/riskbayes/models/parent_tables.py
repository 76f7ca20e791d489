"""Tables of p(feature | its parents, class): the frame of augmented naive Bayes, and rows encoded in it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from riskbayes.arrays import Array
from riskbayes.frames import CountsByFeature
from riskbayes.loaded import require, require_shape
from riskbayes.models.codes import Codes
from riskbayes.models.structure import Parents, check_table, topological_order


@dataclass(frozen=True, eq=False)
class Tables(CountsByFeature):
    """The tables of `counts`: one column per (feature, values of its parents, value), the value fastest.

    Each feature has one more value than categories, for all categories that are unseen in training. As the
    value of a parent it also stands for a missing one.
    """

    of_one_fit: ClassVar[str] = (
        "These statistics count other tables. The dependences come from the rows of one fit: fit all rows "
        "together."
    )

    sizes: Array
    """Categories of each feature."""
    parents: Array
    """Parents of each feature, one row per feature, padded with -1."""
    prior: Array | None = field(default=None, compare=False)
    """Pseudo-counts of each column by class; None: `backoff` rows of p(x | y)."""
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


def tables_of(sizes: Array, parents: Parents) -> Tables:
    """Return the tables of features with these numbers of categories, each given its parents."""
    cells = [math.prod(int(sizes[j]) + 1 for j in (i, *above)) for i, above in enumerate(parents)]
    for i, above in enumerate(parents):
        check_table(cells[i], i, above)
    most = max(map(len, parents), default=0)
    filled = np.array([[*above, *[-1] * (most - len(above))] for above in parents], dtype=np.int64)
    return Tables(np.array(cells), sizes, filled)


def present_families(values: Array, frame: Tables) -> Codes:
    """Return the joint codes of rows, missing where the feature or one of its parents is."""
    joint = values.copy()
    for i, above in enumerate(frame.parent_lists):
        absent, step = values[:, i] < 0, frame.sizes[i] + 1
        for p in above:
            joint[:, i] += step * values[:, p]
            absent |= values[:, p] < 0
            step *= frame.sizes[p] + 1
        joint[absent, i] = frame.n_categories[i]
    return Codes(joint, frame, missing=True)
