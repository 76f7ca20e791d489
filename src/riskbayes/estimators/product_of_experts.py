"""A product of several models of the same rows as one classifier."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from riskbayes.estimators.base import BaseGenerativeClassifier
from riskbayes.estimators.checks import as_floats
from riskbayes.estimators.qda import QuadraticDiscriminantAnalysis
from riskbayes.estimators.smooth_nb import SmoothNB
from riskbayes.models.base import GenerativeModel
from riskbayes.models.product import ProductModel


class ProductOfExperts(BaseGenerativeClassifier):
    """A product of generative models, calibrated together.

    The posterior is that of p(y) prod_e p_e(x | y)^weight_e: the log joints of the experts are weighted and
    added, the class prior counts once, and RC moves the statistics of all experts by one residual.

    A product of densities is not normalised: `predict_joint_log_proba` and `score_samples` lack a constant
    of the model. They can still compare rows with each other; there is no `sample`.

    Parameters
    ----------
    experts : sequence of estimators or models
        Models, or estimators of this package that take tables of numbers; their `learner` and weights are
        not used, and p(y) is the first one's. By default :class:`QuadraticDiscriminantAnalysis` with a prior
        of 5 rows per column, and :class:`SmoothNB`.
    weights : sequence of float, default=None
        Powers of the experts' densities; by default equal, with the sum one.
    learner : str or Learner, default="rc"
        How the statistics are trained.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply `sample_weight`.
    warm_start : bool, default=False
        If True, `fit` starts from the statistics of the last fit.
    verbose : int, default=0
        If positive, print the risks of each iteration.

    Attributes
    ----------
    experts_ : list
        The experts' models; `parameters_.experts` holds their parameters.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    statistics_, data_statistics_, history_, n_iter_, best_iteration_, status_
        As in :class:`GenerativeClassifier`; the statistics are those of all experts, side by side.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from riskbayes import ProductOfExperts, QuadraticDiscriminantAnalysis, SmoothNB
    >>> X, y = load_iris(return_X_y=True)
    >>> experts = [QuadraticDiscriminantAnalysis(prior="recommended"), SmoothNB()]
    >>> clf = ProductOfExperts(experts, weights=[0.5, 0.5]).fit(X, y)
    >>> clf.predict(X[:2])
    array([0, 0])
    """

    _parameter_constraints: ClassVar[dict] = {
        **BaseGenerativeClassifier._parameter_constraints,
        "experts": ["array-like", None],
        "weights": ["array-like", None],
    }

    def __init__(
        self,
        experts: Any = None,
        weights: Any = None,
        *,
        learner: Any = "rc",
        class_weight: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
    ):
        self.experts = experts
        self.weights = weights
        self.learner = learner
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = self.experts is not None and all(map(takes_any_array, self.experts))
        tags.normalised_density = False
        return tags

    def _make_model(self) -> ProductModel:
        experts = default_experts(self.n_features_in_) if self.experts is None else list(self.experts)
        if not experts:
            raise ValueError("experts must hold at least one estimator or model.")
        weights = np.full(len(experts), 1 / len(experts))
        if self.weights is not None:
            weights = as_floats(self.weights, "weights")
        if weights.shape != (len(experts),) or not (np.isfinite(weights) & (weights > 0)).all():
            raise ValueError(
                f"weights must be one positive number an expert, {len(experts)} in all; got {self.weights!r}."
            )
        return ProductModel(tuple(map(self._model_of, experts)), tuple(weights.tolist()))

    def _model_of(self, expert: Any) -> GenerativeModel:
        """Return the model of an expert; refuse what is none, or reads categories."""
        if isinstance(expert, GenerativeModel):
            return expert
        if not isinstance(expert, BaseGenerativeClassifier):
            raise TypeError(
                f"experts must be estimators of riskbayes or models; got {type(expert).__name__}. To average "
                "other classifiers, see sklearn.ensemble.VotingClassifier."
            )
        if expert.__sklearn_tags__().input_tags.categorical:
            raise TypeError(
                f"experts read one table of numbers; {type(expert).__name__} reads categories. Put a model "
                "of codes in its place, such as riskbayes.models.CategoricalModel(), if all take codes."
            )
        own = clone(expert)
        own._validate_params()
        own.classes_, own.n_features_in_ = self.classes_, self.n_features_in_
        return own._make_model()

    @property
    def experts_(self) -> list[GenerativeModel]:
        """The experts' models."""
        return list(self.model_.experts)  # type: ignore[attr-defined]


def takes_any_array(expert: Any) -> bool:
    """True if an expert takes arrays of every library."""
    if isinstance(expert, BaseGenerativeClassifier):
        return bool(expert.__sklearn_tags__().array_api_support)
    return getattr(expert, "array_api", False)


def default_experts(n_features: int, n_knots: int = 6) -> list[Any]:
    """Return QDA with a strong prior, and smooth naive Bayes: the experts of `RiskBayesClassifier`."""
    gaussian = QuadraticDiscriminantAnalysis(
        prior="recommended", covariance_strength=5 * n_features, diagonal_mix=0.3
    )
    return [gaussian, SmoothNB(n_knots=n_knots, alpha=5.0)]
