"""What each column contributed in many rows: a point a row, in the colour of its cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from riskbayes.arrays import Array
from riskbayes.plotting.axes import INK, TOTAL, Display, bare, before_last_step, last_step, size_of_lines
from riskbayes.tables import plain

MOST_LEVELS = 256
"""Points at most so many places along a line are told apart: those at one place are stacked."""


class BeeswarmDisplay(Display):
    """Plot of the contributions of columns to the log-odds of one class, over rows.

    Each line is a column, those with the largest mean absolute contribution first; each point is a row. Where
    cells are numbers, dark points have small values and light ones large values; categories and missing cells
    are grey. Create one with :meth:`from_estimator` or with `clf.explain(X).plot_rows()`.

    Parameters
    ----------
    values : array of shape (n_rows, n_columns)
        The contributions.
    ranks : array of shape (n_rows, n_columns)
        The rank of each cell in its column, from 0 to 1; NaN where it has none.
    labels : list of str
        Names of the columns.
    title : str
        Which log-odds the contributions are to.

    Attributes
    ----------
    {axes}
    points_ : list of matplotlib PathCollection
        The points of each line.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from riskbayes import GaussianNB
    >>> from riskbayes.plotting import BeeswarmDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> display = BeeswarmDisplay.from_estimator(GaussianNB().fit(X, y), X)  # doctest: +SKIP
    """

    def __init__(self, values: Array, ranks: Array, labels: Sequence[str], title: str):
        self.values = np.asarray(values, dtype=float)
        self.ranks = np.asarray(ranks, dtype=float)
        self.labels = list(labels)
        self.title = title

    @classmethod
    def from_estimator(cls, clf: Any, X: Any, *, ax: Any = None, **options: Any) -> Self:
        """Explain rows and plot them.

        Parameters
        ----------
        clf : classifier of this package, or a Pipeline that ends in one
            Fitted.
        X : array-like of shape (n_samples, n_features)
            Rows.
        {ax}
        **options : dict
            `positive`, `negative` and `max_columns`, as of :meth:`from_explanation`.

        {display}
        """
        return cls.from_explanation(last_step(clf).explain(before_last_step(clf, X)), ax=ax, **options)

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
        """Plot the rows of an explanation.

        Parameters
        ----------
        explanation : Explanation
            The explanation of the rows.
        positive, negative : label, default=None
            The classes whose log-odds are drawn in all rows, as in `Explanation.plot_rows`.
        max_columns : int, default=10
            The columns with the largest mean absolute contributions have a line each.
        {ax}

        {display}
        """
        if positive is None and negative is None:
            positive = explanation.leading_class()
        odds = explanation.log_odds(positive, negative)
        order = np.argsort(-np.abs(odds.values).mean(axis=0), kind="stable")
        shown = order[explanation.read[order]][:max_columns]
        # Of many classes the row's own answer or rival may be one of several: then it is not named.
        sides = [set(side.tolist()) for side in (odds.positive, odds.negative)]
        names = [repr(plain(*side)) if len(side) == 1 else "the most probable other" for side in sides]
        return cls(
            odds.values[:, shown],
            np.stack([rank_of(explanation.cells[:, j]) for j in shown.tolist()], axis=1),
            [str(explanation.columns[j]) for j in shown.tolist()],
            f"contribution to the log-odds of {names[0]} against {names[1]}",
        ).plot(ax)

    def _size(self) -> tuple[float, float]:
        return size_of_lines(len(self.labels) + 2)

    def _draw(self, ax: Any) -> None:
        spread = max(np.ptp(self.values), 1e-12)
        self.points_, coloured = [], None
        for place, (values, ranks) in enumerate(zip(self.values.T, self.ranks.T, strict=True)):
            known = ~np.isnan(ranks)
            heights = place + stacked(np.round(values / spread * MOST_LEVELS))
            style = {"s": 9, "linewidths": 0, "zorder": 2}
            ax.scatter(values[~known], heights[~known], color=TOTAL, **style)
            points = ax.scatter(
                values[known], heights[known], c=ranks[known], cmap="viridis", vmin=0, vmax=1, **style
            )
            self.points_.append(points)
            coloured = points if known.any() else coloured
        ax.axvline(0.0, color=INK, linewidth=0.8, zorder=1)
        ax.set_yticks(np.arange(len(self.labels)), self.labels)
        ax.set(xlabel=self.title, ylim=(len(self.labels) - 0.4, -0.6))
        bare(ax)
        if coloured is not None:
            bar = ax.figure.colorbar(coloured, ax=ax, ticks=[0, 1], pad=0.02, aspect=30)
            bar.ax.set_yticklabels(["least", "largest"])
            bar.set_label("value of the cell", labelpad=-16)
            bar.outline.set_visible(False)


def rank_of(cells: Array) -> Array:
    """Return the rank of each cell in its column, from 0 to 1; NaN for texts and missing cells."""
    try:
        values = np.asarray(cells, dtype=float)
    except (TypeError, ValueError):
        return np.full(len(cells), np.nan)
    found, known = np.full(len(values), np.nan), ~np.isnan(values)
    distinct, code = np.unique(values[known], return_inverse=True)
    found[known] = code / max(len(distinct) - 1, 1)
    return found


def stacked(levels: Array) -> Array:
    """Return heights of points such that those at one level stand side by side, at most 0.35 to each side."""
    order = np.argsort(levels, kind="stable")
    _, first, counts = np.unique(levels[order], return_index=True, return_counts=True)
    number = np.empty(len(levels))
    number[order] = np.arange(len(levels)) - np.repeat(first, counts)
    side = np.where(number % 2, 1, -1) * np.ceil(number / 2)
    return 0.35 * side / max(np.abs(side).max(initial=0.0), 8.0)
