"""Quadratic discriminant analysis: psi(x) = (1, x, x x^T), a Gaussian for each class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from riskbayes.models.base import draw_classes
from riskbayes.models.moments import LOG_2PI, Centred, GaussianModel, outer, tiny_rows, whiten
from riskbayes.statistics import Array, Statistics


@dataclass(frozen=True)
class QDAParameters:
    """p(y); means relative to the frame's origin; W_y W_y^T = Sigma_y^-1; log|Sigma_y|/2."""

    log_prior: Array
    means: Array
    covariances: Array
    whiteners: Array
    half_log_det: Array
    frame: Any
    floored: Array


@dataclass(frozen=True)
class QDAModel(GaussianModel):
    """A mean and a full covariance for each class.

    Parameters
    ----------
    reg_param : float
        Sigma <- (1 - reg_param) Sigma + reg_param I, as in scikit-learn.
    shrinkage : float
        Sigma <- (1 - shrinkage) Sigma + shrinkage tr(Sigma)/n I, as in scikit-learn.
    fixed_covariance : array of shape (n_classes, n, n), optional
        Covariances that are no function of S, for the closed form.
    """

    floor_advice: ClassVar[str | None] = (
        "Add a prior (covariance_strength > 0) or reg_param > 0, or drop constant and collinear columns."
    )

    reg_param: float = 0.0
    shrinkage: float = 0.0
    fixed_covariance: Array | None = None

    def statistics(self, Z: Centred, W: Array) -> Statistics:
        """Masses, first and second moments about the origin; rows of no weight are left out."""
        D = Z.values
        n, r = D.shape[1], W.shape[1]
        s2 = np.empty((r, n, n))
        for k in range(r):
            rows = tiny_rows(W[:, k])
            Dk, wk = (D, W[:, k]) if rows is None else (D[rows], W[rows, k])
            np.matmul((Dk * wk[:, None]).T, Dk, out=s2[k])
        return Statistics({"s0": W.sum(axis=0), "s1": W.T @ D, "s2": s2}, Z.frame)

    def scatter(self, S: Statistics) -> tuple[Array, Array]:
        """Scatter about the overall mean, and about the classes' own means."""
        s0, s1, second = S["s0"], S["s1"], S["s2"].sum(axis=0)
        first = s1.sum(axis=0)
        mass = np.where(s0 > 0, s0, 1.0)
        return second - outer(first) / S.total, second - (s1 / mass[:, None]).T @ s1

    def parameters(self, S: Statistics) -> QDAParameters:
        """mu = (m1 mu0 + s1) / (m1 + s0); Sigma = (m2 Sigma0 + scatter) / (m2 + s0)."""
        bound = self.bound_to(S)
        mu, kappa, mu0 = self.means(S, bound)
        s0, m1, m2 = S["s0"], self.mean_strength, self.covariance_strength
        if self.prior_form == "exact":
            scatter = S["s2"] + m1 * outer(mu0) - kappa[:, None, None] * outer(mu)
        else:
            own = S["s1"] / np.where(s0 > 0, s0, 1.0)[:, None]
            scatter = S["s2"] - s0[:, None, None] * outer(own)
        mass = np.where(s0 + m2 > 0, s0 + m2, 1.0)[:, None, None]
        C = (
            (m2 * bound.covariance + scatter) / mass
            if self.fixed_covariance is None
            else self.fixed_covariance
        )
        n = C.shape[-1]
        if self.shrinkage > 0:
            spread = np.trace(C, axis1=1, axis2=2)[:, None, None] / n
            C = (1 - self.shrinkage) * C + self.shrinkage * spread * np.eye(n)
        if self.reg_param > 0:
            C = (1 - self.reg_param) * C + self.reg_param * np.eye(n)
        whiteners, half_log_det, C, floored = whiten(C, bound.scale, self.covariance_floor)
        return QDAParameters(
            self.log_class_prior(S),
            mu,
            C,
            whiteners,
            half_log_det,
            S.frame,
            floored,
        )

    def log_joint(self, Z: Centred, theta: QDAParameters) -> Array:
        """log p(y) - n/2 log 2pi - log|Sigma|/2 - |W^T (x - mu)|^2 / 2."""
        D = Z.about(theta.frame)
        m, n = D.shape
        r = theta.means.shape[0]
        out, z = np.empty((m, r)), np.empty((m, n))
        for k in range(r):
            np.matmul(D, theta.whiteners[k], out=z)
            z -= theta.means[k] @ theta.whiteners[k]
            np.einsum("ij,ij->i", z, z, out=out[:, k])
        out *= -0.5
        out += theta.log_prior - theta.half_log_det - 0.5 * n * LOG_2PI
        return out

    def sample(self, theta: QDAParameters, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """A class, then a Gaussian draw through the Cholesky factor of its covariance."""
        y = draw_classes(theta.log_prior, n, rng)
        factors = np.linalg.cholesky(theta.covariances)
        noise = rng.standard_normal((n, theta.means.shape[1]))
        X = np.empty_like(noise)
        for k, (mean, L) in enumerate(zip(theta.means, factors, strict=True)):
            X[y == k] = noise[y == k] @ L.T + mean
        return X + theta.frame.origin, y

    def expected_statistics(self, theta: QDAParameters, total: float) -> Statistics:
        """Moments of `total` rows: s0 (1, mu, Sigma + mu mu^T)."""
        s0 = total * np.exp(theta.log_prior)
        s2 = s0[:, None, None] * (theta.covariances + outer(theta.means))
        return Statistics({"s0": s0, "s1": s0[:, None] * theta.means, "s2": s2}, theta.frame)
