"""Compare the form of two values: their types, and the shapes of their arrays."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from riskbayes.frames import Frame


def same_form(a: Any, b: Any) -> bool:
    """True if two values have the same types, and arrays of the same shapes and dtypes, through all parts.

    Frames must be equal. None, which stands for an optional part, has the form of any value.
    """
    if a is None or b is None or a is b:
        return True
    if isinstance(a, np.ndarray | np.generic) and isinstance(b, np.ndarray | np.generic):
        return a.shape == b.shape and a.dtype == b.dtype
    if type(a) is not type(b) or (isinstance(a, Frame) and a != b):
        return False
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(same_form, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same_form(a[key], b[key]) for key in a)
    if is_dataclass(a):
        return all(same_form(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    return True
