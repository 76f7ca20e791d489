"""Tests of whether columns are distributed alike in the earlier and in the later rows of a split in time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import spearmanr

from riskbayes.arrays import Array
from riskbayes.compare.data import Data
from riskbayes.two_samples import LEAST_DISTANCE, LEVEL, compare_samples, holm

GROWS = 0.99
"""A column whose rank correlation with time is above this must grow."""


@dataclass(frozen=True)
class Drift:
    """A column that is distributed differently in the later rows."""

    column: str
    distance: float
    """The largest difference of the distribution functions, or half the sum of differences of shares."""
    grows: bool
    """True if it follows time, as a date or a running number does."""


def drifts(data: Data, kept: Array, held: Array) -> list[Drift]:
    """Return the columns that drift, and the target if its classes do; the largest distance first."""
    names = [data.columns[j].name for j, _ in data.encoder.encoded]
    tested = [
        (name, *compare_samples(values[kept], values[held], kind == "number"))
        for name, kind, values in zip(names, data.encoder.kinds, data.Z.T, strict=True)
    ]
    tested.append((data.target, *compare_samples(data.codes[kept], data.codes[held], False)))
    found: dict[str, Drift] = {}
    adjusted = holm(np.array([p for *_, p in tested]))
    for place, ((name, distance, _), p) in enumerate(zip(tested, adjusted, strict=True)):
        if p > LEVEL or distance < LEAST_DISTANCE:
            continue
        if name not in found or distance > found[name].distance:
            number = place < data.Z.shape[1] and data.encoder.kinds[place] == "number"
            found[name] = Drift(name, distance, number and follows(data.Z[:, place], data.time))
    return sorted(found.values(), key=lambda one: -one.distance)


def follows(values: Array, time: Array | None) -> bool:
    """True if a column grows, or falls, with time."""
    known = ~np.isnan(values)
    if time is None or known.sum() < 3:
        return False
    return bool(abs(spearmanr(values[known], time[known]).statistic) > GROWS)
