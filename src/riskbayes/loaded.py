"""What the classes of this package promise of instances that come from a model file.

A file may be written by anyone. Before a value of it is used, it must be proved that its parts fit one
another wherever a wrong part would be read by compiled code, which does not check bounds, or by a loop that
might not end. Other contradictions raise ordinary errors where they are used.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from riskbayes.arrays import Array


@runtime_checkable
class Loadable(Protocol):
    """What model files hold and what is to be checked, or completed, after it is loaded."""

    def check_loaded(self, size: int) -> None:
        """Raise a ValueError if the attributes from a file contradict each other; derive the others.

        Attributes have the types that they are declared with when this is called. `size` is that of the file
        in bytes: what is derived must not be larger than a few times that.
        """


def require(holds: Any, what: str) -> None:
    """Raise a ValueError that says what does not fit, unless it holds."""
    if not holds:
        raise ValueError(what)


def require_shape(array: Array, shape: tuple[int, ...], kinds: str, name: str) -> None:
    """Raise a ValueError unless an array has this shape, and a dtype of one of these kinds."""
    require(
        isinstance(array, np.ndarray) and array.shape == shape and array.dtype.kind in kinds,
        f"{name} has the shape {np.shape(array)}, where {shape} is needed",
    )
