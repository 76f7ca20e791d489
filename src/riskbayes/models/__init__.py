"""Generative models: one a file, each in three formulas."""

from riskbayes.models.base import GenerativeModel
from riskbayes.models.categorical import CategoricalModel
from riskbayes.models.gaussian_nb import GaussianNBModel
from riskbayes.models.lda import LDAModel
from riskbayes.models.qda import QDAModel

__all__ = ["CategoricalModel", "GaussianNBModel", "GenerativeModel", "LDAModel", "QDAModel"]
