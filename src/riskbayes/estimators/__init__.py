"""scikit-learn estimators over the models and learners."""

from riskbayes.estimators.augmented_nb import KDependenceNB, TreeAugmentedNB
from riskbayes.estimators.bernoulli_nb import BernoulliNB
from riskbayes.estimators.categorical_nb import CategoricalNB
from riskbayes.estimators.conditional_gaussian_nb import ConditionalGaussianNB
from riskbayes.estimators.gaussian_nb import GaussianNB
from riskbayes.estimators.generative import GenerativeClassifier
from riskbayes.estimators.lda import LinearDiscriminantAnalysis
from riskbayes.estimators.mixed_nb import MixedNB
from riskbayes.estimators.mixture import MixtureDiscriminantAnalysis
from riskbayes.estimators.multinomial_nb import ComplementNB, MultinomialNB
from riskbayes.estimators.poisson_nb import PoissonNB
from riskbayes.estimators.product_of_experts import ProductOfExperts
from riskbayes.estimators.qda import QuadraticDiscriminantAnalysis
from riskbayes.estimators.risk_bayes import RiskBayesClassifier
from riskbayes.estimators.smooth_nb import SmoothNB

__all__ = [
    "BernoulliNB",
    "CategoricalNB",
    "ComplementNB",
    "ConditionalGaussianNB",
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
    "SmoothNB",
    "TreeAugmentedNB",
]
