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

from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtri

from riskbayes.arrays import Array
from riskbayes.models.missing import PAD_COLUMNS, Group, Holes

LOG_2PI = float(np.log(2 * np.pi))

LEAST_PIVOT = 1e-5
"""Pivots of P_uu, as shares of its diagonal, below which it is factorised by W."""

LARGEST_LOSS = 1e4
"""z' P z / q above which q is computed by W: the difference would lose as many digits."""

NEGLIGIBLE = 1e-12
"""Weights below this share of the largest one of their class are left out of expected moments."""


MOST_STACKED = 8
"""Largest number of columns of matrices that are inverted as a stack."""

EVERY = slice(None)
"""All classes."""


class Factors(NamedTuple):
    """Factors of the blocks P_uu of each pattern of a group, in units in which the diagonal of P is one.

    The first axis is the classes; it has one entry if they share a covariance.
    """

    inverse: Array
    """L^-1, where L L^T = P_uu, up to the signs of its rows."""
    half_log_det: Array
    """log|P_uu| / 2, in the units of the columns."""


class Given(NamedTuple):
    """Rows with missing cells, given their observed coordinates and each of some classes."""

    classes: slice
    holes: Holes
    factors: list[Factors]
    """Of each group of the rows."""
    distances: Array
    """The Mahalanobis distance q of the observed part of each row, by class."""
    shift: Array
    """E[x_u | x_o] - mu_u of `holes.cells`, by class."""


class Conditional:
    """Gaussians of several classes, given some of their coordinates.

    Rows are passed relative to the origin, with zeros where cells are missing. Precisions have a few more
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
        self.width = n + PAD_COLUMNS
        self.means = np.hstack([means, np.zeros((r, PAD_COLUMNS))])
        self.units = np.ones((t, self.width))
        self.units[:, :n] = np.sqrt(np.einsum("kij,kij->ki", whiteners, whiteners))
        self.roots = np.tile(np.eye(self.width), (t, 1, 1))
        self.roots[:, :n, :n] = whiteners / self.units[:, :n, None]
        self.precisions = self.roots @ self.roots.swapaxes(1, 2)
        self.finite = bool(np.isfinite(self.precisions).all() and np.isfinite(means).all())

    def given(self, D: Array, holes: Holes, classes: slice = EVERY) -> Given:
        """Return the rows, which all have missing cells, given each of these classes."""
        observed, cells = 1.0 - holes.mask, holes.cells
        numbers = range(len(self.means))[classes]
        q, own = np.empty((len(numbers), len(D))), np.empty((len(numbers), len(cells)))
        products, n = np.zeros((len(D), self.width)), self.n
        for i, k in enumerate(numbers):
            white = self._whitened(D, observed, k)
            q[i] = np.einsum("ij,ij->i", white, white)
            np.matmul(white, self.roots[self._shared(k), :n, :n].T, out=products[:, :n])
            np.take(products.reshape(-1), cells, out=own[i])
        factors, start = [], 0
        for group in holes.groups:
            (m, size), found = (len(group.rows), group.columns.shape[1]), self._factors(group, classes)
            part = own[:, start : start + m * size].reshape(-1, m, size)
            start += m * size
            v, shift = solved(found.inverse, part, group.pattern)
            whole = q[:, group.rows]
            rest = whole - np.einsum("kij,kij->ki", v, v)
            lost = whole > LARGEST_LOSS * np.maximum(rest, 1.0)
            for i in np.flatnonzero(lost.any(axis=1)).tolist():
                weak = np.flatnonzero(lost[i])
                rows, u, k = group.rows[weak], group.columns[group.pattern[weak]], numbers[i]
                white = padded(self._whitened(D[rows], observed[rows], k))
                rest[i, weak], shift[i, weak] = least_squares(
                    self.roots[self._shared(k)][u].swapaxes(1, 2), white
                )
            q[:, group.rows] = np.maximum(rest, 0.0)
            part[...] = shift
            factors.append(found)
        own /= -self.units[self._own(classes)][:, holes.columns]
        return Given(classes, holes, factors, q, own)

    def _shared(self, k: int) -> int:
        """Return the index of the precision of a class."""
        return 0 if self.tied else k

    def _own(self, classes: slice) -> slice:
        """Return the precisions of classes."""
        return EVERY if self.tied else classes

    def _whitened(self, D: Array, observed: Array, k: int) -> Array:
        """Return W^T z of rows, z = x - mu of class k with zeros where x is missing."""
        z = D - self.means[k, : self.n]
        z *= observed
        return z @ self.whiteners[self._shared(k)]

    def _factors(self, group: Group, classes: slice) -> Factors:
        """Return the factors of P_uu of classes for the patterns of a group."""
        u, own = group.columns, self._own(classes)
        blocks = self.precisions[own][:, u[:, :, None], u[:, None, :]]
        inverse = inverse_factors(blocks.reshape(-1, *blocks.shape[2:])).reshape(blocks.shape)
        pivots = np.diagonal(inverse, axis1=2, axis2=3).copy()  # their reciprocals
        k, i = np.nonzero(~(pivots.max(axis=2) ** 2 <= 1 / LEAST_PIVOT))  # NaN where it is indefinite
        if len(k):
            roots = self.roots[own][k[:, None], u[i]]
            R = np.linalg.qr(roots.swapaxes(1, 2), mode="r")
            inverse[k, i] = np.linalg.inv(R).swapaxes(1, 2)
            pivots[k, i] = np.abs(np.diagonal(inverse[k, i], axis1=1, axis2=2))
        half_log_det = (np.log(self.units[own][:, u]) - np.log(pivots)).sum(axis=2)
        return Factors(inverse, half_log_det)

    def log_joint(self, found: Given) -> Array:
        """Return log p(x_o, y) of rows, of shape (m, number of the classes)."""
        holes, constants = found.holes, self.constants[found.classes]
        out = constants[:, None] - 0.5 * found.distances
        for group, factors in zip(holes.groups, found.factors, strict=True):
            out[:, group.rows] -= factors.half_log_det[:, group.pattern]
        out -= 0.5 * LOG_2PI * (self.n - holes.numbers)
        nothing = np.flatnonzero(holes.numbers == self.n)
        if len(nothing):  # log p(y), without rounding errors that differ by class
            dets = np.linalg.slogdet(self.roots)[1] + np.log(self.units).sum(axis=1)
            out[:, nothing] = (constants - dets[self._own(found.classes)])[:, None]
        return out.T

    def cell(self, found: Given, j: int) -> tuple[Array, Array]:
        """Return E[x_j | x_o, y] and the standard deviation, of shape (m, r), of rows that lack cell j."""
        holes, own = found.holes, np.flatnonzero(found.holes.columns == j)
        means = np.empty((len(holes.mask), len(self.means)))
        means[holes.cells[own] // self.width] = (self.means[:, j, None] + found.shift[:, own]).T
        variances = np.empty_like(means)
        for group, factors in zip(holes.groups, found.factors, strict=True):
            place = (group.columns == j).argmax(axis=1)
            # P_uu^-1 = L^-T L^-1: a variance is the sum of squares of a column of L^-1.
            columns = factors.inverse[:, np.arange(len(place)), :, place]  # (patterns, classes, size)
            variances[group.rows] = (columns**2).sum(axis=2)[group.pattern] / self.units[:, j] ** 2
        return means, np.sqrt(variances)

    def moments(
        self, D: Array, holes: Holes, V: Array, found: Given | None = None
    ) -> tuple[Array, Array, float]:
        """Return sum_i V[i, k] E[x | x_o, k], the same of x x^T, and sum_ik V[i, k] log p(x_o, k).

        The second moments are of shape (r, n, n); if the classes share a covariance, those of all classes
        together, (n, n). Rows whose weight is negligible are left out. `found` are the rows given all
        classes, where they are known already: the last sum is not computed then.
        """
        r, n, width, value = len(self.means), self.n, self.width, 0.0
        first, second = np.zeros((r, width)), np.zeros((len(self.roots), width, width))
        if not self.finite:
            first, second = first + np.nan, second + np.nan
        elif found is not None:
            self._add_moments(first, second, D, V, found)
        else:  # class by class, over the rows of that class
            for k in np.flatnonzero(V.any(axis=0)).tolist():
                kept, one = np.flatnonzero(is_counted(V[:, k])), slice(k, k + 1)
                whole = len(kept) == len(V)  # then the groups are known
                own, gaps = (D, holes) if whole else (D[kept], holes[kept])
                found, v = self.given(own, gaps, one), V[kept, one]
                self._add_moments(first[one], second[self._own(one)], own, v, found)
                value += float(v[:, 0] @ self.log_joint(found)[:, 0])
        first, second = first[:, :n], second[:, :n, :n]
        return first, second[0] if self.tied else second, value

    def _add_moments(self, first: Array, second: Array, D: Array, V: Array, found: Given) -> None:
        """Add the expected moments of rows with weights V to those of the classes."""
        holes, counted = found.holes, is_counted(V)
        for i, mean in enumerate(self.means[found.classes]):
            kept, filled = np.flatnonzero(counted[:, i]), self._filled(D, mean, holes, found.shift[i])
            filled = filled if len(kept) == len(D) else filled[kept]
            w = V[kept, i]
            first[i, : self.n] += w @ filled
            second[0 if self.tied else i, : self.n, : self.n] += (filled * w[:, None]).T @ filled
        if self.tied:  # the same for all classes; the weights of a residual sum to zero
            least, V = NEGLIGIBLE * np.abs(V).max(initial=0.0), V.sum(axis=1, keepdims=True)
            counted = np.abs(V) > least
        V, units = np.where(counted, V, 0.0), self.units[self._own(found.classes)]
        for group, factors in zip(holes.groups, found.factors, strict=True):
            weights = np.add.reduceat(V[group.rows], group.starts, axis=0).T
            k, p = np.nonzero(weights)  # Cov[x_u | x_o] = P_uu^-1 of these classes and patterns
            L, u = factors.inverse[k, p], group.columns[p]
            L /= units[k[:, None], u][:, None, :]
            scaled = L.swapaxes(1, 2) @ (L * weights[k, p, None, None])
            places = ((k[:, None] * self.width + u) * self.width)[:, :, None] + u[:, None, :]
            np.add.at(second.reshape(-1), places.ravel(), scaled.ravel())

    def _filled(self, D: Array, mean: Array, holes: Holes, shift: Array) -> Array:
        """Return rows D with mu_u + shift in their missing cells."""
        filled = padded(D)
        filled.reshape(-1)[holes.cells] = mean[holes.columns] + shift
        return filled[:, : self.n]

    def fill(self, D: Array, holes: Holes, y: Array, rng: np.random.Generator | None) -> Array:
        """Return rows of classes y with E[x_u | x_o, y] in their missing cells, or a draw of them."""
        out = D.copy()
        for k, mean in enumerate(self.means):
            rows = np.flatnonzero(y == k)
            found, noise = self.given(D[rows], holes[rows], slice(k, k + 1)), []
            if rng is not None:  # L^-T e has the covariance P_uu^-1
                for group, factors in zip(found.holes.groups, found.factors, strict=True):
                    e = rng.standard_normal((len(group.rows), 1, group.columns.shape[1]))
                    noise.append((e @ factors.inverse[0, group.pattern]).ravel())
                units = self.units[self._shared(k)][found.holes.columns]
                found.shift[0] += np.concatenate([np.zeros(0), *noise]) / units
            out[rows] = self._filled(D[rows], mean, found.holes, found.shift[0])
        return out


def is_counted(V: Array) -> Array:
    """True for the weights of a class that are not negligible beside its largest one."""
    return np.abs(V) > NEGLIGIBLE * np.abs(V).max(axis=0, initial=0.0)


def solved(L: Array, b: Array, pattern: Array) -> tuple[Array, Array]:
    """Return L b and L^T L b of each row, with the matrix L of its pattern; the first axis is the classes."""
    if L.shape[1] == 1:
        v = b @ L[:, 0].swapaxes(1, 2)
        return v, v @ L[:, 0]
    L = L if L.shape[1] == len(pattern) else L[:, pattern]
    v = (L @ b[..., None])[..., 0]
    return v, (v[:, :, None, :] @ L)[:, :, 0, :]


def padded(A: Array) -> Array:
    """Return a copy of rows with a few more columns of zeros."""
    out = np.zeros((len(A), A.shape[1] + PAD_COLUMNS))
    out[:, : A.shape[1]] = A
    return out


def inverse_factors(A: Array) -> Array:
    """Return L^-1 of a stack A = L L^T; NaN where A is not positive definite.

    Larger matrices are inverted one by one as the triangles that they are, in a third of the time of a stack.
    """
    if A.shape[1] <= MOST_STACKED:
        try:
            return np.linalg.inv(np.linalg.cholesky(A))
        except np.linalg.LinAlgError:
            pass
    found = np.empty_like(A)
    for own, out in zip(A, found, strict=True):
        upper, failed = dpotrf(own.T, lower=0, clean=1)
        out[...] = np.nan if failed else dtrtri(upper, lower=0)[0].T
    return found


def least_squares(A: Array, b: Array) -> tuple[Array, Array]:
    """Return min_s |b_i - A_i s|^2 and the s that attains it, for a stack of A."""
    Q, R = np.linalg.qr(A)
    v = (b[:, None, :] @ Q)[:, 0, :]
    rest = b - (Q @ v[:, :, None])[:, :, 0]
    return np.einsum("ij,ij->i", rest, rest), np.linalg.solve(R, v[:, :, None])[:, :, 0]
