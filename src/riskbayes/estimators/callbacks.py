"""scikit-learn's experimental callbacks, behind one small class."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any, Self

from sklearn.callback import CallbackSupportMixin


class FitTask:
    """A task of a fit, as callbacks see it: the fit itself, an iteration, a member of a search, a fold.

    Parameters
    ----------
    estimator : estimator or None
        The estimator being fitted. Without one, or without callbacks, a task does nothing.
    n_tasks : int
        The most tasks within this one.
    rows : tuple
        X, y and the weights, as the user passed them.
    """

    context: Any = None
    """The task in scikit-learn's terms; None if there are no callbacks."""

    def __init__(self, estimator: Any = None, n_tasks: int = 0, rows: tuple = (None, None, None)):
        X, y, w = rows
        self.arguments = {"estimator": estimator, "X": X, "y": y}
        self.arguments["metadata"] = None if w is None else {"sample_weight": w}
        if estimator is not None:
            context = CallbackSupportMixin._init_callback_context(estimator, max_subtasks=n_tasks)
            if context._callbacks:
                self.context = context.call_on_fit_task_begin(**self.arguments)

    def begin(self, name: str, n_tasks: int = 0) -> Self:
        """Begin the next task within this one."""
        if self.context is None:
            return self
        return self._begin(self.context.subcontext(name, max_subtasks=n_tasks))

    def _begin(self, context: Any) -> Self:
        """Tell the callbacks that the task of this context begins."""
        task = copy(self)
        task.context = context.call_on_fit_task_begin(**self.arguments)
        return task

    def end(self, fitted: Callable[[], dict[str, Any]] | None = None) -> bool:
        """End this task; return True if a callback asks to stop.

        `fitted` returns attributes with which the estimator can predict, so that a callback can score it.
        """
        if self.context is None:
            return False
        return self.context.call_on_fit_task_end(**self.arguments, reconstruction_attributes=fitted)

    @contextmanager
    def fitting(self, name: str, estimator: Any) -> Iterator[None]:
        """Make the fit of another estimator a task within this one; its own tasks are within that."""
        if self.context is None or not hasattr(estimator, "set_callbacks"):
            task = self.begin(name)
            yield
        else:
            context = self.context.subcontext(name)
            with context.propagate_callback_context(estimator):
                task = self._begin(context)
                yield
        task.end()
