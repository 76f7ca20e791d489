"""Paths that commands take, and folders that they write to."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from riskbayes.input.files import UserError

NEW_FOLDER = click.Path(path_type=Path, file_okay=False)
NEW_FILE = click.Path(path_type=Path, dir_okay=False)


def check_folder(folder: Path, *names: str) -> None:
    """Raise if files cannot be written there, or one of `names` is a folder; it may still be to be made.

    Nothing is left behind: a command makes the folder when it has something to write.
    """
    for name in names:
        refuse_folder(folder / name)
    try:
        there = next(each for each in (folder, *folder.absolute().parents) if each.exists())
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        error.filename = str(folder)  # the user did not name the temporary file
        raise


def refuse_folder(path: Path) -> None:
    """Raise a UserError where a folder stands in the place of a file."""
    if path.is_dir():
        raise UserError(f"{path} is a folder, where a file is needed. Move it away or rename it.")
