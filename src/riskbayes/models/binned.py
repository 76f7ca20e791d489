"""Naive Bayes of binned numbers: psi(x) = (1, one-hot of the bin of each feature)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from riskbayes.arrays import Array
from riskbayes.frames import CountsByFeature
from riskbayes.loaded import require_shape
from riskbayes.models.base import Described, Sample
from riskbayes.models.categorical import CategoryProbabilities
from riskbayes.models.codes import Codes, make_codes
from riskbayes.models.quantiles import quantiles, value_masses
from riskbayes.models.traits import Traits


@dataclass(frozen=True, eq=False)
class Bins(CountsByFeature):
    """The bins of each feature: `counts` has one column for each (feature, bin), feature after feature."""

    of_one_fit: ClassVar[str] = (
        "These statistics count other bins. Bins come from the rows of one fit: fit all rows together."
    )

    edges: Array
    """Inner edges of the bins of all features, in ascending order, feature after feature."""

    def check_loaded(self, size: int) -> None:
        """Require one edge less than bins for each feature."""
        edges = sum(self.n_categories.tolist()) - len(self.n_categories)
        require_shape(self.edges, (edges,), "f", "edges")
        super().check_loaded(size)

    def of_feature(self, j: int) -> Array:
        """Return the inner edges of feature j: one less than it has bins."""
        first = int((self.n_categories[:j] - 1).sum())
        return self.edges[first : first + int(self.n_categories[j]) - 1]

    def codes(self, X: Array) -> Array:
        """Return the bin of each value; NaN for a missing one."""
        found = np.empty(X.shape)
        for j in range(X.shape[1]):
            found[:, j] = np.searchsorted(self.of_feature(j), X[:, j], side="right")
        found[np.isnan(X)] = np.nan
        return found


@dataclass(frozen=True)
class BinnedModel(CategoryProbabilities):
    """Numbers in bins of equal weight, independent given the class.

    The joint is that of the bins, not a density of the numbers.

    Parameters
    ----------
    n_bins : int
        The most bins of a feature.
    """

    traits: ClassVar[Traits] = Traits(
        takes_missing=True,
        normalised=False,
        additive=False,  # bins come from the rows
    )

    n_bins: int = 5

    def learn(self, sample: Sample) -> Bins:
        """Return the bins of the values that are present, in rows of positive weight."""
        edges = []
        for column in sample.X.T:
            here = ~np.isnan(column) if sample.w is None else ~np.isnan(column) & (sample.w > 0)
            w = None if sample.w is None else sample.w[here]
            edges.append(bin_edges(column[here].astype(np.float64), w, self.n_bins))
        return Bins(np.array([len(inner) + 1 for inner in edges]), np.concatenate(edges))

    def encode(self, X: Array, frame: Bins) -> Codes:  # type: ignore[override]
        """Return the bins as codes."""
        return make_codes(frame.codes(X), frame)  # type: ignore[return-value]

    def describe(self, theta: Any) -> Iterator[Described]:
        """Yield the log probabilities of the bins, by the edges between them."""
        names = []
        for j in range(len(theta.frame.n_categories)):
            edges = ["-inf", *(f"{x:.6g}" for x in theta.frame.of_feature(j).tolist()), "inf"]
            names += [f"from {low} below {high}" for low, high in pairwise(edges)]
        for block in super().describe(theta):
            yield block._replace(names=[f"log probability {name}" for name in names], named=())


def bin_edges(x: Array, w: Array | None, n_bins: int) -> Array:
    """Return the inner edges of bins of equal weight; a column of few values has a bin for each of them."""
    values, mass = value_masses(x, w)
    if len(values) <= n_bins:
        return values[1:]
    edges = np.unique(quantiles(values, mass, np.arange(1, n_bins) / n_bins))
    return edges[edges > values[0]]  # an edge is the least value of the bin above it
