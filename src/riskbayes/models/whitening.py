"""From covariances to what a row is multiplied by: floored, factored, inverted."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtri

from riskbayes.arrays import Array, like, namespace
from riskbayes.models.moments import eye_like, outer

LEAF = 32
"""Triangles of at most this size are inverted as they are."""


def whiten(C: Array, scale: Array, floor: float) -> tuple[Array, Array, Array, Array]:
    """(W, log|C|/2, C, floored) with W W^T = C^-1, W upper triangular, for a stack of covariances.

    Eigenvalues are floored where the columns have variance 1, and are computed only where need be.
    """
    xp = namespace(C)
    units = outer(scale)[None, ...]
    correlation = C / units
    factors = factors_above(correlation, floor)
    if factors is None:
        eigenvalues, V = xp.linalg.eigh(correlation)
        low = eigenvalues < floor
        floored = xp.sum(xp.astype(low, xp.int64), axis=-1)
        mended = (floored > 0)[:, None, None]
        lifted = (V * xp.where(low, floor, eigenvalues)[:, None, :]) @ xp.matrix_transpose(V)
        correlation = xp.where(mended, lifted, correlation)
        C = xp.where(mended, correlation * units, C)
        L = cholesky_or_none(correlation)
        assert L is not None
        factors = L, triangular_inverse(L)
    else:
        floored = xp.zeros(C.shape[0], **{**like(C), "dtype": xp.int64})
    L, inverse = factors
    half_log_det = xp.sum(xp.log(xp.linalg.diagonal(L)), axis=-1) + xp.sum(xp.log(scale))
    return xp.matrix_transpose(inverse) / scale[None, :, None], half_log_det, C, floored


def factors_above(correlation: Array, floor: float) -> tuple[Array, Array] | None:
    """Cholesky factors and their inverses, if every eigenvalue is at least `floor`; else None."""
    xp = namespace(correlation)
    L = cholesky_or_none(correlation)
    if L is None:
        return None
    inverse = triangular_inverse(L)
    # tr C^-1 = |L^-1|^2 is at least 1 / the least eigenvalue: where it is small, that proves it.
    trace = xp.sum(inverse * inverse, axis=(-2, -1))
    if float(xp.max(trace)) * floor > 1:
        above = cholesky_or_none(correlation - floor * eye_like(correlation)[None, ...])
        return None if above is None else (L, inverse)
    return L, inverse


def cholesky_or_none(C: Array) -> Array | None:
    """The Cholesky factors of a stack, or None where one has none.

    Some libraries raise an error of their own then, others return what is no number.
    """
    xp = namespace(C)
    if xp is np:
        L = C.copy()
        for factor in L:  # in place: its transpose is what LAPACK calls a matrix
            if dpotrf(factor.T, lower=0, clean=1, overwrite_a=1)[1]:
                return None
        return L
    try:
        L = xp.linalg.cholesky(C)
    except Exception as error:
        if "LinAlgError" not in type(error).__name__:
            raise
        return None
    return L if bool(xp.all(xp.isfinite(xp.sum(L, axis=(-2, -1))))) else None


def triangular_inverse(L: Array) -> Array:
    """Inverses of a stack of lower triangles."""
    if not isinstance(L, np.ndarray):
        return inverse_by_halves(L)
    inverse = L.copy()
    for triangle in inverse:
        dtrtri(triangle.T, lower=0, overwrite_c=1)
    return inverse


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
