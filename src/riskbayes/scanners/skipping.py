"""Skip rows in a scan whose posterior is proved to be one at their label, from an earlier scan.

Most rows of well separated classes have a posterior of one at their label. Let q0 = |W0^T (x - mu0)|^2 be
known for earlier parameters. With M = W1^T W0^-T, the new parameters have

    W1^T (x - mu1) = M W0^T (x - mu0) - W1^T (mu1 - mu0),

so that sqrt(q1) lies between s_min(M) sqrt(q0) - d and s_max(M) sqrt(q0) + d, d = |W1^T (mu1 - mu0)|.
Where that proves a posterior of one, to the last digit, a row adds nothing to dS or to the risks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from riskbayes.arrays import Array
from riskbayes.objectives import Objective
from riskbayes.risks import Risks
from riskbayes.scanners.dense import Labels, Scanner
from riskbayes.statistics import Statistics
from riskbayes.threads import available_threads, in_threads

if TYPE_CHECKING:
    from riskbayes.models.centred import Centred

SATURATED = 37.0
"""Log odds above which a posterior rounds to one: exp(-37) is less than half of float64's epsilon."""

ROUNDING = 1e-9
"""Relative amount that the bounds are widened by: far more than their rounding error."""

LEAST_SHARE = 0.5
"""If a smaller share of the rows can be skipped, the next scan reads all rows and is the new reference."""


class SkippingScanner(Scanner):
    """Scans of wide rows of a Gaussian for each class, which leave out what the scan before proves to add
    nothing.

    The rows are a whole NumPy table of float64: the precision of others is too low. The model has
    `squared_distances(Z, theta)`, of shape (m, n_classes), which its scores are made of.
    """

    last: SkippingScan | None = None
    """The last scan of all rows; also one that was interrupted."""
    now: SkippingScan | None = None
    """The scan under way; None for an objective under which a saturated row counts."""

    def scan(
        self, theta: Any, labels: Labels, objective: Objective, risks_only: bool = False
    ) -> tuple[Statistics | None, Risks]:
        """Return dS (None with `risks_only`) and the risks of all rows."""
        self.now = self.last = next_scan(self.Z, theta, self.last) if objective.saturates else None
        found = super().scan(theta, labels, objective, risks_only)
        if self.now is not None:
            self.now.end()
        return found

    def forget(self) -> None:
        """Forget the last scan."""
        self.last = None

    def begin(self, Z: Centred, theta: Any) -> tuple[Array, Callable[[Array], Statistics]]:
        """Return the scores and the function of dS; a scan that reads all rows records the distances."""
        if self.now is None or self.now.reference is not None:
            return super().begin(Z, theta)
        distances = self.model.squared_distances(Z, theta)  # type: ignore[attr-defined]
        self.now.record(Z, distances)
        scores = theta.constants[None, :] - 0.5 * distances
        return scores, lambda E: self.model.residual_statistics(Z, E, theta)

    def chunk(
        self, Z: Centred, labels: Labels, theta: Any, objective: Objective, risks_only: bool
    ) -> tuple[Statistics | Array | None, Risks]:
        """Scan the rows of a chunk whose posterior is not proved to be one at their label."""
        now = self.now
        if now is None:
            return super().chunk(Z, labels, theta, objective, risks_only)
        if now.reference is None:
            found = super().chunk(Z, labels, theta, objective, risks_only)
            now.safe_rows(Z, labels.y)  # counts how many could be skipped next time
            return found
        rows = np.flatnonzero(~now.safe_rows(Z, labels.y))
        if len(rows) == 0:
            rows = np.zeros(1, dtype=np.int64)  # one row gives the sums their shape
        m, w = len(labels.y), labels.w
        dS: Any
        dS, risks = super().chunk(Z[rows], labels.of(rows), theta, objective, risks_only)
        if not risks_only and self.sums_residuals:  # those of the other rows are zero
            residuals, dS = dS, np.zeros((m, dS.shape[1]))
            dS[rows] = residuals
        return dS, Risks(risks.names, risks.sums, m if w is None else w.sum())


def next_scan(Z: Centred, theta: Any, last: SkippingScan | None) -> SkippingScan:
    """Return the next scan of all rows: one that skips rows by a reference, or a new reference.

    A scan is compared only with the reference that it was given, whatever was scanned since.
    """
    m, reference = len(Z), None
    # An interrupted scan cannot be a reference, and its number of safe rows is not known.
    if last is not None and last.covers(m) and last.n_safe >= LEAST_SHARE * m:
        reference = last if last.reference is None else last.reference
    return SkippingScan(theta, m, reference)


class SkippingScan:
    """One scan of all rows, which tells each chunk what rows it can skip.

    Without a reference it reads all rows and stores their sqrt(q), of shape (n_classes, m).
    """

    def __init__(self, theta: Any, m: int, reference: SkippingScan | None):
        self.means, self.whiteners = theta.means, theta.whiteners
        self.constants = theta.log_prior - theta.half_log_det
        self.reference = reference
        self.roots: Array = np.empty((len(self.means), m)) if reference is None else reference.roots
        self.bounds = bounds_between(self if reference is None else reference, self)
        self._seen: list[tuple[int, int]] = []  # rows and safe rows of each chunk; threads append to it

    def end(self) -> None:
        """Drop the whiteners; keep their triangles if this scan may be the reference of the next one."""
        if self.reference is None and self.n_safe >= LEAST_SHARE * self.roots.shape[1]:
            upper = upper_triangle(self.means.shape[1])
            self.whiteners = [W[upper] for W in self.whiteners]
        else:
            self.whiteners = None

    @property
    def n_safe(self) -> int:
        """Number of rows so far whose posterior is proved to be one at their label."""
        return sum(safe for _, safe in self._seen)

    @property
    def n_skipped(self) -> int:
        """Number of rows that were skipped."""
        return 0 if self.reference is None else self.n_safe

    def covers(self, m: int) -> bool:
        """True if the scan has read all of m rows."""
        return sum(seen for seen, _ in self._seen) == m

    def record(self, Z: Centred, distances: Array) -> None:
        """Store the square roots of the distances of a chunk, in a scan without a reference."""
        np.sqrt(distances.T, out=self._of(Z))

    def _of(self, Z: Centred) -> Array:
        """Return the view of `roots` for the rows of a chunk."""
        assert Z.start is not None
        return self.roots[:, Z.start : Z.start + len(Z)]

    def safe_rows(self, Z: Centred, y: Array) -> Array:
        """Return a mask of the rows whose posterior is proved to be one at their label, and count them."""
        least, most, shift = self.bounds
        roots, each = self._of(Z), np.arange(len(y))
        with np.errstate(invalid="ignore", over="ignore"):  # NaN proves nothing
            nearest = np.maximum(least[:, None] * roots - shift[:, None], 0.0)
            upper = self.constants[:, None] - 0.5 * nearest**2
            own = self.constants[y] - 0.5 * (most[y] * roots[y, each] + shift[y]) ** 2
            upper[y, each] = -np.inf
            safe = own - upper.max(axis=0) > SATURATED + math.log(len(self.means))
        self._seen.append((len(y), int(np.count_nonzero(safe))))
        return safe


def bounds_between(old: SkippingScan, new: SkippingScan) -> tuple[Array, Array, Array]:
    """Return s_min, s_max and d of each class, widened by more than rounding; wide rows in threads."""
    r, n = new.means.shape
    least, most, shift = np.full(r, 1 - ROUNDING), np.full(r, 1 + ROUNDING), np.zeros(r)
    if old is new:
        return least, most, shift

    def one(k: int) -> None:
        W0 = old.whiteners[k]
        if W0.ndim == 1:  # its triangle
            triangle, W0 = W0, np.zeros((n, n))
            W0[upper_triangle(n)] = triangle
        M = np.linalg.solve(W0, new.whiteners[k])  # the transpose of M; releases the GIL, as SciPy's does not
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


def upper_triangle(n: int) -> Array:
    """Return a mask of the entries on and above the diagonal."""
    return np.tri(n, dtype=bool).T
