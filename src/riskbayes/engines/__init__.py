"""Engines: where a scan of the data runs."""

from riskbayes.engines.base import Engine, Scan
from riskbayes.engines.memory import MemoryEngine

__all__ = ["Engine", "MemoryEngine", "Scan"]
