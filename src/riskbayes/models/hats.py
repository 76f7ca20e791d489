"""Encoded rows of smooth naive Bayes: two hat weights for each value, between knots."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, get_index_dtype

from riskbayes.arrays import Array
from riskbayes.exceptions import ColumnError
from riskbayes.frames import CountsByFeature
from riskbayes.loaded import require, require_shape
from riskbayes.models.quantiles import quantiles, value_masses
from riskbayes.scanners.kernels import is_worth_it
from riskbayes.scanners.kernels import smooth as kernel
from riskbayes.threads import available_threads, in_threads

SMALLEST = 1e-290
"""Values below it are set to zero: divisions by their distances would overflow."""

DENSE_CELLS = 2**17
"""Cells of the matrix of hat weights up to which dense products are faster than sparse ones: 1 MiB."""

THREADED_CELLS = 2**18
"""Cells of a table above which the knots of its columns are computed in threads."""


@dataclass(frozen=True, eq=False)
class Knots(CountsByFeature):
    """The frame of smooth naive Bayes: `counts` has one column for each (feature, knot), feature by feature.

    A feature of few values has a knot at each of them, with a probability; another has a density between
    its outer knots, and exponential tails beyond them.
    """

    of_one_fit: ClassVar[str] = (
        "These statistics were measured at other knots. Knots are placed by the rows of one fit: fit all "
        "rows together."
    )

    positions: Array
    """Values of the knots, feature by feature, in ascending order."""
    few_values: Array
    """True for a feature that takes no values but its knots."""
    tails: Array
    """Mean lengths of the lower and upper tails, of shape (features, 2); zero for few values."""

    pieces: ClassVar[Array]
    """Distance from each knot to the next; zero at the last knot and for few values."""
    lower: ClassVar[Array]
    upper: ClassVar[Array]
    """Mean length of the tail at each knot; zero for all but the outer ones."""
    widths: ClassVar[Array]
    """Width of the hat of each knot: half of both pieces beside it and its tail; one for few values."""

    def check_loaded(self, size: int) -> None:
        """Require finite knots in ascending order for each feature: rows are placed between them."""
        k = self.n_categories
        require_shape(self.positions, (sum(k.tolist()),), "f", "positions")
        require_shape(self.few_values, k.shape, "b", "few_values")
        require_shape(self.tails, (len(k), 2), "f", "tails")
        super().check_loaded(size)
        within = np.delete(np.diff(self.positions), self.offsets[1:] - 1)
        require(np.isfinite(self.positions).all() and (within > 0).all(), "knots are not in ascending order")

    def _derive(self) -> None:
        super()._derive()
        k, last = self.n_categories, self.offsets + self.n_categories - 1
        gaps = np.diff(self.positions, append=np.inf)
        gaps[last] = 0.0
        pieces = np.where(np.repeat(self.few_values, k), 0.0, gaps)
        lower, upper = np.zeros((2, len(pieces)))
        lower[self.offsets], upper[last] = self.tails.T
        widths = (pieces + np.where(np.arange(len(pieces)) > 0, np.roll(pieces, 1), 0.0)) / 2 + lower + upper
        widths = np.where(np.repeat(self.few_values, k), 1.0, widths)
        for name, value in (("pieces", pieces), ("lower", lower), ("upper", upper), ("widths", widths)):
            object.__setattr__(self, name, value)

    def beside(self, other: Knots) -> Knots:
        """Return the knots of these features and then of those of another frame."""
        pairs = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
        return Knots(*(np.concatenate(pair) for pair in pairs))

    def centre(self) -> Array:
        """Return the middle knot of each feature."""
        return self.positions[self.offsets + self.n_categories // 2]


class Hats:
    """Encoded rows: for each value, the two knots beside it and its hat weights at them.

    Both weights of a missing value are zero.
    """

    def __init__(self, columns: Array, weights: Array, beyond: Array, frame: Knots):
        self.columns, self.weights, self.beyond, self.frame = columns, weights, beyond, frame
        self.shape = columns.shape

    def __len__(self) -> int:
        return self.columns.shape[0]

    def __getitem__(self, rows: slice | Array) -> Hats:
        if isinstance(rows, slice) and rows == slice(0, len(self)):
            return self  # a table of one chunk keeps its cached matrix
        return Hats(self.columns[rows], self.weights[rows], self.beyond[rows], self.frame)

    @cached_property
    def matrix(self) -> Any:
        """Hat weights of shape (m, knots + 1); they sum to one over a present feature. Dense where small."""
        (m, n), knots = self.columns.shape, len(self.frame.positions)
        pointers = np.arange(0, m * n + 1, n, dtype=get_index_dtype(maxval=m * n))
        found = csr_array((self.weights.ravel(), self.columns.ravel(), pointers), shape=(m, knots + 1))
        return found.toarray() if m * knots <= DENSE_CELLS else found

    @cached_property
    def transposed(self) -> Any:
        """The transpose of `matrix`, a view: creating it takes longer than a product of few rows."""
        return self.matrix.T

    def look_up(self, table: Array) -> Array:
        """Return, for each row, the sum over features of a table (knots + 2, classes) interpolated at it."""
        return self.matrix @ table[:-1]

    def left_and_weights(self) -> tuple[Array, Array, Array]:
        """Return the knot on the left of every value, and the weights of it and of the next knot."""
        return self.columns[:, ::2], self.weights[:, ::2], self.weights[:, 1::2]

    def counts(self, W: Array) -> Array:
        """Return the weighted counts, of shape (classes, knots)."""
        return np.ascontiguousarray((self.transposed @ W)[:-1].T)

    def values(self) -> Array:
        """Return the rows: NaN for missing values, the outer knot for those beyond it."""
        m, n = len(self), self.shape[1] // 2
        knots = np.append(self.frame.positions, 0.0)[self.columns].reshape(m, n, 2)
        weights = self.weights.reshape(m, n, 2)
        return np.where(weights.sum(axis=2) > 0, (weights * knots).sum(axis=2), np.nan)


class Places:
    """Encoded rows for compiled look-ups: for each value, its place c + f between knots c and c + 1.

    The place of a missing value is that of the first row of zeros after all knots, so that look-ups and
    counts need no branch for it.
    """

    def __init__(self, places: Array, beyond: Array, frame: Knots):
        self.places, self.beyond, self.frame = places, beyond, frame
        self.shape = places.shape

    def __len__(self) -> int:
        return self.places.shape[0]

    def __getitem__(self, rows: slice | Array) -> Places:
        return Places(self.places[rows], self.beyond[rows], self.frame)

    def look_up(self, table: Array) -> Array:
        """Return, for each row, the sum over features of a table (knots + 2, classes) interpolated at it."""
        return kernel.look_up(self.places, self.frame.offsets, table, len(self.frame.positions))

    def left_and_weights(self) -> tuple[Array, Array, Array]:
        """Return the knot on the left of every value, and the weights of it and of the next knot."""
        left = np.floor(self.places)
        share = self.places - left
        return left.astype(np.int64) + self.frame.offsets, 1.0 - share, share

    def counts(self, W: Array) -> Array:
        """Return the weighted counts, of shape (classes, knots)."""
        found = kernel.count(self.places, self.frame.offsets, W, len(self.frame.positions))
        return np.ascontiguousarray(found[:-2].T)

    def values(self) -> Array:
        """Return the rows: NaN for missing values, the outer knot for those beyond it."""
        whole = np.floor(self.places)
        f, left = self.places - whole, whole.astype(np.int64) + self.frame.offsets
        knots = np.append(self.frame.positions, [np.nan, 0.0])
        return (1.0 - f) * knots[left] + f * np.where(f > 0, knots[left + 1], 0.0)


def hats_of(X: Array, frame: Knots) -> Hats | Places:
    """Return the encoded rows. A value beyond the outer knots has weight one at the outer knot."""
    m, n = X.shape
    if is_worth_it(m, n):
        return Places(*kernel.encode(X, frame), frame)
    columns, weights, beyond = np.empty((m, n, 2), np.int32), np.empty((m, n, 2)), np.zeros(m)
    for j in range(n):
        first, k = frame.offsets[j], frame.n_categories[j]
        t, x = frame.positions[first : first + k], X[:, j].astype(np.float64)
        missing = np.isnan(x)
        x[missing] = t[0]
        place = np.interp(x, t, np.arange(float(k)))
        left = place.astype(np.int32)
        columns[:, j, 0], columns[:, j, 1] = first + left, first + left + 1
        np.subtract(place, left, out=weights[:, j, 1])
        np.subtract(1.0, weights[:, j, 1], out=weights[:, j, 0])
        weights[missing, j] = 0.0
        if not frame.few_values[j]:
            low, high = frame.tails[j]
            beyond += np.maximum(t[0] - x, 0.0) / low + np.maximum(x - t[-1], 0.0) / high
    return Hats(columns.reshape(m, 2 * n), weights.reshape(m, 2 * n), beyond, frame)


def knots_of(X: Array, w: Array | None, n_knots: int, few: int, outer: float) -> Knots:
    """Return knots at quantiles of each column's present values, or at these values if they are few."""
    kept = None if w is None else np.flatnonzero(w > 0)
    w = None if w is None else w[kept]

    def of_column(j: int) -> tuple[Array, bool, Any]:
        x, v = (X[:, j] if kept is None else X[kept, j]).astype(np.float64), w
        missing = np.isnan(x)
        if missing.any():
            x, v = x[~missing], None if v is None else v[~missing]
        if not len(x):
            return np.zeros(1), True, (0.0, 0.0)  # one knot: its probability is one in every class
        with np.errstate(over="ignore"):
            if not np.isfinite(np.ptp(x)):
                raise ColumnError(j, "has a range that overflows. Scale it, or treat such values as missing.")
        return column_knots(x, v, n_knots, few, outer)

    n = X.shape[1]
    threads = min(n, available_threads()) if X.size > THREADED_CELLS else 1
    columns = list(in_threads(of_column, range(n), threads))
    positions, few_values, tails = zip(*columns, strict=True)
    return Knots(
        np.array([len(t) for t in positions]),
        np.concatenate(positions),
        np.array(few_values),
        np.array(tails),
    )


def column_knots(x: Array, w: Array | None, n_knots: int, few: int, outer: float) -> tuple[Array, bool, Any]:
    """Return the knots of one column, whether it has few values, and the mean lengths of its tails."""
    x = np.where(np.abs(x) < SMALLEST, 0.0, x)
    values, mass = value_masses(x, w)
    if len(values) <= max(few, n_knots):
        return values, True, (0.0, 0.0)
    # A value with the mass of a whole piece is a knot; the other knots are quantiles of the rest.
    heavy = mass > mass.sum() / (n_knots - 1)
    rest = np.where(heavy, 0.0, mass)
    levels = np.linspace(outer, 1 - outer, max(2, n_knots - int(heavy.sum())))
    knots = np.unique(np.concatenate([values[heavy], quantiles(values, rest, levels)]))
    spread = (values[-1] - values[0]) / n_knots
    below, above = values < knots[0], values > knots[-1]
    low = mean_excess(knots[0] - values[below], mass[below], spread)
    high = mean_excess(values[above] - knots[-1], mass[above], spread)
    return knots, False, (low, high)


def mean_excess(excess: Array, mass: Array, spread: float) -> float:
    """Return the mean length of a tail; if it has no rows, a tenth of the mean distance of knots."""
    return float(np.average(excess, weights=mass)) if len(excess) else 0.1 * spread
