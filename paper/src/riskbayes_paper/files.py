"""Read the user's files. What is wrong with one is said in a sentence that names it."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from riskbayes.commands._paths import refuse_folder
from riskbayes.statistics import Array
from riskbayes_paper import ExperimentError


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Raise whatever goes wrong while `path` is read as an ExperimentError that names the file."""
    refuse_folder(path)
    try:
        yield
    except EOFError as error:
        problem = "is cut short: its compressed data end too early. Copy or download it again."
        raise ExperimentError(f"{path} {problem}") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        problem = f"cannot be read as gzip ({error}). Compress the table with gzip, or copy it again."
        raise ExperimentError(f"{path} {problem}") from error
    except UnicodeDecodeError as error:
        raise ExperimentError(f"{path} is no text in UTF-8. Save it as such.") from error
    except csv.Error as error:
        raise ExperimentError(f"{path} cannot be read as CSV ({error}). Save it as such.") from error
    except OSError as error:
        problem = f"({error.strerror or error}). Check that it is there and may be read."
        raise ExperimentError(f"Cannot read {path} {problem}") from error


def read_table(path: Path) -> tuple[Array, Array]:
    """Return features and labels of a `.csv.gz` file: a header, numeric columns, then `target`."""
    with reading(path), gzip.open(path, "rt", newline="", encoding="utf-8") as text:
        lines = csv.reader(text)
        rows = [(lines.line_num, cells) for cells in lines if cells]
    if problem := shape_problem(path, rows):
        raise ExperimentError(problem)
    (_, header), *rows = rows
    table = np.array([cells for _, cells in rows])
    try:
        X = table[:, :-1].astype(np.float64)
    except ValueError:
        X = np.array([[as_number(cell) for cell in row] for row in table[:, :-1]])
    if not np.isfinite(X).all():
        i, j = np.argwhere(~np.isfinite(X))[0]
        raise ExperimentError(
            f"{path}, line {rows[i][0]}, column {header[j]!r} has {str(table[i, j])!r}, which is no finite "
            "number. Correct that cell or take the line out."
        )
    refuse_bad_features(path, X, table[:, -1])
    return X, table[:, -1]


def shape_problem(path: Path, rows: list[tuple[int, list[str]]]) -> str:
    """Return what is wrong with a table's header, or with the number of its cells; empty if nothing is."""
    if not rows:
        return f"{path} is empty. It needs a header, numeric features, and a last column 'target'."
    (_, header), *rows = rows
    if header[-1] != "target":
        problem = f"The last column of {path} is {header[-1]!r}, not 'target'."
        return f"{problem} Move the labels to a last column of that name."
    if len(header) == 1:
        return f"{path} has no feature columns before 'target'. Add them."
    for line, cells in rows:
        if len(cells) != len(header):
            problem = f"{path}, line {line} has {len(cells)} cells, and the header has {len(header)}."
            return f"{problem} Correct that line or take it out."
    return "" if rows else f"{path} has a header and no rows. Add them."


def as_number(cell: str) -> float:
    """Return the number that a cell holds; nan where it holds none."""
    try:
        return float(cell)
    except ValueError:
        return np.nan


def read_arrays(path: Path) -> tuple[Array, Array, str]:
    """Return features, labels and the name of the network that made the features, from a `.npz` file.

    The features are the array `X`, or the bytes `q` times a `scale` for each column; the labels are `y`.
    `backbone` names the network; the files without it are SqueezeNet's.
    """
    with reading(path), path.open("rb") as file:  # np.load leaves a damaged one open
        try:
            stored = np.load(file)
            if isinstance(stored, np.ndarray):
                raise ValueError("one array, without a name")
            with stored:
                arrays = {key: stored[key] for key in stored}
        except OSError:
            raise
        except Exception as error:  # there are as many kinds as ways to damage a file
            raise ExperimentError(
                f"{path} cannot be read as arrays of NumPy. Copy it again, or write it with numpy.savez."
            ) from error
    for name in ("q", "scale", "y") if "q" in arrays else ("X", "y"):
        if name not in arrays:
            found = ", ".join(map(repr, arrays)) or "none"
            raise ExperimentError(
                f"{path} has no array {name!r} (it has {found}). It needs features 'X', or 'q' and 'scale', "
                "and labels 'y'."
            )
    X = arrays["X"] if "X" in arrays else arrays["q"] * arrays["scale"]
    refuse_bad_features(path, X, arrays["y"])
    return X.astype(np.float64), arrays["y"], str(arrays.get("backbone", "squeezenet"))


def refuse_bad_features(path: Path, X: Array, y: Array) -> None:
    """Raise an ExperimentError unless these are rows of finite numbers with labels of two classes or more."""
    if X.ndim != 2 or y.ndim != 1:
        problem = "The features need two dimensions (rows, columns) and the labels one"
    elif len(X) != len(y):
        problem = f"There are {len(X)} rows of features and {len(y)} labels"
    elif X.dtype.kind not in "biuf":
        problem = f"The features must be numbers, and are {X.dtype}"
    elif not np.isfinite(X).all():
        problem = "The features must be finite numbers, and some are not"
    elif len(classes := np.unique(y)) < 2:
        only = f", {classes[0].item()!r}" if len(classes) else ""
        problem = f"There must be two classes or more, and the labels have one class{only}"
    else:
        return
    raise ExperimentError(f"{path} cannot be used. {problem}. Correct it and write it again.")
