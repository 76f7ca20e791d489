"""Gaussians of which some coordinates are missing: the density of the others, and moments given them.

Let P = C^-1, z = x - mu with zeros where x is missing, and u the missing coordinates. Then

    q = z' P z - (P z)_u' P_uu^-1 (P z)_u    is the Mahalanobis distance of the observed part,
    log|C_oo| = log|C| + log|P_uu|,
    E[x_u | x_o] = mu_u - P_uu^-1 (P z)_u,   Cov[x_u | x_o] = P_uu^-1,

so that only matrices of the size of the missing part are factorised, a stack of them at a time. With
W W^T = P this is least squares: q = min over z_u of |W^T z|^2. Where the difference above would lose digits,
in nearly collinear columns, it is solved as such, by an orthogonal factorisation of the rows u of W.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from riskbayes.arrays import Array
from riskbayes.models.missing import PAD_COLUMNS, Group, Holes

LOG_2PI = float(np.log(2 * np.pi))

LEAST_PIVOT = 1e-5
"""Pivots of P_uu, as shares of its diagonal, below which it is factorised by W."""

LARGEST_LOSS = 1e4
"""z' P z / q above which q is computed by W: the difference would lose as many digits."""

NEGLIGIBLE = 1e-12
"""Weights below this share of the largest one of their class are left out of expected moments."""


class Factors(NamedTuple):
    """Factors of the blocks P_uu of each pattern, in units in which the diagonal of P is one."""

    inverse: Array
    """L^-1, where L L^T = P_uu, up to the signs of its rows."""
    half_log_det: Array
    """log|P_uu| / 2, in the units of the columns."""


class Given(NamedTuple):
    """The rows of a group, given their observed coordinates and class k."""

    k: int
    group: Group
    factors: Factors
    distances: Array
    """The Mahalanobis distance q of the observed part of each row."""
    shift: Array
    """E[x_u | x_o] - mu_u."""


class Conditional:
    """Gaussians of several classes, given some of their coordinates.

    Rows are passed relative to the origin, with zeros where cells are missing. Inside they have a few more
    columns, of independent unit normals (see `Group`).

    Parameters
    ----------
    means : array of shape (r, n)
        Relative to the origin of the rows.
    whiteners : array of shape (r, n, n) or (1, n, n)
        W, with W W^T the precision; one for all classes if they share it.
    constants : array of shape (r,)
        log p(y) - log|C| / 2 of each class.
    """

    def __init__(self, means: Array, whiteners: Array, constants: Array):
        (r, n), t = means.shape, len(whiteners)
        self.constants, self.tied, self.n, self.whiteners = constants, t == 1, n, whiteners
        self.means = np.hstack([means, np.zeros((r, PAD_COLUMNS))])
        self.units = np.ones((t, n + PAD_COLUMNS))
        self.units[:, :n] = np.sqrt(np.einsum("kij,kij->ki", whiteners, whiteners))
        self.roots = np.tile(np.eye(n + PAD_COLUMNS), (t, 1, 1))
        self.roots[:, :n, :n] = whiteners / self.units[:, :n, None]
        self.precisions = self.roots @ self.roots.swapaxes(1, 2)
        self.finite = bool(np.isfinite(self.precisions).all() and np.isfinite(means).all())

    def given(self, D: Array, holes: Holes, classes: Iterable[int] | None = None) -> Iterator[Given]:
        """Yield each group of the rows, which all have missing cells, given each class."""
        D, observed = padded(D), padded(1.0 - holes.mask)
        classes = range(len(self.means)) if classes is None else classes
        for group in holes.groups:
            factors = None
            for k in classes:
                factors = self._factors(k, group) if factors is None or not self.tied else factors
                yield Given(k, group, factors, *self._conditioned(k, group, D, observed, factors))

    def _shared(self, k: int) -> int:
        """Return the index of the precision of a class."""
        return 0 if self.tied else k

    def _factors(self, k: int, group: Group) -> Factors:
        """Return the factors of P_uu for the patterns of a group."""
        t, u = self._shared(k), group.columns
        inverse = inverse_factors(self.precisions[t][u[:, :, None], u[:, None, :]])
        pivots = np.diagonal(inverse, axis1=1, axis2=2).copy()  # their reciprocals
        weak = np.flatnonzero(~(pivots.max(axis=1) ** 2 <= 1 / LEAST_PIVOT))  # NaN where it is indefinite
        if len(weak):
            R = np.linalg.qr(self.roots[t][u[weak]].swapaxes(1, 2), mode="r")
            inverse[weak] = np.linalg.inv(R).swapaxes(1, 2)
            pivots[weak] = np.abs(np.diagonal(inverse[weak], axis1=1, axis2=2))
        half_log_det = (np.log(self.units[t][u]) - np.log(pivots)).sum(axis=1)
        return Factors(inverse, half_log_det)

    def _conditioned(
        self, k: int, group: Group, D: Array, observed: Array, factors: Factors
    ) -> tuple[Array, Array]:
        """Return the distances q of the rows of a group, and E[x_u | x_o] - mu_u."""
        t, rows, u = self._shared(k), group.rows, group.columns[group.pattern]
        z = (D[rows] - self.means[k]) * observed[rows]
        white = (z * self.units[t]) @ self.roots[t]
        whole = np.einsum("ij,ij->i", white, white)
        own = np.take_along_axis(white @ self.roots[t].T, u, axis=1)
        if len(factors.inverse) == 1:
            L = factors.inverse[0]
            v = own @ L.T
            shift = v @ L
        else:
            L = factors.inverse
            L = L if len(L) == len(rows) else L[group.pattern]  # patterns are in the order of the rows
            v = (L @ own[:, :, None])[:, :, 0]
            shift = (v[:, None, :] @ L)[:, 0, :]
        q = whole - np.einsum("ij,ij->i", v, v)
        weak = np.flatnonzero(whole > LARGEST_LOSS * np.maximum(q, 1.0))
        if len(weak):
            q[weak], shift[weak] = least_squares(self.roots[t][u[weak]].swapaxes(1, 2), white[weak])
        return np.maximum(q, 0.0), -shift / self.units[t][u]

    def log_joint(self, holes: Holes, found: Iterable[Given]) -> Array:
        """Return log p(x_o, y) of rows, of shape (m, r)."""
        out = np.full((len(holes.numbers), len(self.means)), np.nan)
        for k, group, factors, q, _ in found:
            out[group.rows, k] = self.constants[k] - factors.half_log_det[group.pattern] - 0.5 * q
        out -= 0.5 * LOG_2PI * (self.n - holes.numbers)[:, None]
        nothing = np.flatnonzero(holes.numbers == self.n)
        if len(nothing):  # log p(y), without rounding errors that differ by class
            dets = np.linalg.slogdet(self.roots)[1] + np.log(self.units).sum(axis=1)
            out[nothing] = self.constants - dets
        return out

    def moments(
        self, D: Array, holes: Holes, V: Array, found: Iterable[Given] | None = None
    ) -> tuple[Array, Array, float]:
        """Return sum_i V[i, k] E[x | x_o, k], the same of x x^T, and sum_ik V[i, k] log p(x_o, k).

        The second moments are of shape (r, n, n); if the classes share a covariance, those of all classes
        together, (n, n). Rows whose weight is negligible are left out. `found` are the rows given each class,
        where they are known already.
        """
        (r, width), n, value = self.means.shape, self.n, 0.0
        first, second = np.zeros((r, width)), np.zeros((len(self.roots), width, width))
        if not self.finite:
            first, second = first + np.nan, second + np.nan
        elif found is not None:
            D, least = padded(D), NEGLIGIBLE * np.abs(V).max(axis=0, initial=0.0)
            for given in found:
                k, rows = given.k, given.group.rows
                self._add_filled(first, second, D, given, V[rows, k], least[k])
                if not self.tied:
                    self._add_covariances(second, given, V[rows, k], least[k])
                elif k == 0:  # the same for all classes; the weights of a residual sum to zero
                    self._add_covariances(second, given, V[rows].sum(axis=1), least.max())
        else:  # class by class, over the rows of that class
            for k in range(r):
                least = NEGLIGIBLE * np.abs(V[:, k]).max(initial=0.0)
                kept = np.flatnonzero(np.abs(V[:, k]) > least)
                own, gaps, v = D[kept], holes[kept], V[kept, k]
                parts, wide = list(self.given(own, gaps, [k])), padded(own)
                for given in parts:
                    self._add_filled(first, second, wide, given, v[given.group.rows], least)
                    self._add_covariances(second, given, v[given.group.rows], least)
                if len(kept):
                    value += float(v @ self.log_joint(gaps, parts)[:, k])
        first, second = first[:, :n], second[:, :n, :n]
        return first, second[0] if self.tied else second, value

    def _add_filled(
        self, first: Array, second: Array, D: Array, given: Given, w: Array, least: float
    ) -> None:
        """Add the moments of the rows of a group, filled in, with weights w above `least`."""
        k, group = given.k, given.group
        kept = np.flatnonzero(np.abs(w) > least)
        filled = self._filled(k, D[group.rows[kept]], group.columns[group.pattern[kept]], given.shift[kept])
        weighted = filled * w[kept, None]
        first[k] += weighted.sum(axis=0)
        second[self._shared(k)] += weighted.T @ filled

    def _add_covariances(self, second: Array, given: Given, w: Array, least: float) -> None:
        """Add Cov[x_u | x_o] = P_uu^-1 of each pattern, times the weights w of its rows."""
        t, group = self._shared(given.k), given.group
        weights = np.bincount(group.pattern, weights=w, minlength=len(group.columns))
        kept = np.flatnonzero(np.abs(weights) > least)
        L, u, width = given.factors.inverse[kept], group.columns[kept], second.shape[-1]
        units = self.units[t][u]
        scaled = L.swapaxes(1, 2) @ (L * weights[kept, None, None])
        scaled /= units[:, :, None] * units[:, None, :]
        places = u[:, :, None] * width + u[:, None, :]
        added = np.bincount(places.ravel(), weights=scaled.ravel(), minlength=width * width)
        second[t] += added.reshape(width, width)

    def _filled(self, k: int, D: Array, u: Array, shift: Array) -> Array:
        """Return padded rows D with mu_u + shift in their columns u."""
        filled = D.copy()
        np.put_along_axis(filled, u, self.means[k][u] + shift, axis=1)
        return filled

    def fill(self, D: Array, holes: Holes, y: Array, rng: np.random.Generator | None) -> Array:
        """Return rows of classes y with E[x_u | x_o, y] in their missing cells, or a draw of them."""
        found = D.copy()
        for k in range(len(self.means)):
            rows = np.flatnonzero(y == k)
            own = padded(D[rows])
            for _, group, factors, _, shift in self.given(D[rows], holes[rows], [k]):
                u = group.columns[group.pattern]
                if rng is not None:  # L^-T e has the covariance P_uu^-1
                    noise = rng.standard_normal(shift.shape)[:, None, :] @ factors.inverse[group.pattern]
                    shift = shift + noise[:, 0, :] / self.units[self._shared(k)][u]
                found[rows[group.rows]] = self._filled(k, own[group.rows], u, shift)[:, : self.n]
        return found


def padded(A: Array) -> Array:
    """Return rows with a few more columns of zeros."""
    return np.hstack([A, np.zeros((len(A), PAD_COLUMNS))])


def inverse_factors(A: Array) -> Array:
    """Return L^-1 of a stack A = L L^T; NaN where A is not positive definite.

    Many small matrices are factorised together, entry by entry: LAPACK, called for each, takes thrice as
    long.
    """
    p, u, _ = A.shape
    if p < u:
        try:
            return np.linalg.inv(np.linalg.cholesky(A))
        except np.linalg.LinAlgError:
            pass
    A = np.ascontiguousarray(A.transpose(1, 2, 0))
    L, inverse = np.zeros_like(A), np.zeros_like(A)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        for j in range(u):
            column = A[j:, j] - np.einsum("kp,ikp->ip", L[j, :j], L[j:, :j])
            inverse[j, j] = 1.0 / np.sqrt(column[0])
            np.multiply(column, inverse[j, j], out=L[j:, j])
            row = np.einsum("kp,kip->ip", L[j, :j], inverse[:j, :j])
            np.multiply(row, -inverse[j, j], out=inverse[j, :j])
    return np.ascontiguousarray(inverse.transpose(2, 0, 1))


def least_squares(A: Array, b: Array) -> tuple[Array, Array]:
    """Return min_s |b_i - A_i s|^2 and the s that attains it, for a stack of A."""
    Q, R = np.linalg.qr(A)
    v = (b[:, None, :] @ Q)[:, 0, :]
    rest = b - (Q @ v[:, :, None])[:, :, 0]
    return np.einsum("ij,ij->i", rest, rest), np.linalg.solve(R, v[:, :, None])[:, :, 0]
