"""Rows that are read in batches: from files, queries, arrays on a disk, and streams; and `source_of`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from riskbayes.input.arrow import (
    Named,
    arrow_names,
    arrow_reader,
    is_dataset_of_files,
    lacking_column,
    of_arrow,
    of_dataset,
    open_files,
)
from riskbayes.input.dask_source import DaskSource, is_dask
from riskbayes.input.source import ArraySource, RowBatch, Source
from riskbayes.progress import RowProgress

BATCH_ROWS = 2**17
"""Rows that are read at a time."""


class Rows(Source):
    """Rows that are read in batches; :func:`rows` makes them of files, queries and streams.

    `read` returns an iterator over the batches from the beginning.
    """

    def __init__(
        self,
        read: Callable[[], Iterator[RowBatch]],
        n_rows: int | None = None,
        spool: Any = None,
        merge: bool | None = None,
        progress: bool = False,
        once: bool = False,
    ):
        self.n_rows, self.spool, self.merge, self.once = n_rows, spool, merge, once
        self.progress = RowProgress(progress, n_rows)
        self._read, self._was_read = read, False

    def __repr__(self) -> str:
        return f"riskbayes.rows({'' if self.n_rows is None else f'{self.n_rows} rows'})"

    def batches(self) -> Iterator[RowBatch]:
        """Yield the batches from the beginning; refuse to read a stream for the second time."""
        if self.once and self._was_read:
            raise ValueError(
                "This stream was read before, and can be read only once. Pass riskbayes.rows a function that "
                "returns a new iterator, or a list."
            )
        self._was_read = True
        return self._read()


def source_of(X: Any, y: Any = None, sample_weight: Any = None, suffix: str = "") -> Source:
    """Return where rows come from: the only place that asks what the user passed.

    Messages append `suffix` to the names of the arguments.
    """
    if isinstance(X, Source):
        if y is not None or sample_weight is not None:
            raise ValueError(
                f"X{suffix} is riskbayes.rows, which hold their labels and weights: pass no y{suffix} and no "
                f"sample_weight{suffix}."
            )
        return X
    in_memory = isinstance(X, np.ndarray) or not is_dask(X)
    return (ArraySource if in_memory else DaskSource)(X, y, sample_weight)


def in_memory(clf: Any, X: Any) -> Any:
    """Return rows that are in memory; refuse all others where an array is needed."""
    if not source_of(X).in_memory:
        raise TypeError(
            f"Only fit and predict* of {type(clf).__name__} take riskbayes.rows and Dask collections: pass "
            "one batch after another as arrays."
        )
    return X


def rows(
    data: Any,
    y: Any = None,
    *,
    target: str | None = None,
    sample_weight: Any = None,
    columns: Sequence[str] | None = None,
    batch_rows: int = BATCH_ROWS,
    spool: Any = None,
    merge: bool | None = None,
    progress: bool = False,
) -> Rows:
    """Return rows that an estimator reads in batches, so that they need not fit into memory.

    `fit` writes them to a temporary folder in `spool`, encoded: a category takes a byte, a number four or
    eight as it did before. The scans read that folder; it is removed when `fit` ends, also by an error or
    Ctrl-C. Knots, trees and components are learned from a sample if there are many rows.

    Numbers and codes of categories are read once. Of other tables all rows are read before the first one is
    encoded, and again to encode them; so are those of `ProductOfExperts`, which checks the cells for its
    experts, and of counts among other columns (`count_features`). An iterator, which cannot be read again, is
    first written to that folder as it comes.

    Parameters
    ----------
    data : path, glob pattern, list of paths, query, array, table, iterable or function
        Parquet or Arrow IPC files (`.parquet`, `.arrow`, `.feather`, `.ipc`) or folders of them, or an Arrow
        dataset; a polars
        LazyFrame, a DuckDB relation, an Ibis table or whatever else returns Arrow batches; an array, also a
        memory-mapped one, or a data frame; an iterable of batches `(X, y)` or `(X, y, sample_weight)`, or of
        `X` alone to predict; a function that returns such an iterator. An iterator is read only once.
    y : array-like, default=None
        Labels, if `data` is an array or a data frame without them.
    target : str, default=None
        The column of the labels, if `data` has named columns. Without it there are only rows to predict.
    sample_weight : str or array-like, default=None
        The column of the weights, or the weights if `data` is an array.
    columns : list of str, default=None
        The columns to read; by default all.
    batch_rows : int, default=131072
        Rows that are read at a time from files, queries and arrays.
    spool : path, default=None
        The folder for the temporary folder; by default that of the system.
    merge : bool or None, default=None
        Rows with the same categories and label are merged to one with their weight, if the first rows say
        that it pays: the fit is the same, and a scan takes less time. With None this is not done for learners
        that hold rows out, draw them or take batches; with True these are refused; with False it is not done.
    progress : bool, default=False
        If True, show a progress bar of the rows that are read and scanned.

    Returns
    -------
    rows : Rows
        What `fit`, `predict*` and `predict_to` of the estimators take in place of X.

    Examples
    --------
    >>> import numpy as np
    >>> import riskbayes
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=1000)
    >>> X = rng.standard_normal((1000, 3)) + y[:, None]
    >>> batches = [(X[i : i + 100], y[i : i + 100]) for i in range(0, 1000, 100)]
    >>> clf = riskbayes.GaussianNB().fit(riskbayes.rows(batches))
    >>> [len(P) for P in clf.predict_proba(riskbayes.rows(X, batch_rows=600))]
    [600, 400]
    """
    if batch_rows < 1:
        raise ValueError(f"batch_rows must be a whole number of at least 1; got {batch_rows!r}.")
    common: dict[str, Any] = {"spool": spool, "merge": merge, "progress": progress}
    named = Named(target, sample_weight, columns)
    if is_paths(data) or is_dataset_of_files(data):
        dataset = open_files(data) if is_paths(data) else data
        named.check(dataset.schema.names, y)
        wanted = None if named.columns is None else named.all_of(dataset.schema.names)
        if is_paths(data) and (problem := lacking_column(dataset, wanted)):
            raise ValueError(problem)
        return Rows(lambda: of_dataset(dataset, named, batch_rows), dataset.count_rows(), **common)
    if (reader := arrow_reader(data, batch_rows)) is not None:
        names = arrow_names(data)
        if names is not None:
            named.check(names, y)
        once = hasattr(data, "read_next_batch")  # a RecordBatchReader
        return Rows(lambda: of_arrow(reader(), named, batch_rows), None, once=once, **common)
    if hasattr(data, "shape") and len(data.shape) == 2:  # an array, a sparse table, a data frame
        if hasattr(data, "columns") and (target is not None or isinstance(sample_weight, str)):
            data, y, sample_weight = named.split_table(data, y)
        elif target is not None:
            raise ValueError(f"target={target!r} names a column, and the columns of an array have no names.")
        m = data.shape[0]
        for what, values in (("y", y), ("sample_weight", sample_weight)):
            if values is not None and len(values) != m:
                raise ValueError(f"data has {m} rows and {what} has {len(values)} entries.")
        return Rows(lambda: of_table(data, y, sample_weight, batch_rows), m, **common)
    named.check_none(y)
    if callable(data):
        return Rows(lambda: of_batches(data()), None, **common)
    if not isinstance(data, Iterable):
        raise TypeError(
            f"riskbayes.rows reads files, queries, arrays, tables and iterables of batches; got "
            f"{type(data).__name__}."
        )
    return Rows(lambda: of_batches(data), None, once=iter(data) is data, **common)


def is_paths(data: Any) -> bool:
    """True for a path, or a list of paths."""
    if isinstance(data, list | tuple) and data:
        return all(isinstance(each, str | os.PathLike) for each in data)
    return isinstance(data, str | os.PathLike)


def of_table(X: Any, y: Any, w: Any, size: int) -> Iterator[RowBatch]:
    """Yield slices of an array or a data frame; of a memory-mapped array a copy of each."""

    def part(values: Any, at: slice) -> Any:
        if values is None or isinstance(values, list):
            return None if values is None else values[at]
        return values.iloc[at] if hasattr(values, "iloc") else values[at]

    for start in range(0, X.shape[0], size):
        at = slice(start, start + size)
        own = part(X, at)
        yield RowBatch(np.array(own) if isinstance(own, np.memmap) else own, part(y, at), part(w, at))


def of_batches(batches: Iterable[Any]) -> Iterator[RowBatch]:
    """Yield the batches of an iterable: tuples (X, y) or (X, y, w), or X alone."""
    for number, batch in enumerate(batches):
        parts = batch if isinstance(batch, tuple) else (batch,)
        if not 1 <= len(parts) <= 3:
            raise ValueError(
                f"Batch {number} is a tuple of {len(parts)} values: pass (X, y) or (X, y, sample_weight)."
            )
        batch = RowBatch(*parts)
        if hasattr(batch.X, "shape") and not batch.X.shape[0]:
            continue
        yield batch
