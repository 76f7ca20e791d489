"""Errors of commands as messages, without a traceback."""

from __future__ import annotations

import traceback
from pathlib import Path

import click

from riskbayes.input.files import UserError
from riskbayes.markup import printable

OURS = str(Path(__file__).parents[1])
"""The folder of this package."""


class BadInput(click.ClickException):
    """An error that click prints in one line, with the exit status of wrong usage."""

    exit_code = 2


def as_sentence(error: BaseException) -> click.ClickException:
    """Return the error that click prints in a line: status 2 for a user's mistake, 1 for anything else."""
    text = printable(" ".join(str(error).split()))
    match error:
        case UserError():
            return BadInput(text)
        case OSError() if error.strerror is None:  # raised by us, with a full message
            return BadInput(text)
        case OSError():
            where = printable(error.filename or "the file")  # the error for a full disk has no file name
            return click.ClickException(f"Cannot write to {where}: {error.strerror}.")
        case ImportError() if (error.name or "").partition(".")[0] == "pyarrow":
            return click.ClickException('This needs pyarrow: pip install "riskbayes[cli]"')
        case ImportError():
            return click.ClickException(text)
        case MemoryError():
            return BadInput("There is not enough memory for this table. Use fewer rows or columns.")
        case ValueError() | TypeError() | NotImplementedError() | AttributeError() if is_explained(error):
            return BadInput(text)
    what = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return click.ClickException(f"This should not happen ({what}). Run it again with --debug, and report it.")


def is_explained(error: BaseException) -> bool:
    """True if this package or scikit-learn's validation raised the error, with a sentence for the user."""
    frames = traceback.extract_tb(error.__traceback__)
    place = frames[-1].filename if frames else ""
    return place.startswith(OURS) or "/sklearn/" in place.replace("\\", "/")


def interrupted(error: BaseException) -> bool:
    """True if Ctrl-C is the cause of an error.

    An interrupt during the import of a compiled module is raised as an ImportError caused by it.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, KeyboardInterrupt):
            return True
        cause = cause.__cause__ or cause.__context__
    return False
