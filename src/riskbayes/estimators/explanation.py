"""Explanations: what each column of a row contributed to the log-odds of its classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from riskbayes.arrays import Array
from riskbayes.exceptions import listed
from riskbayes.plotting.beeswarm import BeeswarmDisplay
from riskbayes.plotting.waterfall import WaterfallDisplay
from riskbayes.preprocessing.encoder import TableEncoder
from riskbayes.tables import frame_of, plain


class Contributions(NamedTuple):
    """What each column of encoded rows adds to the log joint, where that is a sum over columns."""

    values: Array
    """Of shape (m, n, r)."""
    baseline: Array
    """The part that no column adds, of shape (r,)."""
    pairs: Sequence[tuple[int, int]] = ()
    """Pairs of columns that add something together."""
    of_pairs: Array | None = None
    """What they add, of shape (m, pairs, r)."""


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
    errors: Array
    """Standard errors of `values`, of shape (m, n): zero where nothing was drawn, and with three classes or
    more an upper bound, the sum of those of the two classes."""


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
        Names of the columns, or their indices if they have no names; then those of pairs, "a x b".
    cells : ndarray of shape (m, n)
        The values of the cells.
    read : ndarray of bool, shape (n,)
        False for a column that the model does not read: it was left out, or no expert has it.
    table : object, default=None
        The table that was explained: `to_frame` returns a data frame of its library.
    errors : ndarray of shape (m, n, r), default=None
        Standard errors of `values` where orders of the columns were drawn; None where nothing was drawn.
    n_orders : int, default=None
        The number of orders that were drawn; None where nothing was.
    is_sum : bool, default=True
        True if the log-odds of the model are a sum over columns, and these are its terms. False for Shapley
        values: what the model says with and without the cell, averaged over the orders of the columns.
    pairs : sequence of pairs of int, default=()
        The two columns of each of the last columns, where these are pairs.

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
    errors: Array | None = None
    n_orders: int | None = None
    is_sum: bool = True
    pairs: Sequence[tuple[int, int]] = ()

    def __repr__(self) -> str:
        m, n, r = self.values.shape
        return f"Explanation({m} rows, {n} columns, {r} classes, {self.method})"

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> Self:
        """Return the explanation of some of the rows: a slice, a mask, indices, or one index."""
        rows = [rows] if np.ndim(rows) == 0 and not isinstance(rows, slice) else rows
        errors = None if self.errors is None else self.errors[rows]
        return replace(self, values=self.values[rows], cells=self.cells[rows], errors=errors)

    @property
    def method(self) -> str:
        """How the contributions were found, in words."""
        if self.is_sum:
            return "terms of a sum"
        orders = "all orders" if self.n_orders is None else f"{self.n_orders} orders drawn at random"
        return f"Shapley values over {orders}"

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

    def with_pairs(self, values: Array, pairs: Sequence[tuple[int, int]]) -> Self:
        """Return the explanation with contributions of pairs of columns after those of the columns.

        A pair is named "a x b". Contributions of one pair are summed; those of a column with itself are its
        own.
        """
        found = self.values.copy()
        own: dict[tuple[int, int], Array] = {}
        for place, (a, b) in enumerate(pairs):
            centred = values[:, place] - values[:, place].mean(axis=1, keepdims=True)
            if a == b:
                found[:, a] += centred
            else:
                key = min(a, b), max(a, b)
                own[key] = own.get(key, 0.0) + centred
        if not own:
            return replace(self, values=found)
        cells = np.empty((len(found), len(own)), dtype=object)
        for place, (a, b) in enumerate(own):
            cells[:, place] = [f"{x} x {y}" for x, y in self.cells[:, [a, b]].tolist()]
        return replace(
            self,
            values=np.concatenate([found, np.stack(list(own.values()), axis=1)], axis=1),
            pairs=tuple(own),
            columns=[*self.columns, *(f"{self.columns[a]} x {self.columns[b]}" for a, b in own)],
            cells=np.concatenate([self.cells.astype(object), cells], axis=1),
            read=np.concatenate([self.read, np.ones(len(own), dtype=bool)]),
        )

    def by_column(self) -> Self:
        """Return the explanation with what pairs contribute divided among their two columns, half to each.

        That is their Shapley value: alone, neither of the two columns says anything by the pair.

        Returns
        -------
        explanation : Explanation
            An explanation of the columns of the table.
        """
        if not self.pairs:
            return self
        n = len(self.columns) - len(self.pairs)
        values, read = self.values[:, :n].copy(), self.read[:n].copy()
        for place, pair in enumerate(self.pairs, n):
            for j in pair:
                values[:, j] += self.values[:, place] / 2
                read[j] = True
        return replace(
            self, values=values, read=read, columns=self.columns[:n], cells=self.cells[:, :n], pairs=()
        )

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
            Arrays `values` (m, n), `baseline` and `total` (m,), the labels `positive` and `negative`, and
            the standard `errors` of the values.

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
        errors = np.zeros_like(values)
        if self.errors is not None:  # of two classes they are equal, for the values are opposite
            errors = self.errors[row, :, k] + self.errors[row, :, other]
        return LogOdds(values, baseline, total, self.classes[k], self.classes[other], errors)

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
            Columns `row` (counted from 0), `column`, `value` (of the cell), `class`, `contribution` and
            `standard_error` (zero where nothing was drawn); of the library of the explained table, or of
            pandas or polars, or a dict of arrays.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from riskbayes import GaussianNB
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> frame = GaussianNB().fit(X, y).explain(X[:2]).to_frame()
        >>> list(frame.columns)
        ['row', 'column', 'value', 'class', 'contribution', 'standard_error']
        >>> len(frame)
        24
        """
        m, n, r = self.values.shape
        cells, errors = self.cells, np.zeros_like(self.values) if self.errors is None else self.errors
        if cells.dtype.kind == "O":  # columns of several types
            cells = np.array([["" if v is None else str(v) for v in row] for row in cells.tolist()])
        return frame_of(
            {
                "row": np.repeat(np.arange(m), n * r),
                "column": np.tile(np.repeat(np.array(self.columns), r), m),
                "value": np.repeat(cells.reshape(-1), r),
                "class": np.tile(self.classes, m * n),
                "contribution": self.values.reshape(-1),
                "standard_error": errors.reshape(-1),
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
        if not 0 <= row < len(self):
            raise ValueError(f"row={row!r} is none of the {len(self)} explained rows.")
        return WaterfallDisplay.from_explanation(
            self[row], positive=positive, negative=negative, max_columns=max_columns, ax=ax
        )

    def plot_rows(
        self, *, positive: Any = None, negative: Any = None, max_columns: int = 10, ax: Any = None
    ) -> Any:
        """Plot what each column contributed in all rows: a point a row, in the colour of its cell.

        Parameters
        ----------
        positive, negative : label, default=None
            The classes whose log-odds are drawn, in all rows. By default `classes[1]` of two classes, and of
            more the class that is most often the most probable one, against the most probable other of each
            row.
        max_columns : int, default=10
            The columns with the largest mean absolute contributions have a line each.
        ax : matplotlib Axes, default=None
            Axes to plot on; by default those of a new pyplot figure.

        Returns
        -------
        display : BeeswarmDisplay
            The plotted display.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from riskbayes import GaussianNB
        >>> X, y = load_iris(return_X_y=True)
        >>> display = GaussianNB().fit(X, y).explain(X).plot_rows()  # doctest: +SKIP
        """
        return BeeswarmDisplay.from_explanation(
            self, positive=positive, negative=negative, max_columns=max_columns, ax=ax
        )

    def leading_class(self) -> Any:
        """Return the class that all rows are drawn for: the second of two, of more the commonest answer."""
        if len(self.classes) == 2:
            return self.classes[1]
        answers = (self.baseline + self.values.sum(axis=1)).argmax(axis=1)
        return self.classes[np.bincount(answers, minlength=len(self.classes)).argmax()]

    def _repr_html_(self) -> str:
        """Return the explanation as HTML for a notebook, with every text of the table escaped."""
        from riskbayes.pages.explanation import explanation_html  # here: templates are slow to import

        return explanation_html(self)


def most_probable_but(joint: Array, k: Array) -> Array:
    """Return the most probable class of each row but class k; the first where all have probability zero."""
    others = joint.copy()
    others[np.arange(len(k)), k] = -np.inf
    return np.where(np.isneginf(others).all(axis=1), (k == 0).astype(int), others.argmax(axis=1))
