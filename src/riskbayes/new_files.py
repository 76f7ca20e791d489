"""Files that are there whole or not at all, and files that one process writes to at a time."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO


@contextmanager
def new_files(*paths: str | os.PathLike[str]) -> Iterator[list[BinaryIO]]:
    """Open a new file for each path; at the end they replace the old ones: all of them, or none on an error.

    They are written beside the old ones, in files that did not exist before, and renamed when all of them are
    on the disk.
    """
    targets = [Path(os.path.realpath(path)) for path in paths]  # a link stays a link
    for path, target in zip(paths, targets, strict=True):
        if target.exists() and not target.is_file():  # a device, which would be replaced, or a folder
            raise OSError(errno.EEXIST, "it is no regular file", str(path))
    parts = [target.with_name(f".{target.name}.{secrets.token_hex(8)}.part") for target in targets]
    try:
        with ExitStack() as opened:
            yield (
                files := [opened.enter_context(open_new(*pair)) for pair in zip(parts, paths, strict=True)]
            )
            for file in files:
                file.flush()
                os.fsync(file.fileno())
        for part, target in zip(parts, targets, strict=True):
            os.replace(part, target)
    finally:
        for part in parts:
            part.unlink(missing_ok=True)


def open_new(part: Path, path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file that does not exist, not even as a link; an error names the path that the user knows."""
    try:
        return open(part, "xb")
    except OSError as error:
        error.filename = str(path)
        raise


def write_files(contents: Mapping[Path, str | bytes]) -> None:
    """Write texts and bytes to files by path: all of them, or none after an error."""
    with new_files(*contents) as files:
        for file, content in zip(files, contents.values(), strict=True):
            file.write(content.encode() if isinstance(content, str) else content)


def lock(file: IO, wait: bool = True) -> None:
    """Lock a file until it is closed; without `wait` raise a BlockingIOError if another process holds it."""
    with suppress(ImportError):  # no fcntl on Windows: there the user takes care
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
