"""The closed list of classes that model files may hold, and which attributes their instances have.

It is found, not written: the dataclasses, named tuples, estimators, learners, objectives and enumerations of
this package, by name. Of other packages it has the few classes that parameters of our estimators are made of.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, ClassVar, get_origin, get_type_hints

import narwhals as nw
import numpy as np
from sklearn.base import BaseEstimator

from riskbayes.exceptions import ModelFileError
from riskbayes.loaded import Loadable
from riskbayes.objectives import Objective
from riskbayes.task import Status

PACKAGES = ("estimators", "learners", "models", "preprocessing")
MODULES = ("engines.base", "frames", "objectives", "risks", "statistics")
"""Packages and modules of riskbayes whose classes files may hold."""

COVARIANCES = ("EmpiricalCovariance", "LedoitWolf", "OAS", "ShrunkCovariance")
SPLITTERS = (
    *("GroupKFold", "KFold", "ShuffleSplit", "StratifiedGroupKFold", "StratifiedKFold"),
    *("StratifiedShuffleSplit", "TimeSeriesSplit"),
)
FOREIGN = {
    **dict.fromkeys(COVARIANCES, "sklearn.covariance"),
    **dict.fromkeys(SPLITTERS, "sklearn.model_selection"),
}
"""scikit-learn's classes that files may hold, by module: values of `covariance_estimator` and of `cv`."""

ENUMERATIONS: dict[str, type[Enum]] = {"Implementation": nw.Implementation, "Status": Status}
"""Enumerations that files may hold: the library of a data frame, and how a fit ended."""

Classes = Mapping[str, type]


@cache
def own_classes() -> dict[str, type]:
    """Return the classes of this package that files may hold, by name."""
    names = [f"riskbayes.{name}" for name in MODULES]
    for package in PACKAGES:
        room = importlib.import_module(f"riskbayes.{package}")
        names += [found.name for found in pkgutil.iter_modules(room.__path__, f"{room.__name__}.")]
    found: dict[str, type] = {}
    for name in names:
        for kind in vars(importlib.import_module(name)).values():
            if isinstance(kind, type) and kind.__module__ == name and is_value(kind):
                if kind.__name__ in found:
                    raise RuntimeError(f"Two classes have the name {kind.__name__}; files need one.")
                found[kind.__name__] = kind
    return found


def is_value(kind: type) -> bool:
    """True for a class whose instances are plain values: they have declared attributes and nothing else."""
    return (
        is_dataclass(kind)
        or issubclass(kind, BaseEstimator | Objective | Loadable)
        or (issubclass(kind, tuple) and hasattr(kind, "_fields"))
    )


def with_own(classes: Iterable[type]) -> dict[str, type]:
    """Return the classes of this package and those of the user, by name."""
    found = dict(own_classes())
    for kind in classes:
        if not isinstance(kind, type):
            raise TypeError(f"classes are classes, such as MyModel; got {kind!r}.")
        if found.get(kind.__name__, kind) is not kind or kind.__name__ in FOREIGN:
            raise ValueError(f"The name {kind.__name__} is taken by a class of riskbayes: rename yours.")
        found[kind.__name__] = kind
    return found


def name_of(kind: type, classes: Classes) -> str | None:
    """Return the name of a class in files; None if files do not hold its instances."""
    name = kind.__name__
    if classes.get(name) is kind or ENUMERATIONS.get(name) is kind:
        return name
    return name if name in FOREIGN and kind.__module__.startswith(f"{FOREIGN[name]}.") else None


def class_of(name: Any, classes: Classes) -> type:
    """Return the class of a name in a file; nothing is imported but for the few names in `FOREIGN`."""
    if isinstance(name, str):
        if name in classes:
            return classes[name]
        if name in ENUMERATIONS:
            return ENUMERATIONS[name]
        if name in FOREIGN:
            return getattr(importlib.import_module(FOREIGN[name]), name)
    raise ModelFileError(
        f"it names the class {str(name)[:80]!r}, which files of riskbayes do not hold; if it is a model of "
        "your own, pass it: load(path, classes=[...])"
    )


def version_of(kind: type) -> int:
    """Return the version of a class in files: its `saved_version`, or 1.

    A class whose attributes get other names or another meaning raises it, and has a static method `migrate`,
    which takes the attributes that an older file has and the version of that file, and returns today's. An
    attribute that is only added needs neither, if it has a default.
    """
    return getattr(kind, "saved_version", 1)


@cache
def declared(kind: type) -> dict[str, Any]:
    """Return the declared attributes of instances, with their types; arrays are NumPy's in files."""
    if kind.__name__ in FOREIGN and not kind.__module__.startswith("riskbayes."):
        return dict.fromkeys(vars(kind()), Any)
    hints = get_type_hints(kind, localns={"Array": np.ndarray | np.generic})
    found = {name: hint for name, hint in hints.items() if ClassVar not in (hint, get_origin(hint))}
    if is_dataclass(kind):
        return {f.name: found[f.name] for f in fields(kind)}
    if issubclass(kind, BaseEstimator) or not issubclass(kind, tuple | Loadable):
        arguments = inspect.signature(kind).parameters.values()
        found |= {p.name: Any for p in arguments if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
    return found


@cache
def parameter_defaults(kind: type) -> dict[str, Any]:
    """Return the defaults of an estimator's parameters, for those that older files lack."""
    arguments = inspect.signature(kind).parameters.values()
    return {p.name: p.default for p in arguments if p.default is not p.empty}


def may_have(kind: type, name: str) -> bool:
    """True if instances of the class may have an attribute of this name.

    Those of estimators may also have fitted ones, whose names end in an underscore, unless the class has a
    method or property of that name.
    """
    if name in declared(kind):
        return True
    fitted = name.endswith("_") and not name.startswith("_") and name.isidentifier()
    return issubclass(kind, BaseEstimator) and fitted and not hasattr(kind, name)
