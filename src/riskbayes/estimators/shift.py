"""Drift of rows without labels: which columns moved, and whether class frequencies alone explain it.

If p(x | y) is what it was, the new rows are a mixture of the classes at other frequencies. These are
estimated from the posteriors, reference rows are drawn at them, and a column moved if the new rows still
differ from those in it. A column that moved is then left out of the posteriors, which a joint model does
exactly: else it would pass for a change of the frequencies, and other columns with it.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import issparse
from scipy.special import log_softmax, softmax
from scipy.stats import ttest_ind
from sklearn.utils.validation import check_is_fitted

from riskbayes.arrays import Array, to_device, to_numpy
from riskbayes.estimators.checks import class_codes, labels_like
from riskbayes.estimators.kinds import ReadColumn, read_columns
from riskbayes.estimators.priors import frequencies_of
from riskbayes.exceptions import listed
from riskbayes.input.sources import source_of
from riskbayes.markup import shown_as_html, shown_as_text
from riskbayes.risks import log_evidence, log_posterior
from riskbayes.tables import frame_of, plain
from riskbayes.two_samples import compare_categories, compare_samples, holm

LEAST_LOG = -700.0
"""Log posteriors below this are read as this: the class is impossible."""

STEADY = 0.01
"""If no frequency changed by more than this, all columns that differ are taken at once."""

HEADS = ("column", "distance", "p-value", "at the new frequencies", "p-value", "moved", "log density")
"""The heads of the table that is shown."""


class ColumnShift(NamedTuple):
    """How a column of the new rows differs from the reference rows."""

    column: Any
    distance: float
    """The largest difference of the distribution functions, or half the sum of differences of shares."""
    p_value: float
    """Of the hypothesis that both are distributed alike, adjusted for the number of columns by Holm."""
    distance_left: float
    """The same for reference rows at the estimated class frequencies of the new rows."""
    p_value_left: float
    moved: bool
    """True if the class frequencies do not explain the difference."""
    log_density: float
    """Of a column that moved, how much lower log p(x_j) is on average, in nats a row; NaN for others, and if
    the model has no density."""


@dataclass(frozen=True)
class Shift:
    """What `drift` found.

    Attributes
    ----------
    columns : tuple of ColumnShift
        One for each column that the model reads, those first that moved.
    classes : ndarray of shape (n_classes,)
        Class labels.
    reference_priors, priors : ndarray of shape (n_classes,)
        The class frequencies of the reference rows, and those estimated for the new rows, for `with_priors`;
        the same if no change is certain.
    priors_p_value : float
        Of the hypothesis that the class frequencies are the same: a test of the mean posteriors, without the
        columns that moved. NaN where the model cannot leave these out.
    priors_moved : bool
        True if the class frequencies changed.
    accuracy : float
        The share of reference rows whose class is predicted.
    accuracy_now : float
        What it is estimated to be on the new rows. At their class frequencies; where columns moved, as if
        these said nothing of the class any more, but were read as before. NaN if the model cannot leave
        columns out.
    accuracy_with_priors : float
        What it would be if columns had not moved, and the classifier were told the class frequencies, by
        `with_priors`.
    accuracy_without : float
        What it would be without the columns that moved, if their cells are made missing; NaN if none moved,
        or the model cannot leave them out.
    """

    columns: tuple[ColumnShift, ...]
    classes: Array
    reference_priors: Array
    priors: Array
    priors_p_value: float
    priors_moved: bool
    accuracy: float
    accuracy_now: float
    accuracy_with_priors: float
    accuracy_without: float
    table: Any = field(default=None, repr=False)

    @property
    def moved(self) -> list[Any]:
        """The columns that moved."""
        return [each.column for each in self.columns if each.moved]

    @property
    def verdict(self) -> str:
        """What moved: "nothing", "frequencies", "columns" or "both"."""
        return (("nothing", "frequencies"), ("columns", "both"))[bool(self.moved)][self.priors_moved]

    def sentences(self) -> list[str]:
        """Return what was found, in sentences."""
        changed = ", ".join(
            f"{plain(label)!r} from {before:.3g} to {after:.3g}"
            for label, before, after in zip(
                self.classes.tolist(), self.reference_priors, self.priors, strict=True
            )
        )
        moved = f"{'Column' if len(self.moved) == 1 else 'Columns'} {listed(self.moved)} moved"
        found = {
            "nothing": "No column moved, and the class frequencies are the same, as far as these rows tell.",
            "frequencies": f"The class frequencies changed, and explain all differences: {changed}.",
            "columns": f"{moved}; the class frequencies are the same, as far as the other columns tell.",
            "both": f"{moved}, and the class frequencies changed: {changed}.",
        }
        words = [found[self.verdict], f"Accuracy on the reference rows: {self.accuracy:.3f}."]
        if self.verdict == "frequencies":
            words.append(
                f"On the new rows about {self.accuracy_now:.3f}; with_priors would make it "
                f"{self.accuracy_with_priors:.3f}."
            )
        if np.isfinite(self.accuracy_without):
            words.append(
                f"On the new rows {self.accuracy_now:.3f} if the columns that moved say nothing any more; "
                f"without them {self.accuracy_without:.3f}."
            )
        return words

    def lines(self) -> list[tuple[str, ...]]:
        """Return the cells of the table that is shown, a line for each column."""
        return [
            (
                str(each.column),
                *(f"{value:.3g}" for value in each[1:5]),
                "yes" if each.moved else "",
                f"{each.log_density:+.2f}" if np.isfinite(each.log_density) else "",
            )
            for each in self.columns
        ]

    def to_frame(self) -> Any:
        """Return a data frame with a line for each column.

        Returns
        -------
        frame : data frame
            Of the library of the new rows, or of pandas or polars, or a dict of arrays.
        """
        names = ColumnShift._fields
        cells = zip(*self.columns, strict=True)
        found = {name: np.array(values) for name, values in zip(names, cells, strict=True)}
        return frame_of(found | {"column": found["column"].astype(str)}, self.table)

    def __repr__(self) -> str:
        return shown_as_text(" ".join(self.sentences()), HEADS, self.lines())

    def _repr_html_(self) -> str:
        return shown_as_html(" ".join(self.sentences()), HEADS, self.lines())


def drift(clf: Any, X_new: Any, X: Any, y: Any, level: float, least_distance: float) -> Shift:
    """Return how new rows differ from labelled reference rows."""
    check_is_fitted(clf)
    for name, share in (("level", level), ("least_distance", least_distance)):
        if not isinstance(share, Real) or not 0 <= share < 1:
            raise ValueError(f"{name} must be at least 0 and below 1; got {share!r}.")
    rows = Samples.of(clf, X_new, X, y)
    known, moved, left = rows.shares(rows.codes), list[int](), dict[int, tuple[float, float]]()
    last = None
    while True:
        p = rows.frequencies(moved, known, level)
        drawn, number = rows.at(p), len(rows.columns) - len(moved)
        left |= {c: rows.compare(c, drawn) for c in range(len(rows.columns)) if c not in moved}
        differ = [c for c in left if c not in moved and left[c][0] >= least_distance]
        differ = [c for c in differ if left[c][1] * number <= level]
        if not differ:
            break
        differ.sort(key=lambda c: (left[c][1], -left[c][0]))
        steady = last is not None and np.abs(p - last).max() <= STEADY
        moved, last = moved + (differ if steady else differ[:1]), p
    again = {c: rows.compare(c, drawn) for c in moved}  # the first ones were taken at other frequencies
    kept = [c for c in moved if again[c][1] * len(rows.columns) <= level and again[c][0] >= least_distance]
    if kept != moved:
        p = rows.frequencies(kept, known, level)
    return rows.shift(known, p, kept, left | again, level)


@dataclass(frozen=True, eq=False)
class Samples:
    """Encoded reference rows with their classes, and encoded new rows."""

    clf: Any
    reference: Array
    codes: Array
    new: Array
    columns: list[ReadColumn]
    """The columns that are compared; marks are not, for missing cells are compared in any case."""
    categories: Array
    """A mask of the encoded columns whose values have no order."""
    table: Any

    @classmethod
    def of(cls, clf: Any, X_new: Any, X: Any, y: Any) -> Self:
        """Return the rows as the model reads them; refuse rows that are not in memory, and sparse ones."""
        for name, given in (("X_new", X_new), ("X", X)):
            if not source_of(given).in_memory or issparse(given):
                raise ValueError(
                    f"drift takes dense rows in memory, and {name} is a {type(given).__name__}. A sample of "
                    "some thousand rows is enough."
                )
        found = [to_numpy(clf._encode_new(rows, "drift")).astype(np.float64) for rows in (X, X_new)]
        codes = to_numpy(class_codes(labels_like(clf, y, found[0]), clf.classes_, "y"))
        if len(codes) != len(found[0]):
            raise ValueError(f"X has {len(found[0])} rows and y {len(codes)} labels: pass a label for each.")
        columns, kinds = read_columns(clf, found[0].shape[1])
        return cls(clf, found[0], codes, found[1], columns, np.array(kinds) != "number", X_new)

    def shares(self, codes: Array) -> Array:
        """Return the share of each class."""
        return np.bincount(codes, minlength=len(self.clf.classes_)) / len(codes)

    @cached_property
    def _known(self) -> dict[tuple[int, ...], tuple[Array, Array]]:
        """Log posteriors of the reference and of the new rows, by the columns that are missing."""
        return {}

    def log_posteriors(self, missing: Sequence[int]) -> tuple[Array, Array]:
        """Return the log posteriors of both samples where these columns are missing."""
        key = tuple(missing) if self.clf._takes_missing else ()
        if key not in self._known:
            gone = [j for c in key for j in self.columns[c].encoded]
            both = []
            for rows in (self.reference, self.new):
                rows = rows.copy()
                rows[:, gone] = np.nan
                like = getattr(self.clf, "_fitted_on", rows)
                found = self.clf._finish_rows(to_device(rows, like), "scores", log_posterior)
                both.append(np.maximum(to_numpy(found).astype(np.float64), LEAST_LOG))
            self._known[key] = both[0], both[1]
        return self._known[key]

    def calibrated(self, missing: Sequence[int]) -> tuple[Array, Array]:
        """Return calibrated posteriors of both samples where these columns are missing."""
        reference, new = self.log_posteriors(missing)
        slope, intercepts = calibration(reference, self.codes)
        return tuple(softmax(slope * logs + intercepts, axis=1) for logs in (reference, new))

    def frequencies_p_value(self, missing: Sequence[int]) -> float:
        """Return the p-value of the hypothesis that the posteriors of both samples have the same means.

        These are linear in the class frequencies: Welch's test of each class, of two only one. NaN where
        columns are to be missing that the model cannot leave out.
        """
        if missing and not self.clf._takes_missing:
            return np.nan
        before, after = self.calibrated(missing)
        k = slice(None if before.shape[1] > 2 else 1)
        with np.errstate(invalid="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # posteriors that are all equal
            p = ttest_ind(before[:, k], after[:, k], equal_var=False).pvalue
        return min(1.0, len(p) * float(np.nan_to_num(p, nan=1.0).min()))

    def frequencies(self, missing: Sequence[int], known: Array, level: float) -> Array:
        """Return the estimated class frequencies of the new rows: the known ones if no change is certain."""
        if not self.frequencies_p_value(missing) <= level:
            return known
        return frequencies_of(self.calibrated(missing)[1], known, tol=1e-5)

    def at(self, p: Array) -> Array:
        """Return the indices of as many reference rows as there are at the class frequencies p."""
        counts = np.bincount(self.codes, minlength=len(p))
        wanted = p > 0
        numbers = np.floor(p * (counts[wanted] / p[wanted]).min() + 1e-9).astype(int)
        order = np.random.default_rng(0).permutation(len(self.codes))
        order = order[np.argsort(self.codes[order], kind="stable")]
        firsts = np.cumsum(counts) - counts
        return np.concatenate([order[a : a + m] for a, m in zip(firsts, numbers, strict=True)])

    def compare(self, column: int, drawn: Array | slice) -> tuple[float, float]:
        """Return the distance of the new rows from some reference rows in a column, and its p-value."""
        found = []
        for j in self.columns[column].values:
            before, after, number = self.reference[drawn, j], self.new[:, j], not self.categories[j]
            found.append(compare_samples(before, after, number))
            if number and (np.isnan(before).any() or np.isnan(after).any()):
                found.append(compare_categories(np.isnan(before), np.isnan(after)))
        distances, p = zip(*found, strict=True)
        return max(distances), min(1.0, len(p) * min(p))

    def log_density(self, column: int) -> float:
        """Return by how much the mean log p(x_j) of the new rows is below that of the reference rows."""
        if not (self.clf._takes_missing and self.clf._has_densities):
            return np.nan
        own, means = self.columns[column].encoded, []
        for rows in (self.reference, self.new):
            alone = np.full_like(rows, np.nan)
            alone[:, own] = rows[:, own]
            like = getattr(self.clf, "_fitted_on", rows)
            found = self.clf._finish_rows(to_device(alone, like), "log_joint", log_evidence)
            means.append(float(to_numpy(found).mean()))
        return means[1] - means[0]

    def shift(
        self,
        known: Array,
        p: Array,
        moved: list[int],
        left: dict[int, tuple[float, float]],
        level: float,
    ) -> Shift:
        """Return what was found: the columns that moved, at the class frequencies p."""
        number, every = len(self.columns), slice(None)
        raw = [self.compare(c, every) for c in range(number)]
        adjusted = holm(np.array([p_value for _, p_value in raw]))
        found = [
            ColumnShift(
                *(self.columns[c].name, raw[c][0], float(adjusted[c])),
                *(left[c][0], min(1.0, number * left[c][1]), c in moved),
                self.log_density(c) if c in moved else np.nan,
            )
            for c in range(number)
        ]
        whole, without = self.log_posteriors([]), self.log_posteriors(moved)
        p_value = self.frequencies_p_value(moved)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(known > 0, np.log(p) - np.log(known), -np.inf)
        slope, intercepts = calibration(whole[0], self.codes)
        told = slope * whole[0] + intercepts + ratio
        return Shift(
            tuple(sorted(found, key=lambda each: (not each.moved, -each.distance))),
            *(to_numpy(self.clf.classes_), known, p, p_value, bool(p_value <= level)),
            *(self.accuracy(whole[0], known), self.accuracy_now(moved, p), self.accuracy(told, p)),
            self.accuracy(without[0], p) if moved and self.clf._takes_missing else np.nan,
            self.table,
        )

    def accuracy_now(self, moved: list[int], p: Array) -> float:
        """Return the estimated share of right predictions on the new rows, at the class frequencies p.

        Where columns moved, the posterior without them tells how probable it is that the class which was
        predicted with them is the true one.
        """
        reference, new = self.log_posteriors([])
        if not moved:
            return self.accuracy(reference, p)
        if not self.clf._takes_missing:
            return np.nan
        known = self.shares(self.codes)
        P = self.calibrated(moved)[1] * np.divide(p, known, out=np.zeros_like(p), where=known > 0)
        return float((P[np.arange(len(P)), new.argmax(axis=1)] / P.sum(axis=1)).mean())

    def accuracy(self, scores: Array, p: Array) -> float:
        """Return the share of right predictions on the reference rows at the class frequencies p."""
        right = scores.argmax(axis=1) == self.codes
        counts = np.bincount(self.codes, minlength=len(p))
        return float(p @ (np.bincount(self.codes, right, minlength=len(p)) / np.maximum(counts, 1)))


def calibration(logs: Array, codes: Array) -> tuple[float, Array]:
    """Return the slope and the intercepts of log posteriors that the labels are most probable by.

    The average of the posteriors is then the share of each class, so that rows of the same kind are estimated
    to have the same class frequencies (Alexandari, Kundaje and Shrikumar, 2020).
    """
    m, r = logs.shape
    truth = np.eye(r)[codes]

    def loss(v: Array) -> tuple[float, Array]:
        """Return the log loss and its gradient."""
        log_p = log_softmax(np.exp(v[0]) * logs + v[1:], axis=1)
        gap = (np.exp(log_p) - truth) / m
        slope = np.exp(v[0]) * (gap * logs).sum()
        return -float((truth * log_p).sum()) / m, np.concatenate([[slope], gap.sum(axis=0)])

    found = minimize(loss, np.zeros(1 + r), jac=True, method="L-BFGS-B", bounds=[(-3, 3)] + [(-20, 20)] * r)
    return float(np.exp(found.x[0])), found.x[1:]
