"""Options that several commands have."""

from __future__ import annotations

import json
from typing import Any

import click
from click.shell_completion import CompletionItem


def columns_of_file(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Return the columns of the file on the command line that begin with what was typed, for a shell."""
    from riskbayes.reading import UserError
    from riskbayes.reading.blocks import CSV
    from riskbayes.reading.files import STDIN, is_arrow
    from riskbayes.reading.table import open_dataset

    # While an option lacks its value click leaves the arguments unread.
    path = context.params.get("data") or next(iter(context.args), None)
    if path is None or path == STDIN:
        return []
    try:
        if is_arrow(path):
            names = list(open_dataset(path).schema.names)
        else:
            with CSV(path) as file:
                names = list(file.dialect.names)
    except (UserError, ImportError):
        return []
    return [CompletionItem(name) for name in names if name.lower().startswith(begun.lower())]


AS_JSON: Any = click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
DATA: Any = click.argument("data", type=click.Path(), metavar="DATA")
MODEL: Any = click.argument("model", type=click.Path(dir_okay=False), metavar="MODEL")


def print_json(value: Any, to_stderr: bool = False) -> None:
    """Print a value as JSON on one line; what JSON does not know is printed as text."""
    click.echo(json.dumps(value, ensure_ascii=False, default=plain), err=to_stderr)


def plain(value: Any) -> Any:
    """Return a value of NumPy as one of Python; anything else as text."""
    return value.item() if hasattr(value, "item") else str(value)
