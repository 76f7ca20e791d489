"""Memory of temporary arrays that stays with the process while rows are scanned.

glibc returns a freed array of more than some bytes to the system, and the next one of that size costs a page
fault for every 4 KiB. By itself it raises that bound to the size of the arrays in use; not so if
MALLOC_TRIM_THRESHOLD_ is set in the environment, as Dask does for its workers. A scan, which allocates some
arrays of a few MiB for each chunk, then takes twice as long.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from threading import Lock
from typing import Any

TRIM, MMAP = -1, -3
"""The parameters M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of glibc's `mallopt`."""

ENVIRONMENT = {TRIM: "MALLOC_TRIM_THRESHOLD_", MMAP: "MALLOC_MMAP_THRESHOLD_"}
USUAL = 2**17
"""What both are if they are not set."""

KEPT = {TRIM: 2**27, MMAP: 2**25}
"""What both are within :class:`KeptMemory`; glibc allows no more for the second."""


class KeptMemory:
    """Context in which freed arrays stay with the process, if the environment forbids glibc to decide.

    Contexts of several threads may overlap: the last one restores what the environment says.
    """

    users = 0
    _lock = Lock()

    def __enter__(self) -> None:
        with KeptMemory._lock:
            KeptMemory.users += 1
            if KeptMemory.users == 1:
                change(KEPT)

    def __exit__(self, *error: object) -> None:
        with KeptMemory._lock:
            KeptMemory.users -= 1
            if KeptMemory.users == 0:
                change({name: threshold(variable) for name, variable in ENVIRONMENT.items()})


def change(values: dict[int, int]) -> None:
    """Set parameters of `mallopt`, where the environment has fixed one of them."""
    if any(variable in os.environ for variable in ENVIRONMENT.values()) and mallopt() is not None:
        for name, value in values.items():
            mallopt()(name, value)


def threshold(variable: str) -> int:
    """Return a bound as the environment has it; the usual one if that is not a number."""
    found = os.environ.get(variable, "")
    return int(found) if found.isdecimal() else USUAL


@cache
def mallopt() -> Any:
    """Return glibc's `mallopt`; None with another C library."""
    try:
        return ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # TypeError: Windows
        return None
