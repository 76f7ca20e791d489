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
    most : int
        The most iterations, that of the closed form included.
    data : dict
        `X`, `y` and `metadata` as callbacks expect them.
    fitted : callable
        Fitted attributes for an iteration, so that a callback can score it.
    """

    def __init__(
        self,
        estimator: Any,
        most: int,
        data: dict[str, Any],
        fitted: Callable[[Iteration], dict[str, Any]],
    ):
        self.estimator, self.most, self.data, self.fitted = estimator, most, data, fitted
        self.context = estimator._init_callback_context(max_subtasks=most)
        self.context.call_on_fit_task_begin(estimator=estimator, **data)

    def __call__(self, iteration: Iteration) -> bool:
        """Report one accepted iteration; True stops the fit."""
        if self.estimator.verbose:
            risks = iteration.risks
            print(
                f"[{type(self.estimator).__name__}] iteration {iteration.number}/{self.most - 1}  "
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
