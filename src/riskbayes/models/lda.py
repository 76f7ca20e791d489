"""Linear discriminant analysis: psi(x) = (1, x) by class, and x x^T, which is of no class."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from riskbayes.models.base import draw_classes
from riskbayes.models.moments import LOG_2PI, Centred, GaussianModel, floor_eigenvalues, outer, whiten
from riskbayes.statistics import Array, Statistics


@dataclass(frozen=True)
class LDAParameters:
    """p(y); means relative to the frame's origin; W W^T = Sigma^-1; log|Sigma|/2."""

    log_prior: Array
    means: Array
    covariance: Array
    whitener: Array
    half_log_det: float
    frame: Any
    floored: Array


@dataclass(frozen=True)
class LDAModel(GaussianModel):
    """A mean for each class and one covariance for all.

    Parameters
    ----------
    shrinkage : float
        Sigma <- (1 - shrinkage) Sigma + shrinkage tr(Sigma)/n I, as in scikit-learn.
    fixed_covariance : array of shape (n, n), optional
        A covariance that is no function of S, for the closed form.
    """

    shrinkage: float = 0.0
    fixed_covariance: Array | None = None

    def statistics(self, Z: Centred, W: Array) -> Statistics:
        """Class moments of order 0 and 1, and the second moment weighted by sum_k W[:, k].

        The rows of a residual sum to zero, so that product falls away in calibration.
        """
        D = Z.values
        n = D.shape[1]
        w = W.sum(axis=1)
        rows = np.flatnonzero(np.abs(w) > 1e-12 * np.abs(W).sum(axis=1))
        if rows.size == 0:
            tied = np.zeros((n, n))
        elif rows.size == w.size:
            tied = (D * w[:, None]).T @ D
        else:
            tied = (D[rows] * w[rows, None]).T @ D[rows]
        return Statistics({"s0": W.sum(axis=0), "s1": W.T @ D, "s2_tied": tied}, Z.frame)

    def second_moments(self, n: int) -> float:
        """Of a class's own."""
        return 0.0

    def scatter(self, S: Statistics) -> tuple[Array, Array]:
        """Scatter about the overall mean, and about the classes' own means."""
        s0, s1, second = S["s0"], S["s1"], S["s2_tied"]
        first = s1.sum(axis=0)
        mass = np.where(s0 > 0, s0, 1.0)
        return second - outer(first) / S.total, second - (s1 / mass[:, None]).T @ s1

    def parameters(self, S: Statistics) -> LDAParameters:
        """mu = (m1 mu0 + s1) / (m1 + s0); Sigma = (m2 Sigma0 + scatter) / (m2 + total)."""
        bound = self.bound_to(S)
        mu, kappa, mu0 = self.means(S, bound)
        m1, m2 = self.mean_strength, self.covariance_strength
        if self.fixed_covariance is not None:
            C = self.fixed_covariance
        elif self.prior_form == "exact":
            shift = mu.shape[0] * m1 * outer(mu0) - (kappa[:, None] * mu).T @ mu
            C = (m2 * bound.covariance + S["s2_tied"] + shift) / (m2 + S.total)
        else:
            C = (m2 * bound.covariance + self.scatter(S)[1]) / (m2 + S.total)
        if self.shrinkage > 0:
            C = (1 - self.shrinkage) * C + self.shrinkage * np.trace(C) / len(C) * np.eye(len(C))
        W, half_log_det, Cs, floored = whiten(C[None], bound.scale, self.covariance_floor)
        everywhere = np.repeat(floored, mu.shape[0])
        return LDAParameters(
            self.log_class_prior(S),
            mu,
            Cs[0],
            W[0],
            float(half_log_det[0]),
            S.frame,
            everywhere,
        )

    def scores(self, Z: Centred, theta: LDAParameters) -> Array:
        """x^T Sigma^-1 mu - mu^T Sigma^-1 mu / 2 + log p(y): linear in x."""
        whitened = theta.means @ theta.whitener
        coef = whitened @ theta.whitener.T
        return Z.about(theta.frame) @ coef.T + (theta.log_prior - 0.5 * (whitened**2).sum(axis=1))

    def log_joint(self, Z: Centred, theta: LDAParameters) -> Array:
        """The linear scores and what all classes share: -n/2 log 2pi - log|Sigma|/2 - |W^T x|^2/2."""
        z = Z.about(theta.frame) @ theta.whitener
        shared = -0.5 * (np.einsum("ij,ij->i", z, z) + z.shape[1] * LOG_2PI) - theta.half_log_det
        return self.scores(Z, theta) + shared[:, None]

    def sample(self, theta: LDAParameters, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """A class, then a Gaussian draw about its mean."""
        y = draw_classes(theta.log_prior, n, rng)
        noise = rng.standard_normal((n, theta.means.shape[1]))
        X = noise @ np.linalg.cholesky(theta.covariance).T + theta.means[y]
        return X + theta.frame.origin, y

    def expected_statistics(self, theta: LDAParameters, total: float) -> Statistics:
        """Moments of `total` rows."""
        s0 = total * np.exp(theta.log_prior)
        s1 = s0[:, None] * theta.means
        tied = total * theta.covariance + theta.means.T @ s1
        return Statistics({"s0": s0, "s1": s1, "s2_tied": tied}, theta.frame)

    def log_likelihood(self, S: Statistics, theta: LDAParameters) -> float:
        """sum_y s0 (log p(y) - log|2pi Sigma|/2) - tr(Sigma^-1 scatter about the means) / 2."""
        S = S.to_frame(theta.frame)
        s0, mu = S["s0"], theta.means
        cross = mu.T @ S["s1"]
        scatter = S["s2_tied"] - cross - cross.T + (s0[:, None] * mu).T @ mu
        constants = theta.log_prior - theta.half_log_det - 0.5 * mu.shape[1] * LOG_2PI
        return float(s0 @ constants - 0.5 * (theta.whitener @ theta.whitener.T * scatter).sum())

    def inverse_parameters(self, theta: LDAParameters, total: float) -> Statistics:
        """Moments whose MAP estimates are theta."""
        s0, s1, mu0, bound = self.invert_means(theta, total)
        m1, m2, C, n = self.mean_strength, self.covariance_strength, theta.covariance, theta.means.shape[1]
        if self.shrinkage < 1:
            C = (C - self.shrinkage * np.trace(C) / n * np.eye(n)) / (1 - self.shrinkage)
        scatter = C * (m2 + total) - m2 * bound.covariance
        if self.prior_form == "exact":
            kappa = (s0 + m1)[:, None]
            tied = scatter - len(s0) * m1 * outer(mu0) + (kappa * theta.means).T @ theta.means
        else:
            tied = scatter + (s1 / s0[:, None]).T @ s1
        return Statistics({"s0": s0, "s1": s1, "s2_tied": tied}, theta.frame)

    def to_natural(self, theta: LDAParameters) -> dict[str, Array]:
        """eta1 = Sigma^-1 mu, eta2 = -Sigma^-1 / 2, about the origin zero."""
        precision = theta.whitener @ theta.whitener.T
        mu = theta.means + theta.frame.origin
        return {"eta0": theta.log_prior, "eta1": mu @ precision, "eta2": -0.5 * precision}

    def natural_gradient(self, dS: Statistics, theta: LDAParameters) -> dict[str, Array]:
        """dS0, dS1 - mu dS0, and the sum over classes of dS2 - (mu mu^T + Sigma) dS0."""
        dS = dS.to_frame(theta.frame)
        s0 = dS["s0"]
        g0, g1 = self.first_gradient(dS, theta)
        g2 = dS["s2_tied"] - (s0[:, None] * theta.means).T @ theta.means - theta.covariance * s0.sum()
        shift = np.outer(g1.sum(axis=0), theta.frame.origin)  # from the frame's origin to zero
        return {"eta0": g0, "eta1": g1, "eta2": g2 + shift + shift.T}

    def from_natural(
        self, eta: dict[str, Array], theta: LDAParameters, simplex: Any, floor: float
    ) -> LDAParameters:
        """Sigma = -eta2^-1 / 2 with floored eigenvalues, mu = Sigma eta1."""
        C = floor_eigenvalues(-0.5 * np.linalg.inv(eta["eta2"]), floor)
        mu = eta["eta1"] @ C - theta.frame.origin
        return replace(theta, log_prior=simplex(eta["eta0"]), means=mu, covariance=C)
