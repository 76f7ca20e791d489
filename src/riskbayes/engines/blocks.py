"""The base class of engines whose rows are in blocks, each of which fits into memory where it is scanned.

A block is a :class:`MemoryEngine` while it is worked on, so that its scan is that of rows in memory. What a
block returns is as small as the statistics, or as a sample.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from hashlib import blake2b
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from riskbayes.arrays import Array
from riskbayes.engines.base import Engine, Formula, Scan
from riskbayes.engines.block_work import (
    Summary,
    Total,
    count,
    digest_of,
    join_arrays,
    join_rows,
    map_block,
    pick,
    range_of,
    sample_block,
    scan_block,
    summary_of,
)
from riskbayes.engines.memory import MemoryEngine
from riskbayes.engines.parts import Batch, Chosen, Drawn, Fold, Part, Scaled, Thinned, allotted
from riskbayes.frames import Frame
from riskbayes.models.base import Fitted, GenerativeModel, Sample
from riskbayes.objectives import Objective
from riskbayes.statistics import Statistics

SAMPLE_ROWS, SAMPLE_CELLS = 2**17, 2**23
"""Most rows, and most cells, of the sample that a model learns its frame from."""

LEAST_OF_A_CLASS = 64
"""Rows of each class in that sample, if the class has so many."""


Work = Callable[..., Any]
"""work(block, ...): a function of a module, or a partial one, so that it can be sent to a block."""


class BlockEngine(Engine):
    """Rows in blocks.

    A subclass writes `_map`, `_sum` and `_part`. Folds, held rows and draws are stratified, and each
    is a small value (see :mod:`riskbayes.engines.parts`).
    """

    sample_rows: int | None = None
    """Most rows of the sample that a model learns from; None for as many as `SAMPLE_CELLS` allow."""

    @abstractmethod
    def _map(self, work: Work, labels_only: bool = False) -> list:
        """Return work(block, number) of all blocks; with `labels_only` blocks need no columns."""

    @abstractmethod
    def _sum(self, work: Work, model: GenerativeModel, frame: Frame, batch: Batch | None = None) -> Total:
        """Return the sum of work(block, model) over all blocks, or for the rows of one batch."""

    @abstractmethod
    def _part(self, part: Part) -> Self:
        """Return an engine over a part of these rows."""

    @cached_property
    def _summaries(self) -> list[Summary]:
        return self._map(summary_of, labels_only=True)

    def _by_block(self, name: str) -> Array:
        """Return an entry of the summaries of all blocks as an array."""
        return np.array([getattr(summary, name) for summary in self._summaries])

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        """The number of rows."""
        return int(self._by_block("rows").sum())

    @property
    def masses(self) -> Array:
        """The weight of each class."""
        return self._by_block("masses").sum(axis=0)

    def class_counts(self) -> Array:
        """Return how many rows of positive weight each class has."""
        return self._by_block("weighted").sum(axis=0)

    @property
    def width(self) -> int:
        """The number of encoded columns."""
        return int(self._by_block("width").max())

    def extremes(self) -> Array:
        """Return rows with the least, the largest and some other values of every column: all that its range
        and its typical values are judged by.
        """
        found = self._map(range_of)
        low, high = (
            reduce([pair[i] for pair in found], axis=0)
            for i, reduce in enumerate((np.fmin.reduce, np.fmax.reduce))
        )
        return np.concatenate([np.stack([low, high]), self.thinned(1024)._X])

    def weighted(self, by_class: Array) -> Self:
        """Return an engine over the same rows, with weights multiplied by one of their class."""
        return self._part(Scaled(by_class=by_class))

    def fingerprint(self) -> str:
        """Return a digest of the rows, labels and weights, block after block."""
        found = self._map(digest_of)
        return blake2b("".join(found).encode(), digest_size=16).hexdigest()

    def learn(self, model: GenerativeModel) -> Frame:
        """Return the frame that the model learns from a sample of the rows, and from all categories.

        The sample is all rows if they are few; otherwise rows spread evenly over blocks and classes, with
        rows of every class and of every column that has missing cells.
        """
        if model.implements("learn_own"):
            raise TypeError(
                f"{type(model).__name__} compares rows with all training rows, and {type(self).__name__} "
                "reads them block by block. Fit it to an array in memory, or choose another model."
            )
        counts = self._by_block("counts")
        most, sizes = self._most_sampled(), counts
        if counts.sum() > most:
            sizes = allotted(counts, most)
            for k in np.flatnonzero(sizes.sum(axis=0) < LEAST_OF_A_CLASS).tolist():
                sizes[:, k] = allotted(counts[:, k], min(LEAST_OF_A_CLASS, counts[:, k].sum()))
        found = self._map(partial(sample_block, sizes=sizes))
        X, y, w = join_rows([each[:3] for each in found])
        largest = None
        if counts.sum() > most:
            largest = np.fmax.reduce([each[3] for each in found], axis=0)
        return model.learn(Sample(X, y, w, self.n_classes, largest))

    def _most_sampled(self) -> int:
        if self.sample_rows is not None:
            return self.sample_rows
        width = max(1, self._by_block("width").max(initial=1))
        return int(min(SAMPLE_ROWS, max(SAMPLE_CELLS // width, 1024)))

    def statistics(self, model: GenerativeModel, frame: Frame) -> Statistics:
        """Return s(X, Y), the statistics of the labels."""
        total = self._sum(partial(count, frame=frame), model, frame)
        assert total.arrays is not None
        return Statistics(total.arrays, frame)

    def scan(self, fitted: Fitted, objective: Objective, part: Any = None, risks_only: bool = False) -> Scan:
        """Return dS and the risks of all rows, or of a batch, in one pass over the blocks."""
        model, S, theta = fitted
        work = partial(scan_block, S=S, theta=theta, objective=objective, risks_only=risks_only)
        total = self._sum(work, model, S.frame, part)
        return Scan(None if total.arrays is None else Statistics(total.arrays, S.frame), total.risks)

    def map_rows(self, path: Sequence[Fitted], formula: Formula) -> list[Array]:
        """Apply a formula to all rows for each model of `path`; its results must fit into memory."""
        firsts = np.concatenate([[0], np.cumsum(self._by_block("rows"))])
        found = self._map(partial(map_block, path=list(path), formula=formula, firsts=firsts))
        return [np.concatenate(results) for results in zip(*filter(None, found), strict=True)]

    def folds(self, n_folds: int, random_state: Any) -> Iterator[tuple[Self, Self]]:
        """Yield, for each fold, engines over the training and over the held-out rows."""
        random, counts = check_random_state(random_state), self._by_block("weighted")
        first, seed = random.randint(n_folds, size=self.n_classes), random.randint(2**31)
        before = np.cumsum(counts, axis=0) - counts + first
        for fold in range(n_folds):
            held = Fold(before, fold, n_folds, seed)
            yield self._part(Fold(before, fold, n_folds, seed, others=True)), self._part(held)

    def hold_out(self, size: int, random: np.random.RandomState) -> tuple[Self, Self]:
        """Return engines over the training and over the held-out rows."""
        counts, seed = self._by_block("weighted"), random.randint(2**31)
        each = held_of_classes(counts.sum(axis=0), size)
        sizes = np.stack([allotted(counts[:, k], each[k]) for k in range(self.n_classes)], axis=1)
        return self._part(Chosen(sizes, seed, others=True)), self._part(Chosen(sizes, seed))

    def scaled(self, factor: float) -> Self:
        """Return an engine over the same rows, with weights multiplied by a factor."""
        return self._part(Scaled(factor))

    def thinned(self, size: int) -> MemoryEngine:  # type: ignore[override]
        """Return an engine in memory over rows at evenly spaced shares of the total weight."""
        before = np.concatenate([[0.0], np.cumsum(self._by_block("masses").sum(axis=1))])
        found = self._map(partial(pick, part=Thinned(before, min(size, self.n_rows))))
        X, y = (join_arrays([each[i] for each in found]) for i in range(2))
        return MemoryEngine(X, y, None, self.n_classes)

    def bootstrap(self, random: np.random.RandomState) -> Self:
        """Return an engine over the same rows, weighted by how often each was drawn with replacement."""
        rows = self._by_block("rows")
        drawn = random.multinomial(rows.sum(), rows / rows.sum())
        return self._part(Drawn(drawn, random.randint(2**31)))

    def batches(self, size: int, rng: np.random.Generator) -> Sequence[Batch]:
        """Return parts of about `size` rows of a block each, block after block in random order.

        A batch of rows from all blocks would read all blocks.
        """
        seed, rows = int(rng.integers(2**31)), self._by_block("rows")
        found = []
        for number in rng.permutation(len(rows)).tolist():
            shares = max(1, round(rows[number] / size))
            found += [Batch(number, share, shares, seed) for share in range(shares) if rows[number]]
        return found


def held_of_classes(counts: Array, size: int) -> Array:
    """Return how many rows of each class to hold out: in proportion, one at least, and one is kept."""
    share = size * counts / counts.sum()
    number = np.clip(np.floor(share), 1, counts - 1).astype(np.int64)
    while number.sum() != size:
        short = number.sum() < size
        room = number < counts - 1 if short else number > 1
        off = np.where(room, share - number if short else number - share, -np.inf)
        number[int(np.argmax(off))] += 1 if short else -1
    return number
