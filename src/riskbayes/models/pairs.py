"""Which pairs of columns are worth a table: those whose cells explain residuals that their columns do not."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from riskbayes.arrays import Array

CHUNK = 2**14
"""Rows whose indicators are held at a time."""


def pair_gains(Z: Array, sizes: Array, E: Array, V: Array) -> Array:
    """Return the gain in log likelihood by a table of each pair of columns, beyond that by tables of both.

    A cell whose residuals E sum to e, with the variances V of their posteriors summing to v, gains about
    e^2 / (v + 1) by one step with a ridge of one, where chance alone gives v / (v + 1).

    Parameters
    ----------
    Z : ndarray of int, shape (m, n)
        Bins of the columns; -1 for a missing cell.
    sizes : ndarray of shape (n,)
        The number of bins of each column.
    E, V : ndarray of shape (m, r)
        Residuals, and P (1 - P).

    Returns
    -------
    gains : ndarray of shape (n, n)
        Symmetric; the diagonal has no meaning.
    """
    r, n, width = E.shape[1], Z.shape[1], int(sizes.sum())
    classes = range(1) if r == 2 else range(r)  # of two classes both gain the same
    sums = np.zeros((len(classes), 2, width, width), np.float32)
    for start in range(0, len(Z), CHUNK):
        rows = slice(start, start + CHUNK)
        B = indicators(Z[rows], sizes)
        dense, across = B.toarray(), B.T
        for k in classes:
            for place, A in enumerate((E, V)):
                sums[k, place] += across @ (A[rows, k, None].astype(np.float32) * dense)
    first, found = np.cumsum(sizes) - sizes, np.zeros((n, n))
    for e, v in sums:
        cells = (e * e - v) / (v + 1.0)
        alone = np.add.reduceat(cells.diagonal(), first)
        found += np.add.reduceat(np.add.reduceat(cells, first, axis=0), first, axis=1)
        found -= alone[:, None] + alone
    return found


def indicators(Z: Array, sizes: Array) -> csr_array:
    """Return one-hot rows of bins; a missing cell has zeros."""
    known = Z >= 0
    at = np.where(known, Z, 0) + np.cumsum(sizes) - sizes
    pointers = np.arange(0, Z.size + 1, Z.shape[1])
    return csr_array(
        (known.ravel().astype(np.float32), at.ravel(), pointers), shape=(len(Z), int(sizes.sum()))
    )


def best_pairs(gains: Array, most: int) -> Array:
    """Return the pairs of columns with the largest gains above zero, best first, of shape (pairs, 2)."""
    a, b = np.triu_indices(len(gains), 1)
    order = np.argsort(-gains[a, b], kind="stable")[:most]
    order = order[gains[a, b][order] > 0]
    return np.stack([a[order], b[order]], axis=1)
