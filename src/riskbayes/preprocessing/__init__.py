"""Kinds of columns, the codes of categories, bins of numbers."""

from riskbayes.preprocessing.bins import KMeansBins

__all__ = ["KMeansBins"]
