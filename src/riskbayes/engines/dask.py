"""The engine whose blocks are the partitions of a Dask collection, on whatever scheduler is active."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self
from uuid import uuid4

import numpy as np

from riskbayes.allocation import KeptMemory
from riskbayes.engines.block_work import Total, block_of
from riskbayes.engines.blocks import BlockEngine, Work
from riskbayes.engines.memory import EncodedRows, MemoryEngine
from riskbayes.engines.parts import Batch, Part
from riskbayes.exceptions import RowsLostError
from riskbayes.frames import Frame
from riskbayes.models.base import GenerativeModel
from riskbayes.threads import OneBlasThread

FAN_IN = 8
"""Partial sums that one task adds."""


class DaskEngine(BlockEngine):
    """Rows in the partitions of a Dask collection, which stay where they are, encoded once.

    Every scan is one graph of plain delayed tasks: the parameters as one object, a scan of each partition,
    and a tree of sums whose shape depends on the number of partitions only. So do the bits of the result. The
    driver gets one sum of the size of the statistics.

    Parameters
    ----------
    blocks : sequence of Delayed
        Each of them a :class:`MemoryEngine`; they are persisted here.
    n_classes : int
        The number of classes, including those without rows.
    """

    def __init__(self, blocks: Sequence[Any], n_classes: int):
        self.client, self.n_classes = current_client(), n_classes
        self.blocks = persisted(blocks)
        self._encoded: tuple[GenerativeModel, Frame, list[Any]] | None = None

    def _part(self, part: Part) -> Self:
        task, sent = delayed(block_of), shared(part)
        return type(self)([task(block, i, sent) for i, block in enumerate(self.blocks)], self.n_classes)

    def _map(self, work: Work, labels_only: bool = False) -> list:
        task, sent = delayed(map_delayed), shared(work)
        return list(
            computed(
                *(task(sent, block, number) for number, block in enumerate(self.blocks)), client=self.client
            )
        )

    def _sum(self, work: Work, model: GenerativeModel, frame: Frame, batch: Batch | None = None) -> Total:
        task, sent = delayed(summed_block), shared(work)
        if batch is not None:
            block = delayed(block_of)(self.blocks[batch.number], batch.number, batch)
            encoded = delayed(encoded_block)(block, model, frame)
            return computed(task(sent, encoded), client=self.client)[0]
        parts = [task(sent, block) for block in self._encoded_blocks(model, frame)]
        add = delayed(added)
        while len(parts) > 1:
            parts = [add(parts[i : i + FAN_IN]) for i in range(0, len(parts), FAN_IN)]
        return computed(parts[0], client=self.client)[0]

    def _encoded_blocks(self, model: GenerativeModel, frame: Frame) -> list[Any]:
        """Return the blocks as the model encodes them, persisted."""
        known = self._encoded
        if known is None or known[0] is not model or known[1] != frame:
            self._encoded = None  # let go of the former ones first
            task, sent = delayed(encoded_block), shared((model, frame))
            blocks = persisted([task(block, sent[0], sent[1]) for block in self.blocks])
            known = self._encoded = model, frame, blocks
        return known[2]


def map_delayed(work: Work, block: MemoryEngine, number: int) -> Any:
    """Return work(block, number), by one BLAS thread: bits do not depend on the threads of a worker."""
    with OneBlasThread(), KeptMemory():
        return work(block, number)


def encoded_block(block: MemoryEngine, model: GenerativeModel, frame: Frame) -> MemoryEngine:
    """Return a block with its rows as the model encodes them."""
    found = MemoryEngine(block._X, block._y, block._w, block.n_classes)
    if block.n_rows:
        found._encoded = EncodedRows(model, frame, model.encode(block._X, frame))
    # The columns themselves are not read any more.
    found._X = np.broadcast_to(np.float64(0.0), block._X.shape)
    return found


def summed_block(work: Work, block: MemoryEngine) -> Total | None:
    """Return work(block, model) for the model that the block was encoded by; None without rows."""
    if block._encoded is None:
        return None
    with OneBlasThread(), KeptMemory():
        return work(block, block._encoded.model)


def added(parts: list[Total | None]) -> Total | None:
    """Return the sum of totals, in their order."""
    found = None
    for part in parts:
        found = part if found is None else found if part is None else found.plus(part)
    return found


def delayed(function: Any) -> Any:
    """Return a function whose calls are tasks, each with a name of its own: arguments are not hashed."""
    from dask import delayed as make  # an optional dependency, slow to import

    task = make(function, pure=False, traverse=False)
    return lambda *args: task(*args, dask_key_name=f"riskbayes-{function.__name__}-{uuid4().hex}")


def shared(value: Any) -> Any:
    """Return a value as one node of a graph, that all tasks which read it share."""
    from dask import delayed as make  # an optional dependency, slow to import

    return make(value, name=f"riskbayes-shared-{uuid4().hex}", traverse=False)


def persisted(tasks: Sequence[Any]) -> list[Any]:
    """Return tasks whose results stay in the memory of the workers."""
    from dask import persist  # an optional dependency, slow to import

    with lost_rows(current_client()):
        return list(persist(*tasks))


def computed(*tasks: Any, client: Any = None) -> tuple:
    """Return the results of tasks; `client` is that of the cluster which holds what they read."""
    from dask import compute  # an optional dependency, slow to import

    with lost_rows(client):
        return compute(*tasks)


def current_client() -> Any:
    """Return the client of the active cluster; None if there is none."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.default_client()
    except ValueError:
        return None


@contextmanager
def lost_rows(client: Any) -> Iterator[None]:
    """Turn the loss of a cluster into a :class:`RowsLostError`; errors of the rows themselves stay."""
    lost = client is not None and client.status in ("closing", "closed")
    try:
        if lost:
            raise ConnectionError("the client is closed")
        yield
    except Exception as error:
        kinds = {f"{each.__module__.split('.')[0]} {each.__name__}" for each in type(error).__mro__}
        gone = client is not None and client.status != "running"
        if not gone and not any(k.startswith("distributed ") or "CancelledError" in k for k in kinds):
            raise
        raise RowsLostError(
            f"The Dask cluster was lost ({type(error).__name__}). Start another, and fit again; "
            "fit(checkpoint=...) goes on from the last scan."
        ) from error
