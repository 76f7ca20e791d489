"""The functions of compiled scans of sparse rows: rows are scored, compared with their labels and summed.

`write_residuals` and `add_rows` read CSR. The weights of the columns of a row lie far apart in memory, and so
do their sums. `scan` and `scan_two` read blocks of rows, of which `sort_blocks` has put the values in the
order of their columns: weights and sums are then read from first to last, and only the scores of the block,
which fit the cache, are not. The score of the last class is zero, and its sums follow from those of the
other classes, since each row of a residual sums to zero. `kernels` returns the functions compiled.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import inspect
from functools import cache
from threading import Lock
from typing import Any

import numpy as np

from riskbayes.scanners.kernels import compiled

NO_RESIDUAL = 1e-12
"""Rows whose residuals are all below this are left out of sums of residuals."""


def write_residuals(data, indices, indptr, table, constants, y, w, power, others, E, risks):
    """Write the residuals of `to_residual` into E, of shape (rows, classes); add their risks."""
    last = len(others) or len(constants)
    scores = np.empty(last)
    for i in range(len(y)):
        for k in range(last):
            scores[k] = constants[k]
        x, columns = data[indptr[i] : indptr[i + 1]], indices[indptr[i] : indptr[i + 1]]
        for p in range(len(x)):
            j = np.uint64(columns[p])
            for k in range(last):
                scores[k] += x[p] * table[j, k]
        for k in range(last):
            E[i, k] = scores[k]
        E[i, last] = 0.0
    to_residual(E, y, w, power, others, risks)


def add_rows(data, indices, indptr, W, classes, out):
    """Add W[i, k] x_i to out[:, k], for the rows with a weight above `NO_RESIDUAL`."""
    r = len(classes) or W.shape[1]
    for i in range(W.shape[0]):
        largest = 0.0
        for k in range(r):
            largest = max(largest, abs(W[i, k]))
        if largest > NO_RESIDUAL:
            x, columns = data[indptr[i] : indptr[i + 1]], indices[indptr[i] : indptr[i + 1]]
            for p in range(len(x)):
                j = np.uint64(columns[p])
                for k in range(r):
                    out[j, k] += x[p] * W[i, k]


def sort_blocks(data, indices, indptr, n, size, values, columns, places):
    """Write the stored values of each block of `size` rows in the order of their columns.

    `places` are the rows of the values, counted from the start of the block.
    """
    m, origin = len(indptr) - 1, indptr[0]
    offsets = np.empty(n, np.int64)
    for start in range(0, m, size):
        stop = min(m, start + size)
        offsets[:] = 0
        for column in indices[indptr[start] : indptr[stop]]:
            offsets[np.uint64(column)] += 1
        total = indptr[start] - origin
        for j in range(n):
            total, offsets[j] = total + offsets[j], total
        for i in range(start, stop):
            for p in range(indptr[i], indptr[i + 1]):
                j = np.uint64(indices[p])
                q = np.uint64(offsets[j])
                offsets[j] += 1
                values[q], columns[q], places[q] = data[p], j, i - start


def scan(
    values, columns, places, indptr, size, table, constants, y, w, power, others, risks_only, s0, sums, risks
):
    """Add sum_i E[i, k] to s0[k] and sum_i E[i, k] x_i to sums[:, k], for all classes but the last.

    E is the residual of `to_residual`. With `risks_only` nothing but risks is added.
    """
    last = len(others) or len(constants)
    E = np.empty((size, last + 1))
    for start in range(0, len(y), size):
        stop = min(len(y), start + size)
        first, end = indptr[start], indptr[stop]
        x, column, place = values[first:end], columns[first:end], places[first:end]
        for i in range(stop - start):
            for k in range(last):
                E[i, k] = constants[k]
            E[i, last] = 0.0
        for p in range(len(x)):
            i, j = np.uint64(place[p]), np.uint64(column[p])
            for k in range(last):
                E[i, k] += x[p] * table[j, k]
        to_residual(E[: stop - start], y[start:stop], w[start:stop], power, others, risks)
        if risks_only:
            continue
        for i in range(stop - start):
            for k in range(last):
                s0[k] += E[i, k]
        for p in range(len(x)):
            i, j = np.uint64(place[p]), np.uint64(column[p])
            for k in range(last):
                sums[j, k] += x[p] * E[i, k]


def scan_two(
    values, columns, places, indptr, size, table, constants, y, w, power, others, risks_only, s0, sums, risks
):
    """Do the same for two classes: a row has one score, that of the first class against the second."""
    weights, total, E = table.reshape(-1), sums.reshape(-1), np.empty(size)
    for start in range(0, len(y), size):
        stop = min(len(y), start + size)
        first, end = indptr[start], indptr[stop]
        x, column, place = values[first:end], columns[first:end], places[first:end]
        E[:] = constants[0]
        for p in range(len(x)):
            E[np.uint32(place[p])] += x[p] * weights[np.uint32(column[p])]
        to_residual_two(E[: stop - start], y[start:stop], w[start:stop], power, risks)
        if risks_only:
            continue
        for i in range(stop - start):
            s0[0] += E[i]
        add_values(x, column, place, E, total)


def add_values(x, column, place, E, sums):
    """Add E[place] x to sums[column], where four of the same column are added at once.

    A sum that was just stored is slow to load, and common columns have many values in a block.
    """
    whole = len(x) // 4
    for h in range(whole):
        p = 4 * h
        a, b = x[p] * E[np.uint32(place[p])], x[p + 1] * E[np.uint32(place[p + 1])]
        c, d = x[p + 2] * E[np.uint32(place[p + 2])], x[p + 3] * E[np.uint32(place[p + 3])]
        if column[p] == column[p + 3]:
            sums[np.uint32(column[p])] += (a + b) + (c + d)
        else:
            sums[np.uint32(column[p])] += a
            sums[np.uint32(column[p + 1])] += b
            sums[np.uint32(column[p + 2])] += c
            sums[np.uint32(column[p + 3])] += d
    for p in range(4 * whole, len(x)):
        sums[np.uint32(column[p])] += x[p] * E[np.uint32(place[p])]


def to_residual(scores, y, w, power, others, risks):
    """Replace scores by E[i, k] = w P[y]^power (1[y = k] - P[k]); add soft error, error, log loss to risks.

    An empty `w` stands for one each.
    """
    r = (len(others) or scores.shape[1] - 1) + 1
    for i in range(len(y)):
        label, weight = y[i], w[i] if len(w) else 1.0
        best = 0
        for k in range(1, r):
            if scores[i, k] > scores[i, best]:
                best = k
        top = scores[i, best]
        own, rest = scores[i, label] - top, 0.0
        for k in range(r):
            scores[i, k] = np.exp(scores[i, k] - top) if k != best else 1.0
            if k != label:
                rest += scores[i, k]
        evidence = scores[i, label] + rest
        scale = weight / evidence
        risks[0] += scale * rest
        risks[1] += weight * (best != label)
        risks[2] += weight * (np.log(evidence) - own)
        if power:
            scale *= scores[i, label] / evidence
        for k in range(r):
            scores[i, k] *= -scale
        scores[i, label] = scale * rest  # 1 - P[y] with all its digits


def to_residual_two(scores, y, w, power, risks):
    """Do the same for two classes: scores and residuals are those of the first."""
    soft, wrong, log_loss = 0.0, 0.0, 0.0
    for i in range(len(y)):
        sign, weight = 1.0 - 2.0 * y[i], w[i] if len(w) else 1.0
        odds = sign * scores[i]
        small = np.exp(-abs(odds))
        rest = (small if odds >= 0 else 1.0) / (1.0 + small)
        soft += weight * rest
        wrong += weight * (odds < 0 or (odds == 0 and y[i] == 1))
        log_loss += weight * (np.log1p(small) + (0.0 if odds >= 0 else -odds))
        scores[i] = sign * weight * rest * ((1.0 if odds >= 0 else small) / (1.0 + small) if power else 1.0)
    risks[0] += soft
    risks[1] += wrong
    risks[2] += log_loss


def kernels() -> Any:
    """Return the compiled functions of this file by name; one thread compiles them, others wait."""
    with _compiling:
        return _kernels()


@cache
def _kernels() -> dict[str, Any]:
    own = [name for name, f in globals().items() if inspect.isfunction(f) and f.__module__ == __name__]
    # Sums in the order of the rows: reordered ones are gathered by vector instructions, at half the speed.
    found = {name: compiled(globals()[name], reorder=False) for name in own if "kernels" not in name}
    globals().update(found)  # compiled functions call each other by these names
    return found


_compiling = Lock()
