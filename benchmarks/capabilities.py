"""What each estimator can do, as a table: found by fitting it and asking.

python benchmarks/capabilities.py          # writes doc/start/which.md between its marks

An estimator is fitted to a few rows of numbers, codes or words. It takes missing cells or strings if a fit to
rows with them does not refuse; it has a method if the fitted estimator has it and it answers.
"""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import riskbayes
from riskbayes import RiskBayesClassifier
from riskbayes.estimators.classifier import BaseClassifier

PAGE = Path(__file__).parents[1] / "doc" / "start" / "which.md"
BEGIN, END = (f"<!-- {part}: made by `python benchmarks/capabilities.py` -->" for part in ("begin", "end"))

CODES = ("CategoricalNB", "TreeAugmentedNB", "KDependenceNB", "BernoulliNB")
LEFT_OUT = ("GenerativeClassifier", "RiskBayesClassifier")
"""The first can what its model can; the second is asked strategy by strategy."""


def estimators() -> dict[str, BaseClassifier]:
    """Return an instance of every public estimator, and of every strategy, by its name in the table."""
    kinds = [getattr(riskbayes, name) for name in riskbayes.__all__]
    found = {
        f'RiskBayesClassifier("{strategy}")': RiskBayesClassifier(strategy, cv=2)
        for strategy in ("ensemble", "neighbours", "glass", "single")
    }
    for kind in kinds:
        if isinstance(kind, type) and issubclass(kind, BaseClassifier) and kind.__name__ not in LEFT_OUT:
            found[kind.__name__] = kind()
    return found


def works(ask: Callable[[], Any]) -> bool:
    """True if a call is not refused; errors of another kind than refusals are raised."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ask()
    except (ValueError, TypeError, AttributeError, NotImplementedError):
        return False
    return True


def rows(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return rows that an estimator takes: codes, or else counts, which are numbers too; and labels."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=120)
    if name in CODES:
        return (rng.random((120, 4)) < 0.3 + 0.4 * y[:, None]).astype(int), y
    return rng.poisson(3 + 3 * y[:, None], size=(120, 4)).astype(float), y


def abilities(name: str, clf: BaseClassifier) -> dict[str, bool]:
    """Return what an estimator can do, by the heads of the table."""
    X, y = rows(name)
    missing = X.astype(float)
    missing[::7, 1] = np.nan
    words = pd.DataFrame({"a": np.where(X[:, 0] > 2, "high", "low"), "b": np.where(X[:, 1] > 0, "x", "z")})
    makes = type(clf)(**clf.get_params(deep=False)).fit(X, y)
    return {
        "missing cells": works(
            lambda: type(clf)(**clf.get_params(deep=False)).fit(missing, y).predict(missing)
        ),
        "strings": works(lambda: type(clf)(**clf.get_params(deep=False)).fit(words, y).predict(words)),
        "`explain`": works(lambda: makes.explain(X[:3])),
        "`sample`": works(lambda: makes.sample(3, random_state=0)),
        "`score_samples`": works(lambda: makes.score_samples(X[:3])),
        "`partial_fit`, `merge`, `forget`": hasattr(makes, "partial_fit"),
        "GPU": bool(makes.__sklearn_tags__().array_api_support),
        "ONNX": works(makes.to_onnx),
    }


def table() -> str:
    """Return the table."""
    found = {name: abilities(name, clf) for name, clf in estimators().items()}
    heads = list(next(iter(found.values())))
    lines = ["| | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    for name, able in found.items():
        lines.append(f"| `{name}` | " + " | ".join("yes" if able[head] else "" for head in heads) + " |")
    return "\n".join(lines)


def page() -> str:
    """Return the page with the table as it is now."""
    text = PAGE.read_text(encoding="utf-8")
    return f"{text[: text.index(BEGIN)]}{BEGIN}\n\n{table()}\n\n{text[text.index(END) :]}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
