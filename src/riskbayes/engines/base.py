"""The interface of engines: where the rows are, and how scans of them run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, Self

import numpy as np

from riskbayes.arrays import Array, sum_of
from riskbayes.frames import Frame
from riskbayes.models.base import Fitted, GenerativeModel
from riskbayes.objectives import Objective
from riskbayes.risks import Risks
from riskbayes.statistics import Statistics


class Scan(NamedTuple):
    """The result of one pass over the rows: the statistics dS of the residual, and the risks."""

    dS: Statistics | None
    """None if only risks were asked for."""
    risks: Risks


Formula = Callable[[Any, Any, int], Array]
"""formula(Z, plan, first), which `map_rows` applies to chunks Z of encoded rows; `first` is the number of
the first row."""


class Engine(ABC):
    """Base class of engines: rows with labels and weights, which are split, scanned and summed here.

    An engine holds no model, and does not give out vectors of labels or weights: rows may be on a disk or a
    cluster. The four abstract methods are enough for RC. A learner that needs another method gets a
    NotImplementedError that names it.
    """

    n_rows: int
    n_classes: int
    rows: Array | None = None
    """The encoded rows, if they are in memory."""

    @property
    @abstractmethod
    def masses(self) -> Array:
        """The weight of each class."""

    @abstractmethod
    def learn(self, model: GenerativeModel) -> Frame:
        """Return what the model learns from these rows before the loop."""

    @abstractmethod
    def statistics(self, model: GenerativeModel, frame: Frame) -> Statistics:
        """Return s(X, Y), measured in the frame, of the labelled and weighted rows."""

    @abstractmethod
    def scan(self, fitted: Fitted, objective: Objective, part: Any = None, risks_only: bool = False) -> Scan:
        """Scan all rows, or a part that `batches` returned: posteriors, risks, statistics of the residual."""

    @property
    def mass(self) -> float:
        """The weight of all rows."""
        return float(sum_of(self.masses))

    def map_rows(self, path: Sequence[Fitted], formula: Formula) -> list[Array]:
        """Return formula(rows) for each fitted model of a path; the models share a frame."""
        raise self._cannot("return results row by row")

    def class_counts(self) -> Array:
        """Return how many rows of positive weight each class has."""
        raise self._cannot("count the rows of each class")

    def folds(self, n_folds: int, random_state: Any) -> Iterator[tuple[Self, Self]]:
        """Yield engines over the kept rows and over the held-out rows, fold after fold.

        Folds are stratified by class; rows of weight zero are in none of them.
        """
        raise self._cannot("make folds")

    def hold_out(self, size: int, random: np.random.RandomState) -> tuple[Self, Self]:
        """Return engines over the kept rows and over `size` rows that are held out, stratified by class."""
        raise self._cannot("hold rows out")

    def scaled(self, factor: float) -> Self:
        """Return an engine over the same rows, with weights multiplied by a factor."""
        raise self._cannot("scale its weights")

    def thinned(self, size: int) -> Self:
        """Return an engine over at most `size` rows, evenly spaced, as often as their weights ask for."""
        raise self._cannot("pick rows")

    def bootstrap(self, random: np.random.RandomState) -> Self:
        """Return an engine over a sample of the rows, drawn with replacement."""
        raise self._cannot("draw a bootstrap sample")

    def batches(self, size: int, rng: np.random.Generator) -> Sequence[Any]:
        """Return random parts of about `size` rows for `scan`; each row is in one of them."""
        raise self._cannot("scan batches")

    def one_by_one(
        self, model: GenerativeModel, frame: Frame, random: np.random.RandomState | None
    ) -> Iterator[tuple[Any, Array, Any]]:
        """Yield each row as (encoded row, class code, weight), in random order if `random` is given."""
        raise self._cannot("go row by row")

    def one_blas_thread(self) -> AbstractContextManager:
        """Return the context of work on these rows: BLAS uses one thread if its products are small.

        By default it keeps its threads: what scans rows elsewhere sets its own.
        """
        return nullcontext()

    def fingerprint(self) -> str:
        """Return a digest of the rows, labels and weights, by which a checkpoint knows them again."""
        raise self._cannot("tell its rows from others, which a checkpoint needs")

    def _cannot(self, what: str) -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__} cannot {what}.")
