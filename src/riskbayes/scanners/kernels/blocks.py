"""The functions of compiled scans: each block of rows is scored, compared with its labels and summed.

The first axis of a block is classes or columns, the second rows, so that loops over rows are vectorised and
a block fits the L1 cache. `kernels` returns the functions compiled.

Parts of a model are a Gaussian for each class, -|W^T x + shift|^2 / 2 with an upper triangle W, and look-ups
between knots: a value at place c + f between knots c and c + 1 has the hat weights 1 - f and f. Tables have
two rows of zeros after those of the knots: missing values are looked up there, and the row after the one of
f = 0 is read too. A model without one of the parts passes no columns.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import inspect
from functools import cache
from threading import Lock
from typing import Any

import numpy as np

from riskbayes.scanners.kernels import compiled

BLOCK = 256
"""Number of rows in a block."""


def scan(
    X,
    places,
    beyond,
    origin,
    whiteners,
    shifts,
    weight,
    offsets,
    table,
    constants,
    y,
    w,
    power,
    others,
    risks_only,
    s0,
    s1,
    s2,
    counts,
    tails,
    risks,
):
    """Add the statistics of the residual and the risks of all rows to the last six arguments.

    `weight` multiplies the Gaussian scores; the table is weighted already, and relative to the last class.
    An empty `w` stands for one each. Residuals of a row sum to zero, so that the last class's statistics are
    minus the sum of the others. `others` is a tuple with an entry for each class but the last, whose length
    the compiler knows, or an empty one for any number of classes.
    """
    m, last = len(y), len(constants) - 1
    D, scores = np.empty((X.shape[1], BLOCK)), np.empty((last + 1, BLOCK))
    E = scores[:last]
    for start in range(0, m, BLOCK):
        size = min(BLOCK, m - start)
        for k in range(last + 1):
            scores[k, :] = constants[k]
        centre(X, origin, start, size, D)
        add_gaussians(D, whiteners, shifts, weight, size, scores)
        add_looked_up(places, offsets, table, start, size, others, scores)
        to_residual(scores, y, w, power, start, size, risks)
        if not risks_only:
            add_masses(beyond, E, start, size, s0, tails)
            add_moments(D, E, size, s1, s2)
            add_counts(places, offsets, E, start, size, others, counts)
    for k in range(last):
        s0[last] -= s0[k]
        tails[last] -= tails[k]
        counts[:, last] -= counts[:, k]
        for j in range(s1.shape[1]):
            s1[last, j] -= s1[k, j]
            for c in range(j, s1.shape[1]):
                s2[last, j, c] -= s2[k, j, c]
                s2[k, c, j] = s2[k, j, c]
    for j in range(s1.shape[1]):
        for c in range(j):
            s2[last, j, c] = s2[last, c, j]


def centre(X, origin, start, size, D):
    """Write x - origin of a block into D, of shape (columns, rows)."""
    for i in range(size):
        for j in range(X.shape[1]):
            D[j, i] = X[start + i, j] - origin[j]


def add_gaussians(D, whiteners, shifts, weight, size, scores):
    """Add weight times -|W^T x + shift|^2 / 2 of each class to the scores."""
    z, factor = np.empty(BLOCK), -0.5 * weight
    for k in range(shifts.shape[0]):
        for c in range(shifts.shape[1]):
            z[:] = shifts[k, c]
            for j in range(c + 1):
                a = whiteners[k, j, c]
                for i in range(size):
                    z[i] += a * D[j, i]
            for i in range(size):
                scores[k, i] += factor * z[i] * z[i]


def add_looked_up(places, offsets, table, start, size, classes, scores):
    """Add the sum over features of a table (knots + 2, classes), interpolated at each value, to scores."""
    n, r = places.shape[1], len(classes) or table.shape[1]
    if n == 0:
        return
    total = np.empty(r)
    for i in range(size):
        total[:] = 0.0
        for j in range(n):
            place = places[start + i, j]
            left = np.uint64(place)
            f, c = place - left, np.uint64(offsets[j]) + left
            for k in range(r):
                total[k] += (1.0 - f) * table[c, k] + f * table[c + np.uint64(1), k]
        for k in range(r):
            scores[k, i] += total[k]


def to_residual(scores, y, w, power, start, size, risks):
    """Replace scores by E[k] = w P[y]^power (1[y = k] - P[k]); add soft error, error, log loss to risks."""
    r = scores.shape[0]
    soft, wrong, log_loss = 0.0, 0.0, 0.0
    for i in range(size):
        label, weight = y[start + i], w[start + i] if len(w) else 1.0
        best = 0
        for k in range(1, r):
            if scores[k, i] > scores[best, i]:
                best = k
        top = scores[best, i]
        own, others = scores[label, i] - top, 0.0
        for k in range(r):
            scores[k, i] = np.exp(scores[k, i] - top) if k != best else 1.0
            if k != label:
                others += scores[k, i]
        evidence = scores[label, i] + others
        scale = weight / evidence
        soft += scale * others
        wrong += weight * (best != label)
        log_loss += weight * (np.log(evidence) - own)
        if power:
            scale *= scores[label, i] / evidence
        for k in range(r):
            scores[k, i] *= -scale
        scores[label, i] = scale * others  # 1 - P[y] with all its digits
    risks[0] += soft
    risks[1] += wrong
    risks[2] += log_loss


def add_masses(beyond, E, start, size, s0, tails):
    """Add sum_i E[k, i] to s0 and sum_i E[k, i] beyond_i to tails, the distances into the tails."""
    for k in range(E.shape[0]):
        mass, length = 0.0, 0.0
        for i in range(size):
            mass += E[k, i]
        for i in range(min(size, len(beyond))):
            length += beyond[start + i] * E[k, i]
        s0[k] += mass
        tails[k] += length


def add_moments(D, E, size, s1, s2):
    """Add sum_i E[k, i] x_i to s1 and the upper triangle of sum_i E[k, i] x_i x_i^T to s2."""
    v = np.empty(BLOCK)
    for k in range(E.shape[0]):
        for j in range(s1.shape[1]):
            first = 0.0
            for i in range(size):
                v[i] = E[k, i] * D[j, i]
                first += v[i]
            s1[k, j] += first
            for c in range(j, s1.shape[1]):
                second = 0.0
                for i in range(size):
                    second += v[i] * D[c, i]
                s2[k, j, c] += second


def add_counts(places, offsets, E, start, size, classes, counts):
    """Add E, times the hat weights of each value, to the counts (knots + 2, classes) of its two knots."""
    n, r = places.shape[1], len(classes) or E.shape[0]
    if n == 0:
        return
    e = np.empty(r)
    for i in range(size):
        for k in range(r):
            e[k] = E[k, i]
        for j in range(n):
            place = places[start + i, j]
            left = np.uint64(place)
            f, c = place - left, np.uint64(offsets[j]) + left
            for k in range(r):
                counts[c, k] += (1.0 - f) * e[k]
            for k in range(r):
                counts[c + np.uint64(1), k] += f * e[k]


def place(X, positions, first, last, tails, places, beyond):
    """Write the place of every value between the knots `first` to `last` of its feature.

    Add its distance into the tails, in units of their mean length, to `beyond`. The place of a missing value
    is after all knots.
    """
    m, n = X.shape
    for i in range(m):
        for j in range(n):
            x, low, high = X[i, j], first[j], last[j]
            if x <= positions[low]:
                places[i, j] = 0.0
                beyond[i] += (positions[low] - x) / tails[j, 0]
            elif x >= positions[high]:
                places[i, j] = high - low
                beyond[i] += (x - positions[high]) / tails[j, 1]
            elif x != x:
                places[i, j] = len(positions) - low
            else:
                c, pieces = low, high - low
                while pieces > 1:
                    half = pieces >> 1
                    c += half if x >= positions[c + half] else 0
                    pieces -= half
                found = (x - positions[c]) * (1.0 / (positions[c + 1] - positions[c])) + (c - low)
                places[i, j] = min(found, high - low)


def kernels() -> Any:
    """Return the compiled functions of this file by name; one thread compiles them, others wait."""
    with _compiling:
        return _kernels()


@cache
def _kernels() -> dict[str, Any]:
    own = [name for name, f in globals().items() if inspect.isfunction(f) and f.__module__ == __name__]
    found = {name: compiled(globals()[name]) for name in own if "kernels" not in name}
    globals().update(found)  # compiled functions call each other by these names
    return found


_compiling = Lock()
