"""Compiled scans, for models where NumPy is not the machine's limit. All of them are optional."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def compiled(function: Callable) -> Any:
    """Return the function compiled by numba; it lets other threads run, and is kept on disk."""
    import numba  # here, so that small fits do not pay for it

    options: dict[str, Any] = {"nogil": True, "fastmath": {"contract", "reassoc", "nsz"}}
    try:
        return numba.njit(function, cache=True, **options)
    except RuntimeError:  # no folder to keep compiled code in
        return numba.njit(function, **options)
