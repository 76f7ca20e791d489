"""Rows minus an origin in the middle of the data: moments about zero would lose digits to cancellation."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from riskbayes.arrays import (
    Array,
    astype,
    converted,
    eps_of,
    float_dtype,
    like,
    namespace,
    sum_of,
    take_rows,
    to_numpy,
    to_widest,
    widest_float,
)
from riskbayes.frames import Arrays, Frame, same_values
from riskbayes.models.missing import Holes

EPS = float(np.finfo(float).eps)

MOVED_WITH_ORIGIN = ("origin", "settled", "given", "start")
"""Fields of an `Origin` whose arrays are on the device of the statistics."""

PAD = 4
"""Columns before those of X in a design matrix: a one, and zeros that keep its rows aligned in memory."""


class Observed(NamedTuple):
    """How much of the columns is observed, where cells are missing."""

    columns: float
    """The share of the rows that have a column, summed over the columns."""
    pairs: float
    """The share of the rows that have both columns, summed over pairs; a column is a pair with itself too."""
    share: float
    """The latter of pairs of different columns, on average over columns that are not missing everywhere."""


@dataclass(frozen=True, eq=False)
class Origin(Frame):
    """The origin that moments are taken about. A subclass says how its second moments are recentred."""

    origin: Array
    eps: Array = field(default_factory=lambda: np.array(EPS))
    """Machine epsilon of the rows: a column that varies by less than its rounding is constant."""
    moved: Array = field(default_factory=lambda: np.array(0.0))
    """How far the moments of each column were recentred: that far from the origin they were rounded."""
    settled: Any = field(default=None, compare=False)
    """What the statistics of the data determine and calibration does not move (`Settled`); None before."""
    given: Array | None = field(default=None, compare=False)
    """Covariances by the user's estimator, which replace those of the statistics."""
    observed: Observed | None = field(default=None, compare=False)
    """How much of the columns is observed; None if no cell is missing."""
    start: Any = field(default=None, compare=False)
    """Parameters that the missing cells of the data are expected under; None if no cell was missing."""
    em_log_likelihood: tuple[float, ...] = field(default=(), compare=False)
    """Mean joint log-likelihood of the observed cells, plus the prior's, by iteration of EM."""

    def join(self, other: Frame) -> Frame:
        """Return a frame with this origin, and with the larger `eps` of the two."""
        if type(self) is not type(other) or self.origin.shape != other.origin.shape:
            return super().join(other)
        assert isinstance(other, Origin)
        if self == other:
            return other if self.settled is None and self.observed is None else self
        distance = np.abs(to_numpy(self.origin - other.origin))
        moved = np.maximum(np.maximum(self.moved, other.moved), distance)
        known = other if self.observed is None else self
        learned = {name: getattr(known, name) for name in ("observed", "start", "em_log_likelihood")}
        return replace(self, eps=np.maximum(self.eps, other.eps), moved=moved, **learned)

    def converted(self, converter: Any) -> Origin:
        """Apply `converter` to the arrays; `eps` and `moved` stay on the host."""
        fields = {name: converted(getattr(self, name), converter) for name in MOVED_WITH_ORIGIN}
        return replace(self, **fields)

    def convert(self, arrays: Arrays, target: Frame) -> Arrays:
        """Recentre the moments: with d = old - new origin, x - new = (x - old) + d."""
        assert isinstance(target, Origin)
        if same_values(self.origin, target.origin):
            return arrays
        d = self.origin - target.origin
        s1 = arrays["s1"] + arrays["s0"][:, None] * d[None, :]
        return {**arrays, "s1": s1, **self.recentred(arrays, d)}

    def recentred(self, arrays: Arrays, d: Array) -> Arrays:
        """Return the second moments about the new origin, where d = old - new origin."""
        raise NotImplementedError


class Centred:
    """Rows of X, with X - origin and what is made of it computed when needed, chunk by chunk.

    Parameters
    ----------
    X : array of shape (m, n)
        Rows.
    frame : Origin
        The origin.
    dtype : dtype, optional
        Of the scores; by default that of X, and float64 if cells are missing.
    start : int or None
        Number of the first of these rows in the whole table; None for rows taken by their indices.
    holes : Holes, optional
        The missing cells, if the whole table has any. They are zero in what is computed here.
    """

    def __init__(
        self,
        X: Array,
        frame: Origin,
        dtype: Any = None,
        start: int | None = 0,
        holes: Holes | None = None,
    ):
        self.X, self.frame, self.shape, self.start, self.holes = X, frame, X.shape, start, holes
        if dtype is None:
            dtype = float_dtype(X) if holes is None else np.dtype(np.float64)
        self.dtype = dtype

    def about(self, frame: Origin) -> Centred:
        """Return the same rows about the origin of another frame."""
        return Centred(self.X, frame, self.dtype, self.start, self.holes)

    def in_full(self) -> Centred:
        """Return the same rows in the widest dtype."""
        return Centred(self.X, self.frame, widest_float(self.X), holes=self.holes)

    def __len__(self) -> int:
        return self.X.shape[0]

    def __getitem__(self, rows: slice | Array) -> Centred:
        start = None
        if isinstance(rows, slice):
            if rows == slice(0, self.shape[0]) and isinstance(self.X, np.ndarray):
                return self  # a table of one chunk keeps its cached properties
            start = None if self.start is None else self.start + (rows.start or 0)
        holes = None if self.holes is None else self.holes[rows]
        return Centred(take_rows(self.X, rows), self.frame, self.dtype, start, holes)

    @cached_property
    def exact(self) -> Array:
        """X - origin in the widest dtype, for statistics: second moments lose half of the digits."""
        found = self.X - self.frame.origin[None, :]
        if self.holes is not None:
            found[self.holes.mask] = 0.0
        return found

    @cached_property
    def complete(self) -> Centred:
        """The rows without a missing cell, where the whole table has any."""
        assert self.holes is not None
        return Centred(self.X[self.holes.complete], self.frame, self.dtype)

    @cached_property
    def observed(self) -> Array:
        """One for each cell that is not missing, else zero; None of them may be missing."""
        if self.holes is None:
            return np.ones(self.shape)
        return 1.0 - self.holes.mask

    @cached_property
    def values(self) -> Array:
        """X - origin in the dtype of the rows, for scores."""
        return astype(self.exact, self.dtype)

    @cached_property
    def squares(self) -> Array:
        """(X - origin)^2 in the dtype of the rows."""
        return self.values * self.values

    @cached_property
    def design(self) -> Array:
        """The matrix [1, 0, 0, 0, X - origin]: its product with coefficients includes their constant."""
        xp, m = namespace(self.X), self.shape[0]
        if xp is np:
            D = np.empty((m, PAD + self.shape[1]), dtype=self.dtype)
            D[:, 0], D[:, 1:PAD] = 1.0, 0.0
            np.subtract(self.X, self.frame.origin, out=D[:, PAD:], casting="same_kind")
            if self.holes is not None:
                D[:, PAD:][self.holes.mask] = 0.0
            return D
        constant = xp.ones((m, 1), **like(self.values))
        return xp.concat([constant, xp.zeros((m, PAD - 1), **like(self.values)), self.values], axis=1)


def mean_of(X: Array, w: Array | None) -> Array:
    """Return the weighted mean of each column in the widest dtype; of a constant column its exact value."""
    xp, m = namespace(X), X.shape[0]
    total = m if w is None else sum_of(w)
    if xp is np:
        # A product of float64 and float32 would copy all of X: cast a few rows at a time.
        step = m if X.dtype == np.float64 else 4096
        parts = [slice(start, start + step) for start in range(0, m, step)]
        weights = np.ones(m) if w is None else w
        mean = sum(weights[part] @ X[part].astype(np.float64, copy=False) for part in parts) / total
    else:
        dtype = float_dtype(X)
        weights = xp.ones((m,), **{**like(X), "dtype": dtype}) if w is None else astype(w, dtype)
        mean = to_widest(weights @ astype(X, dtype)) / total
    first = to_widest(X[0, :])
    return xp.where(xp.abs(mean - first) <= m * eps_of(X) * xp.abs(first), first, mean)


def observed_mean(X: Array, w: Array | None) -> Array:
    """Return the weighted mean of the observed cells of each column; zero for a column without any."""
    observed = ~np.isnan(X)
    weights = np.ones(len(X)) if w is None else w
    shift = np.nanmax(np.where(observed, X, -np.inf), axis=0, initial=-np.inf)
    shift = np.where(np.isfinite(shift), shift, 0.0)  # exact for a constant column
    D = np.where(observed, X - shift, 0.0)
    mass = weights @ observed
    return shift + np.divide(weights @ D, mass, out=np.zeros(X.shape[1]), where=mass > 0)


def observed_of(X: Array, w: Array | None) -> Observed:
    """Return how much of the columns of X is observed."""
    observed = 1.0 - np.isnan(X)
    weights = np.full(len(X), 1.0 / len(X)) if w is None else w / w.sum()
    shares = (observed * weights[:, None]).T @ observed
    columns, others = float(shares.trace()), float(shares.sum() - shares.trace())
    seen = np.count_nonzero(shares.diagonal())
    return Observed(columns, columns + 0.5 * others, others / (seen * (seen - 1)) if seen > 1 else 1.0)
