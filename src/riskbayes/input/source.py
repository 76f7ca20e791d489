"""Where rows come from. `source_of` is the only place that asks what the user passed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils.validation import _num_samples

from riskbayes.arrays import Array
from riskbayes.engines.spool import Spool
from riskbayes.input.schema import Schema
from riskbayes.progress import RowProgress


class RowBatch(NamedTuple):
    """Some rows: an array or a table, and their labels and weights, if there are any."""

    X: Any
    y: Any = None
    w: Any = None

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return _num_samples(self.X)


class Result(NamedTuple):
    """The form of what a method returns of each row: the number of columns, None for one value; the dtype."""

    width: int | None
    dtype: np.dtype


class Source(ABC):
    """Rows that an estimator reads batch by batch.

    A subclass implements `batches`, and every estimator fits to its rows and predicts them. `fit` encodes
    them to files in a temporary folder, which it removes at its end; `predict*` yield the results of one
    batch after another.
    """

    in_memory: ClassVar[bool] = False
    """True if all rows are in memory, as one array or table."""
    n_rows: int | None = None
    """The number of rows, if it is known."""
    once: bool = False
    """True if the batches can be read only once."""
    spool: Any = None
    """The folder in which the temporary folder is made; None for that of the system."""
    merge: bool | None = None
    """True to merge identical rows; None to do so unless the learner picks rows."""
    progress: RowProgress = RowProgress(False, None)
    _spools: tuple[Spool, ...] = ()

    @abstractmethod
    def batches(self) -> Iterator[RowBatch]:
        """Yield the batches from the beginning."""

    def engine(self, reading: Any) -> Any:
        """Return an engine over the rows, as an estimator reads them."""
        return reading.on_disk(self)

    def map(self, work: Callable[[Any], Array], result: Result) -> Any:
        """Yield work(X) of each batch."""
        try:
            for batch in self.batches():
                yield work(batch.X)
                self.progress.advance(batch.n_rows)
        finally:  # also if the reader takes no more of them
            self.progress.stop()

    def new_spool(self) -> Spool:
        """Return a new temporary folder, which `close` removes."""
        self._spools = (*self._spools, Spool(self.spool))
        return self._spools[-1]

    def close(self) -> None:
        """Remove the temporary folders."""
        self.progress.stop()
        for spool in self._spools:
            spool.close()
        self._spools = ()


@dataclass(eq=False)
class ArraySource(Source):
    """Rows in memory: an array or a data frame."""

    in_memory = True
    X: Any
    y: Any = None
    w: Any = None

    def batches(self) -> Iterator[RowBatch]:
        """Yield all rows as one batch."""
        yield RowBatch(self.X, self.y, self.w)

    def engine(self, reading: Any) -> Any:
        """Return an engine over the rows in memory."""
        return reading.in_memory(self.X, self.y, self.w)

    def map(self, work: Callable[[Any], Array], result: Result) -> Any:
        """Return work(X)."""
        return work(self.X)


class EncodedSource(Source):
    """Rows that another estimator encoded, in an engine, with codes for labels."""

    def __init__(self, engine: Any):
        self._engine = engine

    def batches(self) -> Iterator[RowBatch]:
        """Refuse: the rows are in the engine."""
        raise NotImplementedError("Rows that were encoded are read by their engine.")

    def engine(self, reading: Any) -> Any:
        """Return the engine, once the estimator knows what its columns are: numbers."""
        schema = Schema.of_numbers(np.empty((0, self._engine.width)), None)
        reading.decide(replace(schema, labels=np.arange(self._engine.n_classes)))
        return self._engine
