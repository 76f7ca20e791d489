"""`verbose`, and scikit-learn's experimental callbacks, behind one small class."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sklearn.callback import CallbackSupportMixin

from riskbayes.task import Iteration

__all__ = ["CallbackSupportMixin", "FitProgress", "FitTask"]


class FitProgress:
    """Tells the user, and the callbacks that the user set, of each iteration of one fit.

    Parameters
    ----------
    estimator : estimator
        The one being fitted.
    most : int
        The most iterations, that of the closed form included.
    rows : tuple
        X, y and the weights, as the user passed them.
    fitted : callable
        Fitted attributes for an iteration, so that a callback can score it.
    """

    def __init__(
        self,
        estimator: Any,
        most: int,
        rows: tuple[Any, Any, Any],
        fitted: Callable[[Iteration], dict[str, Any]],
    ):
        self.estimator, self.most, self.fitted = estimator, most, fitted
        X, y, w = rows
        self.data = {"X": X, "y": y, "metadata": None if w is None else {"sample_weight": w}}
        self.context = estimator._init_callback_context(max_subtasks=most)
        self.context.call_on_fit_task_begin(estimator=estimator, **self.data)

    def __call__(self, iteration: Iteration) -> bool:
        """Report one accepted iteration; True stops the fit."""
        if self.estimator.verbose:
            risks = iteration.risks
            print(
                f"[{type(self.estimator).__name__}] iteration {iteration.number}/{self.most - 1}  "
                f"soft error {risks['soft_error']:.6f}  error {risks['error']:.4f}  "
                f"log loss {risks['log_loss']:.6f}"
            )
        if not self.context._callbacks:
            return False
        task = self.context.subcontext(task_name="iteration")
        task.call_on_fit_task_begin(estimator=self.estimator, **self.data)
        return task.call_on_fit_task_end(
            estimator=self.estimator,
            **self.data,
            reconstruction_attributes=lambda: self.fitted(iteration),
        )

    def end(self) -> None:
        """The fit is over."""
        if self.estimator.verbose:
            print(f"[{type(self.estimator).__name__}] {self.estimator.status_.message}")
        self.context.call_on_fit_task_end(
            estimator=self.estimator, **self.data, reconstruction_attributes=dict
        )


class FitTask:
    """A task of a fit that is made of others: the fit itself, a member of a search, a fold.

    Parameters
    ----------
    estimator : estimator or None
        The one being fitted.
    context : CallbackContext or None
        The task as callbacks see it; None: there are no callbacks to tell.
    data : dict
        `X`, `y` and `metadata` as callbacks expect them.
    """

    def __init__(self, estimator: Any = None, context: Any = None, data: dict[str, Any] | None = None):
        self.estimator, self.context, self.data = estimator, context, data or {}
        if context is not None:
            context.call_on_fit_task_begin(estimator=estimator, **self.data)

    @classmethod
    def root(cls, estimator: Any, n_tasks: int, rows: tuple[Any, Any, Any]) -> FitTask:
        """Begin the fit of an estimator to X, y and weights, as a task of so many others."""
        X, y, w = rows
        data = {"X": X, "y": y, "metadata": None if w is None else {"sample_weight": w}}
        return cls(estimator, estimator._init_callback_context(max_subtasks=n_tasks), data)

    def begin(self, name: str, n_tasks: int = 0) -> FitTask:
        """Begin the next task within this one."""
        if self.context is None:
            return self
        return FitTask(self.estimator, self.context.subcontext(name, max_subtasks=n_tasks), self.data)

    def end(self, fitted: Callable[[], dict[str, Any]] | None = None) -> bool:
        """End this task; True if a callback asks to stop. `fitted` makes attributes that can predict."""
        if self.context is None:
            return False
        return self.context.call_on_fit_task_end(
            estimator=self.estimator, **self.data, reconstruction_attributes=fitted
        )

    @contextmanager
    def fitting(self, name: str, estimator: Any) -> Iterator[None]:
        """Begin a task in which another estimator is fitted, and end it; its tasks are within this one."""
        if self.context is None or not isinstance(estimator, CallbackSupportMixin):
            task = self.begin(name)
            yield
        else:
            context = self.context.subcontext(name)
            with context.propagate_callback_context(estimator):
                task = FitTask(self.estimator, context, self.data)
                yield
        task.end()
