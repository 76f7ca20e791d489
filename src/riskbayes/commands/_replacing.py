"""What a command must not replace: a file that it reads, and the results of another table."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from fnmatch import fnmatch
from glob import has_magic
from pathlib import Path, PurePath
from typing import Any

from riskbayes.input.files import UserError

STREAM = "-"
"""Standard input or output."""


def refuse_inputs(outputs: Iterable[str | Path], *inputs: str) -> None:
    """Raise if an output is a file that is read, or would be one of the files of a folder or pattern."""
    for out in outputs:
        for data in inputs:
            if str(out) != STREAM and is_among(Path(out), data):
                files = "" if Path(data).is_file() or data == STREAM else f", one of the files of {data}"
                raise UserError(f"{out} is a file that is read{files}. Write to another one.")


def refuse_existing(out: str) -> None:
    """Raise if a file of predictions or drawn rows is there already: none says of which table it is."""
    if out != STREAM and Path(out).is_file():
        raise UserError(f"{out} is there already. Write to another place, or replace it with --force.")


def is_among(out: Path, data: str) -> bool:
    """True if writing a file would change what an input holds; links and hard links are followed."""
    from riskbayes.input.arrow import FORMATS, files_of

    if data == STREAM:
        with suppress(OSError):  # standard input may be no file of the system, or the output may be new
            return os.path.samestat(os.stat(out), os.fstat(sys.stdin.fileno()))
        return False
    if out.exists():
        return any(os.path.exists(file) and out.samefile(file) for file in files_of(data))
    new = PurePath(os.path.realpath(out))
    if os.path.isdir(data):
        return new.is_relative_to(os.path.realpath(data)) and new.suffix in FORMATS
    if os.path.exists(data) or not has_magic(data):
        return False
    pattern = os.path.realpath(data)
    return fnmatch(str(new), pattern.replace("**/", "*")) if "**" in pattern else new.match(pattern)


def refuse_other_results(data: str, target: str, model: Path, *pages: Path) -> None:
    """Raise if a model or a report that would be replaced is of another table, or does not say of which.

    A table is the same if its path is, whatever became of its rows, or if its bytes are.
    """
    there = [path for path in (model, *pages) if path.exists()]
    if not there:
        return
    digest, place, said = sha256(data), place_of(data), False
    hashes = [digest] if digest else []
    for path in there:
        if path == model:
            about = notes_of(path)
            same = about.get("sha256") in hashes or (place and about.get("path_sha256") == place)
            hashes.append(about.get("sha256") or "")  # a report beside it has it too, if the rows changed
        elif path.suffix == ".json":
            about = report_of(path)
            same = about.get("sha256") in hashes
        else:
            continue
        if not same or about.get("target") != target:
            raise other_table(path, about, data)
        said = True
    if not said:
        raise other_table(there[0], {}, data)


def other_table(path: Path, about: Mapping[str, Any], data: str) -> UserError:
    """Return the error for a file that must not be replaced in silence."""
    told = f"of {about.get('file')!r}, target {about.get('target')!r}" if about else "of no table"
    why = "standard input may be" if data == STREAM else "this is"
    return UserError(
        f"{path} is there already, {told}, and {why} another table or target. Write to another place, or "
        "replace it with --force."
    )


def notes_of(model: Path) -> Mapping[str, Any]:
    """Return what is stored about a model; nothing for a file that is none."""
    from riskbayes.persistence import describe

    try:
        return describe(model)["about"]
    except (ValueError, OSError):
        return {}


def report_of(path: Path) -> Mapping[str, Any]:
    """Return what a report says about its table; nothing for a file that is none."""
    try:
        found = json.loads(path.read_bytes())["data"]
        return {"file": found["name"], "target": found["target"], "sha256": found["sha256"]}
    except (ValueError, OSError, LookupError, TypeError, RecursionError):
        return {}


def place_of(data: str) -> str | None:
    """Return the hash of the path of a table, which does not tell the path; None for standard input."""
    return None if data == STREAM else hashlib.sha256(os.path.realpath(data).encode()).hexdigest()


def sha256(path: str) -> str | None:
    """Return the hash of a file; None for standard input and folders."""
    if not Path(path).is_file():
        return None
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
