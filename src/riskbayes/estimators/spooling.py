"""Rows that are read in batches, as an estimator reads them: encoded, written to a spool, labels as codes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from riskbayes.arrays import Array, row_width
from riskbayes.arrow import RowBatch
from riskbayes.engines.block_work import joined_rows
from riskbayes.engines.blocks import BlockEngine
from riskbayes.engines.disk import DiskEngine
from riskbayes.engines.distinct import Merger
from riskbayes.engines.spool import Spool
from riskbayes.estimators.checks import check_total, check_weights, class_codes, class_weights, labels_like
from riskbayes.sources import Rows

BLOCK_CELLS = 2**21
"""Cells of a block, rows x columns: 16 MiB of float64. Scans of fewer are not compiled."""


def spooled(
    clf: Any,
    rows: Rows,
    *,
    reset: bool,
    learn: bool,
    new_classes: bool,
    suffix: str = "",
    picks_rows: bool = True,
) -> BlockEngine:
    """Read all rows once, encode them as the estimator does, and return an engine over them.

    The arguments are those of `_rows` of the estimator. The first batch decides what `reset` decides; further
    batches add categories and classes. `picks_rows` is that of the learner: unless the user asks for it,
    identical rows are then not merged.
    """
    if rows.engine is not None:
        return revalidated(clf, rows.engine)
    merge = not picks_rows if rows.merge is None else rows.merge
    writer = BlockWriter(rows.new_spool(), merge)
    labels = LabelCodes()
    for number, batch in enumerate(rows.batches()):
        X = encoded_batch(clf, batch, reset=reset and number == 0, learn=learn)
        if batch.y is None:
            raise ValueError(
                f"{type(clf).__name__} requires y to be passed: the rows have no labels. Name their column "
                "by riskbayes.rows(target=...), or pass batches (X, y)."
            )
        y = labels_like(clf, batch.y, X)
        if X.shape[0] != y.shape[0]:
            raise ValueError(f"Batch {number} has {X.shape[0]} rows and {y.shape[0]} labels.")
        codes = labels.codes(y) if new_classes else class_codes(y, clf.classes_, f"y{suffix}")
        w = None if batch.w is None else check_weights(batch.w, X, f"sample_weight{suffix}")
        writer.add(X, codes, w)
        rows.progress.advance(X.shape[0])
    if not writer.n_rows:
        raise ValueError("The rows are empty: there is no batch with a row.")
    writer.flush()
    rows.progress.next_pass(writer.n_rows)
    order = None
    if new_classes:
        clf.classes_, order = labels.sorted()
    engine = DiskEngine(
        writer.files,
        writer.spool,
        len(clf.classes_),
        order,
        on_rows=rows.progress.advance,
        merged=writer.merged,
    )
    return class_weighted(clf, engine, learn, suffix)


def class_weighted(clf: Any, engine: BlockEngine, learn: bool, suffix: str) -> Any:
    """Return the engine with the weights of the estimator's classes, which are set if `learn` is true."""
    check_total(engine.masses, f"sample_weight{suffix}")
    if clf.class_weight is None:
        return engine
    if learn:
        codes = np.arange(len(clf.classes_))
        clf.class_weight_ = class_weights(clf.class_weight, clf.classes_, codes, engine.masses)
    return engine.weighted(clf.class_weight_)


def revalidated(clf: Any, engine: BlockEngine) -> BlockEngine:
    """Return an engine over rows that were encoded before, after the estimator has validated them too."""
    for number, X in enumerate(engine.shown()):
        clf._encode(X, reset=number == 0, learn=True)
    clf.classes_ = np.arange(engine.n_classes)
    return engine


def check_alone(y: Any, sample_weight: Any, suffix: str) -> None:
    """Refuse labels and weights beside rows that hold their own."""
    if y is not None or sample_weight is not None:
        raise ValueError(
            f"X{suffix} is riskbayes.rows, which hold their labels and weights: pass no y{suffix} and no "
            f"sample_weight{suffix}."
        )


def refuse_rows(X: Any) -> None:
    """Refuse rows that are read in batches where an array is needed."""
    if isinstance(X, Rows):
        raise TypeError("Only fit and predict* take riskbayes.rows: pass one batch after another as arrays.")


@contextmanager
def closing_rows(*tables: Any) -> Iterator[None]:
    """Remove the temporary folders of rows at the end, also after an error or an interrupt."""
    try:
        yield
    finally:
        for table in tables:
            if isinstance(table, Rows):
                table.close()


class BlockWriter:
    """Writes encoded rows to a spool, in blocks whose size does not depend on that of the batches.

    Parameters
    ----------
    spool : Spool
        Where to write.
    merge : bool
        True to merge identical rows, if the first block says that it pays.
    block_rows : int
        Rows of a block; 0 for as many as `BLOCK_CELLS` allow.
    """

    def __init__(self, spool: Spool, merge: bool = False, block_rows: int = 0):
        self.spool, self.n_rows = spool, 0
        self.files: list[tuple[Path, Path]] = []
        self._held: list[tuple[Any, Array, Array | None]] = []
        self._count, self._size = 0, block_rows
        self._merger = Merger() if merge else None
        self.merged = False

    def add(self, X: Any, y: Array, w: Array | None) -> None:
        """Add rows; write a block for each that is full."""
        if not self._size:
            self._size = max(64, int(BLOCK_CELLS // max(1, row_width(X))))
        self.n_rows += len(y)
        at = 0
        while at < len(y):
            end = min(len(y), at + self._size - self._count)
            # A copy, so that what is held back does not keep the whole batch.
            own = X[at:end] if issparse(X) else smallest(X[at:end])
            self._held.append((own, y[at:end].astype(np.int64), None if w is None else w[at:end].copy()))
            self._count, at = self._count + end - at, end
            if self._count == self._size:
                self._full()

    def flush(self) -> None:
        """Write what is left."""
        if self._count:
            self._full()
        if self._merger is not None and self._merger.held is not None:
            self._write(*self._merger.held)

    def _full(self) -> None:
        X, y, w = joined_rows(self._held)
        self._held, self._count = [], 0
        if self._merger is None:
            return self._write(X, y, w)
        if not self._merger.pays(X, y):
            if self._merger.held is not None:
                self._write(*self._merger.held)
            self._merger = None
            return self._write(X, y, w)
        self.merged = True
        for block in self._merger.add(X, y, w, self._size):
            self._write(*block)
        return None

    def _write(self, X: Any, y: Array, w: Array | None) -> None:
        labels = self.spool.write((y.astype(np.min_scalar_type(int(y.max()))), w, X.shape[1]))
        self.files.append((self.spool.write(X), labels))


def smallest(X: Array) -> Array:
    """Return a copy of rows, whole numbers from 0 in the smallest dtype that holds them."""
    if X.dtype.kind in "iu" and X.size and X.min() >= 0:
        return X.astype(np.min_scalar_type(int(X.max())))
    return X.copy()


class LabelCodes:
    """Codes of labels in the order in which they are met, for classes are known only at the end."""

    def __init__(self) -> None:
        self.known: dict[Any, int] = {}
        self.values: list[Array] = []

    def codes(self, labels: Array) -> Array:
        """Return the codes of a batch of labels."""
        found, inverse = distinct_labels(labels)
        kinds = {isinstance(label, str) for label in (*list(self.known)[:1], *found[:1].tolist())}
        if len(kinds) > 1:
            raise TypeError(
                f"y has labels of several kinds, such as {next(iter(self.known))!r} and {found[0].item()!r}: "
                "make all of them strings or all numbers."
            )
        self.values.append(found)
        own = [self.known.setdefault(label, len(self.known)) for label in found.tolist()]
        return np.array(own)[inverse]

    def sorted(self) -> tuple[Array, Array]:
        """Return the sorted classes, and the index among them of each code."""
        classes = np.unique(np.concatenate(self.values))
        order = np.empty(len(classes), dtype=np.int64)
        order[[self.known[label] for label in classes.tolist()]] = np.arange(len(classes))
        return classes, order


def distinct_labels(labels: Array) -> tuple[Array, Array]:
    """Return the sorted distinct labels and the index of each; small whole numbers are not sorted."""
    if labels.dtype.kind in "iu" and labels.min() >= 0 and labels.max() < len(labels):
        seen = np.bincount(labels) > 0
        return np.flatnonzero(seen).astype(labels.dtype), (np.cumsum(seen) - 1)[labels]
    return np.unique(labels, return_inverse=True)


def encoded_batch(clf: Any, batch: RowBatch, *, reset: bool, learn: bool) -> Array:
    """Return the rows of a batch as the estimator encodes them; compare the names of its columns.

    An array has no names for scikit-learn, which would warn of that: they are set aside while it looks.
    """
    if batch.names is None or not isinstance(batch.X, np.ndarray):
        return clf._encode(batch.X, reset=reset, learn=learn)
    names = np.array(batch.names, dtype=object) if reset else fitted_names(clf, batch)
    vars(clf).pop("feature_names_in_", None)
    try:
        return clf._encode(batch.X, reset=reset, learn=learn)
    finally:
        if names is not None:
            clf.feature_names_in_ = names


def fitted_names(clf: Any, batch: RowBatch) -> Array | None:
    """Return the names of the fitted columns; refuse a batch whose columns have other names."""
    names = vars(clf).get("feature_names_in_")
    if names is not None and list(names) != list(batch.names):
        raise ValueError(
            f"The feature names should match those that were passed during fit: {list(names)[:5]}; got "
            f"{list(batch.names)[:5]}. Choose them by riskbayes.rows(columns=...)."
        )
    return names
