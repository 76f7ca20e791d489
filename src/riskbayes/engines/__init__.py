"""Engines hold the rows and scan them: in memory, on a disk, or on Dask."""

from riskbayes.engines.base import Engine, Scan
from riskbayes.engines.memory import MemoryEngine

__all__ = ["Engine", "MemoryEngine", "Scan"]
