"""The engine that holds the rows in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from hashlib import blake2b
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.sparse import issparse

from riskbayes.arrays import (
    Array,
    namespace,
    one_hot,
    row_width,
    sum_of,
    take_rows,
    to_device,
    to_numpy,
    widest_float,
)
from riskbayes.engines.base import Engine, Formula, Scan
from riskbayes.frames import Frame
from riskbayes.models.base import Fitted, GenerativeModel, Sample
from riskbayes.objectives import Objective
from riskbayes.scanners.dense import ON_DEVICE, ON_HOST, Labels, Scanner
from riskbayes.statistics import Statistics
from riskbayes.threads import OneBlasThread

BLOCK_CHUNKS = 16
"""Number of chunks that are encoded at once for prediction: 32 MiB of float64."""

LARGE_PRODUCT = 2**25
"""Multiplications from which on a product is worth the threads of BLAS: some ten milliseconds of one thread.

Threads of BLAS wait for one another at the end of each product. Beside other processes that keep all cores
busy, a wait takes as long as a turn of theirs: a hundred times as long as a small product.
"""

TINY_PRODUCT = 2**13
"""Multiplications up to which BLAS uses one thread by itself: a limit would take a sixth of the time in which
a few rows are predicted."""


class EncodedRows(NamedTuple):
    """The rows Z encoded by a model in a frame."""

    model: GenerativeModel
    frame: Frame
    Z: Any


class MemoryEngine(Engine):
    """Arrays in memory: of NumPy, a sparse table of SciPy (CSR), or arrays of another library on any device.

    On a device scans run in large chunks, for a GPU is slow at small products, and only the risks leave it.

    Parameters
    ----------
    X : array of shape (m, n)
        Rows, as the estimator validated them; `y` and `w` are on their device.
    y : array of int, shape (m,), or None
        Class codes; None for rows that are only predicted.
    w : array of shape (m,) or None
        Weights; None stands for one each.
    n_classes : int
        The number of classes, including those without rows.
    """

    def __init__(self, X: Array, y: Array | None, w: Array | None, n_classes: int):
        self._X, self._y, self._w, self.n_classes = X, y, w, n_classes
        self._labels = Labels(y, w, n_classes)
        self.n_rows: int = X.shape[0]
        self.rows = X
        self.split = ON_HOST if namespace(X) is np else ON_DEVICE
        self._encoded: EncodedRows | None = None
        self._scanner: Scanner | None = None

    @property
    def masses(self) -> Array:
        """The weight of each class."""
        if isinstance(self._y, np.ndarray):
            return np.bincount(self._y, self._w, self.n_classes).astype(np.float64)
        return sum_of(one_hot(self._y, self.n_classes, self._w, widest_float(self._y)), axis=0)

    @property
    def mass(self) -> float:
        """The weight of all rows."""
        return float(self.n_rows if self._w is None else sum_of(self._w))

    def learn(self, model: GenerativeModel) -> Frame:
        """Return the frame that the model learns from all rows."""
        frame, Z = model.learn_own(Sample(self._X, self._y, self._w, self.n_classes))
        if Z is not None:
            self._encoded, self._scanner = EncodedRows(model, frame, Z), None
        return frame

    def _scanner_in(self, model: GenerativeModel, frame: Frame) -> Scanner:
        """Return the scanner of the rows in a frame. A fit encodes them once: its frames compare equal."""
        known = self._encoded
        if known is None or known.model is not model or known.frame != frame:
            known, self._scanner = EncodedRows(model, frame, model.encode(self._X, frame)), None
        self._encoded = known._replace(frame=frame)  # a settled frame is equal to the one that was learned
        if self._scanner is None:
            self._scanner = self._scanner_of(model, known.Z)
        return self._scanner

    def _scanner_of(self, model: GenerativeModel, Z: Any) -> Scanner:
        """Return the model's scanner of rows, for the place where they are."""
        scanner = model.scanner(Z)
        scanner.split = self.split
        return scanner

    def forget_scans(self) -> None:
        """Forget what the last scan left for the next one."""
        if self._scanner is not None:
            self._scanner.forget()

    def statistics(self, model: GenerativeModel, frame: Frame) -> Statistics:
        """Return s(X, Y), the statistics of the labels."""
        with np.errstate(over="ignore", invalid="ignore"):  # the caller raises for sums that overflow
            return self._scanner_in(model, frame).statistics(self._labels)

    def scan(self, fitted: Fitted, objective: Objective, part: Any = None, risks_only: bool = False) -> Scan:
        """Return dS and the risks in one pass; a thread keeps the posteriors of one chunk at a time."""
        model, S, theta = fitted
        scanner, labels = self._scanner_in(model, S.frame), self._labels
        if part is not None:
            scanner, labels = self._scanner_of(model, scanner.Z[part]), labels.of(part)
        dS, risks = scanner.scan(theta, labels, objective, risks_only)
        return Scan(None if dS is None else dS.with_frame(S.frame), risks)

    def map_rows(self, path: Sequence[Fitted], formula: Formula) -> list[Array]:
        """Apply a formula to all rows for each model of `path`; blocks of chunks are encoded at a time."""
        model, frame, X = path[0].model, path[0].S.frame, self._X
        thetas = [fitted.theta for fitted in path]
        found: list[list[Array]] = []
        size = max(1, self.n_rows)
        if model.traits.encode_copies:
            size = max(1, int(BLOCK_CHUNKS * self.split.cells // max(1, row_width(X))))
        for start in range(0, self.n_rows, size):
            Z = model.encode(X[start : min(self.n_rows, start + size), ...], frame)
            with self.one_blas_thread():
                found += self._scanner_of(model, Z).map(thetas, formula, start, self.n_classes)
        if len(found) == 1:
            return found[0]
        return [namespace(X).concat(results, axis=0) for results in zip(*found, strict=True)]

    def one_blas_thread(self) -> AbstractContextManager:
        """Return the context of work on these rows: BLAS uses one thread if its products are small.

        The largest ones are those of a chunk of rows with a matrix of n x n.
        """
        n = self._X.shape[1]
        small = TINY_PRODUCT < n * min(self.n_rows * n, ON_HOST.cells) < LARGE_PRODUCT
        return OneBlasThread(works=False) if small else nullcontext()

    def fingerprint(self) -> str:
        """Return a digest of the rows, labels and weights."""
        found = blake2b(f"{self.n_classes}".encode(), digest_size=16)
        table: Any = self._X
        parts = [table.indptr, table.indices, table.data] if issparse(table) else [table]
        for values in (*parts, self._y, self._w):
            host = np.empty(0) if values is None else np.ascontiguousarray(to_numpy(values))
            found.update(f"{values is None} {host.dtype} {host.shape}".encode())
            found.update(host.reshape(-1).view(np.uint8).data)
        return found.hexdigest()

    def class_counts(self) -> Array:
        """Return how many rows of positive weight each class has."""
        return np.bincount(to_numpy(self._y)[self._counted()], minlength=self.n_classes)

    def _counted(self) -> Array:
        """Return the indices of the rows of positive weight: only these are split."""
        return np.arange(self.n_rows) if self._w is None else np.flatnonzero(to_numpy(self._w) > 0)

    def folds(self, n_folds: int, random_state: Any) -> Iterator[tuple[Self, Self]]:
        """Yield, for each fold, engines over copies of the training and of the held-out rows."""
        from sklearn.model_selection import StratifiedKFold  # slow to import

        yield from self._split(StratifiedKFold(n_folds, shuffle=True, random_state=random_state))

    def hold_out(self, size: int, random: np.random.RandomState) -> tuple[Self, Self]:
        """Return engines over copies of the training and of the held-out rows."""
        from sklearn.model_selection import StratifiedShuffleSplit  # slow to import

        return next(self._split(StratifiedShuffleSplit(1, test_size=size, random_state=random)))

    def _split(self, splitter: Any) -> Iterator[tuple[Self, Self]]:
        rows = self._counted()
        for kept, held in splitter.split(np.empty((len(rows), 0)), to_numpy(self._y)[rows]):
            yield self.taken(rows[kept]), self.taken(rows[held])

    def taken(self, rows: Array) -> Self:
        """Return an engine over a copy of some rows."""
        picked = to_device(rows, self._X)
        X, y, w = (None if A is None else take_rows(A, picked) for A in (self._X, self._y, self._w))
        return type(self)(X, y, w, self.n_classes)

    def thinned(self, size: int) -> Self:
        """Return an engine over copies of rows at evenly spaced shares of the total weight, of weight one."""
        if self._w is None and self.n_rows <= size:
            return self
        number = min(self.n_rows, size)
        shares = (np.arange(number) + 0.5) / number
        if self._w is None:
            return self.taken((shares * self.n_rows).astype(np.int64))
        mass = np.cumsum(to_numpy(self._w))
        return self._weighted(None).taken(np.searchsorted(mass, shares * mass[-1]))

    def _weighted(self, w: Array | None) -> Self:
        """Return an engine over the same rows with other weights; it shares the encoded rows."""
        found = type(self)(self._X, self._y, w, self.n_classes)
        found._encoded = self._encoded
        return found

    def scaled(self, factor: float) -> Self:
        """Return an engine over the same rows, with weights multiplied by a factor."""
        y, w = self._y, self._w
        w = namespace(y).ones_like(y, dtype=widest_float(y)) if w is None else w
        return self._weighted(factor * w)

    def weighted(self, by_class: Array) -> Self:
        """Return an engine over the same rows, with weights multiplied by one of their class."""
        own = take_rows(by_class, self._y)
        return self._weighted(own if self._w is None else self._w * own)

    def bootstrap(self, random: np.random.RandomState) -> Self:
        """Return an engine over the same rows, weighted by how often each was drawn with replacement."""
        drawn = np.bincount(random.randint(self.n_rows, size=self.n_rows), minlength=self.n_rows)
        times = to_device(drawn.astype(np.float64), self._X)
        return self._weighted(times if self._w is None else times * self._w)

    def batches(self, size: int, rng: np.random.Generator) -> Sequence[Array]:
        """Return the row indices of each batch, in random order."""
        parts = np.array_split(rng.permutation(self.n_rows), max(1, round(self.n_rows / size)))
        return [to_device(part, self._X) for part in parts]

    def one_by_one(
        self, model: GenerativeModel, frame: Frame, random: np.random.RandomState | None
    ) -> Iterator[tuple[Any, Array, Any]]:
        """Yield each encoded row, its class code and its weight, in random order if `random` is given."""
        Z, y = self._scanner_in(model, frame).Z, self._y
        assert y is not None
        order = range(self.n_rows) if random is None else random.permutation(self.n_rows).tolist()
        for i in order:
            row = slice(i, i + 1)
            yield Z[row], y[row], 1.0 if self._w is None else self._w[row]
