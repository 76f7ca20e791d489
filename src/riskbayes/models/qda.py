"""Quadratic discriminant analysis: psi(x) = (1, x, x x^T), a Gaussian for each class."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from riskbayes.arrays import (
    Array,
    eye_like,
    namespace,
    outer,
    sum_of,
    to_widest,
)
from riskbayes.frames import Arrays
from riskbayes.models.base import Described, Sample, log_class_prior
from riskbayes.models.centred import PAD, Centred, Origin
from riskbayes.models.conditional import Conditional
from riskbayes.models.correlated import CorrelatedModel, shrunk, unshrunk
from riskbayes.models.gaussian import LOG_2PI, described_moments, observed_patterns
from riskbayes.models.gaussian_em import em_start
from riskbayes.models.lda import LDAModel
from riskbayes.models.quadratic_forms import second_moments, squared_distances, wide_traces
from riskbayes.models.settled import TINY, Settled, complete_undetermined, noise_of
from riskbayes.models.whitening import SMALL, floor_eigenvalues, whiten
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

EVERY = slice(None)
"""All classes of a stack."""


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

    reg_param: float = 0.0
    shrinkage: float = 0.0

    def cast(self, theta: QDAParameters, Z: Centred) -> QDAParameters:
        """Return theta in the dtype of the rows, without the fields that scans do not read."""
        return theta if Z.dtype == theta.means.dtype else super().cast(replace(theta, known=None), Z)

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

    def from_moments(self, s0: Array, means: Array, C: Array, frame: Origin) -> Statistics:
        """Return the statistics of rows with these masses and means, and with covariance C in each class."""
        s2 = s0[:, None, None] * (C + outer(means))
        return Statistics({"s0": s0, "s1": s0[:, None] * means, "s2": s2}, frame)

    def scatter(self, S: Statistics) -> tuple[float, Array, Array]:
        """Return the weight, the scatter of columns about the overall mean, and that about the classes'."""
        s0, s1, xp = S["s0"], S["s1"], namespace(S["s0"])
        first, second, mass = sum_of(s1, axis=0), sum_of(S["s2"], axis=0), xp.where(s0 > 0, s0, 1.0)
        total = max(S.total, TINY)
        return total, xp.linalg.diagonal(second) - first * first / total, second - (s1 / mass[:, None]).T @ s1

    def moment_matrices(self, S: Statistics, size: Array) -> Array:
        """Return one matrix for each class."""
        s1, s2 = (S["s1"] / size)[:, :, None], S["s2"] / size[:, None] / size
        return np.block([[S["s0"][:, None, None], s1.swapaxes(1, 2)], [s1, s2]])

    def covariances(self, S: Statistics, settled: Settled, classes: slice = EVERY) -> Array:
        """Return Sigma = (m2 Sigma0 + scatter) / (m2 + s0) of classes, then shrunk as in scikit-learn."""
        s0, s1, s2 = (S[name][classes, ...] for name in ("s0", "s1", "s2"))
        mu, kappa = (value[classes, ...] for value in self.means(S, settled))
        xp, m1, m2 = namespace(mu), self.mean_strength, self.covariance_strength
        if S.frame.given is not None:
            C = S.frame.given[classes, ...]
        else:
            if self.prior_form == "exact":
                scatter = (-kappa[:, None] * mu)[:, :, None] * mu[:, None, :]
                scatter += s2  # in place: these are large
                scatter = scatter + m1 * outer(settled.mean)[None, ...] if m1 else scatter
            else:
                own = s1 / xp.where(s0 > 0, s0, 1.0)[:, None]
                scatter = s2 - s1[:, :, None] * own[:, None, :]
            scatter = scatter + m2 * settled.covariance[None, ...] if m2 else scatter
            scatter /= xp.where(s0 + m2 > 0, s0 + m2, 1.0)[:, None, None]
            C = scatter
        if self.shrinkage > 0:
            C = shrunk(C, self.shrinkage)
        if self.reg_param > 0:
            C = (1 - self.reg_param) * C + self.reg_param * eye_like(C)[None, ...]
        return C

    def completion(
        self, S: Statistics, settled: Settled, C: Array, pooled: Array
    ) -> tuple[Array | None, Array]:
        """Return the pooled covariance in the directions that the rows of a class do not determine."""
        s0, xp = S["s0"][:, None], namespace(C)
        mass, second = xp.where(s0 > 0, s0, 1.0), xp.linalg.diagonal(S["s2"])
        noise = noise_of(second / mass, S.frame, settled)
        whole = noise_of(sum_of(second, axis=0) / sum_of(mass), S.frame, settled)
        return complete_undetermined(C, noise, pooled, whole, settled.scale)

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
        deviations = np.sqrt(np.linalg.diagonal(theta.covariances))
        yield from described_moments(theta.means + theta.frame.origin, deviations)
        first, second = np.triu_indices(theta.means.shape[1], 1)
        correlations = theta.covariances[:, first, second] / (deviations[:, first] * deviations[:, second])
        yield Described(
            first,
            ["correlation with {}"] * len(first),
            correlations,
            np.ones_like(correlations),
            [((j, None),) for j in second.tolist()],
        )

    def sample_rows(self, theta: QDAParameters, y: Array, rng: np.random.Generator) -> Array:
        """Draw rows of each class by the Cholesky factor of its covariance."""
        n = len(y)
        factors = np.linalg.cholesky(theta.covariances)
        noise = rng.standard_normal((n, theta.means.shape[1]))
        X = np.empty_like(noise)
        for k, (mean, L) in enumerate(zip(theta.means, factors, strict=True)):
            X[y == k] = noise[y == k] @ L.T + mean
        return X + theta.frame.origin

    def expected_statistics(self, theta: QDAParameters, total: float) -> Statistics:
        """Return the expected moments of `total` rows: s0 (1, mu, Sigma + mu mu^T)."""
        s0 = total * namespace(theta.log_prior).exp(theta.log_prior)
        s2 = theta.means[:, :, None] * theta.means[:, None, :]
        s2 += theta.covariances  # in place: these are large
        s2 *= s0[:, None, None]
        return Statistics({"s0": s0, "s1": s0[:, None] * theta.means, "s2": s2}, theta.frame)

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

    def log_likelihood(self, S: Statistics, theta: QDAParameters) -> float:
        """Return sum_y s0 (log p(y) - log|2pi Sigma|/2) - tr(Sigma^-1 scatter about mu) / 2."""
        S = S.to_frame(theta.frame)
        s2, W = S["s2"], theta.whiteners
        if isinstance(W, np.ndarray) and W.shape[1] > SMALL:
            traces = wide_traces(s2.__getitem__, W)
        else:
            traces = sum_of((s2 @ W) * W, axis=(1, 2))
        return log_likelihood(S["s0"], S["s1"], traces, theta)

    def inverse_parameters(self, theta: QDAParameters, total: float) -> Statistics:
        """Return the moments whose MAP estimates are theta."""
        s0, s1, settled = self.invert_means(theta, total)
        m1, m2 = self.mean_strength, self.covariance_strength
        C = settled.without_completion(theta.covariances)
        if self.reg_param < 1:
            C = (C - self.reg_param * eye_like(C)[None, ...]) / (1 - self.reg_param)
        C = unshrunk(C, self.shrinkage)
        scatter = C * (s0 + m2)[:, None, None] - m2 * settled.covariance[None, ...]
        if self.prior_form == "exact":
            s2 = scatter - m1 * outer(settled.mean)[None, ...] + (s0 + m1)[:, None, None] * outer(theta.means)
        else:
            s2 = scatter + outer(s1) / s0[:, None, None]
        return Statistics({"s0": s0, "s1": s1, "s2": s2}, theta.frame)

    def to_natural(self, theta: QDAParameters) -> dict[str, Array]:
        """Return eta1 = Sigma^-1 mu, eta2 = -Sigma^-1 / 2, about the origin zero."""
        precision = theta.whiteners @ namespace(theta.means).matrix_transpose(theta.whiteners)
        mu = theta.means + theta.frame.origin[None, :]
        return {
            "eta0": theta.log_prior,
            "eta1": (precision @ mu[:, :, None])[:, :, 0],
            "eta2": -0.5 * precision,
        }

    def natural_gradient(self, dS: Statistics, theta: QDAParameters) -> dict[str, Array]:
        """Return dS0, dS1 - mu dS0, dS2 - (mu mu^T + Sigma) dS0, about the origin zero."""
        dS = dS.to_frame(theta.frame)
        g0, g1 = self.first_gradient(dS, theta)
        g2 = dS["s2"] - (outer(theta.means) + theta.covariances) * dS["s0"][:, None, None]
        shift = g1[:, :, None] * theta.frame.origin[None, None, :]  # from the frame's origin to zero
        return {"eta0": g0, "eta1": g1, "eta2": g2 + shift + namespace(g1).matrix_transpose(shift)}

    def from_natural(
        self, eta: dict[str, Array], theta: QDAParameters, simplex: Any, floor: float
    ) -> QDAParameters:
        """Return Sigma = -eta2^-1 / 2 with floored eigenvalues, and mu = Sigma eta1."""
        C = floor_eigenvalues(-0.5 * namespace(eta["eta2"]).linalg.inv(eta["eta2"]), floor)
        mu = (C @ eta["eta1"][:, :, None])[:, :, 0] - theta.frame.origin[None, :]
        log_prior = simplex(eta["eta0"])
        return replace(theta, log_prior=log_prior, means=mu, known=C)


def log_determinant_shares(C: Array, W: Array) -> Array:
    """Return log C_jj + (log R)_jj for each column, with the correlations R of C; their sum is log|C|.

    W W^T = C^-1, W triangular: by its diagonal log|C| is exact, and what rounding leaves is shared equally.
    """
    scale = np.sqrt(np.diag(C))
    values, axes = np.linalg.eigh(C / np.outer(scale, scale))
    shares = 2 * np.log(scale) + axes**2 @ np.log(np.maximum(values, np.finfo(float).tiny))
    return shares - (shares.sum() + 2 * np.log(np.diag(W)).sum()) / max(1, len(shares))


def log_likelihood(s0: Array, s1: Array, traces: Array, theta: QDAParameters) -> float:
    """Return the log-likelihood of rows with these moments and with tr(W^T s2 W) of the second ones.

    The scatter about mu is s2 - s1 mu^T - mu s1^T + s0 mu mu^T.
    """
    moved = (theta.means[:, None, :] @ theta.whiteners)[:, 0, :]
    first = (s1[:, None, :] @ theta.whiteners)[:, 0, :]
    traces = traces + sum_of((s0[:, None] * moved - 2 * first) * moved, axis=1)
    return float(s0 @ theta.constants - 0.5 * sum_of(traces))
