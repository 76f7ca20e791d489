"""Linear discriminant analysis: psi(x) = (1, x) by class, and x x^T, which is of no class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from riskbayes.models.base import draw_classes
from riskbayes.models.moments import LOG_2PI, Centred, GaussianModel, outer, whiten
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
