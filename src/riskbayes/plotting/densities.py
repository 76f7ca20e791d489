"""Densities of one column in each class, in the closed form and calibrated."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from riskbayes.arrays import Array, to_numpy
from riskbayes.plotting.axes import CLASSES, INK, Display, before_last_step, last_step
from riskbayes.tables import plain

POINTS = 400
"""Points of the curve of a density."""


class DensityDisplay(Display):
    """Plot of p(x_j | y) of a column of numbers: dashed in the closed form, solid after calibration.

    The other columns are integrated out, by any model that takes missing cells. Create one with
    :meth:`from_estimator`.

    Parameters
    ----------
    grid : array of shape (n_points,)
        Values of the column.
    closed_form, calibrated : array of shape (n_points, n_classes)
        Densities of the classes.
    classes : sequence of shape (n_classes,)
        Labels of the classes.
    column : str
        Name of the column.
    rows : list of arrays, default=None
        The values of each class in the rows that are shown as histograms; None for no histograms.

    Attributes
    ----------
    {axes}
    lines_ : list of matplotlib Line2D
        The calibrated densities.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from riskbayes import GaussianNB
    >>> from riskbayes.plotting import DensityDisplay
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> clf = GaussianNB().fit(X, y)
    >>> display = DensityDisplay.from_estimator(clf, X, y, "petal length (cm)")  # doctest: +SKIP
    """

    def __init__(
        self,
        grid: Array,
        closed_form: Array,
        calibrated: Array,
        classes: Any,
        column: str,
        rows: list[Array] | None = None,
    ):
        self.grid = np.asarray(grid, dtype=float)
        self.closed_form = np.asarray(closed_form, dtype=float)
        self.calibrated = np.asarray(calibrated, dtype=float)
        self.classes = list(classes)
        self.column = column
        self.rows = rows

    @classmethod
    def from_estimator(cls, clf: Any, X: Any, y: Any = None, column: Any = 0, *, ax: Any = None) -> Self:
        """Plot the densities of a column over the range of rows.

        Parameters
        ----------
        clf : estimator of one generative model, or a Pipeline that ends in one
            Fitted. Its model has a density, and takes missing cells if there are several columns.
        X : array-like of shape (n_samples, n_features)
            Rows, whose range is drawn.
        y : array-like of shape (n_samples,), default=None
            Their labels: with them, the rows of each class are shown as a histogram.
        column : str or int, default=0
            The column, of numbers, by its name or number.
        {ax}

        {display}
        """
        from riskbayes.estimators.marginals import column_density, encoded_values  # here: it imports us

        last, X = last_step(clf), before_last_step(clf, X)
        name, place, values = encoded_values(last, X, column)
        seen = values[~np.isnan(values)]
        low, high = seen.min(), seen.max()
        margin = 0.05 * (high - low) or 1.0
        grid = np.linspace(low - margin, high + margin, POINTS)
        before, after = column_density(last, grid, place)
        classes = to_numpy(last.classes_)
        rows = None
        if y is not None:
            labels = np.asarray(y)
            rows = [values[(labels == label) & ~np.isnan(values)] for label in classes]
        return cls(grid, before, after, classes.tolist(), name, rows).plot(ax)

    def _draw(self, ax: Any) -> None:
        edges = np.linspace(self.grid[0], self.grid[-1], 31)
        self.lines_ = []
        for k, label in enumerate(self.classes):
            colour = CLASSES[k % len(CLASSES)]
            if self.rows is not None and len(self.rows[k]):
                ax.hist(self.rows[k], edges, density=True, color=colour, alpha=0.18, linewidth=0)
            ax.plot(self.grid, self.closed_form[:, k], "--", color=colour, linewidth=1)
            (line,) = ax.plot(
                self.grid, self.calibrated[:, k], color=colour, linewidth=2, label=str(plain(label))
            )
            self.lines_.append(line)
        from matplotlib.lines import Line2D

        kinds = [Line2D([], [], color=INK, linestyle="--", label="closed form")]
        kinds.append(Line2D([], [], color=INK, linewidth=2, label="calibrated"))
        ax.legend(handles=[*self.lines_, *kinds], frameon=False, fontsize=9)
        ax.set(xlabel=self.column, ylabel="density given the class", xlim=(self.grid[0], self.grid[-1]))
        ax.set_ylim(bottom=0.0)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
