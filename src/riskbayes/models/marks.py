"""Naive Bayes of marks of missing cells, of which those that do not depend on the class do not count."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.stats import chi2

from riskbayes.arrays import Array, one_hot, positive
from riskbayes.frames import CountsByFeature
from riskbayes.loaded import require_shape
from riskbayes.models.base import Sample
from riskbayes.models.categorical import CategoricalModel, CategoricalParameters
from riskbayes.models.codes import make_codes
from riskbayes.models.coordinates import TableCoordinates
from riskbayes.models.traits import Traits
from riskbayes.statistics import Statistics


@dataclass(frozen=True, eq=False)
class Marks(CountsByFeature):
    """The categories of marks, and which of them have the same frequencies in all classes."""

    of_one_fit: ClassVar[str] = (
        "These statistics tie other features, which come from the rows of one fit: fit all rows together."
    )

    tied: Array
    """True for a feature with one distribution for all classes."""

    def check_loaded(self, size: int) -> None:
        """Require a mark for each feature."""
        require_shape(self.tied, self.n_categories.shape, "b", "tied")
        super().check_loaded(size)


@dataclass(frozen=True)
class MarkModel(CategoricalModel):
    """Categorical features, of which those that hardly depend on the class have one distribution for all.

    Where cells are missing at random, marks of them are noise, and many of them would drown the others. A
    feature is tied if a chi-square test of its independence of the class, on the rows of the fit, has a
    p-value above `level`.

    Parameters
    ----------
    level : float
        The p-value above which a feature is tied; 1 ties none.
    """

    level: float = 1.0

    @property
    def traits(self) -> Traits:  # type: ignore[override]
        """Statistics of separate fits can be added if no feature can be tied: that depends on the rows."""
        return replace(CategoricalModel.traits, additive=self.level >= 1.0)

    def learn(self, sample: Sample) -> Marks:
        """Return the categories, and the features that are tied."""
        frame = super().learn(sample)
        if self.level >= 1.0:
            return Marks(frame.n_categories, np.zeros(len(frame.n_categories), dtype=bool))
        W = one_hot(sample.y, sample.n_classes, sample.w, np.dtype(np.float64))
        counts = make_codes(sample.X, frame).counts(W)
        return Marks(frame.n_categories, p_values(counts, frame) > self.level)

    def coordinates(self, S: Statistics) -> TableCoordinates:
        """Return those of categories; tied features stay where they are."""
        frame: Any = S.frame
        return self.tables(S, tied=frame.spread(frame.tied[None, :]) if frame.tied.any() else None)

    def parameters(self, S: Statistics) -> CategoricalParameters:
        """Return the frequencies; of tied features, those of all classes together.

        They are smoothed once, as one class with the mean of the counts: smoothed class by class, the
        pseudo-counts would speak for the rare classes.
        """
        frame: Any = S.frame
        if not frame.tied.any():
            return super().parameters(S)
        counts, tied = S["counts"], frame.spread(frame.tied[None, :])
        pooled = np.where(tied, counts.mean(axis=0), counts)
        return super().parameters(Statistics({"s0": S["s0"], "counts": pooled}, frame))


def p_values(counts: Array, frame: CountsByFeature) -> Array:
    """Return the p-value of Pearson's chi-square test of each feature's independence of the class.

    Its degrees of freedom count the classes and categories that have rows.
    """
    total, by_class = frame.sums(counts.sum(axis=0)[None, :])[0], frame.sums(counts)
    share = by_class / positive(total)
    expected = frame.spread(share) * counts.sum(axis=0)
    gaps = (counts - expected) ** 2 / positive(expected)
    seen = frame.sums((counts.sum(axis=0) > 0)[None, :].astype(np.int64))[0]
    freedom = (np.count_nonzero(by_class > 0, axis=0) - 1) * (seen - 1)
    return chi2.sf(frame.sums(gaps.sum(axis=0)[None, :])[0], np.maximum(freedom, 1))
