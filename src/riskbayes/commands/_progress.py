"""A progress bar on standard error, if that is a terminal."""

from __future__ import annotations

from typing import Any


class FileProgress:
    """A bar that fills as a file is read.

    Parameters
    ----------
    total : int or None
        Bytes or rows of the file; None if that is not known.
    in_bytes : bool
        True if these are bytes.
    """

    def __init__(self, total: int | None, in_bytes: bool):
        self.total, self.in_bytes = total, in_bytes
        self._bar: Any = None

    def __enter__(self) -> FileProgress:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            MofNCompleteColumn,
            Progress,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        console = Console(stderr=True)
        if console.is_terminal:
            shown = (DownloadColumn(), TransferSpeedColumn()) if self.in_bytes else (MofNCompleteColumn(),)
            self._bar = Progress(BarColumn(), *shown, TimeRemainingColumn(), console=console, transient=True)
            self._bar.start()
            self._task = self._bar.add_task("", total=self.total)
        return self

    def advance(self, position: int) -> None:
        """Show how far the file was read."""
        if self._bar is not None:
            self._bar.update(self._task, completed=position)

    def __exit__(self, *error: Any) -> None:
        if self._bar is not None:
            self._bar.stop()
