"""Displays of explanations and of parameters, in scikit-learn's style. matplotlib is optional."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from riskbayes.plotting import require_matplotlib
from riskbayes.statistics import Array
from riskbayes.tables import plain

FOR, AGAINST, TOTAL, INK = "#0072b2", "#e69f00", "#777777", "#222222"
"""Colours that colour-blind readers tell apart; in a grey print the first is dark and the second light."""


def new_axes(ax: Any, lines: int) -> Any:
    """Return the axes to plot on: those given, or those of a new pyplot figure with room for the lines."""
    require_matplotlib()
    if ax is not None:
        return ax
    # As in scikit-learn: an interactive session shows only figures that pyplot knows.
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(7, 0.9 + 0.32 * lines), layout="constrained")[1]


def short(value: Any) -> str:
    """Return a cell for a label: numbers with four digits, anything else cut at 20 characters."""
    value = plain(value)
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 20 else f"{text[:19]}…"


class WaterfallDisplay:
    """Plot of one row's log-odds: from the prior through the columns to the posterior.

    Create one with `clf.explain(X).plot(row)`.

    Parameters
    ----------
    labels : list of str
        Name of each step: the prior, the columns with the largest contributions, the other columns.
    steps : array of shape (n_steps,)
        What each adds to the log-odds.
    title : str
        Which log-odds are drawn.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the plot.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    bars_ : matplotlib BarContainer
        The steps, and the total.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from riskbayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> display = GaussianNB().fit(X, y).explain(X).plot(0)  # doctest: +SKIP
    """

    def __init__(self, labels: list[str], steps: Array, title: str):
        self.labels = labels
        self.steps = np.asarray(steps, dtype=float)
        self.title = title

    @classmethod
    def from_explanation(
        cls,
        explanation: Any,
        *,
        positive: Any = None,
        negative: Any = None,
        max_columns: int = 10,
        ax: Any = None,
    ) -> Self:
        """Plot an explanation of one row.

        Parameters
        ----------
        explanation : Explanation
            The explanation of one row.
        positive, negative : label, default=None
            The classes whose log-odds are drawn, as in `Explanation.log_odds`.
        max_columns : int, default=10
            The columns with the largest contributions have a bar each; the others share one.
        ax : matplotlib Axes, default=None
            Axes to plot on; by default those of a new pyplot figure.

        Returns
        -------
        display : WaterfallDisplay
            The plotted display.
        """
        odds = explanation.log_odds(positive, negative)
        values, cells = odds.values[0], explanation.cells[0]
        if not np.isfinite(odds.baseline[0]):
            raise ValueError(
                "One of the two classes has the prior probability zero: its log-odds are infinite."
            )
        order = np.argsort(-np.abs(values), kind="stable")
        order = order[explanation.read[order]]
        shown, rest = order[:max_columns], order[max_columns:]
        labels = ["prior", *(f"{explanation.columns[j]} = {short(cells[j])}" for j in shown)]
        steps = [odds.baseline[0], *values[shown]]
        if len(rest):
            labels.append(f"{len(rest)} other column{'s' if len(rest) > 1 else ''}")
            steps.append(values[rest].sum())
        title = f"log-odds of {plain(odds.positive[0])!r} against {plain(odds.negative[0])!r}"
        return cls(labels, np.array(steps), title).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Plot the steps.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to plot on; by default those of a new pyplot figure.

        Returns
        -------
        display : WaterfallDisplay
            This display.
        """
        ax = new_axes(ax, len(self.steps) + 1)
        ends = np.cumsum(self.steps)
        total = float(ends[-1])
        starts = np.append(ends - self.steps, 0.0)
        widths = np.append(self.steps, total)
        places = np.arange(len(widths))
        colours = [*np.where(self.steps >= 0, FOR, AGAINST).tolist(), TOTAL]
        self.bars_ = ax.barh(
            places, widths, left=starts, color=colours, edgecolor=INK, linewidth=0.6, height=0.7
        )
        for i, bar in enumerate(self.bars_):
            # Hatched against, so that the direction is seen in grey too.
            bar.set_hatch("///" if i < len(self.steps) and self.steps[i] < 0 else "")
        for place, end in zip(places[1:], ends, strict=True):  # from the end of a step to the next
            ax.plot([end, end], [place - 0.65, place - 0.35], color=INK, linewidth=0.6)
        low, high = (
            min(0.0, (starts + np.minimum(widths, 0)).min()),
            max(0.0, (starts + np.maximum(widths, 0)).max()),
        )
        room = 0.01 * (high - low or 1.0)
        for place, start, width in zip(places, starts, widths, strict=True):
            text = ax.text(max(start, start + width) + room, place, f"{width:+.2f}", va="center", fontsize=8)
            text.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.5})  # over the line at zero
        ax.axvline(0.0, color=INK, linewidth=0.8)
        ax.set_yticks(places, [*self.labels, "total"])
        ax.invert_yaxis()
        ax.set(xlabel=self.title, xlim=(low - 3 * room, high + 12 * room))
        for side in ("top", "right", "left"):
            ax.spines[side].set_visible(False)
        ax.tick_params(axis="y", length=0)
        self.ax_, self.figure_ = ax, ax.figure
        return self


class ParametersDisplay:
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
    ax_ : matplotlib Axes
        The axes of the plot.
    figure_ : matplotlib Figure
        The figure of `ax_`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from riskbayes import GaussianNB
    >>> from riskbayes.plotting_joint import ParametersDisplay
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
        ax : matplotlib Axes, default=None
            Axes to plot on; by default those of a new pyplot figure.

        Returns
        -------
        display : ParametersDisplay
            The plotted display.
        """
        require_matplotlib()
        check_is_fitted(clf)
        last = clf[-1] if hasattr(clf, "steps") else clf
        frame = last.parameters_frame()
        names = ("column", "parameter", "class", "closed_form", "calibrated", "change")
        table = {name: np.asarray(frame[name])[:max_parameters] for name in names}
        labels = [
            f"{column}, {name}, class {short(label)}"
            for column, name, label in zip(table["column"], table["parameter"], table["class"], strict=True)
        ]
        pairs = zip(table["closed_form"], table["calibrated"], strict=True)
        return cls(labels, table["change"], [f"{a:.3g} → {b:.3g}" for a, b in pairs]).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Plot the changes.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to plot on; by default those of a new pyplot figure.

        Returns
        -------
        display : ParametersDisplay
            This display.
        """
        ax = new_axes(ax, len(self.changes))
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
            xlim=(low - 14 * room, high + 14 * room),
        )
        ax.axvline(0.0, color=INK, linewidth=0.6, zorder=0)
        ax.legend(loc="best", fontsize=8, frameon=False)
        for name in ("top", "right", "left"):
            ax.spines[name].set_visible(False)
        ax.tick_params(axis="y", length=0)
        self.ax_, self.figure_ = ax, ax.figure
        return self
