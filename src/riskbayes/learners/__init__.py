"""Learners: how the statistics of a model are trained."""

from riskbayes.learners.base import Learner
from riskbayes.learners.closed_form import ClosedForm
from riskbayes.learners.rc import RC

__all__ = ["RC", "ClosedForm", "Learner"]
