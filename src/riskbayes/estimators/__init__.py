"""scikit-learn estimators over the models and learners."""

from riskbayes.estimators.categorical_nb import CategoricalNB
from riskbayes.estimators.gaussian_nb import GaussianNB
from riskbayes.estimators.generative import GenerativeClassifier
from riskbayes.estimators.lda import LinearDiscriminantAnalysis
from riskbayes.estimators.qda import QuadraticDiscriminantAnalysis

__all__ = [
    "CategoricalNB",
    "GaussianNB",
    "GenerativeClassifier",
    "LinearDiscriminantAnalysis",
    "QuadraticDiscriminantAnalysis",
]
