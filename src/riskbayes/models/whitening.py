"""Whitening: floor covariances, factor them, and invert the factors that rows are multiplied by."""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.lapack import dpotrf, dtrtri

from riskbayes.arrays import Array, eye_like, like, namespace, outer, positive

SMALL = 64
"""Matrices of at most this size are not worth a thread."""

LEAF = 32
"""Triangles of at most this size are inverted without splitting them."""

LEAST = 1e-14
"""Least eigenvalue, as a share of the largest, that is set where rounding leaves a matrix indefinite."""

LARGEST = np.finfo(np.float64).max
"""Covariances beyond it, of columns whose range is near its root, are stored as this."""

NEAREST = 1e-9
"""Least eigenvalue, as a share of the norm, whose sign `matrix_sign` has to get right."""


def whiten(
    C: Array, reference: Array, floor: float, out: Array | None = None
) -> tuple[Array, Array, Array, Array]:
    """Return (W, log|C|/2, C, floored) with W W^T = C^-1, W upper triangular, for a stack of covariances.

    C is floored first: in every direction its variance is at least `floor` times that of the reference, a
    stack that must be positive definite. Eigenvalues are computed only where C - floor reference is not.
    `out` is an array for W, in NumPy only.
    """
    if isinstance(C, np.ndarray):
        return whiten_on_cpu(C, reference, floor, np.empty_like(C) if out is None else out)
    xp = namespace(C)
    scale = unit_scale(reference)
    units = outer(scale)
    scaled, standard = C / units, reference / units
    floored = xp.zeros(C.shape[0], **{**like(C), "dtype": xp.int64})
    # Both in one stack, so that the host waits for the device only once.
    both = cholesky_or_none(xp.concat([scaled, scaled - floor * standard]))
    if both is not None:
        L = both[: C.shape[0], ...]
        inverse = triangular_inverse(L)
    else:
        L0 = stack_factors(standard)
        inverse0 = triangular_inverse(L0)
        shares, floored = lifted(inverse0 @ scaled @ xp.matrix_transpose(inverse0), floor)
        share = stack_factors(shares)
        L = L0 @ share
        C = xp.where((floored > 0)[:, None, None], (L @ xp.matrix_transpose(L)) * units, C)
        inverse = triangular_inverse(share) @ inverse0
    half_log_det = xp.sum(xp.log(xp.linalg.diagonal(L)) + xp.log(scale), axis=-1)
    return xp.matrix_transpose(inverse) / scale[:, :, None], half_log_det, C, floored


def unit_scale(C: Array) -> Array:
    """Return standard deviations of a stack (one for zero); divided by them, C cannot over- or underflow."""
    xp = namespace(C)
    variances = xp.linalg.diagonal(C)
    return xp.sqrt(positive(variances))


def cholesky_or_none(C: Array) -> Array | None:
    """Return the Cholesky factors of a stack, or None if one of its matrices is not positive definite.

    Some libraries raise an error of their own in that case, others return NaN.
    """
    xp = namespace(C)
    if hasattr(xp.linalg, "cholesky_ex"):  # PyTorch: its `cholesky` would make the host wait once more
        L, failed = xp.linalg.cholesky_ex(C)
        return L if math.isfinite(float(xp.sum(L) + xp.where(xp.any(failed != 0), math.nan, 0.0))) else None
    try:
        L = xp.linalg.cholesky(C)
    except Exception as error:
        if "LinAlgError" not in type(error).__name__:
            raise
        return None
    return L if math.isfinite(float(xp.sum(L))) else None


def lifted(C: Array, floor: float) -> tuple[Array, Array]:
    """Return a stack with eigenvalues raised to the floor, and how many were below it in each matrix."""
    xp, n = namespace(C), C.shape[-1]
    if n <= SMALL:
        eigenvalues, V = xp.linalg.eigh(C)
        low = eigenvalues < floor
        number = xp.sum(xp.astype(low, xp.int64), axis=-1)
        mended = (V * xp.where(low, floor, eigenvalues)[:, None, :]) @ xp.matrix_transpose(V)
    else:  # max(C, floor) = floor + (A + |A|) / 2 with A = C - floor: products are fast on devices
        eye = eye_like(C)[None, ...]
        A = C - floor * eye
        sign = matrix_sign(A)
        size = A @ sign
        mended = floor * eye + 0.5 * A + 0.25 * (size + xp.matrix_transpose(size))
        number = xp.astype(xp.round(0.5 * (n - xp.linalg.trace(sign))), xp.int64)
    return xp.where((number > 0)[:, None, None], mended, C), number


def matrix_sign(A: Array) -> Array:
    """Return V sign(lambda) V^T of a stack of symmetric matrices V lambda V^T.

    Newton-Schulz steps X <- a X (3 - a^2 X^2) / 2, each scaled for the interval that the eigenvalues are
    known to be in by then. An eigenvalue below `NEAREST` times the norm may get a sign between -1 and 1,
    which hardly changes |A|.
    """
    xp, eye, low = namespace(A), eye_like(A)[None, ...], NEAREST
    X = A / xp.max(xp.sum(xp.abs(A), axis=-1), axis=-1)[:, None, None]
    while low < 1 - 1e-8:
        a = math.sqrt(3 / (1 + low + low * low))
        X = X @ (1.5 * a * eye - (0.5 * a**3) * (X @ X))
        low = 0.5 * a * low * (3 - a * a * low * low)
    return X @ (1.5 * eye - 0.5 * (X @ X))


def stack_factors(C: Array) -> Array:
    """Return the Cholesky factors of a stack that is positive definite up to rounding."""
    L = cholesky_or_none(C)
    return factors_by_eigenvectors(C) if L is None else L


def factors_by_eigenvectors(C: Array) -> Array:
    """Return the Cholesky factors L of a stack that rounding leaves indefinite: V sqrt(lambda) = L Q."""
    xp = namespace(C)
    eigenvalues, V = xp.linalg.eigh(C)
    largest = xp.max(xp.abs(eigenvalues), axis=-1, keepdims=True)
    least = LEAST * positive(largest)
    roots = xp.sqrt(xp.where(eigenvalues < least, least, eigenvalues))
    R = xp.linalg.qr(xp.matrix_transpose(V * roots[:, None, :]))[1]
    signs = xp.sign(xp.linalg.diagonal(R))  # never zero, because no root is
    return xp.matrix_transpose(R * signs[:, :, None])


def whiten_on_cpu(C: Array, reference: Array, floor: float, W: Array) -> tuple[Array, Array, Array, Array]:
    """Return the same as `whiten`, by LAPACK, class by class; W is written to."""
    half_log_det, mended = np.empty(len(C)), C
    floored = np.zeros(len(C), dtype=np.int64)
    for k, scale in enumerate(unit_scale(reference)):
        units = scale[:, None] * scale
        scaled = np.divide(C[k], units, out=W[k])  # in the place of W: matrices of wide rows are large
        found = factors_above(scaled, reference[k], units, floor)
        if found is None:
            L0, inverse0 = factors_of(reference[k] / units)
            shares = inverse0 @ scaled @ inverse0.T
            if not np.isfinite(shares).all():  # a step that overflowed: its risks will be NaN
                W[k], half_log_det[k] = np.nan, np.nan
                continue
            share, floored[k] = lifted_one(shares, floor)
            L, inverse = factors_of(share)
            L, inverse = L0 @ L, inverse @ inverse0
            found = L.diagonal(), inverse
            if floored[k]:
                mended = C.copy() if mended is C else mended
                with np.errstate(over="ignore"):  # the square of a unit may be near the largest float
                    np.multiply(L @ L.T, units, out=mended[k])
                np.clip(mended[k], -LARGEST, LARGEST, out=mended[k])
        pivots, inverse = found
        half_log_det[k] = np.log(pivots).sum() + np.log(scale).sum()
        np.divide(inverse.T, scale[:, None], out=W[k])
    return W, half_log_det, mended, floored


def factors_above(C: Array, reference: Array, units: Array, floor: float) -> tuple[Array, Array] | None:
    """Return the diagonal of C's Cholesky factor, and the inverse factor; None if C is below the floor.

    That is where C - floor reference is not positive definite, with the reference in the units of C.
    """
    L = factorise(C)
    if L is None:
        return None
    pivots = L.diagonal().copy()
    inverse = inverse_of(L)
    # tr C^-1 = |L^-1|^2 is at least 1 / the least eigenvalue, n at least the largest one of the reference,
    # whose diagonal is one: where their product is small, that proves it.
    proved = np.vdot(inverse, inverse) * len(C) * floor <= 1
    if not proved:
        above = reference / units
        above *= floor
        np.subtract(C, above, out=above)
        if factorise(above) is None:
            return None
    return pivots, inverse


def factorise(C: Array) -> Array | None:
    """Return the Cholesky factor L of a symmetric matrix, C = L L^T; None if C is not positive definite."""
    if len(C) <= SMALL:
        factor, failed = dpotrf(C.T, lower=0, clean=1)
        return None if failed else factor.T
    try:
        return np.linalg.cholesky(C)  # releases the GIL, which SciPy's holds: classes are factored in threads
    except np.linalg.LinAlgError:
        return None


def inverse_of(L: Array) -> Array:
    """Return the inverse of a lower triangle."""
    if len(L) <= SMALL:
        return dtrtri(L.T, lower=0)[0].T
    return inverse_by_halves(L[None])[0]  # products, which release the GIL


def factors_of(C: Array) -> tuple[Array, Array]:
    """Return the Cholesky factor of a matrix that is positive definite up to rounding, and its inverse."""
    L = factorise(C)
    L = factors_by_eigenvectors(C[None])[0] if L is None else L
    return L, inverse_of(L)


def lifted_one(C: Array, floor: float) -> tuple[Array, int]:
    """Return C with eigenvalues raised to the floor, and how many; of a large C only these are computed."""
    if len(C) <= SMALL:
        eigenvalues, V = np.linalg.eigh(C)
        # Not C + a correction: the floor would be lost to rounding beside a very negative eigenvalue.
        return (V * np.maximum(eigenvalues, floor)) @ V.T, int(np.count_nonzero(eigenvalues < floor))
    low, V = eigh(C, subset_by_value=(-np.inf, floor), driver="evr", check_finite=False)
    return C + (V * (floor - low)) @ V.T, len(low)


def triangular_inverse(L: Array) -> Array:
    """Return the inverses of a stack of lower triangles, by the library's solver where it has one."""
    linalg = namespace(L).linalg
    if hasattr(linalg, "solve_triangular"):  # PyTorch
        eye = namespace(L).broadcast_to(eye_like(L)[None, ...], L.shape)
        return linalg.solve_triangular(L, eye, upper=False)
    return inverse_by_halves(L)


def inverse_by_halves(L: Array) -> Array:
    """Return the inverses by [[A, 0], [B, D]]^-1 = [[A^-1, 0], [-D^-1 B A^-1, D^-1]].

    All blocks of one size are inverted at once, in matrix products, which are fast on every device.
    """
    xp, (r, n, _) = namespace(L), L.shape
    if n <= LEAF:
        return xp.linalg.inv(L)
    size, blocks = LEAF, 1
    while size * blocks < n:
        blocks *= 2
    more = size * blocks - n
    if more > 0:  # pad with an identity, up to a size that can be halved
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
    """Return the paper's projection of C: symmetric, with eigenvalues raised to the floor."""
    xp = namespace(C)
    eigenvalues, V = xp.linalg.eigh((C + xp.matrix_transpose(C)) / 2)
    lifted = xp.where(eigenvalues < floor, floor, eigenvalues)
    return (V * lifted[..., None, :]) @ xp.matrix_transpose(V)
