"""Gaussian naive Bayes: psi(x) = (1, x, x*x)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from riskbayes.models.base import draw_classes
from riskbayes.models.moments import LOG_2PI, Centred, GaussianModel
from riskbayes.statistics import Array, Statistics


@dataclass(frozen=True)
class GaussianNBParameters:
    """p(y); means relative to the frame's origin; variances; the epsilon that they contain."""

    log_prior: Array
    means: Array
    variances: Array
    epsilon: float
    frame: Any
    floored: Array


@dataclass(frozen=True)
class GaussianNBModel(GaussianModel):
    """Normal features, independent given the class.

    Parameters
    ----------
    var_smoothing : float
        Share of the largest total variance that is added to every variance, as in scikit-learn.
    """

    floor_warning: ClassVar[str | None] = (
        "{most} columns do not vary within class {classes}, and their variances were set to a floor. Set "
        "var_smoothing > 0, add a prior (variance_strength > 0), or drop constant columns."
    )

    # No larger than scikit-learn's epsilon: a larger floor would change its numbers.
    covariance_floor: float = 1e-9
    var_smoothing: float = 1e-9

    def statistics(self, Z: Centred, W: Array) -> Statistics:
        """Masses, sums and sums of squares about the origin."""
        D = Z.values
        return Statistics({"s0": W.sum(axis=0), "s1": W.T @ D, "s2_diagonal": W.T @ np.square(D)}, Z.frame)

    def second_moments(self, n: int) -> float:
        """Of a class's own."""
        return float(n)

    def scatter(self, S: Statistics) -> tuple[Array, Array]:
        """Sums of squares about the overall mean, and about the classes' own means."""
        s0, s1, second = S["s0"], S["s1"], S["s2_diagonal"].sum(axis=0)
        mass = np.where(s0 > 0, s0, 1.0)
        return second - s1.sum(axis=0) ** 2 / S.total, second - (s1**2 / mass[:, None]).sum(axis=0)

    def parameters(self, S: Statistics) -> GaussianNBParameters:
        """mu = (m1 mu0 + s1) / (m1 + s0); var = (m2 var0 + squares) / (m2 + s0) + epsilon."""
        bound = self.bound_to(S)
        mu, kappa, mu0 = self.means(S, bound)
        s0, m1, m2 = S["s0"][:, None], self.mean_strength, self.covariance_strength
        if self.prior_form == "exact":
            squares = S["s2_diagonal"] + m1 * mu0**2 - kappa[:, None] * mu**2
        else:
            squares = S["s2_diagonal"] - S["s1"] ** 2 / np.where(s0 > 0, s0, 1.0)
        # A variance of exactly zero must not come out as the rounding of its two large terms.
        noise = 64 * np.finfo(float).eps * np.abs(S["s2_diagonal"])
        squares = np.where(np.abs(squares) <= noise, 0.0, squares)
        widest = float(bound.variance.max())
        epsilon = self.var_smoothing * widest
        variances = (m2 * bound.covariance + squares) / np.where(s0 + m2 > 0, s0 + m2, 1.0) + epsilon
        # Where epsilon is there it is the least variance; else a share of the column's own.
        floor = epsilon or self.covariance_floor * np.where(bound.variance > 0, bound.variance, 1.0)
        return GaussianNBParameters(
            self.log_class_prior(S),
            mu,
            np.maximum(variances, floor),
            epsilon,
            S.frame,
            (variances < floor).sum(axis=1),
        )

    def log_joint(self, Z: Centred, theta: GaussianNBParameters) -> Array:
        """log p(y) - sum_i (log 2pi var_i + (x_i - mu_i)^2 / var_i) / 2."""
        D = Z.about(theta.frame)
        out, z = np.empty((D.shape[0], theta.means.shape[0])), np.empty_like(D)
        for k, (mean, precision) in enumerate(zip(theta.means, 1.0 / theta.variances, strict=True)):
            np.subtract(D, mean, out=z)
            np.square(z, out=z)
            np.matmul(z, precision, out=out[:, k])
        out *= -0.5
        out += theta.log_prior - 0.5 * (np.log(theta.variances) + LOG_2PI).sum(axis=1)
        return out

    def sample(self, theta: GaussianNBParameters, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """A class, then each feature."""
        y = draw_classes(theta.log_prior, n, rng)
        noise = rng.standard_normal((n, theta.means.shape[1]))
        return noise * np.sqrt(theta.variances)[y] + theta.means[y] + theta.frame.origin, y

    def expected_statistics(self, theta: GaussianNBParameters, total: float) -> Statistics:
        """Moments of `total` rows, without the epsilon that `parameters` adds."""
        s0 = total * np.exp(theta.log_prior)[:, None]
        squares = s0 * (theta.variances - theta.epsilon + theta.means**2)
        return Statistics({"s0": s0[:, 0], "s1": s0 * theta.means, "s2_diagonal": squares}, theta.frame)

    def log_likelihood(self, S: Statistics, theta: GaussianNBParameters) -> float:
        """sum_y s0 (log p(y) - sum_i log 2pi var_i / 2) - sum of squares about mu / var / 2."""
        S = S.to_frame(theta.frame)
        s0, mu = S["s0"], theta.means
        squares = S["s2_diagonal"] - 2 * mu * S["s1"] + s0[:, None] * mu**2
        constants = theta.log_prior - 0.5 * (np.log(theta.variances) + LOG_2PI).sum(axis=1)
        return float(s0 @ constants - 0.5 * (squares / theta.variances).sum())

    def inverse_parameters(self, theta: GaussianNBParameters, total: float) -> Statistics:
        """Moments whose MAP estimates are theta."""
        s0, s1, mu0, bound = self.invert_means(theta, total)
        m1, m2 = self.mean_strength, self.covariance_strength
        squares = (theta.variances - theta.epsilon) * (s0 + m2)[:, None] - m2 * bound.covariance
        if self.prior_form == "exact":
            second = squares - m1 * mu0**2 + (s0 + m1)[:, None] * theta.means**2
        else:
            second = squares + s1**2 / s0[:, None]
        return Statistics({"s0": s0, "s1": s1, "s2_diagonal": second}, theta.frame)

    def to_natural(self, theta: GaussianNBParameters) -> dict[str, Array]:
        """eta1 = mu / var, eta2 = -1 / (2 var), about the origin zero."""
        mu = theta.means + theta.frame.origin
        return {"eta0": theta.log_prior, "eta1": mu / theta.variances, "eta2": -0.5 / theta.variances}

    def natural_gradient(self, dS: Statistics, theta: GaussianNBParameters) -> dict[str, Array]:
        """dS0, dS1 - mu dS0, dS2 - (mu^2 + var) dS0, about the origin zero."""
        dS = dS.to_frame(theta.frame)
        g0, g1 = self.first_gradient(dS, theta)
        g2 = dS["s2_diagonal"] - (theta.means**2 + theta.variances) * dS["s0"][:, None]
        return {"eta0": g0, "eta1": g1, "eta2": g2 + 2 * g1 * theta.frame.origin}

    def from_natural(
        self, eta: dict[str, Array], theta: GaussianNBParameters, simplex: Any, floor: float
    ) -> GaussianNBParameters:
        """var = -1 / (2 eta2), floored; mu = var eta1."""
        with np.errstate(divide="ignore"):
            variances = np.maximum(-0.5 / eta["eta2"], floor)
        mu = variances * eta["eta1"] - theta.frame.origin
        return replace(theta, log_prior=simplex(eta["eta0"]), means=mu, variances=variances)
