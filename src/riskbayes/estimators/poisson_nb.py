"""Naive Bayes of Poisson counts."""

import riskbayes.estimators.counts as counts
import riskbayes.estimators.parameters as p
from riskbayes.arrays import Array
from riskbayes.estimators.base import BaseGenerativeClassifier
from riskbayes.models.poisson import PoissonModel


@p.estimator
class PoissonNB(BaseGenerativeClassifier):
    """Naive Bayes for counts: each column is Poisson given the class; trained by risk-based calibration.

    Takes a dense array, where NaN is a missing cell and is left out, or CSR, of which no dense copy is made;
    other sparse formats are converted to CSR once.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the Gamma prior of the rates, in rows: rate = (sum + alpha mean) / (rows + alpha), where
        the mean is that of the column over all classes. 0 is maximum likelihood.
    {fit_prior class_prior learner warm_start verbose}

    Attributes
    ----------
    rate_ : ndarray of shape (n_classes, n_features)
        Calibrated rates.
    {feature_count_ class_count_ class_log_prior_ classes_ statistics_}

    Examples
    --------
    >>> from riskbayes import PoissonNB
    >>> clf = PoissonNB().fit([[2, 0, 1], [0, 3, 1], [1, 0, 0]], [0, 1, 0])
    >>> clf.predict([[1, 0, float("nan")]])
    array([0])
    """

    alpha: p.Strength = 1.0
    fit_prior: p.Flag = True
    class_prior: p.Numbers = None
    learner: p.LearnerOrName = "rc"
    warm_start: p.Flag = False
    verbose: p.Verbose = 0

    _input = counts.CountInput()
    _named_learners = counts.COUNT_LEARNERS
    _adds_up = True
    _takes_missing = True
    _array_api = _has_decision_function = False

    def _make_model(self) -> PoissonModel:
        return PoissonModel(float(self.alpha), counts.fixed_prior(self))

    feature_count_ = property(counts.feature_count)
    class_count_ = property(counts.class_count)
    class_log_prior_ = property(counts.class_log_prior)

    @property
    def rate_(self) -> Array:
        """Calibrated rates."""
        return self.parameters_.rates
