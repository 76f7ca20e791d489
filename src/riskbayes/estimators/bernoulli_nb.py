"""Naive Bayes of binary features."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from riskbayes.arrays import Array
from riskbayes.estimators.counts import CountClassifier
from riskbayes.models.bernoulli import BernoulliModel
from riskbayes.tables import check_binary, naming_columns


class BernoulliNB(CountClassifier):
    """Naive Bayes for binary features, trained by risk-based calibration.

    Takes a dense array, where NaN is a missing cell and is left out, or CSR, of which no dense copy is made;
    other sparse formats are converted to CSR once.

    Parameters
    ----------
    alpha : float or array-like of shape (n_features,), default=1.0
        Pseudo-counts of ones and of zeros. 0 is maximum likelihood, with counts of at least 1e-9 of the total
        weight.
    force_alpha : bool, default=True
        If False, an `alpha` below 1e-10 is set to 1e-10, with a warning.
    binarize : float or None, default=0.0
        Values above this are one, others zero. None: the rows hold 0 and 1.
    fit_prior : bool, default=True
        If True, p(y) is estimated; otherwise it is uniform.
    class_prior : array-like of shape (n_classes,), default=None
        Fixed p(y).
    learner : str or Learner, default="rc"
        How the statistics are trained; "closed_form" gives scikit-learn's results.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply `sample_weight`.
    warm_start : bool, default=False
        If True, `fit` starts from the statistics of the last fit.
    verbose : int, default=0
        If positive, print the risks of each iteration.

    Attributes
    ----------
    feature_count_ : ndarray of shape (n_classes, n_features)
        Ones of each column in the data, by class.
    class_count_ : ndarray of shape (n_classes,)
        Weight of each class in the data.
    class_log_prior_ : ndarray of shape (n_classes,)
        Calibrated log p(y).
    feature_log_prob_ : ndarray of shape (n_classes, n_features)
        Calibrated log p(x_j = 1 | y).
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    statistics_, data_statistics_, history_, n_iter_, best_iteration_, status_
        As in :class:`GenerativeClassifier`.

    Examples
    --------
    >>> from riskbayes import BernoulliNB
    >>> clf = BernoulliNB().fit([[1, 0, 1], [0, 1, 1], [1, 0, 0]], [0, 1, 0])
    >>> clf.predict([[1, 0, float("nan")]])
    array([0])
    """

    _positive_only = False
    _takes_missing = True

    _parameter_constraints: ClassVar[dict] = {
        **CountClassifier._parameter_constraints,
        "binarize": [None, Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        binarize: float | None = 0.0,
        fit_prior: bool = True,
        class_prior: Any = None,
        learner: Any = "rc",
        class_weight: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
    ):
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.binarize = binarize
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.learner = learner
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.verbose = verbose

    def _read(self, X: Any, *, reset: bool, learn: bool) -> Array:
        X = super()._read(X, reset=reset, learn=learn)
        if self.binarize is None:
            with naming_columns(self):
                check_binary(X)
        return X

    def _make_model(self) -> BernoulliModel:
        return BernoulliModel(self._pseudo_counts(), self._prior(), self.binarize)

    @property
    def feature_log_prob_(self) -> Array:
        """Calibrated log p(x_j = 1 | y)."""
        return self.parameters_.log_prob
