"""What the statistics of the data determine before calibration, which leaves it fixed: the units of columns,
the prior, and a term for the directions in which the rows do not determine a covariance.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from riskbayes.arrays import Array, eye_like, like, max_of, namespace, to_device, to_numpy
from riskbayes.exceptions import ColumnError
from riskbayes.models.centred import EPS, Origin
from riskbayes.models.whitening import LEAST, SMALL, cholesky_or_none, factorise, factors_by_eigenvectors
from riskbayes.statistics import Statistics
from riskbayes.threads import available_threads, in_threads

TINY = float(np.finfo(float).tiny)
"""Least total weight to divide by."""

LARGEST_ROOT = 1e140
"""Upper bound on numbers whose squares are multiplied again in float64."""

SMALLEST_VARIANCE, SMALLEST_SINGLE = 1e-290, 1e-24
"""Least variance of a float64 and of a float32 column: the smaller one of a class must not underflow."""

SEPARATING = 1e-4
"""Variance set for a direction in which no class varies, as a share of the columns' own. It is small, because
such a direction tells the classes apart with certainty."""

MOST = 1e280
"""Largest noise, in the units of the columns: more would overflow without changing the result."""


@dataclass(frozen=True)
class Settled:
    """The values that the statistics of the data determine and calibration leaves fixed."""

    variance: Array
    """Total variance of each column; zero where it is constant."""
    scale: Array
    """Its square root, the unit of the column; for a constant column the largest of all columns, or one."""
    mean: Array
    """The prior's mean, relative to the frame's origin."""
    covariance: Array
    """The prior's covariance."""
    completion: Array | None = None
    """Term added to each covariance in directions that the rows do not determine; None if there are none."""
    missing: Array | None = None
    """How many such directions each covariance has."""
    reference: Array | None = None
    """The closed form's covariances: those of calibration are at least a share of them."""
    data: Statistics | None = None
    """Statistics to compute the reference from, class by class, where it is too large to store."""

    @cached_property
    def widest(self) -> float:
        """The largest variance."""
        return float(max_of(self.variance))

    def with_completion(self, C: Array, classes: slice = slice(None)) -> Array:
        """Return the covariances of some classes plus their completion."""
        return C if self.completion is None else C + self.completion[classes, ...]

    def without_completion(self, C: Array) -> Array:
        """Return covariances without their completion: the inverse of `with_completion`."""
        return C if self.completion is None else C - self.completion


def check_range(variance: Array, S: Statistics) -> Array:
    """Return the variances; raise for a column whose squares overflow or underflow in its dtype."""
    found, s1 = to_numpy(variance), to_numpy(S["s1"])
    single = S.frame.eps > EPS
    wider = ", or pass it as float64" if single else ""
    large = ~(np.abs(found) <= np.finfo(np.float32 if single else np.float64).max / max(S.total, 1.0))
    if large.any():
        raise overflowing(large, wider)
    # A constant column passes: its first moments are exactly zero, or large enough to be squared.
    least = SMALLEST_SINGLE if single else SMALLEST_VARIANCE
    first = np.abs(s1).max(axis=0) / max(S.total, 1.0)
    small = (np.abs(found) < least) & (first > 0) & (first < least**0.5)
    if small.any():
        raise ColumnError(
            int(np.flatnonzero(small)[0]),
            "has values whose squares underflow: they differ by too little. Multiply it by a power of "
            f"ten{wider}.",
        )
    return variance


def overflowing(columns: Array, wider: str = "") -> ColumnError:
    """Return the error for the first of these columns, whose squares overflow."""
    return ColumnError(
        int(np.flatnonzero(columns)[0]),
        f"has values whose squares overflow. Scale it{wider}, or treat such values as missing.",
    )


def rounding(second: Array, frame: Origin, terms: int = 1) -> Array:
    """Return the rounding error of variances: a variance below it cannot be told from zero.

    `second` are second moments about the frame's origin. A sum or difference of `terms` such products errs by
    the epsilon of float64, times these products, here and about the origin that they were recentred from;
    the values themselves err by the epsilon of the rows.
    """
    xp, eps = namespace(second), 8 * float(frame.eps)
    resolved = xp.clip(eps * xp.abs(frame.origin), max=LARGEST_ROOT)  # a constant column may be huge
    moved = to_device(np.minimum(frame.moved, LARGEST_ROOT) ** 2, second)
    with np.errstate(over="ignore", invalid="ignore"):  # `fix_prior` raises an error for what overflows
        return 16 * terms * EPS * (xp.abs(second) + moved) + eps**2 * second + resolved * resolved


def noise_of(second: Array, frame: Origin, settled: Settled) -> Array:
    """Return the rounding error of variances in the closed form; a constant column has that of its scale."""
    n, xp = second.shape[-1], namespace(second)
    found, usual = rounding(second, frame, n), 16 * n * EPS * settled.scale * settled.scale
    return xp.where((settled.variance > 0) | (found > usual), found, usual)


def complete_undetermined(
    C: Array, noise: Array, pooled: Array | None, pooled_noise: Array | None, scale: Array
) -> tuple[Array | None, Array]:
    """Return the term to add to covariances that the rows do not determine, or None, and how many directions.

    `noise` are the rounding errors of the columns' variances, `scale` the standard deviations of all rows.
    Directions that the rows of a class do not determine get the pooled covariance; those that this does not
    determine either, where no class varies, get a small share of the columns' own variances.
    """
    xp, units = namespace(C), scale[:, None] * scale
    B, N = C / units, xp.clip(noise / (scale * scale)[None, :], LEAST**2, MOST)
    if xp is not np and cholesky_or_none(B - N[:, :, None] * eye_like(B)[None, ...]) is not None:
        return None, xp.zeros(C.shape[0], **{**like(C), "dtype": xp.int64})
    reference = SEPARATING * np.eye(C.shape[-1])
    if pooled is not None:
        P = to_numpy(pooled / units)
        N0 = np.clip(to_numpy(pooled_noise / (scale * scale)), LEAST**2, MOST)
        reference = P + completion(P[None], N0[None], reference)[0][0]
    found, missing = completion(to_numpy(B), to_numpy(N), reference)
    return to_device(found, C) * units if missing.any() else None, to_device(missing, C)


def completion(C: Array, noise: Array, pooled: Array) -> tuple[Array, Array]:
    """Return the term to add to a stack in the directions that the rows do not determine, and their number.

    A direction v is not determined if its variance v^T C v is below that of the rounding, v^T N v, with
    N = diag(noise). There the pooled covariance P is added: P V (V^T P V)^-1 V^T P, which does not depend on
    the units and axes of the columns.
    """
    found, missing = np.zeros_like(C), np.zeros(len(C), dtype=np.int64)

    def one(k: int) -> None:
        root = np.sqrt(noise[k])
        B = C[k] / (root[:, None] * root)
        if factorise(B - np.eye(len(B))) is not None:
            return
        eigenvalues, U = np.linalg.eigh(B)
        low, U = eigenvalues[eigenvalues <= 1.0], U[:, eigenvalues <= 1.0]
        missing[k] = U.shape[1]
        if missing[k]:
            V = U / root[:, None]
            V /= np.linalg.norm(V, axis=0)
            half = V.T @ pooled @ V
            L = factors_by_eigenvectors(half[None])[0]  # even if rounding leaves it indefinite
            whitened = np.linalg.solve(L, V.T @ pooled)
            # Replaces the variance of C there, which may be negative, by more than rounding if P is less.
            own, noise_there = root[:, None] * U, np.maximum(4.0, np.abs(low))
            found[k] = whitened.T @ whitened + (own * (noise_there - low)) @ own.T

    threads = min(len(C), available_threads()) if C.shape[-1] > SMALL else 1
    for _ in in_threads(one, range(len(C)), threads):
        pass
    return found, missing
