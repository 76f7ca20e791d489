"""A temporary folder of arrays: written once, read in every scan, removed when it is closed."""

from __future__ import annotations

import errno
import pickle
import shutil
import struct
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of a disk, a quota or a limit on file sizes that is used up."""

HEAD = struct.Struct("<QQ")
"""The first bytes of a file: the length of the pickle, and the number of buffers after it."""


class Spool:
    """A folder of values, each in a file: pickles whose arrays follow as they are in memory.

    Files are read into memory of their own and not mapped, so that resident memory is what is in use. The
    folder is removed by `close`, and at the latest with this object; if the process is killed, by joblib's
    resource tracker, a process that outlives it.

    Parameters
    ----------
    where : path or None
        The folder in which the temporary folder is made; None for that of the system.
    """

    def __init__(self, where: Any = None):
        self.folder = Path(tempfile.mkdtemp(prefix="riskbayes-", dir=where))
        tracked = track("register", self.folder)
        self._remove = weakref.finalize(self, remove, self.folder, tracked)
        self.n_bytes = 0
        self._numbers = count()  # of which `next` is atomic: folds are written by several threads

    def write(self, value: Any) -> Path:
        """Write a value to a new file and return its path; a full disk raises an error that says so."""
        buffers: list[pickle.PickleBuffer] = []
        head = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
        raw = [buffer.raw() for buffer in buffers]
        path = self.folder / f"{next(self._numbers)}"
        try:
            with open(path, "wb", buffering=0) as file:
                lengths = struct.pack(f"<{len(raw)}Q", *(part.nbytes for part in raw))
                for part in (HEAD.pack(len(head), len(raw)) + lengths + head, *raw):
                    write_all(file, part)
        except OSError as error:
            if error.errno not in FULL:
                raise
            where = self.folder.parent
            self.close()
            raise OSError(
                error.errno,
                f"The disk of {str(where)!r} is full after {self.n_bytes / 2**20:.0f} MiB of encoded rows, "
                "which were removed. Pass riskbayes.rows(spool=...) a folder with more space",
            ) from None
        self.n_bytes += path.stat().st_size
        return path

    def close(self) -> None:
        """Remove the folder."""
        self._remove()


def track(action: str, folder: Path) -> bool:
    """Tell joblib's resource tracker of a folder: "register" it, or "unregister" it; False if it cannot."""
    try:
        from joblib.externals.loky.backend import resource_tracker  # part of joblib where it is not split up

        getattr(resource_tracker, action)(str(folder), "folder")
    except (ImportError, ValueError):  # the name is longer than its messages
        return False
    return True


def remove(folder: Path, tracked: bool) -> None:
    """Remove a folder, and tell the tracker, if it knows of it."""
    shutil.rmtree(folder, ignore_errors=True)
    if tracked:
        track("unregister", folder)


def write_all(file: Any, part: Any) -> None:
    """Write all bytes of a buffer: one call may write less, on a disk that is nearly full too."""
    view = memoryview(part).cast("B")
    while len(view):
        view = view[file.write(view) :]


def read(path: Path) -> Any:
    """Return the value that a spool wrote; its arrays own their memory."""
    with open(path, "rb", buffering=0) as file:
        length, number = HEAD.unpack(file.read(HEAD.size))
        lengths = struct.unpack(f"<{number}Q", file.read(8 * number))
        head = file.read(length)
        buffers = []
        for size in lengths:
            buffer = np.empty(size, dtype=np.uint8)
            view = memoryview(buffer.data)
            while len(view):
                got = file.readinto(view)
                if not got:
                    raise OSError(errno.EIO, f"{str(path)!r} ends early: a file of spooled rows was changed")
                view = view[got:]
            buffers.append(buffer)
    return pickle.loads(head, buffers=buffers)


def read_ahead(get: Callable[[Any], T], keys: Sequence[Any]) -> Iterator[T]:
    """Yield get(key) of each key; while one is worked on, a thread reads the next."""
    with ThreadPoolExecutor(1, thread_name_prefix="riskbayes-read") as reader:
        coming = None
        for i, key in enumerate(keys):
            found = get(key) if coming is None else coming.result()
            coming = reader.submit(get, keys[i + 1]) if i + 1 < len(keys) else None
            yield found
            del found
