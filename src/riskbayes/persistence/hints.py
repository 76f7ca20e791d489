"""Compare a value with a type hint: what a file says must have the types that our classes declare."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any, Union, get_args, get_origin

import numpy as np

LARGEST = int(np.finfo(np.float64).max)
"""Whole numbers beyond this cannot be converted to floats."""


def fits(value: Any, hint: Any) -> bool:
    """True if a value has the type of a hint, its items included; True for hints that are not known here."""
    if hint is Any or isinstance(hint, str):
        return True
    origin, items = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(fits(value, item) for item in items)
    if hint is None or hint is type(None):
        return value is None
    if hint is float:
        return isinstance(value, float | np.floating) or (fits(value, int) and abs(int(value)) <= LARGEST)
    if hint is int:
        return isinstance(value, int | np.integer) and not isinstance(value, bool)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        own = items[:1] * len(value) if items[1:] == (Ellipsis,) else items
        return len(value) == len(own) and all(map(fits, value, own))
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(
            fits(key, items[0]) and fits(item, items[1]) for key, item in value.items()
        )
    if origin is list:
        return isinstance(value, list) and all(fits(item, items[0]) for item in value)
    if isinstance(hint, type):
        return isinstance(value, hint)
    return True
