"""Plain values that JSON lacks: scalars of NumPy, dates, times, durations, decimals, bytes, odd floats."""

from __future__ import annotations

import base64
import datetime
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from riskbayes.exceptions import ModelFileError
from riskbayes.persistence.npy import dtype_of, is_plain

ZONE = re.compile(r"[A-Za-z0-9_+-]{1,40}(/[A-Za-z0-9_+-]{1,40}){0,3}")
"""Names of time zones."""


def write_scalar(value: np.generic) -> list:
    """Return a NumPy scalar as its dtype and its value."""
    if not is_plain(value.dtype):
        raise ModelFileError(f"a NumPy scalar of dtype {value.dtype}")
    dtype = value.dtype.newbyteorder("<").str
    if value.dtype.kind in "Mm":
        return [dtype, int(value.astype(np.int64))]
    found = value.item()
    return [dtype, write_float(found) if isinstance(found, float) else found]


def read_scalar(node: Any) -> Any:
    """Return the scalar of `write_scalar`."""
    name, value = pair(node)
    dtype = dtype_of(name) if isinstance(name, str) else dtype_of("")
    if dtype.kind == "f":
        return dtype.type(read_float(value))
    if type(value) is not {"b": bool, "U": str}.get(dtype.kind, int):
        raise ModelFileError(f"a scalar of dtype {name} holds {type(value).__name__}")
    if dtype.kind in "Mm":
        return np.array(value, np.int64).view(dtype)[()]
    limits: Any = np.iinfo(dtype) if dtype.kind in "iu" else None
    if limits is not None and not limits.min <= value <= limits.max:
        raise ModelFileError(f"a scalar of dtype {name} is out of its range")
    return dtype.type(value)


def write_float(value: float) -> float | str:
    """Return a float as JSON holds it: NaN and infinities as strings."""
    return value if np.isfinite(value) else str(value)


def read_float(value: Any) -> float:
    """Return the float of `write_float`."""
    if type(value) is str and value in ("nan", "inf", "-inf"):
        return float(value)
    if type(value) not in (float, int):
        raise ModelFileError(f"{type(value).__name__} stands in place of a float")
    return float(value)


def write_datetime(value: datetime.datetime) -> list:
    """Return a date with a time and its zone; of pandas' Timestamp, what is in a datetime."""
    plain = datetime.datetime(
        *(value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond)
    )
    return [plain.isoformat(), write_zone(value.tzinfo)]


def read_datetime(node: Any) -> datetime.datetime:
    """Return the date of `write_datetime`."""
    text, zone = pair(node)
    return datetime.datetime.fromisoformat(text).replace(tzinfo=read_zone(zone))


def write_time(value: datetime.time) -> list:
    """Return a time of the day and its zone."""
    return [value.replace(tzinfo=None).isoformat(), write_zone(value.tzinfo)]


def read_time(node: Any) -> datetime.time:
    """Return the time of `write_time`."""
    text, zone = pair(node)
    return datetime.time.fromisoformat(text).replace(tzinfo=read_zone(zone))


def write_zone(zone: datetime.tzinfo | None) -> Any:
    """Return a time zone as its name, or as its seconds from UTC."""
    if zone is None:
        return None
    name = getattr(zone, "key", None) or getattr(zone, "zone", None)  # of zoneinfo and of pytz
    if isinstance(name, str) and ZONE.fullmatch(name):
        return name
    offset = zone.utcoffset(None)
    if offset is None:
        raise ModelFileError(f"a time zone of {type(zone).__module__}, of which the name is not known")
    return offset.total_seconds()


def read_zone(zone: Any) -> datetime.tzinfo | None:
    """Return the time zone of `write_zone`."""
    if zone is None:
        return None
    if isinstance(zone, str):
        if not ZONE.fullmatch(zone):
            raise ModelFileError(f"{zone[:40]!r} is no time zone")
        return ZoneInfo(zone)
    return datetime.timezone(datetime.timedelta(seconds=read_float(zone)))


def read_duration(node: Any) -> datetime.timedelta:
    """Return the duration of `write_duration`."""
    if not isinstance(node, list) or [type(part) for part in node] != [int] * 3:
        raise ModelFileError("a duration is not three whole numbers")
    return datetime.timedelta(*node)


def read_bytes(node: Any) -> bytes:
    """Return bytes from base64."""
    return base64.b64decode(text_of(node), validate=True)


def read_decimal(node: Any) -> Decimal:
    """Return a decimal number."""
    if len(text_of(node)) > 100:
        raise ModelFileError("a decimal number is too long")
    return Decimal(node)


def text_of(node: Any) -> str:
    """Return a string; refuse another value."""
    if type(node) is not str:
        raise ModelFileError(f"{type(node).__name__} stands in place of a string")
    return node


def pair(node: Any) -> list[Any]:
    """Return a list of two; refuse another value."""
    if not isinstance(node, list) or len(node) != 2:
        raise ModelFileError("a value is not a pair")
    return node


KINDS: dict[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "scalar": (np.generic, write_scalar, read_scalar),
    "float": (float, str, read_float),
    "bytes": (bytes, lambda value: base64.b64encode(value).decode("ascii"), read_bytes),
    "decimal": (Decimal, str, read_decimal),
    "datetime": (datetime.datetime, write_datetime, read_datetime),
    "date": (datetime.date, datetime.date.isoformat, lambda node: datetime.date.fromisoformat(text_of(node))),
    "time": (datetime.time, write_time, read_time),
    "duration": (
        datetime.timedelta,
        lambda value: [value.days, value.seconds, value.microseconds],
        read_duration,
    ),
}
"""The type of each kind, how it is written and how it is read; a value is of the first kind that fits."""
