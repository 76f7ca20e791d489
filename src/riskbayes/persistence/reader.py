"""Values from the tree that `writer` made. Nothing of a file is called, imported or evaluated.

Instances are made by `object.__new__`, and get attributes that their class declares, of the types that it
declares; then the class checks that they fit one another (`Loadable.check_loaded`).
"""

from __future__ import annotations

import math
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

import riskbayes.persistence.plain as plain
from riskbayes.arrays import Array
from riskbayes.displayed import Leaderboard
from riskbayes.exceptions import ModelFileError
from riskbayes.loaded import Loadable
from riskbayes.persistence.hints import fits
from riskbayes.persistence.registry import (
    Classes,
    class_of,
    declared,
    may_have,
    parameter_defaults,
    version_of,
)

MOST_DEEP = 40
"""Upper bound on the depth of a tree, through objects."""

MOST_VALUES = 2**24
"""Upper bound on the values of a tree, an object counted wherever it is referred to."""


MOST_ALIKE = 64
"""Upper bound on the keys of a file that have one hash."""

PARTS = ({"class", "state"}, {"class", "version", "state"})
"""The keys of an object; without a version it is of the first."""


class Reader:
    """Reads the objects of a description, one after the other; an object refers to earlier ones only."""

    def __init__(self, document: dict[str, Any], arrays: list[Array], classes: Classes, size: int):
        self.arrays, self.classes, self.size = arrays, classes, size
        self._found: list[tuple[Any, int, int]] = []
        """Each object with its depth and the number of its values."""
        self._alike: dict[int, set[str]] = {}
        """Texts of keys by their hash."""
        objects = document.get("objects")
        if not isinstance(objects, list):
            raise ModelFileError("it does not list its objects")
        for node in objects:
            self._values = self._deepest = 0
            value = self._instance(node)
            self._found.append((value, self._deepest, self._values))
        self._values = self._deepest = 0
        self.value = self.read(document.get("value", {"object": len(objects) - 1}))
        """What was written; in a model file the last object."""

    def read(self, node: Any, depth: int = 0) -> Any:
        """Return the value of a node."""
        self._count(1, depth)
        if type(node) is int:
            return self._hashable(node)
        if node is None or type(node) in (bool, float, str):
            return node
        if type(node) is list:
            return [self.read(item, depth + 1) for item in node]
        if type(node) is not dict or len(node) != 1:
            raise ModelFileError("a value has no kind")
        ((kind, content),) = node.items()
        if kind in plain.KINDS:
            found = plain.KINDS[kind][2](content)
            return self._hashable(found) if kind == "decimal" else found
        if kind not in KINDS:
            raise ModelFileError(f"it holds a value of the kind {kind[:40]!r}, which is not known")
        return getattr(self, f"_{kind}")(content, depth)

    def _count(self, number: int, depth: int) -> None:
        """Count values; refuse trees that are too large or too deep."""
        self._values, self._deepest = self._values + number, max(self._deepest, depth)
        if self._values > MOST_VALUES or depth > MOST_DEEP:
            raise ModelFileError("its values are too many or too deep")

    def _hashable(self, value: Any) -> Any:
        """Return a value that may be a key; refuse many of one hash, which a dict compares one by one.

        Those of strings differ from one process to the next, and those of small numbers are the numbers.
        """
        if type(value) is not str and not (type(value) is int and value.bit_length() <= 60):
            alike = self._alike.setdefault(hash(value), set())
            alike.add(repr(value))
            if len(alike) > MOST_ALIKE:
                raise ModelFileError("too many of its values have the same hash")
        return value

    def _tuple(self, content: Any, depth: int) -> tuple:
        return tuple(self._items(content, depth))

    def _set(self, content: Any, depth: int) -> set:
        return {self._hashable(item) for item in self._items(content, depth)}

    def _frozenset(self, content: Any, depth: int) -> frozenset:
        return frozenset(self._set(content, depth))

    def _items(self, content: Any, depth: int) -> list:
        if not isinstance(content, list):
            raise ModelFileError("a collection is no list")
        return [self.read(item, depth + 1) for item in content]

    def _dict(self, content: Any, depth: int) -> dict:
        pairs = self._items(content, depth)
        if not all(isinstance(item, list) and len(item) == 2 for item in pairs):
            raise ModelFileError("a dict is no list of pairs")
        return {self._hashable(key): item for key, item in pairs}

    def _leaderboard(self, content: Any, depth: int) -> Leaderboard:
        return Leaderboard(self._dict(content, depth))

    def _array(self, content: Any, depth: int) -> Array:
        return self.arrays[index_of(content, len(self.arrays))]

    def _objects(self, content: Any, depth: int) -> Array:
        """Return an array of Python's objects."""
        shape, items = plain.pair(content)
        if not isinstance(shape, list) or not all(type(n) is int and 0 <= n <= MOST_VALUES for n in shape):
            raise ModelFileError("an array of objects has no shape")
        found = self._items(items, depth)
        if len(shape) > 8 or math.prod(shape) != len(found):
            raise ModelFileError("an array of objects has another size than its shape")
        array = np.empty(len(found), dtype=object)
        for i, item in enumerate(found):
            array[i] = item
        return array.reshape(shape)

    def _enum(self, content: Any, depth: int) -> Enum:
        name, member = plain.pair(content)
        kind = class_of(name, self.classes)
        if not issubclass(kind, Enum) or member not in kind.__members__:
            raise ModelFileError(f"{str(name)[:40]} has no member {str(member)[:40]!r}")
        return kind.__members__[member]

    def _object(self, content: Any, depth: int) -> Any:
        value, deep, number = self._found[index_of(content, len(self._found))]
        self._count(number, depth + deep)
        return value

    def _instance(self, node: Any) -> Any:
        """Return an instance of a class with its attributes."""
        if type(node) is not dict or type(node.get("state")) is not dict or set(node) not in PARTS:
            raise ModelFileError("an object has no class and state")
        kind = class_of(node["class"], self.classes)
        if issubclass(kind, Enum):
            raise ModelFileError(f"{kind.__name__} has members, no instances")
        is_older = check_version(kind, node.get("version", 1)) < version_of(kind)
        if not is_older:
            check_names(kind, node["state"])  # before values are built
        state = {name: self.read(item, 1) for name, item in node["state"].items()}
        if is_older:
            state = migrated(kind, state, node.get("version", 1))
            check_names(kind, state)
        return restored(kind, state, self.size)


def check_names(kind: type, state: dict[str, Any]) -> None:
    """Refuse attributes that a class does not declare."""
    odd = [name for name in state if not may_have(kind, name)]
    if odd:
        raise ModelFileError(f"{kind.__name__} has no attribute {odd[0][:40]!r}")


def check_version(kind: type, version: Any) -> int:
    """Return the version of a class in a file; refuse one that is not known here."""
    today = version_of(kind)
    if type(version) is not int or version < 1:
        raise ModelFileError(f"{kind.__name__} has no version")
    if version > today:
        raise ModelFileError(
            f"it holds a {kind.__name__} of version {version}, and this riskbayes knows {today}: it was "
            "written by a newer one"
        )
    return version


def migrated(kind: type, state: dict[str, Any], version: int) -> dict[str, Any]:
    """Return the attributes that today's class has, from those of a file of an older version of the class."""
    try:
        return kind.migrate(state, version)  # type: ignore[attr-defined]
    except Exception as error:  # a state that no version had
        raise ModelFileError(
            f"{kind.__name__} of version {version} cannot be migrated ({error!r})"
        ) from error


def restored(kind: type, state: dict[str, Any], size: int) -> Any:
    """Return an instance with these attributes, checked; no method of it is called but `check_loaded`."""
    for name, value in state.items():
        if not fits(value, declared(kind).get(name, Any)):
            raise ModelFileError(f"{kind.__name__}.{name} is a {type(value).__name__}")
    if issubclass(kind, tuple):
        if set(state) != set(declared(kind)):
            raise ModelFileError(f"{kind.__name__} has other fields")
        return tuple.__new__(kind, [state[name] for name in declared(kind)])
    if is_dataclass(kind):
        state = {**defaults_of(kind), **state}
        missing = [name for name in declared(kind) if name not in state]
        if missing:
            raise ModelFileError(f"{kind.__name__}.{missing[0]} is missing")
    elif issubclass(kind, BaseEstimator):
        defaults = parameter_defaults(kind)  # type: ignore[arg-type]
        state = state | {name: defaults[name] for name in defaults if name not in state}
    found = object.__new__(kind)
    for name, value in state.items():
        object.__setattr__(found, name, value)
    if isinstance(found, Loadable):
        try:
            found.check_loaded(size)
        except (ModelFileError, MemoryError):
            raise
        except Exception as error:
            reason = str(error).splitlines()[0][:200].rstrip(".") if str(error) else type(error).__name__
            raise ModelFileError(f"the parts of {kind.__name__} do not fit one another ({reason})") from error
    return found


def defaults_of(kind: Any) -> dict[str, Any]:
    """Return the defaults of a dataclass: for fields that are not saved, or that older files lack."""
    found = {f.name: f.default for f in fields(kind) if f.default is not MISSING}
    made = {f.name: f.default_factory() for f in fields(kind) if f.default_factory is not MISSING}
    return found | made


def index_of(content: Any, number: int) -> int:
    """Return an index of a list of this length; refuse another value."""
    if type(content) is not int or not 0 <= content < number:
        raise ModelFileError("a value refers to what is not there, or comes later")
    return content


KINDS = ("tuple", "set", "frozenset", "dict", "leaderboard", "array", "objects", "enum", "object")
"""Kinds of values that have parts, each with the method that reads it."""
