"""Batches of a user's file with the columns as a fitted model reads them, for files larger than memory."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from riskbayes.input.arrow import lacking_column, of_file
from riskbayes.input.files import UserError
from riskbayes.input.files.arrow import pa, pc
from riskbayes.input.files.blocks import CSV, MOST_ROWS, Block
from riskbayes.input.files.deciding import matches, number_evidence
from riskbayes.input.files.expected import Expected
from riskbayes.input.files.notation import (
    DATE,
    NUMBER,
    PRESENT,
    TEXT,
    UNREAD,
    Notation,
    parts_of_numbers,
    trimmed,
)
from riskbayes.input.files.options import NOTHING_SAID, Options
from riskbayes.input.files.table import open_csv, open_dataset
from riskbayes.tables import shown

AMBIGUOUS = 3
"""Digits behind a sign that may as well stand between thousands."""


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


class Batches(AbstractContextManager):
    """A file that is read in batches for a model, in a thread of its own.

    Parameters
    ----------
    path : path
        What :func:`riskbayes.input.files.table.open_table` reads.
    expected : Expected
        The columns of the model.
    options : Options, default=NOTHING_SAID
        What the user says about the file.
    most : int or None, default=None
        Most rows of a batch, if they are to be fewer than `MOST_ROWS`.
    """

    def __init__(
        self,
        path: str | os.PathLike,
        expected: Expected,
        options: Options = NOTHING_SAID,
        most: int | None = None,
    ):
        self.expected, self.options = expected, options
        self.most = min(MOST_ROWS, most or MOST_ROWS)
        self.csv, kind = open_csv(path, options)
        """The file if it is a CSV."""
        if self.csv is not None:
            self.name, self.names = self.csv.name, list(self.csv.dialect.names)
            self.total = self.csv.file.size
        else:
            self._dataset = open_dataset(path, kind)
            self.name, self.names = str(path), list(self._dataset.schema.names)
            self.total = self._dataset.count_rows()
        try:
            self.columns = expected.in_file(self.name, self.names)
            read = [self.columns[name] for name, kind in expected.kinds.items() if kind != UNREAD]
            self.settle()
            if self.csv is None and (problem := lacking_column(self._dataset, read)):
                raise UserError(problem)
        except UserError:
            self.close()
            raise

    def close(self) -> None:
        """Close the file."""
        if self.csv is not None:
            self.csv.file.close()

    def __exit__(self, *error: Any) -> None:
        self.close()

    def __iter__(self) -> Iterator[Batch]:
        return ahead(self.of_csv() if self.csv is not None else self.of_arrow())

    def of_csv(self) -> Iterator[Batch]:
        """Yield the batches of a CSV."""
        assert self.csv is not None
        file, empty = self.csv, True
        for block in file.blocks(self.most):
            empty = False
            X = self.features(block)
            rows = lambda block=block: file.cells(block)  # noqa: E731
            yield Batch(X, rows, lines_of(file, block, X.num_rows), file.file.position())
        if empty:
            raise UserError(f"{file.name} has a header and no rows. Add them.")

    def settle(self) -> None:
        """Take the notations of the model, with what the user says and what the file proves."""
        own = self.csv.dialect.decimal if self.csv is not None else ""
        self.notations: dict[str, Notation] = {}
        self.sure: set[str] = set()
        """Columns of numbers whose cells in this file prove their decimal sign."""
        for name, how in self.expected.notations.items():
            if how.kind == NUMBER and not how.example:  # the model was fitted to no file of text
                how = how.given(own or ".", None)
            how = how.given(self.options.decimal, self.options.date_order)
            self.notations[name] = how
            if self.options.decimal or (how.digits >= AMBIGUOUS and own in ("", how.decimal)):
                self.sure.add(name)
        signs = [how.decimal for how in self.notations.values() if how.decimal]
        self.decimal = self.options.decimal or own or ("," if signs and set(signs) == {","} else ".")
        """The decimal sign of the file, as far as it is known."""

    def features(self, block: Block) -> Any:
        """Return the columns that the model reads, of a block of a CSV."""
        assert self.csv is not None
        coded = pa.dictionary(pa.int32(), pa.string())
        read = {name: how for name, how in self.notations.items() if how.kind != UNREAD}
        types = {self.columns[name]: self.plain_type(name, how) or coded for name, how in read.items()}
        try:
            found = self.csv.parse(block, types, decimal=self.decimal)
        except pa.ArrowInvalid:  # numbers in another notation, or cells that are none
            found = self.csv.parse(block, dict.fromkeys(types, coded))
        rows = len(block.ends)
        columns = []
        for name, how in self.notations.items():
            if how.kind == UNREAD:
                columns.append(pa.nulls(rows, pa.string()))
                continue
            column = found.column(self.columns[name])
            is_coded = pa.types.is_dictionary(column.type)
            columns.append(self.read(name, column, block) if is_coded else column.cast(pa.float64()))
        return pa.table(columns, names=list(self.notations))

    def plain_type(self, name: str, how: Notation) -> Any:
        """Return the type as which Arrow itself reads a column of numbers; None if it does not."""
        if how.kind != NUMBER or how.unit or (how.thousands and how.example):
            return None
        if not how.decimal:
            return pa.int64()
        return pa.float64() if name in self.sure and how.decimal == self.decimal else None

    def read(self, name: str, column: Any, block: Block | None = None) -> Any:
        """Return a column of coded text by its notation; refuse a cell that does not fit, with its line."""
        coded = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        cells = trimmed(coded.dictionary, self.notations[name].kind)

        def refuse(wrong: Any, why: str) -> UserError:
            at = pc.index(pc.take(wrong, coded.indices), True).as_py()
            line = "" if block is None else f", line {block.line_of(at)}"
            cell = shown(cells[coded.indices[at].as_py()].as_py())
            return UserError(f"{self.name}{line}, column {self.columns[name]!r} has {cell}{why}")

        how = self.proven(name, cells, refuse)
        values = how.read(cells)
        wrong = pc.and_(cells.is_valid(), values.is_null())
        if pc.any(wrong).as_py():
            like = f" such as {how.example!r}" if how.example else ""
            what = "true or false" if how.kind == "flag" else f"{how.kind}s{like}"
            raise refuse(
                wrong, f", and the model was fitted to {what} there. {mending(how, cells.filter(wrong))}"
            )
        if how.kind == TEXT and values.equals(coded.dictionary):
            return coded
        again = values.dictionary_encode() if pa.types.is_string(values.type) else None
        if again is None:
            return values.take(coded.indices)
        return pa.DictionaryArray.from_arrays(again.indices.take(coded.indices), again.dictionary)

    def proven(self, name: str, cells: Any, refuse: Callable[[Any, str], UserError]) -> Notation:
        """Return the notation of a column; refuse numbers that may as well be written in another one.

        "8.123" may be 8123 where numbers of training have fewer digits behind the point, or the rest of the
        file decimal commas, and no cell of the column so far proves the sign.
        """
        how = self.notations[name]
        if how.kind != NUMBER or name in self.sure:
            return how
        own = "" if self.csv is None else self.csv.dialect.decimal
        which = " and may be read in two ways. Say which sign is the decimal one: --decimal . or --decimal ,"
        if not how.decimal:
            present = cells.drop_null()
            seen = number_evidence(present, np.ones(len(present)))
            if not seen.open.any():
                return how
            way, guessed = seen.choose({".": 0, ",": 1}.get(own), 0)
            if guessed:
                raise refuse(group_of_three(cells, "[.,]"), which)
            how = replace(seen.ways[way], unit=how.unit, example=how.example)
        else:
            contrary, signed = own not in ("", how.decimal), matches(cells, re.escape(how.decimal))
            unsure = group_of_three(cells, re.escape(how.decimal) if signed.any() else "[.,]")
            if not (signed & ~unsure.to_numpy(False)).any():
                if unsure.true_count and (contrary or (signed.any() and how.digits < AMBIGUOUS)):
                    raise refuse(unsure, which)
                return how
        self.notations[name] = how
        self.sure.add(name)
        return how

    def from_words(self, name: str, column: Any) -> Any:
        """Return a column of Parquet or Arrow; one of words by its notation if the model reads no words."""
        words = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        if not words or self.notations[name].kind in (TEXT, PRESENT, UNREAD):
            return column
        return self.read(name, column.cast(pa.string()).combine_chunks().dictionary_encode())

    def of_arrow(self) -> Iterator[Batch]:
        """Yield the batches of Parquet and Arrow files."""
        done, dataset = 0, self._dataset
        read = (
            part.slice(first, self.most)
            for file in dataset.get_fragments()
            for part in of_file(file, dataset.schema, self.names, self.most)
            for first in range(0, part.num_rows, self.most)
        )
        for part in read:
            rows = pa.Table.from_batches([part]).select(self.names)
            done += rows.num_rows
            X = pa.table(
                {name: self.from_words(name, rows.column(own)) for name, own in self.columns.items()}
            )
            yield Batch(X, lambda rows=rows: rows, None, done)
        if not done:
            raise UserError(f"{self.name} has columns and no rows. Add them.")


def group_of_three(cells: Any, sign: str) -> Any:
    """Return which cells hold a sign with three digits behind it that may stand between thousands."""
    pattern = rf"^[^\d.,]*[1-9]\d{{0,2}}{sign}\d{{3}}[^\d.,]*$"
    return pc.fill_null(pc.match_substring_regex(cells, pattern), False)


def mending(how: Notation, wrong: Any) -> str:
    """Return what a user can do about cells that do not fit a notation."""
    if how.kind == DATE:
        return "Write it in the same way, leave it empty, or say how this file is written: --date-order."
    if how.kind == NUMBER and parts_of_numbers(wrong)[0].null_count < len(wrong):
        return "Write it in the same way, leave it empty, or say how this file is written: --decimal."
    return "Correct the cell, or leave it empty."


def lines_of(file: CSV, block: Block, rows: int) -> Any:
    """Return the records of a block as an Arrow array of text, each with a line break before it only."""
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


def ahead(batches: Iterator[Batch]) -> Iterator[Batch]:
    """Yield batches; while one is worked on, a thread reads the next."""
    with ThreadPoolExecutor(1, thread_name_prefix="riskbayes-read") as reader:
        coming = reader.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = reader.submit(next, batches, None)
            yield batch
