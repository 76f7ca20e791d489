"""A strict order of columns that does not depend on where they stand in the table."""

from __future__ import annotations

import numpy as np

from riskbayes.arrays import Array

ODD = tuple(
    np.array(number, dtype=np.uint64)
    for number in (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)
"""Multipliers of the hash, those of splitmix64."""


def column_order(X: Array, y: Array, w: Array | None, *keys: Array) -> Array:
    """Return the columns in the order of the keys; where these tie, what the columns hold decides.

    A permutation of the columns permutes the order with them, but for columns that hold the same, up to
    the names of their categories: these are interchangeable. A permutation of the rows changes the order
    only where another order of the columns would make the same set of rows: nothing but the order of the
    rows can then tell such columns apart.

    Parameters
    ----------
    X : array of shape (m, n)
        Codes.
    y : array of shape (m,)
        Class codes.
    w : array of shape (m,) or None
        Weights.
    *keys : arrays of shape (n,)
        What the order follows, the first before the second.

    Returns
    -------
    order : array of int, shape (n,)
        Columns, first to last.
    """
    place = ranks(*keys)
    if place.max() + 1 < X.shape[1]:
        weight = np.ones(len(y)) if w is None else w
        X, y, weight = X[weight > 0], y[weight > 0], weight[weight > 0]
        content = ranks_of_content(X, tied(place))
        number = 0
        while number <= place.max() < ranks(place, content).max():
            number = place.max() + 1
            place = ranks(place, hashes_by_row(X, y, weight, place))
        place = ranks(place, content)
    return np.argsort(place, kind="stable")


def ranks(*keys: Array) -> Array:
    """Return the place of each entry among the distinct ones, ordered by the first key, then the second."""
    order = np.lexsort(keys[::-1])
    new = np.zeros(len(order), dtype=bool)
    for key in keys:
        new[1:] |= key[order][1:] != key[order][:-1]
    found = np.empty(len(order), dtype=np.int64)
    found[order] = np.cumsum(new)
    return found


def tied(place: Array) -> Array:
    """Return the columns that share their place with another."""
    return np.flatnonzero(np.bincount(place)[place] > 1)


def ranks_of_content(X: Array, columns: Array) -> Array:
    """Return ranks of these columns, compared row by row; the names of their categories do not count."""
    kind = np.dtype(np.min_scalar_type(len(X))).newbyteorder(">")  # bytes in the order of numbers
    held = [b""] * X.shape[1]
    for j in columns:
        _, first, inverse = np.unique(X[:, j], return_index=True, return_inverse=True)
        held[j] = ranks(first)[inverse].astype(kind).tobytes()
    rank = {content: number for number, content in enumerate(sorted(set(held)))}
    return np.array([rank[content] for content in held])


def hashes_by_row(X: Array, y: Array, weight: Array, place: Array) -> Array:
    """Return a hash of each tied column: of its values, and of what stands beside them in their rows.

    Columns beside it count by their places, and classes by the rows that they hold, so that neither the
    order of rows and columns nor the names of the classes enter. This is one step of colour refinement,
    which tells the vertices of a graph apart by their neighbours.
    """
    rows = np.zeros(len(X), dtype=np.uint64)
    for j, at in enumerate(place):
        rows += mixed(at, X[:, j])
    total = weight.sum()
    classes = [hash_of_set(rows[y == k], weight[y == k], total) for k in range(int(y.max()) + 1)]
    rows = mixed(np.array(classes)[y], rows)
    found = np.zeros(len(place), dtype=np.uint64)
    for j in tied(place):
        found[j] = hash_of_set(mixed(rows, X[:, j]), weight, total)
    return found


def hash_of_set(members: Array, weight: Array, total: float) -> Array:
    """Return a hash of weighted members that does not depend on their order."""
    values, inverse = np.unique(members, return_inverse=True)
    shares = np.bincount(inverse, weights=weight) / total
    return mixed(values, np.rint(1e9 * shares)).sum()


def mixed(a: Array, b: Array) -> Array:
    """Return a hash of pairs of whole numbers; sums of it, modulo 2**64, tell sets of pairs apart."""
    h = (np.asarray(a).astype(np.uint64) * ODD[0]) ^ (np.asarray(b).astype(np.uint64) + ODD[1])
    h = (h ^ (h >> np.uint64(30))) * ODD[2]
    h = (h ^ (h >> np.uint64(27))) * ODD[3]
    return h ^ (h >> np.uint64(31))
