"""A file of records that are appended one by one, each of which is there entirely or not at all.

The head of the file says how far it is complete. It is written after a record is on the disk, so that a crash
leaves the records before; what follows them is overwritten.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Any, BinaryIO

from riskbayes.new_files import lock
from riskbayes.records import packed, unpacked

MAGIC = b"riskbayes journal 2\n"
LENGTH = struct.Struct("<Q")
DIGEST = 16
HEAD = len(MAGIC) + LENGTH.size + DIGEST


class Journal:
    """Values by key in a file, in the order in which they were added; :mod:`riskbayes.records` says which.

    To read a file runs no code of it.

    Parameters
    ----------
    path : path
        The file; it is made if there is none.
    seconds : float
        Least time between two writes; records wait in memory until then, or until `flush`.
    """

    def __init__(self, path: Any, seconds: float = 0.0):
        self.path, self.seconds = Path(path), seconds
        self._places: dict[Any, tuple[int, int]] = {}
        self._waiting: dict[Any, bytes] = {}
        self._written = monotonic()
        self._end = HEAD
        self._lock = Lock()
        if self.path.exists() and self.path.stat().st_size:
            self._open()
        else:
            with self._writing():  # now, so that a folder that cannot be written to is found before the work
                pass

    def __contains__(self, key: Any) -> bool:
        return key in self._places or key in self._waiting

    def __len__(self) -> int:
        return len(self._places) + len(self._waiting)

    def __getitem__(self, key: Any) -> Any:
        with self._lock:
            record = self._waiting.get(key)
            if record is None:
                start, length = self._places[key]
                with open(self.path, "rb") as file:
                    file.seek(start)
                    record = file.read(length)
        return unpacked(record)[1]

    def add(self, key: Any, value: Any) -> None:
        """Append a record; when this returns it is on the disk, if `seconds` have passed since the last."""
        record = packed((key, value))
        with self._lock:
            self._waiting[key] = record
            due = monotonic() - self._written >= self.seconds
        if due:
            self.flush()

    def flush(self) -> None:
        """Write the records that wait; when this returns they are on the disk."""
        with self._lock:
            if not self._waiting:
                return
            end, places = self._end, {}
            with self._writing() as file:
                file.seek(end)
                for key, record in self._waiting.items():
                    file.write(LENGTH.pack(len(record)) + digest(record) + record)
                    start = end + LENGTH.size + DIGEST
                    end = start + len(record)
                    places[key] = start, len(record)
                file.truncate()
                synced(file)
                file.seek(0)
                file.write(head_of(end))
                synced(file)
            self._end, self._waiting, self._written = end, {}, monotonic()
            self._places |= places

    @contextmanager
    def _writing(self) -> Iterator[BinaryIO]:
        """Open the file, locked and with a head; refuse one that another fit wrote to since it was read."""
        with open(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666), "r+b") as file:
            lock(file)
            head = file.read(HEAD)
            if not head and self._end == HEAD:
                file.write(head_of(HEAD))
                synced(file)
            elif head != head_of(self._end):
                raise ValueError(
                    f"Another fit writes to the checkpoint {str(self.path)!r}. Wait for it to end, or name "
                    "another file."
                )
            yield file

    def _open(self) -> None:
        """Read and check all records; refuse a file that is not what was written."""
        with open(self.path, "rb") as file:
            lock(file)
            size, head = os.fstat(file.fileno()).st_size, file.read(HEAD)
            if not head.startswith(MAGIC):
                raise self._refused("is no checkpoint of riskbayes")
            if len(head) < HEAD:
                raise self._refused("is truncated")
            (self._end,) = LENGTH.unpack_from(head, len(MAGIC))
            if head != head_of(self._end):
                raise self._refused("is corrupted at its head")
            if size < self._end:
                raise self._refused(f"is truncated: {size} of {self._end} bytes are left")
            while file.tell() < self._end:
                at = file.tell()
                (length,) = LENGTH.unpack(file.read(LENGTH.size))
                expected = file.read(DIGEST)
                start = file.tell()
                record = file.read(length) if length <= self._end - start else b""
                if digest(record) != expected:
                    raise self._refused(f"is corrupted at byte {at}")
                try:
                    key = unpacked(record)[0]
                except Exception:  # whatever is in a record that was not written here
                    raise self._refused(f"has a record at byte {at} that cannot be read") from None
                self._places[key] = start, length

    def _refused(self, what: str) -> ValueError:
        return ValueError(f"The checkpoint {str(self.path)!r} {what}. Delete it to fit from the beginning.")


def head_of(end: int) -> bytes:
    """Return the head of a file whose records end there."""
    place = LENGTH.pack(end)
    return MAGIC + place + digest(place)


def digest(data: bytes) -> bytes:
    """Return a digest of bytes, which tells whether they were changed."""
    return blake2b(data, digest_size=DIGEST).digest()


def synced(file: Any) -> None:
    """Wait until what was written is on the disk."""
    file.flush()
    os.fsync(file.fileno())
