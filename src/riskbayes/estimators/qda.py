"""Quadratic discriminant analysis."""

from typing import Annotated

from sklearn.utils._param_validation import StrOptions

import riskbayes.estimators.parameters as p
from riskbayes.arrays import Array, namespace
from riskbayes.estimators.base import BaseGenerativeClassifier
from riskbayes.estimators.discriminant_analysis import (
    check_stream,
    class_means,
    class_priors,
    gaussian_parameters,
)
from riskbayes.models.gaussian import LOG_2PI
from riskbayes.models.qda import QDAModel


@p.estimator
class QuadraticDiscriminantAnalysis(BaseGenerativeClassifier):
    """Quadratic discriminant analysis, trained by risk-based calibration.

    Rows may have missing cells (NaN), in `fit` and in predictions: they have the density of their observed
    cells. The closed form is then EM, and calibration uses the expected statistics of the missing cells.

    Parameters
    ----------
    solver : {"svd", "eigen"}, default="svd"
        Has no effect; accepted for compatibility with scikit-learn.
    {shrinkage priors}
    reg_param : float, default=0.0
        Sigma <- (1 - reg_param) Sigma + reg_param I.
    store_covariance : bool, default=False
        If True, `covariance_` is available.
    tol : float, default=1e-4
        Has no effect. If the rows of a class do not determine its covariance in some directions, that of all
        classes together is used there, with a warning.
    {covariance_estimator}
    {prior}
    mean_strength : float, default=0.0
        Equivalent sample size of the prior on means; 0 is maximum likelihood.
    {covariance_strength prior_mean prior_covariance diagonal_mix prior_form covariance_floor class_alpha}
    {learner class_weight warm_start verbose}

    Attributes
    ----------
    {means_}
    covariance_ : list of ndarray of shape (n_features, n_features)
        Calibrated covariances; only with `store_covariance=True`.
    rotations_, scalings_ : list of ndarray
        Principal axes of each class and the variances along them.
    {classes_ statistics_}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from riskbayes import QuadraticDiscriminantAnalysis
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = QuadraticDiscriminantAnalysis().fit(X, y)
    >>> clf.sample(3, random_state=0)[0].shape
    (3, 4)
    """

    solver: Annotated[str, StrOptions({"svd", "eigen"})] = "svd"
    shrinkage: p.Shrinkage = None
    priors: p.Numbers = None
    reg_param: p.Share = 0.0
    store_covariance: p.Flag = False
    tol: p.Strength = 1e-4
    covariance_estimator: p.CovarianceEstimator = None
    prior: p.Prior = "auto"
    mean_strength: p.Strength = 0.0
    covariance_strength: p.StrengthOrPrior = None
    prior_mean: p.Numbers = None
    prior_covariance: p.Numbers = None
    diagonal_mix: p.ShareOrPrior = None
    prior_form: p.PriorForm = "exact"
    covariance_floor: p.Positive = 1e-2
    class_alpha: p.Strength = 0.0
    learner: p.LearnerOrName = "rc"
    class_weight: p.ClassWeight = None
    warm_start: p.Flag = False
    verbose: p.Verbose = 0

    _adds_up = True
    _takes_missing = True

    def _check_stream(self) -> None:
        super()._check_stream()
        check_stream(self)

    def _make_model(self) -> QDAModel:
        return QDAModel(**gaussian_parameters(self), reg_param=self.reg_param)

    means_ = property(class_means)
    priors_ = property(class_priors)

    @property
    def covariance_(self) -> list[Array]:
        """Calibrated covariances."""
        if not self.store_covariance:
            raise AttributeError("covariance_ is kept with store_covariance=True only.")
        return each_class(self._in_row_dtype(self.parameters_.covariances))

    def _axes(self) -> tuple[Array, Array]:
        """Return the variances along the principal axes of each class, largest first, and the axes."""
        covariances = self.parameters_.covariances
        variances, axes = namespace(covariances).linalg.eigh(covariances)
        return namespace(axes).flip(variances, axis=-1), namespace(axes).flip(axes, axis=-1)

    @property
    def rotations_(self) -> list[Array]:
        """Principal axes of each class."""
        return each_class(self._in_row_dtype(self._axes()[1]))

    @property
    def scalings_(self) -> list[Array]:
        """Variances along the principal axes, largest first."""
        return each_class(self._in_row_dtype(self._axes()[0]))

    def _class_scores(self, joint: Array) -> Array:
        """Return the log joints without the constant -n/2 log 2pi, as scikit-learn does."""
        return joint + 0.5 * self.n_features_in_ * LOG_2PI


def each_class(stack: Array) -> list[Array]:
    """Return a stack of arrays, one per class, as a list."""
    return [stack[k, ...] for k in range(stack.shape[0])]
