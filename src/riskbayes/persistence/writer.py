"""The tree of values of a model as JSON and a list of arrays.

None, booleans, whole numbers, finite floats, strings and lists are JSON's. Another value is an object of one
entry, whose key is its kind: {"tuple": [...]}, {"array": 3}, {"object": 5}. Instances of our classes, which
may be shared, are in a list of their own, each after those that it refers to.
"""

from __future__ import annotations

from dataclasses import is_dataclass
from enum import Enum
from math import isfinite
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from riskbayes.displayed import Leaderboard
from riskbayes.exceptions import ModelFileError
from riskbayes.persistence.npy import is_plain
from riskbayes.persistence.plain import KINDS
from riskbayes.persistence.registry import Classes, declared, may_have, name_of, version_of

DICTS: dict[type, str] = {dict: "dict", Leaderboard: "leaderboard"}
"""Kinds of dicts, and their names in a file."""

DROPPED = ("_callback", "_skl", "_parent_callback", "_propagated")
"""Beginnings of the names of attributes that belong to scikit-learn's callbacks, not to the model."""


class Writer:
    """Writes values; `objects` and `arrays` are what the written values refer to."""

    def __init__(self, classes: Classes):
        self.classes = classes
        self.objects: list[dict] = []
        self.arrays: list[np.ndarray] = []
        self._written: dict[int, tuple[Any, dict]] = {}
        """What stands for a value that may be shared, by its id; the value itself, so that the id stays."""

    def write(self, value: Any, path: str) -> Any:
        """Return a value as JSON; refuse one that files do not hold by its path and type."""
        kind = type(value)
        if id(value) in self._written:
            return self._written[id(value)][1]
        if value is None or kind in (bool, int, str) or (kind is float and isfinite(value)):
            return value
        if kind in (list, tuple, set, frozenset):
            return self._sequence(value, path)
        if kind in DICTS:
            return {
                DICTS[kind]: [
                    [self.write(key, f"a key of {path}"), self.write(item, f"{path}[{key!r}]")]
                    for key, item in value.items()
                ]
            }
        if isinstance(value, np.ndarray):
            return self._array(value, path)
        for name, (base, write, _) in KINDS.items():
            if isinstance(value, base):  # types that derive from it too: pandas has some
                try:
                    return {name: write(value)}
                except ModelFileError as error:
                    raise ModelFileError(f"{path} is {error}.") from None
        return self._object(value, path)

    def _sequence(self, value: Any, path: str) -> Any:
        if isinstance(value, set | frozenset):
            return {type(value).__name__: [self.write(item, path) for item in sorted(value, key=repr)]}
        found = [self.write(item, f"{path}[{i}]") for i, item in enumerate(value)]
        return found if type(value) is list else {"tuple": found}

    def _array(self, value: np.ndarray, path: str) -> dict:
        """Return where an array is written; an array of Python's objects is a list of plain values."""
        if value.dtype.kind == "O" and type(value) is np.ndarray:
            found = [self.write(item, path) for item in value.ravel().tolist()]
            node: dict = {"objects": [list(value.shape), found]}
        elif type(value) is np.ndarray and is_plain(value.dtype):
            node = {"array": len(self.arrays)}
            self.arrays.append(value)
        else:
            raise ModelFileError(f"{path} is a {type(value).__name__} of dtype {value.dtype}: {CANNOT}.")
        self._written[id(value)] = value, node
        return node

    def _object(self, value: Any, path: str) -> dict:
        """Return where an instance of a known class is written, or which member of an enumeration it is."""
        name = name_of(type(value), self.classes)
        if name is None:
            raise self._refusal(value, path)
        if isinstance(value, Enum):
            return {"enum": [name, value.name]}
        state = {
            attribute: self.write(item, f"{path}.{attribute}") for attribute, item in state_of(value).items()
        }
        odd = [attribute for attribute in state if not may_have(type(value), attribute)]
        if odd:
            raise ModelFileError(f"{path}.{odd[0]} is no attribute that {name} declares: {CANNOT}.")
        node = {"object": len(self.objects)}
        version = version_of(type(value))
        numbered = {"version": version} if version > 1 else {}
        self.objects.append({"class": name, **numbered, "state": state})
        self._written[id(value)] = value, node
        return node

    def _refusal(self, value: Any, path: str) -> ModelFileError:
        """Return the error for a value that files do not hold, with what to do about it."""
        kind = type(value)
        what = f"{path} is a {kind.__module__}.{kind.__qualname__}: {CANNOT}"
        if isinstance(value, np.random.RandomState | np.random.Generator):
            return ModelFileError(f"{what}. Pass a whole number as `random_state`, and fit again.")
        if hasattr(value, "__array_namespace__") or kind.__module__.startswith(("torch", "cupy", "jax")):
            return ModelFileError(f"{what}. Move the estimator to NumPy first.")
        if callable(value) or isinstance(value, type):
            return ModelFileError(f"{what}: loading runs no code. Use pickle for files that you trust.")
        return ModelFileError(f"{what}. If it is a class of your own, pass it: save(path, classes=[...]).")


CANNOT = "model files cannot hold it"


def state_of(value: Any) -> dict[str, Any]:
    """Return the attributes of an instance that are written: the declared ones, no derived ones."""
    kind: Any = type(value)
    if isinstance(value, BaseEstimator):
        return {name: item for name, item in vars(value).items() if not name.startswith(DROPPED)}
    if is_dataclass(kind) or isinstance(value, tuple) or not hasattr(value, "__dict__"):
        return {name: getattr(value, name) for name in declared(kind)}
    return dict(vars(value))
