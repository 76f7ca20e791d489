"""Progress bars: of work that is done in steps, and of the rows that a fit reads and scans."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def progress_bar(*columns: Any, total: int | None = None, words: str = "") -> Iterator[Callable[..., None]]:
    """Show a bar with these columns of `rich.progress` on standard error, if that is a terminal.

    Yields the function that updates it.
    """
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if not console.is_terminal:  # a bar that is disabled writes a line in rich 13.0
        yield lambda **changes: None
        return
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(words, total=total)
        yield lambda **changes: bar.update(task, **changes)


class RowProgress:
    """A bar that fills with the rows of one pass after another.

    Parameters
    ----------
    shown : bool
        False for no bar.
    n_rows : int or None
        The rows of a pass; None until the first one is over.
    """

    def __init__(self, shown: bool, n_rows: int | None):
        self.shown, self.n_rows = shown, n_rows
        self._bar: Any = None
        self._passes = self._done = 0

    def advance(self, rows: int) -> None:
        """Count rows that were read; the pass is over when all rows were."""
        if not self.shown:
            return
        if self._bar is None:
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            parts = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
            self._bar = Progress(*parts)
            self._bar.start()
            self._task = self._bar.add_task("reading rows", total=self.n_rows)
        self._done += rows
        self._bar.update(self._task, completed=self._done)
        if self.n_rows is not None and self._done >= self.n_rows:
            self.next_pass()

    def next_pass(self, n_rows: int | None = None) -> None:
        """Begin the next pass over the rows."""
        self.n_rows = self.n_rows if n_rows is None else n_rows
        self._passes, self._done = self._passes + 1, 0
        if self._bar is not None:
            self._bar.reset(self._task, total=self.n_rows, description=f"pass {self._passes} over the rows")

    def stop(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()
            self._bar, self._passes, self._done = None, 0, 0
