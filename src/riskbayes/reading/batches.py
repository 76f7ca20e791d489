"""Batches of a user's file with the columns as a fitted model reads them, for files larger than memory."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np

from riskbayes.input.arrow import lacking_column, of_file
from riskbayes.reading import UserError
from riskbayes.reading.blocks import CSV, MOST_ROWS, Block, arrow_needed
from riskbayes.reading.expected import FLAG, NUMBER, PRESENT, UNREAD, Expected
from riskbayes.reading.files import is_arrow, open_file
from riskbayes.reading.numbers import MISSING, as_numbers
from riskbayes.reading.table import open_dataset, stored
from riskbayes.tables import shown

READ_AHEAD_BLOCKS = 2
"""Blocks that are read before they are asked for."""


class Batch(NamedTuple):
    """Some rows of a file."""

    X: Any
    """An Arrow table of the columns that the model reads."""
    rows: Any
    """A function that returns all columns of the file as they are there, as an Arrow table."""
    lines: Any
    """The rows of a CSV as they are in the file, an Arrow array of text, each with a line break before it and
    none after; None for other files."""
    position: int
    """Bytes, or rows if the file is no CSV, that were read so far."""


class Batches:
    """A file that is read in batches for a model, in a thread of its own.

    Parameters
    ----------
    path : path
        What :func:`riskbayes.reading.table.open_table` reads.
    expected : Expected
        The columns of the model.
    """

    def __init__(self, path: str | os.PathLike, expected: Expected):
        self.expected = expected
        self.csv: CSV | None = None
        """The file if it is a CSV."""
        with arrow_needed():
            opened = None if is_arrow(path) else open_file(path)
            if opened is not None and opened.kind == "text":
                self.csv = CSV(path, opened)
                self.name, self.names = self.csv.name, list(self.csv.dialect.names)
                self.total = self.csv.file.size
            else:
                if opened is not None:
                    opened.close()
                self._dataset = open_dataset(stored(path), None if opened is None else opened.kind)
                self.name, self.names = str(path), list(self._dataset.schema.names)
                self.total = self._dataset.count_rows()
        try:
            self.columns = expected.in_file(self.name, self.names)
            read = [self.columns[name] for name, kind in expected.kinds.items() if kind != UNREAD]
            if self.csv is None and (problem := lacking_column(self._dataset, read)):
                raise UserError(problem)
        except UserError:
            self.close()
            raise

    def close(self) -> None:
        """Close the file."""
        if self.csv is not None:
            self.csv.file.close()

    def __enter__(self) -> Batches:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def __iter__(self) -> Iterator[Batch]:
        make = self.of_csv if self.csv is not None else self.of_arrow
        with closing(ahead(make, READ_AHEAD_BLOCKS)) as batches:
            yield from batches

    def of_csv(self) -> Iterator[Batch]:
        """Yield the batches of a CSV."""
        assert self.csv is not None
        file, empty = self.csv, True
        for block in file.blocks():
            empty = False
            X = self.features(block)
            rows = lambda block=block: file.cells(block)  # noqa: E731
            yield Batch(X, rows, lines_of(file, block, X.num_rows), file.file.position())
        if empty:
            raise UserError(f"{file.name} has a header and no rows. Add them.")

    def features(self, block: Block) -> Any:
        """Return the columns that the model reads, of a block of a CSV."""
        import pyarrow as pa  # an optional dependency, slow to import

        assert self.csv is not None
        coded = pa.dictionary(pa.int32(), pa.string())
        kinds = self.expected.kinds
        types = {
            self.columns[name]: pa.float64() if kind == NUMBER else coded
            for name, kind in kinds.items()
            if kind != UNREAD
        }
        try:
            found = self.csv.parse(block, types)
        except pa.ArrowInvalid:  # numbers in another notation, or cells that are none
            numbers = [column for column, type in types.items() if type == pa.float64()]
            text = self.csv.strings(block, numbers)
            found = self.csv.parse(block, {**types, **dict.fromkeys(numbers, pa.string())})
            for column in numbers:
                at = found.column_names.index(column)
                found = found.set_column(at, column, self.numbers(block, text.column(column), column))
        rows = len(block.ends)
        columns = [
            pa.nulls(rows, pa.string()) if kind == UNREAD else as_read(found.column(self.columns[name]), kind)
            for name, kind in kinds.items()
        ]
        return pa.table(columns, names=list(kinds))

    def numbers(self, block: Block, column: Any, name: str) -> Any:
        """Return a column of text as numbers; name the line of the first cell that is none."""
        assert self.csv is not None
        cells = column.combine_chunks()
        found = as_numbers(cells, self.csv.dialect.decimal)
        if found is not None:
            return found
        for i in range(len(cells)):
            if as_numbers(cells[i : i + 1], self.csv.dialect.decimal) is None:
                where = f"{self.csv.name}, line {block.line_of(i)}, column {name!r}"
                raise UserError(
                    f"{where} has {shown(cells[i].as_py())}, and the model was fitted to numbers there. "
                    "Correct the cell, or leave it empty."
                )
        raise UserError(
            f"{self.csv.name}, column {name!r} mixes decimal points and commas. Write its numbers in one way."
        )

    def of_arrow(self) -> Iterator[Batch]:
        """Yield the batches of Parquet and Arrow files."""
        import pyarrow as pa  # an optional dependency, slow to import

        done, dataset = 0, self._dataset
        read = (
            part.slice(first, MOST_ROWS)
            for file in dataset.get_fragments()
            for part in of_file(file, dataset.schema, self.names, MOST_ROWS)
            for first in range(0, part.num_rows, MOST_ROWS)
        )
        for part in read:
            rows = pa.Table.from_batches([part]).select(self.names)
            done += rows.num_rows
            X = rows.select([self.columns[name] for name in self.expected.kinds])
            X = X.rename_columns(list(self.expected.kinds))
            yield Batch(X, lambda rows=rows: rows, None, done)
        if not done:
            raise UserError(f"{self.name} has columns and no rows. Add them.")


def as_read(column: Any, kind: str) -> Any:
    """Return a column of coded text as a model reads it: blank cells are missing, flags are booleans."""
    import pyarrow as pa  # an optional dependency, slow to import

    if kind == NUMBER:
        return column
    coded = column.combine_chunks()
    values = [None if v is None or v.strip() in MISSING else v for v in coded.dictionary.to_pylist()]
    if kind == PRESENT:
        values = [None if v is None else "present" for v in values]
    elif kind == FLAG:
        flags = {"true": True, "false": False}
        values = [flags.get(v.strip().lower()) if v is not None else None for v in values]
        return pa.array(values, pa.bool_()).take(coded.indices)
    if values == coded.dictionary.to_pylist():
        return coded
    again = pa.array(values, pa.string()).dictionary_encode()
    return pa.DictionaryArray.from_arrays(again.indices.take(coded.indices), again.dictionary)


def lines_of(file: CSV, block: Block, rows: int) -> Any:
    """Return the records of a block as an Arrow array of text, each with a line break before it only."""
    import pyarrow as pa  # an optional dependency, slow to import

    if len(block.ends) != rows:
        raise UserError(
            f"{file.name}: quotes from line {block.line} on do not tell cells from rows. Write a quote twice "
            "where it is part of a cell in quotes."
        )
    bounds = np.append(block.starts, block.ends[-1])
    if (
        bounds[1:] != block.ends
    ).any() or b"\r" in block.text:  # blank lines between them, line breaks of two
        lines = [block.text[i:j].rstrip(b"\r\n") for i, j in zip(block.starts, block.ends, strict=True)]
        return pa.array([b"\n" + line for line in lines], pa.binary()).cast(pa.string())
    if block.text.endswith(b"\n"):
        bounds[-1] -= 1
    bounds[1:-1] -= 1  # each with the line break before it, so that nothing is copied
    text = block.text[: bounds[0]] + b"\n" + block.text[bounds[0] :]
    bounds[1:] += 1
    offsets = pa.py_buffer(bounds.astype(np.int32))
    return pa.StringArray.from_buffers(rows, offsets, pa.py_buffer(text))


def ahead(make: Callable[[], Iterator[Batch]], most: int) -> Generator[Batch]:
    """Yield what an iterator yields, which runs in a thread of its own, at most so many steps ahead."""
    ready: queue.Queue = queue.Queue(most)
    stopped = threading.Event()

    def put(item: tuple[str, Any]) -> bool:
        while not stopped.is_set():
            try:
                ready.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def work() -> None:
        try:
            for batch in make():
                if not put(("batch", batch)):
                    return
            put(("end", None))
        except BaseException as error:
            put(("error", error))

    thread = threading.Thread(target=work, daemon=True, name="riskbayes reads")
    thread.start()
    try:
        while True:
            what, value = ready.get()
            if what == "error":
                raise value
            if what == "end":
                return
            yield value
    finally:
        stopped.set()
        thread.join()
