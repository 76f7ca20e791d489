"""Files that predictions and drawn rows are written to, CSV or Parquet: there whole or not at all."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from riskbayes.input.files import UserError
from riskbayes.input.files.batches import Batch, Batches
from riskbayes.input.files.notation import NUMBER
from riskbayes.new_files import new_files

STDOUT = "-"
FORMATS = {".csv": "csv", ".tsv": "tsv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet"}
DELIMITERS = {"csv": ",", "tsv": "\t"}
"""Of new files; predictions for a CSV have the delimiter of that file, but for a TSV."""


@contextmanager
def open_output(out: str, batches: Batches, names: Sequence[str]) -> Iterator[SplicedLines | TableRows]:
    """Open the output for the batches of a file with further columns; it replaces a file when it is whole."""
    kind = format_of(out)
    taken = [name for name in names if name in batches.names]
    if taken:
        raise UserError(f"{batches.name} has a column {taken[0]!r} already. Rename it.")
    with new_file(out) as file:
        csv = batches.csv
        spliced = csv is not None and (
            kind == "csv" or (kind == "tsv" and csv.dialect.delimiter == DELIMITERS["tsv"])
        )
        output = SplicedLines(file, batches, names) if spliced else TableRows(file, kind, names, batches)
        yield output
        output.close()


def format_of(out: str) -> str:
    """Return the format of an output by its ending."""
    if out == STDOUT:
        return "csv"
    found = FORMATS.get(Path(out).suffix.lower())
    if found is None:
        raise UserError(f"Cannot write {out}: its name must end with .csv, .tsv or .parquet.")
    return found


@contextmanager
def new_file(out: str) -> Iterator[Any]:
    """Open standard output, or a file that replaces `out` when it is whole."""
    if out == STDOUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    with new_files(out) as (file,):
        yield file


class SplicedLines:
    """The lines of a CSV as they were, with cells appended to each."""

    def __init__(self, file: Any, batches: Batches, names: Sequence[str]):
        assert batches.csv is not None
        self.file, self.dialect, self.decimal = file, batches.csv.dialect, batches.decimal
        delimiter = self.dialect.delimiter
        head = delimiter.join(quoted(name, delimiter) for name in names)
        file.write(batches.csv.header() + delimiter.encode() + head.encode())

    def write(self, batch: Batch, columns: Sequence[Any]) -> None:
        """Write the rows of a batch with further columns."""
        import pyarrow.compute as pc  # an optional dependency, slow to import

        cells = [self.cells(column) for column in columns]
        found = pc.binary_join_element_wise(batch.lines, *cells, self.dialect.delimiter)
        _, offsets, text = found.buffers()
        start, end = (memoryview(offsets).cast("i")[found.offset + i] for i in (0, len(found)))
        self.file.write(memoryview(text)[start:end])

    def cells(self, column: Any) -> Any:
        """Return a column as text in the dialect of the file."""
        import pyarrow as pa  # an optional dependency, slow to import
        import pyarrow.compute as pc

        if pa.types.is_floating(column.type):
            text = number_texts(column, self.decimal)
            clash = self.decimal == self.dialect.delimiter
            return pc.binary_join_element_wise('"', text, '"', "") if clash else text
        coded = column.dictionary_encode()
        known = [quoted(value, self.dialect.delimiter) for value in coded.dictionary.to_pylist()]
        return pa.array(known, pa.string()).take(coded.indices)

    def close(self) -> None:
        """Write the last line break."""
        self.file.write(b"\n")


def number_texts(column: Any, decimal: str) -> Any:
    """Return a column of numbers as text with the decimal sign of a file."""
    import pyarrow as pa  # an optional dependency, slow to import
    import pyarrow.compute as pc

    text = pc.cast(column, pa.string())
    return pc.replace_substring(text, ".", ",") if decimal == "," else text


def quoted(value: str, delimiter: str) -> str:
    """Return a cell in quotes if it needs them."""
    if any(sign in value for sign in (delimiter, '"', "\n", "\r")):
        return '"' + value.replace('"', '""') + '"'
    return value


class TableRows:
    """The rows of Arrow tables as Parquet or CSV; the first table decides the header and the types."""

    def __init__(self, file: Any, kind: str, names: Sequence[str] = (), batches: Batches | None = None):
        self.file, self.kind, self.names, self.batches = file, kind, names, batches
        self._writer: Any = None

    def write(self, batch: Batch, columns: Sequence[Any]) -> None:
        """Write the rows of a batch with further columns.

        In Parquet columns that the model reads as numbers are numbers; in CSV further columns of numbers have
        the decimal sign of the others.
        """
        import pyarrow as pa  # an optional dependency, slow to import

        assert self.batches is not None
        rows = batch.rows()
        if self.kind != "parquet":
            decimal = "." if self.batches.csv is None else self.batches.decimal
            columns = [
                number_texts(each, decimal) if pa.types.is_floating(each.type) else each for each in columns
            ]
        elif batch.lines is not None:
            for name, kind in self.batches.expected.kinds.items():
                if kind == NUMBER:
                    own = self.batches.columns[name]
                    rows = rows.set_column(rows.column_names.index(own), own, batch.X.column(name))
        for name, column in zip(self.names, columns, strict=True):
            rows = rows.append_column(name, column)
        self.write_table(rows)

    def write_table(self, table: Any) -> None:
        """Write the rows of a table."""
        import pyarrow as pa  # an optional dependency, slow to import
        import pyarrow.csv as pacsv
        import pyarrow.parquet as pq

        if self.kind == "parquet":
            self._writer = self._writer or pq.ParquetWriter(self.file, table.schema)
        else:
            table = pa.table([decoded(column) for column in table.columns], names=table.column_names)
            options = pacsv.WriteOptions(quoting_style="needed", delimiter=DELIMITERS[self.kind])
            self._writer = self._writer or pacsv.CSVWriter(self.file, table.schema, write_options=options)
        self._writer.write_table(table)

    def close(self) -> None:
        """Write what is left."""
        if self._writer is not None:
            self._writer.close()


def decoded(column: Any) -> Any:
    """Return a column of categories as its values, which CSV can hold."""
    import pyarrow as pa  # an optional dependency, slow to import

    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def write_table(table: Any, out: str) -> None:
    """Write a table to a file by its ending, or as CSV to standard output."""
    kind = format_of(out)
    with new_file(out) as file:
        output = TableRows(file, kind)
        output.write_table(table)
        output.close()
