"""The estimator for any model, a user's own included."""

from dataclasses import field, fields, is_dataclass, replace
from typing import Annotated, Any, Self

import riskbayes.estimators.parameters as p
from riskbayes.estimators.base import BaseGenerativeClassifier
from riskbayes.models.base import GenerativeModel
from riskbayes.models.traits import Traits


@p.estimator
class GenerativeClassifier(BaseGenerativeClassifier):
    """Classifier for any :class:`riskbayes.models.GenerativeModel`, your own included.

    Parameters
    ----------
    model : GenerativeModel
        The joint model p(x, y): its statistics, its parameters, its log joint. If it is a dataclass, a grid
        search reaches its fields as `model__<name>`.
    {learner class_weight warm_start verbose}

    Attributes
    ----------
    {classes_}
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

    model: Annotated[GenerativeModel, GenerativeModel] = field(kw_only=False)
    learner: p.LearnerOrName = field(default="rc", kw_only=False)
    class_weight: p.ClassWeight = None
    warm_start: p.Flag = False
    verbose: p.Verbose = 0

    _adds_up = True

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters.

        Parameters
        ----------
        deep : bool, default=True
            If True, also those of the learner and of a model that is a dataclass, as `model__<name>`.

        Returns
        -------
        params : dict
            Parameters by name.
        """
        found = super().get_params(deep)
        if deep and is_dataclass(self.model):
            own = (f.name for f in fields(self.model) if f.init)
            found |= {f"model__{name}": getattr(self.model, name) for name in own}
        return found

    def set_params(self, **params: Any) -> Self:
        """Set parameters; `model__<name>` replaces the model by one with another value of that field.

        Parameters
        ----------
        **params : dict
            Parameters by name.

        Returns
        -------
        self : object
            The estimator.
        """
        own = {name: params.pop(name) for name in list(params) if name.startswith("model__")}
        super().set_params(**params)
        known = self.get_params()
        for name in own:
            if name not in known:
                raise ValueError(
                    f"{name} is no parameter: {type(self.model).__name__} has no such field. "
                    "The fields of a model that is a dataclass are parameters; for another model pass model=."
                )
        if own:
            self.model = replace(self.model, **{name.removeprefix("model__"): own[name] for name in own})  # type: ignore[type-var]
        return self

    @property
    def _traits(self) -> Traits:
        return getattr(self.model, "traits", Traits())

    @property
    def _takes_missing(self) -> bool:  # type: ignore[override]
        return self._traits.takes_missing

    @property
    def _array_api(self) -> bool:  # type: ignore[override]
        return self._traits.array_api

    @property
    def _normalised(self) -> bool:  # type: ignore[override]
        return self._traits.normalised

    def _make_model(self) -> GenerativeModel:
        return self.model
