"""What all displays share: axes, colours, docstrings, texts of cells. matplotlib is imported where used."""

from __future__ import annotations

import re
from textwrap import indent
from types import FunctionType
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from riskbayes.tables import plain

FOR, AGAINST, TOTAL, INK = "#0072b2", "#e69f00", "#777777", "#222222"
"""Colours that colour-blind readers tell apart; in a grey print the first is dark and the second light."""

CLASSES = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#777777")
"""Colours of classes, after Okabe and Ito; with more classes they begin again."""

TEXTS = {
    "ax": """\
ax : matplotlib Axes, default=None
    Axes to plot on; by default those of a new pyplot figure.""",
    "axes": """\
ax_ : matplotlib Axes
    The axes of the plot.
figure_ : matplotlib Figure
    The figure of `ax_`.""",
    "display": """\
Returns
-------
display : object
    The plotted display.""",
}
"""What docstrings of displays say in place of a line with one of these names in braces."""


def require_matplotlib() -> None:
    """Raise an ImportError that says what to install if matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError('Pictures need matplotlib: pip install "riskbayes[plot]"') from error


def new_figure(width: float, height: float) -> Any:
    """Return a figure for a file; pyplot does not know it, so that it need not be closed."""
    require_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def axes_or_new(ax: Any, width: float = 6.4, height: float = 4.8) -> Any:
    """Return the axes to plot on: those given, or those of a new pyplot figure."""
    require_matplotlib()
    if ax is not None:
        return ax
    # As in scikit-learn: an interactive session shows only figures that pyplot knows.
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]


class Display:
    """Base class of displays: a plot, and the axes that it is on. A subclass implements `_draw`."""

    ax_: Any
    figure_: Any

    def __init_subclass__(cls) -> None:
        """Fill in what the docstrings of a class and its methods share."""
        names = re.compile(rf"^( *)\{{({'|'.join(TEXTS)})\}}$", re.MULTILINE)
        for documented in (cls, *(getattr(each, "__func__", each) for each in vars(cls).values())):
            if documented is cls or isinstance(documented, FunctionType):
                doc = documented.__doc__
                documented.__doc__ = doc and names.sub(lambda found: indent(TEXTS[found[2]], found[1]), doc)

    def plot(self, ax: Any = None) -> Self:
        """Plot the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to plot on; by default those of a new pyplot figure.

        Returns
        -------
        display : object
            This display.
        """
        self.ax_ = axes_or_new(ax, *self._size())
        self.figure_ = self.ax_.figure
        self._draw(self.ax_)
        return self

    def _size(self) -> tuple[float, float]:
        """Return the width and the height of a new figure, in inches."""
        return 6.4, 4.8

    def _draw(self, ax: Any) -> None:
        """Draw on the axes."""
        raise NotImplementedError


def size_of_lines(number: int) -> tuple[float, float]:
    """Return the size of a figure with room for so many lines of text."""
    return 7, 0.9 + 0.32 * number


def bare(ax: Any) -> None:
    """Remove the frame of a plot with a line of text for each step."""
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.tick_params(axis="y", length=0)


def short(value: Any) -> str:
    """Return a cell for a label: numbers with four digits, anything else cut at 20 characters."""
    value = plain(value)
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 20 else f"{text[:19]}…"


def last_step(clf: Any) -> Any:
    """Return a fitted classifier, or the last step of a fitted pipeline."""
    require_matplotlib()
    check_is_fitted(clf)
    return clf[-1] if hasattr(clf, "steps") else clf


def before_last_step(clf: Any, X: Any) -> Any:
    """Return rows as the last step of a pipeline reads them."""
    return clf[:-1].transform(X) if hasattr(clf, "steps") and len(clf.steps) > 1 else X
