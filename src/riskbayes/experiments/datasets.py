"""Data sets: scikit-learn's bundled ones, and a folder of `<name>.csv.gz` and `<name>.npz` files."""

from __future__ import annotations

import csv
import gzip
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn import datasets as bundled

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
    """The set `<folder>/<name>.npz`: features as bytes `q` times a `scale` a column, labels `y`."""
    with np.load(data_file(f"{name}.npz", folder)) as stored:
        return DataSet(name, stored["q"] * stored["scale"].astype(np.float64), stored["y"])


def load_csv(name: str, folder: str | os.PathLike | None = None) -> DataSet:
    """The set `<folder>/<name>.csv.gz`: a header, numeric features, then `target`."""
    path = data_file(f"{name}.csv.gz", folder)
    with gzip.open(path, "rt", newline="") as lines:
        header, *rows = csv.reader(lines)
    if header[-1] != "target":
        raise ValueError(f"The last column of {path.name} must be 'target', not {header[-1]!r}.")
    table = np.array(rows)
    try:
        X = table[:, :-1].astype(np.float64)
    except ValueError as error:
        raise ValueError(f"{path.name} has features that are no numbers: {error}.") from None
    return DataSet(name, X, table[:, -1])
