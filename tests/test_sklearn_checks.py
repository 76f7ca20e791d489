"""scikit-learn's own checks, for every estimator, by closed form and by RC."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from riskbayes import (
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
from riskbayes.models import QDAModel
from riskbayes.preprocessing import KMeansBins

# The checks fit constant columns and classes of one row, which are floored with a warning, and
# hand real numbers to CategoricalNB, which cuts them down with a warning.
pytestmark = [
    pytest.mark.filterwarnings("ignore::riskbayes.FlooredWarning"),
    pytest.mark.filterwarnings("ignore:.*no integer code:UserWarning"),
]

CLASSES = [
    *(CategoricalNB, GaussianNB, LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis),
    *(SmoothNB, MixedNB, ProductOfExperts, MixtureDiscriminantAnalysis, TreeAugmentedNB, KDependenceNB),
    *(MultinomialNB, BernoulliNB, ComplementNB, PoissonNB),
]


@parametrize_with_checks(
    [estimator(learner=learner) for estimator in CLASSES for learner in ("closed_form", "rc")]
    + [
        GenerativeClassifier(QDAModel()),
        QuadraticDiscriminantAnalysis(prior="recommended"),
        RiskBayesClassifier(),
        # One member: what is checked here is how they are walked, chosen and refitted.
        RiskBayesClassifier("cv", cv=2, time_limit=1e-9, random_state=0),
        RiskBayesClassifier("ensemble", cv=2, time_limit=1e-9, random_state=0),
        MixtureDiscriminantAnalysis(covariance="full"),
        KMeansBins(),
    ]
)
def test_estimator_checks(estimator, check):
    check(estimator)
