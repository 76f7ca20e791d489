"""The bytes of a user's file: found, opened, decompressed, and refused if they are no table."""

from __future__ import annotations

import bz2
import difflib
import gzip
import io
import lzma
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from riskbayes.input.arrow import FORMATS
from riskbayes.input.files import UserError
from riskbayes.input.files.arrow import pa

STDIN = "-"
"""The path that stands for standard input."""

COMPRESSED: dict[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": lambda stream: gzip.GzipFile(fileobj=stream),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
    b"\x28\xb5\x2f\xfd": lambda stream: pa.CompressedInputStream(stream, "zstd"),
}
"""How compressed files begin, and what decompresses them."""

ARROW = {b"PAR1": "parquet", b"ARROW1": "ipc"}
"""How files of Parquet and Arrow begin."""

BINARY = {
    b"\x89PNG": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
    b"GIF8": "a GIF picture",
    b"%PDF": "a PDF document",
    b"PK\x03\x04": "a zip archive or an Excel workbook",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"SQLite format 3": "an SQLite database",
    b"\x89HDF": "an HDF5 file",
    b"\x7fELF": "a program",
    b"\x93NUMPY": "a NumPy array",
    **dict.fromkeys((b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"), "a pickle"),
    b"7z\xbc\xaf": "a 7z archive",
    b"Obj\x01": "an Avro file",
    b"ORC": "an ORC file",
}
"""How files begin that are no tables which are read here."""

EXPORT = "Export the table as CSV or Parquet, and use that file."


@dataclass
class UserFile:
    """An open file of the user's: its decompressed bytes, and how far it was read."""

    name: str
    """How messages call it: its path, or "standard input"."""
    stream: Any
    """A buffered binary file that returns the decompressed bytes."""
    raw: BinaryIO
    """The file itself: its position is that in the compressed bytes."""
    size: int | None
    """Bytes of the file itself; None if it has no end that is known, as a pipe."""
    kind: str = "text"
    """What the bytes are: "text", "parquet" or "ipc"."""
    closing: list[Any] = field(default_factory=list)

    def position(self) -> int:
        """Return the bytes of the file itself that were read so far."""
        return self.raw.tell() if self.size is not None else 0

    def read(self, size: int) -> bytes:
        """Return the next decompressed bytes, `size` of them unless the file ends before."""
        with reading(self.name):
            return self.stream.read(size)

    def close(self) -> None:
        """Close the file; standard input stays open."""
        for each in self.closing:
            each.close()


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Raise what goes wrong while a file is read as a UserError that names it."""
    try:
        yield
    except MemoryError:
        raise UserError(f"{name} does not fit into memory. Use fewer rows or columns.") from None
    except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
        raise unreadable(name, error) from None


def unreadable(name: str, error: Exception) -> UserError:
    """Return the error for a file that the system does not let us read, or whose compressed data are bad."""
    if isinstance(error, OSError) and error.errno is not None:
        return UserError(f"Cannot read {name}: {error.strerror or error}.")
    if isinstance(error, EOFError) or (isinstance(error, OSError) and "runcated" in str(error)):
        return UserError(
            f"{name} is cut short: its compressed data end too early. Copy or download it again."
        )
    why = " ".join(str(error).split())
    return UserError(f"{name} is damaged: its compressed data cannot be read ({why}). Copy it again.")


def open_file(path: str | os.PathLike) -> UserFile:
    """Open a file, or standard input for "-"; decompress it; refuse what is known to be no table."""
    name = str(path)
    if name == STDIN:
        raw: Any = sys.stdin.buffer
        name, size, closing = "standard input", None, []
    else:
        try:
            raw = open(path, "rb", buffering=2**20)  # noqa: SIM115 - UserFile closes it
        except FileNotFoundError:
            raise missing_file(Path(path)) from None
        except ValueError:  # a NUL in the name
            raise UserError(f"There is no file {name!r}.") from None
        except OSError as error:
            raise unreadable(name, error) from None
        size = os.fstat(raw.fileno()).st_size if Path(path).is_file() else None
        closing = [raw]
    opened = UserFile(name, raw, raw, size, closing=closing)
    try:
        with reading(name):
            start = decompress(opened)
        refuse_binary(opened, start)
    except BaseException:
        opened.close()
        raise
    return opened


def decompress(opened: UserFile) -> bytes:
    """Let the file return decompressed bytes if it begins like a compressed one; return the first of them."""
    if not hasattr(opened.stream, "peek"):
        opened.stream = io.BufferedReader(opened.stream)
    start = opened.stream.peek(16)[:16]
    for magic, decompressed in COMPRESSED.items():
        if start.startswith(magic):
            opened.stream = io.BufferedReader(decompressed(opened.stream), 2**18)
            opened.closing.insert(0, opened.stream)
            return opened.stream.peek(16)[:16]
    return start


def refuse_binary(opened: UserFile, start: bytes) -> None:
    """Find out whether the file is Parquet, Arrow or text; refuse anything else by its first bytes."""
    if not start:
        raise UserError(f"{opened.name} is empty. It needs a header and rows.")
    opened.kind = next((kind for magic, kind in ARROW.items() if start.startswith(magic)), "text")
    for magic, what in BINARY.items():
        if start.startswith(magic):
            raise UserError(f"{opened.name} is {what}, no table that can be read. {EXPORT}")


def missing_file(path: Path) -> UserError:
    """Return the error for a file that is not there, with the nearest name in its folder."""
    try:
        names = os.listdir(path.parent) if path.parent.is_dir() else []
    except OSError:
        names = []
    near = difflib.get_close_matches(path.name, names[:10_000], 1)
    hint = f" Did you mean {str(path.with_name(near[0]))!r}?" if near else ""
    return UserError(f"There is no file {str(path)!r}.{hint}")


def is_arrow(path: str | os.PathLike) -> bool:
    """True for a folder or a pattern, and for a file of Parquet or Arrow."""
    name = str(path)
    if name == STDIN:
        return False
    try:
        if Path(path).is_dir() or Path(path).suffix.lower() in FORMATS:
            return True
        return any(sign in name for sign in "*?[") and not Path(path).exists()
    except (OSError, ValueError):  # a name that the system does not take
        return False
