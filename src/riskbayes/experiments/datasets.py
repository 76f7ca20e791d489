"""Data sets: scikit-learn's bundled ones, and a folder of `<name>.csv.gz` and `<name>.npz` files."""

from __future__ import annotations

import csv
import gzip
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn import datasets as bundled

from riskbayes.experiments import ExperimentError
from riskbayes.experiments.files import reading
from riskbayes.statistics import Array

BUNDLED = ("iris", "wine", "breast_cancer", "digits")
"""Sets that come with scikit-learn."""

PAPER_TABULAR = (
    *("iris", "sonar", "climate_model", "indian_liver", "vehicle", "german_numer", "splice", "qsar"),
    *("svmguide3", "redwine", "optdigits", "satellite", "pulsar", "magic", "adult_coded"),
)
"""The 15 tabular sets of the paper, by the names of their files."""


class DataSet(NamedTuple):
    """Features and labels."""

    name: str
    X: Array
    y: Array

    def cut(self, most: int) -> DataSet:
        """At most so many rows, drawn by a fixed seed."""
        if len(self.y) <= most:
            return self
        kept = np.random.default_rng(0).permutation(len(self.y))[:most]
        return DataSet(self.name, self.X[kept], self.y[kept])


def load_bundled(name: str) -> DataSet:
    """A set that comes with scikit-learn."""
    if name not in BUNDLED:
        raise ValueError(f"{name!r} is not one of the bundled data sets: {', '.join(BUNDLED)}.")
    X, y = getattr(bundled, f"load_{name}")(return_X_y=True)
    return DataSet(name, X, y)


def data_folder(folder: str | os.PathLike | None = None) -> Path:
    """The folder given, or that of the variable RISKBAYES_DATA."""
    chosen = folder or os.environ.get("RISKBAYES_DATA")
    if not chosen:
        raise FileNotFoundError(
            "No folder of data sets is known: pass --data-dir, or set RISKBAYES_DATA to a folder of "
            "<name>.csv.gz files whose last column is 'target'."
        )
    if not Path(chosen).is_dir():
        raise FileNotFoundError(f"The folder of data sets {str(chosen)!r} does not exist.")
    return Path(chosen)


def data_file(name: str, folder: str | os.PathLike | None = None) -> Path:
    """A file of that folder, which must be there."""
    path = data_folder(folder) / name
    if not path.exists():
        raise FileNotFoundError(f"There is no {path.name} in {str(path.parent)!r}.")
    return path


def load_npz(name: str, folder: str | os.PathLike | None = None) -> DataSet:
    """The set `<folder>/<name>.npz`: features `X`, or bytes `q` times a `scale` a column; labels `y`."""
    path = data_file(f"{name}.npz", folder)
    stored = read_arrays(path)
    X = stored["X"] if "X" in stored else stored["q"] * stored["scale"].astype(np.float64)
    refuse_bad_features(path, X, stored["y"])
    return DataSet(name, X, stored["y"])


def read_arrays(path: Path) -> dict[str, Array]:
    """Return every array of a `.npz` file; it must have features, `X` or `q` and `scale`, and labels `y`."""
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
    return arrays


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


def load_csv(name: str, folder: str | os.PathLike | None = None) -> DataSet:
    """The set `<folder>/<name>.csv.gz`: a header, numeric features, then `target`."""
    path = data_file(f"{name}.csv.gz", folder)
    with reading(path), gzip.open(path, "rt", newline="", encoding="utf-8") as text:
        lines = csv.reader(text)
        rows = [(lines.line_num, cells) for cells in lines if cells]
    if not rows:
        raise ExperimentError(
            f"{path} is empty. It needs a header, numeric features, and a last column 'target'."
        )
    (_, header), *rows = rows
    if header[-1] != "target":
        raise ExperimentError(
            f"The last column of {path} is {header[-1]!r}, not 'target'. Move the labels to a last column of "
            "that name."
        )
    if len(header) == 1:
        raise ExperimentError(f"{path} has no feature columns before 'target'. Add them.")
    if not rows:
        raise ExperimentError(f"{path} has a header and no rows. Add them.")
    for line, cells in rows:
        if len(cells) != len(header):
            raise ExperimentError(
                f"{path}, line {line} has {len(cells)} cells, and the header has {len(header)}. Correct that "
                "line or take it out."
            )
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
    return DataSet(name, X, table[:, -1])


def as_number(cell: str) -> float:
    """Return the number that a cell holds; nan where it holds none."""
    try:
        return float(cell)
    except ValueError:
        return np.nan
