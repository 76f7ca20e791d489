"""Compiled scans, for models where NumPy does not use all of the machine. All of them are optional."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from riskbayes.arrays import Array

FEW_CLASSES = 5
"""Most classes for which the compiler is told their number and unrolls loops; longer loops use vectors."""


NO_RESIDUAL = 1e-12
"""Rows whose residuals are all below this are left out of sums of residuals."""


def compiled(function: Callable | None = None, *, reorder: bool = True) -> Any:
    """Return the function compiled by numba, without the GIL, and cached on disk.

    `reorder` allows the compiler to add the terms of a sum in another order, so that it can use vectors.
    """
    import numba  # slow to import, and small fits do not need it

    if function is None:
        return partial(compiled, reorder=reorder)
    freedom = {"contract", "nsz"} | ({"reassoc"} if reorder else set())
    options: dict[str, Any] = {"nogil": True, "fastmath": freedom}
    try:
        return numba.njit(function, cache=True, **options)
    except RuntimeError:  # no folder to cache compiled code in
        return numba.njit(function, **options)


def known(n_classes: int) -> tuple[int, ...]:
    """Return a tuple whose length tells the compiler the number of classes; an empty one for many."""
    return (0,) * n_classes if n_classes <= FEW_CLASSES else ()


def readonly(A: Array, dtype: Any = np.float64) -> Array:
    """Return a contiguous, read-only view, so that functions are compiled for one type of array only."""
    A = np.ascontiguousarray(A, dtype).view()
    A.flags.writeable = False
    return A
