"""A progress bar on standard error, if that is a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def progress_bar(*columns: Any, total: int | None = None, words: str = "") -> Iterator[Callable[..., None]]:
    """Show a bar with these columns of `rich.progress`; yield the function that updates it."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(words, total=total)
        yield lambda **changes: bar.update(task, **changes)
