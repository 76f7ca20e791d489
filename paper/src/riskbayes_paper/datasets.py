"""Data sets: the paper's 20, from a folder of files or from OpenML, and those that scikit-learn brings."""

from __future__ import annotations

import os
import socket
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple
from urllib.error import HTTPError, URLError

import numpy as np
from sklearn import datasets as bundled
from sklearn.datasets import fetch_openml

from riskbayes.statistics import Array
from riskbayes_paper import published
from riskbayes_paper.files import read_arrays, read_table

STAND_IN = "SqueezeNet stand-in"
"""What a set is called whose features are SqueezeNet's, where the paper has ResNet18's."""

BUNDLED = ("iris", "wine", "breast_cancer", "digits")
"""Sets that come with scikit-learn."""

PAPER_TABULAR = (
    *("iris", "sonar", "climate_model", "indian_liver", "vehicle", "german_numer", "splice", "qsar"),
    *("svmguide3", "redwine", "optdigits", "satellite", "pulsar", "magic", "adult_coded"),
)
"""The 15 tabular sets of the paper as the benchmarks read them, by the names of their files."""

TIMEOUT = 20.0
"""Seconds to wait for an answer of OpenML."""

Folder = str | os.PathLike | None
"""A folder of data sets; None: that of the variable RISKBAYES_DATA."""


class PaperSet(NamedTuple):
    """What the paper says about one of its data sets, and where to find it.

    Parameters
    ----------
    name : str
        The paper's name for it.
    m, n, classes : int
        Rows and features as the paper prints them, and the number of classes.
    files : tuple of str
        Names of its file in a folder of data sets; the first that is there is read.
    openml : int or None
        Its id at OpenML, not verified here.
    images : bool
        True if its features come from a network for images.
    origin, licence : str
        Where it comes from, and a note on its licence.
    """

    name: str
    m: int
    n: int
    classes: int
    files: tuple[str, ...]
    openml: int | None
    images: bool
    origin: str
    licence: str

    @classmethod
    def from_line(cls, line: dict[str, str]) -> PaperSet:
        """Return the set of one line of `published/sets.csv`."""
        images, openml = line["images"] == "yes", int(line["openml"]) if line["openml"] else None
        files = tuple(f"{stem}.{'npz' if images else 'csv.gz'}" for stem in line["files"].split())
        m, n, classes = (int(line[key]) for key in ("m", "n", "classes"))
        return cls(line["name"], m, n, classes, files, openml, images, line["origin"], line["licence"])


PAPER_SETS = {line["name"]: PaperSet.from_line(line) for line in published.read("sets")}
"""By name, in the paper's order; the paper's index is the place, from 1."""


class Missing(Exception):
    """A data set that cannot be had here; the message says what to do."""


class Unreachable(Missing):
    """The same, because OpenML cannot be reached: there is no use in asking it for the next set."""


class DataSet(NamedTuple):
    """A data set in memory.

    Parameters
    ----------
    X : array of float64
        Features.
    y : array of int
        Labels, coded from 0.
    source : str
        "folder", "OpenML" or "scikit-learn".
    stand_in : str
        What its features are, where they are not those of the paper; else empty.
    """

    X: Array
    y: Array
    source: str = "folder"
    stand_in: str = ""

    def cut(self, most: int) -> DataSet:
        """Return at most so many rows, drawn with a fixed seed, with the labels that are left coded anew."""
        if len(self.y) <= most:
            return self
        kept = np.random.default_rng(0).permutation(len(self.y))[:most]
        return self._replace(X=self.X[kept], y=codes(self.y[kept]))


def codes(labels: Array) -> Array:
    """Return labels as whole numbers from 0, in their order."""
    return np.unique(labels, return_inverse=True)[1]


def load(name: str, data_dir: Folder = None, online: bool = True) -> DataSet:
    """Return a set of the paper: from the folder, else from OpenML, else, without a folder, scikit-learn's.

    Raises `Missing` where none of the three has it. `online=False` does not ask OpenML, which is known to be
    out of reach.
    """
    path = find_file(name, data_dir)
    if path is not None:
        return load_file(path)
    paper, kind = PAPER_SETS[name], Missing
    failure = f"OpenML has no {name} in the paper's form"
    if paper.openml is not None:
        try:
            if not online:
                raise URLError("not asked again")
            return load_openml(paper.openml)
        except HTTPError as error:
            failure = f"OpenML answered {error.code} {error.reason}"
            error.close()
        except OSError as error:  # a URLError is one
            reason = error.reason if isinstance(error, URLError) else error
            said = getattr(reason, "strerror", None) or reason
            kind, failure = Unreachable, f"OpenML cannot be reached ({said})"
        except (ValueError, KeyError, TypeError, EOFError, HTTPException) as error:
            said = " ".join(str(error).split()) or type(error).__name__
            failure = f"what OpenML sent cannot be read ({said})"
            if "not found" in said:  # scikit-learn's words for its status 412
                failure = f"OpenML has no data set {paper.openml}"
    if name in BUNDLED and named_folder(data_dir) is None:
        return load_bundled(name)
    file = paper.files[0]
    how = f"put {file} into a folder and pass it as --data-dir"
    if paper.images:
        how += f", for instance from images by: riskbayes reproduce features IMAGES --out {file}"
    raise kind(f"{name}: {failure}; {how}.")


def available(sets: Iterable[str], data_dir: Folder = None) -> tuple[list[str], list[str]]:
    """Return the sets that can be had, and a sentence on each that cannot.

    Each is read once: a bad file is found before the first fit, and a set of OpenML is then on the disk.
    """
    here, missing, online = [], [], True
    for name in sets:
        try:
            load(name, data_dir, online)
            here.append(name)
        except Missing as error:
            missing.append(str(error))
            online = online and not isinstance(error, Unreachable)
    return here, missing


def named_folder(data_dir: Folder = None) -> Path | None:
    """Return the folder that the argument or RISKBAYES_DATA names, if one does; it must exist."""
    chosen = data_dir or os.environ.get("RISKBAYES_DATA")
    if chosen and not Path(chosen).is_dir():
        raise FileNotFoundError(f"The folder of data sets {str(chosen)!r} does not exist.")
    return Path(chosen) if chosen else None


def find_file(name: str, data_dir: Folder = None) -> Path | None:
    """Return the file of a set in the folder of data sets, if there is a folder and it has the set."""
    folder = named_folder(data_dir)
    paths = [folder / file for file in PAPER_SETS[name].files] if folder else []
    return next((path for path in paths if path.exists()), None)


def load_csv(name: str, data_dir: Folder = None) -> DataSet:
    """Return the table `<name>.csv.gz` of the folder of data sets, which must be there."""
    return load_file(existing_file(f"{name}.csv.gz", data_dir))


def load_npz(name: str, data_dir: Folder = None) -> DataSet:
    """Return the features `<name>.npz` of the folder of data sets, which must be there."""
    return load_file(existing_file(f"{name}.npz", data_dir))


def existing_file(file: str, data_dir: Folder) -> Path:
    """Return the path of a file in the folder of data sets, or raise a FileNotFoundError."""
    folder = named_folder(data_dir)
    if folder is None:
        raise FileNotFoundError(
            "No folder of data sets is known: pass --data-dir, or set RISKBAYES_DATA to a folder of "
            "<name>.csv.gz files whose last column is 'target'."
        )
    if not (folder / file).exists():
        raise FileNotFoundError(f"There is no {file} in {str(folder)!r}.")
    return folder / file


def load_file(path: Path) -> DataSet:
    """Return the set of a `.csv.gz` or a `.npz` file."""
    if path.suffix == ".gz":
        X, labels = read_table(path)
        return DataSet(X, codes(labels))
    X, labels, network = read_arrays(path)
    stand_in = {"resnet18": "", "squeezenet": STAND_IN}.get(network, f"{network} stand-in")
    return DataSet(X, codes(labels), "folder", stand_in)


def load_bundled(name: str) -> DataSet:
    """Return a set that comes with scikit-learn."""
    if name not in BUNDLED:
        raise ValueError(f"{name!r} is not one of the bundled data sets: {', '.join(BUNDLED)}.")
    X, y = getattr(bundled, f"load_{name}")(return_X_y=True)
    return DataSet(X, y, "scikit-learn")


def load_openml(data_id: int) -> DataSet:
    """Return a set of OpenML, kept on disk by scikit-learn; a missing category is a category of its own."""
    with impatient():
        found = fetch_openml(data_id=data_id, as_frame=False, parser="liac-arff", n_retries=1)
    X = np.array(found.data, dtype=np.float64)
    for j, name in enumerate(found.feature_names):
        if name in (found.categories or {}):
            X[np.isnan(X[:, j]), j] = len(found.categories[name])
    complete = ~np.isnan(X).any(axis=1)
    return DataSet(X[complete], codes(found.target[complete]), "OpenML")


@contextmanager
def impatient() -> Iterator[None]:
    """Wait for an answer of the network no longer than `TIMEOUT`; do not warn of what is tried again."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(TIMEOUT)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "A network error occurred|Invalid cache")
            yield
    finally:
        socket.setdefaulttimeout(before)
