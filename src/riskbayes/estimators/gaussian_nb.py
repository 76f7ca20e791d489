"""Gaussian naive Bayes."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from riskbayes.arrays import Array, namespace
from riskbayes.estimators.checks import check_class_prior, check_prior_mean, check_prior_variance
from riskbayes.estimators.streaming import StreamingClassifier
from riskbayes.models.gaussian_nb import GaussianNBModel


class GaussianNB(StreamingClassifier):
    """Gaussian naive Bayes, trained by risk-based calibration.

    Missing cells (NaN) are left out, of the density of a row and of the statistics, when fitting and when
    predicting.

    Parameters
    ----------
    priors : array-like of shape (n_classes,), default=None
        Fixed p(y).
    var_smoothing : float, default=1e-9
        Share of the largest variance that is added to every variance. That variance is weighted, so that a
        weight of 2 counts a row twice; scikit-learn's is not.
    mean_strength, variance_strength : float, default=0.0
        Equivalent sample sizes of the prior on means and variances; 0 is maximum likelihood.
    prior_mean, prior_variance : array-like of shape (n_features,), default=None
        Centre of that prior; by default the pooled mean and the pooled within-class variance.
    prior_form : {"exact", "paper"}, default="exact"
        The exact mode of the posterior, or the paper's form with two strengths.
    class_alpha : float, default=0.0
        Pseudo-counts of each class for p(y).
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
    theta_, var_ : ndarray of shape (n_classes, n_features)
        Calibrated means and variances.
    class_prior_ : ndarray of shape (n_classes,)
        Calibrated p(y).
    class_count_ : ndarray of shape (n_classes,)
        Weight of each class in the data.
    epsilon_ : float
        The number that was added to the variances.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    statistics_, data_statistics_, history_, n_iter_, best_iteration_, status_
        As in :class:`GenerativeClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from riskbayes import GaussianNB
    >>> X, y = load_wine(return_X_y=True)
    >>> clf = GaussianNB().fit(X, y)
    >>> clf.predict(X[:2])
    array([0, 0])
    """

    _parameter_constraints: ClassVar[dict] = {
        **StreamingClassifier._parameter_constraints,
        "priors": ["array-like", None],
        "var_smoothing": [Interval(Real, 0, None, closed="left")],
        "mean_strength": [Interval(Real, 0, None, closed="left")],
        "variance_strength": [Interval(Real, 0, None, closed="left")],
        "prior_mean": ["array-like", None],
        "prior_variance": ["array-like", None],
        "prior_form": [StrOptions({"exact", "paper"})],
        "class_alpha": [Interval(Real, 0, None, closed="left")],
    }

    _takes_missing = True

    def __init__(
        self,
        *,
        priors: Any = None,
        var_smoothing: float = 1e-9,
        mean_strength: float = 0.0,
        variance_strength: float = 0.0,
        prior_mean: Any = None,
        prior_variance: Any = None,
        prior_form: str = "exact",
        class_alpha: float = 0.0,
        learner: Any = "rc",
        class_weight: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
    ):
        self.priors = priors
        self.var_smoothing = var_smoothing
        self.mean_strength = mean_strength
        self.variance_strength = variance_strength
        self.prior_mean = prior_mean
        self.prior_variance = prior_variance
        self.prior_form = prior_form
        self.class_alpha = class_alpha
        self.learner = learner
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.verbose = verbose

    def _make_model(self) -> GaussianNBModel:
        n, given = self.n_features_in_, {}
        if self.prior_mean is not None:
            given["prior_mean"] = check_prior_mean(self.prior_mean, n)
        if self.prior_variance is not None:
            given["prior_covariance"] = check_prior_variance(self.prior_variance, n)
        if self.priors is not None:
            given["class_prior"] = check_class_prior(self.priors, self.classes_.shape[0], "priors")
        return GaussianNBModel(
            mean_strength=self.mean_strength,
            covariance_strength=self.variance_strength,
            prior_form=self.prior_form,
            class_alpha=self.class_alpha,
            var_smoothing=self.var_smoothing,
            **given,
        )

    @property
    def theta_(self) -> Array:
        """Calibrated means."""
        return self._in_row_dtype(self.parameters_.means + self.parameters_.frame.origin[None, :])

    @property
    def var_(self) -> Array:
        """Calibrated variances."""
        return self._in_row_dtype(self.parameters_.variances)

    @property
    def epsilon_(self) -> float:
        """The number that was added to the variances."""
        return self.parameters_.epsilon

    @property
    def class_prior_(self) -> Array:
        """Calibrated p(y)."""
        return self._in_row_dtype(namespace(self.parameters_.log_prior).exp(self.parameters_.log_prior))

    @property
    def class_count_(self) -> Array:
        """Weight of each class in the data."""
        return self._in_row_dtype(self.data_statistics_["s0"])
