"""Quadratic discriminant analysis: psi(x) = (1, x, x x^T), a Gaussian for each class."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from riskbayes.models.base import draw_classes
from riskbayes.models.moments import (
    LOG_2PI,
    Centred,
    GaussianModel,
    floor_eigenvalues,
    outer,
    rows_that_count,
    whiten,
)
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

    floor_warning: ClassVar[str | None] = (
        "The rows do not determine the covariance of class {classes}: {most} of its eigenvalues (at most) "
        "were set to covariance_floor. Add a prior (covariance_strength > 0) or reg_param > 0, or drop "
        "constant and collinear columns."
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
            rows = rows_that_count(W[:, k])
            Dk, wk = (D, W[:, k]) if rows is None else (D[rows], W[rows, k])
            np.matmul((Dk * wk[:, None]).T, Dk, out=s2[k])
        return Statistics({"s0": W.sum(axis=0), "s1": W.T @ D, "s2": s2}, Z.frame)

    def second_moments(self, n: int) -> float:
        """Of a class's own."""
        return n * (n + 1) / 2

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

    def log_likelihood(self, S: Statistics, theta: QDAParameters) -> float:
        """sum_y s0 (log p(y) - log|2pi Sigma|/2) - tr(Sigma^-1 scatter about mu) / 2."""
        S = S.to_frame(theta.frame)
        s0, mu = S["s0"], theta.means
        cross = mu[:, :, None] * S["s1"][:, None, :]
        scatter = S["s2"] - cross - np.matrix_transpose(cross) + s0[:, None, None] * outer(mu)
        precision = theta.whiteners @ np.matrix_transpose(theta.whiteners)
        constants = theta.log_prior - theta.half_log_det - 0.5 * mu.shape[1] * LOG_2PI
        return float(s0 @ constants - 0.5 * (precision * scatter).sum())

    def inverse_parameters(self, theta: QDAParameters, total: float) -> Statistics:
        """Moments whose MAP estimates are theta."""
        s0, s1, mu0, bound = self.invert_means(theta, total)
        m1, m2, C, n = self.mean_strength, self.covariance_strength, theta.covariances, theta.means.shape[1]
        C = (C - self.reg_param * np.eye(n)) / (1 - self.reg_param) if self.reg_param < 1 else C
        spread = np.trace(C, axis1=1, axis2=2)[:, None, None] / n
        C = (C - self.shrinkage * spread * np.eye(n)) / (1 - self.shrinkage) if self.shrinkage < 1 else C
        scatter = C * (s0 + m2)[:, None, None] - m2 * bound.covariance
        if self.prior_form == "exact":
            s2 = scatter - m1 * outer(mu0) + (s0 + m1)[:, None, None] * outer(theta.means)
        else:
            s2 = scatter + outer(s1) / s0[:, None, None]
        return Statistics({"s0": s0, "s1": s1, "s2": s2}, theta.frame)

    def to_natural(self, theta: QDAParameters) -> dict[str, Array]:
        """eta1 = Sigma^-1 mu, eta2 = -Sigma^-1 / 2, about the origin zero."""
        precision = theta.whiteners @ np.matrix_transpose(theta.whiteners)
        mu = theta.means + theta.frame.origin
        return {
            "eta0": theta.log_prior,
            "eta1": (precision @ mu[:, :, None])[:, :, 0],
            "eta2": -0.5 * precision,
        }

    def natural_gradient(self, dS: Statistics, theta: QDAParameters) -> dict[str, Array]:
        """dS0, dS1 - mu dS0, dS2 - (mu mu^T + Sigma) dS0, about the origin zero."""
        dS = dS.to_frame(theta.frame)
        g0, g1 = self.first_gradient(dS, theta)
        g2 = dS["s2"] - (outer(theta.means) + theta.covariances) * dS["s0"][:, None, None]
        shift = g1[:, :, None] * theta.frame.origin  # from the frame's origin to zero
        return {"eta0": g0, "eta1": g1, "eta2": g2 + shift + np.matrix_transpose(shift)}

    def from_natural(
        self, eta: dict[str, Array], theta: QDAParameters, simplex: Any, floor: float
    ) -> QDAParameters:
        """Sigma = -eta2^-1 / 2 with floored eigenvalues, mu = Sigma eta1."""
        C = floor_eigenvalues(-0.5 * np.linalg.inv(eta["eta2"]), floor)
        mu = (C @ eta["eta1"][:, :, None])[:, :, 0] - theta.frame.origin
        log_prior = simplex(eta["eta0"])
        return replace(theta, log_prior=log_prior, means=mu, covariances=C)
