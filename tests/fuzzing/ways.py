"""The same rows by every way in: an array or a data frame, batches, a stream, a source of one's own, Dask."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset

import riskbayes
from riskbayes.input.batch import RowBatch
from riskbayes.input.source import Source

METHODS = ("predict_proba", "predict_log_proba", "predict", "decision_function", "score_samples")
"""Methods whose answers are compared."""

TOLERANCE = 1e-7
"""Sums over blocks are rounded in another order."""


@dataclass
class Table:
    """Random rows with labels and weights."""

    X: Any
    y: np.ndarray
    w: np.ndarray | None
    numbers: bool

    def part(self, start: int, stop: int) -> tuple:
        """Return some of the rows, as a batch."""
        X = self.X[start:stop] if isinstance(self.X, np.ndarray) else self.X.iloc[start:stop]
        w = None if self.w is None else self.w[start:stop]
        return X, self.y[start:stop], w

    def batches(self, cuts: list[int]) -> list[tuple]:
        """Return all rows in batches."""
        return [self.part(a, b) for a, b in pairwise(cuts) if a < b]


class OwnSource(Source):
    """A source of a user's own: one class with one method."""

    def __init__(self, batches: list[tuple]):
        self.own = batches

    def batches(self) -> Iterator[RowBatch]:
        """Yield the batches."""
        yield from (RowBatch(*batch) for batch in self.own)


def random_table(rng: np.random.Generator, numbers: bool, codes: bool = False) -> Table:
    """Return a random table, many of whose columns begin otherwise than they go on."""
    m, r = int(rng.integers(24, 90)), int(rng.integers(2, 4))
    codes_y = rng.permutation(np.arange(m) % r)
    begin = int(rng.integers(1, m // 2))
    columns: dict[str, Any] = {}
    for j in range(int(rng.integers(1, 6))):
        kind = rng.choice(
            ["number", "whole"]
            if numbers
            else ["code", "word", "flag", "negative"]
            if codes
            else ["number", "whole", "word", "date", "flag", "id", "category"]
        )
        columns[f"c{j}"] = random_column(rng, str(kind), m, codes_y, begin)
    X: Any = pd.DataFrame(columns)
    if numbers and rng.random() < 0.6:
        X = X.to_numpy(dtype=rng.choice([np.float32, np.float64]))
    y = codes_y if rng.random() < 0.5 else np.array(["no", "yes", "maybe"])[codes_y]
    w = None if rng.random() < 0.6 else rng.integers(0, 3, m).astype(float)
    return Table(X, y, w, numbers)


def random_column(rng: np.random.Generator, kind: str, m: int, y: np.ndarray, begin: int) -> pd.Series:
    """Return a column whose beginning may be constant, missing or complete, unlike the rest."""
    if kind == "number":
        values: Any = (rng.standard_normal(m) + y).round(3).astype(object)
    elif kind in ("whole", "code"):
        values = (rng.integers(0, 5, m) + y).astype(object)
    elif kind == "negative":
        values = (rng.integers(-3, 3, m) + y).astype(object)
    elif kind == "flag":
        values = (rng.random(m) < 0.3 + 0.4 * (y == 0)).astype(object)
    elif kind == "date":
        days = rng.integers(0, 400, m) + 100 * y
        values = np.array([str(np.datetime64("2024-01-01") + int(d)) for d in days], dtype=object)
        if rng.random() < 0.3:
            values[-1] = "never"
    elif kind == "id":
        values = np.array([f"id{i}" for i in rng.permutation(m)], dtype=object)
        values[begin:] = values[begin]  # distinct at the beginning only
    else:
        values = np.array(list("abcdef"), dtype=object)[(rng.integers(0, 4, m) + y) % 6]
    start = rng.random()
    if start < 0.2:
        values[:begin] = values[0]
    elif start < 0.3 and kind not in ("flag",):
        values[:begin] = None
    if rng.random() < 0.4:
        holes = rng.random(m) < 0.3
        holes[:begin] &= rng.random() < 0.5
        values[holes] = None
    if values[np.array([v is None for v in values])].size == m:
        values[0] = "a" if kind in ("word", "category", "id") else 1
    if kind in ("number", "whole", "code", "negative"):
        return pd.Series(values.astype(float))
    if kind == "category":
        return pd.Series(pd.Categorical(values, categories=list("abcdef")))
    return pd.Series(values, dtype=object)


def random_estimator(rng: np.random.Generator) -> tuple[Any, dict]:
    """Return an estimator, and which table it reads."""
    learner = str(rng.choice(["closed_form", "rc"]))
    tables = [
        riskbayes.RiskBayesClassifier(missing=str(rng.choice(["informative", "ignore"]))),
        riskbayes.MixedNB(missing=str(rng.choice(["informative", "ignore"])), learner=learner),
        riskbayes.MixedNB(numeric="gaussian", learner=learner),
    ]
    numbers = [
        riskbayes.GaussianNB(learner=learner),
        riskbayes.SmoothNB(learner=learner),
        riskbayes.LinearDiscriminantAnalysis(learner=learner),
        riskbayes.QuadraticDiscriminantAnalysis(prior="recommended", learner=learner),
        *tables,
    ]
    codes = [riskbayes.CategoricalNB(learner=learner), riskbayes.TreeAugmentedNB(learner=learner)]
    kind = str(rng.choice(["table", "numbers", "codes"]))
    chosen = {"table": tables, "numbers": numbers, "codes": codes}[kind]
    return chosen[rng.integers(len(chosen))], {"numbers": kind == "numbers", "codes": kind == "codes"}


def ways(table: Table, rng: np.random.Generator, dask: bool) -> dict[str, Callable[[], dict]]:
    """Return the ways in by name, each as the arguments of `fit`."""
    m = len(table.y)
    cuts = [0, *sorted(rng.choice(np.arange(1, m), int(rng.integers(1, 5)), replace=False).tolist()), m]
    batches = table.batches(cuts)
    found: dict[str, Callable[[], dict]] = {
        "a list of batches": lambda: {"X": riskbayes.rows(batches)},
        "a stream": lambda: {"X": riskbayes.rows(iter(batches))},
        "slices": lambda: {
            "X": riskbayes.rows(table.X, table.y, sample_weight=table.w, batch_rows=int(rng.integers(5, m)))
        },
        "a source of one's own": lambda: {"X": OwnSource(batches)},
    }
    if not isinstance(table.X, np.ndarray):
        whole = table.X.assign(target=table.y, **({} if table.w is None else {"weight": table.w}))
        arrow = pa.Table.from_pandas(whole, preserve_index=False)
        named = {"target": "target", "sample_weight": None if table.w is None else "weight"}
        found["Arrow batches"] = lambda: {
            "X": riskbayes.rows(pa.dataset.InMemoryDataset(arrow.to_batches(max_chunksize=17)), **named)
        }
    if dask:
        found["Dask"] = lambda: dask_arguments(table, cuts)
    return found


def dask_arguments(table: Table, cuts: list[int]) -> dict:
    """Return the rows as Dask collections."""
    import dask
    import dask.array as da
    import dask.dataframe as dd

    sizes = (tuple(b - a for a, b in pairwise(cuts)),)
    y = da.from_array(table.y, chunks=sizes)
    w = None if table.w is None else da.from_array(table.w, chunks=sizes)
    if isinstance(table.X, np.ndarray):
        return {"X": da.from_array(table.X, chunks=(sizes[0], -1)), "y": y, "sample_weight": w}
    # Strings stay as they are: Dask would make strings of booleans too.
    dask.config.set({"dataframe.convert-string": False})
    frame = dd.concat([dd.from_pandas(table.part(a, b)[0], npartitions=1) for a, b in pairwise(cuts)])
    return {"X": frame, "y": y, "sample_weight": w}


def check_ways(seed: int, number: int, dask: bool = False) -> str:
    """Fit one random table by all ways in; raise an AssertionError that names the way which differs."""
    rng = np.random.default_rng([seed, number])
    clf, form = random_estimator(rng)
    table = random_table(rng, **form)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        known, refusal = fitted(clf, {"X": table.X, "y": table.y, "sample_weight": table.w})
        for name, arguments in ways(table, rng, dask).items():
            found, other = fitted(clf, arguments())
            what = f"{type(clf).__name__} by {name}"
            assert (refusal is None) == (other is None), f"{what}: {other!r} and in memory {refusal!r}"
            if known is not None:
                compare(known, found, table, what)
    return "refused" if known is None else "held"


def fitted(clf: Any, arguments: dict) -> tuple[Any, Exception | None]:
    """Return a fitted clone, or the error by which the rows were refused."""
    from sklearn.base import clone

    try:
        return clone(clf).fit(**arguments), None
    except (ValueError, TypeError) as error:
        return None, error


def compare(known: Any, found: Any, table: Table, what: str) -> None:
    """Hold a model to the one of rows in memory: what it read, and what it answers."""
    assert known.classes_.tolist() == found.classes_.tolist(), f"{what}: classes"
    if hasattr(known, "columns_"):
        for ours, theirs in zip(known.columns_, found.columns_, strict=True):
            assert ours == theirs, f"{what}: {ours} and {theirs}"
    # Rows without weight may hold what the columns of the others do not.
    X = table.X if table.w is None else table.X[table.w > 0]
    cells = known._encode(known._read(X, reset=False, learn=False))
    others = found._encode(found._read(X, reset=False, learn=False))
    np.testing.assert_array_equal(cells, others, err_msg=f"{what}: encoded rows")
    for method in METHODS:
        if hasattr(known, method):
            try:
                wanted = getattr(known, method)(X)
            except NotImplementedError:
                continue
            batches = list(getattr(found, method)(riskbayes.rows(X, batch_rows=7)))
            answer = np.concatenate(batches)
            if answer.dtype.kind == "f":
                np.testing.assert_allclose(
                    answer, wanted, atol=TOLERANCE, rtol=1e-5, err_msg=f"{what}: {method}"
                )
