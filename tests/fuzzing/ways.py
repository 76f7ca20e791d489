"""The same rows by every way in: arrays, data frames, batches, streams, files, Dask, a source of one's own.

Laws: one schema, one encoded array, one model and one answer from every prediction method, or one refusal.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from functools import cache, reduce
from inspect import isclass
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
from sklearn.base import ClassifierMixin, clone

import riskbayes
from conftest import MODELS
from riskbayes.estimators.counts import CountInput
from riskbayes.estimators.prediction import PREDICTIONS
from riskbayes.input.files.table import open_table
from riskbayes.input.schema import Schema
from riskbayes.input.source import RowBatch, Source
from riskbayes.learners import RC
from riskbayes.preprocessing.encoder import Column

ESTIMATORS: dict[str, Any] = {
    name: kind
    for name, kind in ((name, getattr(riskbayes, name)) for name in dir(riskbayes))
    if isclass(kind) and issubclass(kind, ClassifierMixin)
}
"""Found, not listed: a new estimator of the package takes part."""

TABLES = [
    name
    for name, kind in ESTIMATORS.items()
    if "unseen" in kind._get_param_names() and "experts" not in kind._get_param_names()
]
"""Estimators that take any table: there is most to read. Experts by default take numbers."""

WAYS_A_CASE = 3
"""Ways in that are tried in a case, beside rows in memory."""

TOLERANCE = 1e-7
"""Sums over blocks are rounded in another order."""

SINGLE_TOLERANCE = 1e-5
"""Float32 scores are rounded to 6e-8; a fit to the optimum multiplies that by its condition number."""

FEW = 12
"""Distinct values that are kept of a column, in cases in which some columns have more."""


@dataclass
class Values:
    """The cells of a column, None for a missing one, and what they are."""

    kind: str
    cells: list
    declared: tuple = ()
    """Categories that a categorical column declares; none for those that it has, in each batch its own."""

    @property
    def is_whole(self) -> bool:
        """True for whole numbers none of which is missing."""
        return self.kind in NUMBERS[2:] and None not in self.cells


@dataclass
class Table:
    """Random rows with labels and weights."""

    form: str
    """What the estimator takes: a table of anything, numbers, counts or codes of categories."""
    columns: dict[str, Values]
    y: np.ndarray
    w: np.ndarray | None

    def part(self, holder: str, start: int = 0, stop: int | None = None) -> tuple:
        """Return some of the rows as a batch whose table is of this kind."""
        at = slice(start, stop)
        cells = {name: Values(v.kind, v.cells[at], v.declared) for name, v in self.columns.items()}
        return HOLDERS[holder](cells), self.y[at], None if self.w is None else self.w[at]

    @property
    def holders(self) -> list[str]:
        """Kinds of tables that can hold these rows, for the estimators that take them."""
        kinds = {values.kind for values in self.columns.values()}
        whole = all(values.is_whole for values in self.columns.values())
        arrays = ["float64"] if kinds <= set(NUMBERS) else []
        arrays += ["float32"] if arrays and "number" not in kinds else []
        arrays += ["int64"] if whole else []
        frames = ["pandas", "nullable", "polars", "arrow"]
        if self.form in ("numbers", "counts", "plain codes"):
            return [*frames, *arrays]
        if self.form == "codes" and "category" in kinds:  # of which Arrow declares none, and arrays neither
            return frames[:3]
        return [*frames, "objects", *arrays]


NUMBERS = ("number", "eighth", "whole", "code", "negative", "count")
"""Kinds of columns whose cells are numbers."""


def pandas_column(values: Values, nullable: bool = False) -> pd.Series:
    """Return a column of pandas, by its usual dtypes or by those that have a value for missing cells."""
    kind, cells = values.kind, values.cells
    if kind == "category":
        return pd.Series(pd.Categorical(cells, categories=list(values.declared) or None))
    if kind == "stamp":
        return pd.Series(cells, dtype="datetime64[us]")
    if nullable and kind not in ("number", "eighth"):
        return pd.Series(cells, dtype="Int64" if kind in NUMBERS else {"flag": "boolean"}.get(kind, "string"))
    if kind in NUMBERS:
        return pd.Series(cells, dtype="Float64" if nullable else "int64" if values.is_whole else "float64")
    return pd.Series(cells, dtype=bool if kind == "flag" and None not in cells else object)


def pandas_frame(columns: dict[str, Values], nullable: bool = False) -> pd.DataFrame:
    return pd.DataFrame({name: pandas_column(values, nullable) for name, values in columns.items()})


def polars_frame(columns: dict[str, Values]) -> pl.DataFrame:
    def dtype(values: Values) -> Any:
        own = {"number": pl.Float64, "eighth": pl.Float32, "flag": pl.Boolean, "stamp": pl.Datetime("us")}
        if values.kind == "category":
            return pl.Enum(list(values.declared)) if values.declared else pl.Categorical
        return own.get(values.kind, pl.Int64 if values.kind in NUMBERS else pl.String)

    return pl.DataFrame({name: pl.Series(v.cells, dtype=dtype(v)) for name, v in columns.items()})


def arrow_table(columns: dict[str, Values]) -> pa.Table:
    def array(values: Values) -> pa.Array:
        own = {
            "number": pa.float64(),
            "eighth": pa.float32(),
            "flag": pa.bool_(),
            "stamp": pa.timestamp("us"),
        }
        kind = own.get(values.kind, pa.int64() if values.kind in NUMBERS else pa.string())
        found = pa.array(values.cells, type=kind)
        return found.dictionary_encode() if values.kind == "category" else found

    return pa.table({name: array(values) for name, values in columns.items()})


def objects(columns: dict[str, Values]) -> np.ndarray:
    found = np.empty((len(next(iter(columns.values())).cells), len(columns)), dtype=object)
    for j, values in enumerate(columns.values()):
        found[:, j] = values.cells
    return found


HOLDERS: dict[str, Callable[[dict[str, Values]], Any]] = {
    "pandas": pandas_frame,
    "nullable": lambda columns: pandas_frame(columns, nullable=True),
    "polars": polars_frame,
    "arrow": arrow_table,
    "objects": objects,
    "int64": lambda columns: objects(columns).astype(np.int64),
    "float64": lambda columns: objects(columns).astype(np.float64),
    "float32": lambda columns: objects(columns).astype(np.float32),
}
"""Tables that hold columns."""

UNNAMED = ("objects", "int64", "float64", "float32", "arrays")
"""Those without names of columns; "arrays" are batches of several of these."""


class OwnSource(Source):
    """A source of a user's own: one class with one method."""

    def __init__(self, batches: list[tuple]):
        self.own = batches

    def batches(self) -> Iterator[RowBatch]:
        """Yield the batches."""
        yield from (RowBatch(*batch) for batch in self.own)


# --- random cases -----------------------------------------------------------------------------------


def random_estimator(rng: np.random.Generator) -> tuple[Any, str]:
    """Return an estimator, and the form of the table that it takes."""
    name = str(rng.choice(list(ESTIMATORS) if rng.random() < 0.6 else TABLES))
    kind, arguments = ESTIMATORS[name], {}
    names = kind._get_param_names()
    if "learner" in names:
        arguments["learner"] = "closed_form" if rng.random() < 0.6 else RC(max_iter=3)
    if "strategy" in names:
        arguments["strategy"] = "single"  # the default is another one where the rows are in memory
    if "class_weight" in names and rng.random() < 0.15:
        arguments["class_weight"] = "balanced"
    if name == "GenerativeClassifier":
        own = [model for model in MODELS if not model().implements("learn_own")]
        model = own[rng.integers(len(own))]()
        forms = {"categories": "plain codes", "counts": "counts"}
        return kind(model, **arguments), forms.get(model.traits.support, "numbers")
    for option, values in OPTIONS.items():
        if option in names and rng.random() < 0.5:
            arguments[option] = values[rng.integers(len(values))]
    clf = kind(**arguments)
    if isinstance(kind._input, CountInput):
        return clf, "counts"
    if clf.__sklearn_tags__().input_tags.categorical:
        return clf, "codes"
    return clf, "table" if name in TABLES and rng.random() < 0.9 else "numbers"


OPTIONS: dict[str, list] = {
    "missing": ["informative", "ignore"],
    "unseen": ["missing", "other"],
    "prior": ["auto", "recommended", None],
    "numeric": ["gaussian"],
    "categorical_features": [[0]],
}
"""Parameters on which it depends how rows are read, or what is learned before the fit."""

COLUMNS = {
    "table": ["number", "eighth", "whole", "word", "date", "stamp", "flag", "id", "category"],
    "numbers": ["number", "eighth", "whole"],
    "counts": ["count"],
    "plain codes": ["code"],
    "codes": ["code", "word", "flag", "negative", "id", "category"],
}
"""Kinds of columns by the form of the table."""


def random_table(rng: np.random.Generator, form: str) -> Table:
    """Return a random table, many of whose columns begin otherwise than they go on."""
    m, r = (
        int(rng.integers(24, 70) if rng.random() < 0.8 else rng.integers(100, 200)),
        int(rng.integers(2, 4)),
    )
    codes = rng.permutation(np.arange(m) % r)
    begin = int(rng.integers(1, m // 2))
    kinds = rng.choice(COLUMNS[form], int(rng.integers(1, 5)))
    columns = {f"c{j}": random_column(rng, str(kind), m, codes, begin) for j, kind in enumerate(kinds)}
    y = codes if rng.random() < 0.5 else np.array(["low", "mid", "top"])[codes]
    w = None if rng.random() < 0.6 else rng.integers(0, 3, m).astype(float)
    if w is not None:
        w[: begin if rng.random() < 0.3 else 0] = 0.0
        w[-1] = 1.0  # this row alone may be no date
    if form == "table" and rng.random() < 0.5:
        columns = {name: replace(values, declared=()) for name, values in columns.items()}
    return Table(form, columns, y, w)


def random_column(rng: np.random.Generator, kind: str, m: int, y: np.ndarray, begin: int) -> Values:
    """Return a column whose beginning may be constant, missing or complete, unlike the rest."""
    declared: tuple = ()
    if kind in ("number", "eighth"):
        values: Any = rng.standard_normal(m) + y
        values = values.round(3) if kind == "number" else np.round(8 * values) / 8
    elif kind in ("whole", "code", "count"):
        values = rng.integers(0, 5, m) + y
    elif kind == "negative":
        values = rng.integers(-3, 3, m) + y
    elif kind == "flag":
        values = rng.random(m) < 0.3 + 0.4 * (y == 0)
    elif kind in ("date", "stamp"):
        hours = 24 * (rng.integers(0, 400, m) + 100 * y)
        values = [datetime(2024, 1, 1) + timedelta(hours=int(h)) for h in hours]
        if kind == "date":
            values = [value.date().isoformat() for value in values]
            values = [*values[:-1], "never"] if rng.random() < 0.3 else values
    elif kind == "id":
        values = [f"id{i}" for i in rng.permutation(m)]
        if rng.random() < 0.5:  # distinct at the beginning only
            values[begin:] = [values[begin]] * (m - begin)
    else:
        values = np.array(list("abcdef"))[(rng.integers(0, 4, m) + y) % 6]
        declared = tuple(rng.permutation(list("abcdefgh")).tolist()) if kind == "category" else ()
    cells = values if isinstance(values, list) else values.tolist()
    start = rng.random()
    if start < 0.2:
        cells[:begin] = [cells[0]] * begin
    elif start < 0.35 and kind != "count":
        cells[:begin] = [None] * begin
    if rng.random() < 0.4 and kind != "count":
        holes = rng.random(m) < 0.3
        holes[:begin] &= rng.random() < 0.5
        cells = [None if hole else cell for cell, hole in zip(cells, holes.tolist(), strict=True)]
    return Values(kind, cells, declared)


# --- ways in ----------------------------------------------------------------------------------------


@dataclass
class Way:
    """One way in."""

    arguments: dict
    """Arguments of `fit`."""
    rows: Callable[[], Any]
    """Returns all rows, to be predicted: in memory, a source, or a Dask collection."""
    X: Any
    """All rows in memory."""
    holder: str
    """The kind of the table."""


def random_ways(
    table: Table, holder: str, cuts: list[int], rng: np.random.Generator, folder: Path
) -> dict[str, Callable[[], Way]]:
    """Return ways in by name, but for Dask; `holder` is the kind of table of the reference."""
    X, y, w = table.part(holder)
    batches = [table.part(holder, a, b) for a, b in pairwise(cuts)]
    kinds = rng.choice(table.holders, len(batches)).tolist()
    mixed = [table.part(kind, a, b) for kind, (a, b) in zip(kinds, pairwise(cuts), strict=True)]
    of_mixed = "mixed" if set(kinds) - set(UNNAMED) else "arrays"
    size = int(rng.integers(5, len(y)))

    def by(data: Any, rows: Callable[[], Any] = lambda: riskbayes.rows(X, batch_rows=size)) -> Way:
        return Way({"X": data}, rows, X, holder)

    def other(kind: str) -> Way:
        there, labels, weights = table.part(kind)
        return Way({"X": there, "y": labels, "sample_weight": weights}, lambda: there, there, kind)

    found: dict[str, Callable[[], Way]] = {
        "a list of batches": lambda: by(riskbayes.rows(batches)),
        "a stream": lambda: by(riskbayes.rows(iter(batches)), lambda: riskbayes.rows(b[0] for b in batches)),
        "a source of one's own": lambda: by(OwnSource(batches), lambda: OwnSource(batches)),
        f"batches of {kinds}": lambda: Way(
            {"X": riskbayes.rows(mixed)}, lambda: riskbayes.rows([b[0] for b in mixed]), X, of_mixed
        ),
        **{f"{kind} in memory": lambda kind=kind: other(kind) for kind in table.holders if kind != holder},
    }
    if holder != "arrow":  # which holds its labels
        found["slices"] = lambda: by(riskbayes.rows(X, y, sample_weight=w, batch_rows=size))
    if "arrow" in table.holders:
        found["Arrow batches"] = lambda: arrow_way(table, size)
        found["Parquet files"] = lambda: parquet_way(table, cuts, folder)
    # Flags and categories declare values that a CSV does not have; in a column of dates a word is missing.
    undeclared = table.form == "codes" and {"flag", "category"} & {v.kind for v in table.columns.values()}
    if not undeclared and not any("never" in values.cells for values in table.columns.values()):
        found["a CSV"] = lambda: csv_way(table, folder)
    return found


def whole_arrow(table: Table) -> tuple[pa.Table, dict]:
    """Return the rows with labels and weights, and how these columns are called."""
    found = table.part("arrow")[0].append_column("target", pa.array(table.y))
    named: dict[str, Any] = {"target": "target"}
    if table.w is not None:
        found, named["sample_weight"] = found.append_column("weight", pa.array(table.w)), "weight"
    return found, named


def arrow_way(table: Table, size: int) -> Way:
    """Return the rows as batches of an Arrow dataset in memory."""
    whole, named = whole_arrow(table)
    data = pa.dataset.InMemoryDataset(whole.to_batches(max_chunksize=size))
    X = table.part("arrow")[0]
    return Way({"X": riskbayes.rows(data, **named)}, lambda: riskbayes.rows(X, batch_rows=size), X, "arrow")


def parquet_way(table: Table, cuts: list[int], folder: Path) -> Way:
    """Return the rows as a folder of Parquet files."""
    whole, named = whole_arrow(table)
    for number, (a, b) in enumerate(pairwise(cuts)):
        pa.parquet.write_table(whole.slice(a, b - a), folder / f"{number}.parquet")
    return Way(
        {"X": riskbayes.rows(folder, **named)},
        lambda: riskbayes.rows(folder, columns=list(table.columns), batch_rows=11),
        table.part("arrow")[0],
        "arrow",
    )


def csv_way(table: Table, folder: Path) -> Way:
    """Return the rows as a CSV that was read into an Arrow table."""
    path = folder / "table.csv"
    frame = pandas_frame(table.columns).assign(target=table.y)
    (frame if table.w is None else frame.assign(weight=table.w)).to_csv(path, index=False)
    found = open_table(path)
    X = found.select(list(table.columns))
    w = None if table.w is None else found["weight"].to_numpy()
    return Way({"X": X, "y": np.array(found["target"].to_pylist()), "sample_weight": w}, lambda: X, X, "csv")


def dask_way(table: Table, cuts: list[int]) -> Way:
    """Return the rows as Dask collections."""
    import dask.array as da
    import dask.dataframe as dd

    sizes = tuple(b - a for a, b in pairwise(cuts))
    y = da.from_array(table.y, chunks=(sizes,))
    w = None if table.w is None else da.from_array(table.w, chunks=(sizes,))
    holder = "float64" if "float64" in table.holders else "pandas"
    X = table.part(holder)[0]
    if holder == "float64":
        rows: Any = da.from_array(X, chunks=(sizes, -1))
    else:
        rows = dd.concat([dd.from_pandas(X.iloc[a:b], npartitions=1) for a, b in pairwise(cuts)])
    return Way({"X": rows, "y": y, "sample_weight": w}, lambda: rows, X, holder)


# --- laws -------------------------------------------------------------------------------------------


def check_ways(seed: int, number: int, scheduler: str | None = None) -> str:
    """Fit one random table by some ways in; raise an AssertionError that names the one which differs.

    With a scheduler of Dask that is one of them.
    """
    rng = np.random.default_rng([seed, number])
    clf, form = random_estimator(rng)
    table = random_table(rng, form)
    holder = str(rng.choice(table.holders))
    if "float32" in table.holders and isinstance(clf.get_params().get("learner"), RC):
        # A second step is a secant of gradients: where it is small, it multiplies what float32 rows round.
        clf.set_params(learner__max_iter=1)
    m = len(table.y)
    cuts = [0, *sorted(rng.choice(np.arange(1, m), int(rng.integers(1, 5)), replace=False).tolist()), m]
    few = scheduler != "processes" and rng.random() < 0.3
    limit = patch("riskbayes.input.schema.MOST_VALUES", FEW) if few else nullcontext()
    blocks = patch("riskbayes.engines.block_writer.BLOCK_CELLS", 1 if rng.random() < 0.5 else 2**21)
    parts = patch("riskbayes.estimators.reading.LEAST_CELLS", 0 if rng.random() < 0.5 else 2**20)
    with warnings.catch_warnings(), limit, blocks, parts, tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        X, y, w = table.part(holder)
        known, refusal = fit(clf, {"X": X, "y": y, "sample_weight": w})
        ways = random_ways(table, holder, cuts, rng, Path(folder))
        chosen = {name: ways[name] for name in rng.permutation(list(ways))[:WAYS_A_CASE].tolist()}
        if scheduler is not None:
            chosen = {f"Dask ({scheduler})": lambda: dask_way(table, cuts), **dict([*chosen.items()][:1])}
        for name, make in chosen.items():
            what = f"{clf!r} on {describe(table)} as {holder} and by {name}, cut at {cuts}"
            with dask_settings(scheduler):
                way = make()
                found, other = fit(clf, way.arguments)
                assert (refusal is None) == (other is None), f"{what}: {other!r}; in memory {refusal!r}"
                if known is not None:
                    compare(known, X, found, way, holder, rng, what)
        if known is not None:
            check_sums(known, X, [table.part(holder, a, b)[0] for a, b in pairwise(cuts)], rng)
    return "refused" if known is None else "held"


def describe(table: Table) -> str:
    """Return the kinds of a table's columns, for a message."""
    weights = "" if table.w is None else ", weighted"
    return f"{len(table.y)} rows of {[values.kind for values in table.columns.values()]}{weights}"


def dask_settings(scheduler: str | None) -> Any:
    """Return a context in which Dask uses this scheduler, and leaves strings and booleans as they are."""
    if scheduler is None:
        return nullcontext()
    import dask

    pool = {"pool": process_pool()} if scheduler == "processes" else {}
    return dask.config.set({"scheduler": scheduler, "dataframe.convert-string": False, **pool})


@cache
def process_pool() -> ProcessPoolExecutor:
    """Return a process for Dask's tasks, the same for all cases: to start one takes seconds."""
    return ProcessPoolExecutor(1, mp_context=get_context("forkserver"))


def fit(clf: Any, arguments: dict) -> tuple[Any, Exception | None]:
    """Return a fitted clone, or the error by which the rows were refused."""
    try:
        return clone(clf).fit(**arguments), None
    except (ValueError, TypeError) as error:
        return None, error


def compare(
    known: Any, X: Any, found: Any, way: Way, holder: str, rng: np.random.Generator, what: str
) -> None:
    """Hold a model to the one of rows X in memory: what it read, what it learned, and what it answers."""
    assert known.classes_.tolist() == found.classes_.tolist(), f"{what}: classes"
    if hasattr(known, "columns_"):
        named = not {holder, way.holder} & set(UNNAMED)
        for ours, theirs in zip(known.columns_, found.columns_, strict=True):
            assert same_column(ours, theirs, way.holder == holder, named), f"{what}: {ours} and {theirs}"
    np.testing.assert_array_equal(encode(known, X), encode(found, way.X), err_msg=f"{what}: encoded rows")
    single = "float32" in (holder, way.holder)
    if hasattr(known, "statistics_"):
        # Scans of float32 rows round posteriors, and so what calibration adds to the statistics.
        share = SINGLE_TOLERANCE if single and known.learner != "closed_form" else 1e-6
        assert known.statistics_.allclose(found.statistics_, rtol=share, atol=1e-7), f"{what}: statistics"
    # A decision is a difference of log joints, which rows of float32 have rounded by their own size.
    joint = None
    if single:  # without a joint the decisions themselves have that size
        joint = ask(known, "predict_joint_log_proba", X)
        joint = ask(known, "decision_function", X) if joint is None else joint
    size = 1.0 if joint is None else max(1.0, float(np.abs(joint).max()))
    size *= SINGLE_TOLERANCE if single and not hasattr(known, "learner") else TOLERANCE
    for method in ("predict_proba", *rng.choice(PREDICTIONS, 2).tolist()):
        wanted, answer = ask(known, method, X), ask(found, method, way.rows())
        assert (wanted is None) == (answer is None), f"{what}: {method} answers one of them"
        if wanted is None:
            continue
        assert wanted.shape == answer.shape, f"{what}: {method}: {wanted.shape} and {answer.shape}"
        if method != "predict":
            near = {"atol": size, "rtol": 1e-5}
            np.testing.assert_allclose(answer, wanted, **near, err_msg=f"{what}: {method}")
        else:
            P = np.sort(known.predict_proba(X), axis=1)
            sure = P[:, -1] - P[:, -2] > 100 * TOLERANCE
            np.testing.assert_array_equal(answer[sure], wanted[sure], err_msg=f"{what}: {method}")


def same_column(ours: Column, theirs: Column, exactly: bool, named: bool) -> bool:
    """True if two columns were read alike; tables of two kinds differ in examples, and arrays in names.

    Distinct values are not counted in all kinds of tables.
    """
    free = set() if exactly else {"example"}
    free |= set() if named else {"name"}
    free |= {"n_values"} if None in (ours.n_values, theirs.n_values) and not exactly else set()
    names = {f.name for f in fields(Column)} - free
    pairs = [(getattr(ours, name), getattr(theirs, name)) for name in names]
    # pandas has whole numbers as floats in tables and batches in which some are missing.
    return all(
        a == b or (isinstance(a, str) and a.removesuffix(".0") == b.removesuffix(".0")) for a, b in pairs
    )


def encode(clf: Any, X: Any) -> np.ndarray:
    """Return rows in memory as a fitted estimator encodes them."""
    return clf._encode_new(X, "predict")


def ask(clf: Any, method: str, X: Any) -> np.ndarray | None:
    """Return the answers to all rows as one array; None if the estimator has no such method for its model."""
    try:
        found = getattr(clf, method)(X)
        if isinstance(found, np.ndarray):
            return found
        return found.compute() if hasattr(found, "compute") else np.concatenate(list(found))
    except (AttributeError, NotImplementedError):
        return None


def check_sums(clf: Any, X: Any, parts: list, rng: np.random.Generator) -> None:
    """Hold the schemas of parts to that of all rows: they add up, however they are grouped."""
    whole, *each = (
        clf._input.schema_of(clf, clf._input.read(clf, rows, reset=False, learn=True), whole=False)
        for rows in (X, *parts)
    )
    at = int(rng.integers(len(each)))
    grouped = [s for s in (sum_of(each[:at]), sum_of(each[at:])) if s is not None]
    for found in (sum_of(each), sum_of(grouped)):
        for f in fields(Schema):
            ours, theirs = getattr(whole, f.name), getattr(found, f.name)
            same = np.array_equal(ours, theirs) if isinstance(ours, np.ndarray) else same_values(ours, theirs)
            assert same, f"{clf!r}: schemas do not add up in {f.name}: {ours} and {theirs}"


def sum_of(schemas: list[Schema]) -> Any:
    """Return the sum of schemas; None of none."""
    return reduce(lambda a, b: a + b, schemas) if schemas else None


def same_values(ours: Any, theirs: Any) -> bool:
    """Compare values of a schema, of which some are arrays."""
    if isinstance(ours, tuple):
        return len(ours) == len(theirs) and all(map(same_values, ours, theirs))
    if isinstance(ours, np.ndarray):
        return np.array_equal(ours, theirs)
    if hasattr(ours, "__dataclass_fields__"):
        return all(same_values(getattr(ours, f.name), getattr(theirs, f.name)) for f in fields(ours))
    return bool(ours == theirs)
