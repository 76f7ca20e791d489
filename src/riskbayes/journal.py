"""A file of records that are appended one by one, each of which is there entirely or not at all.

The head of the file says how far it is complete. It is written after a record is on the disk, so that a crash
leaves the records before; what follows them is overwritten.
"""

from __future__ import annotations

import os
import pickle
import struct
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Any

MAGIC = b"riskbayes journal 1\n"
LENGTH = struct.Struct("<Q")
DIGEST = 16
HEAD = len(MAGIC) + LENGTH.size + DIGEST


class Journal:
    """Values by key in a file, in the order in which they were added.

    The values are pickles: open only files that you trust.

    Parameters
    ----------
    path : path
        The file; it is made if there is none.
    """

    def __init__(self, path: Any):
        self.path = Path(path)
        self._places: dict[Any, tuple[int, int]] = {}
        self._end = HEAD
        self._lock = Lock()
        if self.path.exists() and self.path.stat().st_size:
            self._open()
        else:
            self._begin()

    def __contains__(self, key: Any) -> bool:
        return key in self._places

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, key: Any) -> Any:
        start, length = self._places[key]
        with open(self.path, "rb") as file:
            file.seek(start)
            return pickle.loads(file.read(length))[1]

    def add(self, key: Any, value: Any) -> None:
        """Append a record; when this returns it is on the disk."""
        record = pickle.dumps((key, value), protocol=5)
        with self._lock, open(self.path, "r+b") as file:
            file.seek(self._end)
            file.write(LENGTH.pack(len(record)) + digest(record) + record)
            file.truncate()
            synced(file)
            start = self._end + LENGTH.size + DIGEST
            self._end = start + len(record)
            file.seek(0)
            file.write(head_of(self._end))
            synced(file)
            self._places[key] = start, len(record)

    def _begin(self) -> None:
        """Write an empty file beside the path and move it there."""
        self._end = HEAD
        part = self.path.with_name(f"{self.path.name}.part")
        with open(part, "wb") as file:
            file.write(head_of(HEAD))
            synced(file)
        os.replace(part, self.path)

    def _open(self) -> None:
        """Read and check all records; refuse a file that is not what was written."""
        size = self.path.stat().st_size
        with open(self.path, "rb") as file:
            head = file.read(HEAD)
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
                self._places[pickle.loads(record)[0]] = start, length

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
