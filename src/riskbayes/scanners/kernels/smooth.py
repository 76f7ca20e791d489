"""Compiled look-ups of smooth naive Bayes: places of values between knots, scores, weighted counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from riskbayes.arrays import Array
from riskbayes.loaded import require_shape
from riskbayes.scanners.kernels import known, readonly
from riskbayes.threads import available_threads, in_threads

BLOCK = 2**12
"""Rows that a thread encodes at a time."""


def encode(X: Array, frame: Any) -> tuple[Array, Array]:
    """Return the place of every value between its knots, and the distance of each row into the tails."""
    from riskbayes.scanners.kernels import loops  # numba is slow to import, and optional

    places, beyond = np.empty(X.shape), np.zeros(len(X))
    tails = np.where(frame.few_values[:, None], np.inf, frame.tails)
    require_shape(frame.n_categories, X.shape[1:], "i", "n_categories")  # compiled code checks no bounds
    first, last = frame.offsets, frame.offsets + frame.n_categories - 1
    knots = readonly(frame.positions), readonly(first, np.int64), readonly(last, np.int64), readonly(tails)

    def work(start: int) -> None:
        rows = slice(start, start + BLOCK)
        loops.place(readonly(X[rows]), *knots, places[rows], beyond[rows])

    starts = range(0, len(X), BLOCK)
    for _ in in_threads(work, starts, min(len(starts), available_threads())):
        pass
    return places, beyond


def look_up(places: Array, offsets: Array, table: Array, n_knots: int) -> Array:
    """Return, for each row, the sum over features of a table (knots + 2, classes) interpolated at it."""
    from riskbayes.scanners.kernels import loops  # numba is slow to import, and optional

    (m, n), r = places.shape, table.shape[1]
    require_shape(offsets, (n,), "i", "offsets")
    require_shape(table, (n_knots + 2, r), "f", "table")
    out, knots = np.zeros((r, m)), (readonly(offsets, np.int64), readonly(table))
    loops.add_looked_up(readonly(places), *knots, 0, m, known(r), np.empty(r), out)
    return out.T


def count(places: Array, offsets: Array, W: Array, n_knots: int) -> Array:
    """Return the sums of hat weights, weighted by W (m, classes), of shape (knots + 2, classes).

    The last two rows are those of missing values.
    """
    from riskbayes.scanners.kernels import loops  # numba is slow to import, and optional

    m, r = W.shape
    require_shape(offsets, places.shape[1:], "i", "offsets")
    out, rows = np.zeros((n_knots + 2, r)), (readonly(places), readonly(offsets, np.int64))
    loops.add_counts(*rows, readonly(W.T), 0, m, known(r), np.empty(r), out)
    return out
