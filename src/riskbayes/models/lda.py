"""Linear discriminant analysis: psi(x) = (1, x) for each class, and x x^T for all classes together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from riskbayes.arrays import Array, namespace, outer, squared_norms, sum_of, take_rows, to_widest
from riskbayes.frames import Arrays
from riskbayes.models.base import Described, Sample, log_class_prior
from riskbayes.models.centred import Centred, Origin
from riskbayes.models.conditional import Conditional
from riskbayes.models.correlated import CorrelatedModel, shrunk, unshrunk
from riskbayes.models.gaussian import LOG_2PI, described_moments, observed_patterns
from riskbayes.models.gaussian_em import em_start
from riskbayes.models.settled import TINY, Settled, complete_undetermined, noise_of
from riskbayes.models.whitening import floor_eigenvalues, whiten
from riskbayes.scanners import Scanner
from riskbayes.statistics import Statistics


class TiedMoments(Origin):
    """Moments about an origin, with `s2_tied`, the second moments of all classes together."""

    def recentred(self, arrays: Arrays, d: Array) -> Arrays:
        """Return s2_tied of rows moved by d: (x + d)(x + d)^T = x x^T + x d^T + d x^T + d d^T, summed."""
        cross = sum_of(arrays["s1"], axis=0)[:, None] * d[None, :]
        return {"s2_tied": arrays["s2_tied"] + cross + cross.T + sum_of(arrays["s0"]) * outer(d)}


@dataclass(frozen=True)
class LDAParameters:
    """p(y); means relative to the frame's origin; W W^T = Sigma^-1; log|Sigma|/2."""

    log_prior: Array
    means: Array
    covariance: Array
    whitener: Array
    half_log_det: Array
    frame: Any
    floored: Array

    @cached_property
    def form(self) -> tuple[Array, Array]:
        """(B, c) with log p(x, y) = x B + c up to a constant of the row; x is relative to the origin."""
        whitened = self.means @ self.whitener
        return self.whitener @ whitened.T, self.log_prior - 0.5 * sum_of(whitened * whitened, axis=1)

    @cached_property
    def conditional(self) -> Conditional:
        """The Gaussians given some of their coordinates, for rows with missing cells."""
        return Conditional(self.means, self.whitener[None, ...], self.log_prior - self.half_log_det)

    @cached_property
    def raw_form(self) -> tuple[Array, Array] | None:
        """The same for rows that are not centred, which saves a copy; None where that would lose digits."""
        (B, c), origin = self.form, self.frame.origin
        if not isinstance(B, np.ndarray):  # subtracting the origin is faster than a wait for the device
            return None
        lost = np.finfo(B.dtype).eps * float((np.abs(origin) @ np.abs(B)).max())
        return (B, c - origin @ B) if lost < 1e-11 else None


@dataclass(frozen=True)
class LDAModel(CorrelatedModel):
    """A mean for each class and one covariance for all.

    Parameters
    ----------
    shrinkage : float
        Sigma <- (1 - shrinkage) Sigma + shrinkage tr(Sigma)/n I, as in scikit-learn.
    """

    frame_kind: ClassVar[type[Origin]] = TiedMoments
    second: ClassVar[str] = "s2_tied"

    shrinkage: float = 0.0

    def statistics(self, Z: Centred, W: Array) -> Statistics:
        """Return moments of order 0 and 1 of the classes, and the second moment weighted by sum_k W[:, k].

        Each row of a residual sums to zero, so that calibration does not need this product.
        """
        if Z.holes is not None:
            return self.expected_under_start(Z, W)
        xp, D, V = namespace(W), Z.exact, to_widest(W)
        w, size = sum_of(V, axis=1), sum_of(xp.abs(V), axis=1)
        number = xp.finfo(W.dtype)  # a residual has the dtype of the rows
        least = 8 * V.shape[1] * (float(number.eps) * size + float(number.smallest_normal))
        rows = xp.nonzero(xp.abs(w) > least)[0]  # those whose sum is more than rounding
        if rows.shape[0] == w.shape[0]:
            tied = (D * w[:, None]).T @ D
        else:
            Dw = take_rows(D, rows)
            tied = (Dw * take_rows(w, rows)[:, None]).T @ Dw
        return Statistics({"s0": sum_of(V, axis=0), "s1": V.T @ D, "s2_tied": tied}, Z.frame)

    def learn_missing(self, sample: Sample, frame: Origin) -> Origin:
        """Return the frame with the parameters that EM finds."""
        return em_start(self, LDAModel, sample, frame)

    def from_moments(self, s0: Array, means: Array, C: Array, frame: Origin) -> Statistics:
        """Return the statistics of rows with these masses and means, and with covariance C."""
        s1 = s0[:, None] * means
        return Statistics({"s0": s0, "s1": s1, "s2_tied": s0.sum() * C + means.T @ s1}, frame)

    def scatter(self, S: Statistics) -> tuple[float, Array, Array]:
        """Return the weight, the scatter of columns about the overall mean, and that about the classes'."""
        s0, s1, second, xp = S["s0"], S["s1"], S["s2_tied"], namespace(S["s0"])
        first, mass = sum_of(s1, axis=0), xp.where(s0 > 0, s0, 1.0)
        total = max(S.total, TINY)
        return total, xp.linalg.diagonal(second) - first * first / total, second - (s1 / mass[:, None]).T @ s1

    def moment_matrices(self, S: Statistics, size: Array) -> Array:
        """Return one matrix for all classes, with v_i = (one-hot class, x_i / size)."""
        s1, s2 = S["s1"] / size, S["s2_tied"] / size[:, None] / size
        return np.block([[np.diag(S["s0"]), s1], [s1.T, s2]])

    def covariances(self, S: Statistics, settled: Settled) -> Array:
        """Return Sigma = (m2 Sigma0 + scatter) / (m2 + total), shrunk as in scikit-learn; a stack of one."""
        mu, kappa = self.means(S, settled)
        m1, m2 = self.mean_strength, self.covariance_strength
        if S.frame.given is not None:
            p = S["s0"] / S.total if self.class_prior is None else self.class_prior
            C = np.tensordot(p, S.frame.given, axes=1)
        elif self.prior_form == "exact":
            scatter = S["s2_tied"] - (kappa[:, None] * mu).T @ mu
            scatter = scatter + mu.shape[0] * m1 * outer(settled.mean) if m1 else scatter
            C = (m2 * settled.covariance + scatter) / (m2 + S.total)
        else:
            C = (m2 * settled.covariance + self.scatter(S)[2]) / (m2 + S.total)
        if self.shrinkage > 0:
            C = shrunk(C, self.shrinkage)
        return C[None, ...]

    def completion(
        self, S: Statistics, settled: Settled, C: Array, pooled: Array
    ) -> tuple[Array | None, Array]:
        """Return a small share of the columns' variances in the directions in which no class varies."""
        noise = noise_of(namespace(C).linalg.diagonal(S["s2_tied"]) / S.total, S.frame, settled)
        return complete_undetermined(C, noise[None, :], None, None, settled.scale)

    def parameters(self, S: Statistics) -> LDAParameters:
        """Return mu = (m1 mu0 + s1) / (m1 + s0), and the floored covariance with its whitener."""
        settled = S.frame.settled or self.settled_by(S)
        mu = self.means(S, settled)[0]
        C = settled.with_completion(self.covariances(S, settled))
        W, half_log_det, C, floored = whiten(C, settled.reference, self.covariance_floor)
        everywhere = namespace(mu).broadcast_to(floored + settled.missing, (mu.shape[0],))
        return LDAParameters(
            log_class_prior(S["s0"], self.class_alpha, self.class_prior),
            mu,
            C[0, ...],
            W[0, ...],
            half_log_det,
            S.frame,
            everywhere,
        )

    def scanner(self, Z: Centred) -> Scanner:
        """Return a scanner whose scores are one product, without a copy of the rows."""
        if Z.holes is not None:
            return super().scanner(Z)
        return Scanner(self, Z, score_cells=4, releases_lock=True)

    def scores(self, Z: Centred, theta: LDAParameters) -> Array:
        """Return x^T Sigma^-1 mu - mu^T Sigma^-1 mu / 2 + log p(y), which is linear in x."""
        if Z.holes is not None:
            return self.log_joint(Z, theta)
        B, c, X = (*theta.form, Z.values) if theta.raw_form is None else (*theta.raw_form, Z.X)
        # For two classes one product, the log odds, is enough, unless a class has no rows (log 0).
        if c.shape[0] == 2 and isinstance(X, np.ndarray) and np.isfinite(c).all():
            out = np.zeros((2, X.shape[0]), dtype=B.dtype)
            np.matmul(X, B[:, 1] - B[:, 0], out=out[1])
            out[1] += c[1] - c[0]
            return out.T
        return X @ B + c[None, :]

    def log_joint(self, Z: Centred, theta: LDAParameters) -> Array:
        """Return the scores plus -n/2 log 2pi - log|Sigma|/2 - |W^T x|^2/2, which all classes share."""
        if Z.holes is not None:
            return self.observed_log_joint(Z, theta)
        z = Z.values @ theta.whitener
        shared = -0.5 * (squared_norms(z) + z.shape[1] * LOG_2PI) - theta.half_log_det
        B, c = theta.form
        return Z.values @ B + (c[None, :] + shared[:, None])

    def contributions(self, Z: Centred, theta: LDAParameters) -> Array:
        """Return (x_j - mu_kj / 2) (Sigma^-1 mu_k)_j, about the mean of the classes' means.

        The scores are linear in x, so that each column is given its own term, and half of what its mean has
        in the constant mu^T Sigma^-1 mu / 2. For two classes the difference is (x_j - (mu_1j + mu_0j) / 2)
        times the coefficient of the column: zero half-way between the two means. Missing cells are
        marginalised: Sigma is that of the observed columns.
        """
        centre = theta.means.mean(axis=0)
        D, means = Z.exact - centre, theta.means - centre
        found = np.zeros((*D.shape, len(means)))
        for seen, rows in observed_patterns(Z):
            mu = means[:, seen].T
            slopes = np.linalg.solve(theta.covariance[np.ix_(seen, seen)], mu)
            found[np.ix_(rows, seen)] = (D[np.ix_(rows, seen)][:, :, None] - mu / 2) * slopes
        return found

    def describe(self, theta: LDAParameters) -> Iterator[Described]:
        """Yield the means, and the standard deviations, which the classes share."""
        shared = np.broadcast_to(np.sqrt(np.diag(theta.covariance)), theta.means.shape)
        yield from described_moments(theta.means + theta.frame.origin, shared)

    def sample_rows(self, theta: LDAParameters, y: Array, rng: np.random.Generator) -> Array:
        """Draw a Gaussian row about the mean of each class."""
        n = len(y)
        noise = rng.standard_normal((n, theta.means.shape[1]))
        X = noise @ np.linalg.cholesky(theta.covariance).T + theta.means[y]
        return X + theta.frame.origin

    def expected_statistics(self, theta: LDAParameters, total: float) -> Statistics:
        """Return the expected moments of `total` rows."""
        s0 = total * namespace(theta.log_prior).exp(theta.log_prior)
        s1 = s0[:, None] * theta.means
        tied = total * theta.covariance + theta.means.T @ s1
        return Statistics({"s0": s0, "s1": s1, "s2_tied": tied}, theta.frame)

    def log_likelihood(self, S: Statistics, theta: LDAParameters) -> float:
        """Return sum_y s0 (log p(y) - log|2pi Sigma|/2) - tr(Sigma^-1 scatter about the means) / 2."""
        S = S.to_frame(theta.frame)
        s0, mu = S["s0"], theta.means
        cross = mu.T @ S["s1"]
        scatter = S["s2_tied"] - cross - cross.T + (s0[:, None] * mu).T @ mu
        constants = theta.log_prior - theta.half_log_det - 0.5 * mu.shape[1] * LOG_2PI
        whitened = scatter @ theta.whitener
        return float(s0 @ constants - 0.5 * sum_of(theta.whitener * whitened))

    def inverse_parameters(self, theta: LDAParameters, total: float) -> Statistics:
        """Return the moments whose MAP estimates are theta."""
        s0, s1, settled = self.invert_means(theta, total)
        m1, m2 = self.mean_strength, self.covariance_strength
        C = settled.without_completion(theta.covariance[None, ...])[0, ...]
        C = unshrunk(C, self.shrinkage)
        scatter = C * (m2 + total) - m2 * settled.covariance
        if self.prior_form == "exact":
            kappa = (s0 + m1)[:, None]
            tied = scatter - s0.shape[0] * m1 * outer(settled.mean) + (kappa * theta.means).T @ theta.means
        else:
            tied = scatter + (s1 / s0[:, None]).T @ s1
        return Statistics({"s0": s0, "s1": s1, "s2_tied": tied}, theta.frame)

    def to_natural(self, theta: LDAParameters) -> dict[str, Array]:
        """Return eta1 = Sigma^-1 mu, eta2 = -Sigma^-1 / 2, about the origin zero."""
        precision = theta.whitener @ theta.whitener.T
        mu = theta.means + theta.frame.origin[None, :]
        return {"eta0": theta.log_prior, "eta1": mu @ precision, "eta2": -0.5 * precision}

    def natural_gradient(self, dS: Statistics, theta: LDAParameters) -> dict[str, Array]:
        """Return dS0, dS1 - mu dS0, and the sum over classes of dS2 - (mu mu^T + Sigma) dS0."""
        dS = dS.to_frame(theta.frame)
        s0 = dS["s0"]
        g0, g1 = self.first_gradient(dS, theta)
        g2 = dS["s2_tied"] - (s0[:, None] * theta.means).T @ theta.means - theta.covariance * sum_of(s0)
        shift = sum_of(g1, axis=0)[:, None] * theta.frame.origin[None, :]  # from the frame's origin to zero
        return {"eta0": g0, "eta1": g1, "eta2": g2 + shift + shift.T}

    def from_natural(
        self, eta: dict[str, Array], theta: LDAParameters, simplex: Any, floor: float
    ) -> LDAParameters:
        """Return Sigma = -eta2^-1 / 2 with floored eigenvalues, and mu = Sigma eta1."""
        C = floor_eigenvalues(-0.5 * namespace(eta["eta2"]).linalg.inv(eta["eta2"]), floor)
        mu = eta["eta1"] @ C - theta.frame.origin[None, :]
        return replace(theta, log_prior=simplex(eta["eta0"]), means=mu, covariance=C)
