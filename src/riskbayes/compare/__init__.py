"""Compares models on a table, on held-out rows: how well its target can be predicted, and what is wrong."""

from riskbayes.compare.comparison import Comparison, compare
from riskbayes.compare.report import Report

__all__ = ["Comparison", "Report", "compare"]
