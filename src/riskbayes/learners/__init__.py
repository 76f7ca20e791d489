"""Learners: how the statistics of a model are trained."""

from riskbayes.learners.base import Learner
from riskbayes.learners.closed_form import ClosedForm
from riskbayes.learners.dfe import DFE
from riskbayes.learners.gradient import GD
from riskbayes.learners.rc import RC
from riskbayes.learners.rc_cv import RCCV
from riskbayes.learners.tm import TM

__all__ = ["DFE", "GD", "RC", "RCCV", "TM", "ClosedForm", "Learner"]
