"""Rows in the partitions of Dask collections."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from riskbayes.arrays import Array
from riskbayes.engines.dask import DaskEngine, computed, shared
from riskbayes.input.source import Result, RowBatch, Source


def is_dask(X: Any) -> bool:
    """True for a Dask collection; Dask is not imported to find out."""
    dask = sys.modules.get("dask")
    return dask is not None and dask.is_dask_collection(X)


class DaskSource(Source):
    """The partitions of a Dask array or data frame, which stay on their workers."""

    def __init__(self, X: Any, y: Any = None, w: Any = None):
        self.X, self.y, self.w = X, y, w

    def batches(self) -> Iterator[RowBatch]:
        """Yield the partitions, one after another, from their workers."""
        for X, y, w in partitions(self.X, self.y, self.w, ""):
            yield RowBatch(*computed(X, y, w))

    def engine(self, reading: Any) -> DaskEngine:
        """Return an engine over the partitions."""
        return reading.on_dask(partitions(self.X, self.y, self.w, reading.suffix))

    def map(self, work: Callable[[Any], Array], result: Result) -> Any:
        """Return the results of all partitions as a lazy Dask array."""
        X, dtype = self.X, result.dtype
        if dtype.kind == "f" and getattr(X, "dtype", None) == np.float32:
            with suppress(ValueError):  # a row of zeros may be refused
                dtype = work(np.zeros((1, X.shape[1]), dtype=np.float32)).dtype
        width, form = result.width, dict[str, Any]()
        empty = np.empty((0,) if width is None else (0, width), dtype=dtype)
        if hasattr(X, "map_blocks"):
            X = X.rechunk({1: -1})
            form = {"drop_axis": 1} if width is None else {"chunks": (X.chunks[0], (width,))}
        each = X.map_blocks if hasattr(X, "map_blocks") else X.map_partitions
        return each(apply_to_partition, work=shared(work), empty=empty, **form, meta=empty)


def apply_to_partition(X: Any, work: Callable[[Any], Array], empty: Array) -> Array:
    """Return the results for one partition, which may be empty."""
    return work(X).astype(empty.dtype, copy=False) if X.shape[0] else empty


def partitions(X: Any, y: Any, w: Any, suffix: str) -> list[tuple[Any, Any, Any]]:
    """Return the partitions of the rows, their labels and weights as tasks; refuse what does not match."""
    rows = chunks_of(X)
    sizes = None if not hasattr(X, "chunks") else X.chunks[0]

    def beside(values: Any, name: str) -> list[Any]:
        if values is None:
            return [None] * len(rows)
        if not is_dask(values):
            raise TypeError(
                f"X{suffix} is a Dask collection and {name}{suffix} is not: make it one with the partitions "
                f"of X{suffix}, for instance by dask.array.from_array."
            )
        if (
            sizes is not None
            and hasattr(values, "chunks")
            and not np.isnan([*sizes, *values.chunks[0]]).any()
        ):
            if sum(sizes) != sum(values.chunks[0]):
                raise ValueError(
                    f"X{suffix} has {sum(sizes)} rows and {name}{suffix} has {sum(values.chunks[0])} entries."
                )
            values = values.rechunk({0: sizes})
        found = chunks_of(values)
        if len(found) != len(rows):
            raise ValueError(
                f"X{suffix} has {len(rows)} partitions and {name}{suffix} has {len(found)}: take both from "
                "one collection, or compute their chunk sizes first (compute_chunk_sizes)."
            )
        return found

    return list(zip(rows, beside(y, "y"), beside(w, "sample_weight"), strict=True))


def chunks_of(values: Any) -> list[Any]:
    """Return the partitions of a collection as tasks, each with all columns."""
    if hasattr(values, "rechunk") and values.ndim == 2:
        values = values.rechunk({1: -1})
    found = values.to_delayed()
    return list(found.ravel()) if isinstance(found, np.ndarray) else list(found)
