"""How an estimator reads rows, wherever they are: what it learns of them, and an engine over them, encoded.

It reads in steps of its input that are the same for arrays, batches and partitions: `read` validates rows and
returns their cells, `schema_of` describes the cells, schemas add up, `decide` takes what all rows say, and
`encode` turns cells into an array.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from enum import Enum
from functools import reduce
from itertools import chain
from operator import add
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from riskbayes.arrays import Array, namespace, take_rows, to_device
from riskbayes.engines.block_work import join_rows
from riskbayes.engines.block_writer import BlockWriter, smallest
from riskbayes.engines.blocks import BlockEngine
from riskbayes.engines.dask import DaskEngine, computed, delayed, shared
from riskbayes.engines.disk import DiskEngine
from riskbayes.engines.memory import MemoryEngine
from riskbayes.engines.spool import read
from riskbayes.estimators.checks import (
    check_total,
    check_weights,
    class_codes,
    class_weights,
    distinct_labels,
    labels_like,
)
from riskbayes.input.schema import Cells, Schema
from riskbayes.input.source import RowBatch


class Learns(Enum):
    """What an estimator learns from rows."""

    NOTHING = "nothing"
    ALL = "what the columns are, and the classes"
    COLUMNS = "what the columns are; the classes are declared"
    CATEGORIES = "further categories of known columns"


ANEW = (Learns.ALL, Learns.COLUMNS)
"""What is learned when earlier rows' names and numbers of columns are discarded."""


@dataclass(frozen=True)
class Reading:
    """An estimator that reads rows: what it learns from them, and how messages call its arguments."""

    clf: Any
    learns: Learns = Learns.NOTHING
    suffix: str = ""
    """Appended to the names of arguments in messages."""

    def in_memory(self, X: Any, y: Any, sample_weight: Any) -> MemoryEngine:
        """Return an engine over rows in memory."""
        clf, learns = self.clf, self.learns is not Learns.NOTHING
        cells, labels, w = self.cells_of(RowBatch(X, y, sample_weight), reset=self.learns in ANEW)
        like = host_rows(cells)
        if self.learns is Learns.ALL:
            clf.classes_, codes = distinct_labels(labels)
            if isinstance(labels, np.ndarray) and 2 * len(clf.classes_) > len(labels):
                check_classification_targets(labels)  # it warns of as many classes as a quantity has
        else:
            clf.classes_ = labels_like(clf, clf.classes_, like) if self.learns in ANEW else clf.classes_
            codes = class_codes(labels, clf.classes_, f"y{self.suffix}")
        codes = codes if namespace(codes) is namespace(like) else to_device(codes, like)
        if w is not None:
            cells, codes, w = with_weight(cells, codes, w)
        if learns:
            schema = clf._input.schema_of(clf, cells, whole=self.learns in ANEW)
            clf._input.decide(clf, schema, more=self.learns is Learns.CATEGORIES)
        engine = MemoryEngine(clf._input.encode(clf, cells), codes, w, clf.classes_.shape[0])
        return engine if clf.class_weight is None else self.weighted(engine)

    def cells_of(self, batch: RowBatch, reset: bool, name: str = "") -> tuple[Any, Array, Array | None]:
        """Return the cells of rows, their labels and weights, all validated; `name` is that of a batch."""
        clf, suffix = self.clf, self.suffix
        cells = clf._input.read(clf, batch.X, reset=reset, learn=self.learns is not Learns.NOTHING)
        if batch.y is None:
            raise ValueError(
                f"{type(clf).__name__} requires y to be passed, but the target y is None. Of riskbayes.rows "
                "name the column of the labels, target=..., or pass batches (X, y)."
            )
        like = host_rows(cells)
        labels = labels_like(clf, batch.y, like)
        if cells.shape[0] != labels.shape[0]:
            raise ValueError(
                f"X{suffix} has {cells.shape[0]} rows and y{suffix} has {labels.shape[0]} labels{name}."
            )
        w = None
        if batch.w is not None:
            w = check_weights(batch.w, like, f"sample_weight{suffix}", whole=not name)
        return cells, labels, w

    def look(self, cells: Any, labels: Array, w: Array | None) -> Schema:
        """Return the schema of one of several batches."""
        cells = cells if w is None else with_weight(cells, labels, w)[0]
        schema = self.clf._input.schema_of(self.clf, cells, whole=False)
        return replace(schema, labels=distinct_labels(labels)[0])

    def decide(self, schema: Schema) -> None:
        """Let the estimator decide by all rows: classes, names of columns, and how cells are encoded."""
        clf = self.clf
        if self.learns in ANEW:
            clf.n_features_in_ = len(schema.names)
            vars(clf).pop("feature_names_in_", None)
            if schema.named:
                clf.feature_names_in_ = np.array(schema.names, dtype=object)
        clf._input.decide(clf, schema, more=self.learns is Learns.CATEGORIES)
        if self.learns is Learns.ALL:
            clf.classes_ = schema.labels

    def encode(self, batch: RowBatch, name: str = "") -> tuple[Any, Array, Array | None]:
        """Return the encoded rows of a batch, codes of their labels, and their weights."""
        cells, codes, w = self.coded(*self.cells_of(batch, reset=False, name=name))
        return (self.clf._input.encode(self.clf, cells) if len(codes) else np.empty((0, 0))), codes, w

    def coded(
        self, cells: Any, labels: Array, w: Array | None, met: dict[Any, int] | None = None
    ) -> tuple[Any, Array, Array | None]:
        """Return the rows that count, the codes of their labels, and their weights.

        `met` has the codes of labels in the order in which they are met, until all classes are known.
        """
        if met is None:
            codes = class_codes(labels, self.clf.classes_, f"y{self.suffix}")
        else:
            found, inverse = distinct_labels(labels)
            codes = np.array([met.setdefault(label, len(met)) for label in found.tolist()])[inverse]
        learns = self.learns is not Learns.NOTHING
        return with_weight(cells, codes, w) if learns and w is not None else (cells, codes, w)

    def on_disk(self, source: Any) -> BlockEngine:
        """Read all batches of a source and return an engine over them, encoded, in files of a spool.

        Rows that are their own encoding, as numbers are, are written as they are read. Where what all rows
        say decides how each is encoded, the source is read again; a stream, which can be read only once, is
        kept in the spool as it comes.
        """
        clf, spool, learns = self.clf, source.new_spool(), self.learns is not Learns.NOTHING
        # Unless the user says so, identical rows are not merged for a learner that picks rows.
        merge = not clf._picks_rows if source.merge is None else source.merge
        writer, met = BlockWriter(spool, merge), dict[Any, int]()
        keeps = learns and clf._input.schema_decides and source.once
        as_read, total, kept, n_rows = not keeps, None, [], 0
        for number, batch in enumerate(source.batches()):
            cells, y, w = self.cells_of(batch, self.learns in ANEW, f" in batch {number}")
            if learns:
                look = self.look(cells, y, w)
                total = look if total is None else total + look
                as_read = as_read and clf._input.as_read(clf, cells, total)
            if as_read:
                rows, codes, w = self.coded(cells, y, w, met if self.learns is Learns.ALL else None)
                writer.add(rows if learns else clf._input.encode(clf, rows), codes, w)
            elif keeps:
                kept.append(spool.write(batch))
            n_rows += cells.shape[0]
            source.progress.advance(cells.shape[0])
        if total is not None:
            self.decide(total)
        if not as_read:
            for path in chain(*writer.files):
                path.unlink()
            writer, met = BlockWriter(spool, merge), {}
            source.progress.next_pass(n_rows)
            for number, batch in enumerate(map(read, kept) if keeps else source.batches()):
                writer.add(*self.encode(batch, f" in batch {number}"))
                source.progress.advance(batch.n_rows)
        if not writer.n_rows:
            raise ValueError("The rows are empty: there is no batch with a row that has a weight.")
        writer.flush()
        source.progress.next_pass(writer.n_rows)
        order = np.argsort([met[label] for label in clf.classes_.tolist()]) if met else None
        advance = source.progress.advance
        return self.of_blocks(
            DiskEngine(writer.files, spool, len(clf.classes_), order, on_rows=advance, merged=writer.merged)
        )

    def of_blocks(self, engine: BlockEngine) -> Any:
        """Return the engine of the estimator's weights; refuse rows whose weights together are wrong."""
        check_total(engine.masses, f"sample_weight{self.suffix}")
        if not engine.masses.any():
            raise ValueError(f"sample_weight{self.suffix} must contain at least one non-zero number.")
        return engine if self.clf.class_weight is None else self.weighted(engine)

    def weighted(self, engine: Any) -> Any:
        """Return the engine with the weights of the estimator's classes, which a fit sets."""
        clf = self.clf
        if self.learns is not Learns.NOTHING:
            found = class_weights(clf.class_weight, clf.classes_, engine.masses)
            clf.class_weight_ = to_device(found, engine.masses)
        with np.errstate(over="ignore"):  # the next line refuses what overflows
            weighted = engine.weighted(clf.class_weight_)
            alone = engine.mass == engine.n_rows
            check_total(
                weighted.masses,
                "class_weight" if alone else f"sample_weight{self.suffix} times class_weight",
            )
        return weighted

    def on_dask(self, parts: list[tuple[Any, Any, Any]]) -> Any:
        """Return an engine over partitions of Dask collections: rows, labels and weights of each as tasks."""
        sent, look = shared(self.on_worker()), delayed(look_at_partition)
        looks = computed(*(look(sent, *part, number) for number, part in enumerate(parts)))
        filled = [number for number, (rows, _) in enumerate(looks) if rows]
        if not filled:
            raise ValueError(f"X{self.suffix} is empty: no partition has a row with a weight.")
        if self.learns is not Learns.NOTHING:
            self.decide(reduce(add, (own for _, own in looks if own is not None)))
        sent, encode = shared(self.on_worker()), delayed(encode_partitions)
        groups = merged_partitions([looks[i][0] for i in filled], self.clf.n_features_in_)
        blocks = [encode(sent, [list(parts[filled[i]]) for i in group]) for group in groups]
        return self.of_blocks(DaskEngine(blocks, len(self.clf.classes_)))

    def on_worker(self) -> Reading:
        """Return a reading by a copy of the estimator, without what belongs to the fit on the driver."""
        reader = copy(self.clf)
        for name in [name for name in vars(reader) if name.startswith(("_callback", "_skl"))]:
            delattr(reader, name)
        return Reading(reader, self.learns, self.suffix)


def look_at_partition(reading: Reading, X: Any, y: Any, w: Any, number: int) -> tuple[int, Schema | None]:
    """Return how many rows of a partition are read, and what the driver needs of them."""
    own = Reading(copy(reading.clf), reading.learns, reading.suffix)
    if not X.shape[0]:
        return 0, None
    found = own.cells_of(partition(X, y, w), own.learns in ANEW, f" in partition {number}")
    if own.learns is Learns.NOTHING:
        return X.shape[0], None
    look = own.look(*found)
    return look.n_rows, look


def partition(X: Any, y: Any, w: Any) -> RowBatch:
    """Return a partition as a batch: labels and weights as arrays of one axis."""
    labels: Any = np.empty(0) if y is None else np.asarray(y)
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if labels.dtype.kind in "OT" and all(isinstance(label, str) for label in labels.tolist()):
        labels = np.array(labels.tolist(), dtype=object)
    return RowBatch(X, None if y is None else labels, None if w is None else np.asarray(w).ravel())


def encode_partitions(reading: Reading, parts: list[list[Any]]) -> MemoryEngine:
    """Return partitions as one block."""
    blocks = []
    for X, y, w in parts:
        rows, codes, weights = reading.encode(partition(X, y, w), " in a partition")
        narrow = isinstance(rows, np.ndarray) and rows.dtype.kind in "iu"
        blocks.append((smallest(rows) if narrow else rows, codes, weights))
    return MemoryEngine(*join_rows(blocks), len(reading.clf.classes_))


def merged_partitions(sizes: list[int], width: int) -> list[list[int]]:
    """Return groups of neighbouring partitions of enough cells; they depend on nothing but sizes."""
    groups: list[list[int]] = [[]]
    cells = 0
    for number, rows in enumerate(sizes):
        if groups[-1] and cells + rows * width > LEAST_CELLS:
            groups.append([])
            cells = 0
        groups[-1].append(number)
        cells += rows * width
    return groups


LEAST_CELLS = 2**20
"""Neighbouring partitions with fewer cells are merged: a task costs as much as a scan of so many."""


def host_rows(cells: Any) -> Array:
    """Return rows by which labels and weights are judged: an array, or as many empty rows as a table has."""
    return np.empty((cells.shape[0], 0)) if isinstance(cells, Cells) else cells


def with_weight(cells: Any, codes: Array, w: Array) -> tuple[Any, Array, Array]:
    """Return the rows that have a weight: others must not affect what is learned of the columns."""
    positive = w > 0
    xp = namespace(positive)
    if bool(xp.all(positive)):
        return cells, codes, w
    rows = xp.nonzero(positive)[0]
    kept = cells.rows(rows) if isinstance(cells, Cells) else take_rows(cells, rows)
    return kept, take_rows(codes, rows), take_rows(w, rows)
