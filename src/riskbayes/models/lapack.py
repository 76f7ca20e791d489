"""LAPACK for lower triangles, called without Python's lock.

`scipy.linalg.lapack` holds the lock during a call, so that threads which factorise the covariances of several
classes wait for each other. The same routines are called here by their address, which SciPy publishes for
Cython; ctypes releases the lock. Matrices are stored by rows. LAPACK, which stores them by columns, sees our
lower triangle as an upper one.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg import cython_lapack
from scipy.linalg.lapack import dpotrf, dtrtri, dtrtrs

from riskbayes.arrays import Array

SMALL = 64
"""Matrices of at most this size are not worth a thread, nor the way by ctypes."""

TEXT, INT, DOUBLE = ctypes.c_char_p, ctypes.POINTER(ctypes.c_int), ctypes.c_void_p
KINDS: dict[str, Any] = {"char *": TEXT, "int *": INT, "d *": DOUBLE}
"""Types of arguments as they end in the signatures that SciPy publishes."""


def factorise(C: Array) -> Array | None:
    """Return the Cholesky factor L of a symmetric matrix, C = L L^T; None if C is not positive definite."""
    call = routine("dpotrf") if len(C) > SMALL else None
    if call is None:
        factor, failed = dpotrf(C.T, lower=0, clean=1)
        return None if failed else factor.T
    L, n, status = np.tril(C), ctypes.c_int(len(C)), ctypes.c_int()
    call(b"U", n, L.ctypes.data, n, status)
    return None if status.value else L


def inverse_of(L: Array, overwrite: bool = False) -> Array:
    """Return the inverse of a lower triangle, in its place if it may be overwritten."""
    call = routine("dtrtri") if len(L) > SMALL else None
    if call is None:
        return dtrtri(L.T, lower=0, overwrite_c=overwrite)[0].T
    inverse = L if overwrite and L.flags.c_contiguous else L.copy(order="C")
    n, status = ctypes.c_int(len(L)), ctypes.c_int()
    call(b"U", b"N", n, inverse.ctypes.data, n, status)
    return inverse


def solve_upper(U: Array, B: Array) -> Array:
    """Return U^-1 B for an upper triangle U."""
    call = routine("dtrtrs") if len(U) > SMALL else None
    if call is None:
        return dtrtrs(U.T, B, lower=1, trans=1)[0]
    # LAPACK reads U, stored by rows, as the lower triangle U^T, and solves with its transpose.
    X, U = np.array(B, order="F"), np.ascontiguousarray(U)
    n, columns, status = ctypes.c_int(len(U)), ctypes.c_int(B.shape[1]), ctypes.c_int()
    call(b"L", b"T", b"N", n, columns, U.ctypes.data, n, X.ctypes.data, n, status)
    return X


@cache
def routine(name: str) -> Any:
    """Return a routine of LAPACK as a function of ctypes; None if its signature is not the expected one."""
    capsule = cython_lapack.__pyx_capi__.get(name)
    if capsule is None:
        return None
    name_of = ctypes.pythonapi.PyCapsule_GetName
    name_of.argtypes, name_of.restype = [ctypes.py_object], ctypes.c_char_p
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.argtypes, pointer_of.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    signature = name_of(capsule)
    arguments = signature.decode().removeprefix("void (").removesuffix(")").split(", ")
    kinds: list[Any] = [next((KINDS[end] for end in KINDS if text.endswith(end)), None) for text in arguments]
    if None in kinds:  # 64-bit integers, for instance
        return None
    return ctypes.CFUNCTYPE(None, *kinds)(pointer_of(capsule, signature))
