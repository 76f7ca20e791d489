"""Scans of sparse rows (CSR) by compiled code, in threads, and sums of the rows by class.

A table that is scanned again is sorted into blocks (`sparse_rows`), which takes as long as a few scans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from riskbayes.arrays import Array
from riskbayes.loaded import require_shape
from riskbayes.risks import Risks
from riskbayes.scanners.kernels import known, readonly
from riskbayes.threads import available_threads, in_threads

T = TypeVar("T")

SMALLEST = 2**19
"""Stored values below which compiled code is not worth the time to load it."""

SHARES = 16
"""Most shares of the rows that are scanned or summed apart, in threads."""

SMALLEST_SHARE = 2**15
"""Fewest stored values of a share."""

GROUP = 8
"""Most classes that are summed in one pass over CSR: the sums of more do not fit the cache."""

MOST_CLASSES = 32
"""Most classes for which rows are sorted into blocks: each share has sums of its own."""

RISKS = "soft_error", "error", "log_loss"
"""Names of the risks that scans sum."""


def is_worth_it(n_stored: int) -> bool:
    """True if a table with so many stored values is scanned by compiled code."""
    return n_stored >= SMALLEST and find_spec("numba") is not None  # the extra `fast`


@dataclass(frozen=True)
class Share:
    """Rows in blocks, with the stored values of each block in the order of their columns."""

    rows: slice
    values: Array
    columns: Array
    places: Array
    """The row of each value, counted from the start of its block; below 2^16."""
    indptr: Array
    """Bounds of the rows, hence of the blocks, in the values."""
    block_size: int
    """Rows of a block."""


def sorted_shares(Z: Any, n_classes: int) -> list[Share]:
    """Return the rows in shares of sorted blocks: a copy of the table, in narrow numbers where they suffice.

    The weights of all columns are read for each block. It has about as many values as there are columns, and
    at least so many rows that the scores of the block stay in the cache, which the weights may not.
    """
    from riskbayes.scanners.kernels import loops  # numba is slow to import, and optional

    n, first = Z.shape[1], int(Z.indptr[0])
    number = int(Z.indptr[-1]) - first
    size = min(2**16, max(512 if n_classes <= GROUP else 2048, int(n / max(1.0, Z.cells))))
    values: Array = np.empty(number, narrowest(Z.data))
    columns, places = np.empty(number, np.uint32), np.empty(number, np.uint16)

    def on_share(rows: slice) -> Share:
        own = Z[rows]
        part = slice(int(own.indptr[0]) - first, int(own.indptr[-1]) - first)
        found = values[part], columns[part], places[part]
        loops.sort_blocks(*stored(own), n, size, *found)
        x, j, i = (readonly(A, A.dtype) for A in found)
        return Share(rows, x, j, i, readonly(own.indptr - own.indptr[0], np.int64), size)

    return list(threaded(on_share, shares_of(Z, 8 * n)))


def narrowest(values: Array) -> type:
    """Return float32 if it holds all the values exactly, as it does counts; else float64.

    Sums are float64 all the same. The time of a scan is largely that of reading the rows from memory.
    """
    with np.errstate(over="ignore"):
        return np.float32 if np.array_equal(values, values.astype(np.float32)) else np.float64


class SparseScan:
    """A scan of all rows at once: the weights and constants of each class but the last, relative to it."""

    def __init__(self, weights: Array, constants: Array, shares: list[Share] | None):
        require_shape(weights, (len(constants), weights.shape[-1]), "f", "weights")
        self.table = readonly((weights[:-1] - weights[-1]).T)
        self.constants = readonly(constants[:-1] - constants[-1])
        self.shares = shares
        """The rows in sorted blocks; None if they are read as CSR."""

    @classmethod
    def after(cls, last: Any, Z: Any, weights: Array, constants: Array) -> SparseScan:
        """Return the scan of the rows Z that `last` scanned: from the second one on, of sorted blocks."""
        shares = None
        if isinstance(last, SparseScan) and len(constants) <= MOST_CLASSES:
            shares = last.shares or sorted_shares(Z, len(constants))
        return cls(weights, constants, shares)

    def sums(self, Z: Any, y: Array, w: Array | None, power: int) -> tuple[Array, Array, Risks]:
        """Return sum_i E[i, k] and sum_i E[i, k] x_i by class, E the residual of the power, and the risks."""
        if self.shares is None:
            E, risks = self._residuals(Z, y, w, power, risks_only=False)
            return E.sum(axis=0), sums_by_class(Z, E), risks
        s0, counts, risks = self._scan(y, w, power, risks_only=False)
        return with_last(s0), with_last(counts.T), risks

    def risks(self, Z: Any, y: Array, w: Array | None) -> Risks:
        """Return the risks only."""
        if self.shares is None:
            return self._residuals(Z, y, w, 0, risks_only=True)[1]
        return self._scan(y, w, 0, risks_only=True)[2]

    def _scan(self, y: Array, w: Array | None, power: int, risks_only: bool) -> tuple[Array, Array, Risks]:
        """Return the sums of all classes but the last, (others,) and (columns, others), and the risks."""
        from riskbayes.scanners.kernels import loops  # numba is slow to import, and optional

        n, others = self.table.shape

        def on_share(share: Share) -> tuple[Array, Array, Array]:
            found = np.zeros(others), np.zeros((0 if risks_only else n, others)), np.zeros(3)
            rows = share.values, share.columns, share.places, share.indptr, share.block_size
            model = self.table, self.constants
            loops.scan_sorted(
                *rows, *model, *labels_of(y, w, share.rows), power, known(others), risks_only, *found
            )
            return found

        assert self.shares is not None
        s0, counts, risks = total_of(threaded(on_share, self.shares))
        return s0, counts, Risks(RISKS, risks, mass_of(y, w))

    def _residuals(
        self, Z: Any, y: Array, w: Array | None, power: int, risks_only: bool
    ) -> tuple[Array, Risks]:
        """Return the residuals E of all rows (of none with `risks_only`), and the risks."""
        from riskbayes.scanners.kernels import loops  # numba is slow to import, and optional

        require_shape(self.table, (Z.shape[1], len(self.constants)), "f", "table")  # no bounds are checked
        others = len(self.constants)

        def on_share(rows: slice) -> tuple[Array, Array]:
            E, risks = np.empty((rows.stop - rows.start, others + 1)), np.zeros(3)
            model = self.table, self.constants
            loops.write_residuals(
                *stored(Z[rows]), *model, *labels_of(y, w, rows), power, known(others), E, risks
            )
            return E[:0] if risks_only else E, risks

        found = list(threaded(on_share, shares_of(Z, SMALLEST_SHARE)))
        E, risks = np.concatenate([E for E, _ in found]), sum(risks for _, risks in found)
        return E, Risks(RISKS, risks, mass_of(y, w))


def sums_by_class(Z: Any, W: Array) -> Array:
    """Return sum_i W[i, k] x_i, of shape (classes, columns). Groups of classes are summed apart."""
    from riskbayes.scanners.kernels import loops  # numba is slow to import, and optional

    n, r = Z.shape[1], W.shape[1]
    if r == 2 and (W[:, 0] == -W[:, 1]).all():  # a residual: one column says it all
        return with_last(sums_by_class(Z, W[:, :1]))
    groups = [W[:, k : k + GROUP] for k in range(0, r, GROUP)]
    shares = shares_of(Z, 4 * n * groups[0].shape[1])

    def on_share(part: tuple[Array, slice]) -> Array:
        V, rows = part
        out = np.zeros((n, V.shape[1]))
        loops.add_rows(*stored(Z[rows]), readonly(V[rows]), known(V.shape[1]), out)
        return out

    found = threaded(on_share, [(V, rows) for V in groups for rows in shares])
    totals = [reduce(np.add, [next(found) for _ in shares]) for _ in groups]
    return np.ascontiguousarray(np.concatenate(totals, axis=1).T)


def shares_of(Z: Any, least: int) -> list[slice]:
    """Return slices of the rows with about as many stored values each, `least` or more, for threads.

    Their number, a power of two, depends on the size of the table only, so that sums are the same for any
    number of threads.
    """
    first, last = int(Z.indptr[0]), int(Z.indptr[-1])
    number = min(SHARES, 1 << (max(1, (last - first) // max(1, least)).bit_length() - 1))
    inner = np.searchsorted(Z.indptr, first + (last - first) * np.arange(1, number) // number)
    return [slice(start, stop) for start, stop in pairwise([0, *inner.tolist(), Z.shape[0]])]


def threaded(work: Callable[[Any], T], parts: list) -> Iterator[T]:
    """Apply `work` to every part, in threads; yield the results in the order of the parts."""
    return in_threads(work, parts, min(len(parts), available_threads()))


def total_of(parts: Iterator[tuple[Array, ...]]) -> tuple[Array, ...]:
    """Return the sums of tuples of arrays, array by array, added to those of the first tuple in place."""
    total = next(parts)
    for part in parts:
        for sums, more in zip(total, part, strict=True):
            sums += more
    return total


def with_last(sums: Array) -> Array:
    """Return the sums of all classes (first axis), which add up to zero, from those of all but the last."""
    found = np.empty((len(sums) + 1, *sums.shape[1:]))
    found[:-1] = sums
    last = np.add.reduce(sums, axis=0, out=found[-1, ...])
    np.negative(last, out=last)
    return found


def stored(Z: Any) -> tuple[Array, Array, Array]:
    """Return the values, columns and row bounds of sparse rows as compiled code reads them."""
    return readonly(Z.data, Z.data.dtype), readonly(Z.indices, Z.indices.dtype), readonly(Z.indptr, np.int64)


def labels_of(y: Array, w: Array | None, rows: slice) -> tuple[Array, Array]:
    """Return class codes and weights of rows as compiled code reads them; an empty array for no weights."""
    return readonly(y[rows], np.int64), readonly(np.empty(0) if w is None else w[rows])


def mass_of(y: Array, w: Array | None) -> float:
    """Return the weight of all rows."""
    return float(len(y) if w is None else w.sum())
