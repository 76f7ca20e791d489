"""`verbose`, and scikit-learn's experimental callbacks, behind one small class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.callback import CallbackSupportMixin

from riskbayes.loop import Iteration
from riskbayes.statistics import Array

__all__ = ["CallbackSupportMixin", "FitProgress"]


class FitProgress:
    """Tells the user, and the callbacks that the user set, of each iteration of one fit.

    Parameters
    ----------
    estimator : estimator
        The one being fitted.
    max_iter : int
        The most iterations after the closed form.
    data : dict
        `X`, `y` and `metadata` as callbacks expect them.
    fitted : callable
        Fitted attributes for an iteration, so that a callback can score it.
    """

    def __init__(
        self,
        estimator: Any,
        max_iter: int,
        data: dict[str, Any],
        fitted: Callable[[Iteration], dict[str, Any]],
    ):
        self.estimator, self.max_iter, self.data, self.fitted = estimator, max_iter, data, fitted
        self.context = estimator._init_callback_context(max_subtasks=max_iter + 1)
        self.context.call_on_fit_task_begin(estimator=estimator, **data)

    def __call__(self, iteration: Iteration) -> bool:
        """Report one accepted iteration; True stops the fit."""
        if self.estimator.verbose:
            risks = iteration.risks
            print(
                f"[{type(self.estimator).__name__}] iteration {iteration.number}/{self.max_iter}  "
                f"soft error {risks['soft_error']:.6f}  error {risks['error']:.4f}  "
                f"log loss {risks['log_loss']:.6f}"
            )
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


def callback_data(X: Array, y: Array, sample_weight: Array | None) -> dict[str, Any]:
    """X, y and weights as callbacks take them."""
    metadata = None if sample_weight is None else {"sample_weight": sample_weight}
    return {"X": X, "y": y, "metadata": metadata}
