"""Compiled scans, for models where NumPy does not use all of the machine. All of them are optional."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from riskbayes.arrays import Array

SMALLEST = 2_000_000
"""Cells of a dense table below which compiled code is not worth the time to load it."""

FEW_CLASSES = 5
"""Most classes for which the compiler is told their number and unrolls loops; longer loops use vectors."""

BLOCK = 256
"""Number of dense rows in a block."""

NO_RESIDUAL = 1e-12
"""Rows whose residuals are all below this are left out of sums of residuals."""


def is_worth_it(m: int, n: int) -> bool:
    """True if a dense table of m rows and n columns is scanned by compiled code."""
    return m * n >= SMALLEST and find_spec("numba") is not None  # the extra `fast`


def compiled(function: Callable | None = None, *, reorder: bool = True, inner: bool = False) -> Any:
    """Return the function compiled by numba, without the GIL, and cached on disk.

    `reorder` allows the compiler to add the terms of a sum in another order, so that it can use vectors.
    `inner` is for functions that compiled code alone calls: they are not made callable from Python, which
    takes as long to compile as they do.
    """
    import numba  # slow to import, and small fits do not need it

    if function is None:
        return partial(compiled, reorder=reorder, inner=inner)
    freedom = {"contract", "nsz"} | ({"reassoc"} if reorder else set())
    options: dict[str, Any] = {"nogil": True, "fastmath": freedom, "no_cfunc_wrapper": True}
    options["no_cpython_wrapper"] = inner
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
