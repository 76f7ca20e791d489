"""Generative classifiers trained by risk-based calibration.

"Calibration" here adjusts the statistics of the model, guided by its risk. It is not probability
calibration (Platt, isotonic).
"""

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
from riskbayes.saving import load
from riskbayes.sources import Rows, rows

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
