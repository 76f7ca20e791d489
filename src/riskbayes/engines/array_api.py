"""The rows as arrays of another library, on whatever device they are: PyTorch, CuPy, JAX."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from riskbayes.arrays import Array, namespace, sent_to, take_rows
from riskbayes.engines.memory import MemoryEngine
from riskbayes.models.base import GenerativeModel

T = TypeVar("T")


class ArrayEngine(MemoryEngine):
    """The scan where the arrays are. Chunks are large: a GPU is slow at small products.

    Parameters are those of :class:`MemoryEngine`; `Z`, `y` and `w` live on one device, and nothing but
    the risks leaves it.
    """

    chunk_cells = 2**27

    def _each(self, work: Callable[[Any, Array, Array | None], T], rows: Array | slice | None) -> Iterator[T]:
        """The work on every chunk, in their order; the device has its own threads."""
        for part in self._parts(rows):
            if isinstance(part, slice):
                yield work(self._Z[part], self._y[part], None if self._w is None else self._w[part])
            else:
                picked = sent_to(part, self._y)
                w = None if self._w is None else take_rows(self._w, picked)
                yield work(self._Z[picked], take_rows(self._y, picked), w)

    @property
    def y(self) -> Array:
        """Class codes of the rows."""
        return self._y if self._picked is None else take_rows(self._y, sent_to(self._picked, self._y))

    @property
    def w(self) -> Array | None:
        """Weights of the rows."""
        if self._w is None or self._picked is None:
            return self._w
        return take_rows(self._w, sent_to(self._picked, self._y))


def engine_for(
    model: GenerativeModel, Z: Any, y: Array, w: Array | None, n_classes: int, X: Array | None = None
) -> MemoryEngine:
    """The engine for these arrays, by their library."""
    kind = MemoryEngine if namespace(y).__name__ == "numpy" else ArrayEngine
    return kind(model, Z, y, w, n_classes, X=X)
