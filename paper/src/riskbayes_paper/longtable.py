"""The long table of results: one line a unit, written at once, checked when read.

Its first columns name the unit, then come its figures; each line ends in a checksum of what stands before it.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, Self
from zlib import crc32

from riskbayes.new_files import lock, write_files
from riskbayes_paper import ExperimentError
from riskbayes_paper.files import reading

Columns = Mapping[str, Any]
"""The columns of a table but for the checksum, and the types of their values: keys of `READ`."""

Record = dict[str, Any]
"""The values of one row by their columns."""

READ: dict[Any, Any] = {
    str: str,
    int: int,
    float: float,
    tuple[float, ...]: lambda cell: tuple(map(float, cell.split())),
    tuple[int, ...]: lambda cell: tuple(map(int, cell.split())),
}


def header(columns: Columns) -> str:
    """Return the first line of a table."""
    return ",".join([*columns, "checksum"]) + "\n"


def to_line(record: Record, columns: Columns) -> str:
    """Return a line of CSV that ends in a checksum of what stands before it."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(text(record[name]) for name in columns)
    return f"{line.getvalue()},{checksum(line.getvalue())}\n"


def from_line(line: str, columns: Columns) -> Record | None:
    """Return the values of a line, or None where the line is not whole."""
    body, _, check = line.rpartition(",")
    if check != checksum(body) + "\n":
        return None
    cells = next(csv.reader([body]))
    return {name: READ[kind](cell) for (name, kind), cell in zip(columns.items(), cells, strict=True)}


def text(value: Any) -> str:
    """Return a value as it stands in the table."""
    if isinstance(value, tuple):
        return " ".join(map(text, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def checksum(body: str) -> str:
    """Return a checksum of eight hexadecimal digits."""
    return f"{crc32(body.encode()):08x}"


def read_file(path: Path, columns: Columns) -> tuple[list[Record], int]:
    """Return the whole rows of one table, and how many broken lines it has."""
    records = [from_line(line, columns) for line in read_lines(path, columns)]
    return [record for record in records if record is not None], records.count(None)


def read_lines(path: Path, columns: Columns) -> list[str]:
    """Return the lines of a table below its header; of a header that is cut off, that."""
    with reading(path):
        first, *lines = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True) or [""]
    if first == header(columns):
        return lines
    if lines or not header(columns).startswith(first):
        raise ExperimentError(f"{path} is no table of this version's results: move it away.")
    return [first]


class LongTable:
    """The table in a file, for one run to append to; a broken line is taken out first."""

    def __init__(self, path: Path, columns: Columns):
        self.path, self.columns = path, columns
        path.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as opened:
            opened.enter_context(hold(path.with_name(f".{path.name}.lock")))
            lines = read_lines(path, columns) if path.exists() else []
            whole = [line for line in lines if from_line(line, columns) is not None]
            self.broken = len(lines) - len(whole)
            if self.broken or not path.exists():  # a kill leaves the old one or the new one
                write_files({path: header(columns) + "".join(whole)})
            self.file = opened.enter_context(path.open("ab", buffering=0))
            self.opened = opened.pop_all()

    def append(self, records: Iterable[Record]) -> None:
        """Write rows, and return when they are on the disk."""
        self.file.write("".join(to_line(record, self.columns) for record in records).encode())
        os.fsync(self.file.fileno())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.opened.close()


def hold(path: Path) -> IO[str]:
    """Hold a file until it is closed or the process ends; refuse where another process holds it."""
    file = path.open("w")
    try:
        lock(file, wait=False)
    except BlockingIOError:
        file.close()
        raise ExperimentError(
            f"Another run writes to {str(path.parent)!r}: wait for it, or choose another --out."
        ) from None
    return file
