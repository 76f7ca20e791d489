"""Generative classifiers trained by risk-based calibration.

"Calibration" here adjusts the statistics of the model, guided by its risk. It is not probability
calibration (Platt, isotonic).
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

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
    from riskbayes.learners import DFE, GD, RC, RCCV, TM, ClosedForm
    from riskbayes.persistence import load

__version__ = "0.1.0.dev0"

__all__ = [
    "DFE",
    "GD",
    "RC",
    "RCCV",
    "TM",
    "BernoulliNB",
    "CategoricalNB",
    "ClosedForm",
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


def __getattr__(name: str) -> "Any":
    """Import a public name, or a module of this package, when it is first used: all of them take a while."""
    from importlib import import_module
    from importlib.util import find_spec

    if name in __all__:
        learners = ("ClosedForm", "DFE", "GD", "RC", "RCCV", "TM")
        homes = {
            "FlooredWarning": "exceptions",
            "load": "persistence",
            "rows": "input.sources",
            "Rows": "input.sources",
        }
        home = homes.get(name, "learners" if name in learners else "estimators")
        value = getattr(import_module(f"riskbayes.{home}"), name)
    elif not name.startswith("_") and find_spec(f"riskbayes.{name}") is not None:
        value = import_module(f"riskbayes.{name}")
    else:
        raise AttributeError(f"module 'riskbayes' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
