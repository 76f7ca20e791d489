"""Mixture discriminant analysis."""

from dataclasses import field
from numbers import Integral
from typing import Annotated, Self

from sklearn.utils._param_validation import Interval, StrOptions

import riskbayes.estimators.parameters as p
from riskbayes.arrays import Array, namespace
from riskbayes.estimators.base import BaseGenerativeClassifier
from riskbayes.estimators.checks import listed
from riskbayes.estimators.discriminant_analysis import covariance_prior
from riskbayes.frames import same_values
from riskbayes.models.lda import LDAModel
from riskbayes.models.mixture import MixtureModel
from riskbayes.models.qda import QDAModel
from riskbayes.statistics import Statistics


@p.estimator
class MixtureDiscriminantAnalysis(BaseGenerativeClassifier):
    """Discriminant analysis whose classes are mixtures of Gaussians, trained by risk-based calibration.

    k-means divides each class into clusters, EM turns them into a mixture (the closed form of this model),
    and RC calibrates the statistics of the components: the residual of a class is shared among its components
    by their posterior within the class. Nothing is random.

    Rows may have missing cells (NaN): they have the density of their observed cells, and EM and calibration
    use the expected statistics of the others.

    The components come from all rows together, so there is no `partial_fit`.

    Parameters
    ----------
    n_components : int, default=3
        Components of each class; clusters with less weight than two rows are merged with their neighbours.
    covariance : {"tied", "full"}, default="tied"
        One covariance for all components of all classes, or one for each.
    {prior covariance_strength diagonal_mix covariance_floor}
    em_iter : int, default=50
        The most iterations of EM.
    learner : str or Learner, default="rc"
        How the statistics are trained; "closed_form" is EM alone.
    {class_weight warm_start verbose}

    Attributes
    ----------
    means_ : ndarray of shape (n_components_in_all, n_features)
        Calibrated means of the components, class after class.
    weights_ : ndarray of shape (n_components_in_all,)
        Calibrated probabilities of the components.
    n_components_ : ndarray of shape (n_classes,)
        Number of components of each class.
    em_log_likelihood_ : list of float
        Mean joint log-likelihood of the training rows, EM iteration by iteration.
    {classes_ statistics_}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from riskbayes import MixtureDiscriminantAnalysis
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = MixtureDiscriminantAnalysis(n_components=2).fit(X, y)
    >>> clf.n_components_
    array([2, 2, 2])
    """

    n_components: p.Count = field(default=3, kw_only=False)
    covariance: Annotated[str, StrOptions({"tied", "full"})] = "tied"
    prior: p.Prior = "auto"
    covariance_strength: p.StrengthOrPrior = None
    diagonal_mix: p.ShareOrPrior = None
    covariance_floor: p.Positive = 1e-2
    em_iter: Annotated[int, Interval(Integral, 0, None, closed="left")] = 50
    learner: p.LearnerOrName = "rc"
    class_weight: p.ClassWeight = None
    warm_start: p.Flag = False
    verbose: p.Verbose = 0

    _takes_missing = True
    _array_api = False

    def _make_model(self) -> MixtureModel:
        base = (LDAModel if self.covariance == "tied" else QDAModel)(
            covariance_floor=self.covariance_floor, **covariance_prior(self)
        )
        return MixtureModel(base, n_components=self.n_components, em_iter=self.em_iter)

    def _statistics_of(self, other: Self, S: Statistics) -> tuple[Statistics, Statistics]:
        if not same_values(other.n_components_, S.frame.sizes):
            raise ValueError(
                f"warm_start goes on from {listed(other.n_components_)} components of the classes; these "
                f"rows have {listed(S.frame.sizes)}. Set warm_start=False."
            )
        return super()._statistics_of(other, S)

    @property
    def means_(self) -> Array:
        """Calibrated means of the components."""
        components = self.parameters_.components
        return components.means + components.frame.origin

    @property
    def weights_(self) -> Array:
        """Calibrated probabilities of the components."""
        log_prior = self.parameters_.components.log_prior
        return namespace(log_prior).exp(log_prior)

    @property
    def em_log_likelihood_(self) -> list[float]:
        """Mean joint log-likelihood of the training rows, EM iteration by iteration."""
        return list(self.statistics_.frame.em_log_likelihood)

    @property
    def n_components_(self) -> Array:
        """Number of components of each class."""
        return self.parameters_.sizes
