"""One way to write for NumPy and for every library of the Array API standard.

The formulas of the models take whatever arrays they are given, and stay on their device. What the
standard lacks, or what NumPy does faster in its own way, is here.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

Array = Any  # an array of any namespace


_NAMESPACES: dict[type, Any] = {np.ndarray: np}


def namespace(x: Array) -> Any:
    """The library of an array: NumPy itself, or what array-api-compat makes of another one."""
    kind = type(x)
    found = _NAMESPACES.get(kind)
    if found is None:
        if isinstance(x, np.ndarray | np.generic):
            found = np
        else:
            from array_api_compat import array_namespace  # who has NumPy arrays only need not wait for it

            found = array_namespace(x)
        _NAMESPACES[kind] = found
    return found


def like(x: Array) -> dict[str, Any]:
    """Arguments that make a new array of the kind and on the device of x."""
    if isinstance(x, np.ndarray):
        return {"dtype": x.dtype}
    from array_api_compat import device

    return {"dtype": x.dtype, "device": device(x)}


def device_of(x: Array) -> Any:
    """Where an array lives."""
    return like(x).get("device", "cpu")


def sum_of(x: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """The sum; NumPy's own wrapper costs more than the sum of a small array."""
    if isinstance(x, np.ndarray):
        return np.add.reduce(x, axis=axis, keepdims=keepdims)  # type: ignore[call-overload]
    return namespace(x).sum(x, axis=axis, keepdims=keepdims)


def max_of(x: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """The maximum."""
    if isinstance(x, np.ndarray):
        return np.maximum.reduce(x, axis=axis, keepdims=keepdims)  # type: ignore[call-overload]
    return namespace(x).max(x, axis=axis, keepdims=keepdims)


def as_kind(x: Array, dtype: Any) -> Array:
    """x in another precision; x itself where it has it."""
    return x if x.dtype == dtype else namespace(x).astype(x, dtype)


def widest_float(x: Array) -> Any:
    """float64, or float32 on a device that has no wider one."""
    if isinstance(x, np.ndarray):
        return np.float64
    xp = namespace(x)
    known = xp.__array_namespace_info__().dtypes(device=device_of(x), kind="real floating")
    return known.get("float64", xp.float32)


def widened(x: Array) -> Array:
    """x in the precision that statistics are kept in."""
    return as_kind(x, widest_float(x))


def own_precision(x: Array) -> Any:
    """What rows are computed in: the user's floating type, else the widest."""
    return x.dtype if namespace(x).isdtype(x.dtype, "real floating") else widest_float(x)


def eps_of(x: Array) -> float:
    """Return the relative spacing of the floating-point numbers that rows like x are computed in."""
    if isinstance(x, np.ndarray):
        return EPS32 if x.dtype == np.float32 else EPS64
    return float(namespace(x).finfo(own_precision(x)).eps)


EPS32, EPS64 = float(np.finfo(np.float32).eps), float(np.finfo(np.float64).eps)


def is_false(mask: Array) -> bool:
    """True if the host knows that no entry is True; on a device it does not ask, which would be a wait."""
    return isinstance(mask, np.ndarray) and not np.count_nonzero(mask)


def sent_to(values: Any, x: Array) -> Array:
    """Values as an array of x's library, on its device, in the widest precision if they are no integers."""
    xp = namespace(x)
    host = np.asarray(values)
    if xp is np:
        return host
    host = host if host.flags.writeable else host.copy()  # some libraries share its memory
    kind = widest_float(x) if host.dtype.kind == "f" else xp.int64
    return xp.asarray(host, dtype=kind, device=device_of(x))


def to_numpy(x: Array) -> Array:
    """A copy on the host."""
    if isinstance(x, np.ndarray):
        return x
    from sklearn.utils._array_api import _convert_to_numpy

    return _convert_to_numpy(x, namespace(x))


def at_labels(A: Array, y: Array) -> Array:
    """A[i, y[i]] of every row i."""
    if isinstance(A, np.ndarray):
        return A[np.arange(len(y)), y]
    if hasattr(A, "gather"):  # PyTorch, as in `take`
        return A.gather(1, y[:, None])[:, 0]
    return namespace(A).take_along_axis(A, y[:, None], axis=1)[:, 0]


def label_rows(y: Array, n_classes: int, values: Array | None, dtype: Any) -> Array:
    """Rows that hold values[i] (one where None) at y[i] and zero elsewhere."""
    xp = namespace(y)
    if xp is np:
        Y = np.zeros((n_classes, len(y)), dtype=dtype).T
        Y[np.arange(len(y)), y] = 1.0 if values is None else values
        return Y
    hot = y[:, None] == xp.arange(n_classes, dtype=y.dtype, device=device_of(y))[None, :]
    Y = xp.astype(hot, dtype)
    return Y if values is None else Y * as_kind(values, dtype)[:, None]


def squared_norms(z: Array) -> Array:
    """|z_i|^2 of every row."""
    if isinstance(z, np.ndarray):
        return np.einsum("ij,ij->i", z, z)
    # One pass on a GPU, where a product and its sum are two.
    return namespace(z).linalg.vector_norm(z, axis=1) ** 2


def rows_above(size: Array, least: Any) -> Array | None:
    """Indices of the rows whose size is above `least`, or None when most of them are."""
    xp = namespace(size)
    rows = xp.nonzero(size > least)[0]
    return rows if rows.shape[0] <= 0.75 * size.shape[0] else None


def is_all(rows: Any, m: int) -> bool:
    """Whether a choice among m rows is a slice of them all."""
    return isinstance(rows, slice) and rows.start == 0 and rows.stop == m


def take_rows(A: Array, rows: Array) -> Array:
    """A[rows], for indices on A's device."""
    if isinstance(A, np.ndarray):
        return A[rows]
    return take(A, rows, 0)


def rows_of(A: Array, rows: Array | slice) -> Array:
    """Return some rows of A, by a slice or by indices on A's device."""
    return A[rows, ...] if isinstance(rows, slice) else take_rows(A, rows)


def take(A: Array, indices: Array, axis: int) -> Array:
    """Some rows or columns of A."""
    if hasattr(A, "index_select"):  # PyTorch: the detour over `take` costs more than the copy of few rows
        return A.index_select(axis, indices)
    return namespace(A).take(A, indices, axis=axis)


def converted(value: Any, converter: Any) -> Any:
    """A value whose arrays went through `converter`: dataclasses and what has a `converted` of its own."""
    if hasattr(value, "converted"):
        return value.converted(converter)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{f.name: converted(getattr(value, f.name), converter) for f in fields(value)})
    return converter(value) if hasattr(value, "__dlpack__") else value
