"""A CSV in blocks of whole records: bounded memory, whatever the size of the file."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

from riskbayes.arrays import Array
from riskbayes.input.files import UserError
from riskbayes.input.files.arrow import pa, pacsv
from riskbayes.input.files.dialect import Dialect, find_dialect, refuse_repeated_names
from riskbayes.input.files.notation import MISSING
from riskbayes.input.files.opening import UserFile, open_file
from riskbayes.input.files.options import NOTHING_SAID, Options
from riskbayes.input.files.text import LONGEST_RECORD, Text

BLOCK = 2**22
"""Bytes that are read at a time."""

MOST_ROWS = 2**16
"""Upper bound on the records of a block: a row of two bytes may have a thousand posteriors."""

TOTAL = re.compile(
    r"(grand |sub)?totals?|sum|summe|gesamt(summe)?|insgesamt|somme|totale|suma|subtotal", re.IGNORECASE
)
"""The first cell of a row of totals."""

FOOTNOTE = re.compile(
    r"[*\u2020\u00b9\u00b2\u00b3]|\(\d\) |\(?\d+ (rows?|records?)\b|(sources?|quellen?|notes?|anmerkung(en)?"
    r"|hinweise?|stand|fuente|nota|remarque|as of|generated|exported|created|erstellt|page|seite)\b",
    re.IGNORECASE,
)
"""How a line below a table begins."""

MOST_BELOW = 20
"""Most lines below a table that are looked at."""

SAMPLE = 2**18
"""Bytes that the dialect is detected from, at the end of a line."""


@dataclass(frozen=True)
class Block:
    """Some whole records of a CSV."""

    text: bytes
    line: int
    """The number of its first line."""
    ends: Array
    """Where its records end, behind their line breaks; blank lines are no records and not counted."""
    starts: Array
    """Where its records begin."""
    several_lines: bool
    """True if a record may have line breaks in quotes."""

    def parts(self, most: int) -> Iterator[Block]:
        """Yield the block in parts of at most so many records."""
        line, begin = self.line, 0
        for first in range(0, len(self.ends), most):
            ends, starts = (each[first : first + most] for each in (self.ends, self.starts))
            text = self.text[begin : ends[-1]]
            yield Block(text, line, ends - begin, starts - begin, self.several_lines)
            line, begin = line + text.count(b"\n"), int(ends[-1])

    def line_of(self, record: int) -> int:
        """Return the number of the line in which a record begins."""
        return self.line + self.text.count(b"\n", 0, int(self.starts[record]))

    def lines(self) -> Sequence[int]:
        """Return the number of the line in which each record begins."""
        if self.text.count(b"\n") - self.text.endswith(b"\n") + 1 == len(self.ends):
            return range(self.line, self.line + len(self.ends))
        breaks = np.flatnonzero(np.frombuffer(self.text, np.uint8) == ord("\n"))
        found: Array = np.searchsorted(breaks, self.starts)
        return (self.line + found).tolist()


class CSV(AbstractContextManager):
    """A CSV file that is read once, from its beginning, in blocks of whole records.

    Parameters
    ----------
    path : path
        The file, plain or compressed; "-" for standard input.
    opened : UserFile, default=None
        The file, if it is open already.
    options : Options, default=NOTHING_SAID
        What the user says about it.
    """

    def __init__(
        self, path: str | os.PathLike, opened: UserFile | None = None, options: Options = NOTHING_SAID
    ):
        self.file = opened or open_file(path)
        self.name = self.file.name
        self.below: list[tuple[int, str]] = []
        """Lines below the table that are no rows, with their numbers."""
        try:
            self._read = pacsv.read_csv  # fails here, before any output, where pyarrow is not installed
            self._text = Text(self.file, options.encoding)
            self._chunks = self._text.chunks(BLOCK)
            self._first = next(self._chunks, b"")
            cut = self._first.rfind(b"\n", 0, SAMPLE) + 1 or self._first.find(b"\n") + 1 or len(self._first)
            sample = self._first[:cut].decode("utf-8", errors="replace")
            self.dialect: Dialect = find_dialect(self.name, sample, options)
            refuse_repeated_names(self.name, self.dialect.names)
        except BaseException:
            self.file.close()
            raise

    def __exit__(self, *error: Any) -> None:
        self.file.close()

    def header(self) -> bytes:
        """Return the header as it is in the file, without its last line break, or one of the names."""
        skipped, height = self.dialect.skipped, self.dialect.header
        lines = self._first.split(b"\n", skipped)[skipped - height : skipped]
        names = self.dialect.delimiter.join(self.dialect.names)
        return b"\n".join(lines).rstrip(b"\r") if height else names.encode()

    def blocks(self, most: int | None = None) -> Iterator[Block]:
        """Yield the records in blocks of at most so many, by default `MOST_ROWS`.

        The header and what is before it are no records.
        """
        most = most or MOST_ROWS
        skipped, line = self.dialect.skipped, 1 + self.dialect.skipped
        held = [*self._first.split(b"\n", skipped), b""][skipped] if skipped else self._first
        for chunk in self._chunks:
            block, held = self.cut(held, line, last=False)
            if block is not None:
                yield from block.parts(most)
                line = block.line + block.text.count(b"\n")
            held += chunk
            if len(held) > LONGEST_RECORD + 2 * BLOCK:
                raise self.open_quote(line)
        block, _ = self.cut(held, line, last=True)
        if block is not None:
            yield from block.parts(most)

    def cut(self, text: bytes, line: int, last: bool) -> tuple[Block | None, bytes]:
        """Return a block of the whole records at the beginning of a text, and what is left."""
        if not text:
            return None, text
        quoted = b'"' in text
        if not quoted and b"\r" in text:
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        several = quoted and (text.count(b"\r") > text.count(b"\r\n") or not even_quotes(text))
        if several:
            ends, is_open = ends_with_quotes(text, self.dialect.delimiter)
            if last and is_open >= 0:
                raise self.open_quote(line + text.count(b"\n", 0, is_open))
        else:
            ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n")) + 1
        if last and (not len(ends) or ends[-1] < len(text)):
            ends = np.append(ends, len(text))
        if not len(ends):
            return None, text
        whole, rest = text[: ends[-1]], text[ends[-1] :]
        starts = np.concatenate([[0], ends[:-1]])
        blank = ends - starts <= 2
        if blank.any():  # a line break alone; a record of one cell may have two bytes as well
            first = np.frombuffer(whole, np.uint8)[np.minimum(starts, len(whole) - 1)]
            kept = ~((ends == starts) | (blank & np.isin(first, [10, 13])))
            ends, starts = ends[kept], starts[kept]
        if last:
            n = self.rows_above(whole, line, starts, ends)
            ends, starts = ends[:n], starts[:n]
            whole = whole[: ends[-1]] if n else whole
        return (Block(whole, line, ends, starts, several) if len(ends) else None), rest

    def rows_above(self, text: bytes, line: int, starts: Array, ends: Array) -> int:
        """Return the number of records that are rows; those below the table are kept in `below`."""
        n = rows = len(ends)
        while n > 1 and rows - n < MOST_BELOW and ends[n - 1] - starts[n - 1] <= csv.field_size_limit():
            record = text[starts[n - 1] : ends[n - 1]].decode("utf-8", errors="replace").strip("\r\n")
            cells = next(csv.reader([record], delimiter=self.dialect.delimiter), [])
            if any(map(str.strip, cells)):
                if not is_below([cell.strip() for cell in cells], len(self.dialect.names)):
                    break
                rows = n - 1
                self.below.append((line + text.count(b"\n", 0, int(starts[n - 1])), record))
            n -= 1
        return rows if self.below else len(ends)

    def open_quote(self, line: int) -> UserError:
        """Return the error for a quote that is not closed, from some line on."""
        return UserError(
            f"{self.name}: a quote that opens in line {line} or soon after is not closed. Close it, or write "
            "it twice where it is part of a cell in quotes."
        )

    def parse(
        self, block: Block, types: Mapping[str, Any], missing: Collection[str] = MISSING, decimal: str = "."
    ) -> Any:
        """Return the columns of a block as an Arrow table; a column that is named in `types` has that type.

        Cells among `missing` are null. Cells that cannot be read as their type raise pyarrow's ArrowInvalid.
        """
        wrong: list[Any] = []

        def invalid(row: Any) -> str:
            wrong.append(row)
            return "error"

        names = list(self.dialect.names)
        options = pacsv.ReadOptions(
            column_names=names, use_threads=False, block_size=min(len(block.text) + 1, 2**31 - 1)
        )
        how = pacsv.ParseOptions(
            delimiter=self.dialect.delimiter,
            newlines_in_values=block.several_lines,
            invalid_row_handler=invalid,
        )
        cells = pacsv.ConvertOptions(
            check_utf8=False,
            column_types=types,
            include_columns=list(types),
            null_values=sorted(missing),
            strings_can_be_null=True,
            quoted_strings_can_be_null=True,
            decimal_point=decimal,
        )
        try:
            found = self._read(pa.BufferReader(block.text), options, how, cells)
        except pa.ArrowInvalid as error:
            if wrong:
                raise self.ragged(block, wrong[0]) from None
            if all(type == pa.string() for type in types.values()):  # then it is not the type of a cell
                why = " ".join(str(error).split())[:200]
                raise UserError(f"{self.name}, line {block.line} cannot be read as CSV: {why}.") from None
            raise
        return found

    def cells(self, block: Block) -> Any:
        """Return all columns of a block as the text that is in the file; empty cells are null."""
        return self.parse(block, dict.fromkeys(self.dialect.names, pa.string()), missing=("",))

    def ragged(self, block: Block, row: Any) -> UserError:
        """Return the error for a row with another number of cells than the header."""
        at = f"line {block.line_of(row.number - 1)}" if row.number else "a line"
        return UserError(
            f"{self.name}, {at} has {row.actual_columns} cells, and the table has {row.expected_columns} "
            f"columns (delimiter {self.dialect.delimiter!r}). Correct that line or take it out."
        )


def is_below(cells: list[str], width: int) -> bool:
    """True for a row of totals, and for a footnote: words in one cell, or in fewer cells than columns."""
    filled = [cell for cell in cells if cell]
    if len(cells) == width and width > 1 and TOTAL.fullmatch(filled[0].rstrip(":")):
        return True
    if width == 1 or (len(filled) > 1 and len(cells) >= width) or not re.search(r"[^\W\d_]", filled[0]):
        return False
    wordy = len(filled[0].split()) > 3 or (len(cells) < width and ": " in filled[0])
    return bool(FOOTNOTE.match(filled[0])) or wordy


def even_quotes(text: bytes) -> bool:
    """True if every line has an even number of quotes, so that no line break stands between quotes."""
    cells = np.frombuffer(text, np.uint8)
    quotes = np.flatnonzero(cells == ord('"'))
    breaks = np.flatnonzero(cells == ord("\n"))
    lines = np.searchsorted(quotes, breaks)
    return not (lines % 2).any() and len(quotes) % 2 == 0


def ends_with_quotes(text: bytes, delimiter: str) -> tuple[Array, int]:
    """Return where records end, and where a quote opens that is not closed, or -1.

    A quote opens a cell only at its beginning; elsewhere it is a character like any other.
    """
    d = re.escape(delimiter.encode())
    pattern = re.compile(rb"(?:\A|(?<=[\r\n]|" + d + rb'))"[^"]*(?:""[^"]*)*("?)|\r\n|\n|\r')
    ends, is_open = [], -1
    for match in pattern.finditer(text):
        if match.group(1) is None:
            ends.append(match.end())
        elif not match.group(1):
            is_open = match.start()
    return np.array(ends, dtype=np.int64), is_open
