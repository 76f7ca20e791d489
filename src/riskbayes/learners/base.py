"""The base class of learners, and the learners by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from sklearn.base import BaseEstimator, clone

from riskbayes.arrays import Array
from riskbayes.loop import Step, run
from riskbayes.models.base import GenerativeModel
from riskbayes.task import Outcome, Task
from riskbayes.web import REFERENCE


class Learner(BaseEstimator):
    """Base class of learners: scikit-learn estimators that only store their parameters.

    A subclass with a `name` is registered by it. It declares its parameters in one line each, with
    :func:`riskbayes.declared.declared`, and writes `begin`, which returns the step of a fit.
    """

    _doc_link_module: ClassVar[str] = "riskbayes"
    _doc_link_template: ClassVar[str] = REFERENCE
    known: ClassVar[dict[str, type[Learner]]] = {}
    """All learners by name, those of other packages included."""
    name: ClassVar[str]
    """The name that estimators accept in place of an instance."""
    needs: ClassVar[tuple[str, ...]] = ()
    """Optional methods of a model that this learner calls."""
    tol: float = 0.0
    max_iter: int = 0
    n_iter_no_change: int = 0
    """Iterations without improvement on the validation rows after which a fit stops; 0 is no limit."""
    picks_rows: bool = True
    """False if a fit only scans all rows: identical ones may then be merged. True if it holds rows out, draws
    them or takes batches, or if nobody said."""
    goes_row_by_row: bool = False
    """True if a fit takes one row after another, which must be in memory."""
    cost_matrix: Array | None = None
    """The costs that the model is trained for, if any: `predict` then takes the label of least cost."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" in vars(cls):
            Learner.known[cls.name] = cls

    @property
    def most_iterations(self) -> int:
        """The most iterations that a fit reports, that of the closed form included."""
        return self.max_iter + 1

    def begin(self, task: Task) -> Step:
        """Return a new step, which holds the state of one fit."""
        raise NotImplementedError

    def fit_statistics(self, task: Task) -> Outcome:
        """Train the statistics by one run of the loop; a learner that selects among runs overrides this."""
        return run(task, self)

    def check(self, model: GenerativeModel, n_classes: int) -> None:
        """Raise an error for wrong parameters, and for a model without a method in `needs`."""
        self._validate_params()
        missing = [name for name in self.needs if not model.implements(name)]
        if missing:
            raise TypeError(
                f"The learner {type(self).__name__} needs {', '.join(missing)} of the model, "
                f"and {type(model).__name__} has no such method. Write it, or choose another learner: "
                f"{list_names(name for name, kind in self.known.items() if kind.accepts(model, n_classes))}."
            )

    def check_stream(self) -> None:
        """Raise an error for parameters that `partial_fit` cannot follow: it takes one step on each batch."""

    @classmethod
    def accepts(cls, model: GenerativeModel, n_classes: int) -> bool:
        """True if the learner of this name can train the model."""
        if not all(map(model.implements, cls.needs)):
            return False
        try:
            cls().check(model, n_classes)
        except (TypeError, ValueError):
            return False
        return True


def list_names(names: Iterable[str]) -> str:
    """Return names of learners in alphabetical order, for messages."""
    return ", ".join(map(repr, sorted(names)))


def resolve_learner(learner: Any, own: Mapping[str, Learner] = MappingProxyType({})) -> Learner:
    """Return the learner to use: a new one for a name, a clone of an instance; names in `own` come first."""
    learner = own.get(learner, learner) if isinstance(learner, str) else learner
    if isinstance(learner, Learner):
        return clone(learner)
    if not isinstance(learner, str) or learner not in Learner.known:
        raise ValueError(
            f"The 'learner' parameter must be one of {list_names(Learner.known)}, or a learner such as "
            f"RC(lr=0.1); got {learner!r}."
        )
    return Learner.known[learner]()
