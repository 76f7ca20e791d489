"""What the Gaussian models share: rows seen from an origin, the prior, the floor."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from riskbayes.models.base import GenerativeModel, invert_class_prior, log_class_prior
from riskbayes.statistics import Array, Origin, Statistics

LOG_2PI = float(np.log(2 * np.pi))


class Centred:
    """Rows of X seen from an origin. The difference is taken a chunk at a time, in float64."""

    def __init__(self, X: Array, frame: Origin):
        self.X, self.frame = X, frame
        self.shape = X.shape

    def __len__(self) -> int:
        return self.X.shape[0]

    def __getitem__(self, rows: slice | Array) -> Centred:
        return Centred(self.X[rows], self.frame)

    @cached_property
    def values(self) -> Array:
        """X - origin."""
        return self.X - self.frame.origin

    def about(self, frame: Origin) -> Array:
        """X - another origin."""
        return self.values if self.frame is frame else self.X - frame.origin


@dataclass(frozen=True)
class Bound:
    """What a fit freezes: each column's total variance, a scale without zeros, the prior's centre.

    The prior's mean is kept relative to `origin`, where it does not lose digits.
    """

    origin: Array
    variance: Array
    scale: Array
    mean: Array
    covariance: Array


@dataclass(frozen=True)
class GaussianModel(GenerativeModel):
    """Hyper-parameters of every Gaussian model; its subclasses differ in the second moments.

    Parameters
    ----------
    mean_strength, covariance_strength : float
        m1 and m2, the equivalent sample sizes of the prior on means and on covariances; 0 is ML.
    prior_mean, prior_covariance : array, optional
        The prior's centre; by default the pooled mean and the pooled within-class covariance.
    diagonal_mix : float
        Share of its own diagonal in the default prior covariance.
    prior_form : {"exact", "paper"}
        "exact" is the mode of the normal / inverse-Wishart posterior; "paper" leaves out what the
        shift of the mean adds to the covariance.
    covariance_floor : float
        Least eigenvalue, in the coordinates where each column has variance 1.
    class_alpha, class_prior
        As in :class:`CategoricalModel`.
    bound : Bound, optional
        Set by `bind`.
    """

    floor_warning: ClassVar[str | None] = (
        "The rows do not determine the covariance of class {classes}: {most} of its eigenvalues (at most) "
        "were set to covariance_floor. Add a prior (covariance_strength > 0) or shrinkage, or drop "
        "constant and collinear columns."
    )

    mean_strength: float = 0.0
    covariance_strength: float = 0.0
    prior_mean: Array | None = None
    prior_covariance: Array | None = None
    diagonal_mix: float = 0.0
    prior_form: str = "exact"
    covariance_floor: float = 1e-4
    class_alpha: float = 0.0
    class_prior: Array | None = None
    bound: Bound | None = None

    def prepare(self, X: Array, sample_weight: Array | None = None) -> Centred:
        """Rows seen from their weighted mean; X itself is not copied."""
        w = (
            np.full(X.shape[0], 1.0 / X.shape[0])
            if sample_weight is None
            else sample_weight / sample_weight.sum()
        )
        origin = w.astype(X.dtype, copy=False) @ X  # an origin need not be exact
        return Centred(X, Origin(origin.astype(np.float64, copy=False)))

    def rows(self, X: Array, theta: Any) -> Centred:
        """Rows seen from where the parameters are."""
        return Centred(X, theta.frame)

    def scatter(self, S: Statistics) -> tuple[Array, Array]:
        """Total and within-class scatter about the means, in the shape of this model's covariance."""
        raise NotImplementedError

    def bind(self, S: Statistics) -> Self:
        """Freeze the scale of the columns and the pooled prior."""
        total = max(S.total, np.finfo(float).tiny)
        total_scatter, within = self.scatter(S)
        variance = diagonal(total_scatter) / total
        # A column that varies by no more than rounding is constant.
        constant = variance <= (8 * np.finfo(float).eps * np.abs(S.origin)) ** 2
        variance = np.where(constant, 0.0, variance)
        scale = np.sqrt(np.where(constant, 1.0, variance))
        pooled = within / total
        if self.diagonal_mix > 0:
            pooled = (1 - self.diagonal_mix) * pooled + self.diagonal_mix * keep_diagonal(pooled)
        covariance = (
            pooled if self.prior_covariance is None else np.asarray(self.prior_covariance, dtype=np.float64)
        )
        mean = (
            S["s1"].sum(axis=0) / total if self.prior_mean is None else np.asarray(self.prior_mean) - S.origin
        )
        return replace(self, bound=Bound(S.origin, variance, scale, mean, covariance))

    def means(self, S: Statistics, bound: Bound) -> tuple[Array, Array, Array]:
        """MAP means relative to S's origin, the masses they carry, and the prior's mean."""
        mu0 = bound.mean + (bound.origin - S.origin)
        kappa = S["s0"] + self.mean_strength
        mass = np.where(kappa > 0, kappa, 1.0)  # a class still without rows, in partial_fit
        return (S["s1"] + self.mean_strength * mu0) / mass[:, None], kappa, mu0

    def is_legal(self, S: Statistics) -> bool:
        """Every class keeps a mass, after the prior; covariances are floored."""
        if not S.is_finite():
            return False
        least = float(S["s0"].min())
        by_prior = min(self.mean_strength, self.covariance_strength) if self.prior_form == "exact" else 0.0
        by_class = np.inf if self.class_prior is not None else self.class_alpha
        return least + min(by_prior, by_class) > 0

    def second_moments(self, n: int) -> float:
        """How many second moments a class of n features has of its own."""
        raise NotImplementedError

    def degrees_of_freedom(self, S: Statistics) -> float:
        """By class, 1 + n means + second moments, each by the data's share in its estimate."""
        s0, n = np.maximum(S["s0"], 0.0), S["s1"].shape[1]
        with np.errstate(invalid="ignore"):
            mean, second = (
                np.nan_to_num(s0 / (s0 + m)) for m in (self.mean_strength, self.covariance_strength)
            )
        return float((1 + n * mean + self.second_moments(n) * second).sum())

    def log_class_prior(self, S: Statistics) -> Array:
        """log p(y)."""
        return log_class_prior(S["s0"], self.class_alpha, self.class_prior)

    def invert_means(self, theta: Any, total: float) -> tuple[Array, Array, Array, Bound]:
        """s0, s1, the prior's mean and what is bound, for `inverse_parameters`."""
        bound = self.bound
        if bound is None:
            raise ValueError("inverse_parameters needs a bound model: call bind(S) first.")
        alpha = self.class_alpha if self.class_prior is None else 0.0
        s0 = invert_class_prior(theta.log_prior, total, alpha)
        mu0 = bound.mean + (bound.origin - theta.frame.origin)
        s1 = theta.means * (s0 + self.mean_strength)[:, None] - self.mean_strength * mu0
        return s0, s1, mu0, bound

    def first_gradient(self, dS: Statistics, theta: Any) -> tuple[Array, Array]:
        """Gradients in eta0 and eta1: dS0 and dS1 - mu dS0, the same about every origin."""
        s0 = dS["s0"]
        gradient0 = s0 if self.class_prior is None else np.zeros_like(s0)
        return gradient0, dS["s1"] - theta.means * s0[:, None]

    def bound_to(self, S: Statistics) -> Bound:
        """What `bind` froze, or what S itself says."""
        return self.bound or self.bind(S).bound  # type: ignore[return-value]


def diagonal(C: Array) -> Array:
    """The diagonal of covariances that may be stored as diagonals."""
    return C if C.ndim == 1 else np.diagonal(C)


def keep_diagonal(C: Array) -> Array:
    """C without what lies off its diagonal."""
    return C if C.ndim == 1 else np.diag(np.diagonal(C))


def outer(v: Array) -> Array:
    """v v^T, for each row of v."""
    return v[..., :, None] * v[..., None, :]


def whiten(C: Array, scale: Array, floor: float) -> tuple[Array, Array, Array, Array]:
    """(W, log|C|/2, C, floored) with W W^T = C^-1, for a stack of covariances.

    Eigenvalues are floored where the columns have variance 1, and are computed only where need be.
    """
    correlation = C / outer(scale)
    floored = np.zeros(C.shape[0], dtype=np.int64)
    factors = factors_above(correlation, floor)
    if factors is None:
        eigenvalues, V = np.linalg.eigh(correlation)
        floored = (eigenvalues < floor).sum(axis=-1)
        mended = (floored > 0)[:, None, None]
        lifted = (V * np.maximum(eigenvalues, floor)[:, None, :]) @ np.matrix_transpose(V)
        correlation = np.where(mended, lifted, correlation)
        C = np.where(mended, correlation * outer(scale), C)
        L = np.linalg.cholesky(correlation)
        factors = L, np.linalg.inv(L)
    L, inverse = factors
    half_log_det = np.log(np.diagonal(L, axis1=-2, axis2=-1)).sum(axis=-1) + np.log(scale).sum()
    return np.matrix_transpose(inverse) / scale[:, None], half_log_det, C, floored


def factors_above(correlation: Array, floor: float) -> tuple[Array, Array] | None:
    """Cholesky factors and their inverses, if every eigenvalue is at least `floor`; else None."""
    try:
        L = np.linalg.cholesky(correlation)
        inverse = np.linalg.inv(L)
        # tr C^-1 = |L^-1|^2 is at least 1 / the least eigenvalue: where it is small, that proves it.
        if (np.square(inverse).sum(axis=(-2, -1)) * floor > 1).any():
            np.linalg.cholesky(correlation - floor * np.eye(correlation.shape[-1]))
    except np.linalg.LinAlgError:
        return None
    return L, inverse


def rows_that_count(weights: Array) -> Array | None:
    """Indices of the rows that count, or None when most of them do."""
    size = np.abs(weights)
    rows = np.flatnonzero(size > 1e-12 * size.max(initial=0.0))
    return rows if rows.size <= 0.75 * weights.size else None


def floor_eigenvalues(C: Array, floor: float) -> Array:
    """The paper's projection: symmetric, with no eigenvalue below the floor."""
    eigenvalues, V = np.linalg.eigh((C + np.matrix_transpose(C)) / 2)
    return (V * np.maximum(eigenvalues, floor)[..., None, :]) @ np.matrix_transpose(V)
