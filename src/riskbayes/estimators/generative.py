"""The estimator for any model, a user's own included."""

from __future__ import annotations

from typing import Any, ClassVar

from riskbayes.estimators.streaming import StreamingClassifier
from riskbayes.models.base import GenerativeModel
from riskbayes.models.traits import Traits


class GenerativeClassifier(StreamingClassifier):
    """Classifier for any :class:`riskbayes.models.GenerativeModel`, your own included.

    Parameters
    ----------
    model : GenerativeModel
        The joint model p(x, y): its statistics, its parameters, its log joint.
    learner : str or Learner, default="rc"
        How the statistics are trained: the name of a learner, or an instance such as `RC(lr=0.1)`.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply `sample_weight`.
    warm_start : bool, default=False
        If True, `fit` starts from the statistics of the last fit.
    verbose : int, default=0
        If positive, print the risks of each iteration.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    statistics_, data_statistics_ : Statistics
        The calibrated statistics, and those of the data.
    parameters_ : object
        The model's parameters, computed from `statistics_`.
    history_ : dict of arrays
        Risks of the training rows (and of validation rows, `val_*`) by iteration; entry 0 is the closed form.
    n_iter_ : int
        Number of scans after that of the closed form.
    best_iteration_ : int
        The iteration in `history_` that was returned: with validation rows the one of least risk on them,
        else the last accepted one; 0 is the closed form.
    status_ : Status
        How the fit ended.
    checks_ : list of Finding
        What may be wrong with the model, with codes; see `doc/findings.md`.
    refit_history_ : dict of arrays or None
        After early stopping with `refit=True`: the risks of all rows by iteration of the refit. `history_`,
        `n_iter_`, `best_iteration_` and `status_` then describe the fit before it, which held rows out.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from riskbayes import GenerativeClassifier
    >>> from riskbayes.models import LDAModel
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = GenerativeClassifier(LDAModel()).fit(X, y)
    >>> bool(clf.score(X, y) > 0.95)
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        **StreamingClassifier._parameter_constraints,
        "model": [GenerativeModel],
    }

    def __init__(
        self,
        model: GenerativeModel,
        learner: Any = "rc",
        *,
        class_weight: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
    ):
        self.model = model
        self.learner = learner
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.verbose = verbose

    @property
    def _takes_missing(self) -> bool:  # type: ignore[override]
        return getattr(self.model, "traits", Traits()).takes_missing

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        traits = getattr(self.model, "traits", Traits())
        tags.array_api_support, tags.normalised_density = traits.array_api, traits.normalised
        return tags

    def _make_model(self) -> GenerativeModel:
        return self.model
