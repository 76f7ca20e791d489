"""Whether a classifier is right as often as it says."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from riskbayes.arrays import Array, to_numpy
from riskbayes.plotting.axes import FOR, TOTAL, Display, axes_or_new, before_last_step, last_step
from riskbayes.tables import plain


class ReliabilityDisplay(Display):
    """Plot of the share of right answers against the stated probability of the answer, with 95 % intervals.

    Rows are sorted by the probability of the class that is answered, and put into bins of equally many. Below
    the diagonal the classifier is surer than it should be. Pass rows that were held out. Create one with
    :meth:`from_estimator`.

    Parameters
    ----------
    bins : sequence of ReliabilityBin
        Bins of rows: what was predicted and observed, and the interval.
    before : sequence of ReliabilityBin, default=None
        Those of the closed form, drawn in grey.
    label : str, default=None
        Name of the line in a legend.

    Attributes
    ----------
    {axes}
    line_ : matplotlib ErrorbarContainer
        The bins.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import train_test_split
    >>> from riskbayes import GaussianNB
    >>> from riskbayes.plotting import ReliabilityDisplay
    >>> X, X_new, y, y_new = train_test_split(*load_breast_cancer(return_X_y=True), random_state=0)
    >>> clf = GaussianNB().fit(X, y)
    >>> display = ReliabilityDisplay.from_estimator(clf, X_new, y_new)  # doctest: +SKIP
    """

    def __init__(self, bins: Any, before: Any = None, label: str | None = None):
        self.bins = list(bins)
        self.before = None if before is None else list(before)
        self.label = label

    @classmethod
    def from_estimator(
        cls, clf: Any, X: Any, y: Any, *, before: bool = True, label: str | None = None, ax: Any = None
    ) -> Self:
        """Plot the reliability of a fitted classifier on labelled rows.

        Parameters
        ----------
        clf : classifier of this package, or a Pipeline that ends in one
            Fitted.
        X : array-like of shape (n_samples, n_features)
            Rows that were not trained on.
        y : array-like of shape (n_samples,)
            Their labels.
        before : bool, default=True
            Whether the closed form is drawn too, where the estimator has one.
        label : str, default=None
            Name of the line in a legend; by default the classifier's class.
        {ax}

        {display}
        """
        from riskbayes.compare.scores import reliability  # here: pages are slow to import
        from riskbayes.estimators.marginals import closed_form_of, log_posteriors

        last, X = last_step(clf), before_last_step(clf, X)
        same = np.asarray(y)[:, None] == to_numpy(last.classes_)
        if not same.any(axis=1).all():
            strange = np.asarray(y)[~same.any(axis=1)][0]
            raise ValueError(f"y holds {plain(strange)!r}, which is no class of the classifier.")
        codes, rows = same.argmax(axis=1), last._encode_new(X, "predict_proba")

        def bins(fitted: Any) -> Any:
            return reliability(np.exp(log_posteriors(last, rows, fitted)), codes)

        closed = closed_form_of(last) if before else None
        name = type(last).__name__ if label is None else label
        return cls(bins(None), None if closed is None else bins(closed), name).plot(ax)

    def plot(self, ax: Any = None, *, label: str | None = None) -> Self:
        """Plot the bins.

        Parameters
        ----------
        {ax}
        label : str, default=None
            Name of the line in a legend, in place of the display's own.

        {display}
        """
        ax = axes_or_new(ax, 5.2, 4.8)
        every = [*self.bins, *(self.before or [])]
        low = min(min(one.predicted, one.low) for one in every)
        low = max(0.0, low - 0.03)
        ax.plot([low, 1], [low, 1], ":", color=TOTAL, label="right as often as it says")
        if self.before is not None:
            points(ax, self.before, color=TOTAL, label="closed form", fmt="o--", markersize=4, alpha=0.8)
        name = self.label if label is None else label
        self.line_ = points(ax, self.bins, color=FOR, label=name, fmt="o-", markersize=5)
        ax.set(
            xlabel="stated probability of the answer",
            ylabel="share of right answers",
            xlim=(low, 1.01),
            ylim=(low, 1.01),
        )
        ax.legend(frameon=False, fontsize=9)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def points(ax: Any, bins: Any, **style: Any) -> Any:
    """Draw bins as points with their intervals, and return them."""
    observed: Array = np.array([one.observed for one in bins])
    sides = [observed - [one.low for one in bins], [one.high for one in bins] - observed]
    predicted = [one.predicted for one in bins]
    return ax.errorbar(predicted, observed, np.maximum(sides, 0.0), capsize=2, linewidth=1.2, **style)
