"""Options that several commands have."""

from __future__ import annotations

import json
from typing import Any

import click

from riskbayes.markup import printable

AS_JSON: Any = click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
DATA: Any = click.argument("data", type=click.Path(), metavar="DATA")
FORCE: Any = click.option("--force", is_flag=True, help="Replace results of another table or target.")
MODEL: Any = click.argument("model", type=click.Path(dir_okay=False), metavar="MODEL")


def print_json(value: Any, to_stderr: bool = False) -> None:
    """Print a value as JSON in ASCII on one line; what JSON does not know is printed as text."""
    click.echo(json.dumps(value, default=plain), err=to_stderr)


def say(words: str, to_stderr: bool = False) -> None:
    """Print a line; what it holds of a file is shown and not obeyed."""
    click.echo(printable(words), err=to_stderr)


def plain(value: Any) -> Any:
    """Return a value of NumPy as one of Python; anything else as text."""
    return value.item() if hasattr(value, "item") else str(value)
