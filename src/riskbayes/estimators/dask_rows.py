"""Dask collections as an estimator reads them: what is learned from all partitions, and lazy predictions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from riskbayes.arrays import Array
from riskbayes.engines.block_work import joined_rows
from riskbayes.engines.dask import DaskEngine, computed, delayed, shared
from riskbayes.engines.memory import MemoryEngine
from riskbayes.estimators.checks import check_weights, class_codes, labels_like
from riskbayes.estimators.spooling import LabelCodes, class_weighted, smallest

LOOKED_AT = 2**14
"""Rows of the first partition from which the kinds of columns are learned."""

MOST_VALUES = 100_000
"""The most distinct values of a column that are sent to the driver."""

LEAST_CELLS = 2**20
"""Neighbouring partitions with fewer cells are merged: a task costs as much as a scan of so many."""


def is_dask(X: Any) -> bool:
    """True for a Dask collection; Dask is not imported to find out."""
    dask = sys.modules.get("dask")
    return dask is not None and dask.is_dask_collection(X)


def refuse_dask(clf: Any, X: Any) -> None:
    """Refuse a Dask collection where an array is needed."""
    if is_dask(X):
        raise TypeError(
            f"Only fit and predict* of {type(clf).__name__} take a Dask collection: pass one partition after "
            "another as arrays."
        )


def rows_of_dask(
    clf: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    reset: bool,
    learn: bool,
    new_classes: bool,
    suffix: str = "",
) -> DaskEngine:
    """Return an engine over the partitions of Dask collections; the arguments are those of `_rows`.

    What is learned are the classes, and the categories of all partitions; the kinds of the columns are those
    of the first rows.
    """
    if y is None:
        raise ValueError(f"{type(clf).__name__} requires y to be passed, but the target y is None.")
    parts = partitions(X, y, sample_weight, suffix)
    looks = computed(*(delayed(look_at)(*part, number) for number, part in enumerate(parts)))
    filled = [number for number, found in enumerate(looks) if found.n_rows]
    if not filled:
        raise ValueError(f"X{suffix} is empty: no partition has a row.")
    if reset:
        head = computed(delayed(first_rows)(parts[filled[0]][0]))[0]
        clf._encode(head, reset=True, learn=learn)
        clf._encode(catalogue([looks[i] for i in filled], head), reset=False, learn=learn)
    if new_classes:
        labels = LabelCodes()
        for i in filled:
            labels.codes(labels_like(clf, looks[i].labels, np.empty(0)))
        clf.classes_ = labels.sorted()[0]
    reader = copy(clf)
    for name in [name for name in vars(reader) if name.startswith(("_callback", "_skl"))]:
        delattr(reader, name)
    sent, task = shared(reader), delayed(read_partitions)
    groups = merged_partitions([looks[i] for i in filled])
    blocks = [task(sent, [list(parts[filled[i]]) for i in group], suffix) for group in groups]
    engine = DaskEngine(blocks, len(clf.classes_))
    return class_weighted(clf, engine, learn, suffix)


def partitions(X: Any, y: Any, w: Any, suffix: str) -> list[tuple[Any, Any, Any]]:
    """Return the partitions of the rows, their labels and weights as tasks; refuse what does not match."""
    rows = chunks_of(X)
    sizes = None if not hasattr(X, "chunks") else X.chunks[0]

    def beside(values: Any, name: str) -> list[Any]:
        if values is None:
            return [None] * len(rows)
        if not is_dask(values):
            raise TypeError(
                f"X{suffix} is a Dask collection and {name}{suffix} is not: make it one with the partitions "
                f"of X{suffix}, for instance by dask.array.from_array."
            )
        if (
            sizes is not None
            and hasattr(values, "chunks")
            and not np.isnan([*sizes, *values.chunks[0]]).any()
        ):
            if sum(sizes) != sum(values.chunks[0]):
                raise ValueError(
                    f"X{suffix} has {sum(sizes)} rows and {name}{suffix} has {sum(values.chunks[0])} entries."
                )
            values = values.rechunk({0: sizes})
        found = chunks_of(values)
        if len(found) != len(rows):
            raise ValueError(
                f"X{suffix} has {len(rows)} partitions and {name}{suffix} has {len(found)}: take both from "
                "one collection, or compute their chunk sizes first (compute_chunk_sizes)."
            )
        return found

    return list(zip(rows, beside(y, "y"), beside(w, "sample_weight"), strict=True))


def chunks_of(values: Any) -> list[Any]:
    """Return the partitions of a collection as tasks, each with all columns."""
    if hasattr(values, "rechunk") and values.ndim == 2:
        values = values.rechunk({1: -1})
    found = values.to_delayed()
    return list(found.ravel()) if isinstance(found, np.ndarray) else list(found)


class Look(NamedTuple):
    """What the driver sees of a partition: its size, its labels, and the values of its columns."""

    n_rows: int
    width: int
    labels: Array
    values: list[Array]
    """Distinct values of each column; the least and the largest if they are many numbers."""


def look_at(X: Any, y: Any, w: Any, number: int) -> Look:
    """Return what the driver needs of a partition; refuse one whose lengths differ."""
    labels = label_array(y)
    for what, values in (("y", labels), ("sample_weight", w)):
        if values is not None and len(values) != X.shape[0]:
            raise ValueError(
                f"Partition {number} of X has {X.shape[0]} rows and that of {what} has {len(values)} entries."
            )
    return Look(X.shape[0], X.shape[1], np.unique(labels), values_of(X))


def values_of(X: Any) -> list[Array]:
    """Return the distinct values of each column of a partition; of an array of floats its ends."""
    if isinstance(X, np.ndarray) and X.dtype.kind == "f" and X.size:
        ends = np.stack([np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)], axis=1)
        return [pair[~np.isnan(pair)] for pair in ends]
    return [distinct_values(column, name) for name, column in columns_of(X)]


def label_array(y: Any) -> Array:
    """Return a partition of labels as an array of one axis."""
    found = np.asarray(y)
    found = found[:, 0] if found.ndim == 2 and found.shape[1] == 1 else found
    words = found.dtype.kind in "OT" and all(isinstance(label, str) for label in found.tolist())
    return np.array(found.tolist(), dtype=object) if words else found


def columns_of(X: Any) -> list[tuple[Any, Any]]:
    """Return (name, values) of each column of an array or a data frame of pandas."""
    if hasattr(X, "columns"):
        return [(name, X[name]) for name in X.columns]
    return [(j, X[:, j]) for j in range(X.shape[1])]


def distinct_values(column: Any, name: Any) -> Array:
    """Return the distinct values of a column that are not missing, or the ends of many numbers."""
    values = column.dropna().to_numpy() if hasattr(column, "dropna") else np.asarray(column)
    if values.dtype.kind == "f":
        values = values[~np.isnan(values)]
    if values.dtype.kind == "f" and len(values):
        return np.array([values.min(), values.max()])
    if values.dtype.kind in "iub":
        found = np.unique(values)
        return found if len(found) <= MOST_VALUES else found[[0, -1]]
    found = np.array(list(dict.fromkeys(values.tolist())), dtype=object)
    if len(found) > MOST_VALUES:
        raise ValueError(
            f"Column {name!r} has more than {MOST_VALUES} distinct values in a partition. Drop it, or merge "
            "its rare values."
        )
    return found


def first_rows(X: Any) -> Any:
    """Return the first rows of a partition."""
    return X.iloc[:LOOKED_AT] if hasattr(X, "iloc") else X[:LOOKED_AT]


def catalogue(looks: list[Look], head: Any) -> Any:
    """Return a table like `head` in which each column has all its values, repeated to the same length."""
    columns = []
    for j in range(len(looks[0].values)):
        held = [look.values[j] for look in looks if len(look.values[j])]
        columns.append(list(dict.fromkeys(np.concatenate(held).tolist())) if held else [None])
    longest = max(map(len, columns))
    columns = [[*column, *column[-1:] * (longest - len(column))] for column in columns]
    if not hasattr(head, "columns"):
        table = np.empty((longest, len(columns)), dtype=head.dtype)
        for j, column in enumerate(columns):
            table[:, j] = np.nan if column[0] is None else column
        return table
    kinds = dict(head.dtypes)
    frame = type(head)(dict(zip(head.columns, columns, strict=True)))
    numbers = [name for name in head.columns if getattr(kinds[name], "kind", "O") in "iuf"]
    return frame.astype({name: "float64" if frame[name].hasnans else kinds[name] for name in numbers})


def merged_partitions(looks: list[Look]) -> list[list[int]]:
    """Return groups of neighbouring partitions of enough cells; they depend on nothing but sizes."""
    groups: list[list[int]] = [[]]
    cells = 0
    for number, look in enumerate(looks):
        if groups[-1] and cells + look.n_rows * look.width > LEAST_CELLS:
            groups.append([])
            cells = 0
        groups[-1].append(number)
        cells += look.n_rows * look.width
    return groups


def read_partitions(clf: Any, parts: list[list[Any]], suffix: str) -> MemoryEngine:
    """Return partitions as one block: rows as the estimator encodes them, labels as codes."""
    blocks = []
    for X, y, w in parts:
        rows = clf._encode(X, reset=False, learn=False)
        codes = class_codes(labels_like(clf, label_array(y), rows), clf.classes_, f"y{suffix}")
        weights = None if w is None else check_weights(np.asarray(w).ravel(), rows, f"sample_weight{suffix}")
        narrow = isinstance(rows, np.ndarray) and rows.dtype.kind in "iu"
        blocks.append((smallest(rows) if narrow else rows, codes, weights))
    return MemoryEngine(*joined_rows(blocks), len(clf.classes_))


ONE_VALUE = ("predict", "score_samples", "decide")
"""Methods that return one value a row."""


def lazily(clf: Any, method: Callable, X: Any, args: tuple, options: dict) -> Any:
    """Return the results of a method for all rows of a Dask collection, as a lazy Dask array."""
    name, r = method.__name__, len(clf.classes_)
    flat = name in ONE_VALUE or (name == "decision_function" and r == 2)
    dtype = clf.classes_.dtype if name in ("predict", "decide") else np.dtype(np.float64)
    if name not in ("predict", "decide") and getattr(X, "dtype", None) == np.float32:
        dtype = method(clf, np.zeros((1, X.shape[1]), dtype=np.float32), *args, **options).dtype
    meta = np.empty((0,) if flat else (0, r), dtype=dtype)
    given = {"clf": shared(clf), "method": name, "given": args, "options": options, "kind": dtype}
    if hasattr(X, "map_blocks"):
        X = X.rechunk({1: -1})
        shape = {"drop_axis": 1} if flat else {"chunks": (X.chunks[0], (r,))}
        return X.map_blocks(predicted, **given, **shape, meta=meta)
    return X.map_partitions(predicted, **given, meta=meta)


def predicted(X: Any, clf: Any, method: str, given: tuple, options: dict, kind: Any) -> Array:
    """Return the results of a method for one partition, which may be empty."""
    if not X.shape[0]:
        flat = method in ONE_VALUE or (method == "decision_function" and len(clf.classes_) == 2)
        return np.empty((0,) if flat else (0, len(clf.classes_)), dtype=kind)
    return getattr(clf, method)(X, *given, **options)
