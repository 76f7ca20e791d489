"""The paper's 20 data sets: what they are, and where to get them."""

from __future__ import annotations

import os
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple
from urllib.error import HTTPError, URLError

import numpy as np
from sklearn.datasets import fetch_openml

from riskbayes.experiments.datasets import (
    BUNDLED,
    data_folder,
    load_bundled,
    load_csv,
    read_arrays,
    refuse_bad_features,
)
from riskbayes.statistics import Array

STAND_IN = "SqueezeNet stand-in"
"""What a set is called whose features are SqueezeNet's, where the paper has ResNet18's."""

UCI = "UCI: CC BY 4.0 (not verified here)"
LIBSVM = "LIBSVM: none stated (not verified here)"
OWNERS = "see the owners of the images"


@dataclass(frozen=True)
class PaperSet:
    """A data set of the paper.

    Parameters
    ----------
    name : str
        The paper's name for it.
    m, n, classes : int
        Rows and features as the paper prints them, and the number of classes.
    origin : str
        Where it comes from.
    licence : str
        A note on its licence.
    files : tuple of str
        Names of its file in a folder of data sets, without the ending; the first that is there is taken.
    openml : int or None
        Its id at OpenML, not verified here.
    images : bool
        Whether its features come from a network for images.
    """

    name: str
    m: int
    n: int
    classes: int
    origin: str
    licence: str
    files: tuple[str, ...]
    openml: int | None = None
    images: bool = False


def table(
    name: str, m: int, n: int, r: int, origin: str, licence: str, file: str = "", openml: int = 0
) -> PaperSet:
    """A tabular set; its plain name is a second choice where the file has another one."""
    return PaperSet(name, m, n, r, origin, licence, (file, name) if file else (name,), openml or None)


def images(name: str, m: int, r: int, origin: str, licence: str = OWNERS) -> PaperSet:
    """A set of 512 image features."""
    return PaperSet(name, m, 512, r, origin, licence, (name,), images=True)


PAPER_SETS: dict[str, PaperSet] = {
    s.name: s
    for s in (
        table("iris", 150, 4, 3, "UCI iris", UCI, openml=61),
        table("sonar", 207, 60, 2, "LIBSVM sonar_scale, from UCI sonar", UCI, "sonar_207_scaled", 40),
        table("climate_model", 360, 18, 2, "UCI climate model simulation crashes", UCI, openml=1467),
        table("indian_liver", 579, 10, 2, "UCI ILPD", UCI, openml=1480),
        table("vehicle", 846, 18, 4, "UCI Statlog vehicle", UCI, openml=54),
        table("german_numer", 1000, 24, 2, "LIBSVM german.numer, from UCI Statlog german", LIBSVM),
        table("splice", 1000, 60, 2, "LIBSVM splice, from UCI splice", LIBSVM),
        table("qsar", 1055, 41, 2, "UCI QSAR biodegradation", UCI, openml=1494),
        table("svmguide3", 1243, 21, 2, "LIBSVM svmguide3", LIBSVM, openml=1589),
        table("redwine", 1599, 11, 6, "UCI wine quality, red", UCI, openml=40691),
        table("optdigits", 5620, 62, 10, "UCI optical digits", UCI, openml=28),
        table("satellite", 6435, 36, 6, "UCI Statlog Landsat", UCI, openml=182),
        table("pulsar", 17898, 8, 2, "UCI HTRU2", UCI),
        table("magic", 19020, 10, 2, "UCI MAGIC gamma telescope", UCI, openml=1120),
        images("catsvsdogs", 23262, 2, "Asirra cats and dogs"),
        images("yearbook", 37921, 2, "yearbook portraits"),
        table("adult", 48842, 14, 2, "UCI adult, categories as integers", UCI, "adult_coded", 1590),
        images("cifar10", 60000, 10, "CIFAR-10"),
        images("fashion_mnist", 70000, 10, "Fashion-MNIST", "MIT"),
        images("mnist", 70000, 10, "MNIST"),
    )
}
"""By name, in the paper's order; the paper's index is the place, from 1."""


TIMEOUT = 20.0
"""Seconds to wait for an answer of OpenML."""


class Missing(Exception):
    """A data set that cannot be had here; the message says what to do."""


class Unreachable(Missing):
    """The same, because OpenML cannot be reached: there is no use in asking it for the next set."""


class Loaded(NamedTuple):
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
    source: str
    stand_in: str = ""


def named_folder(data_dir: str | os.PathLike | None = None) -> Path | None:
    """Return the folder that the argument or RISKBAYES_DATA names, if one does; it must exist."""
    return data_folder(data_dir) if data_dir or os.environ.get("RISKBAYES_DATA") else None


def file_name(paper: PaperSet, stem: str = "") -> str:
    """Return the name of a set's file in a folder of data sets."""
    return (stem or paper.files[0]) + (".npz" if paper.images else ".csv.gz")


def find_file(name: str, data_dir: str | os.PathLike | None = None) -> Path | None:
    """The file of a set in the folder of data sets, if there is a folder and it has the set."""
    folder, paper = named_folder(data_dir), PAPER_SETS[name]
    if folder is None:
        return None
    candidates = (folder / file_name(paper, stem) for stem in paper.files)
    return next((path for path in candidates if path.exists()), None)


def load(name: str, data_dir: str | os.PathLike | None = None, online: bool = True) -> Loaded:
    """A set from the folder of data sets, else from OpenML; where no folder is named, else from scikit-learn.

    Parameters
    ----------
    name : str
        A name of `PAPER_SETS`.
    data_dir : path, default=None
        The folder; by default that of the variable RISKBAYES_DATA.
    online : bool, default=True
        False does not ask OpenML, which is known to be out of reach.

    Returns
    -------
    loaded : Loaded
        Features and labels. Raises `Missing` where none of the three has it.
    """
    path = find_file(name, data_dir)
    if path is not None:
        return load_features(path) if path.suffix == ".npz" else load_table(path)
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
        data = load_bundled(name)
        return Loaded(data.X, data.y, "scikit-learn")
    file = file_name(paper)
    how = f"put {file} into a folder and pass it as --data-dir"
    if paper.images:
        how += f", for instance from images by: riskbayes reproduce features IMAGES --out {file}"
    raise kind(f"{name}: {failure}; {how}.")


def load_table(path: Path) -> Loaded:
    """A `<name>.csv.gz` file."""
    data = load_csv(path.name.removesuffix(".csv.gz"), path.parent)
    return Loaded(data.X, codes(data.y), "folder")


def load_features(path: Path) -> Loaded:
    """A `<name>.npz` file: `X`, or `q` times `scale`; `y`; `backbone` says which network made it."""
    file = read_arrays(path)
    X = file["X"] if "X" in file else file["q"] * file["scale"]
    refuse_bad_features(path, X, file["y"])
    backbone = str(file["backbone"]) if "backbone" in file else "squeezenet"
    stand_in = {"resnet18": "", "squeezenet": STAND_IN}.get(backbone, f"{backbone} stand-in")
    return Loaded(X.astype(np.float64), codes(file["y"]), "folder", stand_in)


def load_openml(data_id: int) -> Loaded:
    """A set of OpenML, kept on disk by scikit-learn; a missing category is a category of its own."""
    with impatient():
        found = fetch_openml(data_id=data_id, as_frame=False, parser="liac-arff", n_retries=1)
    X = np.array(found.data, dtype=np.float64)
    for j, name in enumerate(found.feature_names):
        if name in (found.categories or {}):
            X[np.isnan(X[:, j]), j] = len(found.categories[name])
    complete = ~np.isnan(X).any(axis=1)
    return Loaded(X[complete], codes(found.target[complete]), "OpenML")


@contextmanager
def impatient() -> Iterator[None]:
    """Wait for an answer of the network no longer than `TIMEOUT`, and say nothing of what is tried again."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(TIMEOUT)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "A network error occurred|Invalid cache")
            yield
    finally:
        socket.setdefaulttimeout(before)


def codes(labels: Array) -> Array:
    """Labels as whole numbers from 0, in their order."""
    return np.unique(labels, return_inverse=True)[1]
