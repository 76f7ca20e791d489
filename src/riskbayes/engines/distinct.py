"""Identical rows, merged into one with their weight: exact for every model, whose statistics are sums."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from riskbayes.arrays import Array

LEAST_GAIN = 2.0
"""Rows are merged if there are so many times more of them than distinct ones."""


def merge_rows(X: Array, y: Array, w: Array | None) -> tuple[Array, Array, Array]:
    """Return the distinct rows of codes with their labels, and the weight of each.

    Examples
    --------
    >>> import numpy as np
    >>> from riskbayes.engines.distinct import merge_rows
    >>> X, y, w = merge_rows(np.array([[0, 1], [2, 1], [0, 1]]), np.array([0, 1, 0]), None)
    >>> X.tolist(), y.tolist(), w.tolist()
    ([[0, 1], [2, 1]], [0, 1], [2.0, 1.0])
    """
    first, inverse = np.unique(keys_of(X, y), return_index=True, return_inverse=True)[1:]
    return X[first], y[first], np.bincount(inverse, w, len(first)).astype(np.float64)


def keys_of(X: Array, y: Array) -> Array:
    """Return a key of each row: equal for equal rows and labels, different otherwise.

    A number, if the codes of a row fit into 64 bits; else its bytes.
    """
    tops = [*(X.max(axis=0).astype(object) + 1).tolist(), int(y.max()) + 1]
    size = 1
    for top in tops:
        size *= int(top)
    if size < 2**63:
        key = y.astype(np.int64)
        for j, top in enumerate(tops[:-1]):
            key *= top
            key += X[:, j]
        return key
    whole = np.ascontiguousarray(np.column_stack([X, y]))
    return whole.view(np.dtype((np.void, whole.dtype.itemsize * whole.shape[1]))).ravel()


def hashes_of(X: Array, y: Array) -> Array:
    """Return a number of 64 bits for each row: equal for equal rows and labels, and nearly never otherwise.

    Sums of codes times random odd numbers, modulo 2^64: in little time, which is all that a guess is worth.
    """
    factors = np.random.default_rng(0).integers(2**63, size=X.shape[1], dtype=np.uint64) * 2 + 1
    found = y.astype(np.uint64)
    for j in range(X.shape[1]):
        found += X[:, j].astype(np.uint64) * factors[j]
    return found


class Merger:
    """Merges the rows of one block after another as long as the distinct ones fit into a block."""

    def __init__(self) -> None:
        self.held: tuple[Array, Array, Array] | None = None
        self._read = self._kept = 0

    def pays(self, X: Array, y: Array) -> bool:
        """True if rows repeat often enough: those of this block, the first one, or those merged so far.

        Only rows of codes are merged; a block with missing cells, which are no codes, ends it.
        """
        if not isinstance(X, np.ndarray) or X.dtype.kind not in "iu" or X.min() < 0:
            return False
        if not self._read:
            return len(y) >= LEAST_GAIN * len(np.unique(hashes_of(X, y)))
        return self._read >= LEAST_GAIN * self._kept

    def add(self, X: Array, y: Array, w: Array | None, most: int) -> Iterator[tuple[Array, Array, Array]]:
        """Merge rows with those that are held; yield these when they are more than half of `most`."""
        self._read += len(y)
        found = merge_rows(X, y, w)
        if self.held is not None:
            found = merge_rows(*(np.concatenate(pair) for pair in zip(self.held, found, strict=True)))
        self.held = found
        if len(found[1]) > most // 2:
            self.held, self._kept = None, self._kept + len(found[1])
            yield found
