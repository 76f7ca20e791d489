"""Engines hold the rows and scan them: in memory, or on a device."""

from riskbayes.arrays import Array, namespace
from riskbayes.engines.base import Engine, Scan
from riskbayes.engines.device import DeviceEngine
from riskbayes.engines.memory import MemoryEngine

__all__ = ["DeviceEngine", "Engine", "MemoryEngine", "Scan", "engine_for"]


def engine_for(X: Array, y: Array | None, w: Array | None, n_classes: int) -> MemoryEngine:
    """Return the engine for arrays of this library."""
    kind = MemoryEngine if namespace(X).__name__ == "numpy" else DeviceEngine
    return kind(X, y, w, n_classes)
