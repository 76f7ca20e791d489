"""What a learner is: a residual and a step."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.base import BaseEstimator, clone

from riskbayes.engines.base import Scan
from riskbayes.models.base import GenerativeModel, Residual
from riskbayes.statistics import Statistics


class Step:
    """The moves of one fit: state that a learner must not keep on itself.

    The loop asks it where to go next, and tells it what came of it.
    """

    lr: float = 0.0
    """The step length in force, for the history."""

    def propose(self, S: Statistics, scan: Scan) -> Statistics:
        """The statistics to try next, from the last good ones and their scan."""
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
    residual : callable or None
        (P, y) -> E; None for a learner that takes no steps.
    """

    name: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ()
    residual: Residual | None = None
    tol: float = 0.0
    max_iter: int = 0

    def begin(self, model: GenerativeModel, S: Statistics) -> Step:
        """The state of a fit that starts from the statistics of the data."""
        return Step()

    def monitored(self, risks: dict[str, float]) -> float:
        """The quantity that must not rise."""
        return risks["soft_error"]

    def check(self, model: GenerativeModel) -> None:
        """Refuse arguments that are wrong, and a model that lacks what this learner needs."""
        self._validate_params()
        missing = [
            name
            for name in self.needs
            if getattr(type(model), name, None) is getattr(GenerativeModel, name, None)
        ]
        if missing:
            raise TypeError(
                f"The learner {type(self).__name__} needs {', '.join(missing)} of the model, "
                f"and {type(model).__name__} has no such method. Write it, or choose another learner: "
                f"{known_learners()}."
            )


def known_learners() -> str:
    """The names of all learners, for messages."""
    return ", ".join(repr(name) for name in sorted(_by_name()))


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
    return known[learner]()
