"""scikit-learn estimators over the models and learners."""

from riskbayes.estimators.augmented_nb import KDependenceNB, TreeAugmentedNB
from riskbayes.estimators.categorical_nb import CategoricalNB
from riskbayes.estimators.gaussian_nb import GaussianNB
from riskbayes.estimators.generative import GenerativeClassifier
from riskbayes.estimators.lda import LinearDiscriminantAnalysis
from riskbayes.estimators.mixed_nb import MixedNB
from riskbayes.estimators.mixture import MixtureDiscriminantAnalysis
from riskbayes.estimators.product_of_experts import ProductOfExperts
from riskbayes.estimators.qda import QuadraticDiscriminantAnalysis
from riskbayes.estimators.risk_bayes import RiskBayesClassifier
from riskbayes.estimators.smooth_nb import SmoothNB

__all__ = [
    "CategoricalNB",
    "GaussianNB",
    "GenerativeClassifier",
    "KDependenceNB",
    "LinearDiscriminantAnalysis",
    "MixedNB",
    "MixtureDiscriminantAnalysis",
    "ProductOfExperts",
    "QuadraticDiscriminantAnalysis",
    "RiskBayesClassifier",
    "SmoothNB",
    "TreeAugmentedNB",
]
