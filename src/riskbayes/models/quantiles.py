"""Quantiles of weighted values: where bins, knots and components begin."""

from __future__ import annotations

import numpy as np

from riskbayes.arrays import Array


def value_masses(x: Array, w: Array | None) -> tuple[Array, Array]:
    """Return the distinct values in ascending order, and the weight of each; w=None is one a row."""
    if w is None:
        values, counts = np.unique(x, return_counts=True)
        return values, counts.astype(np.float64)
    values, places = np.unique(x, return_inverse=True)
    return values, np.bincount(places, w, len(values))


def quantiles(values: Array, mass: Array, levels: Array) -> Array:
    """Return the least values whose cumulative share of the mass reaches the levels."""
    share = np.cumsum(mass) / mass.sum()
    seen = np.flatnonzero(mass > 0)
    # The tolerance lets a level that rounding puts just above a share still match it.
    return values[seen[np.minimum(np.searchsorted(share[seen], levels - 1e-12), len(seen) - 1)]]
