"""A classifier from any model."""

from __future__ import annotations

from typing import Any, ClassVar

from riskbayes.estimators.streaming import StreamingClassifier
from riskbayes.models.base import GenerativeModel


class GenerativeClassifier(StreamingClassifier):
    """A classifier from any :class:`riskbayes.models.GenerativeModel`, your own included.

    Parameters
    ----------
    model : GenerativeModel
        The joint model in its three formulas.
    learner : str or Learner, default="rc"
        How it is trained.
    class_weight : dict, "balanced" or None, default=None
        Multiplies `sample_weight`.
    warm_start : bool, default=False
        Begin a fit where the last one ended.
    verbose : int, default=0
        Print each iteration.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    statistics_, data_statistics_ : Statistics
        Calibrated, and as counted from the data.
    parameters_ : object
        The model's parameters of `statistics_`.
    history_ : dict of arrays
        Risks of the training rows by iteration; entry 0 is the closed form.
    n_iter_ : int
        Scans after that of the closed form.
    best_iteration_ : int
        The iteration in `history_` that was returned: the last good one, or with validation rows the best
        for them; 0 is the closed form.
    status_ : Status
        How the fit ended.
    refit_history_ : dict of arrays or None
        After early stopping with `refit=True`: the risks of all rows, by iteration of the refit. `history_`,
        `n_iter_`, `best_iteration_` and `status_` then tell of the path that held rows out.

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = getattr(self.model, "array_api", False)
        tags.normalised_density = getattr(self.model, "normalised", True)
        return tags

    def _make_model(self) -> GenerativeModel:
        return self.model
