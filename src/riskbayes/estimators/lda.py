"""Linear discriminant analysis."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from riskbayes.arrays import Array, astype, namespace, to_widest
from riskbayes.estimators.discriminant_analysis import DiscriminantAnalysis
from riskbayes.estimators.prediction import first_overflow, unchanged
from riskbayes.input.source import Result
from riskbayes.input.sources import source_of
from riskbayes.models.base import Fitted
from riskbayes.models.lda import LDAModel
from riskbayes.risks import posterior
from riskbayes.tables import naming_columns


class LinearDiscriminantAnalysis(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DiscriminantAnalysis):
    """Linear discriminant analysis, trained by risk-based calibration.

    Parameters
    ----------
    solver : {"svd", "lsqr", "eigen"}, default="svd"
        Has no effect; accepted for compatibility with scikit-learn.
    shrinkage : "auto", float or None, default=None
        A float between 0 and 1 mixes the covariance with its mean variance; "auto" (Ledoit-Wolf)
        works only with `learner="closed_form"`.
    priors : array-like of shape (n_classes,), default=None
        Fixed p(y).
    n_components : int, default=None
        Number of components of `transform`.
    store_covariance : bool, default=False
        Has no effect: `covariance_` is always available.
    tol : float, default=1e-4
        Directions whose singular value is below `tol` times the largest are left out of `transform`.
    covariance_estimator : estimator, default=None
        Estimator of the covariance; only with `learner="closed_form"`.
    mean_strength, covariance_strength : float, default=0.0
        Equivalent sample sizes of the prior on means and covariance; 0 is maximum likelihood.
    prior_mean : array-like of shape (n_features,), default=None
        Centre of the prior on means; by default the pooled mean.
    prior_covariance : array-like of shape (n_features, n_features), default=None
        Centre of the prior on the covariance; by default the pooled within-class one.
    diagonal_mix : float, default=0.0
        Share of the diagonal matrix of pooled variances in the default prior covariance.
    prior_form : {"exact", "paper"}, default="exact"
        The exact mode of the posterior, or the paper's form with two strengths.
    covariance_floor : float, default=1e-2
        Calibration keeps the variance in every direction above this share of the closed form's.
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
    coef_, intercept_ : ndarray
        Coefficients of the linear scores; one row for two classes.
    covariance_ : ndarray of shape (n_features, n_features)
        Calibrated within-class covariance.
    means_, priors_ : ndarray
        Calibrated means of the classes, and p(y).
    scalings_, xbar_, explained_variance_ratio_ : ndarray
        Directions that `transform` projects on, overall mean, and the share of each component in the
        separation of the classes.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    statistics_, data_statistics_, history_, n_iter_, best_iteration_, status_
        As in :class:`GenerativeClassifier`.

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

    _takes_missing = True

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

    def _make_model(self) -> LDAModel:
        r, n = self.classes_.shape[0], self.n_features_in_
        most = min(r - 1, n)
        if self.n_components is not None and self.n_components > most:
            raise ValueError(
                f"n_components cannot be larger than min(n_features, n_classes - 1) = {most} of {n} features "
                f"and {r} class{'es' * (r > 1)}; got {self.n_components}."
            )
        return LDAModel(**self._gaussian_parameters())

    @property
    def _n_features_out(self) -> int:
        return self.n_components or min(self.classes_.shape[0] - 1, self.n_features_in_)

    @property
    def covariance_(self) -> Array:
        """Calibrated within-class covariance."""
        return self._in_row_dtype(self.parameters_.covariance)

    @property
    def xbar_(self) -> Array:
        """Overall mean, priors @ means."""
        return self._in_row_dtype(self._overall_mean())

    def _overall_mean(self) -> Array:
        """Return `xbar_` in the dtype of the parameters."""
        theta = self.parameters_
        return namespace(theta.means).exp(theta.log_prior) @ theta.means + theta.frame.origin

    def _scores(self) -> tuple[Array, Array]:
        """Return Sigma^-1 (mu - xbar) of every class, and the intercept for rows minus xbar."""
        B, intercept = replace(self.parameters_, means=self._centred_means()[1]).form
        return B.T, intercept

    def _centred_means(self) -> tuple[Array, Array]:
        """Return p(y), and the class means minus xbar."""
        means, log_prior = self.parameters_.means, self.parameters_.log_prior
        p = namespace(means).exp(log_prior)
        return p, means - (p @ means)[None, :]

    @property
    def coef_(self) -> Array:
        """Weights of the linear scores."""
        coef = self._scores()[0]
        return self._in_row_dtype(coef[1:, :] - coef[:1, :] if coef.shape[0] == 2 else coef)

    @property
    def intercept_(self) -> Array:
        """Intercepts of the linear scores."""
        coef, intercept = self._scores()
        intercept = intercept - coef @ self._overall_mean()
        return self._in_row_dtype(intercept[1:] - intercept[:1] if intercept.shape[0] == 2 else intercept)

    def _directions(self) -> tuple[Array, Array]:
        """Return the singular vectors of the whitened class means, as directions, and the singular values."""
        W, (p, means) = self.parameters_.whitener, self._centred_means()
        xp = namespace(means)
        _, singular, Vt = xp.linalg.svd((xp.sqrt(p)[:, None] * means) @ W, full_matrices=False)
        rank = int(xp.sum(xp.astype(singular > self.tol * singular[0], xp.int64)))
        return W @ Vt[:rank, :].T, singular

    @property
    def scalings_(self) -> Array:
        """Directions that `transform` projects on."""
        return self._in_row_dtype(self._directions()[0])

    @property
    def explained_variance_ratio_(self) -> Array:
        """Share of each component in the separation of the classes."""
        singular = self._directions()[1]
        squared = singular * singular
        return self._in_row_dtype(squared[: self._n_features_out] / namespace(squared).sum(squared))

    def transform(self, X: Any) -> Array:
        """Project on the directions that separate the classes most.

        Missing cells are replaced by their means given the observed cells of the row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        X_new : ndarray of shape (n_samples, n_components)
            Coordinates relative to `xbar_`.
        """
        X = self._completed_rows(self._encode_again(X, "transform"))
        return self._projected(X, self._directions()[0][:, : self._n_features_out], 0.0)

    def _completed_rows(self, X: Array) -> Array:
        """Return rows with E[x | x_o] in their missing cells, the mean over the classes by the posterior."""
        if not isinstance(X, np.ndarray) or not np.isnan(X).any():
            return X
        model, P = self.model_, self._map_rows(X, "scores", posterior)
        Z = model.encode(X, self.statistics_.frame)
        filled: Any = 0.0
        for k in range(P.shape[1]):
            every = np.full(len(X), k)
            filled = filled + P[:, k, None] * model.fill(Z, self.parameters_, every)
        return astype(filled, X.dtype)

    def _projected(self, X: Array, B: Array, c: Any) -> Array:
        """Return (X - xbar) B + c. Subtracting xbar first keeps the digits of data far from zero."""
        with naming_columns(self), np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused
            # In the widest dtype: for nearly collinear columns, scores are differences of large terms.
            found = astype((to_widest(X) - self._overall_mean()[None, :]) @ B + c, X.dtype)
            bad = first_overflow(0.0 * found)  # NaN where an entry is not finite
            if bad is not None:
                fitted = Fitted(self.model_, self.statistics_, self.parameters_)
                raise self._far_row(X, bad, "scores", fitted)
        return found

    def decision_function(self, X: Any) -> Array:
        """Return the linear scores `X @ coef_.T + intercept_`; for two classes the log odds of the second.

        Those of rows with missing cells are the log joint of their observed cells.

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
        if self.classes_.shape[0] == 2:
            return super().decision_function(X)
        return source_of(X).map(self._linear_scores, Result(self.classes_.shape[0], np.dtype(np.float64)))

    def _linear_scores(self, X: Any) -> Array:
        """Return the linear scores of rows in memory."""
        X = self._encode_again(X, "decision_function")
        coef, intercept = self._scores()
        if not isinstance(X, np.ndarray) or not (missing := np.isnan(X).any(axis=1)).any():
            return self._projected(X, coef.T, intercept[None, :])
        found = np.empty((len(X), len(intercept)), dtype=X.dtype)
        found[~missing] = self._projected(X[~missing], coef.T, intercept[None, :])
        found[missing] = self._map_rows(X[missing], "log_joint", unchanged)
        return found
