"""The risks of a fit, iteration by iteration."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from riskbayes.arrays import Array
from riskbayes.plotting.axes import Display, axes_or_new, last_step

NOT_A_RISK = ("lr", "accepted", "floored")
"""Columns of a history that are not risks."""


class RiskPathDisplay(Display):
    """Plot of the risk on the training rows by iteration of a fit.

    Create one with :meth:`from_estimator`.

    Parameters
    ----------
    values : array of shape (n_scans,)
        The risk of each model that was scanned; the first one is the closed form.
    accepted : array of bool, shape (n_scans,)
        True for models that were accepted, False for trials that were rejected.
    risk : str, default="soft_error"
        Name of the risk.
    label : str, default=None
        Name of the line in a legend.

    Attributes
    ----------
    {axes}
    line_ : matplotlib Line2D
        The accepted models.
    trials_ : matplotlib Line2D or None
        The rejected trials, as hollow markers; None if there are none.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from riskbayes import GaussianNB
    >>> from riskbayes.plotting import RiskPathDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = GaussianNB().fit(X, y)
    >>> display = RiskPathDisplay.from_estimator(clf)  # doctest: +SKIP
    """

    def __init__(self, values: Array, accepted: Array, *, risk: str = "soft_error", label: str | None = None):
        self.values = np.asarray(values, dtype=float)
        self.accepted = np.asarray(accepted, dtype=bool)
        self.risk = risk
        self.label = label

    @classmethod
    def from_estimator(
        cls, clf: Any, *, ax: Any = None, risk: str = "soft_error", label: str | None = None
    ) -> Self:
        """Plot the risks of a fitted classifier.

        Parameters
        ----------
        clf : classifier of this package, or a Pipeline that ends in one
            Fitted with a learner that iterates.
        {ax}
        risk : str, default="soft_error"
            A risk in `clf.history_`: "soft_error", "error" or "log_loss".
        label : str, default=None
            Name of the line in a legend; by default the classifier's class.

        {display}
        """
        last = last_step(clf)
        if not hasattr(last, "history_"):
            raise TypeError(f"{type(last).__name__} keeps no history_, so there is no path to draw.")
        history = last.history_
        risks = [name for name in history if name not in NOT_A_RISK]
        if risk not in risks:
            raise ValueError(f"The 'risk' parameter must be one of {risks}; got {risk!r}.")
        if len(history[risk]) == 0:
            raise ValueError(
                f"This {type(last).__name__} has no path: it was fitted by its closed form. "
                "Fit it with a learner that iterates, such as learner='rc'."
            )
        name = type(last).__name__ if label is None else label
        return cls(history[risk], history["accepted"], risk=risk, label=name).plot(ax)

    def plot(
        self,
        ax: Any = None,
        *,
        label: str | None = None,
        line_kw: dict[str, Any] | None = None,
        trial_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Plot the risks.

        Parameters
        ----------
        {ax}
        label : str, default=None
            Name of the line in a legend, in place of the display's own.
        line_kw, trial_kw : dict, default=None
            Arguments of `Axes.plot` for the accepted models and for the rejected trials.

        {display}
        """
        ax = axes_or_new(ax)
        from matplotlib.ticker import MaxNLocator

        scans = np.arange(len(self.values))
        style = {"marker": ".", "label": self.label if label is None else label} | (line_kw or {})
        (self.line_,) = ax.plot(scans[self.accepted], self.values[self.accepted], **style)
        self.trials_ = None
        if not self.accepted.all():
            hollow = {"color": self.line_.get_color(), "label": "_trials"}  # "_": not in the legend
            hollow |= {"linestyle": "none", "marker": "o", "markerfacecolor": "none"}
            (self.trials_,) = ax.plot(
                scans[~self.accepted], self.values[~self.accepted], **hollow | (trial_kw or {})
            )
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set(xlabel="iteration (0: closed form)", ylabel=risk_name(self.risk))
        if style["label"] is not None:
            ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self


def risk_name(risk: str) -> str:
    """Return the label of a column of a history: "val_log_loss" becomes "validation log loss"."""
    name = risk.removeprefix("val_").replace("_", " ")
    return f"{'validation' if risk.startswith('val_') else 'training'} {name}"
