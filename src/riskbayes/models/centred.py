"""Rows seen from an origin, so that the moments of data far from zero do not cancel."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from riskbayes.arrays import (
    Array,
    as_kind,
    converted,
    eps_of,
    is_all,
    like,
    namespace,
    own_precision,
    rows_of,
    sent_to,
    sum_of,
    to_numpy,
    widened,
)
from riskbayes.frames import Arrays, Frame, same_values

EPS = float(np.finfo(float).eps)

LARGEST_ROOT = 1e140
"""What can be squared, and multiplied again."""

PAD = 4
"""Columns before those of X in a design: a one, and zeros that keep the rows aligned."""


@dataclass(frozen=True, eq=False)
class Origin(Frame):
    """Moments are taken about `origin`. A subclass says how its second moments are recentred."""

    unmeasured: ClassVar[tuple[str, ...]] = ("settled", "given")

    origin: Array
    eps: Array = field(default_factory=lambda: np.array(EPS))
    """Relative spacing of the numbers that the rows were given in: what varies by less is constant."""
    moved: Array = field(default_factory=lambda: np.array(0.0))
    """How far each column's moments were recentred: they have the rounding of moments that far away."""
    settled: Any = None
    """What the statistics of the data determine and calibration does not move; None until they are known."""
    given: Array | None = None
    """Covariances that the user's estimator made of the rows, in place of the statistics' own."""

    def join(self, other: Frame) -> Frame:
        """Return the frame about this origin; of two precisions the coarser one."""
        if type(self) is not type(other) or self.origin.shape != other.origin.shape:
            return super().join(other)
        assert isinstance(other, Origin)
        if self == other:
            return other if self.settled is None else self
        distance = np.abs(to_numpy(self.origin - other.origin))
        moved = np.maximum(np.maximum(self.moved, other.moved), distance)
        return replace(self, eps=np.maximum(self.eps, other.eps), moved=moved)

    def converted(self, converter: Any) -> Origin:
        """Return the frame with arrays of another library; `eps` and `moved` stay on the host."""
        origin, settled, given = (converted(v, converter) for v in (self.origin, self.settled, self.given))
        return replace(self, origin=origin, settled=settled, given=given)

    def convert(self, arrays: Arrays, target: Frame) -> Arrays:
        """Recentre: with d = old - new origin, x - new = (x - old) + d."""
        assert isinstance(target, Origin)
        if same_values(self.origin, target.origin):
            return arrays
        d = self.origin - target.origin
        s1 = arrays["s1"] + arrays["s0"][:, None] * d[None, :]
        return {**arrays, "s1": s1, **self.recentred(arrays, d)}

    def recentred(self, arrays: Arrays, d: Array) -> Arrays:
        """Return the second moments about an origin from which the old one is seen at d."""
        raise NotImplementedError


class Centred:
    """Rows of X, and their differences from an origin in the user's precision, made a chunk at a time."""

    def __init__(self, X: Array, frame: Origin, dtype: Any = None, start: int | None = 0):
        self.X, self.frame = X, frame
        self.shape = X.shape
        self.dtype = own_precision(X) if dtype is None else dtype
        self.start = start
        """Number of the first of these rows in the whole table; None where they were picked."""

    def __len__(self) -> int:
        return self.X.shape[0]

    def __getitem__(self, rows: slice | Array) -> Centred:
        if is_all(rows, self.shape[0]) and isinstance(self.X, np.ndarray):
            return self  # a table of one chunk keeps what was computed of it
        together = isinstance(rows, slice) and self.start is not None
        start = self.start + (rows.start or 0) if together else None  # type: ignore[operator]
        return Centred(rows_of(self.X, rows), self.frame, self.dtype, start)

    @cached_property
    def exact(self) -> Array:
        """X - origin in the widest precision, for statistics: second moments lose half of the digits."""
        return self.X - self.frame.origin[None, :]

    @cached_property
    def values(self) -> Array:
        """X - origin in the precision of the rows, for scores."""
        return self.exact if self.exact.dtype == self.dtype else as_kind(self.exact, self.dtype)

    @cached_property
    def squares(self) -> Array:
        """(X - origin)^2 in the precision of the rows."""
        return self.values * self.values

    @cached_property
    def design(self) -> Array:
        """[1, 0, 0, 0, X - origin]: a product with it adds a constant too."""
        xp, m = namespace(self.X), self.shape[0]
        if xp is np:
            D = np.empty((m, PAD + self.shape[1]), dtype=self.dtype)
            D[:, 0], D[:, 1:PAD] = 1.0, 0.0
            np.subtract(self.X, self.frame.origin, out=D[:, PAD:], casting="same_kind")
            return D
        constant = xp.ones((m, 1), **like(self.values))
        return xp.concat([constant, xp.zeros((m, PAD - 1), **like(self.values)), self.values], axis=1)


def mean_of(X: Array, w: Array | None) -> Array:
    """Return the weighted mean of each column, in the widest precision; of a constant one its exact value."""
    xp, m = namespace(X), X.shape[0]
    total = m if w is None else sum_of(w)
    if xp is np:
        # Not all at once: a product of two precisions would copy X.
        step = m if X.dtype == np.float64 else 4096
        parts = [slice(start, start + step) for start in range(0, m, step)]
        weights = np.ones(m) if w is None else w
        mean = sum(weights[part] @ X[part].astype(np.float64, copy=False) for part in parts) / total
    else:
        dtype = own_precision(X)
        weights = xp.ones((m,), **{**like(X), "dtype": dtype}) if w is None else as_kind(w, dtype)
        mean = widened(weights @ as_kind(X, dtype)) / total
    first = widened(X[0, :])
    return xp.where(xp.abs(mean - first) <= m * eps_of(X) * xp.abs(first), first, mean)


def rounding(second: Array, frame: Origin, terms: int = 1) -> Array:
    """Variances below which nothing is known: what rounding does to moments about the frame's origin.

    `second` are second moments about it. Sums and differences of `terms` such products, here and where they
    were recentred from, err by their share in the last digit of float64; the values themselves are known to
    the last digit of the rows.
    """
    xp, eps = namespace(second), 8 * float(frame.eps)
    resolved = xp.clip(eps * xp.abs(frame.origin), max=LARGEST_ROOT)  # of a constant column it may be huge
    moved = sent_to(np.minimum(frame.moved, LARGEST_ROOT) ** 2, second)
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused by `settle`
        return 16 * terms * EPS * (xp.abs(second) + moved) + eps**2 * second + resolved * resolved
