"""Products of rows with a matrix for each class: squared distances, second moments and traces.

Few cells are one product for all classes, on a GPU as many as its memory takes. Wide rows on a CPU are
multiplied by blocks of columns, without those below the diagonal, and in threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from riskbayes.arrays import Array, max_of, namespace, rows_above, squared_norms, take_rows
from riskbayes.models.centred import PAD, Centred
from riskbayes.models.whitening import SMALL
from riskbayes.threads import available_threads, in_threads

BLOCK = 128
"""Columns of a triangular product that are computed at once: blocks below the diagonal are skipped."""

SMALL_CELLS, SMALL_ON_DEVICE = 2**15, 2**27
"""Largest rows x columns x classes for which all classes are computed in one product."""

CACHED_CELLS = 2**18
"""Cells (rows x columns) that are multiplied at once on a CPU: 2 MiB of float64."""


def squared_distances(Z: Centred, forms: Array) -> Array:
    """Return |A_y^T (1, 0, 0, 0, x)|^2 for each row and class, as many rows at a time as fit the cache.

    `forms` is a stack of matrices A, whose last n rows are upper triangles W: it is |W^T (x - mu)|^2.
    """
    (m, n), r, xp = Z.shape, forms.shape[0], namespace(forms)
    step = max(64, CACHED_CELLS // n if xp is np else SMALL_ON_DEVICE // (r * min(n, BLOCK)))
    if m > step:
        starts = range(0, m, step)
        return xp.concat([squared_distances(Z[i : min(m, i + step)], forms) for i in starts])
    D = Z.design
    if xp is np and D.size * r <= SMALL_CELLS:
        z = D @ forms
        return np.einsum("kij,kij->ki", z, z).T
    if xp is not np:  # one product for all classes: a device is slow at many small ones
        distances: Any = 0.0
        for start in range(0, n, BLOCK):
            stop = min(n, start + BLOCK)
            block = xp.permute_dims(forms[:, : PAD + stop, start:stop], (1, 0, 2))
            z = D[:, : PAD + stop] @ xp.reshape(block, (PAD + stop, r * (stop - start)))
            norms = xp.linalg.vector_norm(xp.reshape(z, (D.shape[0], r, stop - start)), axis=2)
            distances = distances + norms * norms
        return distances
    columns = []
    for k in range(r):
        total: Any = 0.0
        for start in range(0, n, BLOCK):
            stop = min(n, start + BLOCK)
            z = D[:, : PAD + stop] @ forms[k, : PAD + stop, start:stop]
            total = total + squared_norms(z)
        columns.append(total)
    return np.stack(columns).T  # contiguous along the rows of a class


def second_moments(Z: Centred, V: Array) -> tuple[Array, Array]:
    """Return sum_i v_ik x_i and sum_i v_ik x_i x_i^T of each class k, of rows about the origin.

    Rows of negligible weight are skipped.
    """
    xp = namespace(V)
    if xp is np:
        small = V.size * Z.shape[1] <= SMALL_CELLS
        return together(Z.exact, V.T) if small else class_by_class_moments(Z, V)
    # Once for all classes: the host waits for the device at each choice of rows.
    rows = rows_that_count(max_of(xp.abs(V), axis=1))
    Z, V = (Z, V) if rows is None else (Z[rows], take_rows(V, rows))
    cells = max(1, math.prod(V.shape) * Z.shape[1])
    step = max(1, V.shape[0] * SMALL_ON_DEVICE // cells)
    parts = [slice(start, min(V.shape[0], start + step)) for start in range(0, V.shape[0], step)]
    found = [together(Z[part].exact, V[part, ...].T) for part in parts or [slice(0, 0)]]
    first, second = (sum(moments[1:], moments[0]) for moments in zip(*found, strict=True))
    return first, second


def together(D: Array, weights: Array) -> tuple[Array, Array]:
    """Return sum_i w_i x_i and sum_i w_i x_i x_i^T of all classes; `weights` has a row for each class."""
    return weights @ D, D.T[None, ...] @ (weights[:, :, None] * D[None, :, :])


def class_by_class_moments(Z: Centred, V: Array) -> tuple[Array, Array]:
    """Return the same, for each class over its rows of non-negligible weight; wide rows in threads.

    Blocks of columns on or above the diagonal are computed, and mirrored. The result does not depend on the
    number of threads.
    """
    (m, n), r = Z.shape, V.shape[1]
    first, second = np.empty((r, n)), np.zeros((r, n, n))
    kept = [rows_that_count(V[:, k]) for k in range(r)]
    starts, step = range(0, n, BLOCK), max(2 * n, CACHED_CELLS // n)

    def one(task: tuple[int, Sequence[int]]) -> None:
        k, own = task
        rows, last = kept[k], min(n, max(own) + BLOCK)
        number = m if rows is None else len(rows)
        whole = rows is None and m <= step  # a chunk caches x - origin for all classes
        total, buffer = np.zeros(last), np.empty((0 if whole else min(step, number), last))
        for begin in range(0, number, step):
            part: Any = slice(begin, min(number, begin + step))
            part = part if rows is None else rows[part]
            w = V[part, k]
            origin, own_rows = Z.frame.origin[:last], buffer[: len(w)]
            D = Z.exact if whole else np.subtract(Z.X[part, :last], origin, out=own_rows)
            total += w @ D[:, :last]
            for start in own:
                stop = min(n, start + BLOCK)
                second[k, :stop, start:stop] += D[:, :stop].T @ (D[:, start:stop] * w[:, None])
        for start in own:
            stop = min(n, start + BLOCK)
            first[k, start:stop] = total[start:stop]
            second[k, start:stop, :start] = second[k, :start, start:stop].T

    threads = available_threads() if n > SMALL else 1
    tasks: list[tuple[int, Sequence[int]]] = [(k, starts) for k in range(r)]
    if 2 * threads > r and threads > 1:  # smaller tasks, the largest first
        tasks = [(k, [start]) for start in reversed(starts) for k in range(r)]
    for _ in in_threads(one, tasks, threads):
        pass
    return first, second


def rows_that_count(weights: Array) -> Array | None:
    """Return the indices of the rows whose weight is not negligible, or None if most are kept."""
    xp = namespace(weights)
    size = xp.abs(weights)
    return rows_above(size, 1e-12 * max_of(size)) if size.shape[0] else None


def wide_traces(second: Callable[[int], Array], W: Array) -> Array:
    """Return tr(W^T s2 W) for s2 = second(k) of each class, W upper triangular, by blocks of its columns."""
    r, n, _ = W.shape

    def one(k: int) -> float:
        s2, found = second(k), 0.0
        for start in range(0, n, BLOCK):
            stop = min(n, start + BLOCK)
            block = W[k, :stop, start:stop]
            found += float(np.einsum("ij,ij->", s2[:stop, :stop] @ block, block))
        return found

    return np.fromiter(in_threads(one, range(r), min(r, available_threads())), dtype=np.float64, count=r)
