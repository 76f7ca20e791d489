"""The engine that reads its rows from files, block by block."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np

from riskbayes.arrays import Array
from riskbayes.engines.block_work import Total, block_of
from riskbayes.engines.blocks import BlockEngine, Work
from riskbayes.engines.memory import EncodedRows, MemoryEngine
from riskbayes.engines.parts import Batch, Part, Scaled
from riskbayes.engines.spool import Spool, read, read_ahead
from riskbayes.frames import Frame
from riskbayes.models.base import GenerativeModel


class EncodedFiles:
    """Files of the blocks as a model encoded them in a frame; they are removed with this object.

    Engines over the same rows share it. Those of folds come and go: their files must not pile up.
    """

    def __init__(self, model: GenerativeModel, frame: Frame):
        self.model, self.frame = model, frame
        self.files: list[Path] = []
        weakref.finalize(self, remove_files, self.files)


def remove_files(files: list[Path]) -> None:
    """Remove files, if they are still there."""
    for file in files:
        file.unlink(missing_ok=True)


class DiskEngine(BlockEngine):
    """Rows in the files of a spool: a few blocks are in memory at a time, one of them read ahead.

    Parameters
    ----------
    files : sequence of (path, path)
        For each block the files of its columns, and of its labels and weights.
    spool : Spool
        Where rows that a model encoded are written, so that a fit encodes them once.
    n_classes : int
        The number of classes, including those without rows.
    labels : array of int or None
        The class code of each number that stands for a label in the files; None if they are codes.
    parts : sequence of Part
        Applied to each block that is read, in turn.
    on_rows : callable, optional
        Called with the number of rows of each block that was worked on, for a progress bar.
    merged : bool
        True if identical rows were merged: then they are not split.
    """

    def __init__(
        self,
        files: Sequence[tuple[Path, Path]],
        spool: Spool,
        n_classes: int,
        labels: Array | None = None,
        parts: Sequence[Part] = (),
        on_rows: Callable[[int], None] = lambda rows: None,
        merged: bool = False,
    ):
        self.files, self.spool, self.n_classes = tuple(files), spool, n_classes
        self.labels, self.parts, self.on_rows, self.merged = labels, tuple(parts), on_rows, merged
        self._last: tuple[int, MemoryEngine] | None = None
        self._encoded: EncodedFiles | None = None

    def _part(self, part: Part) -> Self:
        if not isinstance(part, Scaled):
            self._check_single()
        parts = (*self.parts, part)
        found = type(self)(
            self.files, self.spool, self.n_classes, self.labels, parts, self.on_rows, self.merged
        )
        if isinstance(part, Scaled):  # the rows are the same
            found._encoded = self._encoded
        return found

    def _check_single(self) -> None:
        """Refuse to split rows of which each may stand for many."""
        if self.merged:
            raise ValueError(
                "Identical rows were merged, and this learner holds rows out, draws them or takes batches. "
                "Pass riskbayes.rows(merge=False)."
            )

    def batches(self, size: int, rng: np.random.Generator) -> Sequence[Batch]:
        """Return parts of about `size` rows of a block each."""
        self._check_single()
        return super().batches(size, rng)

    def _read(self, number: int, labels_only: bool = False) -> MemoryEngine:
        """Return a block with its labels as class codes, and the parts of this engine applied."""
        y, w, width = read(self.files[number][1])
        # A view of one number has the shape of the columns and takes no memory.
        X = np.broadcast_to(np.float64(0.0), (len(y), width)) if labels_only else read(self.files[number][0])
        codes = y.astype(np.int64) if self.labels is None else self.labels[y]
        block = MemoryEngine(X, codes, w, self.n_classes)
        for part in self.parts:
            block = block_of(block, number, part)
        return block

    def blocks(self, labels_only: bool = False) -> Iterator[MemoryEngine]:
        """Yield all blocks; the next one is read while one is worked on."""
        return self._in_turn(lambda number: self._read(number, labels_only), not labels_only)

    def _in_turn(self, get: Callable[[int], MemoryEngine], counted: bool = True) -> Iterator[MemoryEngine]:
        self._last = None
        for block in read_ahead(get, range(len(self.files))):
            yield block
            if counted:
                self.on_rows(block.n_rows)

    def _map(self, work: Work, labels_only: bool = False) -> list:
        return [work(block, number) for number, block in enumerate(self.blocks(labels_only))]

    def _sum(self, work: Work, model: GenerativeModel, frame: Frame, batch: Batch | None = None) -> Total:
        if batch is not None:
            return work(block_of(self._kept(batch.number), batch.number, batch), model)
        total: Any = None
        for block in self._encoded_blocks(model, frame) if model.traits.encode_copies else self.blocks():
            if block.n_rows:
                found = work(block, model)
                total = found if total is None else total.plus(found)
        return total

    def _encoded_blocks(self, model: GenerativeModel, frame: Frame) -> Iterator[MemoryEngine]:
        """Yield all blocks as the model encodes them; in the first pass they are encoded and written down."""
        known = self._encoded
        if known is not None and known.model is model and known.frame == frame:
            yield from self._in_turn(partial(self._read_encoded, known, frame))
            return
        coming = EncodedFiles(model, frame)
        for block in self.blocks():
            Z = model.encode(block._X, frame) if block.n_rows else None
            coming.files.append(self.spool.write(Z))
            block._encoded = EncodedRows(model, frame, Z)
            yield block
        self._encoded = coming

    def _read_encoded(self, known: EncodedFiles, frame: Frame, number: int) -> MemoryEngine:
        """Return a block with encoded rows in place of its columns."""
        block = self._read(number, labels_only=True)
        block._encoded = EncodedRows(known.model, frame, read(known.files[number]))
        return block

    def _kept(self, number: int) -> MemoryEngine:
        """Return a block, which is kept until another is asked for: its batches follow each other."""
        if self._last is None or self._last[0] != number:
            self._last = number, self._read(number)
        return self._last[1]
