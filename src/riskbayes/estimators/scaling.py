"""Columns multiplied by powers of two: no digit is touched, and squares of extreme values stay numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from riskbayes.arrays import Array
from riskbayes.exceptions import ColumnError


@dataclass(frozen=True)
class ColumnScales:
    """Exponents that bring columns of extreme range to a range of about one; others stay as they are.

    A range is extreme beyond a quarter of the exponents that its dtype has: 2**-256 to 2**256 in float64,
    2**-32 to 2**32 in float32.
    """

    exponents: Array
    """Column j is multiplied by 2**-exponents[j]."""

    @classmethod
    def learn(cls, X: Array) -> Self:
        """Return the scales of these rows; refuse values beside which the others would have no digits."""
        exponents = range_exponents(X)
        most = np.finfo(X.dtype).maxexp
        for j in np.flatnonzero(exponents > most // 2).tolist():
            if exponents[j] - typical_exponent(X[:, j]) > most // 2:
                raise ColumnError(
                    int(j),
                    "has values whose squares overflow beside its others. Scale them, or treat such values "
                    "as missing.",
                )
        return cls(np.where(np.abs(exponents) > most // 4, exponents, 0))

    @property
    def scaled(self) -> Array:
        """Columns that are multiplied."""
        return np.flatnonzero(self.exponents)

    def apply(self, X: Array) -> Array:
        """Return the columns as members read them; a value far beyond the training rows may be infinite."""
        if not len(self.scaled):
            return X
        with np.errstate(over="ignore"):
            return np.ldexp(X, -self.exponents)

    def apply_to_new(self, X: Array) -> Array:
        """Apply to rows to predict; refuse a value that is too large beside the training rows."""
        found = self.apply(X)
        beyond = np.argwhere(np.isinf(found)) if len(self.scaled) else np.empty((0, 2), int)
        for i, j in beyond[:1]:
            raise ColumnError(
                int(j),
                f"holds {X[i, j]:g}, which overflows beside the training rows: their range is about "
                f"2**{self.exponents[j]}. Treat it as missing, or drop the row.",
            )
        return found

    def undo(self, X: Array) -> Array:
        """Return rows of scaled columns in the user's units."""
        return np.ldexp(X, self.exponents) if len(self.scaled) else X


def range_exponents(X: Array) -> Array:
    """Return e with a range between 2**e and 2**(e + 1) for each column; of a constant, that of its size."""
    low, high = X.min(axis=0), X.max(axis=0)
    with np.errstate(over="ignore"):
        size = high - low
    size = np.where(size > 0, size, np.abs(high))
    return np.where(np.isinf(size), np.finfo(X.dtype).maxexp, np.frexp(size)[1] - 1) * (size > 0)


def typical_exponent(x: Array) -> float:
    """Return the exponent of the median distance from the median, of the values that differ from it."""
    halves = x / 2  # their distances do not overflow
    away = np.abs(halves - np.median(halves))
    away = away[away > 0]
    return np.frexp(np.median(away))[1] if len(away) else np.inf
