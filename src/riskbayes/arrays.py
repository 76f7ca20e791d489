"""Array functions that serve NumPy and every library of the Array API standard (PyTorch, CuPy, JAX).

The formulas of the models take whatever arrays they are given, and stay on their device. Here is what the
standard lacks, and what NumPy does faster by functions of its own.
"""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse

Array = Any
"""An array of any library. Tables of counts may also be CSR arrays of SciPy."""

EPS32, EPS64 = float(np.finfo(np.float32).eps), float(np.finfo(np.float64).eps)

_NAMESPACES: dict[type, Any] = {np.ndarray: np}
"""Namespaces by type of array, looked up once."""


_WIDEST: dict[tuple[str, str], Any] = {}
"""The widest float by library and device: PyTorch is asked by making an array of every dtype."""


def namespace(x: Array) -> Any:
    """Return the namespace of an array: NumPy, or that of its library as array-api-compat completes it."""
    found = _NAMESPACES.get(type(x))
    if found is None:
        if isinstance(x, np.ndarray | np.generic) or issparse(x):  # SciPy's, which is made of NumPy arrays
            found = np
        else:
            from array_api_compat import array_namespace  # slow to import, and not needed for NumPy

            found = array_namespace(x)
        _NAMESPACES[type(x)] = found
    return found


def like(x: Array) -> dict[str, Any]:
    """Return the arguments `dtype` and `device` for a new array like x."""
    if namespace(x) is np:
        return {"dtype": x.dtype}
    from array_api_compat import device

    return {"dtype": x.dtype, "device": device(x)}


def device_of(x: Array) -> Any:
    """Return the device of an array; "cpu" for NumPy."""
    return like(x).get("device", "cpu")


def sum_of(x: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """Return the sum; the ufunc is called because `np.sum` costs more than the sum of a small array."""
    if isinstance(x, np.ndarray):
        return np.add.reduce(x, axis=axis, keepdims=keepdims)  # type: ignore[call-overload]
    return namespace(x).sum(x, axis=axis, keepdims=keepdims)


def max_of(x: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """Return the maximum, as fast for small arrays as `sum_of`."""
    if isinstance(x, np.ndarray):
        return np.maximum.reduce(x, axis=axis, keepdims=keepdims)  # type: ignore[call-overload]
    return namespace(x).max(x, axis=axis, keepdims=keepdims)


def astype(x: Array, dtype: Any) -> Array:
    """Cast x to a dtype; return x itself where it has that dtype."""
    return x if x.dtype == dtype else namespace(x).astype(x, dtype)


def widest_float(x: Array) -> Any:
    """Return float64, or float32 where the device of x has no float64."""
    xp = namespace(x)
    if xp is np or x.dtype == xp.float64:
        return xp.float64
    key = xp.__name__, str(device_of(x))
    if key not in _WIDEST:
        known = xp.__array_namespace_info__().dtypes(device=device_of(x), kind="real floating")
        _WIDEST[key] = known.get("float64", xp.float32)
    return _WIDEST[key]


def to_widest(x: Array) -> Array:
    """Cast x to the dtype that statistics have: the widest float of its device."""
    if isinstance(x, np.ndarray):
        return x.astype(np.float64, copy=False)
    return astype(x, widest_float(x))


def float_dtype(x: Array) -> Any:
    """Return the dtype that rows like x are computed in: their own if it is floating, else the widest."""
    return x.dtype if namespace(x).isdtype(x.dtype, "real floating") else widest_float(x)


def eps_of(x: Array) -> float:
    """Return the machine epsilon of the dtype that rows like x are computed in."""
    if isinstance(x, np.ndarray):
        return EPS32 if x.dtype == np.float32 else EPS64
    return float(namespace(x).finfo(float_dtype(x)).eps)


def known_all_false(mask: Array) -> bool:
    """True if no entry of a NumPy mask is True. False on a device: to read the mask, the host would wait."""
    return isinstance(mask, np.ndarray) and not np.count_nonzero(mask)


def to_device(values: Any, x: Array) -> Array:
    """Return values as an array of the library and on the device of x: int64, or the widest float."""
    xp = namespace(x)
    host = np.asarray(values)
    if xp is np:
        return host
    host = host if host.flags.writeable else host.copy()  # some libraries share its memory
    kind = widest_float(x) if host.dtype.kind == "f" else xp.int64
    return xp.asarray(host, dtype=kind, device=device_of(x))


def to_numpy(x: Array) -> Array:
    """Return x as a NumPy array: x itself if it is one, else a copy on the host."""
    if isinstance(x, np.ndarray):
        return x
    from sklearn.utils._array_api import _convert_to_numpy

    return _convert_to_numpy(x, namespace(x))


def at_labels(A: Array, y: Array) -> Array:
    """Return A[i, y[i]] for every row i."""
    if isinstance(A, np.ndarray):
        return A[np.arange(len(y)), y]
    if hasattr(A, "gather"):  # PyTorch, as in `take`
        return A.gather(1, y[:, None])[:, 0]
    return namespace(A).take_along_axis(A, y[:, None], axis=1)[:, 0]


def with_labels(A: Array, y: Array, values: Any) -> Array:
    """Return A with values[i], or one number, in the place of A[i, y[i]] for every row i."""
    if isinstance(A, np.ndarray):
        A = A.copy()
        A[np.arange(len(y)), y] = values
        return A
    if hasattr(A, "scatter"):  # PyTorch: one launch
        return A.scatter(1, y[:, None], values if isinstance(values, float) else values[:, None])
    label = one_hot(y, A.shape[1], None, namespace(A).bool)
    return namespace(A).where(label, values if isinstance(values, float) else values[:, None], A)


def clip_below(x: Array, least: float) -> Array:
    """Return x with entries of at least `least`; NaN stays."""
    if isinstance(x, np.ndarray):
        return np.maximum(x, least)
    if hasattr(x, "clamp"):  # PyTorch, where `clip` of array-api-compat is several launches
        return x.clamp(min=least)
    return namespace(x).where(x < least, least, x)


def positive(x: Array) -> Array:
    """Return x with one in the place of what is not above zero: divisors and units."""
    return namespace(x).where(x > 0, x, 1.0)


def has_missing(X: Array) -> bool:
    """True if a dense table of finite numbers has NaN in it; the sum of finite numbers never is NaN."""
    with np.errstate(over="ignore", invalid="ignore"):
        return math.isnan(float(sum_of(X)))


def add_scaled(x: Array, factor: float, other: Array) -> Array:
    """Return x + factor * other."""
    if hasattr(x, "addcmul"):  # PyTorch: one launch
        return x.add(other, alpha=factor)
    return x + factor * other


def one_hot(y: Array, n_classes: int, values: Array | None, dtype: Any) -> Array:
    """Return one-hot rows of the labels y, row i times values[i] if values are given."""
    xp = namespace(y)
    if xp is np:
        Y = np.zeros((n_classes, len(y)), dtype=dtype).T
        Y[np.arange(len(y)), y] = 1.0 if values is None else values
        return Y
    Y = astype(y[:, None] == xp.arange(n_classes, **like(y))[None, :], dtype)
    return Y if values is None else Y * astype(values, dtype)[:, None]


def eye_like(C: Array) -> Array:
    """Return the identity in the size, dtype and device of C."""
    return namespace(C).eye(C.shape[-1], **like(C))


def outer(v: Array) -> Array:
    """Return v v^T for each row of v."""
    return v[..., :, None] * v[..., None, :]


def squared_norms(z: Array) -> Array:
    """Return |z_i|^2 of every row."""
    if isinstance(z, np.ndarray):
        return np.einsum("ij,ij->i", z, z)
    # One pass on a GPU, where a product and then a sum would be two.
    return namespace(z).linalg.vector_norm(z, axis=1) ** 2


def rows_above(size: Array, least: Any) -> Array | None:
    """Return the indices of the rows whose size is above `least`; None if those are most of the rows."""
    rows = namespace(size).nonzero(size > least)[0]
    return rows if rows.shape[0] <= 0.75 * size.shape[0] else None


def take_rows(A: Array, rows: Array | slice) -> Array:
    """Return A[rows], for a slice or for indices on the device of A."""
    if namespace(A) is np:
        return A[rows]
    return A[rows, ...] if isinstance(rows, slice) else take(A, rows, 0)


def row_width(X: Array) -> float:
    """Return how many values a table stores for each row, on average."""
    return X.nnz / max(1, X.shape[0]) if issparse(X) else X.shape[1]


def largest_of_columns(X: Array) -> Array:
    """Return the largest value of each column of a NumPy array, but for NaN."""
    return reduce_columns(X, np.fmax.reduce if X.dtype.kind == "f" else np.maximum.reduce)


def reduce_columns(X: Array, reduce: Any) -> Array:
    """Return `reduce`, such as np.fmax.reduce, of each column of a NumPy array.

    Rows are compared in lines of 64: over few columns NumPy is then several times as fast.
    """
    m, n = X.shape
    if not X.flags.c_contiguous or m < 128:
        return reduce(X, axis=0)
    lines = reduce(X[: m - m % 64].reshape(-1, 64 * n), axis=0).reshape(64, n)
    return reduce(np.concatenate([lines, X[m - m % 64 :]]), axis=0)


def dense_row(X: Array, i: int) -> Array:
    """Return row i of a table, sparse or not, as a dense NumPy array of one axis."""
    return X[i : i + 1].toarray()[0] if issparse(X) else to_numpy(X[i, :])


def take(A: Array, indices: Array, axis: int) -> Array:
    """Return the rows (axis 0) or columns (axis 1) of A at these indices."""
    if hasattr(A, "index_select"):  # PyTorch, where `take` of array-api-compat is slower
        return A.index_select(axis, indices)
    return namespace(A).take(A, indices, axis=axis)


def converted(value: Any, converter: Any) -> Any:
    """Apply `converter` to every array in a value: an array, a dataclass, or an object with `converted`."""
    if hasattr(value, "converted"):
        return value.converted(converter)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{f.name: converted(getattr(value, f.name), converter) for f in fields(value)})
    return converter(value) if hasattr(value, "__dlpack__") else value
