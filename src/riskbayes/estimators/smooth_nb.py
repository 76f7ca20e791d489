"""Naive Bayes with smooth densities."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from riskbayes.arrays import Array
from riskbayes.estimators.base import BaseGenerativeClassifier
from riskbayes.estimators.checks import check_class_prior
from riskbayes.models.smooth import SmoothModel


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
    priors : array-like of shape (n_classes,), default=None
        Fixed p(y).
    class_alpha : float, default=0.0
        Pseudo-counts of each class for p(y).
    learner : str or Learner, default="rc"
        How the statistics are trained.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply `sample_weight`.
    warm_start : bool, default=False
        If True, `fit` starts from the statistics of the last fit; the knots must be the same.
    verbose : int, default=0
        If positive, print the risks of each iteration.

    Attributes
    ----------
    knots_ : list of ndarray
        Knots of each column.
    log_density_ : list of ndarray of shape (n_classes, n_knots)
        Calibrated log density, or log probability, at the knots of each column.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    statistics_, data_statistics_, history_, n_iter_, best_iteration_, status_
        As in :class:`GenerativeClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from riskbayes import SmoothNB
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = SmoothNB().fit(X, y)
    >>> clf.sample(2, random_state=0)[0].shape
    (2, 4)
    """

    _parameter_constraints: ClassVar[dict] = {
        **BaseGenerativeClassifier._parameter_constraints,
        "n_knots": [Interval(Integral, 2, None, closed="left")],
        "max_categories": [Interval(Integral, 1, None, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "priors": ["array-like", None],
        "class_alpha": [Interval(Real, 0, None, closed="left")],
    }

    _takes_missing = True

    def __init__(
        self,
        *,
        n_knots: int = 6,
        max_categories: int = 20,
        alpha: float = 1.0,
        priors: Any = None,
        class_alpha: float = 0.0,
        learner: Any = "rc",
        class_weight: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
    ):
        self.n_knots = n_knots
        self.max_categories = max_categories
        self.alpha = alpha
        self.priors = priors
        self.class_alpha = class_alpha
        self.learner = learner
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = False
        return tags

    def _make_model(self) -> SmoothModel:
        prior = self.priors
        if prior is not None:
            prior = check_class_prior(prior, self.classes_.shape[0], "priors")
        return SmoothModel(self.n_knots, self.max_categories, self.alpha, self.class_alpha, prior)

    def _by_column(self, table: Array) -> list[Array]:
        """Split a table with the knots of all columns side by side into one table per column."""
        frame = self.parameters_.frame
        pairs = zip(frame.offsets, frame.n_categories, strict=True)
        return [table[..., start : start + k] for start, k in pairs]

    @property
    def knots_(self) -> list[Array]:
        """The knots of each column."""
        return self._by_column(self.parameters_.frame.positions)

    @property
    def log_density_(self) -> list[Array]:
        """Calibrated log density at the knots of each column."""
        return self._by_column(self.parameters_.log_density)
