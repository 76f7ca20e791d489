"""Displays in scikit-learn's style. matplotlib is optional: `pip install "riskbayes[plot]"`."""

from riskbayes.plotting.axes import new_figure, require_matplotlib
from riskbayes.plotting.beeswarm import BeeswarmDisplay
from riskbayes.plotting.densities import DensityDisplay
from riskbayes.plotting.parameters import ParametersDisplay
from riskbayes.plotting.regions import RegionsDisplay
from riskbayes.plotting.reliability import ReliabilityDisplay
from riskbayes.plotting.risk_path import RiskPathDisplay
from riskbayes.plotting.waterfall import WaterfallDisplay

__all__ = [
    "BeeswarmDisplay",
    "DensityDisplay",
    "ParametersDisplay",
    "RegionsDisplay",
    "ReliabilityDisplay",
    "RiskPathDisplay",
    "WaterfallDisplay",
    "new_figure",
    "require_matplotlib",
]
