"""Compiled look-ups of smooth naive Bayes: where values lie between knots, scores, weighted counts.

A value at place c + f between knots c and c + 1 has the hat weights 1 - f and f: one number a cell tells
both. Tables have one row more than there are knots, because the upper knot of the last feature is read too
where its weight is zero.
"""

from __future__ import annotations

from functools import cache
from threading import Lock
from typing import Any

import numpy as np

from riskbayes.arrays import Array
from riskbayes.models.kernels import compiled
from riskbayes.threads import available_threads, in_threads

BLOCK = 2**13
"""Rows that a thread encodes at a time."""

FEW_CLASSES = 5
"""Up to so many classes their number is known to the compiler; loops over more are made of vectors."""

_compiling = Lock()


def encode(X: Array, frame: Any) -> tuple[Array, Array]:
    """Return the place of every value between its feature's knots, and how far in the tails each row lies."""
    (m, n), search = X.shape, kernel("encode", 0)
    places, beyond = np.empty((m, n)), np.zeros(m)
    first, last = frame.offsets, frame.offsets + frame.n_categories - 1
    tails = np.where(frame.few_values[:, None], np.inf, frame.tails)
    positions = np.array(frame.positions)  # not read-only, which would be compiled anew

    def work(start: int) -> None:
        rows = slice(start, start + BLOCK)
        search(
            np.array(X[rows], np.float64, order="C"),
            positions,
            first,
            last,
            tails,
            places[rows],
            beyond[rows],
        )

    starts = range(0, m, BLOCK)
    for _ in in_threads(work, starts, min(len(starts), available_threads())):
        pass
    return places, beyond


def look_up(places: Array, offsets: Array, table: Array) -> Array:
    """Return the table (knots + 1, classes) between the knots, summed over the features of each row."""
    out = np.empty((table.shape[1], len(places)))
    kernel("look_up", table.shape[1])(places, offsets, table, out)
    return out.T


def count(places: Array, offsets: Array, W: Array, n_knots: int) -> Array:
    """Return the hat weights summed over the rows by the weights W (m, classes): (knots + 1, classes)."""
    V, out = np.ascontiguousarray(W.T), np.zeros((n_knots + 1, W.shape[1]))
    kernel("count", W.shape[1])(places, offsets, V, out)
    return out


def kernel(name: str, n_classes: int) -> Any:
    """Return a compiled function; threads that ask for it at once wait for the first of them."""
    with _compiling:
        return kernels(n_classes if n_classes <= FEW_CLASSES else 0)[name]


@cache
def kernels(fixed: int) -> dict[str, Any]:
    """The functions, for `fixed` classes, a number that the compiler then knows, or 0 for any number."""

    def encode(X, positions, first, last, tails, places, beyond):  # type: ignore[no-untyped-def]
        m, n = X.shape
        for i in range(m):
            for j in range(n):
                x, low, high = X[i, j], first[j], last[j]
                if not x > positions[low]:
                    places[i, j] = 0.0
                    beyond[i] += (positions[low] - x) / tails[j, 0]
                elif x >= positions[high]:
                    places[i, j] = high - low
                    beyond[i] += (x - positions[high]) / tails[j, 1]
                else:
                    c, pieces = low, high - low
                    while pieces > 1:
                        half = pieces >> 1
                        c += half if x >= positions[c + half] else 0
                        pieces -= half
                    place = (x - positions[c]) * (1.0 / (positions[c + 1] - positions[c])) + (c - low)
                    places[i, j] = min(place, high - low)

    def look_up(places, offsets, table, out):  # type: ignore[no-untyped-def]
        (m, n), r = places.shape, fixed or table.shape[1]
        total = np.empty(r)
        for i in range(m):
            for k in range(r):
                total[k] = 0.0
            for j in range(n):
                left = np.uint64(places[i, j])
                f, c = places[i, j] - left, np.uint64(offsets[j]) + left
                for k in range(r):
                    total[k] += (1.0 - f) * table[c, k] + f * table[c + np.uint64(1), k]
            for k in range(r):
                out[k, i] = total[k]

    def count(places, offsets, V, out):  # type: ignore[no-untyped-def]
        (m, n), r = places.shape, fixed or out.shape[1]
        v = np.empty(r)
        for i in range(m):
            for k in range(r):
                v[k] = V[k, i]
            for j in range(n):
                left = np.uint64(places[i, j])
                f, c = places[i, j] - left, np.uint64(offsets[j]) + left
                for k in range(r):
                    out[c, k] += (1.0 - f) * v[k]
                for k in range(r):
                    out[c + np.uint64(1), k] += f * v[k]

    return {"encode": compiled(encode), "look_up": compiled(look_up), "count": compiled(count)}
