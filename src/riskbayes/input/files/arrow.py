"""pyarrow, imported when it is first used: an optional dependency, slow to import."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Module:
    """A module that is imported when something of it is asked for."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


pa, pc, pacsv, ds, pq = (
    Module(f"pyarrow{name}") for name in ("", ".compute", ".csv", ".dataset", ".parquet")
)
