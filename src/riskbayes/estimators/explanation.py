"""Explanations: what each column of a row contributed to the log-odds of its classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from riskbayes.arrays import Array
from riskbayes.estimators.checks import listed
from riskbayes.plotting_joint import WaterfallDisplay
from riskbayes.preprocessing.encoder import TableEncoder
from riskbayes.tables import frame_of, plain


class LogOdds(NamedTuple):
    """Log-odds of one class against another, row by row, as a sum over the columns."""

    values: Array
    """What each column contributed, of shape (m, n)."""
    baseline: Array
    """The log-odds of the prior, of shape (m,)."""
    total: Array
    """The log-odds of the posterior, `baseline` plus the sum of `values`, of shape (m,)."""
    positive: Array
    """The class that the log-odds are in favour of, of shape (m,)."""
    negative: Array
    """The class that they are against, of shape (m,)."""


@dataclass(frozen=True)
class Explanation:
    """What each cell contributed to the log joint of each class, centred over the classes.

    `baseline[k] + values[i, :, k].sum()` is log p(x_i, y=k) up to a constant of the row. The mean over the
    classes is subtracted, so that the difference of two classes is what the column contributed to their
    log-odds. Create it by `explain` of a fitted classifier.

    Parameters
    ----------
    values : ndarray of shape (m, n, r)
        The contributions of the columns.
    baseline : ndarray of shape (r,)
        The contribution of the prior, log p(y); -inf for a class of probability zero. Zero in complement
        naive Bayes, whose scores do not contain it.
    classes : ndarray of shape (r,)
        Class labels.
    columns : list
        Names of the columns, or their indices if they have no names.
    cells : ndarray of shape (m, n)
        The values of the cells.
    read : ndarray of bool, shape (n,)
        False for a column that the model does not read: it was left out, or no expert has it.
    table : object, default=None
        The table that was explained: `to_frame` returns a data frame of its library.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from riskbayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> explanation = GaussianNB().fit(X, y).explain(X[:2])
    >>> explanation.values.shape
    (2, 4, 3)
    """

    values: Array
    baseline: Array
    classes: Array
    columns: list[Any]
    cells: Array
    read: Array
    table: Any = None

    def __repr__(self) -> str:
        m, n, r = self.values.shape
        return f"Explanation({m} rows, {n} columns, {r} classes)"

    @classmethod
    def centred(cls, values: Array, log_prior: Array, *rest: Any) -> Self:
        """Return the explanation of contributions and a log prior that are not centred yet."""
        possible = np.isfinite(log_prior)
        baseline = log_prior - log_prior[possible].mean()
        return cls(values - values.mean(axis=2, keepdims=True), baseline, *rest)

    def by_table_column(self, encoder: TableEncoder) -> Self:
        """Return the explanation of a table, from that of the columns which an encoder made of it.

        The contributions of all that was made of a column are summed; a column that was left out has zero.
        """
        m, _, r = self.values.shape
        values, read = np.zeros((m, len(encoder.readers), r)), np.zeros(len(encoder.readers), dtype=bool)
        for place, (j, _) in enumerate(encoder.encoded):
            values[:, j] += self.values[:, place]
            read[j] |= self.read[place]
        columns = [reader.column.name for reader in encoder.readers]
        return replace(self, values=values, columns=columns, read=read)

    def log_odds(self, positive: Any = None, negative: Any = None) -> LogOdds:
        """Return the log-odds of one class against another as a sum over the columns.

        Parameters
        ----------
        positive : label, default=None
            The class in favour; by default `classes[1]` of two classes, and of more the most probable class
            of each row; if `negative` is given, the most probable one of the others.
        negative : label, default=None
            The class against; by default the most probable one of the others.

        Returns
        -------
        log_odds : LogOdds
            Arrays `values` (m, n), `baseline` and `total` (m,), and the labels `positive` and `negative`.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import load_breast_cancer
        >>> from riskbayes import GaussianNB
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> clf = GaussianNB().fit(X, y)
        >>> odds = clf.explain(X[:3]).log_odds()
        >>> np.allclose(odds.total, clf.decision_function(X[:3]))
        True
        """
        m, _, r = self.values.shape
        joint = self.baseline + self.values.sum(axis=1)
        row = np.arange(m)
        given = None if negative is None else np.full(m, self._code(negative, "negative"))
        if positive is not None:
            k = np.full(m, self._code(positive, "positive"))
        elif given is not None:
            k = most_probable_but(joint, given)
        else:
            k = np.full(m, 1) if r == 2 else joint.argmax(axis=1)
        other = most_probable_but(joint, k) if given is None else given
        if (k == other).any():
            raise ValueError(
                f"positive and negative are the same class, {plain(self.classes[k[k == other][0]])!r}."
            )
        with np.errstate(invalid="ignore"):
            baseline = self.baseline[k] - self.baseline[other]
        values = self.values[row, :, k] - self.values[row, :, other]
        total = baseline + values.sum(axis=1)
        return LogOdds(values, baseline, total, self.classes[k], self.classes[other])

    def _code(self, label: Any, name: str) -> int:
        """Return the index of a label among the classes."""
        found = [i for i, known in enumerate(self.classes.tolist()) if known == label]
        if not found:
            raise ValueError(f"{name}={label!r} is not a class; the classes are {listed(self.classes)}.")
        return found[0]

    def to_frame(self) -> Any:
        """Return a data frame with a line for each row, column and class.

        Returns
        -------
        frame : data frame
            Columns `row` (counted from 0), `column`, `value` (of the cell), `class` and `contribution`; of
            the library of the explained table, or of pandas or polars, or a dict of arrays.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from riskbayes import GaussianNB
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> frame = GaussianNB().fit(X, y).explain(X[:2]).to_frame()
        >>> list(frame.columns)
        ['row', 'column', 'value', 'class', 'contribution']
        >>> len(frame)
        24
        """
        m, n, r = self.values.shape
        cells = self.cells
        if cells.dtype.kind == "O":  # columns of several types
            cells = np.array([["" if v is None else str(v) for v in row] for row in cells.tolist()])
        return frame_of(
            {
                "row": np.repeat(np.arange(m), n * r),
                "column": np.tile(np.repeat(np.array(self.columns), r), m),
                "value": np.repeat(cells.reshape(-1), r),
                "class": np.tile(self.classes, m * n),
                "contribution": self.values.reshape(-1),
            },
            self.table,
        )

    def plot(
        self,
        row: int = 0,
        *,
        positive: Any = None,
        negative: Any = None,
        max_columns: int = 10,
        ax: Any = None,
    ) -> Any:
        """Plot how the columns of one row lead from the log-odds of the prior to those of the posterior.

        Parameters
        ----------
        row : int, default=0
            The row, counted from 0.
        positive, negative : label, default=None
            The classes whose log-odds are drawn, as in `log_odds`.
        max_columns : int, default=10
            The columns with the largest contributions have a bar each; the others share one.
        ax : matplotlib Axes, default=None
            Axes to plot on; by default those of a new pyplot figure.

        Returns
        -------
        display : WaterfallDisplay
            The plotted display.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from riskbayes import GaussianNB
        >>> X, y = load_iris(return_X_y=True)
        >>> display = GaussianNB().fit(X, y).explain(X).plot(0)  # doctest: +SKIP
        """
        if not 0 <= row < len(self.values):
            raise ValueError(f"row={row!r} is none of the {len(self.values)} explained rows.")
        one = replace(self, values=self.values[[row]], cells=self.cells[[row]])
        return WaterfallDisplay.from_explanation(
            one, positive=positive, negative=negative, max_columns=max_columns, ax=ax
        )


def most_probable_but(joint: Array, k: Array) -> Array:
    """Return the most probable class of each row but class k; the first where all have probability zero."""
    others = joint.copy()
    others[np.arange(len(k)), k] = -np.inf
    return np.where(np.isneginf(others).all(axis=1), (k == 0).astype(int), others.argmax(axis=1))
