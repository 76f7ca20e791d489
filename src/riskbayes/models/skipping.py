"""Rows that a scan need not look at: parameters that moved a little leave them as they were.

Most rows of a well separated table have a posterior of one at their label. Let q0 = |W0^T (x - mu0)|^2 be
known for parameters of before. With M = W1^T W0^-T, those of now have

    W1^T (x - mu1) = M W0^T (x - mu0) - W1^T (mu1 - mu0),

so that sqrt(q1) lies between s_min(M) sqrt(q0) - d and s_max(M) sqrt(q0) + d, d = |W1^T (mu1 - mu0)|.
Where that proves a posterior of one, to the last digit, a row adds nothing to dS and nothing to the risks.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.linalg.lapack import dtrtrs

from riskbayes.arrays import Array
from riskbayes.models.centred import Centred
from riskbayes.threads import available_threads, in_threads

SATURATED = 37.0
"""exp(-37) is less than half the distance from one to the next float64."""

ROUNDING = 1e-9
"""What the bounds are widened by, as a share: far above the rounding of what they are made of."""

LEAST_SHARE = 0.5
"""Where fewer of the rows could be skipped, the next scan reads them all and is remembered instead."""


FEWEST_FEATURES = 64
"""Least number of columns: what is kept, a number a row and class, is then small beside them."""

ROWS_PER_FEATURE = 16
"""Least number of rows for each column: singular values cost as much as a few rows a column."""


def next_scan(Z: Centred, theta: Any, last: SkippingScan | None) -> SkippingScan | None:
    """Return how to scan all rows with theta: against a reference, or as the next one.

    None where it does not pay, or the digits are not there: it is for large tables of NumPy's float64.
    A scan is only ever compared with the reference that it was given, whatever was scanned since.
    """
    m, n = Z.shape
    large = n >= FEWEST_FEATURES and m >= ROWS_PER_FEATURE * n and Z.start is not None
    if not (large and isinstance(Z.X, np.ndarray) and Z.dtype == np.float64):
        return None
    reference = None
    # A scan that was interrupted is no reference, and says nothing of how many rows can be skipped.
    if last is not None and last.covers(m) and last.n_safe >= LEAST_SHARE * m:
        reference = last if last.reference is None else last.reference
    return SkippingScan(theta, m, reference)


class SkippingScan:
    """One scan of all rows: each of its chunks asks it which rows to look at.

    Without a reference it looks at all, and keeps sqrt(q) of each, a row a class.
    """

    def __init__(self, theta: Any, m: int, reference: SkippingScan | None):
        self.means, self.whiteners = theta.means, theta.whiteners
        self.constants = theta.log_prior - theta.half_log_det
        self.reference = reference
        self.roots: Array = np.empty((len(self.means), m)) if reference is None else reference.roots
        self.bounds = bounds_between(self if reference is None else reference, self)
        if reference is not None:
            self.whiteners = None  # only a reference is compared with
        self._seen: list[tuple[int, int]] = []  # rows and safe rows of each chunk; threads append to it

    @property
    def n_safe(self) -> int:
        """Rows known to be saturated, of those seen so far."""
        return sum(safe for _, safe in self._seen)

    @property
    def n_skipped(self) -> int:
        """Rows that were not looked at."""
        return 0 if self.reference is None else self.n_safe

    def covers(self, m: int) -> bool:
        """Whether it went to its end."""
        return sum(seen for seen, _ in self._seen) == m

    def record(self, Z: Centred, distances: Array) -> None:
        """Keep what was computed of a chunk, where all rows are looked at."""
        if self.reference is None:
            np.sqrt(distances.T, out=self._of(Z))

    def _of(self, Z: Centred) -> Array:
        """sqrt(q) of a chunk's rows."""
        assert Z.start is not None
        return self.roots[:, Z.start : Z.start + len(Z)]

    def safe_rows(self, Z: Centred, y: Array) -> Array:
        """Which rows of a chunk are proved to be saturated at their labels; it counts them, too."""
        least, most, shift = self.bounds
        roots, each = self._of(Z), np.arange(len(y))
        with np.errstate(invalid="ignore", over="ignore"):  # what is no number proves nothing
            nearest = np.maximum(least[:, None] * roots - shift[:, None], 0.0)
            upper = self.constants[:, None] - 0.5 * nearest**2
            own = self.constants[y] - 0.5 * (most[y] * roots[y, each] + shift[y]) ** 2
            upper[y, each] = -np.inf
            safe = own - upper.max(axis=0) > SATURATED + math.log(len(self.means))
        self._seen.append((len(y), int(np.count_nonzero(safe))))
        return safe


def bounds_between(old: SkippingScan, new: SkippingScan) -> tuple[Array, Array, Array]:
    """s_min, s_max and d of each class, widened by what rounding may do; large classes in threads."""
    r, n = new.means.shape
    least, most, shift = np.full(r, 1 - ROUNDING), np.full(r, 1 + ROUNDING), np.zeros(r)
    if old is new:
        return least, most, shift

    def one(k: int) -> None:
        # The transpose of M. LAPACK counts along columns: what it calls lower is our upper triangle.
        M = dtrtrs(old.whiteners[k].T, new.whiteners[k], lower=1, trans=1)[0]
        squares = M.T @ M
        if math.isfinite(squares.sum()):
            eigenvalues = np.linalg.eigvalsh(squares)
            least[k] *= math.sqrt(max(eigenvalues[0], 0.0))
            most[k] *= math.sqrt(eigenvalues[-1])
        else:
            least[k], most[k] = 0.0, np.inf
        moved = (new.means[k] - old.means[k]) @ new.whiteners[k]
        shift[k] = (1 + ROUNDING) * np.linalg.norm(moved) + ROUNDING

    threads = min(r, available_threads()) if n > 64 else 1
    for _ in in_threads(one, range(r), threads):
        pass
    return least, most, shift
