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

MAGIC = b"riskbayes journal 3\n"
END = struct.Struct("<Q16s")
"""Where the records end, and a digest of that."""
HEAD = len(MAGIC) + END.size
RECORD = struct.Struct("<Q16s16s")
"""What is before a record: its length, a digest of its key, and one of the key's and the record."""


class Journal:
    """Bytes by key in a file, in the order in which they were added.

    Parameters
    ----------
    path : path
        The file; it is made if there is none.
    seconds : float
        Least time between two writes; records wait in memory until then, or until `flush`.
    """

    def __init__(self, path: Any, seconds: float = 0.0):
        self.path, self.seconds = Path(path), seconds
        self._places: dict[bytes, tuple[int, int]] = {}
        self._waiting: dict[bytes, bytes] = {}
        self._written = monotonic()
        self._end = HEAD
        self._lock = Lock()
        if self.path.exists() and self.path.stat().st_size:
            self._open()
        else:
            with self._writing():  # now, so that a folder that cannot be written to is found before the work
                pass

    def get(self, key: Any) -> bytes | None:
        """Return the record of a key, or None."""
        name = digest(repr(key).encode())
        with self._lock:
            if name not in self._places:
                return self._waiting.get(name)
            start, length = self._places[name]
            with open(self.path, "rb") as file:
                file.seek(start)
                return file.read(length)

    def add(self, key: Any, record: bytes) -> None:
        """Append a record; when this returns it is on the disk, if `seconds` have passed since the last."""
        with self._lock:
            self._waiting[digest(repr(key).encode())] = record
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
                for name, record in self._waiting.items():
                    file.write(RECORD.pack(len(record), name, digest(name, record)))
                    file.write(record)
                    places[name] = end + RECORD.size, len(record)
                    end += RECORD.size + len(record)
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
        """Find all records; refuse a file that is not what was written."""
        with open(self.path, "rb") as file:
            lock(file)
            size, head = os.fstat(file.fileno()).st_size, file.read(HEAD)
            if not head.startswith(MAGIC):
                raise self.refused("is no checkpoint of riskbayes")
            if len(head) < HEAD:
                raise self.refused("is truncated")
            self._end, _ = END.unpack_from(head, len(MAGIC))
            if head != head_of(self._end):
                raise self.refused("is corrupted at its head")
            if size < self._end:
                raise self.refused(f"is truncated: {size} of {self._end} bytes are left")
            while (at := file.tell()) < self._end:
                length, name, expected = RECORD.unpack(file.read(RECORD.size).ljust(RECORD.size))
                start = at + RECORD.size
                if start + length > self._end or digest(name, file.read(length)) != expected:
                    raise self.refused(f"is corrupted at byte {at}")
                self._places[name] = start, length

    def refused(self, what: str) -> ValueError:
        """Return the error for a file that a fit cannot go on from."""
        return ValueError(f"The checkpoint {str(self.path)!r} {what}. Delete it to fit from the beginning.")


def head_of(end: int) -> bytes:
    """Return the head of a file whose records end there."""
    return MAGIC + END.pack(end, digest(str(end).encode()))


def digest(*parts: bytes) -> bytes:
    """Return a digest of bytes, which tells whether they were changed."""
    found = blake2b(digest_size=16)
    for part in parts:
        found.update(part)
    return found.digest()


def synced(file: Any) -> None:
    """Wait until what was written is on the disk."""
    file.flush()
    os.fsync(file.fileno())
