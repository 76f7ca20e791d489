"""Tests of whether columns are distributed alike in the earlier and in the later rows of a split in time."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2_contingency, ks_2samp, spearmanr

from riskbayes.arrays import Array
from riskbayes.compare.data import Data

LEVEL = 0.01
"""Chance that any column is reported though none drifts: the p-values are multiplied by their number."""

LEAST_DISTANCE = 0.1
"""Smaller differences are not reported, however many rows show them."""

GROWS = 0.99
"""A column whose rank correlation with time is above this must grow."""

MOST_EXACT = 200
"""Rows up to which the distribution of the distance is exact: by its limit two rows could prove a drift."""

LEAST_EXPECTED = 5
"""Categories with fewer expected rows in a part are counted together."""


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
        (name, *compare_parts(values[kept], values[held], kind == "number"))
        for name, kind, values in zip(names, data.encoder.kinds, data.Z.T, strict=True)
    ]
    tested.append((data.target, *compare_parts(data.codes[kept], data.codes[held], False)))
    found: dict[str, Drift] = {}
    for place, (name, distance, p) in enumerate(tested):
        if p * len(tested) > LEVEL or distance < LEAST_DISTANCE:
            continue
        if name not in found or distance > found[name].distance:
            number = place < data.Z.shape[1] and data.encoder.kinds[place] == "number"
            found[name] = Drift(name, distance, number and follows(data.Z[:, place], data.time))
    return sorted(found.values(), key=lambda one: -one.distance)


def compare_parts(earlier: Array, later: Array, number: bool) -> tuple[float, float]:
    """Return the distance of two samples and the p-value of the hypothesis that they are distributed alike.

    Numbers by the test of Kolmogorov and Smirnov, categories by chi-square; missing cells of numbers have
    marks of their own.
    """
    if number:
        earlier, later = earlier[~np.isnan(earlier)], later[~np.isnan(later)]
        if not len(earlier) or not len(later):
            return 0.0, 1.0
        few = len(earlier) + len(later) <= MOST_EXACT
        with warnings.catch_warnings():  # where the exact p-value overflows, SciPy takes the asymptotic one
            warnings.simplefilter("ignore", RuntimeWarning)
            test = ks_2samp(earlier, later, method="exact" if few else "asymp")
        return float(test.statistic), float(test.pvalue)
    return compare_categories(np.nan_to_num(earlier, nan=-1), np.nan_to_num(later, nan=-1))


def compare_categories(earlier: Array, later: Array) -> tuple[float, float]:
    """Return half the sum of differences of shares, and the p-value of a chi-square test."""
    codes = np.unique(np.concatenate([earlier, later]), return_inverse=True)[1]
    side = np.repeat([0, 1], [len(earlier), len(later)])
    counts = np.zeros((2, int(codes.max()) + 1))
    np.add.at(counts, (side, codes), 1)
    counts = counts[:, np.argsort(counts.sum(axis=0), kind="stable")]
    expected = np.cumsum(counts.sum(axis=0)) * min(len(earlier), len(later)) / len(codes)
    # The rarest categories together, as many as it takes to expect enough rows in the smaller part.
    last = min(int(np.searchsorted(expected, LEAST_EXPECTED)), counts.shape[1] - 1)
    counts = np.column_stack([counts[:, : last + 1].sum(axis=1), counts[:, last + 1 :]])
    if counts.shape[1] < 2:
        return 0.0, 1.0
    shares = counts / counts.sum(axis=1, keepdims=True)
    return float(np.abs(shares[0] - shares[1]).sum() / 2), float(chi2_contingency(counts).pvalue)


def follows(values: Array, time: Array | None) -> bool:
    """True if a column grows, or falls, with time."""
    known = ~np.isnan(values)
    if time is None or known.sum() < 3:
        return False
    return bool(abs(spearmanr(values[known], time[known]).statistic) > GROWS)
