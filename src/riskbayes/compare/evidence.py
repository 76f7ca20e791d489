"""Whether a model says more about the class than the frequencies of the classes do, beyond chance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import norm, t

from riskbayes.arrays import Array
from riskbayes.compare.report import Score
from riskbayes.compare.scores import Ranking, differences, ranking

BEYOND_CHANCE = 3.5
"""Standard errors beyond which a difference is no chance: with room for a choice among a dozen models, and
for folds that share rows, whose standard errors are too small. `benchmarks/compare_claims.py` counts."""

CERTAINLY = 3.0
"""Standard errors beyond which a model is called too sure."""

FEW = 20
"""With fewer rows, or groups, outside the most frequent class only ranks are tested: their spread is known
without an estimate, where few rows that all agree have a standard error of zero."""

FEWEST_GROUPS = 10
"""With fewer groups outside the most frequent class nothing is tested: the spread of ranks by group is an
estimate, and that of few groups is far too small where they happen to agree."""


class Evidence(NamedTuple):
    """What a model shows on held-out rows, and which of it is beyond chance."""

    area: Ranking | None
    """How well it ranks rows; None if there is one class only."""
    gain: dict[str, Score]
    """Its error and log loss minus those of the majority class."""
    beyond: frozenset[str]
    """Of "auc", "error" and "log_loss" those that are better than the majority class beyond chance."""


def gather_evidence(
    P: Array, base: Array, codes: Array, groups: Array | None, folds: Array | None
) -> Evidence:
    """Return what probabilities show beside those of the majority class.

    The AUC is compared with its spread over all orders of the labels, which is exact for few rows and rare
    classes too; the gains in error and log loss with their standard errors, by a t quantile.
    """
    area, gain = ranking(P, codes, groups, folds), differences(P, base, codes, groups)
    units = units_outside(codes, groups)
    found = {name for name, one in gain.items() if units >= FEW and beyond(one, t_limit(units))}
    if area is not None and area.z > (BEYOND_CHANCE if groups is None else t_limit(units)):
        found.add("auc")
    return Evidence(area, gain, frozenset(found))


def units_outside(codes: Array, groups: Array | None) -> int:
    """Return the number of rows outside the most frequent class, or of groups that have such rows."""
    other = codes != np.bincount(codes).argmax()
    return int(other.sum()) if groups is None else len(np.unique(groups[other]))


def t_limit(units: int) -> float:
    """Return the t quantile of so many independent rows or groups that is `BEYOND_CHANCE` of very many."""
    return float(t.isf(norm.sf(BEYOND_CHANCE), units - 1)) if units >= FEWEST_GROUPS else np.inf


def beyond(difference: Score, errors: float) -> bool:
    """True if a difference is below zero by more than this number of standard errors."""
    value, error = difference.value, difference.error
    return value is not None and error is not None and value < -errors * error and value < 0


def negate(found: Score) -> Score:
    """Return a difference with the other sign."""
    return Score(None if found.value is None else -found.value, found.error)
