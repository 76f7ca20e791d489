"""Linear and quadratic discriminant analysis."""

from __future__ import annotations

from dataclasses import fields
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.covariance import LedoitWolf
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from riskbayes.estimators.base import BaseGenerativeClassifier
from riskbayes.estimators.checks import check_class_prior, check_prior_covariance, check_prior_mean
from riskbayes.models.lda import LDAModel
from riskbayes.models.moments import LOG_2PI, GaussianModel
from riskbayes.models.qda import QDAModel
from riskbayes.statistics import Array


class DiscriminantAnalysis(BaseGenerativeClassifier):
    """What the two share: the Gaussian prior, and covariances that are no function of S."""

    _parameter_constraints: ClassVar[dict] = {
        **BaseGenerativeClassifier._parameter_constraints,
        "shrinkage": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="both"), None],
        "priors": ["array-like", None],
        "store_covariance": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "covariance_estimator": [HasMethods("fit"), None],
        "mean_strength": [Interval(Real, 0, None, closed="left")],
        "covariance_strength": [Interval(Real, 0, None, closed="left")],
        "prior_mean": ["array-like", None],
        "prior_covariance": ["array-like", None],
        "diagonal_mix": [Interval(Real, 0, 1, closed="both")],
        "prior_form": [StrOptions({"exact", "paper"})],
        "covariance_floor": [Interval(Real, 0, None, closed="neither")],
        "class_alpha": [Interval(Real, 0, None, closed="left")],
    }

    def _gaussian_parameters(self, n: int) -> dict[str, Any]:
        """The hyper-parameters that every Gaussian model has, checked."""
        own = {f.name for f in fields(GaussianModel)} & set(self.get_params(deep=False))
        return {name: getattr(self, name) for name in own} | {
            "prior_mean": check_prior_mean(self.prior_mean, n),
            "prior_covariance": check_prior_covariance(self.prior_covariance, n),
            "class_prior": check_class_prior(self.priors, len(self.classes_), "priors"),
            "shrinkage": 0.0 if self.shrinkage is None or self.shrinkage == "auto" else float(self.shrinkage),
        }

    def _given_covariances(self, X: Array, y: Array, sample_weight: Array | None) -> Array | None:
        """Class covariances by an estimator, where the user asks for one."""
        estimator = LedoitWolf() if self.shrinkage == "auto" else self.covariance_estimator
        if estimator is None:
            return None
        name = "shrinkage='auto'" if self.shrinkage == "auto" else "covariance_estimator"
        if self.shrinkage is not None and self.covariance_estimator is not None:
            raise ValueError("Set either shrinkage or covariance_estimator, not both of them.")
        if self._resolved_learner().max_iter > 0:
            raise ValueError(
                f"{name} is no function of the statistics that {self.learner!r} calibrates: use it with "
                "learner='closed_form', or a prior (covariance_strength) in its place."
            )
        if sample_weight is not None:
            raise ValueError(f"{name} does not take weights: leave out sample_weight and class_weight.")
        covariances = []
        for k in range(len(self.classes_)):
            rows = X[y == k]
            # Ledoit-Wolf on standardised columns, as scikit-learn does.
            scale = rows.std(axis=0) if self.shrinkage == "auto" else np.ones(X.shape[1])
            scale = np.where(scale > 0, scale, 1.0)
            fitted = clone(estimator).fit((rows - rows.mean(axis=0) * (self.shrinkage == "auto")) / scale)
            covariances.append(fitted.covariance_ * np.outer(scale, scale))
        return np.stack(covariances)

    def _check_stream(self) -> None:
        super()._check_stream()
        if self.shrinkage == "auto" or self.covariance_estimator is not None:
            raise ValueError(
                "shrinkage='auto' and covariance_estimator need all rows at once: call fit, or give "
                "partial_fit a shrinkage between 0 and 1 or a prior (covariance_strength)."
            )

    @property
    def means_(self) -> Array:
        """Calibrated means of the classes."""
        return self.parameters_.means + self.parameters_.frame.origin

    @property
    def priors_(self) -> Array:
        """Calibrated p(y)."""
        return np.exp(self.parameters_.log_prior)


class LinearDiscriminantAnalysis(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DiscriminantAnalysis):
    """Linear discriminant analysis, trained by risk-based calibration.

    Parameters
    ----------
    solver : {"svd", "lsqr", "eigen"}, default="svd"
        Accepted for scikit-learn's sake; it has no effect.
    shrinkage : "auto", float or None, default=None
        A float between 0 and 1 mixes the covariance with its mean variance; "auto" (Ledoit-Wolf)
        goes with `learner="closed_form"` only.
    priors : array-like of shape (n_classes,), default=None
        A fixed p(y).
    n_components : int, default=None
        Number of components of `transform`.
    store_covariance : bool, default=False
        Accepted; `covariance_` is always there.
    tol : float, default=1e-4
        Least relative singular value of a discriminant direction of `transform`.
    covariance_estimator : estimator, default=None
        Goes with `learner="closed_form"` only.
    mean_strength, covariance_strength : float, default=0.0
        Equivalent sample sizes of the prior on means and covariance; 0 is maximum likelihood.
    prior_mean : array-like of shape (n_features,), default=None
        Centre of the prior on means; by default the pooled mean.
    prior_covariance : array-like of shape (n_features, n_features), default=None
        Centre of the prior on the covariance; by default the pooled within-class one.
    diagonal_mix : float, default=0.0
        Share of its own diagonal in the default prior covariance.
    prior_form : {"exact", "paper"}, default="exact"
        The exact mode of the posterior, or the paper's two-strength form.
    covariance_floor : float, default=1e-4
        Least eigenvalue of the covariance, where each column has variance 1.
    class_alpha : float, default=0.0
        Pseudo-counts a class for p(y).
    learner : str or Learner, default="rc"
        How the statistics are trained: "closed_form" gives scikit-learn's numbers.
    class_weight : dict, "balanced" or None, default=None
        Multiplies `sample_weight`.
    warm_start : bool, default=False
        Begin a fit where the last one ended.
    verbose : int, default=0
        Print each iteration.

    Attributes
    ----------
    coef_, intercept_ : ndarray
        The linear scores; one row for two classes.
    covariance_ : ndarray of shape (n_features, n_features)
        Calibrated within-class covariance.
    means_, priors_ : ndarray
        Calibrated means of the classes, and p(y).
    scalings_, xbar_, explained_variance_ratio_ : ndarray
        What `transform` projects on, from where, and how much each component separates.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    statistics_, data_statistics_ : Statistics
        Calibrated, and as counted from the data.
    history_, n_iter_, status_
        Risks of the training rows by iteration, number of scans after the first, how the fit ended.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from riskbayes import LinearDiscriminantAnalysis
    >>> X, y = load_iris(return_X_y=True)
    >>> LinearDiscriminantAnalysis().fit(X, y).transform(X).shape
    (150, 2)
    """

    _parameter_constraints: ClassVar[dict] = {
        **DiscriminantAnalysis._parameter_constraints,
        "solver": [StrOptions({"svd", "lsqr", "eigen"})],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        solver: str = "svd",
        shrinkage: Any = None,
        priors: Any = None,
        n_components: int | None = None,
        store_covariance: bool = False,
        tol: float = 1e-4,
        covariance_estimator: Any = None,
        *,
        mean_strength: float = 0.0,
        covariance_strength: float = 0.0,
        prior_mean: Any = None,
        prior_covariance: Any = None,
        diagonal_mix: float = 0.0,
        prior_form: str = "exact",
        covariance_floor: float = 1e-4,
        class_alpha: float = 0.0,
        learner: Any = "rc",
        class_weight: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
    ):
        self.solver = solver
        self.shrinkage = shrinkage
        self.priors = priors
        self.n_components = n_components
        self.store_covariance = store_covariance
        self.tol = tol
        self.covariance_estimator = covariance_estimator
        self.mean_strength = mean_strength
        self.covariance_strength = covariance_strength
        self.prior_mean = prior_mean
        self.prior_covariance = prior_covariance
        self.diagonal_mix = diagonal_mix
        self.prior_form = prior_form
        self.covariance_floor = covariance_floor
        self.class_alpha = class_alpha
        self.learner = learner
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.verbose = verbose

    def _make_model(self, X: Array, y: Array, sample_weight: Array | None) -> LDAModel:
        r, n = len(self.classes_), X.shape[1]
        most = min(r - 1, n)
        if self.n_components is not None and self.n_components > most:
            raise ValueError(
                f"n_components cannot be larger than min(n_features, n_classes - 1) = {most}; "
                f"got {self.n_components}."
            )
        parameters = self._gaussian_parameters(n)
        given = self._given_covariances(X, y, sample_weight)
        if given is not None:
            p = np.bincount(y) / len(y) if self.priors is None else parameters["class_prior"]
            given = np.tensordot(p, given, axes=1)
        return LDAModel(**parameters, fixed_covariance=given)

    @property
    def _n_features_out(self) -> int:
        return self.n_components or min(len(self.classes_) - 1, self.n_features_in_)

    @property
    def covariance_(self) -> Array:
        """Calibrated within-class covariance."""
        return self.parameters_.covariance

    @property
    def xbar_(self) -> Array:
        """Overall mean, priors @ means."""
        return self.priors_ @ self.means_

    def _scores(self) -> tuple[Array, Array]:
        """Sigma^-1 (mu - xbar) of every class, and the intercept for rows seen from xbar."""
        theta = self.parameters_
        whitened = (theta.means - self.priors_ @ theta.means) @ theta.whitener
        return whitened @ theta.whitener.T, theta.log_prior - 0.5 * (whitened**2).sum(axis=1)

    @property
    def coef_(self) -> Array:
        """Weights of the linear scores."""
        coef = self._scores()[0]
        return coef[1:] - coef[:1] if len(coef) == 2 else coef

    @property
    def intercept_(self) -> Array:
        """Intercepts of the linear scores."""
        coef, intercept = self._scores()
        intercept = intercept - coef @ self.xbar_
        return intercept[1:] - intercept[:1] if len(intercept) == 2 else intercept

    def _directions(self) -> tuple[Array, Array]:
        """Discriminant directions: the singular vectors of the whitened class means."""
        W, p = self.parameters_.whitener, self.priors_
        total = self.data_statistics_.total
        weight = np.sqrt(total * p / max(1, len(p) - 1))
        offsets = self.parameters_.means - p @ self.parameters_.means
        _, singular, Vt = np.linalg.svd((weight[:, None] * offsets) @ W, full_matrices=False)
        rank = int((singular > self.tol * singular[0]).sum())
        return W @ Vt[:rank].T, singular

    @property
    def scalings_(self) -> Array:
        """What `transform` projects on."""
        return self._directions()[0]

    @property
    def explained_variance_ratio_(self) -> Array:
        """Share of the separation that each component explains."""
        singular = self._directions()[1]
        return (singular**2 / (singular**2).sum())[: self._n_features_out]

    def transform(self, X: Any) -> Array:
        """Project on the directions that separate the classes most.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        X_new : ndarray of shape (n_samples, n_components)
            Coordinates, about `xbar_`.
        """
        check_is_fitted(self)
        X = self._encode(X, reset=False, learn=False)
        return (X - self.xbar_) @ self.scalings_[:, : self._n_features_out]

    def decision_function(self, X: Any) -> Array:
        """Linear scores `X @ coef_.T + intercept_`; for two classes the log odds of the second.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            The larger, the more probable the class.
        """
        check_is_fitted(self)
        if len(self.classes_) == 2:
            return super().decision_function(X)
        coef, intercept = self._scores()
        # From xbar, not from zero: data may lie far away.
        return (self._encode(X, reset=False, learn=False) - self.xbar_) @ coef.T + intercept


class QuadraticDiscriminantAnalysis(DiscriminantAnalysis):
    """Quadratic discriminant analysis, trained by risk-based calibration.

    Parameters
    ----------
    solver : {"svd", "eigen"}, default="svd"
        Accepted for scikit-learn's sake; it has no effect.
    shrinkage : "auto", float or None, default=None
        A float between 0 and 1 mixes each covariance with its mean variance; "auto" (Ledoit-Wolf)
        goes with `learner="closed_form"` only.
    priors : array-like of shape (n_classes,), default=None
        A fixed p(y).
    reg_param : float, default=0.0
        Sigma <- (1 - reg_param) Sigma + reg_param I.
    store_covariance : bool, default=False
        Keep `covariance_`.
    tol : float, default=1e-4
        Accepted; `covariance_floor` has its place.
    covariance_estimator : estimator, default=None
        Goes with `learner="closed_form"` only.
    mean_strength, covariance_strength : float, default=0.0
        Equivalent sample sizes of the prior on means and covariances; 0 is maximum likelihood.
    prior_mean : array-like of shape (n_features,), default=None
        Centre of the prior on means; by default the pooled mean.
    prior_covariance : array-like of shape (n_features, n_features), default=None
        Centre of the prior on covariances; by default the pooled within-class one.
    diagonal_mix : float, default=0.0
        Share of its own diagonal in the default prior covariance.
    prior_form : {"exact", "paper"}, default="exact"
        The exact mode of the posterior, or the paper's two-strength form.
    covariance_floor : float, default=1e-4
        Least eigenvalue of a covariance, where each column has variance 1.
    class_alpha : float, default=0.0
        Pseudo-counts a class for p(y).
    learner : str or Learner, default="rc"
        How the statistics are trained: "closed_form" gives scikit-learn's numbers.
    class_weight : dict, "balanced" or None, default=None
        Multiplies `sample_weight`.
    warm_start : bool, default=False
        Begin a fit where the last one ended.
    verbose : int, default=0
        Print each iteration.

    Attributes
    ----------
    means_, priors_ : ndarray
        Calibrated means of the classes, and p(y).
    covariance_ : list of ndarray of shape (n_features, n_features)
        Calibrated covariances; only with `store_covariance=True`.
    rotations_, scalings_ : list of ndarray
        Principal axes of each class and the variances along them.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    statistics_, data_statistics_ : Statistics
        Calibrated, and as counted from the data.
    history_, n_iter_, status_
        Risks of the training rows by iteration, number of scans after the first, how the fit ended.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from riskbayes import QuadraticDiscriminantAnalysis
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = QuadraticDiscriminantAnalysis().fit(X, y)
    >>> clf.sample(3, random_state=0)[0].shape
    (3, 4)
    """

    _parameter_constraints: ClassVar[dict] = {
        **DiscriminantAnalysis._parameter_constraints,
        "solver": [StrOptions({"svd", "eigen"})],
        "reg_param": [Interval(Real, 0, 1, closed="both")],
    }

    def __init__(
        self,
        *,
        solver: str = "svd",
        shrinkage: Any = None,
        priors: Any = None,
        reg_param: float = 0.0,
        store_covariance: bool = False,
        tol: float = 1e-4,
        covariance_estimator: Any = None,
        mean_strength: float = 0.0,
        covariance_strength: float = 0.0,
        prior_mean: Any = None,
        prior_covariance: Any = None,
        diagonal_mix: float = 0.0,
        prior_form: str = "exact",
        covariance_floor: float = 1e-4,
        class_alpha: float = 0.0,
        learner: Any = "rc",
        class_weight: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
    ):
        self.solver = solver
        self.shrinkage = shrinkage
        self.priors = priors
        self.reg_param = reg_param
        self.store_covariance = store_covariance
        self.tol = tol
        self.covariance_estimator = covariance_estimator
        self.mean_strength = mean_strength
        self.covariance_strength = covariance_strength
        self.prior_mean = prior_mean
        self.prior_covariance = prior_covariance
        self.diagonal_mix = diagonal_mix
        self.prior_form = prior_form
        self.covariance_floor = covariance_floor
        self.class_alpha = class_alpha
        self.learner = learner
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.verbose = verbose

    def _make_model(self, X: Array, y: Array, sample_weight: Array | None) -> QDAModel:
        parameters = self._gaussian_parameters(X.shape[1])
        given = self._given_covariances(X, y, sample_weight)
        return QDAModel(**parameters, reg_param=self.reg_param, fixed_covariance=given)

    @property
    def covariance_(self) -> list[Array]:
        """Calibrated covariances."""
        if not self.store_covariance:
            raise AttributeError("covariance_ is kept with store_covariance=True only.")
        return list(self.parameters_.covariances)

    def _axes(self) -> tuple[Array, Array]:
        variances, axes = np.linalg.eigh(self.parameters_.covariances)
        return variances[:, ::-1], axes[:, :, ::-1]

    @property
    def rotations_(self) -> list[Array]:
        """Principal axes of each class."""
        return list(self._axes()[1])

    @property
    def scalings_(self) -> list[Array]:
        """Variances along the principal axes, largest first."""
        return list(self._axes()[0])

    def decision_function(self, X: Any) -> Array:
        """Log joint of each class but for the constant -n/2 log 2pi, as scikit-learn's.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes, the log odds of the second.
        """
        scores = super().decision_function(X)
        return scores if scores.ndim == 1 else scores + 0.5 * self.n_features_in_ * LOG_2PI
