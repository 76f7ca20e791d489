"""The rows as arrays of another library, on whatever device they are: PyTorch, CuPy, JAX."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from riskbayes.engines.memory import MemoryEngine

T = TypeVar("T")


class DeviceEngine(MemoryEngine):
    """Scans where the arrays are. Chunks are large: a GPU is slow at small products.

    Parameters are those of :class:`MemoryEngine`; `X`, `y` and `w` are on one device, and nothing but
    the risks leaves it.
    """

    chunk_cells = 2**27

    def _threads(self, work: Callable[[Any], T], parts: Sequence[Any], threaded: bool) -> Iterator[T]:
        """Apply `work` to every part; the device has its own threads."""
        return map(work, parts)
