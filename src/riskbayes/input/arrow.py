"""Rows of Arrow: Parquet and Arrow IPC files, and queries that return Arrow batches."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from riskbayes.arrays import Array
from riskbayes.exceptions import listed
from riskbayes.input.files.arrow import ds, pa, pq
from riskbayes.input.source import RowBatch

READERS = ("to_pyarrow_batches", "to_arrow_reader", "fetch_record_batch", "to_reader")
"""Methods of queries and tables that return a reader of Arrow batches: Ibis, DuckDB, Arrow."""

FORMATS = {".parquet": "parquet", ".pq": "parquet", ".arrow": "ipc", ".feather": "ipc", ".ipc": "ipc"}
"""Formats of Arrow by the ending of a file."""

READ_AHEAD: dict[str, Any] = {"batch_readahead": 2, "fragment_readahead": 1}
"""How far a scanner of Arrow reads ahead: its defaults hold gigabytes of a wide table."""


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
                known = listed(names)
                raise ValueError(f"{what}: {name!r} is no column of the rows, which have {known}.")

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

    def all_of(self, names: Sequence[str]) -> list[str]:
        """Return the columns of X, of the labels and of the weights among the columns of a source."""
        read = self.read(names)
        return read + [name for name in (self.target, self.weight) if name is not None and name not in read]

    def split_table(self, data: Any, y: Any) -> tuple[Any, Any, Any]:
        """Return the columns of X, the labels and the weights of a data frame."""
        names = [str(name) for name in data.columns]
        self.check(names, y)
        y = None if self.target is None else data[self.target]
        w = None if self.weight is None else data[self.weight]
        return data[self.read(names)], y, w


def open_files(data: Any) -> Any:
    """Return an Arrow dataset of Parquet or Arrow IPC files; say which files there are not."""
    found: list[str] = []
    for each in [data] if isinstance(data, str | os.PathLike) else data:
        files = files_of(each)
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
    base = partition_base(data)
    hive = None if base is None else ds.HivePartitioning.discover(infer_dictionary=False)
    return ds.dataset(found, format=formats.pop(), partitioning=hive, partition_base_dir=base)


def partition_base(data: Any) -> str | None:
    """Return the folder below which names such as year=2024 are columns; None for one file or a list."""
    if not isinstance(data, str | os.PathLike) or Path(data).is_file():
        return None
    parts = Path(data).parts
    plain = next((k for k, part in enumerate(parts) if any(sign in part for sign in "*?[=")), len(parts))
    return str(Path(*parts[: len(parts) if Path(data).is_dir() else plain]))


def files_of(path: str | os.PathLike) -> list[str]:
    """Return the file at a path, the Parquet and Arrow files of a folder, or the files of a pattern."""
    if Path(path).is_dir():
        return sorted(str(file) for file in Path(path).rglob("*") if file.suffix in FORMATS)
    return [str(path)] if Path(path).exists() else sorted(glob.glob(str(path), recursive=True))


def lacking_column(dataset: Any, wanted: Sequence[str] | None = None) -> str:
    """Return a sentence on a file that lacks one of the wanted columns, by default those of any file; or "".

    Arrow goes by the first file: it reads a column that a later one lacks as missing, and passes over one
    that only later files have.
    """
    files = list(dataset.get_fragments())
    names = {file.path: [*file.physical_schema.names, *partitions_of(file)] for file in files}
    if wanted is None:
        wanted = list(dict.fromkeys(name for own in names.values() for name in own))
    for path, own in names.items():
        for name in wanted:
            if name not in own:
                other = next(path for path, own in names.items() if name in own)
                return (
                    f"{path!r} lacks the column {name!r}, which {other!r} has. Add the column to it, with "
                    "empty cells if the values are not known, or leave one of the files out."
                )
    return ""


def partitions_of(file: Any) -> dict[str, Any]:
    """Return the columns that the folders of a file tell, with their value."""
    return ds.get_partition_keys(file.partition_expression)


def is_dataset_of_files(data: Any) -> bool:
    """True for an Arrow dataset of Parquet or Arrow IPC files; its partitions are columns."""
    name = getattr(getattr(data, "format", None), "default_extname", None)
    return hasattr(data, "get_fragments") and hasattr(data, "count_rows") and f".{name}" in FORMATS


def arrow_reader(data: Any, batch_rows: int) -> Callable[[], Any] | None:
    """Return a function that returns an iterator over Arrow batches; None if the object offers none."""
    if hasattr(data, "collect_batches"):  # a polars LazyFrame
        return lambda: (batch.to_arrow() for batch in data.collect_batches(chunk_size=batch_rows))
    if type(data).__name__ == "LazyFrame":
        raise TypeError(
            "riskbayes.rows reads a LazyFrame by `collect_batches`, which polars has from 1.34 on."
        )
    if hasattr(data, "read_next_batch"):
        return lambda: data
    if hasattr(data, "to_batches") and hasattr(data, "count_rows"):  # an Arrow dataset
        return lambda: data.to_batches(**READ_AHEAD)
    for name in READERS:
        if hasattr(data, name):
            return getattr(data, name)
    return None


def arrow_names(data: Any) -> list[str] | None:
    """Return the column names of an Arrow source, if it tells them before it is read."""
    schema = data.collect_schema() if hasattr(data, "collect_schema") else getattr(data, "schema", None)
    if callable(schema):
        schema = schema()
    names = getattr(schema, "names", None) or getattr(data, "columns", None)
    names = names() if callable(names) else names
    return None if names is None else [str(name) for name in names]


def of_dataset(dataset: Any, named: Named, size: int) -> Iterator[RowBatch]:
    """Yield the batches of files; what was decoded is given back to the system at the end."""
    wanted = named.all_of(dataset.schema.names)
    files = dataset.get_fragments()
    batches = (batch for file in files for batch in of_file(file, dataset.schema, wanted, size))
    yield from of_arrow(batches, named, size)
    pa.default_memory_pool().release_unused()


def of_file(file: Any, schema: Any, wanted: list[str], size: int) -> Iterator[Any]:
    """Yield the Arrow batches of one file of a dataset, its columns in the types of `schema`.

    They are read one after another. A scanner of Arrow reads ahead of a slow reader, up to a GiB of rows; it
    is left to files whose columns differ from those of the first one and have to be cast or filled.
    """
    own, is_parquet = file.physical_schema, file.format.default_extname == "parquet"
    if any(name not in own.names or own.field(name).type != schema.field(name).type for name in wanted):
        # Without buffers for columns that are still to come, which would hold a whole row group.
        how = ds.ParquetFragmentScanOptions(pre_buffer=False) if is_parquet else None
        options = {"batch_size": size, "fragment_scan_options": how, **READ_AHEAD}
        yield from file.to_batches(schema=schema, columns=wanted, **options)
        return
    with file.open() as source:
        if is_parquet:
            yield from pq.ParquetFile(source, pre_buffer=False).iter_batches(size, columns=wanted)
        else:
            places = [own.get_field_index(name) for name in wanted]
            options = pa.ipc.IpcReadOptions(included_fields=places)
            reader = pa.ipc.open_file(source, options=options)
            yield from map(reader.get_batch, range(reader.num_record_batches))


def of_arrow(batches: Iterable[Any], named: Named, size: int) -> Iterator[RowBatch]:
    """Yield batches of `size` rows of Arrow batches, whatever the size of those."""
    held: list[Any] = []
    count = 0

    def joined() -> RowBatch:
        """Return what is held as one batch, and let go of it: the reader of the batch may keep it long."""
        table = pa.concat_tables(held, promote_options="permissive")
        held.clear()
        named.check(table.column_names, None)
        y, w = (
            None if name is None else plain_column(table[name], name) for name in (named.target, named.weight)
        )
        return RowBatch(table.select(named.read(table.column_names)), y, w)

    for batch in batches:
        table = batch if isinstance(batch, pa.Table) else pa.table(batch)
        del batch
        while table.num_rows:
            take = min(size - count, table.num_rows)
            held.append(table.slice(0, take))
            table, count = table.slice(take), count + take
            if count == size:
                table = table if table.num_rows else table.schema.empty_table()  # the buffers go
                count = 0
                yield joined()
    if count:
        yield joined()


def plain_column(column: Any, name: str) -> Array:
    """Return a column of labels or weights as an array; refuse nulls."""
    if column.null_count:
        raise ValueError(f"Column {name!r} has {column.null_count} missing entries. Drop or fill these rows.")
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    found = column.to_numpy()
    return found.astype(str).astype(object) if found.dtype.kind in "OU" else found
