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
        ConditionalGaussianNB,
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
    "ConditionalGaussianNB",
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
    """Import a module of this package, or all public names, when one is first used: that takes a while."""
    import sys
    from importlib import import_module
    from importlib.util import find_spec

    module = f"riskbayes.{name}"
    if module in sys.modules:
        return sys.modules[module]
    if name not in __all__ and (name.startswith("_") or find_spec(module) is None):
        raise AttributeError(f"module 'riskbayes' has no attribute {name!r}")
    homes = [vars(import_module(f"riskbayes.{home}")) for home in _HOMES]
    found = {own: home[own] for own in __all__ for home in homes if own in home}
    globals().update(found)
    return found[name] if name in found else import_module(module)


def __dir__() -> list[str]:
    return sorted(__all__)


_HOMES = ("estimators", "exceptions", "input.sources", "learners", "persistence")
"""The modules of public names."""
