"""What linear and quadratic discriminant analysis share: the prior and estimators of covariances."""

from __future__ import annotations

from dataclasses import fields
from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from riskbayes.arrays import Array, namespace
from riskbayes.estimators.checks import check_class_prior, check_prior_covariance, check_prior_mean
from riskbayes.estimators.streaming import StreamingClassifier
from riskbayes.learners.base import resolve_learner
from riskbayes.models.gaussian import GaussianModel


class DiscriminantAnalysis(StreamingClassifier):
    """Base class of LDA and QDA: parameters of the Gaussian prior, and estimators of covariances."""

    _parameter_constraints: ClassVar[dict] = {
        **StreamingClassifier._parameter_constraints,
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

    def _gaussian_parameters(self) -> dict[str, Any]:
        """Return the checked hyper-parameters that every Gaussian model has."""
        n, auto = self.n_features_in_, self.shrinkage == "auto"
        own = {f.name for f in fields(GaussianModel)} & set(self.get_params(deep=False))
        found = {name: getattr(self, name) for name in own} | {
            "shrinkage": 0.0 if self.shrinkage is None or auto else float(self.shrinkage),
            "standardise": auto,
        }
        if self.prior_mean is not None:
            found["prior_mean"] = check_prior_mean(self.prior_mean, n)
        if self.prior_covariance is not None:
            found["prior_covariance"] = check_prior_covariance(self.prior_covariance, n)
        if self.priors is not None:
            r = self.classes_.shape[0]
            found["class_prior"] = check_class_prior(self.priors, r, "priors", renormalise=True)
        if auto or self.covariance_estimator is not None:
            found["covariance_estimator"] = self._covariance_estimator()
        return found

    def _covariance_estimator(self) -> Any:
        """Return the estimator of the covariances that the parameters ask for; refuse what contradicts it."""
        auto = self.shrinkage == "auto"
        if self.shrinkage not in (None, 0) and self.covariance_estimator is not None:
            raise ValueError(
                "covariance_estimator and shrinkage parameters are not None. Only one of the two can be set."
            )
        if resolve_learner(self.learner).max_iter > 0:
            name = "shrinkage='auto'" if auto else "covariance_estimator"
            raise ValueError(
                f"{name} is no function of the statistics that {self.learner!r} calibrates: use it with "
                "learner='closed_form', or a prior (covariance_strength) in its place."
            )
        if auto:
            from sklearn.covariance import LedoitWolf  # slow to import, and seldom needed

            return LedoitWolf()
        return self.covariance_estimator

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
        return self._in_row_dtype(self.parameters_.means + self.parameters_.frame.origin[None, :])

    @property
    def priors_(self) -> Array:
        """Calibrated p(y)."""
        return self._in_row_dtype(namespace(self.parameters_.log_prior).exp(self.parameters_.log_prior))
