"""Linear discriminant analysis: psi(x) = (1, x) for each class, and x x^T for all classes together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from riskbayes.arrays import Array, namespace, outer, squared_norms, sum_of, take_rows, to_widest
from riskbayes.frames import Arrays
from riskbayes.models.base import Sample, log_class_prior
from riskbayes.models.centred import Centred, Origin
from riskbayes.models.conditional import Conditional
from riskbayes.models.correlated import CorrelatedModel, observed_patterns
from riskbayes.models.gaussian import LOG_2PI
from riskbayes.models.gaussian_em import em_start
from riskbayes.models.whitening import whiten
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

    @property
    def covariances(self) -> Array:
        """The covariance as a stack of one."""
        return self.covariance[None, ...]

    @property
    def whiteners(self) -> Array:
        """W as a stack of one."""
        return self.whitener[None, ...]

    def with_covariances(self, C: Array) -> LDAParameters:
        """Return theta with another covariance."""
        return replace(self, covariance=C[0, ...])

    @cached_property
    def form(self) -> tuple[Array, Array]:
        """(B, c) with log p(x, y) = x B + c up to a constant of the row; x is relative to the origin."""
        whitened = self.means @ self.whitener
        return self.whitener @ whitened.T, self.log_prior - 0.5 * sum_of(whitened * whitened, axis=1)

    @cached_property
    def conditional(self) -> Conditional:
        """The Gaussians given some of their coordinates, for rows with missing cells."""
        return Conditional(self.means, self.whiteners, self.log_prior - self.half_log_det)

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
    tied: ClassVar[bool] = True

    shrinkage: float = 0.0  # type: ignore[misc]

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

    def moment_matrices(self, S: Statistics, size: Array) -> Array:
        """Return one matrix for all classes, with v_i = (one-hot class, x_i / size)."""
        s1, s2 = S["s1"] / size, S["s2_tied"] / size[:, None] / size
        return np.block([[np.diag(S["s0"]), s1], [s1.T, s2]])

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
