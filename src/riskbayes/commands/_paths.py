"""Paths that commands take, and folders that they write to."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

FORMATS = (".svg", ".png", ".pdf")
FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)
NEW_FOLDER = click.Path(path_type=Path, file_okay=False)
NEW_FILE = click.Path(path_type=Path, dir_okay=False)


def check_folder(folder: Path, *names: str) -> None:
    """Create the folder; raise if files cannot be written there, or one of `names` is a folder."""
    from riskbayes.experiments.files import refuse_folder

    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        refuse_folder(folder / name)
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        error.filename = str(folder)  # the user did not name the temporary file
        raise


def figure_path(out: Path, name: str) -> Path:
    """Return the file to write for `--out`: itself, or `name` in it if it is a folder."""
    if out.is_dir() or not out.suffix:
        return out / name
    if out.suffix.lower() not in FORMATS:
        raise click.ClickException(f"Cannot write a figure as {out.name}: use one of {', '.join(FORMATS)}.")
    return out
