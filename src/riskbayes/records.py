"""Values as bytes that are read back without running code: JSON, and the arrays in NumPy's own format.

What is kept are plain values, arrays, and the values that scans return and models learn: risks, statistics,
frames and the parts of frames. They may refer to each other in a circle, as a frame does whose parameters
know their frame. A class is looked up by its name among those that are loaded, and must be one of these;
nothing is imported. What is read takes no more memory than a few times its bytes.
"""

from __future__ import annotations

import json
import math
import struct
import sys
from dataclasses import is_dataclass
from functools import cached_property
from io import BytesIO
from typing import Any

import numpy as np

from riskbayes.frames import Frame
from riskbayes.models.base import GenerativeModel
from riskbayes.risks import Risks
from riskbayes.statistics import Statistics

LENGTH = struct.Struct("<Q")
PLAIN = (str, bool, int, float, type(None))


class NotKeptError(TypeError):
    """A value is of a class that is not kept."""


def packed(value: Any) -> bytes:
    """Return a value as bytes; raise a NotKeptError for one that cannot be kept.

    Examples
    --------
    >>> from riskbayes.records import packed, unpacked
    >>> unpacked(packed({"scan": (1, [2.5, None])}))
    {'scan': (1, [2.5, None])}
    """
    writer = Writer()
    tree = json.dumps(writer.tree(value)).encode()
    return LENGTH.pack(len(tree)) + tree + writer.arrays.getvalue()


def unpacked(record: bytes) -> Any:
    """Return the value of `packed`; raise a ValueError for bytes that are not its own."""
    (length,) = LENGTH.unpack_from(record)
    arrays = BytesIO(record[LENGTH.size + length :])
    return Reader(arrays).value(json.loads(record[LENGTH.size : LENGTH.size + length]))


class Writer:
    """Turns values into a tree for JSON: a list is [kind, ...], all else stands for itself."""

    def __init__(self) -> None:
        self.arrays = BytesIO()
        self._numbers: dict[int, int] = {}
        self._held: list[Any] = []  # so that no id is used twice

    def tree(self, value: Any) -> Any:
        """Return the tree of a value."""
        kind = type(value)
        if kind in PLAIN:
            return value
        if kind in (tuple, list):
            return [kind.__name__, *map(self.tree, value)]
        if kind is dict:
            return ["dict", *([self.tree(key), self.tree(each)] for key, each in value.items())]
        if isinstance(value, np.generic):
            return ["scalar", self.tree(np.asarray(value))]
        if isinstance(value, np.dtype):
            return ["dtype", value.str]
        if id(value) in self._numbers:
            return ["same", self._numbers[id(value)]]
        self._numbers[id(value)] = len(self._held)
        self._held.append(value)
        if kind is np.ndarray:
            return self._array(value)
        if kind is Statistics:
            return ["statistics", self.tree(dict(value)), self.tree(value.frame)]
        name = f"{kind.__module__}:{kind.__qualname__}"
        if class_of(name) is not kind:
            raise NotKeptError(f"A value of {name} cannot be kept in a file.")
        if isinstance(value, tuple):
            return ["named", name, *map(self.tree, value)]
        return ["object", name, self.tree(state_of(value))]

    def _array(self, value: Any) -> list[Any]:
        if value.dtype == object:
            return ["objects", list(value.shape), *map(self.tree, value.ravel().tolist())]
        np.lib.format.write_array(self.arrays, value, allow_pickle=False)
        return ["array"]


class Reader:
    """Turns trees into values; arrays are read in the order in which they were written, and are read-only."""

    def __init__(self, arrays: BytesIO):
        self._arrays = arrays
        self._known: list[Any] = []

    def value(self, tree: Any) -> Any:
        """Return the value of a tree."""
        if not isinstance(tree, list):
            return tree
        kind, *rest = tree
        if kind not in READERS:
            raise ValueError(f"A record has a value of the unknown kind {kind!r}.")
        return getattr(self, f"_{kind}")(*rest)

    def _tuple(self, *trees: Any) -> tuple:
        return tuple(map(self.value, trees))

    def _list(self, *trees: Any) -> list:
        return list(map(self.value, trees))

    def _dict(self, *pairs: Any) -> dict:
        return {self.value(key): self.value(each) for key, each in pairs}

    def _scalar(self, tree: Any) -> Any:
        return self.value(tree)[()]

    def _dtype(self, name: str) -> np.dtype:
        return np.dtype(name)

    def _same(self, number: int) -> Any:
        return self._known[number]

    def _array(self) -> Any:
        """Return the next array; its shape is compared with the bytes that are left before it is made."""
        if np.lib.format.read_magic(self._arrays) != (1, 0):
            raise ValueError("A record has an array of another version.")
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(self._arrays)
        size = math.prod(shape) * dtype.itemsize
        left = self._arrays.getbuffer().nbytes - self._arrays.tell()
        if size > left or dtype.hasobject or not dtype.itemsize:
            raise ValueError(f"A record has an array of shape {shape} and dtype {dtype} without its bytes.")
        flat = np.frombuffer(self._arrays.read(size), dtype).copy()  # aligned, as compiled scans need it
        found = flat.reshape(shape, order="F" if fortran else "C")
        found.setflags(write=False)
        self._known.append(found)
        return found

    def _objects(self, shape: list[int], *trees: Any) -> Any:
        if math.prod(shape) != len(trees):
            raise ValueError(f"A record has an array of shape {shape} with {len(trees)} values.")
        found = np.empty(shape, dtype=object)
        self._known.append(found)
        flat = found.reshape(-1)
        for i, tree in enumerate(trees):
            flat[i] = self.value(tree)
        return found

    def _statistics(self, arrays: Any, frame: Any) -> Statistics:
        number = len(self._known)
        self._known.append(None)  # nothing refers to statistics from within
        self._known[number] = Statistics(self.value(arrays), self.value(frame))
        return self._known[number]

    def _named(self, name: str, *trees: Any) -> Any:
        number = len(self._known)
        self._known.append(None)
        self._known[number] = tuple.__new__(loaded_class(name), map(self.value, trees))
        return self._known[number]

    def _object(self, name: str, state: Any) -> Any:
        kind = loaded_class(name)
        found: Any = object.__new__(kind)
        self._known.append(found)
        values = self.value(state)
        if hasattr(kind, "__setstate__"):
            found.__setstate__(values)
        else:
            vars(found).update(values or {})
        return found


READERS = {name[1:] for name in vars(Reader) if name.startswith("_") and not name.startswith("__")}


def state_of(value: Any) -> Any:
    """Return the attributes of an object by name, but for cached properties, which are computed again."""
    state = value.__getstate__()
    if not isinstance(state, dict):
        return state
    kind = type(value)
    return {k: each for k, each in state.items() if not isinstance(getattr(kind, k, None), cached_property)}


def class_of(name: str) -> type | None:
    """Return a loaded class of values by its name: a frame, a part of the frames of our models, or risks."""
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, type):
        return None
    is_value = is_dataclass(found) or (issubclass(found, tuple) and hasattr(found, "_fields"))
    is_part = found.__module__.startswith("riskbayes.models.") and not issubclass(found, GenerativeModel)
    return found if issubclass(found, Frame | Risks) or (is_value and is_part) else None


def loaded_class(name: str) -> type:
    """Return the class of a record; raise an error if there is none."""
    found = class_of(name)
    if found is None:
        raise ValueError(f"A record has a value of {name!r}, which is no class of values here.")
    return found
