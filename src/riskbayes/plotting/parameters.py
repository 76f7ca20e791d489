"""The parameters that calibration moved most."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from riskbayes.arrays import Array
from riskbayes.plotting.axes import FOR, INK, Display, bare, last_step, short, size_of_lines


class ParametersDisplay(Display):
    """Plot of the parameters that calibration moved most: from the closed form to the calibrated value.

    Create one with :meth:`from_estimator`.

    Parameters
    ----------
    labels : list of str
        Names of the parameters.
    changes : array of shape (n_parameters,)
        By how much each moved, in the unit of `parameters_frame`.
    texts : list of str
        The values before and after.

    Attributes
    ----------
    {axes}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from riskbayes import GaussianNB
    >>> from riskbayes.plotting import ParametersDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> display = ParametersDisplay.from_estimator(GaussianNB().fit(X, y))  # doctest: +SKIP
    """

    def __init__(self, labels: list[str], changes: Array, texts: list[str]):
        self.labels = labels
        self.changes = np.asarray(changes, dtype=float)
        self.texts = texts

    @classmethod
    def from_estimator(cls, clf: Any, *, max_parameters: int = 12, ax: Any = None) -> Self:
        """Plot the parameters of a fitted classifier that moved most.

        Parameters
        ----------
        clf : classifier of this package, or a Pipeline that ends in one
            Fitted by a learner that iterates.
        max_parameters : int, default=12
            How many parameters to plot.
        {ax}

        {display}
        """
        frame = last_step(clf).parameters_frame()
        names = ("column", "parameter", "class", "closed_form", "calibrated", "change")
        table = {name: np.asarray(frame[name])[:max_parameters] for name in names}
        labels = [
            f"{column}, {name}, class {short(label)}"
            for column, name, label in zip(table["column"], table["parameter"], table["class"], strict=True)
        ]
        pairs = zip(table["closed_form"], table["calibrated"], strict=True)
        return cls(labels, table["change"], [f"{a:.3g} → {b:.3g}" for a, b in pairs]).plot(ax)

    def _size(self) -> tuple[float, float]:
        return size_of_lines(len(self.changes))

    def _draw(self, ax: Any) -> None:
        places = np.arange(len(self.changes))
        ax.hlines(places, 0.0, self.changes, color=FOR, linewidth=1.2, zorder=1)
        ax.plot(
            np.zeros(len(places)),
            places,
            "o",
            markerfacecolor="white",
            markeredgecolor=INK,
            label="closed form",
        )
        ax.plot(self.changes, places, "o", color=FOR, label="calibrated")
        low, high = min(0.0, self.changes.min(initial=0.0)), max(0.0, self.changes.max(initial=0.0))
        room = 0.02 * (high - low or 1.0)
        for place, change, text in zip(places, self.changes, self.texts, strict=True):
            side = "left" if change >= 0 else "right"
            ax.text(change + (room if change >= 0 else -room), place, text, va="center", ha=side, fontsize=8)
        ax.set_yticks(places, self.labels)
        ax.invert_yaxis()
        ax.set(
            xlabel="change (in standard deviations, or of a logarithm)",
            xlim=(low - (22 if low < 0 else 2) * room, high + (22 if high > 0 else 2) * room),
        )
        ax.axvline(0.0, color=INK, linewidth=0.6, zorder=0)
        ax.legend(loc="best", fontsize=8, frameon=False)
        bare(ax)
