"""Gaussian naive Bayes."""

import riskbayes.estimators.parameters as p
from riskbayes.arrays import Array
from riskbayes.estimators.base import BaseGenerativeClassifier
from riskbayes.estimators.checks import check_class_prior, check_prior_mean, check_prior_variance
from riskbayes.estimators.discriminant_analysis import class_means, class_priors, has_recommended_prior
from riskbayes.models.gaussian_nb import GaussianNBModel

RECOMMENDED_STRENGTH = 100.0
"""`variance_strength` of `prior="recommended"`; of `benchmarks/gaussian_prior.py`."""


@p.estimator
class GaussianNB(BaseGenerativeClassifier):
    """Gaussian naive Bayes, trained by risk-based calibration.

    Missing cells (NaN) are left out, of the density of a row and of the statistics, when fitting and when
    predicting.

    Parameters
    ----------
    {priors}
    var_smoothing : float, default=1e-9
        Share of the largest variance that is added to every variance. That variance is weighted, so that a
        weight of 2 counts a row twice; scikit-learn's is not.
    prior : "auto", "recommended" or None, default="auto"
        "recommended" shrinks the variances towards the pooled ones with the weight of 100 rows, unless
        `variance_strength` is given. The means have no prior. "auto" is None with `learner="closed_form"`,
        which gives scikit-learn's numbers, else "recommended".
    mean_strength : float, default=0.0
        Equivalent sample size of the prior on means; 0 is maximum likelihood.
    variance_strength : float or None, default=None
        Equivalent sample size of the prior on variances; 0 is maximum likelihood. None: as `prior` says,
        else 0.
    prior_mean, prior_variance : array-like of shape (n_features,), default=None
        Centre of that prior; by default the pooled mean and the pooled within-class variance.
    {prior_form class_alpha learner class_weight warm_start verbose}

    Attributes
    ----------
    theta_, var_ : ndarray of shape (n_classes, n_features)
        Calibrated means and variances.
    class_prior_ : ndarray of shape (n_classes,)
        Calibrated p(y).
    {class_count_}
    epsilon_ : float
        The number that was added to the variances.
    {classes_ statistics_}

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from riskbayes import GaussianNB
    >>> X, y = load_wine(return_X_y=True)
    >>> clf = GaussianNB().fit(X, y)
    >>> clf.predict(X[:2])
    array([0, 0])
    """

    priors: p.Numbers = None
    var_smoothing: p.Strength = 1e-9
    prior: p.Prior = "auto"
    mean_strength: p.Strength = 0.0
    variance_strength: p.StrengthOrPrior = None
    prior_mean: p.Numbers = None
    prior_variance: p.Numbers = None
    prior_form: p.PriorForm = "exact"
    class_alpha: p.Strength = 0.0
    learner: p.LearnerOrName = "rc"
    class_weight: p.ClassWeight = None
    warm_start: p.Flag = False
    verbose: p.Verbose = 0

    _adds_up = True
    _takes_missing = True

    def _make_model(self) -> GaussianNBModel:
        n, given = self.n_features_in_, {}
        if self.prior_mean is not None:
            given["prior_mean"] = check_prior_mean(self.prior_mean, n)
        if self.prior_variance is not None:
            given["prior_covariance"] = check_prior_variance(self.prior_variance, n)
        if self.priors is not None:
            given["class_prior"] = check_class_prior(self.priors, self.classes_.shape[0], "priors")
        strength = self.variance_strength
        if strength is None:
            strength = RECOMMENDED_STRENGTH if has_recommended_prior(self) else 0.0
        return GaussianNBModel(
            mean_strength=self.mean_strength,
            covariance_strength=strength,
            prior_form=self.prior_form,
            class_alpha=self.class_alpha,
            var_smoothing=self.var_smoothing,
            **given,
        )

    theta_ = property(class_means)
    class_prior_ = property(class_priors)

    @property
    def var_(self) -> Array:
        """Calibrated variances."""
        return self._in_row_dtype(self.parameters_.variances)

    @property
    def epsilon_(self) -> float:
        """The number that was added to the variances."""
        return self.parameters_.epsilon

    @property
    def class_count_(self) -> Array:
        """Weight of each class in the data."""
        return self._in_row_dtype(self.data_statistics_["s0"])
