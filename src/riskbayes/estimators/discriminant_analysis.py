"""What discriminant analyses share: the prior and estimators of covariances."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from riskbayes.arrays import Array, namespace
from riskbayes.estimators.checks import check_class_prior, check_prior_covariance, check_prior_mean
from riskbayes.learners.base import resolve_learner
from riskbayes.models.gaussian import GaussianModel

RECOMMENDED_STRENGTH, RECOMMENDED_MIX = 20, 0.5
"""`covariance_strength` per column, and `diagonal_mix`, of `prior="recommended"`; of
`benchmarks/gaussian_prior.py`."""


def has_recommended_prior(clf: Any, *others: Any) -> bool:
    """True if the prior is the recommended one; `others` are parameters that "auto" gives way to."""
    if clf.prior != "auto":
        return clf.prior == "recommended"
    given = any(value is not None and value != 0.0 for value in others)
    return not given and resolve_learner(clf.learner).max_iter > 0


def covariance_prior(clf: Any, *others: Any) -> dict[str, Any]:
    """Return the strength and the mix of the prior on covariances, as given or by the parameter `prior`."""
    found = {"covariance_strength": 0.0, "diagonal_mix": 0.0}
    given = {name: getattr(clf, name) for name in found if getattr(clf, name) is not None}
    if clf.prior == "recommended" or (not given and has_recommended_prior(clf, *others)):
        present = clf.n_features_in_ if clf._n_present is None else clf._n_present
        found = {"covariance_strength": RECOMMENDED_STRENGTH * present, "diagonal_mix": RECOMMENDED_MIX}
    return found | given


def gaussian_parameters(clf: Any) -> dict[str, Any]:
    """Return the checked hyper-parameters that every Gaussian model has."""
    n, auto = clf.n_features_in_, clf.shrinkage == "auto"
    own = {f.name for f in fields(GaussianModel)} & set(clf.get_params(deep=False))
    found = {name: getattr(clf, name) for name in own} | {
        "shrinkage": 0.0 if clf.shrinkage is None or auto else float(clf.shrinkage),
        "standardise": auto,
        **covariance_prior(clf, clf.shrinkage, getattr(clf, "reg_param", None)),
    }
    if clf.prior_mean is not None:
        found["prior_mean"] = check_prior_mean(clf.prior_mean, n)
    if clf.prior_covariance is not None:
        found["prior_covariance"] = check_prior_covariance(clf.prior_covariance, n)
    if clf.priors is not None:
        r = clf.classes_.shape[0]
        found["class_prior"] = check_class_prior(clf.priors, r, "priors", renormalise=True)
    if auto or clf.covariance_estimator is not None:
        found["covariance_estimator"] = covariance_estimator(clf)
    return found


def covariance_estimator(clf: Any) -> Any:
    """Return the estimator of the covariances that the parameters ask for; refuse what contradicts it."""
    auto = clf.shrinkage == "auto"
    if clf.shrinkage not in (None, 0) and clf.covariance_estimator is not None:
        raise ValueError(
            "covariance_estimator and shrinkage parameters are not None. Only one of the two can be set."
        )
    if resolve_learner(clf.learner).max_iter > 0:
        name = "shrinkage='auto'" if auto else "covariance_estimator"
        raise ValueError(
            f"{name} is no function of the statistics that {clf.learner!r} calibrates: use it with "
            "learner='closed_form', or a prior (covariance_strength) in its place."
        )
    if auto:
        from sklearn.covariance import LedoitWolf  # slow to import, and seldom needed

        return LedoitWolf()
    return clf.covariance_estimator


def check_stream(clf: Any) -> None:
    """Refuse estimators of covariances that need all rows at once."""
    if clf.shrinkage == "auto" or clf.covariance_estimator is not None:
        raise ValueError(
            "shrinkage='auto' and covariance_estimator need all rows at once: call fit, or give "
            "partial_fit a shrinkage between 0 and 1 or a prior (covariance_strength)."
        )


def class_means(clf: Any) -> Array:
    """Calibrated means of the classes."""
    return clf._in_row_dtype(clf.parameters_.means + clf.parameters_.frame.origin[None, :])


def class_priors(clf: Any) -> Array:
    """Calibrated p(y)."""
    return clf._in_row_dtype(namespace(clf.parameters_.log_prior).exp(clf.parameters_.log_prior))
