"""Model files as commands read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def load_model(path: str) -> tuple[Any, dict[str, Any]]:
    """Return the classifier in a file, and what was stored about it."""
    import riskbayes
    from riskbayes.saving import describe

    require_file(path)
    about = describe(path).get("about") or {}
    return riskbayes.load(path), dict(about)


def require_file(path: str) -> None:
    """Raise an error that suggests the nearest name if there is no such file."""
    from riskbayes.reading.files import missing_file

    if not Path(path).exists():
        raise missing_file(Path(path))


def show_pairs(pairs: list[tuple[str, Any]]) -> None:
    """Print names and values below each other; cut nothing."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        table.add_row(Text(name, "bold"), Text(str(value)))
    console.print(table)
