"""Tests of whether two samples of a column are distributed alike."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.stats import chi2_contingency, ks_2samp

from riskbayes.arrays import Array

LEVEL = 0.01
"""Chance that any of several columns is reported though none differs."""

LEAST_DISTANCE = 0.1
"""Smaller differences are not reported, however many rows show them."""

MOST_EXACT = 200
"""Rows up to which the distribution of the distance is exact: by its limit two rows could prove a drift."""

LEAST_EXPECTED = 5
"""Categories with fewer expected rows in a part are counted together."""


def holm(p: Array) -> Array:
    """Return p-values adjusted for their number by Holm's method: those up to a level keep its error rate."""
    p = np.asarray(p, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    found = np.empty(len(p))
    found[order] = np.maximum.accumulate(np.minimum(p[order] * np.arange(len(p), 0, -1), 1.0))
    return found


def compare_samples(earlier: Array, later: Array, number: bool) -> tuple[float, float]:
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
