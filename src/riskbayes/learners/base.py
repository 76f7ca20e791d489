"""What a learner is: an objective, whose residual a scan sums, and a step."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.base import BaseEstimator, clone

from riskbayes.arrays import Array
from riskbayes.loop import Step, run
from riskbayes.models.base import GenerativeModel
from riskbayes.task import Outcome, Task


class Learner(BaseEstimator):
    """Base class of learners: scikit-learn estimators that only store their arguments.

    Attributes
    ----------
    name : str
        The name that estimators accept in place of an instance.
    needs : tuple of str
        Methods that a model must have beside the three formulas.
    """

    known: ClassVar[dict[str, type[Learner]]] = {}
    """All learners by name, those that other packages define too."""
    name: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ()
    tol: float = 0.0
    max_iter: int = 0
    n_iter_no_change: int = 0
    """Iterations without improvement on the validation rows after which a fit stops; 0 is no limit."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" in vars(cls):
            Learner.known[cls.name] = cls

    cost_matrix: Array | None = None
    """The costs that the model was trained for, if any: `predict` then decides for the least."""

    @property
    def most_iterations(self) -> int:
        """The most iterations that a fit reports, that of the closed form included."""
        return self.max_iter + 1

    @classmethod
    def from_name(cls) -> Learner:
        """Return the learner that its name stands for."""
        return cls()

    def begin(self, task: Task) -> Step:
        """Return the step of a fit, which holds its state."""
        raise NotImplementedError

    def fit_statistics(self, task: Task) -> Outcome:
        """Train the statistics: one run of the loop, unless the learner chooses among several."""
        return run(task, self)

    def check(self, model: GenerativeModel, n_classes: int) -> None:
        """Refuse wrong arguments, and a model that lacks what this learner needs."""
        self._validate_params()
        missing = [name for name in self.needs if not model.writes(name)]
        if missing:
            raise TypeError(
                f"The learner {type(self).__name__} needs {', '.join(missing)} of the model, "
                f"and {type(model).__name__} has no such method. Write it, or choose another learner: "
                f"{known_learners(model)}."
            )


def known_learners(model: GenerativeModel | None = None) -> str:
    """Return the names of all learners, or of those that can train a model, for messages."""
    known = Learner.known.items()
    fit = (name for name, kind in known if model is None or all(map(model.writes, kind.needs)))
    return ", ".join(map(repr, sorted(fit)))


def resolve_learner(learner: Any) -> Learner:
    """Return the learner to use: a new one for a name, a clone of an instance."""
    if isinstance(learner, Learner):
        return clone(learner)
    if not isinstance(learner, str) or learner not in Learner.known:
        raise ValueError(
            f"The 'learner' parameter must be one of {known_learners()}, or a learner such as RC(lr=0.1); "
            f"got {learner!r}."
        )
    return Learner.known[learner].from_name()
