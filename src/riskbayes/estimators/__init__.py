"""scikit-learn estimators over the models and learners."""

from riskbayes.estimators.base import GenerativeClassifier
from riskbayes.estimators.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from riskbayes.estimators.naive_bayes import CategoricalNB, GaussianNB

__all__ = [
    "CategoricalNB",
    "GaussianNB",
    "GenerativeClassifier",
    "LinearDiscriminantAnalysis",
    "QuadraticDiscriminantAnalysis",
]
