"""Generative models: one a file, each in three formulas."""

from riskbayes.models.augmented_nb import TreeModel
from riskbayes.models.base import GenerativeModel
from riskbayes.models.bernoulli import BernoulliModel
from riskbayes.models.binned import BinnedModel
from riskbayes.models.categorical import CategoricalModel
from riskbayes.models.conditional_gaussian import ConditionalGaussianModel
from riskbayes.models.gaussian_nb import GaussianNBModel
from riskbayes.models.lda import LDAModel
from riskbayes.models.leaves import LeavesModel
from riskbayes.models.marks import MarkModel
from riskbayes.models.mixture import MixtureModel
from riskbayes.models.multinomial import ComplementModel, MultinomialModel
from riskbayes.models.neighbours import NeighboursModel
from riskbayes.models.poisson import PoissonModel
from riskbayes.models.product import ProductModel
from riskbayes.models.qda import QDAModel
from riskbayes.models.smooth import SmoothModel
from riskbayes.models.traits import Traits

__all__ = [
    "BernoulliModel",
    "BinnedModel",
    "CategoricalModel",
    "ComplementModel",
    "ConditionalGaussianModel",
    "GaussianNBModel",
    "GenerativeModel",
    "LDAModel",
    "LeavesModel",
    "MarkModel",
    "MixtureModel",
    "MultinomialModel",
    "NeighboursModel",
    "PoissonModel",
    "ProductModel",
    "QDAModel",
    "SmoothModel",
    "Traits",
    "TreeModel",
]
