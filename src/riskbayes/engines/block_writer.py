"""Encoded rows, written to a spool in blocks whose size does not depend on that of the batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from riskbayes.arrays import Array, row_width
from riskbayes.engines.block_work import join_rows
from riskbayes.engines.distinct import Merger
from riskbayes.engines.spool import Spool

BLOCK_CELLS = 2**21
"""Cells of a block, rows x columns: 16 MiB of float64. Scans of fewer are not compiled."""


class BlockWriter:
    """Writes encoded rows to a spool, in blocks whose size does not depend on that of the batches.

    Parameters
    ----------
    spool : Spool
        Where to write.
    merge : bool
        True to merge identical rows, if the first block says that it pays.
    block_rows : int
        Rows of a block; 0 for as many as `BLOCK_CELLS` allow.
    """

    def __init__(self, spool: Spool, merge: bool = False, block_rows: int = 0):
        self.spool, self.n_rows = spool, 0
        self.files: list[tuple[Path, Path]] = []
        self._held: list[tuple[Any, Array, Array | None]] = []
        self._count, self._size = 0, block_rows
        self._merger = Merger() if merge else None
        self.merged = False

    def add(self, X: Any, y: Array, w: Array | None) -> None:
        """Add rows; write a block for each that is full."""
        if not len(y):
            return
        if not self._size:
            self._size = max(64, int(BLOCK_CELLS // max(1, row_width(X))))
        self.n_rows += len(y)
        at = 0
        while at < len(y):
            end = min(len(y), at + self._size - self._count)
            # A copy, so that what is held back does not keep the whole batch.
            own = X[at:end] if issparse(X) else smallest(X[at:end])
            self._held.append((own, y[at:end].astype(np.int64), None if w is None else w[at:end].copy()))
            self._count, at = self._count + end - at, end
            if self._count == self._size:
                self._full()

    def flush(self) -> None:
        """Write what is left."""
        if self._count:
            self._full()
        if self._merger is not None and self._merger.held is not None:
            self._write(*self._merger.held)

    def _full(self) -> None:
        X, y, w = join_rows(self._held)
        self._held, self._count = [], 0
        if self._merger is None:
            return self._write(X, y, w)
        if not self._merger.pays(X, y):
            if self._merger.held is not None:
                self._write(*self._merger.held)
            self._merger = None
            return self._write(X, y, w)
        self.merged = True
        for block in self._merger.add(X, y, w, self._size):
            self._write(*block)
        return None

    def _write(self, X: Any, y: Array, w: Array | None) -> None:
        labels = self.spool.write((y.astype(np.min_scalar_type(int(y.max()))), w, X.shape[1]))
        self.files.append((self.spool.write(X), labels))


def smallest(X: Array) -> Array:
    """Return a copy of rows, whole numbers from 0 in the smallest dtype that holds them."""
    if X.dtype.kind in "iu" and X.size and X.min() >= 0:
        return X.astype(np.min_scalar_type(int(X.max())))
    return X.copy()
