"""The regions of two columns in which a classifier answers each class, before and after calibration."""

from __future__ import annotations

from itertools import combinations
from typing import Any, Self

import numpy as np

from riskbayes.arrays import Array, to_numpy
from riskbayes.plotting.axes import CLASSES, INK, Display, before_last_step, last_step
from riskbayes.tables import plain

POINTS = 200
"""Points of the grid along each column."""


class RegionsDisplay(Display):
    """Plot of the answers over two columns of numbers, with the boundary of the closed form as a dashed line.

    Where there are more columns, the others are missing: a model that takes missing cells integrates them
    out. Create one with :meth:`from_estimator`.

    Parameters
    ----------
    x, y : array of shape (n_x,), (n_y,)
        Values of the two columns.
    calibrated : array of shape (n_y, n_x, n_classes)
        Log posteriors over the grid.
    closed_form : array of shape (n_y, n_x, n_classes) or None
        Those of the closed form; None where there is none.
    classes : sequence of shape (n_classes,)
        Labels of the classes.
    columns : pair of str
        Names of the columns.
    rows : tuple of arrays (x, y, codes), default=None
        Rows to show as points.

    Attributes
    ----------
    {axes}
    surface_ : matplotlib QuadContourSet
        The regions.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from riskbayes import QuadraticDiscriminantAnalysis
    >>> from riskbayes.plotting import RegionsDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = QuadraticDiscriminantAnalysis().fit(X, y)
    >>> display = RegionsDisplay.from_estimator(clf, X, y, columns=(2, 3))  # doctest: +SKIP
    """

    def __init__(
        self,
        x: Array,
        y: Array,
        calibrated: Array,
        closed_form: Array | None,
        classes: Any,
        columns: tuple[str, str],
        rows: tuple[Array, Array, Array] | None = None,
    ):
        self.x, self.y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        self.calibrated = np.asarray(calibrated, dtype=float)
        self.closed_form = None if closed_form is None else np.asarray(closed_form, dtype=float)
        self.classes = list(classes)
        self.columns = columns
        self.rows = rows

    @classmethod
    def from_estimator(
        cls, clf: Any, X: Any, y: Any = None, columns: tuple[Any, Any] = (0, 1), *, ax: Any = None
    ) -> Self:
        """Plot the regions over the range of rows.

        Parameters
        ----------
        clf : classifier of this package, or a Pipeline that ends in one
            Fitted. With more than two columns it must take missing cells.
        X : array-like of shape (n_samples, n_features)
            Rows, whose range is drawn.
        y : array-like of shape (n_samples,), default=None
            Their labels: with them, the rows are shown as points.
        columns : pair of str or int, default=(0, 1)
            The two columns, of numbers, by their names or numbers.
        {ax}

        {display}
        """
        from riskbayes.estimators.marginals import encoded_values, pair_posteriors  # here: it imports us

        last, X = last_step(clf), before_last_step(clf, X)
        (first, i, a), (second, j, b) = (encoded_values(last, X, column) for column in columns)
        if i == j:
            raise ValueError(f"columns={columns!r} are one column; name two.")
        xs, ys = (span(values) for values in (a, b))
        grid = np.stack(np.meshgrid(xs, ys), axis=-1).reshape(-1, 2)
        after, before = (
            None if found is None else found.reshape(len(ys), len(xs), -1)
            for found in pair_posteriors(last, grid, (i, j))
        )
        rows, classes = None, to_numpy(last.classes_)
        if y is not None:
            codes = np.argmax(np.asarray(y)[:, None] == classes, axis=1)
            rows = a, b, codes
        return cls(xs, ys, after, before, classes.tolist(), (first, second), rows).plot(ax)

    def _draw(self, ax: Any) -> None:
        r = len(self.classes)
        colours = [CLASSES[k % len(CLASSES)] for k in range(r)]
        answers = self.calibrated.argmax(axis=2)
        self.surface_ = ax.contourf(
            self.x, self.y, answers, levels=np.arange(r + 1) - 0.5, colors=colours, alpha=0.25
        )
        kinds: list[tuple[str, Array, Any, float]] = [("calibrated", self.calibrated, "-", 1.8)]
        if self.closed_form is not None:
            kinds.append(("closed form", self.closed_form, "--", 1.2))
        handles = []
        from matplotlib.lines import Line2D

        for name, logs, style, width in kinds:
            for margin in boundaries(logs):
                ax.contour(
                    self.x, self.y, margin, levels=[0.0], colors=INK, linestyles=style, linewidths=width
                )
            handles.append(Line2D([], [], color=INK, linestyle=style, linewidth=width, label=name))
        if self.rows is not None:
            a, b, codes = self.rows
            for k in range(r):
                ax.scatter(
                    a[codes == k], b[codes == k], s=12, color=colours[k], edgecolors="white", linewidths=0.4
                )
        for k, label in enumerate(self.classes):
            name = str(plain(label))
            handles.append(Line2D([], [], color=colours[k], marker="s", linestyle="none", label=name))
        ax.legend(handles=handles, frameon=True, framealpha=0.85, fontsize=8)
        ax.set(xlabel=self.columns[0], ylabel=self.columns[1])


def span(values: Array) -> Array:
    """Return the points of a grid over the range of values."""
    seen = values[~np.isnan(values)]
    margin = 0.05 * np.ptp(seen) or 1.0
    return np.linspace(seen.min() - margin, seen.max() + margin, POINTS)


def boundaries(logs: Array) -> list[Array]:
    """Return for each pair of classes the difference of their log posteriors, which is zero between them.

    It is masked where another class is more probable than both, so that each boundary is drawn once.
    """
    found, top = [], logs.max(axis=2)
    for k, other in combinations(range(logs.shape[2]), 2):
        difference = logs[:, :, k] - logs[:, :, other]
        own = np.ma.array(difference, mask=np.maximum(logs[:, :, k], logs[:, :, other]) < top)
        if not own.mask.all() and own.min() < 0 < own.max():
            found.append(own)
    return found
