"""Save an estimator to a file, load it, and tell what a file holds without building the model."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from riskbayes.exceptions import ModelFileError
from riskbayes.loaded import Loadable
from riskbayes.new_files import new_files
from riskbayes.persistence.archive import MODEL, opened, write
from riskbayes.persistence.hints import fits
from riskbayes.persistence.reader import Reader
from riskbayes.persistence.registry import with_own
from riskbayes.persistence.writer import Writer
from riskbayes.versions import versions


def save(
    estimator: Any,
    path: str | os.PathLike[str],
    about: Mapping[str, Any] | None = None,
    created: str | datetime.datetime | None = None,
    classes: Iterable[type] = (),
) -> Path:
    """Write an estimator to a model file; see `BaseClassifier.save`."""
    with new_files(path) as (file,):
        write_model(estimator, file, about, created, classes)
    return Path(path)


def write_model(
    estimator: Any,
    file: BinaryIO,
    about: Mapping[str, Any] | None = None,
    created: str | datetime.datetime | None = None,
    classes: Iterable[type] = (),
) -> None:
    """Write the bytes of a model file."""
    writer = Writer(with_own(classes))
    name = type(estimator).__name__
    model = writer.write(estimator, name)
    if model != {"object": len(writer.objects) - 1}:
        raise ModelFileError(f"{name} is no estimator of riskbayes.")
    described = {"class": name, "created": instant(created), "versions": versions()}
    described |= estimator._described() | {"about": plain_copy(about)}
    write(file, MODEL, {"metadata": described, "objects": writer.objects}, writer.arrays)


def load(path: str | os.PathLike[str], classes: Iterable[type] = ()) -> Any:
    """Return the estimator of a file that `save` wrote.

    Loading runs no code of the file: it holds numbers, strings and names of riskbayes' own classes, all of
    which are checked. A file that is damaged, of another kind, or of a newer format is refused. The hash in a
    file shows damage; it does not show who wrote the file, and a model of a stranger may predict anything.

    Parameters
    ----------
    path : path
        The file.
    classes : iterable of classes, default=()
        Model classes of your own that the file names, as they were passed to `save`.

    Returns
    -------
    estimator : object
        The fitted estimator.

    Examples
    --------
    >>> import tempfile
    >>> import riskbayes
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = riskbayes.GaussianNB().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = clf.save(f"{folder}/iris.rb")
    ...     again = riskbayes.load(path)
    >>> bool((again.predict_proba(X) == clf.predict_proba(X)).all())
    True
    """
    known = with_own(classes)
    with opened(Path(path)) as archive:
        found = Reader(archive.document, archive.arrays(), known, archive.size).value
        if not (isinstance(found, Loadable) and isinstance(found, ClassifierMixin)):
            raise ModelFileError(f"it holds a {type(found).__name__}, which is no estimator of riskbayes")
        check_is_fitted(found)
        if described_by(archive.document)["class"] != type(found).__name__:
            raise ModelFileError(f"it holds a {type(found).__name__}, and says that it holds another model")
    return found


def describe(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what a model file says of itself, without building the model or reading its arrays.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    description : dict
        `class`, `parameters`, `created` (UTC), `versions`, `n_features`, `feature_names`, `classes`, `rows`
        (the total weight of the training rows: their number if they had no weights), `about` (what the
        caller of `save` added), `format`, `size` in bytes and `sha256`.
    """
    with opened(Path(path)) as archive:
        found = described_by(archive.document)
        return {**found, "format": archive.document["format"], "size": archive.size, "sha256": archive.digest}


def described_by(document: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata of a file, with entries of the types that readers rely on."""
    found = document.get("metadata")
    if not isinstance(found, dict) or not all(fits(found.get(name), kind) for name, kind in ENTRIES.items()):
        raise ModelFileError("it does not describe itself as `save` does")
    return found


ENTRIES: dict[str, Any] = {
    "class": str,
    "created": str,
    "versions": dict[str, str],
    "parameters": dict[str, Any],
    "n_features": int,
    "feature_names": list[str] | None,
    "classes": list[Any],
    "rows": float,
    "about": dict[str, Any],
}
"""The entries of the metadata and their types."""


def instant(created: str | datetime.datetime | None) -> str:
    """Return a time as an ISO string in UTC; by default now."""
    if isinstance(created, str):
        created = datetime.datetime.fromisoformat(created)
    if created is None:
        created = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    if created.tzinfo is None:
        raise ValueError(f"created needs a time zone, such as '2026-01-31T12:00:00+00:00'; got {created}.")
    return created.astimezone(datetime.UTC).isoformat()


def plain_copy(about: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the caller's notes as JSON gives them back; refuse what JSON does not hold."""
    if about is None:
        return {}
    if not isinstance(about, Mapping):
        raise ModelFileError(f"about is a dict of plain values; got {type(about).__name__}.")
    try:
        return json.loads(json.dumps(dict(about), default=item_of, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ModelFileError(
            f"about must hold what JSON does, strings, numbers and lists: {error}."
        ) from None


def item_of(value: Any) -> Any:
    """Return a NumPy value as Python's, for JSON."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is none of them")
