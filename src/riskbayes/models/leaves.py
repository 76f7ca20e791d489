"""Leaves of random trees as categories: how a joint model learns interactions of columns.

Each tree sorts a row into one of its leaves, which is a category of one more feature. The features are far
from independent given the class, so that each has a power of about one over their number. Calibration moves
the counts of the leaves like those of any other category.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from riskbayes.arrays import Array
from riskbayes.frames import CountsByFeature
from riskbayes.loaded import require, require_shape
from riskbayes.models.base import Sample
from riskbayes.models.categorical import CategoricalParameters, CodedModel
from riskbayes.models.codes import Codes, make_codes
from riskbayes.models.traits import Traits
from riskbayes.models.trees import Trees, grow
from riskbayes.statistics import Statistics

LEAST_RATIO = 0.01
"""Lower bound on p(leaf | y) / p(leaf): no single tree rules a class out."""


@dataclass(frozen=True, eq=False)
class Leaves(CountsByFeature):
    """The leaves of each tree: `counts` has one column for each (tree, leaf), tree after tree."""

    of_one_fit: ClassVar[str] = (
        "These statistics count the leaves of other trees. Trees come from the rows of one fit: fit all rows "
        "together."
    )

    thresholds: Array
    """Those of all trees: they tell one fit from another."""
    trees: Trees | None = field(default=None, compare=False)
    shares: Array | None = field(default=None, compare=False)
    """The share of the weight of all rows in each leaf; None before the statistics are settled."""

    def check_loaded(self, size: int) -> None:
        """Require trees, and a share for each leaf where there are shares."""
        require(
            self.trees is not None and len(self.trees.roots) == len(self.n_categories), "trees are missing"
        )
        if self.shares is not None:
            require_shape(self.shares, (sum(self.n_categories.tolist()),), "f", "shares")
        super().check_loaded(size)


@dataclass(frozen=True)
class LeavesModel(CodedModel):
    """The leaves of extremely randomised trees as features, with a small power each.

    The score of a class is log p(y) + (power / T) sum_t log max(LEAST_RATIO, q_t(y) / p_t), with p_t the
    share of all rows in the leaf of tree t, and q_t(y) = (count + alpha p_t) / (mass of y + alpha) that of
    the class: the prior is that all classes have the same leaves.

    Parameters
    ----------
    n_trees, max_leaves, min_rows : int
        The number of trees, the most leaves of each, and the fewest rows of a leaf.
    power : float
        The sum of the powers of all trees.
    categories : tuple of int
        Columns of category codes. Trees split them in the order of their class frequencies.
    """

    traits: ClassVar[Traits] = Traits(
        takes_missing=True,
        normalised=False,
        describes_rows=False,
        additive=False,  # trees come from the rows
    )

    alpha: float = 60.0
    n_trees: int = 60
    max_leaves: int = 256
    min_rows: int = 4
    power: float = 2.0
    categories: tuple[int, ...] = ()

    def learn(self, sample: Sample) -> Leaves:
        """Return the leaves of trees that are grown on these rows."""
        trees = grow(
            sample.X, sample.y, sample.w, self.n_trees, self.max_leaves, self.min_rows, self.categories
        )
        return Leaves(trees.sizes, trees.threshold, trees)

    def encode(self, X: Array, frame: Leaves) -> Codes:  # type: ignore[override]
        """Return the leaf of each tree as a code."""
        assert frame.trees is not None
        return make_codes(frame.trees.codes(X), frame)  # type: ignore[return-value]

    def fix_prior(self, S: Statistics) -> Statistics:
        """Return the statistics with the shares of the leaves in their frame."""
        pooled = S["counts"].sum(axis=0)
        return S.with_frame(replace(S.frame, shares=pooled / S.total))

    def parameters(self, S: Statistics) -> CategoricalParameters:
        """Return (power / T) log of the bounded ratios in place of log probabilities."""
        shares = S.frame.shares
        mass = np.maximum(S["s0"], 0.0)[:, None] + self.alpha
        prior = self.alpha * shares
        with np.errstate(divide="ignore", invalid="ignore"):  # a leaf without weight
            ratio = np.where(shares > 0, (S["counts"] + prior) / (mass * shares), 1.0)
        floored = ratio < LEAST_RATIO
        scores = self.power / self.n_trees * np.log(np.where(floored, LEAST_RATIO, ratio))
        none = np.zeros((len(scores), len(S.frame.n_categories)))
        return CategoricalParameters(self.log_prior(S), scores, none, S.frame, floored.sum(axis=1))

    def anchor_statistics(self, S: Statistics) -> Statistics:
        """Return the statistics of the labels, with total one."""
        return (1.0 / S.total) * S

    def degrees_of_freedom(self, S: Statistics) -> float:
        """Return the number of leaves of one tree for each class: trees mostly repeat each other."""
        return float(len(S["s0"]) * (1.0 + self.power * S.frame.n_categories.mean()))
