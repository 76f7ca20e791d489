"""The engine that holds the rows in memory and scans them in chunks that fit the cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Self, TypeVar

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
from riskbayes.risks import NO_RISK, Risks
from riskbayes.statistics import Statistics
from riskbayes.threads import available_threads, in_threads

T = TypeVar("T")

CHUNK_CELLS = 2**18
"""Cells of a chunk, rows x (features + classes): 2 MiB of float64."""

MAPPED_CELLS = 2**20
"""The same for prediction, which keeps no sums in the cache: rows with missing cells cost a step for each
pattern in every chunk."""

BLOCK_CHUNKS = 16
"""Number of chunks that are encoded at once for prediction: 32 MiB of float64."""

SHARES = 16
"""Largest number of shares: each is a list of chunks that one thread sums, equal to finish together."""


def shares_of(m: int, width: float, cells: int = CHUNK_CELLS) -> list[list[slice]]:
    """Return the chunks, slices of m rows with at most about `cells` cells each, in shares for threads.

    They depend on the size of the table only, so that sums are the same for any number of threads. Where
    there is more than one chunk their number is rounded up to four, or to a multiple of `SHARES`.
    """
    number = -(-m // max(64, int(cells // max(1, width))))
    if number <= 1:
        return [[slice(0, m)]]
    several = 4 if number <= 4 else SHARES
    number = -(-number // several) * several
    size = -(-m // number)
    chunks = [slice(start, min(m, start + size)) for start in range(0, m, size)]
    each = -(-len(chunks) // SHARES)
    return [chunks[i : i + each] for i in range(0, len(chunks), each)]


@dataclass
class EncodedRows:
    """The rows encoded by a model in a frame, and the plan of the last scan of all of them."""

    model: GenerativeModel
    frame: Frame
    Z: Any
    plan: Any = None


class MemoryEngine(Engine):
    """NumPy arrays on this machine, or a sparse table of SciPy (CSR).

    Chunks are scanned in Python threads, each with one BLAS thread, so that all cores also work on what is
    not a matrix product.

    Parameters
    ----------
    X : array of shape (m, n)
        Rows, as the estimator validated them.
    y : array of int, shape (m,), or None
        Class codes; None for rows that are only predicted.
    w : array of shape (m,) or None
        Weights; None stands for one each.
    n_classes : int
        The number of classes, including those without rows.
    """

    chunk_cells = CHUNK_CELLS

    def __init__(self, X: Array, y: Array | None, w: Array | None, n_classes: int):
        self._X, self._y, self._w, self.n_classes = X, y, w, n_classes
        self.n_rows: int = X.shape[0]
        self.rows = X
        self._encoded: EncodedRows | None = None
        self._learned: Frame | None = None

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
        self._learned = model.learn(Sample(self._X, self._y, self._w, self.n_classes))
        return self._learned

    def _rows(self, model: GenerativeModel, frame: Frame) -> EncodedRows:
        """Return the encoded rows. A fit encodes them once, because its frames compare equal."""
        known = self._encoded
        if known is None or known.model is not model or known.frame != frame:
            if self._learned is not None and frame == self._learned:
                Z = model.encode_own(self._X, self._learned)
            else:
                Z = model.encode(self._X, frame)
            known = self._encoded = EncodedRows(model, frame, Z)
        known.frame = frame  # a settled frame is equal to the one that was learned
        return known

    def statistics(self, model: GenerativeModel, frame: Frame) -> Statistics:
        """Return s(X, Y), the statistics of the labels."""
        rows, r = self._rows(model, frame), self.n_classes
        with np.errstate(over="ignore", invalid="ignore"):  # the caller raises for sums that overflow
            if model.returns_residuals(rows.Z):
                return model.label_statistics(rows.Z, self._y, self._w, r)
            total, _ = self._sum(
                model,
                lambda Z, y, w: (model.label_statistics(Z, y, w, r), NO_RISK),
                rows.Z,
                self._y,
                self._w,
            )
        assert total is not None
        return total

    def scan(self, fitted: Fitted, objective: Objective, part: Any = None, risks_only: bool = False) -> Scan:
        """Return dS and the risks in one pass; a thread keeps the posteriors of one chunk at a time."""
        model, S, theta = fitted
        rows = self._rows(model, S.frame)
        Z, y, w, last = rows.Z, self._y, self._w, rows.plan
        if part is not None:
            Z, y, w, last = Z[part], take_rows(y, part), None if w is None else take_rows(w, part), None
        plan = model.plan_scan(Z, theta, objective, last)
        if part is None:
            rows.plan = plan  # also if the scan is interrupted

        def work(Z: Any, y: Array, w: Array | None) -> tuple[Any, Risks]:
            return model.scan_chunk(Z, y, w, plan, objective, risks_only)

        if model.splits_rows(plan):
            dS, risks = work(Z, y, w)
        else:
            residuals = not risks_only and model.returns_residuals(Z)
            dS, risks = self._sum(model, work, Z, y, w, residuals)
        if part is None:
            rows.plan = model.remembered(plan)
        return Scan(None if dS is None else dS.with_frame(S.frame), risks)

    def _sum(
        self,
        model: GenerativeModel,
        work: Callable,
        Z: Any,
        y: Array,
        w: Array | None,
        residuals: bool = False,
    ) -> tuple[Statistics | None, Risks]:
        """Return the sums of the statistics and risks that `work` returns for each chunk of rows.

        If it returns `residuals`, the model computes the statistics of all rows at once from them.
        """

        def on_share(share: list[slice]) -> tuple[Any, Risks]:
            total: Any = [] if residuals else Sum()
            risks = NO_RISK
            for chunk in share:
                S, found = work(Z[chunk], y[chunk], None if w is None else w[chunk])
                total.append(S)
                risks = risks.plus(found)
            return total, risks

        shares = shares_of(Z.shape[0], model.row_cells(Z) + self.n_classes, self.chunk_cells)
        if len(shares) == 1 == len(shares[0]) and not residuals:
            return work(Z, y, w)
        found = self._threads(on_share, shares, model.releases_lock(Z))
        total, risks = next(found)
        for more, others in found:
            total.extend(more)
            risks = risks.plus(others)
        return model.statistics(Z, np.concatenate(total)) if residuals else total.value(), risks

    def _threads(self, work: Callable[[Any], T], parts: Sequence[Any], threaded: bool) -> Iterator[T]:
        """Apply `work` to every part, in threads if `threaded`; yield the results in order."""
        threads = min(len(parts), available_threads()) if threaded and len(parts) > 1 else 1
        return in_threads(work, parts, threads)

    def map_rows(self, path: Sequence[Fitted], formula: Formula) -> list[Array]:
        """Apply a formula to all rows for each model of `path`; blocks of chunks are encoded at a time."""
        model, frame, X = path[0].model, path[0].S.frame, self._X
        plans: list[Any] = []
        found: list[list[Array]] = []
        most = int(BLOCK_CHUNKS * self.chunk_cells // max(1, row_width(X)))
        size = max(1, most if model.encode_copies else self.n_rows)
        for start in range(0, self.n_rows, size):
            Z = model.encode(X[start : min(self.n_rows, start + size), ...], frame)
            plans = plans or [model.plan(Z, fitted.theta) for fitted in path]
            found += self._mapped(model, Z, plans, formula, start)
        if len(found) == 1:
            return found[0]
        return [namespace(X).concat(results, axis=0) for results in zip(*found, strict=True)]

    def _mapped(
        self, model: GenerativeModel, Z: Any, plans: list[Any], formula: Formula, start: int
    ) -> Iterator[list[Array]]:
        """Yield, for each chunk of Z, the list of the formula's results for the plans."""
        cells = model.score_cells(Z)
        shares = shares_of(Z.shape[0], cells + self.n_classes, max(self.chunk_cells, MAPPED_CELLS))
        chunks = [chunk for share in shares for chunk in share]
        if len(chunks) == 1:
            return iter([[formula(Z, plan, start) for plan in plans]])
        # Scores with few cells per row are one matrix product, which BLAS runs in its own threads.
        return self._threads(
            lambda chunk: [formula(Z[chunk], plan, start + chunk.start) for plan in plans],
            chunks,
            model.releases_lock(Z) and cells >= Z.shape[1],
        )

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
        found._learned = self._learned
        if self._encoded is not None:
            found._encoded = EncodedRows(self._encoded.model, self._encoded.frame, self._encoded.Z)
        return found

    def scaled(self, factor: float) -> Self:
        """Return an engine over the same rows, with weights multiplied by a factor."""
        y, w = self._y, self._w
        w = namespace(y).ones_like(y, dtype=widest_float(y)) if w is None else w
        return self._weighted(factor * w)

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
        Z, y = self._rows(model, frame).Z, self._y
        assert y is not None
        order = range(self.n_rows) if random is None else random.permutation(self.n_rows).tolist()
        for i in order:
            row = slice(i, i + 1)
            yield Z[row], y[row], 1.0 if self._w is None else self._w[row]


class Sum:
    """A sum of statistics in one frame, added in place: chunks are many, and their arrays may be large."""

    def __init__(self) -> None:
        self.first: Statistics | None = None
        self.arrays: dict[str, Array] = {}

    def append(self, S: Statistics | None) -> None:
        """Add the statistics of one chunk."""
        if S is None:
            return
        if self.arrays:
            for name, value in S.items():
                self.arrays[name] += value
        elif self.first is None:
            self.first, self.frame = S, S.frame
        else:
            self.arrays = {name: value + S[name] for name, value in self.first.items()}
            self.first = None

    def extend(self, other: Sum) -> None:
        """Add another sum."""
        self.append(other.value())

    def value(self) -> Statistics | None:
        """Return the sum; None if nothing was added."""
        return Statistics(self.arrays, self.frame) if self.arrays else self.first
