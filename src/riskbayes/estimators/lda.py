"""Linear discriminant analysis."""

from dataclasses import field, replace
from numbers import Integral
from typing import Annotated, Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

import riskbayes.estimators.parameters as p
from riskbayes.arrays import Array, astype, namespace, to_widest
from riskbayes.estimators.base import BaseGenerativeClassifier
from riskbayes.estimators.discriminant_analysis import (
    check_stream,
    class_means,
    class_priors,
    gaussian_parameters,
)
from riskbayes.estimators.prediction import Finish, far_row, finish_rows, first_overflow, unchanged
from riskbayes.models.base import Fitted
from riskbayes.models.lda import LDAModel
from riskbayes.risks import posterior
from riskbayes.tables import naming_columns


@p.estimator
class LinearDiscriminantAnalysis(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseGenerativeClassifier):
    """Linear discriminant analysis, trained by risk-based calibration.

    Parameters
    ----------
    solver : {"svd", "lsqr", "eigen"}, default="svd"
        Has no effect; accepted for compatibility with scikit-learn.
    {shrinkage priors}
    n_components : int, default=None
        Number of components of `transform`.
    store_covariance : bool, default=False
        Has no effect: `covariance_` is always available.
    tol : float, default=1e-4
        Directions whose singular value is below `tol` times the largest are left out of `transform`.
    {covariance_estimator}
    {prior}
    mean_strength : float, default=0.0
        Equivalent sample size of the prior on means; 0 is maximum likelihood.
    {covariance_strength prior_mean prior_covariance diagonal_mix prior_form covariance_floor class_alpha}
    {learner class_weight warm_start verbose}

    Attributes
    ----------
    coef_, intercept_ : ndarray
        Coefficients of the linear scores; one row for two classes.
    covariance_ : ndarray of shape (n_features, n_features)
        Calibrated within-class covariance.
    {means_}
    scalings_, xbar_, explained_variance_ratio_ : ndarray
        Directions that `transform` projects on, overall mean, and the share of each component in the
        separation of the classes.
    {classes_ statistics_}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from riskbayes import LinearDiscriminantAnalysis
    >>> X, y = load_iris(return_X_y=True)
    >>> LinearDiscriminantAnalysis().fit(X, y).transform(X).shape
    (150, 2)
    """

    solver: Annotated[str, StrOptions({"svd", "lsqr", "eigen"})] = field(default="svd", kw_only=False)
    shrinkage: p.Shrinkage = field(default=None, kw_only=False)
    priors: p.Numbers = field(default=None, kw_only=False)
    n_components: Annotated[int | None, Interval(Integral, 1, None, closed="left"), None] = field(
        default=None, kw_only=False
    )
    store_covariance: p.Flag = field(default=False, kw_only=False)
    tol: p.Strength = field(default=1e-4, kw_only=False)
    covariance_estimator: p.CovarianceEstimator = field(default=None, kw_only=False)
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
    _decision_formula = "linear_scores"

    def _make_model(self) -> LDAModel:
        r, n = self.classes_.shape[0], self.n_features_in_
        most = min(r - 1, n)
        if self.n_components is not None and self.n_components > most:
            raise ValueError(
                f"n_components cannot be larger than min(n_features, n_classes - 1) = {most} of {n} features "
                f"and {r} class{'es' * (r > 1)}; got {self.n_components}."
            )
        return LDAModel(**gaussian_parameters(self))

    def _check_stream(self) -> None:
        super()._check_stream()
        check_stream(self)

    means_ = property(class_means)
    priors_ = property(class_priors)

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
        check_is_fitted(self)
        X = self._completed_rows(self._encode_new(X, "transform"))
        return self._projected(X, self._directions()[0][:, : self._n_features_out], 0.0)

    def _completed_rows(self, X: Array) -> Array:
        """Return rows with E[x | x_o] in their missing cells, the mean over the classes by the posterior."""
        if not isinstance(X, np.ndarray) or not np.isnan(X).any():
            return X
        model, P = self.model_, finish_rows(self, X, "scores", posterior)
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
                raise far_row(X, bad, "scores", fitted)
        return found

    def _finish_rows(self, X: Array, formula: str, finish: Finish) -> Array:  # type: ignore[override]
        """Apply `finish` also to the linear scores; of rows with missing cells to the log joint."""
        if formula != "linear_scores":
            return finish_rows(self, X, formula, finish)
        coef, intercept = self._scores()
        if not isinstance(X, np.ndarray) or not (missing := np.isnan(X).any(axis=1)).any():
            return finish(self._projected(X, coef.T, intercept[None, :]))
        found = np.empty((len(X), len(intercept)), dtype=X.dtype)
        found[~missing] = self._projected(X[~missing], coef.T, intercept[None, :])
        found[missing] = finish_rows(self, X[missing], "log_joint", unchanged)
        return finish(found)
