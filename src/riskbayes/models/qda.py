"""Quadratic discriminant analysis: psi(x) = (1, x, x x^T), a Gaussian for each class."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from riskbayes.arrays import Array, namespace, outer, sum_of, to_widest
from riskbayes.frames import Arrays
from riskbayes.models.base import Described, Sample, log_class_prior
from riskbayes.models.centred import PAD, Centred, Origin
from riskbayes.models.conditional import Conditional
from riskbayes.models.correlated import EVERY, CorrelatedModel, log_likelihood, observed_patterns
from riskbayes.models.gaussian import LOG_2PI
from riskbayes.models.gaussian_em import em_start
from riskbayes.models.lda import LDAModel
from riskbayes.models.quadratic_forms import second_moments, squared_distances, wide_traces
from riskbayes.models.whitening import SMALL, whiten
from riskbayes.scanners import Scanner
from riskbayes.scanners.compiled import CompiledScanner, GaussianPart
from riskbayes.scanners.kernels import is_worth_it
from riskbayes.scanners.skipping import SkippingScanner
from riskbayes.statistics import Statistics
from riskbayes.threads import available_threads, in_threads

MOST_COMPILED = 32
"""Most columns of a compiled scan: a block of rows then fits the L1 cache; with more, BLAS is faster."""

FEWEST_FEATURES, ROWS_PER_FEATURE = 64, 16
"""Least number of columns, and of rows per column, of a scan that skips rows. What it remembers, a number for
each row and class, is then small beside the rows; singular values cost as much as a few rows per column."""


class FullMoments(Origin):
    """Moments about an origin, with `s2`, a matrix of second moments for each class."""

    def recentred(self, arrays: Arrays, d: Array) -> Arrays:
        """Return s2 of rows moved by d: (x + d)(x + d)^T = x x^T + x d^T + d x^T + d d^T."""
        cross = arrays["s1"][:, :, None] * d[None, None, :]
        moved = cross + namespace(cross).matrix_transpose(cross) + arrays["s0"][:, None, None] * outer(d)
        return {"s2": arrays["s2"] + moved}


@dataclass(frozen=True)
class QDAParameters:
    """p(y); means relative to the frame's origin; W_y W_y^T = Sigma_y^-1; log|Sigma_y|/2."""

    log_prior: Array
    means: Array
    forms: Array
    """A stack A with W^T (x - mu) = A^T (1, 0, 0, 0, x), so that one product gives whitened rows."""
    half_log_det: Array
    frame: Any
    floored: Array
    known: Array | None = None
    """The covariances; None for wide rows, whose stack is large: it is made of W when it is asked for."""

    @cached_property
    def covariances(self) -> Array:
        """The stack Sigma = (W W^T)^-1."""
        if self.known is not None:
            return self.known
        factors = namespace(self.forms).linalg.inv(self.whiteners)
        return namespace(factors).matrix_transpose(factors) @ factors

    def with_covariances(self, C: Array) -> QDAParameters:
        """Return theta with other covariances."""
        return replace(self, known=C)

    @cached_property
    def constants(self) -> Array:
        """log p(y) - log|Sigma|/2 - n/2 log 2pi: the log joint at the mean of each class."""
        return self.log_prior - self.half_log_det - 0.5 * self.means.shape[1] * LOG_2PI

    @cached_property
    def conditional(self) -> Conditional:
        """The Gaussians given some of their coordinates, for rows with missing cells."""
        return Conditional(self.means, self.whiteners, self.log_prior - self.half_log_det)

    @property
    def whiteners(self) -> Array:
        """The stack W."""
        return self.forms[:, PAD:, :]


class GaussianScanner(CompiledScanner):
    """Compiled scans of a Gaussian for each class."""

    kind = GaussianPart

    def part(self, theta: QDAParameters) -> GaussianPart:
        """Return the Gaussians of a compiled scan."""
        frame, shifts = self.Z.frame, theta.forms[:, 0, :]
        return GaussianPart(frame, frame.origin, theta.whiteners, shifts, theta.constants)


@dataclass(frozen=True)
class QDAModel(CorrelatedModel):
    """A mean and a full covariance for each class.

    Parameters
    ----------
    reg_param : float
        Sigma <- (1 - reg_param) Sigma + reg_param I, as in scikit-learn.
    shrinkage : float
        Sigma <- (1 - shrinkage) Sigma + shrinkage tr(Sigma)/n I, as in scikit-learn.
    """

    floor_message: ClassVar[str] = (
        "The rows do not determine the covariance of class {classes}: up to {most} of its eigenvalues were "
        "taken from all classes together."
    )
    floor_cures: ClassVar[dict[str, str]] = {
        "covariance_strength": "covariance_strength (a prior)",
        "reg_param": "reg_param",
    }

    frame_kind: ClassVar[type[Origin]] = FullMoments
    second: ClassVar[str] = "s2"
    own_moments: ClassVar[str] = "pairs"
    widest: ClassVar[float] = 64  # a chunk costs n^2 sums for each class, so it needs many rows

    reg_param: float = 0.0  # type: ignore[misc]
    shrinkage: float = 0.0  # type: ignore[misc]

    def scanner(self, Z: Centred) -> Scanner:
        """Return a compiled scanner of large tables of few columns, and one of wide rows that skips some."""
        m, n = Z.shape
        on_host = isinstance(Z.X, np.ndarray)
        if Z.holes is not None or not on_host:
            return super().scanner(Z)
        cells = min(n, self.widest)
        if Z.dtype == np.float64 and n <= MOST_COMPILED and is_worth_it(m, n):
            return GaussianScanner(self, Z, cells=cells, releases_lock=True)
        wide = n >= FEWEST_FEATURES and m >= ROWS_PER_FEATURE * n
        whole = Z.start is not None and Z.dtype == np.float64
        kind = SkippingScanner if wide and whole else Scanner
        # Of wide rows each chunk would need n^2 sums for each class.
        return kind(self, Z, cells=cells, releases_lock=True, sums_residuals=n > SMALL)

    def squared_distances(self, Z: Centred, theta: QDAParameters) -> Array:
        """Return |W^T (x - mu)|^2 of each class."""
        return squared_distances(Z, theta.forms)

    def statistics(self, Z: Centred, W: Array) -> Statistics:
        """Return masses, first and second moments about the origin; rows of negligible weight are skipped."""
        if Z.holes is not None:
            return self.expected_under_start(Z, W)
        first, second = second_moments(Z, to_widest(W))
        return Statistics({"s0": sum_of(to_widest(W), axis=0), "s1": first, "s2": second}, Z.frame)

    def learn_missing(self, sample: Sample, frame: Origin) -> Origin:
        """Return the frame with the parameters that EM finds."""
        return em_start(self, LDAModel, sample, frame)

    def moment_matrices(self, S: Statistics, size: Array) -> Array:
        """Return one matrix for each class."""
        s1, s2 = (S["s1"] / size)[:, :, None], S["s2"] / size[:, None] / size
        return np.block([[S["s0"][:, None, None], s1.swapaxes(1, 2)], [s1, s2]])

    def parameters(self, S: Statistics) -> QDAParameters:
        """Return mu = (m1 mu0 + s1) / (m1 + s0) and the whiteners of the floored covariances."""
        settled = S.frame.settled or self.settled_by(S)
        mu, xp = self.means(S, settled)[0], namespace(S["s0"])
        r, n = mu.shape

        def whitened(classes: slice, out: Array | None = None) -> tuple[Array, Array, Array, Array]:
            C = settled.with_completion(self.covariances(S, settled, classes), classes)
            if settled.reference is None:
                assert settled.data is not None
                reference = settled.with_completion(self.covariances(settled.data, settled, classes), classes)
            else:
                reference = settled.reference[classes, ...]
            return whiten(C, reference, self.covariance_floor, out)

        if xp is np and n > SMALL:  # class by class, in threads: temporary arrays stay small
            forms, half_log_det = np.zeros((r, PAD + n, n)), np.empty(r)
            floored, known = np.empty(r, dtype=np.int64), None

            def fill(own: slice) -> None:
                W, half_log_det[own], _, floored[own] = whitened(own, forms[own, PAD:])
                np.negative(mu[own, None, :] @ W, out=forms[own, :1])

            for _ in in_threads(fill, [slice(k, k + 1) for k in range(r)], min(r, available_threads())):
                pass
        else:
            W, half_log_det, known, floored = whitened(EVERY)
            known = known if n <= SMALL else None
            constant = -(mu[:, None, :] @ W)
            zeros = [xp.zeros_like(constant)] * (PAD - 1)
            forms = xp.concat([constant, *zeros, W], axis=1)
        return QDAParameters(
            log_class_prior(S["s0"], self.class_alpha, self.class_prior),
            mu,
            forms,
            half_log_det,
            S.frame,
            floored + settled.missing,
            known,
        )

    def log_joint(self, Z: Centred, theta: QDAParameters) -> Array:
        """Return log p(y) - n/2 log 2pi - log|Sigma|/2 - |W^T (x - mu)|^2 / 2."""
        if Z.holes is not None:
            return self.observed_log_joint(Z, theta)
        return theta.constants[None, :] - 0.5 * squared_distances(Z, theta.forms)

    def contributions(self, Z: Centred, theta: QDAParameters) -> Array:
        """Return -(z_j (P z)_j + log 2pi Sigma_jj + (log R)_jj) / 2 with z = x - mu and P = Sigma^-1.

        z_j (P z)_j is the Shapley value of the quadratic form z^T P z, where a column that does not take part
        is at the mean of the class: half of each cross term goes to either column. log|Sigma| is the sum of
        the logarithms of the variances, which each column is given, and of log|R|, of the correlations R,
        the trace of the matrix logarithm: each column is given its entry of the diagonal. No order of the
        columns is chosen. Uncorrelated columns have the contributions of Gaussian naive Bayes. Missing cells
        are marginalised: Sigma is that of the observed columns.
        """
        D, n = Z.exact, Z.shape[1]
        found = np.zeros((*D.shape, len(theta.means)))
        for seen, rows in observed_patterns(Z):
            cells: Any = np.ix_(rows, seen)
            for k, C in enumerate(theta.covariances):
                own = C[np.ix_(seen, seen)]
                W = theta.whiteners[k] if len(seen) == n else np.linalg.inv(np.linalg.cholesky(own)).T
                z = D[cells] - theta.means[k, seen]
                found[*cells, k] = -0.5 * (z * (z @ W @ W.T) + LOG_2PI + log_determinant_shares(own, W))
        return found

    def describe(self, theta: QDAParameters) -> Iterator[Described]:
        """Yield the means, the standard deviations and the correlations."""
        yield from super().describe(theta)
        deviations = np.sqrt(np.linalg.diagonal(theta.covariances))
        first, second = np.triu_indices(theta.means.shape[1], 1)
        correlations = theta.covariances[:, first, second] / (deviations[:, first] * deviations[:, second])
        yield Described(
            first,
            ["correlation with {}"] * len(first),
            correlations,
            np.ones_like(correlations),
            [((j, None),) for j in second.tolist()],
        )

    def anchor_likelihood(self, S: Statistics) -> Callable[[QDAParameters], float]:
        """Return the log-likelihood by theta of the closed form's statistics.

        Second moments of wide rows are large: they are computed class by class from S whenever it is asked.
        """
        settled = S.frame.settled or self.settled_by(S)
        if settled.reference is not None:
            return super().anchor_likelihood(S)
        closed = self.parameters(S)
        if np.any(closed.floored > settled.missing):
            return super().anchor_likelihood(S)
        s0, mu = np.exp(closed.log_prior), closed.means

        def second(k: int) -> Array:
            found, own = mu[k, :, None] * mu[k], slice(k, k + 1)
            found += settled.with_completion(self.covariances(S, settled, own), own)[0]
            found *= s0[k]
            return found

        def of(theta: QDAParameters) -> float:
            if theta.frame != S.frame:
                return self.log_likelihood(self.anchor_statistics(S), theta)
            return log_likelihood(s0, s0[:, None] * mu, wide_traces(second, theta.whiteners), theta)

        return of


def log_determinant_shares(C: Array, W: Array) -> Array:
    """Return log C_jj + (log R)_jj for each column, with the correlations R of C; their sum is log|C|.

    W W^T = C^-1, W triangular: by its diagonal log|C| is exact, and what rounding leaves is shared equally.
    """
    scale = np.sqrt(np.diag(C))
    values, axes = np.linalg.eigh(C / np.outer(scale, scale))
    shares = 2 * np.log(scale) + axes**2 @ np.log(np.maximum(values, np.finfo(float).tiny))
    return shares - (shares.sum() + 2 * np.log(np.diag(W)).sum()) / max(1, len(shares))
