"""Gaussian naive Bayes: psi(x) = (1, x, x*x)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from riskbayes.arrays import (
    Array,
    eps_of,
    known_all_false,
    max_of,
    namespace,
    positive,
    sum_of,
    take,
    to_widest,
)
from riskbayes.frames import Arrays, Frame, same_values
from riskbayes.models.base import COUNT_ROUNDING, Described, Sample, log_class_prior
from riskbayes.models.centred import EPS, Centred, Origin
from riskbayes.models.gaussian import LOG_2PI, GaussianModel, described_moments
from riskbayes.models.missing import Holes
from riskbayes.models.quadrature import normal_densities
from riskbayes.models.settled import SEPARATING, TINY, Settled, rounding
from riskbayes.statistics import Statistics


@dataclass(frozen=True, eq=False)
class DiagonalMoments(Origin):
    """The origin of moments whose second ones, `s2_diagonal`, are of each feature alone."""

    holes: Array = field(default_factory=lambda: np.array(False))
    """True if cells are missing: the weights of those observed, by class and column, are in `observed`."""

    def join(self, other: Frame) -> Frame:
        """Return the joined frame; cells are missing if they are in one of the two."""
        found = super().join(other)
        missing = self.holes | getattr(other, "holes", np.array(False))
        return found if found.holes == missing else replace(found, holes=missing)  # type: ignore

    def convert(self, arrays: Arrays, target: Frame) -> Arrays:
        """Recentre the moments; where the target says that cells are missing, add the weights observed."""
        assert isinstance(target, DiagonalMoments)
        if target.holes and not self.holes:
            observed = namespace(arrays["s1"]).broadcast_to(arrays["s0"][:, None], arrays["s1"].shape)
            arrays = {**arrays, "observed": observed}
        if same_values(self.origin, target.origin):
            return arrays
        d = (self.origin - target.origin)[None, :]
        mass, s1 = column_weights(arrays), arrays["s1"]
        second = arrays["s2_diagonal"] + 2 * s1 * d + mass * (d * d)
        return {**arrays, "s1": s1 + mass * d, "s2_diagonal": second}


def column_weights(arrays: Mapping[str, Array]) -> Array:
    """Return the weights of the observed cells by class and column; of the classes if no cell is missing."""
    return arrays["observed"] if "observed" in arrays else arrays["s0"][:, None]


def cell_moments(S: Statistics) -> tuple[Array, Array, Array]:
    """Return the weights, sums and sums of squares of the observed cells by class and column.

    They are zero where a class has no cells: there `forget` leaves rounding.
    """
    found = column_weights(S), S["s1"], S["s2_diagonal"]
    if "observed" not in S:
        return found
    xp = namespace(S["s0"])
    seen = xp.abs(S["observed"]) > COUNT_ROUNDING * xp.abs(S["s0"][:, None])
    own, s1, second = (xp.where(seen, value, 0.0) for value in found)
    return own, s1, second


@dataclass(frozen=True)
class GaussianNBParameters:
    """log p(y), means relative to the frame's origin, and variances."""

    log_prior: Array
    means: Array
    variances: Array
    epsilon: float
    """What `var_smoothing` added to the variances."""
    frame: Any
    floored: Array
    observed: Array | None = None
    """Share of the observed cells, by class and column; None if no cell is missing."""

    @property
    def covariances(self) -> Array:
        """The variances."""
        return self.variances

    def with_covariances(self, C: Array) -> GaussianNBParameters:
        """Return theta with other variances."""
        return replace(self, variances=C)

    @cached_property
    def form(self) -> tuple[Array, Array, Array, Array | None]:
        """(a, b, c, narrow) with log p(x, y) = a x^2 + b x + c, and narrow columns that are not in it.

        In a column whose variance is tiny beside its mean the three terms would cancel: there (x - mu)^2 is
        computed as it is.
        """
        xp, precision = namespace(self.means), 1.0 / self.variances
        b = self.means * precision
        size = self.means * b
        narrow = max_of(size, axis=0) > 0.01 / eps_of(self.means) ** 0.5
        none = known_all_false(narrow)
        if not none:
            size, b, precision = (xp.where(narrow[None, :], 0.0, A) for A in (size, b, precision))
        logs = sum_of(xp.log(self.variances) + size, axis=1)
        constant = self.log_prior - 0.5 * (logs + self.means.shape[1] * LOG_2PI)
        return -0.5 * precision, b, constant, None if none else xp.nonzero(narrow)[0]


@dataclass(frozen=True)
class GaussianNBModel(GaussianModel):
    """Normal features, independent given the class.

    Parameters
    ----------
    var_smoothing : float
        Share of the largest total variance that is added to every variance, as in scikit-learn.
    """

    floor_message: ClassVar[str] = (
        "{most} columns do not vary within class {classes}, and their variances were taken from all classes "
        "together."
    )
    floor_cures: ClassVar[dict[str, str]] = {
        "var_smoothing": "var_smoothing",
        "covariance_strength": "variance_strength (a prior)",
    }
    floor_columns: ClassVar[str] = "constant columns"

    frame_kind: ClassVar[type[Origin]] = DiagonalMoments
    second: ClassVar[str] = "s2_diagonal"
    own_moments: ClassVar[str] = "columns"

    var_smoothing: float = 1e-9

    def statistics(self, Z: Centred, W: Array) -> Statistics:
        """Return the masses, sums, and sums of squares about the origin."""
        V, D = to_widest(W).T, Z.exact
        squares = Z.squares if D is Z.values else D * D
        found = {"s0": sum_of(V, axis=1), "s1": V @ D, "s2_diagonal": V @ squares}
        if Z.frame.holes:  # type: ignore[attr-defined]
            found["observed"] = V @ Z.observed
        return Statistics(found, Z.frame)

    def learn_missing(self, sample: Sample, frame: Origin) -> Origin:
        """Return the frame that says that cells are missing."""
        return replace(frame, holes=np.array(True))  # type: ignore[call-arg]

    def encode(self, X: Array, frame: Frame) -> Centred:
        """Return the rows with the frame's origin; if their cells are missing, the frame says so."""
        Z = Centred(X, frame, holes=Holes.of(X))  # type: ignore[arg-type]
        if Z.holes is not None and not Z.frame.holes:  # type: ignore[attr-defined]
            Z.frame = replace(Z.frame, holes=np.array(True))  # type: ignore[call-arg]
        return Z

    def residual_statistics(self, Z: Centred, E: Array, theta: GaussianNBParameters) -> Statistics:
        """Return the statistics of the residual, with the expected ones of missing cells.

        They are multiplied by the share of the observed cells, as those of the data are, so that calibration
        does not change these shares: a column that a class hardly has cannot lose its weight.
        """
        S = self.statistics(Z, E)
        if theta.observed is None or "observed" not in S:
            return S
        mass = S["s0"][:, None]
        missing, mu = mass - S["observed"], theta.means
        second = S["s2_diagonal"] + missing * (theta.variances - theta.epsilon + mu * mu)
        share = theta.observed
        found = {"s1": share * (S["s1"] + missing * mu), "s2_diagonal": share * second}
        return Statistics({"s0": S["s0"], **found, "observed": share * mass}, S.frame)

    def posterior_statistics(self, Z: Centred, P: Array, theta: GaussianNBParameters) -> Statistics:
        """Return the statistics of the observed cells, as those of the data are."""
        return self.statistics(Z, P)

    def scatter(self, S: Statistics) -> tuple[Any, Array, Array]:
        """Return the weights, and the sums of squares about the overall mean and the means of the classes."""
        own, s1, second = cell_moments(S)
        second = sum_of(second, axis=0)
        total = positive(sum_of(own, axis=0)) if "observed" in S else max(S.total, TINY)
        return total, second - sum_of(s1, axis=0) ** 2 / total, second - sum_of(s1**2 / positive(own), axis=0)

    def means(self, S: Statistics, settled: Settled) -> tuple[Array, Array]:
        """Return the MAP means relative to the origin, and their masses, by class and column.

        A class without a cell in a column has the mean of all classes there.
        """
        (kappa, s1, _), m1 = cell_moments(S), self.mean_strength
        kappa = kappa + m1 if m1 else kappa
        s1 = s1 + m1 * settled.mean[None, :] if m1 else s1
        mu, empty = s1 / positive(kappa), kappa <= 0
        return mu if known_all_false(empty) else namespace(mu).where(empty, settled.mean[None, :], mu), kappa

    def moment_matrices(self, S: Statistics, size: Array) -> Array:
        """Return a 2 x 2 matrix for each class and feature."""
        s1, s2 = S["s1"] / size, S["s2_diagonal"] / size / size
        s0 = np.broadcast_to(column_weights(S), s1.shape)
        return np.stack([s0, s1, s1, s2], axis=-1).reshape(*s1.shape, 2, 2)

    def covariances(self, S: Statistics, settled: Settled) -> Array:
        """var = (m2 var0 + squares) / (m2 + s0) + epsilon."""
        return self._variances(S, settled, *self.means(S, settled))

    def _variances(self, S: Statistics, settled: Settled, mu: Array, kappa: Array) -> Array:
        """Return the variances about the MAP means mu, whose masses are kappa."""
        xp, m1, m2 = namespace(mu), self.mean_strength, self.covariance_strength
        own, s1, second = cell_moments(S)
        mass = own if m2 == 0 else own + m2
        if self.prior_form == "exact":
            squares = second - kappa * (mu * mu)
            squares = squares + m1 * (settled.mean * settled.mean)[None, :] if m1 else squares
        else:
            squares = second - s1**2 / positive(own)
        # The difference of two large terms is rounded: what is within its rounding error is zero.
        rounded = xp.abs(squares) <= (64 * EPS) * xp.abs(second)
        squares = squares if known_all_false(rounded) else xp.where(rounded, 0.0, squares)
        squares = squares + m2 * settled.covariance[None, :] if m2 else squares
        return squares / positive(mass) + self.var_smoothing * settled.widest

    def completion(
        self, S: Statistics, settled: Settled, C: Array, pooled: Array
    ) -> tuple[Array | None, Array]:
        """Return what brings the variance of a column constant in a class to the pooled one, or a small one.

        The small one is for columns that do not vary in any class. A class without a cell in a column has the
        pooled variance too, unless a prior gives it one.
        """
        xp, (own, _, squares) = namespace(C), cell_moments(S)
        low = rounding(squares / positive(own), S.frame, 4) >= C
        low = low | (own + self.covariance_strength * settled.covariance[None, :] <= 0)
        second = sum_of(squares, axis=0) / positive(sum_of(own, axis=0))
        varies = pooled > rounding(second, S.frame, 4)
        whole = xp.where(varies, pooled, SEPARATING * settled.scale * settled.scale)[None, :]
        noise = xp.abs(C)  # the rounding of a zero variance, which may be negative
        added = xp.where(low, xp.where(whole > noise, whole, noise) - C, 0.0)
        seen = low & (own > 0)  # no cells: nothing was floored
        return None if known_all_false(low) else added, xp.count_nonzero(seen, axis=1)

    def undetermined(self, S: Statistics, completion: Array) -> Array:
        """Return what the completion of the variances adds to second moments."""
        return column_weights(S) * completion

    def parameters(self, S: Statistics) -> GaussianNBParameters:
        """mu = (m1 mu0 + s1) / (m1 + s0), and the variances, floored."""
        settled, xp = S.frame.settled or self.settled_by(S), namespace(S["s0"])
        mu, kappa = self.means(S, settled)
        variances = settled.with_completion(self._variances(S, settled, mu, kappa))
        floor = self.covariance_floor * settled.reference  # type: ignore[operator]
        low, floored = variances < floor, settled.missing
        if not known_all_false(low):
            variances, floored = xp.where(low, floor, variances), floored + xp.count_nonzero(low, axis=1)
        log_prior = log_class_prior(S["s0"], self.class_alpha, self.class_prior)
        epsilon = self.var_smoothing * settled.widest
        shares = S["observed"] / positive(S["s0"])[:, None] if "observed" in S else None
        return GaussianNBParameters(log_prior, mu, variances, epsilon, S.frame, floored, shares)

    def is_legal(self, S: Statistics) -> bool:
        """True if every class has a mass after the prior is added, in all of its columns."""
        least = min(self.mean_strength, self.covariance_strength) if self.prior_form == "exact" else 0.0
        return super().is_legal(S) and ("observed" not in S or float(cell_moments(S)[0].min()) >= -least)

    def log_joint(self, Z: Centred, theta: GaussianNBParameters) -> Array:
        """log p(y) - sum_i (log 2pi var_i + (x_i - mu_i)^2 / var_i) / 2, as two products."""
        if Z.holes is not None:
            return self._of_observed(Z, theta)
        a, b, c, narrow = theta.form
        out = a @ Z.squares.T  # classes x rows: the rows of each class are contiguous
        out += b @ Z.values.T
        out += c[:, None]
        out = out.T
        if narrow is None or narrow.shape[0] == 0:
            return out
        return out + self._of_columns(Z.values, theta, narrow)

    def _of_columns(self, D: Array, theta: GaussianNBParameters, columns: Array) -> Array:
        """Return -sum_i (x_i - mu_i)^2 / var_i / 2 over these columns, for each class."""
        xp = namespace(D)
        x, mu, v = (take(A, columns, 1) for A in (D, theta.means, theta.variances))
        return xp.stack([-0.5 * ((x - mu[k, :]) ** 2 @ (1.0 / v[k, :])) for k in range(mu.shape[0])], axis=1)

    def _of_observed(self, Z: Centred, theta: GaussianNBParameters) -> Array:
        """Return the log joint of the observed cells: the sum over them alone."""
        logs = -0.5 * (Z.observed @ (np.log(theta.variances) + LOG_2PI).T)
        found = logs + theta.log_prior
        for k, (mu, variance) in enumerate(zip(theta.means, theta.variances, strict=True)):
            found[:, k] -= 0.5 * (((Z.exact - mu) * Z.observed) ** 2 @ (1.0 / variance))
        return found

    def fill(
        self, Z: Centred, theta: GaussianNBParameters, y: Array, rng: np.random.Generator | None = None
    ) -> Array:
        """Return rows with the mean of the class in their missing cells, or a draw."""
        drawn = theta.means[y] if rng is None else self.sample_rows(theta, y, rng) - theta.frame.origin
        return np.where(Z.observed > 0, Z.exact, drawn) + theta.frame.origin

    def contributions(self, Z: Centred, theta: GaussianNBParameters) -> Array:
        """Return log p(x_i | y) of each column."""
        away = Z.exact[:, :, None] - theta.means.T
        found = -0.5 * (away**2 / theta.variances.T + np.log(theta.variances.T) + LOG_2PI)
        return np.where(Z.observed[:, :, None] > 0, found, 0.0)

    def cell_densities(self, Z: Centred, theta: GaussianNBParameters, j: int) -> tuple[Array, Array]:
        """Return the densities of the classes at the nodes of a quadrature."""
        return normal_densities(theta.means[None, :, j], np.sqrt(theta.variances[None, :, j]))

    def describe(self, theta: GaussianNBParameters) -> Iterator[Described]:
        """Yield the means and the standard deviations."""
        yield from described_moments(theta.means + theta.frame.origin, np.sqrt(theta.variances))

    def sample_rows(self, theta: GaussianNBParameters, y: Array, rng: np.random.Generator) -> Array:
        """Draw each feature."""
        n = len(y)
        noise = rng.standard_normal((n, theta.means.shape[1]))
        return noise * np.sqrt(theta.variances)[y] + theta.means[y] + theta.frame.origin

    def expected_statistics(self, theta: GaussianNBParameters, total: float) -> Statistics:
        """Return the moments of `total` rows, without the epsilon that `parameters` adds."""
        s0 = total * namespace(theta.log_prior).exp(theta.log_prior)[:, None]
        own = s0 if theta.observed is None else s0 * theta.observed
        squares = own * (theta.variances - theta.epsilon + theta.means**2)
        found = {"s0": s0[:, 0], "s1": own * theta.means, "s2_diagonal": squares}
        return Statistics(found if theta.observed is None else {**found, "observed": own}, theta.frame)

    def log_likelihood(self, S: Statistics, theta: GaussianNBParameters) -> float:
        """sum_y s0 (log p(y) - sum_i log 2pi var_i / 2) - sum of squares about mu / var / 2."""
        S = S.to_frame(theta.frame)
        s0, mu = S["s0"], theta.means
        squares = S["s2_diagonal"] - 2 * mu * S["s1"] + column_weights(S) * mu**2
        xp = namespace(mu)
        if "observed" in S:
            logs = sum_of(S["observed"] * (xp.log(theta.variances) + LOG_2PI))
            return float(s0 @ theta.log_prior - 0.5 * (logs + sum_of(squares / theta.variances)))
        constants = theta.log_prior - 0.5 * sum_of(xp.log(theta.variances) + LOG_2PI, axis=1)
        return float(s0 @ constants - 0.5 * sum_of(squares / theta.variances))

    def inverse_parameters(self, theta: GaussianNBParameters, total: float) -> Statistics:
        """Return the moments whose MAP estimates are theta."""
        s0, s1, settled = self.invert_means(theta, total)
        m1, m2, mu0 = self.mean_strength, self.covariance_strength, settled.mean
        own, mass = settled.without_completion(theta.variances) - theta.epsilon, s0[:, None]
        if theta.observed is not None:
            mass = mass * theta.observed
            s1 = theta.means * (mass + m1) - m1 * mu0[None, :]
        squares = own * (mass + m2) - m2 * settled.covariance[None, :]
        if self.prior_form == "exact":
            second = squares - m1 * (mu0**2)[None, :] + (mass + m1) * theta.means**2
        else:
            second = squares + s1**2 / positive(mass)
        found = {"s0": s0, "s1": s1, "s2_diagonal": second}
        return Statistics(found if theta.observed is None else {**found, "observed": mass}, theta.frame)

    def to_natural(self, theta: GaussianNBParameters) -> dict[str, Array]:
        """eta1 = mu / var, eta2 = -1 / (2 var), about the origin zero."""
        mu = theta.means + theta.frame.origin[None, :]
        return {"eta0": theta.log_prior, "eta1": mu / theta.variances, "eta2": -0.5 / theta.variances}

    def natural_gradient(self, dS: Statistics, theta: GaussianNBParameters) -> dict[str, Array]:
        """dS0, dS1 - mu dS0, dS2 - (mu^2 + var) dS0, about the origin zero."""
        dS = dS.to_frame(theta.frame)
        g0, g1 = self.first_gradient(dS, theta)
        mass = column_weights(dS)
        g2 = dS["s2_diagonal"] - (theta.means**2 + theta.variances) * mass
        if theta.observed is not None:  # the residual's statistics are multiplied by these shares
            share = positive(theta.observed)
            g1, g2 = (dS["s1"] - theta.means * mass) / share, g2 / share
        return {"eta0": g0, "eta1": g1, "eta2": g2 + 2 * g1 * theta.frame.origin[None, :]}

    def from_natural(
        self, eta: dict[str, Array], theta: GaussianNBParameters, simplex: Any, floor: float
    ) -> GaussianNBParameters:
        """var = -1 / (2 eta2), floored; mu = var eta1."""
        with np.errstate(divide="ignore"):
            variances = -0.5 / eta["eta2"]
        variances = namespace(variances).where(variances < floor, floor, variances)
        mu = variances * eta["eta1"] - theta.frame.origin[None, :]
        return replace(theta, log_prior=simplex(eta["eta0"]), means=mu, variances=variances)
