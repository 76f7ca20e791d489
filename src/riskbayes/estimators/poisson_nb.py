"""Naive Bayes of Poisson counts."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from riskbayes.arrays import Array
from riskbayes.estimators.counts import NonNegativeClassifier
from riskbayes.models.poisson import PoissonModel


class PoissonNB(NonNegativeClassifier):
    """Naive Bayes for counts: each column is Poisson given the class; trained by risk-based calibration.

    Takes a dense array, where NaN is a missing cell and is left out, or CSR, of which no dense copy is made;
    other sparse formats are converted to CSR once.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the Gamma prior of the rates, in rows: rate = (sum + alpha mean) / (rows + alpha), where
        the mean is that of the column over all classes. 0 is maximum likelihood.
    fit_prior : bool, default=True
        If True, p(y) is estimated; otherwise it is uniform.
    class_prior : array-like of shape (n_classes,), default=None
        Fixed p(y).
    learner : str or Learner, default="rc"
        How the statistics are trained; "closed_form" gives the closed form.
    warm_start : bool, default=False
        If True, `fit` starts from the statistics of the last fit.
    verbose : int, default=0
        If positive, print the risks of each iteration.

    Attributes
    ----------
    rate_ : ndarray of shape (n_classes, n_features)
        Calibrated rates.
    feature_count_ : ndarray of shape (n_classes, n_features)
        Sum of each column in the data, by class.
    class_count_ : ndarray of shape (n_classes,)
        Weight of each class in the data.
    class_log_prior_ : ndarray of shape (n_classes,)
        Calibrated log p(y).
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    statistics_, data_statistics_, history_, n_iter_, best_iteration_, status_
        As in :class:`GenerativeClassifier`.

    Examples
    --------
    >>> from riskbayes import PoissonNB
    >>> clf = PoissonNB().fit([[2, 0, 1], [0, 3, 1], [1, 0, 0]], [0, 1, 0])
    >>> clf.predict([[1, 0, float("nan")]])
    array([0])
    """

    _takes_missing = True
    _poor_score = False

    _parameter_constraints: ClassVar[dict] = {
        **NonNegativeClassifier._parameter_constraints,
        "alpha": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        fit_prior: bool = True,
        class_prior: Any = None,
        learner: Any = "rc",
        warm_start: bool = False,
        verbose: int = 0,
    ):
        self.alpha = alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.learner = learner
        self.warm_start = warm_start
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = False
        return tags

    def _make_model(self) -> PoissonModel:
        return PoissonModel(float(self.alpha), self._prior())

    @property
    def rate_(self) -> Array:
        """Calibrated rates."""
        return self.parameters_.rates
