"""Naive Bayes of binary features."""

from numbers import Real
from typing import Annotated, Any, ClassVar

from sklearn.utils._param_validation import Interval

import riskbayes.estimators.counts as counts
import riskbayes.estimators.parameters as p
from riskbayes.arrays import Array
from riskbayes.estimators.base import BaseGenerativeClassifier
from riskbayes.models.bernoulli import BernoulliModel
from riskbayes.tables import check_binary, naming_columns


class BinaryInput(counts.CountInput):
    """Dense rows of zeros and ones, or CSR; or of numbers, with a threshold."""

    tags: ClassVar = {"sparse": True}

    def check(self, clf: Any, X: Array) -> None:
        """Refuse cells other than 0 and 1, unless there is a threshold."""
        if clf.binarize is None:
            with naming_columns(clf):
                check_binary(X)


@p.estimator
class BernoulliNB(BaseGenerativeClassifier):
    """Naive Bayes for binary features, trained by risk-based calibration.

    Takes a dense array, where NaN is a missing cell and is left out, or CSR, of which no dense copy is made;
    other sparse formats are converted to CSR once.

    Parameters
    ----------
    alpha : float or array-like of shape (n_features,), default=1.0
        Pseudo-counts of ones and of zeros. 0 is maximum likelihood, with counts of at least 1e-9 of the total
        weight.
    {force_alpha}
    binarize : float or None, default=0.0
        Values above this are one, others zero. None: the rows hold 0 and 1.
    {fit_prior class_prior learner class_weight warm_start verbose}

    Attributes
    ----------
    feature_count_ : ndarray of shape (n_classes, n_features)
        Ones of each column in the data, by class.
    {class_count_ class_log_prior_}
    feature_log_prob_ : ndarray of shape (n_classes, n_features)
        Calibrated log p(x_j = 1 | y).
    {classes_ statistics_}

    Examples
    --------
    >>> from riskbayes import BernoulliNB
    >>> clf = BernoulliNB().fit([[1, 0, 1], [0, 1, 1], [1, 0, 0]], [0, 1, 0])
    >>> clf.predict([[1, 0, float("nan")]])
    array([0])
    """

    alpha: p.PseudoCounts = 1.0
    force_alpha: p.Flag = True
    binarize: Annotated[float | None, None, Interval(Real, 0, None, closed="left")] = 0.0
    fit_prior: p.Flag = True
    class_prior: p.Numbers = None
    learner: p.LearnerOrName = "rc"
    class_weight: p.ClassWeight = None
    warm_start: p.Flag = False
    verbose: p.Verbose = 0

    _input = BinaryInput()
    _named_learners = counts.COUNT_LEARNERS
    _adds_up = True
    _takes_missing = True
    _poor_score = True

    def _make_model(self) -> BernoulliModel:
        return BernoulliModel(counts.pseudo_counts(self), counts.fixed_prior(self), self.binarize)

    feature_count_ = property(counts.feature_count)
    class_count_ = property(counts.class_count)
    class_log_prior_ = property(counts.class_log_prior)

    @property
    def feature_log_prob_(self) -> Array:
        """Calibrated log p(x_j = 1 | y)."""
        return self.parameters_.log_prob
