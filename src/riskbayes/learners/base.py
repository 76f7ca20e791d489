"""What a learner is: an objective, which has a residual, and a step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from sklearn.base import BaseEstimator, clone

from riskbayes.engines.base import Engine, Scan
from riskbayes.models.base import GenerativeModel, Residual
from riskbayes.statistics import Array, Statistics

if TYPE_CHECKING:
    from riskbayes.loop import Outcome, Task


class Step:
    """The moves of one fit: state that a learner must not keep on itself.

    The loop asks it where to go next, and tells it what came of it.
    """

    lr: float = 0.0
    """The step length in force, for the history."""

    residual: Residual
    """What a scan adds up."""

    def risk(self, risks: dict[str, float]) -> float:
        """The monitored risk, of training or of validation rows."""
        return risks["soft_error"]

    def value(self, risks: dict[str, float], theta: Any) -> float:
        """The monitored quantity, which must not rise: that risk, and what the objective adds to it."""
        return self.risk(risks)

    def propose(self, S: Statistics, theta: Any, scan: Scan) -> Statistics:
        """The statistics to try next, from the last good ones, their parameters and their scan."""
        raise NotImplementedError

    def on_success(self) -> None:
        """The proposal was good and is now the last good one."""

    def retry(self) -> bool:
        """The proposal was illegal or made things worse: is there another to try?"""
        return False


class Learner(BaseEstimator):
    """Base class of learners: scikit-learn estimators that only store their arguments.

    Attributes
    ----------
    name : str
        The name that estimators accept in place of an instance.
    needs : tuple of str
        Methods that a model must have beside the three formulas.
    """

    name: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ()
    tol: float = 0.0
    max_iter: int = 0
    n_iter_no_change: int = 0
    """Iterations that validation rows may fail to improve; 0 is no limit."""

    def cost_matrix(self, n_classes: int) -> Array | None:
        """The costs that the model was trained for, if any: `predict` then decides for the least."""
        return None

    def most_iterations(self) -> int:
        """The most iterations that a fit reports, that of the closed form included."""
        return self.max_iter + 1

    @classmethod
    def from_name(cls) -> Learner:
        """The learner that its name stands for."""
        return cls()

    def begin(self, model: GenerativeModel, engine: Engine, S: Statistics) -> Step:
        """The state of a fit on rows whose statistics are S."""
        raise NotImplementedError

    def fit_statistics(self, task: Task) -> Outcome:
        """Train the statistics: one run of the loop, unless the learner chooses among several."""
        from riskbayes.loop import run

        return run(task, self)

    def check(self, model: GenerativeModel, n_classes: int) -> None:
        """Refuse arguments that are wrong, and a model that lacks what this learner needs."""
        self._validate_params()
        missing = [name for name in self.needs if not model.writes(name)]
        if missing:
            raise TypeError(
                f"The learner {type(self).__name__} needs {', '.join(missing)} of the model, "
                f"and {type(model).__name__} has no such method. Write it, or choose another learner: "
                f"{known_learners(model)}."
            )


def known_learners(model: GenerativeModel | None = None) -> str:
    """The names of all learners, or of those that a model has what they need, for messages."""
    fit = {name for name, kind in _by_name().items() if model is None or all(map(model.writes, kind.needs))}
    return ", ".join(repr(name) for name in sorted(fit))


def _by_name() -> dict[str, type[Learner]]:
    found, todo = {}, list(Learner.__subclasses__())
    while todo:
        kind = todo.pop()
        todo += kind.__subclasses__()
        if "name" in vars(kind):
            found[kind.name] = kind
    return found


def resolve_learner(learner: Any) -> Learner:
    """An instance from a name or an instance; the user's own is not touched."""
    if isinstance(learner, Learner):
        return clone(learner)
    known = _by_name()
    if not isinstance(learner, str) or learner not in known:
        raise ValueError(
            f"The 'learner' parameter must be one of {known_learners()}, or a learner such as RC(lr=0.1); "
            f"got {learner!r}."
        )
    return known[learner].from_name()
