"""Scale columns of extreme range by powers of two: exact, and squares of their values do not overflow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from riskbayes.arrays import Array
from riskbayes.exceptions import ColumnError
from riskbayes.preprocessing.bins import range_exponents


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
        """Return the scales of these rows; refuse values so large that the others would lose all digits."""
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
        """Indices of the columns that are scaled."""
        return np.flatnonzero(self.exponents)

    def apply(self, X: Array) -> Array:
        """Return scaled rows; a value far larger than those of the training rows may become infinite."""
        if not len(self.scaled):
            return X
        with np.errstate(over="ignore"):
            return np.ldexp(X, -self.exponents)

    def apply_to_new(self, X: Array) -> Array:
        """Return scaled rows to predict; refuse a value that overflows."""
        found = self.apply(X)
        for i, j in np.argwhere(np.isinf(found)).tolist() if len(self.scaled) else ():
            raise ColumnError(
                j,
                f"holds {X[i, j]:g}, which overflows beside the training rows: their range is about "
                f"2**{self.exponents[j]}. Treat it as missing, or drop the row.",
            )
        return found

    def undo(self, X: Array) -> Array:
        """Return scaled rows in the user's units."""
        return np.ldexp(X, self.exponents) if len(self.scaled) else X


def typical_exponent(x: Array) -> float:
    """Return the exponent of the median distance from the median, among values that differ from it."""
    halves = x / 2  # distances of halves do not overflow
    away = np.abs(halves - np.median(halves))
    away = away[away > 0]
    return np.frexp(np.median(away))[1] if len(away) else np.inf
