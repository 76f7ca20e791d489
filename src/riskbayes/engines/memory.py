"""The rows in memory, scanned in chunks that fit the cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Self, TypeVar

import numpy as np

from riskbayes.arrays import like, namespace, sent_to, take_rows, widest_float
from riskbayes.engines.base import Engine, Scan
from riskbayes.models.base import GenerativeModel, Residual
from riskbayes.risks import NO_RISK
from riskbayes.statistics import Array, Statistics
from riskbayes.threads import available_threads, in_threads

T = TypeVar("T")

CHUNK_CELLS = 2**18
"""Cells of a chunk of rows, features and classes together: 2 MiB of float64."""

SHARES = 4
"""Several chunks are a multiple of this."""


def row_chunks(m: int, width: int, cells: int = CHUNK_CELLS) -> list[slice]:
    """Slices of m rows, each of about so many cells or less.

    Where there are several they are of one size and a multiple of `SHARES`, so that threads end together;
    they do not depend on the number of threads, nor do the sums over them.
    """
    number = -(-m // max(64, cells // max(1, width)))
    if number > 1:
        number = -(-number // SHARES) * SHARES
    size = max(1, -(-m // max(1, number)))
    return [slice(start, min(m, start + size)) for start in range(0, m, size)]


class MemoryEngine(Engine):
    """NumPy arrays on this machine.

    Chunks go to threads of our own, each with one thread of BLAS: what is not a product then runs on all
    cores too.

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
    picked : array of int, optional
        The rows that count; None is all of them.
    X : array of shape (m, n), optional
        The table that Z was made of: what a fold learns from.
    """

    chunk_cells = CHUNK_CELLS

    def __init__(
        self,
        model: GenerativeModel,
        Z: Any,
        y: Array,
        w: Array | None,
        n_classes: int,
        picked: Array | None = None,
        X: Array | None = None,
    ):
        self.model, self.n_classes = model, n_classes
        self._Z, self._y, self._w, self._picked, self._X = Z, y, w, picked, X

    @property
    def y(self) -> Array:
        """Class codes of the rows."""
        return self._y if self._picked is None else self._y[self._picked]

    @property
    def w(self) -> Array | None:
        """Weights of the rows."""
        return self._w if self._w is None or self._picked is None else self._w[self._picked]

    def subset(self, rows: Array) -> Self:
        """Some of the rows, gathered a chunk at a time."""
        picked = rows if self._picked is None else self._picked[rows]
        return type(self)(self.model, self._Z, self._y, self._w, self.n_classes, picked, self._X)

    def fold(
        self, kept: Array, held: Array, mass: float, past: Statistics | None = None
    ) -> tuple[Self, Self, Statistics]:
        """Engines over copies of the kept and of the held rows."""
        X, y, w = self._taken(kept)
        model = self.model.learn(X, y, w, self.n_classes)
        train = type(self)(model, model.prepare(X, w), y, w, self.n_classes, X=X)
        ones = namespace(y).ones(y.shape[0], **{**like(y), "dtype": widest_float(y)}) if w is None else w
        train._w = (mass / train.mass) * ones
        S = train.statistics() if past is None else train.statistics() + past
        train.model = model.bind(S)
        X, y, w = self._taken(held)
        Z = train.model.rows(X, train.model.parameters(S))
        return train, type(self)(train.model, Z, y, w, self.n_classes, X=X), S

    def read_by(self, model: GenerativeModel, theta: Any) -> Self:
        """The same rows, with parameters of another fold, say."""
        Z = model.rows(self._table(), theta)
        return type(self)(model, Z, self._y, self._w, self.n_classes, self._picked, self._X)

    def _table(self) -> Array:
        if self._X is None:
            raise ValueError("This engine was made without the table X: pass it to hold rows out.")
        return self._X

    def _taken(self, rows: Array) -> tuple[Array, Array, Array | None]:
        """A copy of some rows of the table, with their labels and weights."""
        picked = sent_to(rows if self._picked is None else self._picked[rows], self._y)
        parts = (None if A is None else take_rows(A, picked) for A in (self._table(), self._y, self._w))
        return tuple(parts)  # type: ignore[return-value]

    def rows(self, order: Array) -> Iterator[tuple[Any, Array, Any]]:
        """One row after another."""
        for i in order.tolist() if self._picked is None else self._picked[order].tolist():
            row = slice(i, i + 1)
            yield self._Z[row], self._y[row], 1.0 if self._w is None else self._w[row]

    def _parts(self, rows: Array | slice | None) -> list:
        """Rows of each chunk: slices, or indices where rows are picked."""
        picked = self._picked
        if rows is not None:
            picked = np.arange(self._y.shape[0])[rows] if picked is None else picked[rows]
        width = getattr(self._Z, "width", self._Z.shape[1]) + self.n_classes
        parts = row_chunks(self._y.shape[0] if picked is None else len(picked), width, self.chunk_cells)
        return parts if picked is None else [picked[part] for part in parts]

    def _each(self, work: Callable[[Any, Array, Array | None], T], rows: Array | slice | None) -> Iterator[T]:
        """The work on every chunk, in their order."""
        Z, y, w, parts = self._Z, self._y, self._w, self._parts(rows)

        def on_part(part: Any) -> T:
            return work(Z[part], y[part], None if w is None else w[part])

        threaded = len(parts) > 1 and getattr(Z, "releases_gil", False)
        yield from in_threads(on_part, parts, min(len(parts), available_threads()) if threaded else 1)

    def statistics(self) -> Statistics:
        """s(X, Y)."""
        total, model, r = Sum(), self.model, self.n_classes
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused by who asks for S
            for S in self._each(lambda Z, y, w: model.label_statistics(Z, y, w, r), None):
                total.add(S)
        return total.value()

    def scan(self, theta: Any, residual: Residual | None, rows: Array | slice | None = None) -> Scan:
        """One fused pass; at most one chunk of posteriors a thread exists at a time."""
        total, risks, model = Sum(), NO_RISK, self.model
        if rows is None and self._picked is None:
            theta = model.for_full_scan(theta, self._Z, residual)
        else:
            theta = model.for_scan(theta, self._Z)
        for dS, found in self._each(lambda Z, y, w: model.scan_chunk(Z, y, w, theta, residual), rows):
            risks = risks.plus(found)
            if dS is not None:
                total.add(dS)
        return Scan(None if residual is None else total.value(), risks)

    def map_rows(self, formula: Callable[[Any], Array]) -> Array:
        """Apply `formula` to every chunk of prepared rows; return the results row by row."""
        found = list(self._each(lambda Z, y, w: formula(Z), None))
        return found[0] if len(found) == 1 else namespace(found[0]).concat(found, axis=0)


class Sum:
    """Adds statistics of one frame in place: chunks are many, their arrays may be large."""

    def __init__(self) -> None:
        self.first: Statistics | None = None
        self.arrays: dict[str, Array] = {}
        self.frame: Any = None

    def add(self, S: Statistics) -> None:
        """Add one chunk's statistics."""
        if self.arrays:
            for name, value in S.items():
                self.arrays[name] += value
        elif self.first is None:
            self.first, self.frame = S, S.frame
        else:
            self.arrays = {name: value + S[name] for name, value in self.first.items()}
            self.first = None  # its arrays may be large

    def value(self) -> Statistics:
        """The sum."""
        if self.arrays:
            return Statistics(self.arrays, self.frame)
        if self.first is None:
            raise ValueError("There are no rows to sum over.")
        return self.first
