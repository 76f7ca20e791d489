"""What a shell completes: columns of the file on the command line, quoted."""

from __future__ import annotations

import shlex
from typing import Any

import click
from click.shell_completion import BashComplete, CompletionItem, add_completion_class

from riskbayes.markup import printable


@add_completion_class
class QuotedBash(BashComplete):
    """Completion for bash, which puts a word into the command line as it is: others quote it themselves."""

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """Return a line for click's script, whose `read` takes backslashes away."""
        if item.type != "plain":
            return super().format_completion(item)
        return f"plain,{shlex.quote(item.value)}".replace("\\", "\\\\")


def columns_of_file(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Return the columns of the file on the command line that begin with what was typed, for a shell."""
    from riskbayes.input.files import UserError
    from riskbayes.input.files.blocks import CSV
    from riskbayes.input.files.opening import STDIN, is_arrow
    from riskbayes.input.files.table import open_dataset

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
    begins = [name for name in names if name.lower().startswith(begun.lower())]
    return [CompletionItem(name) for name in begins if name == printable(name)]
