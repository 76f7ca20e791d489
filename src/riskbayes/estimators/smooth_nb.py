"""Naive Bayes with smooth densities."""

from numbers import Integral
from typing import Annotated

from sklearn.utils._param_validation import Interval

import riskbayes.estimators.parameters as p
from riskbayes.arrays import Array
from riskbayes.estimators.base import BaseGenerativeClassifier
from riskbayes.estimators.checks import check_class_prior
from riskbayes.estimators.codes import by_column
from riskbayes.models.smooth import SmoothModel


@p.estimator
class SmoothNB(BaseGenerativeClassifier):
    """Naive Bayes whose densities are log-linear between quantile knots, trained by risk-based calibration.

    The density of a feature in a class is log-linear between knots, which all classes share, and falls
    exponentially beyond the outer ones; it integrates to one. A column with few distinct values has a
    probability for each of them instead; between two of them the logarithm is interpolated too.

    Missing values (NaN) drop out of the joint and of the counts, so that a posterior is that of the columns
    which a row has. Knots are quantiles of all rows, so there is no `partial_fit`. Values nearer to zero than
    1e-290 count as zero.

    Parameters
    ----------
    n_knots : int, default=6
        Number of knots of each column.
    max_categories : int, default=20
        A column with at most this many distinct values (or `n_knots`) has a probability for each of them.
    alpha : float, default=1.0
        Dirichlet pseudo-counts of each knot.
    {priors class_alpha learner class_weight}
    warm_start : bool, default=False
        If True, `fit` starts from the statistics of the last fit; the knots must be the same.
    {verbose}

    Attributes
    ----------
    knots_ : list of ndarray
        Knots of each column.
    log_density_ : list of ndarray of shape (n_classes, n_knots)
        Calibrated log density, or log probability, at the knots of each column.
    {classes_ statistics_}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from riskbayes import SmoothNB
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = SmoothNB().fit(X, y)
    >>> clf.sample(2, random_state=0)[0].shape
    (2, 4)
    """

    n_knots: Annotated[int, Interval(Integral, 2, None, closed="left")] = 6
    max_categories: p.Count = 20
    alpha: p.Strength = 1.0
    priors: p.Numbers = None
    class_alpha: p.Strength = 0.0
    learner: p.LearnerOrName = "rc"
    class_weight: p.ClassWeight = None
    warm_start: p.Flag = False
    verbose: p.Verbose = 0

    _takes_missing = True
    _array_api = False

    def _make_model(self) -> SmoothModel:
        prior = self.priors
        if prior is not None:
            prior = check_class_prior(prior, self.classes_.shape[0], "priors")
        return SmoothModel(self.n_knots, self.max_categories, self.alpha, self.class_alpha, prior)

    @property
    def knots_(self) -> list[Array]:
        """The knots of each column."""
        return by_column(self.parameters_.frame.positions, self.parameters_.frame)

    @property
    def log_density_(self) -> list[Array]:
        """Calibrated log density at the knots of each column."""
        return by_column(self.parameters_.log_density, self.parameters_.frame)
