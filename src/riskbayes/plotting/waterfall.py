"""The log-odds of one row: from the prior through its cells to the posterior."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from riskbayes.arrays import Array
from riskbayes.plotting.axes import (
    AGAINST,
    FOR,
    INK,
    TOTAL,
    Display,
    bare,
    before_last_step,
    last_step,
    short,
    size_of_lines,
)
from riskbayes.tables import plain


class WaterfallDisplay(Display):
    """Plot of one row's log-odds: from the prior through the columns to the posterior.

    Create one with :meth:`from_estimator` or with `clf.explain(X).plot(row)`.

    Parameters
    ----------
    labels : list of str
        Name of each step: the prior, the columns with the largest contributions, the other columns.
    steps : array of shape (n_steps,)
        What each adds to the log-odds.
    title : str
        Which log-odds are drawn.
    errors : array of shape (n_steps,), default=None
        Standard errors of the steps, where orders of the columns were drawn; zero or NaN for none.

    Attributes
    ----------
    {axes}
    bars_ : matplotlib BarContainer
        The steps, and the total.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from riskbayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> display = GaussianNB().fit(X, y).explain(X).plot(0)  # doctest: +SKIP
    """

    def __init__(self, labels: list[str], steps: Array, title: str, errors: Array | None = None):
        self.labels = labels
        self.steps = np.asarray(steps, dtype=float)
        self.title = title
        self.errors = None if errors is None else np.asarray(errors, dtype=float)

    @classmethod
    def from_estimator(cls, clf: Any, X: Any, row: int = 0, *, ax: Any = None, **options: Any) -> Self:
        """Explain a row and plot it.

        Parameters
        ----------
        clf : classifier of this package, or a Pipeline that ends in one
            Fitted.
        X : array-like of shape (n_samples, n_features)
            Rows.
        row : int, default=0
            The row, counted from 0.
        {ax}
        **options : dict
            `positive`, `negative` and `max_columns`, as of :meth:`from_explanation`.

        {display}
        """
        return last_step(clf).explain(before_last_step(clf, X)).plot(row, ax=ax, **options)

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
        {ax}

        {display}
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
        steps, errors = [odds.baseline[0], *values[shown]], [0.0, *odds.errors[0, shown]]
        if len(rest):
            labels.append(f"{len(rest)} other column{'s' if len(rest) > 1 else ''}")
            steps.append(values[rest].sum())
            errors.append(np.nan)  # errors of columns are not independent: what they sum to is not known
        title = f"log-odds of {plain(odds.positive[0])!r} against {plain(odds.negative[0])!r}"
        return cls(labels, np.array(steps), title, np.array(errors)).plot(ax)

    def _size(self) -> tuple[float, float]:
        return size_of_lines(len(self.steps) + 1)

    def _draw(self, ax: Any) -> None:
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
        known = np.zeros(len(self.steps)) if self.errors is None else np.nan_to_num(self.errors)
        for place, start, width, error in zip(places, starts, widths, [*known, 0.0], strict=True):
            words = f"{width:+.2f} ± {error:.2f}" if error else f"{width:+.2f}"
            text = ax.text(max(start, start + width) + room, place, words, va="center", fontsize=8)
            text.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.5})  # over the line at zero
        ax.axvline(0.0, color=INK, linewidth=0.8)
        ax.set_yticks(places, [*self.labels, "total"])
        ax.invert_yaxis()
        ax.set(xlabel=self.title, xlim=(low - 3 * room, high + (20 if known.any() else 12) * room))
        bare(ax)
