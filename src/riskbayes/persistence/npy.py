"""NumPy arrays as the bytes of `.npy` files, of plain dtypes only: no objects, no records, no pickles."""

from __future__ import annotations

import hashlib
import math
import re
from typing import IO, Any

import numpy as np

from riskbayes.arrays import Array
from riskbayes.exceptions import ModelFileError

MAGIC = b"\x93NUMPY\x01\x00"

MOST_AXES = 8

MOST_EMPTY = 2**24
"""Largest axis of an array without entries, whose shape no bytes vouch for."""

DTYPE = re.compile(
    r"\|b1|\|[iu]1|<[iu][248]|<f[248]|<U[1-9][0-9]{0,6}"
    r"|<[Mm]8(\[[0-9]{0,6}(Y|M|W|D|h|m|s|ms|us|ns)\])?"
)
"""The dtypes of a file: booleans, whole numbers, floats, strings, dates and durations, little-endian."""

HEADER = re.compile(
    r"\{'descr': '([^']{2,24})', 'fortran_order': (True|False), "
    r"'shape': \(((?:[0-9]{1,18}, ?){0,64}(?:[0-9]{1,18})?)\), \} *\n"
)
"""The header exactly as NumPy writes it."""

LARGEST_CHARACTER = 0x10FFFF


def dtype_of(text: str) -> np.dtype:
    """Return the dtype of this name; refuse any that files do not hold."""
    if not DTYPE.fullmatch(text):
        raise ModelFileError(f"an array has the dtype {text[:40]!r}, which model files do not hold")
    try:
        return np.dtype(text)
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"an array has the dtype {text[:40]!r}, which NumPy does not know") from error


def is_plain(dtype: np.dtype) -> bool:
    """True if a file can hold arrays of this dtype."""
    return bool(DTYPE.fullmatch(dtype.newbyteorder("<").str))


def write_array(array: Array, file: IO[bytes]) -> str:
    """Write an array to a file, and return the SHA-256 of what was written."""
    found: Array = np.asarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
    fortran = found.flags.f_contiguous and not found.flags.c_contiguous
    head = header_of(found, fortran)
    hashed = hashlib.sha256(head)
    file.write(head)
    flat: Any = np.ascontiguousarray(found.T if fortran else found).reshape(-1)
    body = memoryview(flat.view(np.uint8))
    for start in range(0, len(body), 2**24):  # a stream of chunks needs no second copy
        file.write(body[start : start + 2**24])
    hashed.update(body)
    return hashed.hexdigest()


def header_of(array: Array, fortran: bool) -> bytes:
    """Return the header of an array as NumPy writes it, padded to a multiple of 64 bytes."""
    shape = ", ".join(map(str, array.shape)) + ("," if array.ndim == 1 else "")
    text = f"{{'descr': '{array.dtype.str}', 'fortran_order': {fortran}, 'shape': ({shape}), }}"
    length = len(MAGIC) + 2 + len(text) + 1
    text += " " * (-length % 64) + "\n"
    return MAGIC + len(text).to_bytes(2, "little") + text.encode("ascii")


def read_array(file: Any, size: int, digest: str) -> Array:
    """Return the array of a file of `size` bytes; refuse it if its header, size or SHA-256 do not agree."""
    head = file.read(len(MAGIC) + 2)
    if len(head) < len(MAGIC) + 2 or not head.startswith(MAGIC):
        raise ModelFileError("an array does not begin as a .npy file of version 1 does")
    text = file.read(int.from_bytes(head[-2:], "little"))
    match = HEADER.fullmatch(text.decode("latin-1"))
    if match is None:
        raise ModelFileError("an array has a header that NumPy does not write")
    dtype, fortran = dtype_of(match[1]), match[2] == "True"
    shape = tuple(int(n) for n in match[3].replace(" ", "").split(",") if n)
    if len(shape) > MOST_AXES:
        raise ModelFileError(f"an array has {len(shape)} axes")
    if math.prod(shape) * dtype.itemsize != size - len(head) - len(text):
        raise ModelFileError(f"an array of shape {shape} has another number of bytes than its shape says")
    if (math.prod(shape) == 0 or dtype.itemsize == 0) and max(shape, default=0) > MOST_EMPTY:
        raise ModelFileError(f"an array without entries has the shape {shape}")
    found: Any = np.empty(shape, dtype, order="F" if fortran else "C")
    flat = (found.T if fortran else found).reshape(-1)
    view, at = memoryview(flat.view(np.uint8)), 0
    while at < len(view):
        count = file.readinto(view[at : at + 2**24])
        if not count:
            raise ModelFileError("it is truncated")
        at += count
    hashed = hashlib.sha256(head + text)
    hashed.update(view)
    if hashed.hexdigest() != digest:
        raise ModelFileError("an array is not what was saved (its SHA-256 differs)")
    check_entries(flat)
    return found.astype(dtype.newbyteorder("="), copy=False)


def check_entries(flat: Array) -> None:
    """Refuse bytes that are no value of their dtype: NumPy relies on booleans of 0 and 1."""
    if flat.dtype.kind == "b" and flat.view(np.uint8).max(initial=0) > 1:
        raise ModelFileError("an array of booleans holds other values")
    if flat.dtype.kind == "U" and flat.view("<u4").max(initial=0) > LARGEST_CHARACTER:
        raise ModelFileError("an array of strings holds what is no character")
