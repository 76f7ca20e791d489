"""Options that several commands have."""

from __future__ import annotations

import codecs
import functools
import json
from collections.abc import Callable, Iterable
from typing import Any

import click

from riskbayes.commands._completion import columns_of_file
from riskbayes.markup import printable

AS_JSON: Any = click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
DATA: Any = click.argument("data", type=click.Path(), metavar="DATA")
FORCE: Any = click.option("--force", is_flag=True, help="Replace results of another table or target.")
FORCE_FILE: Any = click.option("--force", is_flag=True, help="Replace a file that is there.")
MODEL: Any = click.argument("model", type=click.Path(dir_okay=False), metavar="MODEL")
OUT: Any = click.option(
    "-o",
    "--out",
    type=click.Path(dir_okay=False),
    default="-",
    show_default=True,
    help="File: .csv, .tsv or .parquet; - for CSV on standard output.",
)


def as_kind(value: str) -> tuple[str, str]:
    """Return COLUMN=KIND as a pair; the name of the column may hold the sign too."""
    from riskbayes.input.files.options import KINDS

    column, sign, kind = value.rpartition("=")
    if not sign or kind not in KINDS:
        raise click.BadParameter(f"{value!r} is not COLUMN=KIND with one of {', '.join(KINDS)}.")
    return column, kind


def as_sign(value: str) -> str:
    """Return the one character that is meant; some have names."""
    found = {"tab": "\t", "\\t": "\t", "semicolon": ";", "comma": ",", "pipe": "|"}.get(value, value)
    if len(found) != 1 or not found.isascii() or found in '"\r\n':
        raise click.BadParameter(f"{value!r} is no delimiter. Name one character, or tab.")
    return found


def as_encoding(value: str) -> str:
    """Return the name of an encoding as Python knows it."""
    try:
        return codecs.lookup(value).name
    except LookupError:
        raise click.BadParameter(
            f"{value!r} is no encoding that is known. Try utf-8, cp1252 or utf-16."
        ) from None


def reading_options(kinds: bool) -> Callable[[Callable], Callable]:
    """Return a decorator: options on how a file is written, which the command gets as `options`.

    With `kinds` also those on what columns hold; a fitted model knows that.
    """
    shared = [
        click.option(
            "--header/--no-header", default=None, help="Whether the first row of a CSV is a header."
        ),
        click.option("--delimiter", type=as_sign, metavar="SIGN", help="Between the cells of a CSV."),
        click.option("--encoding", type=as_encoding, metavar="NAME", help="Of a CSV."),
        click.option("--decimal", type=click.Choice((".", ",")), help="The decimal sign of a CSV."),
        click.option(
            "--date-order", type=click.Choice(("ymd", "dmy", "mdy")), help="Of day, month and year in a CSV."
        ),
    ]
    what = "number, category or date; text, id and drop leave it out"
    of_columns = [
        click.option(
            "--kind",
            "kinds",
            type=as_kind,
            multiple=True,
            metavar="COLUMN=KIND",
            help=f"What it holds: {what}.",
        ),
        click.option(
            "--drop", multiple=True, shell_complete=columns_of_file, help="A column to leave out; repeatable."
        ),
    ]

    def decorate(command: Callable) -> Callable:
        @functools.wraps(command)
        def with_options(*args: Any, **given: Any) -> Any:
            from riskbayes.input.files.options import Options

            said = {
                name: given.pop(name) for name in ("header", "delimiter", "encoding", "decimal", "date_order")
            }
            said["kinds"] = dict(given.pop("kinds", ())) | dict.fromkeys(given.pop("drop", ()), "drop")
            return command(*args, **given, options=Options(**said))

        for option in reversed([*of_columns, *shared] if kinds else shared):
            with_options = option(with_options)
        return with_options

    return decorate


def show_findings(findings: Iterable[Any]) -> None:
    """Print what was found while a file was read, on the standard error."""
    for finding in findings:
        say(str(finding), to_stderr=True)


def print_json(value: Any, to_stderr: bool = False) -> None:
    """Print a value as JSON in ASCII on one line; what JSON does not know is printed as text."""
    click.echo(json.dumps(value, default=plain), err=to_stderr)


def say(words: str, to_stderr: bool = False) -> None:
    """Print a line; what it holds of a file is shown and not obeyed."""
    click.echo(printable(words), err=to_stderr)


def plain(value: Any) -> Any:
    """Return a value of NumPy as one of Python; anything else as text."""
    return value.item() if hasattr(value, "item") else str(value)
