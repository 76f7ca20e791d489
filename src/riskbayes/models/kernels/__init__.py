"""Compiled scans, for models where NumPy is not the machine's limit. All of them are optional."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from riskbayes.arrays import Array

FEW_CLASSES = 5
"""Up to so many classes their number is known to the compiler; loops over more are made of vectors."""


def compiled(function: Callable) -> Any:
    """Return the function compiled by numba; it lets other threads run, and is kept on disk."""
    import numba  # here, so that small fits do not pay for it

    options: dict[str, Any] = {"nogil": True, "fastmath": {"contract", "reassoc", "nsz"}}
    try:
        return numba.njit(function, cache=True, **options)
    except RuntimeError:  # no folder to keep compiled code in
        return numba.njit(function, **options)


def known(n_classes: int) -> tuple[int, ...]:
    """Return a tuple whose length tells the compiler the number of classes; an empty one for many."""
    return (0,) * n_classes if n_classes <= FEW_CLASSES else ()


def readonly(A: Array, dtype: Any = np.float64) -> Array:
    """Return a view that is contiguous and not writeable, so that code is compiled for one kind of array."""
    A = np.ascontiguousarray(A, dtype).view()
    A.flags.writeable = False
    return A
