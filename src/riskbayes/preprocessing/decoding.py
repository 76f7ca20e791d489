"""Encoded numbers in the types of the user's cells, and as texts."""

from __future__ import annotations

import datetime
from typing import Any


def date_like(date: datetime.datetime, example: Any) -> Any:
    """Return a date in the type of an example: a string in ISO format, a date, or a time in its zone."""
    if isinstance(example, str):
        return date.isoformat(example[10]) if len(example) > 10 else date.date().isoformat()
    if isinstance(example, datetime.datetime):
        zone = example.tzinfo
        return date if zone is None else date.replace(tzinfo=datetime.UTC).astimezone(zone)
    return date.date() if isinstance(example, datetime.date) else date


def number_like(value: float, example: Any) -> Any:
    """Return a number in the type of an example: a duration of days, a time of day, or the number."""
    if isinstance(example, datetime.timedelta):
        return datetime.timedelta(days=value)
    if isinstance(example, datetime.time):
        seconds = min(max(value, 0.0) * 3600, 86399.999999)
        return (datetime.datetime.min + datetime.timedelta(seconds=seconds)).time()
    return value


def shown_number(value: float, kind: str) -> str:
    """Return a number of a column as it is shown; that of a date is in days since 1970."""
    if kind != "date":
        return f"{value:.6g}"
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(days=value)
    return moment.date().isoformat() if value == int(value) else moment.isoformat(" ", "seconds")
