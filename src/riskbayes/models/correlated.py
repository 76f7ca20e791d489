"""The base class of Gaussian models with full covariances: one for each class, or one for all classes.

Both are a stack of covariances, with a mass and a matrix of second moments for each. Rows with missing cells
have the density of their observed part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from riskbayes.arrays import Array, eye_like, namespace, outer, positive, sum_of, to_widest
from riskbayes.models.base import Described
from riskbayes.models.centred import Centred, Origin
from riskbayes.models.conditional import Given
from riskbayes.models.gaussian import LOG_2PI, GaussianModel, described_moments
from riskbayes.models.quadratic_forms import wide_traces
from riskbayes.models.quadrature import normal_densities
from riskbayes.models.settled import TINY, Settled, complete_undetermined, noise_of
from riskbayes.models.whitening import SMALL, floor_eigenvalues
from riskbayes.scanners.dense import Scanner
from riskbayes.statistics import Statistics

FEW_ROWS = 2048
"""Rows with missing cells that are grouped once for all classes; of more, each class groups its own."""

EVERY = slice(None)
"""All classes of a stack."""


class HolesScanner(Scanner):
    """Scans of rows with missing cells, whose factors are computed once, for scores and moments."""

    model: CorrelatedModel

    def begin(self, Z: Centred, theta: Any) -> tuple[Array, Callable[[Array], Statistics]]:
        """Return the scores and the function of dS."""
        assert Z.holes is not None
        found = theta.conditional.given(Z.exact[Z.holes.incomplete], Z.holes.gaps)
        scores = self.model.observed_log_joint(Z, theta, found)
        return scores, lambda E: self.model.expected(Z, E, theta, found)[0]


@dataclass(frozen=True)
class CorrelatedModel(GaussianModel):
    """Base class of LDA and QDA: its formulas are those of a stack of covariances.

    theta has the stacks `covariances` and `whiteners`, W with W W^T = Sigma^-1, and log|Sigma|/2 of each.

    Statistics of rows with missing cells are the expected ones given their observed part: those of the data
    under the parameters that EM found (the start of the frame), those of a residual under the parameters of
    the scan.
    """

    widest: ClassVar[float] = np.inf
    """Upper bound on the columns that the chunk size is computed for: wider rows are read in chunks as if
    they had this many."""

    tied: ClassVar[bool] = False
    """True if one covariance is that of all classes."""
    reg_param: ClassVar[float] = 0.0
    """Sigma <- (1 - reg_param) Sigma + reg_param I, as in scikit-learn."""
    shrinkage: ClassVar[float] = 0.0
    """Sigma <- (1 - shrinkage) Sigma + shrinkage tr(Sigma)/n I, as in scikit-learn."""

    def stack(self, S: Statistics) -> Array:
        """Return the second moments as a stack."""
        return S[self.second][None, ...] if self.tied else S[self.second]

    def products(self, a: Array, b: Array) -> Array:
        """Return a_k b_k^T of each class k as a stack, summed if the classes share a covariance."""
        return (a.T @ b)[None, ...] if self.tied else a[:, :, None] * b[:, None, :]

    def masses(self, s0: Array) -> Array:
        """Return the weights of the rows of each covariance, as factors of the stack."""
        return (sum_of(s0, axis=0, keepdims=True) if self.tied else s0)[:, None, None]

    def unstacked(self, C: Array) -> Array:
        """Return what statistics hold of a stack: the matrix alone if there is only one."""
        return C[0, ...] if self.tied else C

    def from_moments(
        self, s0: Array, means: Array, C: Array, frame: Origin, total: float | None = None
    ) -> Statistics:
        """Return the statistics of rows with these masses and means, and with covariance C in each class.

        `total` is the sum of the masses, where it is known without rounding.
        """
        s1 = s0[:, None] * means
        s2 = self.products(means, s1)
        s2 += (self.masses(s0) if total is None or not self.tied else total) * C
        return Statistics({"s0": s0, "s1": s1, self.second: self.unstacked(s2)}, frame)

    def scatter(self, S: Statistics) -> tuple[float, Array, Array]:
        """Return the weight, the scatter of columns about the overall mean, and that about the classes'."""
        s0, s1, xp = S["s0"], S["s1"], namespace(S["s0"])
        first, second, total = sum_of(s1, axis=0), sum_of(self.stack(S), axis=0), max(S.total, TINY)
        within = second - (s1 / positive(s0)[:, None]).T @ s1
        return total, xp.linalg.diagonal(second) - first * first / total, within

    def covariances(self, S: Statistics, settled: Settled, classes: slice = EVERY) -> Array:
        """Return Sigma = (m2 Sigma0 + scatter) / (m2 + mass) of classes, then shrunk as in scikit-learn."""
        C = self.closed_form(S, settled, classes) if S.frame.given is None else self.given(S)[classes, ...]
        if self.shrinkage > 0:
            C = (1 - self.shrinkage) * C + self.shrinkage * spread(C) * eye_like(C)
        return (1 - self.reg_param) * C + self.reg_param * eye_like(C) if self.reg_param > 0 else C

    def closed_form(self, S: Statistics, settled: Settled, classes: slice) -> Array:
        """Return (m2 Sigma0 + scatter) / (m2 + mass) of classes."""
        s0, s1, s2 = S["s0"][classes], S["s1"][classes, ...], self.stack(S)[classes, ...]
        m1, m2 = self.mean_strength, self.covariance_strength
        if self.prior_form == "exact":
            mu, kappa = (value[classes, ...] for value in self.means(S, settled))
            C = self.products(-kappa[:, None] * mu, mu)
            C += s2  # in place: these are large
            C = C + m1 * self.of_prior(settled, s0) if m1 else C
        else:
            C = s2 - self.products(s1, s1 / positive(s0)[:, None])
        C = C + m2 * settled.covariance[None, ...] if m2 else C
        C /= positive(self.masses(s0) + m2)
        return C

    def given(self, S: Statistics) -> Array:
        """Return the user's covariances of the classes, or their mean by p(y), as a stack."""
        if not self.tied:
            return S.frame.given
        p = S["s0"] / S.total if self.class_prior is None else self.class_prior
        return np.tensordot(p, S.frame.given, axes=1)[None]

    def of_prior(self, settled: Settled, s0: Array) -> Array:
        """Return mu0 mu0^T of the prior's mean, once for each class of a covariance."""
        return (s0.shape[0] if self.tied else 1) * outer(settled.mean)[None, ...]

    def unshrunk(self, C: Array) -> Array:
        """Return the stack that is shrunk to C; C itself where a share of one leaves no trace of it."""
        if 0 < self.reg_param < 1:
            C = (C - self.reg_param * eye_like(C)) / (1 - self.reg_param)
        if 0 < self.shrinkage < 1:
            C = (C - self.shrinkage * spread(C) * eye_like(C)) / (1 - self.shrinkage)
        return C

    def undetermined(self, S: Statistics, completion: Array) -> Array:
        """Return what the completion of the covariances adds to second moments."""
        return self.unstacked(self.masses(S["s0"]) * completion)

    def completion(
        self, S: Statistics, settled: Settled, C: Array, pooled: Array
    ) -> tuple[Array | None, Array]:
        """Return the pooled covariance in the directions that the rows of a class do not determine.

        In those in which no class varies it is a small share of the columns' variances.
        """
        mass, xp = self.masses(S["s0"])[:, :, 0], namespace(C)
        mass, second = positive(mass), xp.linalg.diagonal(self.stack(S))
        noise = noise_of(second / mass, S.frame, settled)
        if self.tied:
            return complete_undetermined(C, noise, None, None, settled.scale)
        whole = noise_of(sum_of(second, axis=0) / sum_of(mass), S.frame, settled)
        return complete_undetermined(C, noise, pooled, whole, settled.scale)

    def scanner(self, Z: Centred) -> Scanner:
        """Return a scanner in threads; the missing block of a row is a matrix."""
        cells = min(Z.shape[1], self.widest)
        if Z.holes is None:
            return Scanner(self, Z, cells=cells, releases_lock=True)
        return HolesScanner(self, Z, cells=cells + Z.holes.factor_cells, releases_lock=True)

    def observed_log_joint(self, Z: Centred, theta: Any, found: Given | None = None) -> Array:
        """Return log p(x_o, y) of rows with missing cells; `found` are those rows given the classes."""
        assert Z.holes is not None
        rows, out = Z.holes.incomplete, np.empty((len(Z), len(theta.means)))
        out[Z.holes.complete] = self.log_joint(Z.complete, theta)
        given = theta.conditional.given(Z.exact[rows], Z.holes.gaps) if found is None else found
        out[rows] = theta.conditional.log_joint(given)
        return out

    def expected(
        self, Z: Centred, V: Array, theta: Any, found: Given | None = None
    ) -> tuple[Statistics, float]:
        """Return the expected statistics of rows with missing cells under theta, and their log-likelihood.

        That is sum_ik V[i, k] log p(x_o, k), which is not computed if `found` is known, the rows with missing
        cells given the classes.
        """
        assert Z.holes is not None
        V, full, rows = to_widest(V), Z.holes.complete, Z.holes.incomplete
        first, second, value = theta.conditional.moments(Z.exact[rows], Z.holes.gaps, V[rows], found)
        arrays = {"s0": V.sum(axis=0), "s1": first, self.second: second}
        if len(full):
            S = self.statistics(Z.complete, V[full])
            arrays |= {name: arrays[name] + S[name] for name in ("s1", self.second)}
            value += 0.0 if found is not None else float((V[full] * self.log_joint(Z.complete, theta)).sum())
        return Statistics(arrays, Z.frame), value

    def expected_under_start(self, Z: Centred, W: Array) -> Statistics:
        """Return the expected statistics of rows with missing cells under the start of the frame."""
        assert Z.holes is not None
        start, full = Z.frame.start, Z.holes.complete
        if start is None and not W[Z.holes.incomplete].any():
            return self.statistics(Z.complete, W[full])
        if start is None:
            raise ValueError(
                "These rows have missing cells, and the rows of the fit had none: they are not among those "
                "that were fitted."
            )
        own = Z.about(replace(Z.frame, origin=start.frame.origin))  # statistics may have been recentred
        return self.expected(own, W, start)[0].to_frame(Z.frame)

    def residual_statistics(self, Z: Centred, E: Array, theta: Any) -> Statistics:
        """Return the statistics of a residual; those of missing cells are expected under theta."""
        if Z.holes is None:
            return self.statistics(Z, E)
        rows, found = Z.holes.incomplete, None
        if len(rows) <= FEW_ROWS:
            found = theta.conditional.given(Z.exact[rows], Z.holes.gaps)
        return self.expected(Z, E, theta, found)[0]

    def cell_densities(self, Z: Centred, theta: Any, j: int) -> tuple[Array, Array]:
        """Return the densities of the cell given the observed ones, at the nodes of a quadrature."""
        assert Z.holes is not None
        return normal_densities(*theta.conditional.cell(theta.conditional.given(Z.exact, Z.holes), j))

    def fill(self, Z: Centred, theta: Any, y: Array, rng: np.random.Generator | None = None) -> Array:
        """Return rows with the conditional mean of their class in the missing cells, or a joint draw."""
        D, holes = np.array(Z.exact), Z.holes
        if holes is not None:
            rows = holes.incomplete
            D[rows] = theta.conditional.fill(D[rows], holes[rows], y[rows], rng)
        return D + Z.frame.origin

    def describe(self, theta: Any) -> Iterator[Described]:
        """Yield the means and the standard deviations."""
        deviations = np.sqrt(np.linalg.diagonal(theta.covariances))
        deviations = np.broadcast_to(deviations, theta.means.shape)
        yield from described_moments(theta.means + theta.frame.origin, deviations)

    def sample_rows(self, theta: Any, y: Array, rng: np.random.Generator) -> Array:
        """Draw rows of each class by the Cholesky factor of its covariance."""
        r, n = theta.means.shape
        factors = np.broadcast_to(np.linalg.cholesky(theta.covariances), (r, n, n))
        X = rng.standard_normal((len(y), n))
        for k, L in enumerate(factors):
            X[y == k] = X[y == k] @ L.T
        return X + theta.means[y] + theta.frame.origin

    def expected_statistics(self, theta: Any, total: float) -> Statistics:
        """Return the expected moments of `total` rows: s0 (1, mu, Sigma + mu mu^T)."""
        s0 = total * namespace(theta.log_prior).exp(theta.log_prior)
        return self.from_moments(s0, theta.means, theta.covariances, theta.frame, total)

    def log_likelihood(self, S: Statistics, theta: Any) -> float:
        """Return sum_y s0 (log p(y) - log|2pi Sigma|/2) - tr(Sigma^-1 scatter about mu) / 2."""
        S = S.to_frame(theta.frame)
        s2, W = self.stack(S), theta.whiteners
        if isinstance(W, np.ndarray) and W.shape[1] > SMALL:
            traces = wide_traces(s2.__getitem__, W)
        else:
            traces = sum_of((s2 @ W) * W, axis=(1, 2))
        return log_likelihood(S["s0"], S["s1"], traces, theta)

    def inverse_parameters(self, theta: Any, total: float) -> Statistics:
        """Return the moments whose MAP estimates are theta."""
        s0, s1, settled = self.invert_means(theta, total)
        m1, m2, mu = self.mean_strength, self.covariance_strength, theta.means
        C = self.unshrunk(settled.without_completion(theta.covariances))
        s2 = C * (self.masses(s0) + m2) - m2 * settled.covariance
        if self.prior_form == "exact":
            s2 = s2 + self.products((s0 + m1)[:, None] * mu, mu) - m1 * self.of_prior(settled, s0)
        else:
            s2 = s2 + self.products(s1, s1 / s0[:, None])
        return Statistics({"s0": s0, "s1": s1, self.second: self.unstacked(s2)}, theta.frame)

    def to_natural(self, theta: Any) -> dict[str, Array]:
        """Return eta1 = Sigma^-1 mu, eta2 = -Sigma^-1 / 2, about the origin zero."""
        precision = theta.whiteners @ namespace(theta.means).matrix_transpose(theta.whiteners)
        mu = theta.means + theta.frame.origin[None, :]
        return {
            "eta0": theta.log_prior,
            "eta1": (precision @ mu[:, :, None])[:, :, 0],
            "eta2": self.unstacked(-0.5 * precision),
        }

    def natural_gradient(self, dS: Statistics, theta: Any) -> dict[str, Array]:
        """Return dS0, dS1 - mu dS0, dS2 - (mu mu^T + Sigma) dS0, about the origin zero."""
        dS, mu = dS.to_frame(theta.frame), theta.means
        g0, g1 = self.first_gradient(dS, theta)
        own = self.products(dS["s0"][:, None] * mu, mu) + theta.covariances * self.masses(dS["s0"])
        origin = namespace(g1).broadcast_to(theta.frame.origin[None, :], g1.shape)
        shift = self.products(g1, origin)  # from the frame's origin to zero
        g2 = self.stack(dS) - own + shift + namespace(g1).matrix_transpose(shift)
        return {"eta0": g0, "eta1": g1, "eta2": self.unstacked(g2)}

    def from_natural(self, eta: dict[str, Array], theta: Any, simplex: Any, floor: float) -> Any:
        """Return Sigma = -eta2^-1 / 2 with floored eigenvalues, and mu = Sigma eta1."""
        eta2 = eta["eta2"][None, ...] if self.tied else eta["eta2"]
        C = floor_eigenvalues(-0.5 * namespace(eta2).linalg.inv(eta2), floor)
        mu = (C @ eta["eta1"][:, :, None])[:, :, 0] - theta.frame.origin[None, :]
        return replace(theta.with_covariances(C), log_prior=simplex(eta["eta0"]), means=mu)


def observed_patterns(Z: Centred) -> Iterator[tuple[Array, Array]]:
    """Yield each pattern of observed cells, as indices of columns, with the indices of its rows."""
    observed, pattern = np.unique(Z.observed, axis=0, return_inverse=True)
    for i, seen in enumerate(observed):
        yield np.flatnonzero(seen), np.flatnonzero(pattern.ravel() == i)


def spread(C: Array) -> Array:
    """Return tr(C)/n of each matrix of a stack."""
    return (namespace(C).linalg.trace(C) / C.shape[-1])[..., None, None]


def log_likelihood(s0: Array, s1: Array, traces: Array, theta: Any) -> float:
    """Return the log-likelihood of rows with these moments and with tr(W^T s2 W) of the second ones.

    The scatter about mu is s2 - s1 mu^T - mu s1^T + s0 mu mu^T.
    """
    moved = (theta.means[:, None, :] @ theta.whiteners)[:, 0, :]
    first = (s1[:, None, :] @ theta.whiteners)[:, 0, :]
    inner = sum_of((s0[:, None] * moved - 2 * first) * moved)
    constants = theta.log_prior - theta.half_log_det - 0.5 * theta.means.shape[1] * LOG_2PI
    return float(s0 @ constants - 0.5 * (sum_of(traces) + inner))
