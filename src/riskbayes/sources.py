"""Rows that are read in batches: from files, queries, arrays on a disk, and streams."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from riskbayes.arrays import Array
from riskbayes.engines.spool import Spool
from riskbayes.progress import RowProgress

BATCH_ROWS = 2**17
"""Rows that are read at a time."""

READERS = ("to_pyarrow_batches", "to_arrow_reader", "fetch_record_batch", "to_reader")
"""Methods of queries and tables that return a reader of Arrow batches: Ibis, DuckDB, Arrow."""


class RowBatch(NamedTuple):
    """Some rows: an array or a table, and their labels and weights, if there are any."""

    X: Any
    y: Any = None
    w: Any = None
    names: Any = None
    """Names of the columns, if the source knows them and X is an array."""


class Rows:
    """Rows that are read in batches; :func:`rows` makes them of files, queries and streams.

    An estimator's `fit` reads them once, encodes them to a temporary folder and removes that folder at its
    end. `predict*` yields the results of one batch after another.

    Parameters
    ----------
    read : callable
        Returns an iterator over the batches, which are read from the beginning each time.
    n_rows : int or None
        The number of rows, if it is known.
    spool : path or None
        The folder in which the temporary folder is made.
    merge : bool
        True to merge identical rows.
    progress : bool
        True to show a progress bar.
    once : bool
        True if the batches can be read only once.
    engine : Engine or None
        An engine over these rows, if they were encoded before.
    """

    def __init__(
        self,
        read: Callable[[], Iterator[RowBatch]],
        n_rows: int | None = None,
        spool: Any = None,
        merge: bool = False,
        progress: bool = False,
        once: bool = False,
        engine: Any = None,
    ):
        self.n_rows, self.spool, self.merge, self.once, self.engine = n_rows, spool, merge, once, engine
        self.progress = RowProgress(progress, n_rows)
        self._read, self._was_read = read, False
        self._spools: list[Spool] = []

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

    def new_spool(self) -> Spool:
        """Return a new temporary folder, which `close` removes."""
        self._spools.append(Spool(self.spool))
        return self._spools[-1]

    def close(self) -> None:
        """Remove the temporary folders."""
        self.progress.stop()
        while self._spools:
            self._spools.pop().close()


def rows(
    data: Any,
    y: Any = None,
    *,
    target: str | None = None,
    sample_weight: Any = None,
    columns: Sequence[str] | None = None,
    batch_rows: int = BATCH_ROWS,
    spool: Any = None,
    merge: bool = False,
    progress: bool = False,
) -> Rows:
    """Return rows that an estimator reads in batches, so that they need not fit into memory.

    `fit` reads them once and writes them to a temporary folder in `spool`, encoded: a category takes a byte,
    a number four or eight as it did before. The scans read that folder; it is removed when `fit` ends, also
    by an error or Ctrl-C. The kinds of the columns of a table are those of the first batch, categories are
    those of all rows; knots, trees and components are learned from a sample if there are many rows.

    Parameters
    ----------
    data : path, glob pattern, list of paths, query, array, table, iterable or function
        Parquet or Arrow IPC files (`.parquet`, `.arrow`, `.feather`, `.ipc`) or folders of them; a polars
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
    merge : bool, default=False
        If True, rows with the same codes and label are merged to one with their weight, if the first rows
        say that it pays. The fit is the same; learners that hold rows out or draw them are refused.
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
    if is_paths(data):
        dataset = open_files(data)
        named.check(dataset.schema.names, y)
        return Rows(lambda: of_dataset(dataset, named, batch_rows), dataset.count_rows(), **common)
    if (reader := arrow_reader(data, batch_rows)) is not None:
        names = arrow_names(data)
        if names is not None:
            named.check(names, y)
        once = hasattr(data, "read_next_batch")  # a RecordBatchReader
        return Rows(lambda: of_arrow(reader(), named, batch_rows), None, once=once, **common)
    if is_table(data):
        if hasattr(data, "columns") and (target is not None or isinstance(sample_weight, str)):
            data, y, sample_weight = named.split_table(data, y)
        elif target is not None:
            raise ValueError(f"target={target!r} names a column, and the columns of an array have no names.")
        check_lengths(data, y, sample_weight)
        m = data.shape[0]
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


class Named(NamedTuple):
    """The columns of a source by what they are: labels, weights, and what is read."""

    target: str | None
    weight: Any
    columns: Sequence[str] | None

    def check(self, names: Sequence[str], y: Any) -> None:
        """Refuse names that the source does not have, and labels beside named columns."""
        if y is not None:
            raise ValueError("The labels of files and queries are a column: pass its name as target=...")
        if self.weight is not None and not isinstance(self.weight, str):
            raise ValueError(
                "The weights of files and queries are a column: pass its name as sample_weight=..."
            )
        wanted = [("target", self.target), ("sample_weight", self.weight)]
        wanted += [("columns", name) for name in self.columns or ()]
        for what, name in wanted:
            if name is not None and name not in names:
                known = ", ".join(map(repr, list(names)[:5]))
                raise ValueError(f"{what}: {name!r} is no column of the rows, which have {known} ...")

    def check_none(self, y: Any) -> None:
        """Refuse names and labels beside batches, which hold their own."""
        if y is not None or any(value is not None for value in self):
            raise ValueError(
                "Batches hold their labels and weights: pass an iterable of (X, y) or (X, y, sample_weight), "
                "without y, target, sample_weight and columns."
            )

    def read(self, names: Sequence[str]) -> list[str]:
        """Return the columns of X among the columns of a source."""
        taken = (self.target, self.weight)
        return [name for name in (self.columns or names) if name not in taken]

    def split_table(self, data: Any, y: Any) -> tuple[Any, Any, Any]:
        """Return the columns of X, the labels and the weights of a data frame."""
        names = [str(name) for name in data.columns]
        self.check(names, y)
        y = None if self.target is None else data[self.target]
        w = None if self.weight is None else data[self.weight]
        return data[self.read(names)], y, w


def is_paths(data: Any) -> bool:
    """True for a path, or a list of paths."""
    if isinstance(data, list | tuple) and data:
        return all(isinstance(each, str | os.PathLike) for each in data)
    return isinstance(data, str | os.PathLike)


def open_files(data: Any) -> Any:
    """Return an Arrow dataset of Parquet or Arrow IPC files; say which files there are not."""
    import pyarrow.dataset as ds  # an optional dependency, slow to import

    found: list[str] = []
    for each in [data] if isinstance(data, str | os.PathLike) else data:
        path = Path(each)
        if path.is_dir():
            files = sorted(str(file) for file in path.rglob("*") if file.suffix in FORMATS)
        else:
            files = [str(path)] if path.exists() else sorted(glob.glob(str(each), recursive=True))
        if not files:
            raise FileNotFoundError(
                f"riskbayes.rows found no file {str(each)!r}. It reads files, folders and patterns of "
                f"{', '.join(FORMATS)}."
            )
        found += files
    formats = {FORMATS.get(Path(file).suffix) for file in found}
    if len(formats) > 1 or None in formats:
        odd = next((file for file in found if Path(file).suffix not in FORMATS), found[-1])
        raise ValueError(
            f"riskbayes.rows reads files of one format, Parquet or Arrow IPC ({', '.join(FORMATS)}); got "
            f"{odd!r} among them."
        )
    return ds.dataset(found, format=formats.pop())


FORMATS = {".parquet": "parquet", ".pq": "parquet", ".arrow": "ipc", ".feather": "ipc", ".ipc": "ipc"}
"""Formats of Arrow by the ending of a file."""


def arrow_reader(data: Any, batch_rows: int) -> Callable[[], Any] | None:
    """Return a function that returns an iterator over Arrow batches; None if the object offers none."""
    if hasattr(data, "collect_batches"):  # a polars LazyFrame
        return lambda: (batch.to_arrow() for batch in data.collect_batches(chunk_size=batch_rows))
    if hasattr(data, "read_next_batch"):
        return lambda: data
    if hasattr(data, "to_batches") and hasattr(data, "count_rows"):  # an Arrow dataset
        return lambda: data.to_batches(**READ_AHEAD)
    for name in READERS:
        if hasattr(data, name):
            return getattr(data, name)
    return None


READ_AHEAD = {"batch_readahead": 2, "fragment_readahead": 1}
"""How far Arrow reads ahead: its defaults hold gigabytes of a wide table."""


def arrow_names(data: Any) -> list[str] | None:
    """Return the column names of an Arrow source, if it tells them before it is read."""
    schema = data.collect_schema() if hasattr(data, "collect_schema") else getattr(data, "schema", None)
    if callable(schema):
        schema = schema()
    names = getattr(schema, "names", None) or getattr(data, "columns", None)
    names = names() if callable(names) else names
    return None if names is None else [str(name) for name in names]


def is_table(data: Any) -> bool:
    """True for arrays, sparse tables and data frames."""
    return hasattr(data, "shape") and len(data.shape) == 2


def check_lengths(X: Any, y: Any, w: Any) -> None:
    """Refuse labels or weights that are not one for each row."""
    for what, values in (("y", y), ("sample_weight", w)):
        if values is not None and len(values) != X.shape[0]:
            raise ValueError(f"data has {X.shape[0]} rows and {what} has {len(values)} entries.")


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
        if isinstance(batch, tuple):
            if not 1 <= len(batch) <= 3:
                raise ValueError(
                    f"Batch {number} is a tuple of {len(batch)} values: pass (X, y) or (X, y, sample_weight)."
                )
            batch = RowBatch(*batch)
        else:
            batch = RowBatch(batch)
        if hasattr(batch.X, "shape") and not batch.X.shape[0]:
            continue
        yield batch


def of_dataset(dataset: Any, named: Named, size: int) -> Iterator[RowBatch]:
    """Yield the batches of an Arrow dataset."""
    wanted = named.read(dataset.schema.names)
    wanted += [name for name in (named.target, named.weight) if name is not None and name not in wanted]
    return of_arrow(dataset.to_batches(columns=wanted, batch_size=size, **READ_AHEAD), named, size)


def of_arrow(batches: Iterable[Any], named: Named, size: int) -> Iterator[RowBatch]:
    """Yield batches of `size` rows of Arrow batches, whatever the size of those."""
    import pyarrow as pa  # an optional dependency, slow to import

    held: list[Any] = []
    count = 0
    for batch in batches:
        table = pa.table(batch) if not isinstance(batch, pa.Table) else batch
        while table.num_rows:
            take = min(size - count, table.num_rows)
            held.append(table.slice(0, take))
            table, count = table.slice(take), count + take
            if count == size:
                yield of_arrow_table(pa.concat_tables(held, promote_options="permissive"), named)
                held, count = [], 0
    if count:
        yield of_arrow_table(pa.concat_tables(held, promote_options="permissive"), named)


def of_arrow_table(table: Any, named: Named) -> RowBatch:
    """Return a batch of an Arrow table: its numbers as an array, with NaN for nulls, or the table itself."""
    named.check(table.column_names, None)

    def column(name: str | None) -> Array | None:
        return None if name is None else plain_column(table[name], name)

    X = table.select(named.read(table.column_names))
    return RowBatch(numbers_of(X), column(named.target), column(named.weight), X.column_names)


def plain_column(column: Any, name: str) -> Array:
    """Return a column of labels or weights as an array; refuse nulls."""
    import pyarrow as pa  # an optional dependency, slow to import

    if column.null_count:
        raise ValueError(f"Column {name!r} has {column.null_count} missing entries. Drop or fill these rows.")
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    found = column.to_numpy(zero_copy_only=False) if not hasattr(column, "chunks") else column.to_numpy()
    return found.astype(str).astype(object) if found.dtype.kind in "OU" else found


def numbers_of(table: Any) -> Any:
    """Return the columns of an Arrow table as an array if all are numbers; else the table itself."""
    import pyarrow as pa  # an optional dependency, slow to import

    types = [field.type for field in table.schema]
    if not types or not all(pa.types.is_integer(t) or pa.types.is_floating(t) for t in types):
        return table
    columns = [column.to_numpy() for column in table.columns]
    found = np.empty((table.num_rows, len(columns)), dtype=np.result_type(*(c.dtype for c in columns)))
    for j, column in enumerate(columns):
        found[:, j] = column
    return found
