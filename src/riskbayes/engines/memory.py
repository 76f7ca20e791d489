"""The rows in memory, scanned in chunks that fit the cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import threadpool_info

from riskbayes.engines.base import Engine, Scan
from riskbayes.models.base import GenerativeModel, Residual
from riskbayes.risks import NO_RISK
from riskbayes.statistics import Array, Statistics

T = TypeVar("T")

CHUNK_CELLS = 2**18
"""Cells of a chunk of rows, features and classes together: 2 MiB of float64."""


def row_chunks(m: int, width: int) -> Iterator[slice]:
    """Slices of m rows, each of about `CHUNK_CELLS` cells."""
    size = max(64, CHUNK_CELLS // max(1, width))
    for start in range(0, m, size):
        yield slice(start, min(m, start + size))


class MemoryEngine(Engine):
    """NumPy arrays on this machine.

    Parameters
    ----------
    model : GenerativeModel
        What reads the rows.
    Z : prepared rows
        What `model.prepare` made.
    y : array of int, shape (m,)
        Class codes.
    w : array of shape (m,) or None
        Weights; None is one each.
    n_classes : int
        The number of classes, observed here or not.
    """

    def __init__(
        self,
        model: GenerativeModel,
        Z: Any,
        y: Array,
        w: Array | None,
        n_classes: int,
        picked: Array | None = None,
    ):
        self.model, self.n_classes = model, n_classes
        self._Z, self._y, self._w, self._picked = Z, y, w, picked

    @cached_property
    def _threads(self) -> int:
        """Threads of our own: for compiled scans, which leave those of BLAS idle."""
        return available_threads() if getattr(self._Z, "releases_gil", False) else 1

    @property
    def y(self) -> Array:
        """Class codes of the rows."""
        return self._y if self._picked is None else self._y[self._picked]

    @property
    def w(self) -> Array | None:
        """Weights of the rows."""
        return self._w if self._w is None or self._picked is None else self._w[self._picked]

    def subset(self, rows: Array) -> MemoryEngine:
        """Some of the rows, gathered a chunk at a time."""
        picked = rows if self._picked is None else self._picked[rows]
        return MemoryEngine(self.model, self._Z, self._y, self._w, self.n_classes, picked)

    def rows(self, order: Array) -> Iterator[tuple[Any, int, float]]:
        """One row after another."""
        for i in order if self._picked is None else self._picked[order]:
            yield self._Z[i : i + 1], int(self._y[i]), 1.0 if self._w is None else float(self._w[i])

    def _chunks(self, rows: Array | slice | None) -> Iterator[tuple[Any, Array, Array | None]]:
        Z, y, w, picked = self._Z, self._y, self._w, self._picked
        if rows is not None:
            picked = np.arange(len(y))[rows] if picked is None else picked[rows]
        width = getattr(Z, "width", Z.shape[1]) + self.n_classes
        for part in row_chunks(len(y) if picked is None else len(picked), width):
            chunk = part if picked is None else picked[part]
            yield Z[chunk], y[chunk], None if w is None else w[chunk]

    def _each(self, work: Callable[[Any, Array, Array | None], T], rows: Array | slice | None) -> Iterator[T]:
        """The work on every chunk, in their order: with threads of our own where BLAS has none."""
        chunks = self._chunks(rows)
        if self._threads > 1:
            with ThreadPoolExecutor(self._threads) as pool:
                yield from pool.map(lambda chunk: work(*chunk), chunks)
        else:
            yield from (work(*chunk) for chunk in chunks)

    def statistics(self) -> Statistics:
        """s(X, Y)."""
        total, model, r = Sum(), self.model, self.n_classes
        for S in self._each(lambda Z, y, w: model.label_statistics(Z, y, w, r), None):
            total.add(S)
        return total.value()

    def scan(self, theta: Any, residual: Residual | None, rows: Array | slice | None = None) -> Scan:
        """One fused pass; at most one chunk of posteriors a thread exists at a time."""
        total, risks, model = Sum(), NO_RISK, self.model
        for dS, found in self._each(lambda Z, y, w: model.scan_chunk(Z, y, w, theta, residual), rows):
            risks = risks.plus(found)
            if dS is not None:
                total.add(dS)
        return Scan(None if residual is None else total.value(), risks)


def available_threads() -> int:
    """As many threads as BLAS may use: `threadpool_limits` and the environment rule both."""
    return max((pool["num_threads"] for pool in threadpool_info()), default=1)


class Sum:
    """Adds statistics of one frame in place: chunks are many, their arrays may be large."""

    def __init__(self) -> None:
        self.first: Statistics | None = None
        self.arrays: dict[str, Array] | None = None

    def add(self, S: Statistics) -> None:
        """Add one chunk's statistics."""
        if self.first is None:
            self.first = S
        elif self.arrays is None:
            self.arrays = {name: self.first[name] + value for name, value in S.items()}
        else:
            for name, value in S.items():
                self.arrays[name] += value

    def value(self) -> Statistics:
        """The sum."""
        if self.first is None:
            raise ValueError("There are no rows to sum over.")
        return self.first if self.arrays is None else Statistics(self.arrays, self.first.frame)
