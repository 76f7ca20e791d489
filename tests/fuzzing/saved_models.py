"""Small fitted models of every kind, found by discovery, with rows to predict, for tests of model files."""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from inspect import isclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from sklearn.base import ClassifierMixin

import riskbayes
from conftest import MODELS
from fuzzing.estimators import learner_kinds
from riskbayes import CategoricalNB, GaussianNB, GenerativeClassifier, MixedNB, ProductOfExperts, SmoothNB
from riskbayes.learners import GD, RC, RCCV

ESTIMATORS = {
    name: kind
    for name, kind in ((name, getattr(riskbayes, name)) for name in dir(riskbayes))
    if isclass(kind) and issubclass(kind, ClassifierMixin)
}
"""Every classifier of the package."""

STRATEGIES = ("auto", "single", "glass", "neighbours", "cv", "ensemble")
LABELS = np.array(["a", "b", "ç"])


@dataclass
class Fit:
    """A fitted estimator, and rows like those that it was fitted to."""

    name: str
    clf: Any
    X: Any
    y: Any


def table(kind: str, rows: int = 60, columns: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """A small table of numbers, of category codes or of counts, and its labels."""
    rng = np.random.default_rng(7)
    y = np.arange(rows) % len(LABELS)
    if kind == "categories":
        X = np.minimum(
            rng.integers(0, 3, (rows, columns)) + (rng.random((rows, columns)) < 0.3) * y[:, None], 3
        )
    elif kind == "counts":
        X = rng.poisson(rng.uniform(0.3, 2.0, (len(LABELS), columns))[y]).astype(float)
    else:
        X = rng.standard_normal((rows, columns)) + y[:, None]
    return X, LABELS[y]


def frame(rows: int = 60) -> tuple[pd.DataFrame, np.ndarray]:
    """A data frame of numbers, words, dates, times, flags and categories, with missing cells."""
    rng = np.random.default_rng(8)
    y = np.arange(rows) % len(LABELS)
    zone = "Europe/Madrid"
    found = pd.DataFrame(
        {
            "number": rng.normal(size=rows) + y,
            "word": rng.choice(["x", "y", "ż"], rows),
            "date": pd.date_range("2020-01-01", periods=rows, freq="7h"),
            "iso": [f"2021-0{1 + i % 9}-11" for i in range(rows)],
            "zoned": pd.date_range("2020-01-01", periods=rows, freq="31h", tz=zone),
            "lasts": pd.to_timedelta(np.arange(rows), unit="h"),
            "flag": rng.random(rows) > 0.5,
            "kind": pd.Categorical(rng.choice(["u", "v"], rows), categories=["u", "v", "w"]),
            "day": [datetime.date(2020, 1, 1 + i % 28) for i in range(rows)],
            "time": [datetime.time(i % 24) for i in range(rows)],
        }
    )
    found.loc[::5, ["number", "word", "date", "kind"]] = None
    return found, LABELS[y]


def tables() -> Iterator[tuple[str, Any, np.ndarray]]:
    """The same data frame in every library, and as an array of objects."""
    data, y = frame()
    yield "pandas", data, y
    yield "polars", pl.from_pandas(data), y
    yield "arrow", pl.from_pandas(data).to_arrow(), y
    yield "objects", data.to_numpy(dtype=object), y


def quick(name: str) -> Any:
    """The learner of a name, with few iterations."""
    quick_ones = {
        "rc": lambda: RC(max_iter=2, generative_weight="auto"),
        "rc_cv": lambda: RCCV(cv=2, max_iter=2, random_state=0),
        "gd": lambda: GD(max_iter=2),
    }
    return quick_ones[name]() if name in quick_ones else name


def candidates() -> Iterator[tuple[str, Any, Any, Any]]:
    """Name, estimator, rows and labels of everything that may be fitted."""
    for name, kind in ESTIMATORS.items():
        if name in ("GenerativeClassifier", "RiskBayesClassifier"):
            continue
        X, y = table(kind_of(kind))
        for learner in sorted(learner_kinds()):
            yield f"{name}, {learner}", kind(learner=quick(learner)), X, y
        tags = kind().__sklearn_tags__().input_tags
        if tags.allow_nan:
            holes = X.astype(float)
            holes[::7, 0] = np.nan
            yield f"{name}, missing", kind(learner=quick("rc")), holes, y
    for model in MODELS:
        X, y = table(model().traits.support)
        for learner in sorted(learner_kinds()):
            yield f"{model.__name__}, {learner}", GenerativeClassifier(model(), learner=quick(learner)), X, y
    for strategy in STRATEGIES:
        yield f"strategy {strategy}", riskbayes.RiskBayesClassifier(strategy, random_state=0), *table("real")
    for library, X, y in tables():
        yield f"MixedNB, {library}", MixedNB(missing="informative", learner=quick("rc")), X, y
        for strategy in STRATEGIES:
            clf = riskbayes.RiskBayesClassifier(strategy, random_state=0, time_limit=1e-9)
            yield f"strategy {strategy}, {library}", clf, X, y
    X, y = frame()
    experts = [("numbers", GaussianNB(), ["number", "lasts"]), ("words", CategoricalNB(), ["word", "kind"])]
    yield "experts with columns", ProductOfExperts(experts, learner=quick("rc")), X, y
    yield "experts", ProductOfExperts([GaussianNB(), SmoothNB()], learner=quick("rc")), *table("real")
    for kind in (riskbayes.CategoricalNB, riskbayes.TreeAugmentedNB, riskbayes.KDependenceNB):
        yield f"{kind.__name__}, words", kind(learner=quick("rc")), X[["word", "flag", "kind"]], y


def kind_of(estimator: type) -> str:
    """What the columns of an estimator are."""
    tags = estimator().__sklearn_tags__()  # type: ignore[attr-defined]
    if tags.input_tags.categorical:
        return "categories"
    counts = tags.input_tags.positive_only or estimator.__name__ == "BernoulliNB"
    return "counts" if counts else "real"


def fits(every: int = 1) -> Iterator[Fit]:
    """Each of the candidates that can be fitted, or every so many of them; learners refuse some models."""
    for number, (name, clf, X, y) in enumerate(candidates()):
        if number % every:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                clf.fit(X, y)
            except TypeError:  # the learner needs a method that the model has not
                continue
        yield Fit(name, clf, X, y)
