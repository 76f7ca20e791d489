"""From covariances to what a row is multiplied by: floored, factored, inverted."""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.lapack import dpotrf, dtrtri

from riskbayes.arrays import Array, like, namespace
from riskbayes.models.moments import eye_like, outer
from riskbayes.threads import available_threads, in_threads

LEAF = 32
"""Triangles of at most this size are inverted as they are."""

NEAREST = 1e-9
"""What a sign must be told from, as a share of the largest eigenvalue."""

SMALL = 64
"""Matrices of at most this size are not worth a thread, nor a choice among eigenvectors."""


def whiten(C: Array, scale: Array, floor: float) -> tuple[Array, Array, Array, Array]:
    """(W, log|C|/2, C, floored) with W W^T = C^-1, W upper triangular, for a stack of covariances.

    Eigenvalues are floored where the columns have variance 1, and are computed only where need be.
    """
    if isinstance(C, np.ndarray):
        return whiten_on_cpu(C, scale, floor)
    xp = namespace(C)
    units = outer(scale)[None, ...]
    correlation = C / units
    L = cholesky_or_none(correlation)
    inverse = None if L is None else triangular_inverse(L)
    if L is None or not is_above(correlation, inverse, floor):
        correlation, floored = lifted(correlation, floor)
        L = cholesky_or_none(correlation)
        if L is None:  # eigenvalues so far apart that rounding outweighs the floor
            L = factors_by_eigenvectors(C / units, floor)
            correlation = L @ xp.matrix_transpose(L)
        C = xp.where((floored > 0)[:, None, None], correlation * units, C)
        inverse = triangular_inverse(L)
    else:
        floored = xp.zeros(C.shape[0], **{**like(C), "dtype": xp.int64})
    half_log_det = xp.sum(xp.log(xp.linalg.diagonal(L)), axis=-1) + xp.sum(xp.log(scale))
    return xp.matrix_transpose(inverse) / scale[None, :, None], half_log_det, C, floored


def cholesky_or_none(C: Array) -> Array | None:
    """The Cholesky factors of a stack, or None where one has none.

    Some libraries raise an error of their own then, others return what is no number.
    """
    xp = namespace(C)
    try:
        L = xp.linalg.cholesky(C)
    except Exception as error:
        if "LinAlgError" not in type(error).__name__:
            raise
        return None
    return L if math.isfinite(float(xp.sum(L))) else None


def is_above(C: Array, inverse: Array, floor: float) -> bool:
    """Whether no eigenvalue of a stack is below the floor; `inverse` are those of the Cholesky factors."""
    xp = namespace(C)
    # tr C^-1 = |L^-1|^2 is at least 1 / the least eigenvalue: where it is small, that proves it.
    if float(xp.max(xp.sum(inverse * inverse, axis=(-2, -1)))) * floor <= 1:
        return True
    return cholesky_or_none(C - floor * eye_like(C)[None, ...]) is not None


def lifted(C: Array, floor: float) -> tuple[Array, Array]:
    """C with no eigenvalue below the floor, and how many of them were there, for each of a stack."""
    xp, n = namespace(C), C.shape[-1]
    if n <= SMALL:
        eigenvalues, V = xp.linalg.eigh(C)
        low = eigenvalues < floor
        number = xp.sum(xp.astype(low, xp.int64), axis=-1)
        mended = (V * xp.where(low, floor, eigenvalues)[:, None, :]) @ xp.matrix_transpose(V)
    else:  # max(C, floor) = floor + (A + |A|) / 2 with A = C - floor: products only, where devices shine
        eye = eye_like(C)[None, ...]
        A = C - floor * eye
        sign = matrix_sign(A)
        size = A @ sign
        mended = floor * eye + 0.5 * A + 0.25 * (size + xp.matrix_transpose(size))
        number = xp.astype(xp.round(0.5 * (n - xp.linalg.trace(sign))), xp.int64)
    return xp.where((number > 0)[:, None, None], mended, C), number


def matrix_sign(A: Array) -> Array:
    """The signs of the eigenvalues of a stack of symmetric matrices, in their eigenvectors.

    Newton-Schulz steps X <- a X (3 - a^2 X^2) / 2, each scaled for the interval that the eigenvalues are
    known to lie in by then. One that is nearer to zero than `NEAREST` of the norm may keep a sign between
    the two, which |A| hardly feels.
    """
    xp, eye, low = namespace(A), eye_like(A)[None, ...], NEAREST
    X = A / xp.max(xp.sum(xp.abs(A), axis=-1), axis=-1)[:, None, None]
    while low < 1 - 1e-8:
        a = math.sqrt(3 / (1 + low + low * low))
        X = X @ (1.5 * a * eye - (0.5 * a**3) * (X @ X))
        low = 0.5 * a * low * (3 - a * a * low * low)
    return X @ (1.5 * eye - 0.5 * (X @ X))


def factors_by_eigenvectors(C: Array, floor: float) -> Array:
    """Cholesky factors of a stack after flooring, whatever rounding does: V sqrt(lambda) = L Q."""
    xp = namespace(C)
    eigenvalues, V = xp.linalg.eigh(C)
    roots = xp.sqrt(xp.where(eigenvalues < floor, floor, eigenvalues))
    R = xp.linalg.qr(xp.matrix_transpose(V * roots[:, None, :]))[1]
    signs = xp.sign(xp.linalg.diagonal(R))
    return xp.matrix_transpose(R * signs[:, :, None])


def whiten_on_cpu(C: Array, scale: Array, floor: float) -> tuple[Array, Array, Array, Array]:
    """The same by LAPACK, class by class: large ones in threads, each with one thread of BLAS."""
    units, half_log_scale = outer(scale), float(np.log(scale).sum())
    W, half_log_det, mended = np.empty_like(C), np.empty(len(C)), np.empty_like(C)

    def one(k: int) -> int:
        correlation, number = C[k] / units, 0
        mended[k] = C[k]
        factors = factors_above(correlation, floor)
        if factors is None:
            correlation, number = lifted_one(correlation, floor)
            if number:
                np.multiply(correlation, units, out=mended[k])
            factors = factors_above(correlation, 0.0)
            if factors is None:  # eigenvalues so far apart that rounding outweighs the floor
                L = factors_by_eigenvectors((C[k] / units)[None], floor)[0]
                factors = L, dtrtri(L.T, lower=0)[0].T
                np.multiply(L @ L.T, units, out=mended[k])
        L, inverse = factors
        half_log_det[k] = np.log(L.diagonal()).sum() + half_log_scale
        np.divide(inverse.T, scale[:, None], out=W[k])
        return number

    threads = min(len(C), available_threads()) if C.shape[-1] > SMALL else 1
    floored = np.fromiter(in_threads(one, range(len(C)), threads), dtype=np.int64, count=len(C))
    return W, half_log_det, mended, floored


def factors_above(C: Array, floor: float) -> tuple[Array, Array] | None:
    """The Cholesky factor and its inverse, if every eigenvalue is at least the floor; else None."""
    # LAPACK counts along columns: what it calls the upper factor is our lower one.
    factor, failed = dpotrf(C.T, lower=0, clean=1)
    if failed:
        return None
    inverse = dtrtri(factor, lower=0)[0]
    # tr C^-1 = |L^-1|^2 is at least 1 / the least eigenvalue: where it is small, that proves it.
    if np.vdot(inverse, inverse) * floor > 1 and dpotrf(C.T - floor * np.eye(len(C)), lower=0)[1]:
        return None
    return factor.T, inverse.T


def lifted_one(C: Array, floor: float) -> tuple[Array, int]:
    """C with no eigenvalue below the floor, and their number: only these eigenvectors are computed."""
    if len(C) <= SMALL:
        eigenvalues, V = np.linalg.eigh(C)
        low, V = eigenvalues[eigenvalues < floor], V[:, eigenvalues < floor]
    else:
        low, V = eigh(C, subset_by_value=(-np.inf, floor), driver="evr", check_finite=False)
    return C + (V * (floor - low)) @ V.T, len(low)


def triangular_inverse(L: Array) -> Array:
    """Inverses of a stack of lower triangles, by the library's own solver where it has one."""
    linalg = namespace(L).linalg
    if hasattr(linalg, "solve_triangular"):  # PyTorch
        eye = namespace(L).broadcast_to(eye_like(L)[None, ...], L.shape)
        return linalg.solve_triangular(L, eye, upper=False)
    return inverse_by_halves(L)


def inverse_by_halves(L: Array) -> Array:
    """The inverse of [[A, 0], [B, D]] is [[A^-1, 0], [-D^-1 B A^-1, D^-1]].

    All blocks of one size at once, in products that every library has and every device is good at.
    """
    xp, (r, n, _) = namespace(L), L.shape
    if n <= LEAF:
        return xp.linalg.inv(L)
    size, blocks = LEAF, 1
    while size * blocks < n:
        blocks *= 2
    more = size * blocks - n
    if more > 0:  # ones on the diagonal, up to a size that halves
        beside, ones = xp.zeros((r, n, more), **like(L)), xp.zeros((r, more, more), **like(L))
        ones = ones + xp.eye(more, **like(L))[None, ...]
        below = xp.concat([xp.matrix_transpose(beside), ones], axis=-1)
        L = xp.concat([xp.concat([L, beside], axis=-1), below], axis=-2)
    tiles = xp.reshape(L, (r, blocks, size, blocks, size))
    inverse = xp.linalg.inv(xp.stack([tiles[:, i, :, i, :] for i in range(blocks)], axis=1))
    while blocks > 1:
        pairs = xp.reshape(L, (r, blocks, size, blocks, size))
        below = xp.stack([pairs[:, i + 1, :, i, :] for i in range(0, blocks, 2)], axis=1)
        first, second = inverse[:, 0::2, ...], inverse[:, 1::2, ...]
        corner = -(second @ below @ first)
        top = xp.concat([first, xp.zeros_like(corner)], axis=-1)
        inverse = xp.concat([top, xp.concat([corner, second], axis=-1)], axis=-2)
        size, blocks = 2 * size, blocks // 2
    return inverse[:, 0, :n, :n]


def floor_eigenvalues(C: Array, floor: float) -> Array:
    """The paper's projection: symmetric, with no eigenvalue below the floor."""
    xp = namespace(C)
    eigenvalues, V = xp.linalg.eigh((C + xp.matrix_transpose(C)) / 2)
    lifted = xp.where(eigenvalues < floor, floor, eigenvalues)
    return (V * lifted[..., None, :]) @ xp.matrix_transpose(V)
