"""What is done to one block of rows, wherever it is: functions of a module, so that they can be sent there.

A block is a :class:`MemoryEngine`. What these functions return is as small as the statistics, or as a sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse, vstack

from riskbayes.arrays import Array, largest_of_columns
from riskbayes.engines.base import Formula
from riskbayes.engines.memory import MemoryEngine
from riskbayes.engines.parts import Part
from riskbayes.frames import Frame
from riskbayes.models.base import Fitted, GenerativeModel
from riskbayes.objectives import Objective
from riskbayes.risks import NO_RISK, Risks
from riskbayes.statistics import Statistics


class Total(NamedTuple):
    """What a scan of some rows adds up: arrays of statistics by name (None for risks only), and risks."""

    arrays: dict[str, Array] | None
    risks: Risks

    def plus(self, other: Total) -> Total:
        """Return the totals of both sets of rows together."""
        arrays = self.arrays
        if arrays is not None and other.arrays is not None:
            arrays = {name: value + other.arrays[name] for name, value in arrays.items()}
        return Total(arrays, self.risks.plus(other.risks))


class Summary(NamedTuple):
    """What an engine knows of a block without reading it: counts and masses by class, and its shape."""

    rows: int
    counts: Array
    """Rows of each class."""
    weighted: Array
    """Rows of positive weight of each class."""
    masses: Array
    width: int


def summary_of(block: MemoryEngine, number: int) -> Summary:
    """Return the summary of a block."""
    y, w, r = block._y, block._w, block.n_classes
    assert y is not None
    counts = np.bincount(y, minlength=r)
    weighted = counts if w is None else np.bincount(y[w > 0], minlength=r)
    return Summary(len(y), counts, weighted, np.bincount(y, w, r).astype(np.float64), block._X.shape[1])


def range_of(block: MemoryEngine, number: int) -> tuple[Array, Array]:
    """Return the least and the largest value of each column of a block, but for missing cells."""
    X = block._X
    return np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)


def digest_of(block: MemoryEngine, number: int) -> str:
    """Return the digest of a block."""
    return block.fingerprint()


def block_of(block: MemoryEngine, number: int, part: Part) -> MemoryEngine:
    """Return the part of a block."""
    return MemoryEngine(*pick(block, number, part), block.n_classes)


def pick(block: MemoryEngine, number: int, part: Part) -> tuple[Array, Array, Array | None]:
    """Return the rows, labels and weights of a part of a block."""
    assert block._y is not None
    rows, w = part.of(number, block._y, block._w)
    return (block._X, block._y, w) if rows is None else (block._X[rows], block._y[rows], w)


def count(block: MemoryEngine, model: GenerativeModel, frame: Frame) -> Total:
    """Return the statistics of the labels of a block."""
    return Total(dict(block.statistics(model, frame)), NO_RISK)


def scan_block(
    block: MemoryEngine,
    model: GenerativeModel,
    S: Statistics,
    theta: Any,
    objective: Objective,
    risks_only: bool,
) -> Total:
    """Return dS and the risks of a block.

    The last scan is forgotten: sums are then the same wherever and how often a block is scanned.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        dS, risks = block.scan(Fitted(model, S, theta), objective, risks_only=risks_only)
    block.forget_scans()
    return Total(None if dS is None else dict(dS), risks)


def map_block(
    block: MemoryEngine, number: int, path: list[Fitted], formula: Formula, firsts: Array
) -> list[Array]:
    """Return the results of a formula for the rows of a block; rows are numbered over all blocks."""
    first = int(firsts[number])
    if not block.n_rows:
        return []
    return block.map_rows(path, lambda Z, plan, start: formula(Z, plan, first + start))


def sample_block(block: MemoryEngine, number: int, sizes: Array) -> tuple[Array, Array, Array | None, Array]:
    """Return a sample of a block by class, in the order of its rows, and the largest value of each column.

    The sample has a row for each column of the block with missing cells, so that no model is unaware of them.
    """
    X, y, w = block._X, block._y, block._w
    assert y is not None
    taken, random = np.zeros(len(y), dtype=bool), np.random.default_rng([0, number])
    for k, size in enumerate(sizes[number].tolist()):
        own = np.flatnonzero(y == k) if size else y[:0]
        taken[own if size == len(own) else own[random.choice(len(own), size, replace=False)]] = True
    largest = np.full(X.shape[1], -np.inf)
    if issparse(X):
        largest = X.max(axis=0).toarray().ravel() if len(y) else largest
    elif len(y):
        largest = largest_of_columns(X).astype(np.float64)
        if X.dtype.kind == "f" and np.isnan(X.sum(dtype=np.float64)):
            holes = np.isnan(X)
            for j in np.flatnonzero(holes.any(axis=0) & ~holes[taken].any(axis=0)).tolist():
                taken[np.argmax(holes[:, j])] = True
    return X[taken], y[taken], None if w is None else w[taken], largest


def join_rows(parts: Sequence[tuple[Any, Array, Array | None]]) -> tuple[Any, Array, Array | None]:
    """Return rows, labels and weights of several parts as one; where some have no weights these are one."""
    X, y = (join_arrays([part[i] for part in parts]) for i in range(2))
    if all(part[2] is None for part in parts):
        return X, y, None
    return X, y, join_arrays([np.ones(len(part[1])) if part[2] is None else part[2] for part in parts])


def join_arrays(arrays: list[Any]) -> Any:
    """Return arrays of rows, dense or sparse, one below the other."""
    if len(arrays) == 1:
        return arrays[0]
    return vstack(arrays, format="csr") if issparse(arrays[0]) else np.concatenate(arrays)
