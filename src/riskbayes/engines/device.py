"""The engine for rows in arrays of another library (PyTorch, CuPy, JAX), on any device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from riskbayes.engines.memory import MemoryEngine

T = TypeVar("T")


class DeviceEngine(MemoryEngine):
    """Scans on the device of the arrays, in large chunks, for a GPU is slow at small products.

    Parameters are those of :class:`MemoryEngine`. `X`, `y` and `w` are on one device, and only the risks
    leave it.
    """

    chunk_cells = 2**27

    def _threads(self, work: Callable[[Any], T], parts: Sequence[Any], threaded: bool) -> Iterator[T]:
        """Apply `work` to every part, one after another: the device has threads of its own."""
        return map(work, parts)
