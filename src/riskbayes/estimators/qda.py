"""Quadratic discriminant analysis."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from riskbayes.arrays import Array, namespace
from riskbayes.estimators.discriminant_analysis import DiscriminantAnalysis
from riskbayes.input.schema import Schema
from riskbayes.models.gaussian import LOG_2PI
from riskbayes.models.qda import QDAModel

RECOMMENDED_STRENGTH, RECOMMENDED_MIX = 20, 0.5
"""`covariance_strength` per column, and `diagonal_mix`, of `prior="recommended"`."""


class QuadraticDiscriminantAnalysis(DiscriminantAnalysis):
    """Quadratic discriminant analysis, trained by risk-based calibration.

    Rows may have missing cells (NaN), in `fit` and in predictions: they have the density of their observed
    cells. The closed form is then EM, and calibration uses the expected statistics of the missing cells.

    Parameters
    ----------
    solver : {"svd", "eigen"}, default="svd"
        Has no effect; accepted for compatibility with scikit-learn.
    shrinkage : "auto", float or None, default=None
        A float between 0 and 1 mixes each covariance with its mean variance; "auto" (Ledoit-Wolf)
        works only with `learner="closed_form"`.
    priors : array-like of shape (n_classes,), default=None
        Fixed p(y).
    reg_param : float, default=0.0
        Sigma <- (1 - reg_param) Sigma + reg_param I.
    store_covariance : bool, default=False
        If True, `covariance_` is available.
    tol : float, default=1e-4
        Has no effect. If the rows of a class do not determine its covariance in some directions, that of all
        classes together is used there, with a warning.
    covariance_estimator : estimator, default=None
        Estimator of the covariance; only with `learner="closed_form"`.
    prior : "recommended" or None, default=None
        "recommended" shrinks each covariance towards the mean of the pooled one and its diagonal, with the
        weight of 20 rows per column: `covariance_strength=20 * n_features` and `diagonal_mix=0.5`, unless one
        of these is given. The means have no prior.
    mean_strength : float, default=0.0
        Equivalent sample size of the prior on means; 0 is maximum likelihood.
    covariance_strength : float or None, default=None
        Equivalent sample size of the prior on covariances; 0 is maximum likelihood. None: as `prior` says,
        else 0.
    prior_mean : array-like of shape (n_features,), default=None
        Centre of the prior on means; by default the pooled mean.
    prior_covariance : array-like of shape (n_features, n_features), default=None
        Centre of the prior on covariances; by default the pooled within-class one.
    diagonal_mix : float or None, default=None
        Share of the diagonal matrix of pooled variances in the default prior covariance. Where cells are
        missing, it is multiplied by the share of the pairs of cells that are observed. None: as `prior` says,
        else 0.
    prior_form : {"exact", "paper"}, default="exact"
        The exact mode of the posterior, or the paper's form with two strengths.
    covariance_floor : float, default=1e-2
        Calibration keeps the variance of a class in every direction above this share of the closed form's.
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
    means_, priors_ : ndarray
        Calibrated means of the classes, and p(y).
    covariance_ : list of ndarray of shape (n_features, n_features)
        Calibrated covariances; only with `store_covariance=True`.
    rotations_, scalings_ : list of ndarray
        Principal axes of each class and the variances along them.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    statistics_, data_statistics_, history_, n_iter_, best_iteration_, status_
        As in :class:`GenerativeClassifier`.

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
        "prior": [StrOptions({"recommended"}), None],
        "covariance_strength": [*DiscriminantAnalysis._parameter_constraints["covariance_strength"], None],
        "diagonal_mix": [*DiscriminantAnalysis._parameter_constraints["diagonal_mix"], None],
    }

    _takes_missing = True
    _n_present: int | None = None
    """Number of columns that are not missing everywhere; None if it was not asked for."""

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
        prior: str | None = None,
        mean_strength: float = 0.0,
        covariance_strength: float | None = None,
        prior_mean: Any = None,
        prior_covariance: Any = None,
        diagonal_mix: float | None = None,
        prior_form: str = "exact",
        covariance_floor: float = 1e-2,
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
        self.prior = prior
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

    def _decide(self, schema: Schema, more: bool) -> None:
        super()._decide(schema, more)
        if not more:  # columns that are missing everywhere must not change the prior
            self._n_present = int(np.count_nonzero(schema.n_missing < schema.n_rows))

    def _make_model(self) -> QDAModel:
        parameters, strength, mix = self._gaussian_parameters(), 0.0, 0.0
        if self.prior == "recommended":
            present = self.n_features_in_ if self._n_present is None else self._n_present
            strength, mix = RECOMMENDED_STRENGTH * present, RECOMMENDED_MIX
        for name, default in (("covariance_strength", strength), ("diagonal_mix", mix)):
            parameters[name] = default if parameters[name] is None else parameters[name]
        return QDAModel(**parameters, reg_param=self.reg_param)

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
