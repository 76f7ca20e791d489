"""The long table of results: one line a unit, written at once, checked when read."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO, Any, Self
from zlib import crc32

from riskbayes.new_files import lock, write_files
from riskbayes_paper import ExperimentError
from riskbayes_paper.files import reading
from riskbayes_paper.protocols import Unit

FILE = "results.csv"


@dataclass(frozen=True)
class Row:
    """What came of one unit.

    Parameters
    ----------
    unit : Unit
        What was fitted on what: the first six columns.
    m, n, classes : int
        Size of the data set.
    source, stand_in : str
        Where it came from, and what its features are where they are not the paper's.
    n_test : int
        Number of test rows.
    train_error : float
        Share of the training rows that the returned model gets wrong.
    status : str
        How the fit ended.
    scans : int
        Scans of the data after that of the closed form, those of rejected trials included.
    seconds : float
        Time of the fit, with the test rows judged on the way.
    engine, version, finished, settings : str
        Where it ran, the version of riskbayes, when it ended (UTC), and the classifier in words.
    soft_error : tuple of float
        Of the training rows, for every model kept on the way; the first is the closed form.
    test_wrong : tuple of int
        Test rows that each of these models gets wrong.
    """

    unit: Unit
    m: int
    n: int
    classes: int
    source: str
    stand_in: str
    n_test: int
    train_error: float
    status: str
    scans: int
    seconds: float
    engine: str
    version: str
    finished: str
    settings: str
    soft_error: tuple[float, ...]
    test_wrong: tuple[int, ...]

    def error(self, part: str) -> float:
        """Return the share of the "train" or "test" rows that the returned model gets wrong."""
        return self.train_error if part == "train" else self.test_wrong[-1] / self.n_test

    def to_line(self) -> str:
        """Return a line of CSV that ends in a checksum of what stands before it."""
        line = io.StringIO()
        values = (*self.unit, *(getattr(self, name) for name in COLUMNS))
        csv.writer(line, lineterminator="").writerow(map(text, values))
        return f"{line.getvalue()},{checksum(line.getvalue())}\n"

    @classmethod
    def from_line(cls, line: str) -> Self | None:
        """Return the row of a line, or None where the line is not whole."""
        body, _, check = line.rpartition(",")
        if check != checksum(body) + "\n":
            return None
        name, split, *cells = next(csv.reader([body]))
        unit = Unit(name, int(split), *cells[:4])
        return cls(unit, *(READ[kind](cell) for kind, cell in zip(COLUMNS.values(), cells[4:], strict=True)))


def text(value: Any) -> str:
    """Return a value as it stands in the table."""
    if isinstance(value, tuple):
        return " ".join(map(text, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


# Annotations are strings here.
READ: dict[Any, Any] = {
    "str": str,
    "int": int,
    "float": float,
    "tuple[float, ...]": lambda cell: tuple(map(float, cell.split())),
    "tuple[int, ...]": lambda cell: tuple(map(int, cell.split())),
}
COLUMNS: dict[str, Any] = {f.name: f.type for f in fields(Row)[1:]}
"""The columns behind those of the unit, and the types of their values."""
HEADER = ",".join([*Unit._fields, *COLUMNS, "checksum"]) + "\n"


def checksum(body: str) -> str:
    """Return a checksum of eight hexadecimal digits."""
    return f"{crc32(body.encode()):08x}"


def read_file(path: Path) -> tuple[list[Row], int]:
    """Return the whole rows of one table, and how many broken lines it has."""
    with reading(path):
        header, *lines = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True) or [""]
    if header != HEADER:
        if lines or not HEADER.startswith(header):
            raise ExperimentError(f"{path} is no table of this version's results: move it away.")
        return [], 1
    rows = [Row.from_line(line) for line in lines]
    return [row for row in rows if row is not None], sum(row is None for row in rows)


def read_folder(folder: Path) -> list[Row]:
    """Return the rows of every table in a folder, each unit once: that of the last file by name."""
    paths = sorted(folder.glob("*.csv"))
    if not paths:
        raise ExperimentError(
            f"There is no table of results in {str(folder)!r}: run riskbayes reproduce first."
        )
    found = {row.unit: row for path in paths for row in read_file(path)[0]}
    return list(found.values())


class LongTable:
    """The table `results.csv` in a folder, for one run to append to; a broken line is taken out first."""

    def __init__(self, folder: Path):
        self.path = folder / FILE
        folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as opened:
            opened.enter_context(hold(folder / ".lock"))
            rows, self.broken = read_file(self.path) if self.path.exists() else ([], 0)
            if self.broken or not self.path.exists():
                replace_file(self.path, rows)
            self.file = opened.enter_context(self.path.open("ab", buffering=0))
            self.opened = opened.pop_all()

    def append(self, rows: Iterable[Row]) -> None:
        """Write rows, and return when they are on the disk."""
        self.file.write("".join(row.to_line() for row in rows).encode())
        os.fsync(self.file.fileno())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.opened.close()


def replace_file(path: Path, rows: Iterable[Row]) -> None:
    """Write a table anew, so that a kill leaves the old one or the new one."""
    write_files({path: HEADER + "".join(row.to_line() for row in rows)})


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
