"""Generative classifiers trained by risk-based calibration.

"Calibration" here adjusts the statistics of the model, guided by its risk. It is not probability
calibration (Platt, isotonic).
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from riskbayes.estimators import (
        BernoulliNB,
        CategoricalNB,
        ComplementNB,
        GaussianNB,
        GenerativeClassifier,
        KDependenceNB,
        LinearDiscriminantAnalysis,
        MixedNB,
        MixtureDiscriminantAnalysis,
        MultinomialNB,
        PoissonNB,
        ProductOfExperts,
        QuadraticDiscriminantAnalysis,
        RiskBayesClassifier,
        SmoothNB,
        TreeAugmentedNB,
    )
    from riskbayes.exceptions import FlooredWarning
    from riskbayes.input.sources import Rows, rows
    from riskbayes.persistence import load

__version__ = "0.1.0.dev0"

__all__ = [
    "BernoulliNB",
    "CategoricalNB",
    "ComplementNB",
    "FlooredWarning",
    "GaussianNB",
    "GenerativeClassifier",
    "KDependenceNB",
    "LinearDiscriminantAnalysis",
    "MixedNB",
    "MixtureDiscriminantAnalysis",
    "MultinomialNB",
    "PoissonNB",
    "ProductOfExperts",
    "QuadraticDiscriminantAnalysis",
    "RiskBayesClassifier",
    "Rows",
    "SmoothNB",
    "TreeAugmentedNB",
    "__version__",
    "load",
    "rows",
]

HOMES = {
    "FlooredWarning": "riskbayes.exceptions",
    "Rows": "riskbayes.input.sources",
    "load": "riskbayes.persistence",
    "rows": "riskbayes.input.sources",
}
"""The modules of public names that are no estimators."""


def __getattr__(name: str) -> Any:
    """Import a public name, or a module of this package, when it is first used."""
    if name in __all__:
        value = getattr(import_module(HOMES.get(name, "riskbayes.estimators")), name)
    elif not name.startswith("_") and find_spec(f"riskbayes.{name}") is not None:
        value = import_module(f"riskbayes.{name}")
    else:
        raise AttributeError(f"module 'riskbayes' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


# The command imports what it needs: `riskbayes --help` should not wait for scikit-learn.
if not getattr(sys.modules.get("riskbayes_command"), "is_running", False):
    for public in __all__:
        globals()[public] = globals().get(public) or __getattr__(public)
    del public
