"""Model files as commands read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from riskbayes.markup import printable

STORED: dict[str, Any] = {
    **dict.fromkeys(("file", "target", "model"), str),
    "rows": int,
    "classes": dict[str, int],
    "kinds": dict[str, str],
    "settings": dict[str, Any],
}
"""What commands read of the notes that `riskbayes fit` stores, with its types."""

FIGURES = ("rows", "error", "majority_error")
"""Figures on held-out rows that are always there, if there are any."""


def load_model(path: str) -> tuple[Any, dict[str, Any]]:
    """Return the classifier in a file, and what `riskbayes fit` stored about it, if it did."""
    import riskbayes
    from riskbayes.persistence import describe

    require_file(path)
    about = describe(path)["about"]
    return riskbayes.load(path), about if is_of_fit(about) else {}


def is_of_fit(about: dict[str, Any]) -> bool:
    """True if notes are those of `riskbayes fit`: whoever saves a model may write anything there."""
    from riskbayes.persistence.hints import fits

    lost = about.get("rows_without_target", 0)
    held = about.get("held_out") or dict.fromkeys(FIGURES, 0)
    known = all(fits(about.get(name), kind) for name, kind in STORED.items())
    return known and fits(lost, int) and fits(held, dict[str, float]) and set(FIGURES) <= held.keys()


def require_file(path: str) -> None:
    """Raise an error that suggests the nearest name if there is no such file."""
    from riskbayes.input.files.opening import missing_file

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
        table.add_row(Text(printable(name), "bold"), Text(printable(value)))
    console.print(table)
