"""The cells of a user's columns, by the kind of their values: numbers, dates, words. Nothing is decided here.

A date becomes a number and the categories weekday, month and hour; one with a time zone is read in UTC.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Real
from typing import Any

import narwhals as nw
import numpy as np

from riskbayes.arrays import Array
from riskbayes.exceptions import ColumnError
from riskbayes.tables import A_PERIOD, composed, is_missing, is_period, plain, shown

ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}(:\d{2}(:\d{2}(\.\d+)?)?)?)?")
"""Strings that are read as dates."""

DAY = np.timedelta64(1, "D") / np.timedelta64(1, "us")

YEARS = -290_000, 290_000
"""Dates before and after these years do not fit the 64 bits of a date in microseconds."""


@dataclass(frozen=True)
class Values:
    """The cells of one column, by the kind of their values."""

    kind: str
    """Numbers (a float64 array), dates (microseconds since 1970 as float64), or words (a list, or an array of
    objects: strings, booleans, or values of a categorical column)."""
    values: Any
    missing: Array
    """A mask of the missing cells."""
    known: list | None = None
    """The distinct values of a column that came with them."""
    places: Array | None = None
    """For each cell its place in `known`."""
    unit: str = "numbers"
    """What numbers were before: numbers, durations (now days), or times of day (now hours)."""
    declared: tuple = ()
    """The categories that a categorical column declares, where integer codes are made of it."""
    column: Any = None
    """The cells as the user has them."""

    @property
    def example(self) -> Any:
        """A cell that is not missing, as a Python value; None if all are missing."""
        if self.missing.all():
            return None
        i, column = int(np.argmin(self.missing)), self.column
        value = column[i : i + 1].to_list()[0] if isinstance(column, nw.Series) else column[i]
        return datetime.timedelta() if isinstance(value, np.timedelta64) else plain(value)

    def as_numbers(self, index: int, name: str, unit: str) -> Array:
        """Return the cells as numbers; refuse infinity, and anything that is not of the unit."""
        if self.missing.all():
            return np.full(len(self.missing), np.nan)
        if self.kind != "numbers" or self.unit != unit:
            now = self.unit if self.kind == "numbers" else self.an_example()
            raise ColumnError(index, f"held {unit} in training and now {now}. Convert it to {unit}.", name)
        if np.isinf(self.values).any():
            raise ColumnError(
                index, "holds infinity. Put a number in its place, or NaN if it is missing.", name
            )
        return self.values

    def as_dates(self, index: int, name: str) -> Array:
        """Return the cells as microseconds since 1970; refuse what is no date."""
        if self.missing.all():
            return np.full(len(self.missing), np.nan)
        found = self.dates()
        if found is None:
            raise ColumnError(index, f"held dates in training and now {self.an_example()}. Convert it.", name)
        return found.values

    def dates(self) -> Values | None:
        """Return the cells as dates; None if they are neither dates nor strings in ISO format."""
        if self.kind == "words":
            return dates_of_strings(self)
        return self if self.kind == "dates" else None

    def as_codes(self, codes: Mapping[Any, float], index: int, name: str | None) -> Array:
        """Return the codes of the cells: the number of `codes` for a value without one, NaN if missing."""
        if self.missing.all():
            return np.full(len(self.missing), np.nan)
        first = self.values[int(np.argmin(self.missing))]
        known = next(iter(codes), first)
        if isinstance(first, str) != isinstance(known, str):
            raise ColumnError(
                index,
                f"held values such as {shown(known)} in training and now {shown(first)}: strings and numbers "
                "are different categories.",
                name,
            )
        get, unseen = codes.get, len(codes)
        if self.known is not None:
            found = np.array([get(value, unseen) for value in self.known], np.float64)[self.places]
        else:
            values = self.values.tolist() if isinstance(self.values, np.ndarray) else self.values
            found = np.fromiter((get(value, unseen) for value in values), np.float64, len(values))
        found[self.missing] = np.nan
        return found

    def as_kind(self, kind: str, index: int, name: str) -> Values:
        """Return the cells as what the user says that they are; refuse a cell that is not."""
        if kind == "date" and not self.missing.all():
            found = self.dates()
            if found is None:
                raise not_of_kind(index, name, self.an_example(), "date in ISO format")
            return found
        if kind != "number" or self.kind == "numbers" or self.missing.all():
            return self
        if self.kind == "dates":
            raise not_of_kind(index, name, self.an_example(), kind)
        values = np.full(len(self.missing), np.nan)
        for i in np.flatnonzero(~self.missing).tolist():
            try:
                values[i] = float(self.values[i])
            except (TypeError, ValueError):
                raise not_of_kind(index, name, shown(self.values[i]), kind) from None
        return numbers(values)

    def distinct(self) -> set:
        """Return the distinct cells that are not missing, of a column of words."""
        if self.known is None or self.places is None:
            found = set(self.values)
        else:
            found = {self.known[i] for i in np.flatnonzero(np.bincount(self.places)).tolist()}
        return {value for value in found if not is_missing(value) and value != ""}

    def rows(self, chosen: Array) -> Values:
        """Return the cells of these indices."""
        values = self.values
        values = [values[i] for i in chosen.tolist()] if isinstance(values, list) else values[chosen]
        places = None if self.places is None else self.places[chosen]
        missing, column = self.missing[chosen], self.column[chosen]
        return replace(self, values=values, missing=missing, places=places, column=column)

    def an_example(self) -> str:
        """Return a value that is not missing, for a message."""
        value = self.values[int(np.argmax(~self.missing))]
        return f"a {self.kind[:-1]}" if self.kind == "dates" else shown(value)


def not_of_kind(index: int, name: str, cell: str, kind: str) -> ColumnError:
    """Return the error for a cell that is not what the user says of its column."""
    return ColumnError(
        index, f"holds {cell}, which is no {kind} as `columns` says. Correct it, or name another kind.", name
    )


def unit_of(example: Any) -> str:
    """Return the unit of a column of numbers by one of its cells, as `Values.unit` says it."""
    if isinstance(example, datetime.timedelta):
        return "durations"
    return "times of day" if isinstance(example, datetime.time) else "numbers"


def columns_of(X: Any) -> Iterator[Any]:
    """Yield the columns of an array or a data frame."""
    if isinstance(X, np.ndarray):
        yield from (X[:, j] for j in range(X.shape[1]))
    else:
        yield from nw.from_native(X, eager_only=True).iter_columns()


def read_column(column: Any, j: int, name: str) -> Values:
    """Return the cells of a column; refuse kinds that no model takes."""
    if isinstance(column, np.ndarray):
        return read_array(column, j, name)
    dtype = column.dtype
    if dtype.is_numeric():
        values = column.cast(nw.Float64) if column.null_count() else column
        return numbers(np.array(values.to_numpy(), dtype=np.float64))
    if dtype == nw.Datetime and dtype.time_zone is not None:
        column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    if dtype in (nw.Datetime, nw.Date):
        dates = column.to_numpy()
        dates = dates.tolist() if dates.dtype.kind == "O" else dates
        return read_dates(dates, j, name, (datetime.MINYEAR, datetime.MAXYEAR))
    if isinstance(dtype, nw.List | nw.Struct | nw.Array | nw.Binary):
        raise ColumnError(j, f"holds values of type {dtype}: {ACCEPTED}", name)
    is_arrow, categorical = column.implementation.is_pyarrow(), isinstance(dtype, nw.Categorical | nw.Enum)
    if is_arrow and (categorical or str(column.to_native().type) in ("string", "large_string")):
        return read_arrow_words(column.to_native())
    if categorical:  # of any values, numbers too
        values = composed(column.to_list())
        return Values("words", values, missing_of(values))
    return read_values(column.to_list(), j, name)


def read_arrow_words(column: Any) -> Values:
    """Return the cells of a column of strings or categories of Arrow, each of which is looked at once."""
    coded = column.dictionary_encode().unify_dictionaries().combine_chunks()
    known = [*composed(coded.dictionary.to_pylist()), None]
    codes = coded.indices.cast("int64").fill_null(len(known) - 1).to_numpy()  # int8 may not hold one more
    return Values("words", np.array(known, dtype=object)[codes], missing_of(known)[codes], known, codes)


ACCEPTED = "a column holds numbers, strings, booleans or dates. Split it into such columns, or drop it."


def read_array(column: Array, j: int, name: str) -> Values:
    """Return the cells of a column of a NumPy array."""
    kind = column.dtype.kind
    if kind in "iuf":
        return numbers(column.astype(np.float64))
    if kind == "m":
        return numbers(to_numbers(column.astype("timedelta64[us]")) / DAY, "durations")
    if kind == "M":
        return read_dates(column, j, name)
    return read_values(column.tolist(), j, name)


def read_values(values: list, j: int, name: str) -> Values:
    """Return the cells of a column of Python objects, which must be of one kind, and of missing values."""
    kinds = set(map(type, values))
    if kinds <= {str}:
        values = composed(values)
        return Values("words", values, np.fromiter((value == "" for value in values), bool, len(values)))
    missing = missing_of(values)
    held = [None if gone else value for value, gone in zip(values, missing, strict=True)]
    present = [value for value in held if value is not None]
    kinds = set(map(type, present))

    def all_are(*of: type) -> bool:
        return all(issubclass(kind, of) for kind in kinds)

    if all_are(str) or all_are(bool, np.bool_):
        return Values("words", composed(values), missing)
    if all_are(Real, Decimal) and bool not in kinds:
        return numbers(np.array([math.nan if v is None else as_float(v, j, name) for v in held]))
    if all_are(datetime.date, np.datetime64):
        return read_dates(held, j, name)
    if all_are(datetime.time):
        times = (v.hour + v.minute / 60 + (v.second + v.microsecond / 1e6) / 3600 for v in present)
        hours = np.full(len(held), np.nan)
        hours[~missing] = list(times)
        return numbers(hours, "times of day")
    if all_are(datetime.timedelta, np.timedelta64):
        return numbers(to_numbers(np.array(held, dtype="timedelta64[us]")) / DAY, "durations")
    usual = str | bool | Real | datetime.date
    odd = next((v for v in present if not isinstance(v, usual)), None)
    if is_period(odd):
        raise ColumnError(j, f"holds {shown(odd)}{A_PERIOD}", name)
    if odd is not None:
        raise TypeError(
            f"Column {name!r} holds {shown(odd)}: each argument must be a string or a number, a boolean or a "
            "date. Split it into such columns, or drop it."
        )
    other = next(v for v in present if type(v) is not type(present[0]))
    raise ColumnError(
        j,
        f"holds {shown(present[0])} and {shown(other)}: values of one kind are needed. Convert all of them, "
        "for instance to strings.",
        name,
    )


def as_float(value: Any, j: int, name: str) -> float:
    """Return a number as a float; refuse one that is too large."""
    try:
        return float(value)
    except OverflowError:
        raise ColumnError(
            j, f"holds {shown(value)}, too large for a floating-point number. Scale the column.", name
        ) from None


def declared_categories(column: Any) -> tuple:
    """Return the categories that a column declares, also those without a row: of pandas, and of an Enum."""
    dtype = getattr(column, "dtype", None)
    if isinstance(dtype, nw.Enum):
        known = list(dtype.categories)
    elif isinstance(dtype, nw.Categorical):
        known = list(getattr(getattr(column.to_native(), "cat", None), "categories", ()))  # pandas
    else:
        return ()
    return tuple(value for value in dict.fromkeys(composed(known)) if value != "")


def missing_of(values: list) -> Array:
    """Return a mask of the missing cells among Python objects: missing values and empty strings."""
    return np.fromiter((is_missing(value) or value == "" for value in values), bool, len(values))


def numbers(values: Array, unit: str = "numbers") -> Values:
    """Return the cells of a column of numbers."""
    return Values("numbers", values, np.isnan(values), unit=unit)


def read_dates(values: Any, j: int, name: str, within: tuple[int, int] = YEARS) -> Values:
    """Return the cells of a column of dates; refuse dates outside of these years."""
    try:
        held = [in_utc(value) for value in values] if isinstance(values, list) else values
        years = np.array(held, dtype="datetime64[Y]")
        years, dates = years[~np.isnat(years)].astype(np.int64) + 1970, np.array(held, dtype="datetime64[us]")
    except (OverflowError, ValueError):
        years, dates = np.empty(0), None
    if dates is None or (years < within[0]).any() or (years > within[1]).any():
        raise ColumnError(
            j, "holds a date too far from the present to be a number. Correct or drop it.", name
        )
    found = to_numbers(dates)
    return Values("dates", found, np.isnan(found))


def in_utc(value: Any) -> Any:
    """Return a date and time without its time zone, in UTC: equal instants are equal in every zone."""
    if is_missing(value):
        return None
    zoned = getattr(value, "tzinfo", None) is not None
    return value.astimezone(datetime.UTC).replace(tzinfo=None) if zoned else value


def to_numbers(values: Array) -> Array:
    """Return dates or durations in microseconds as float64; NaT is NaN."""
    return np.where(np.isnat(values), np.nan, values.astype(np.int64).astype(np.float64))


def dates_of_strings(found: Values) -> Values | None:
    """Return a column of strings as dates if all of them are dates in ISO format; None otherwise."""
    words = found.distinct()
    if not words or not all(isinstance(word, str) and ISO_DATE.fullmatch(word) for word in words):
        return None
    try:
        dates = np.array(
            ["NaT" if gone else v for v, gone in zip(found.values, found.missing, strict=True)],
            dtype="datetime64[us]",
        )
    except ValueError:  # a month 13
        return None
    return Values("dates", to_numbers(dates), found.missing)


PARTS = ("number", "weekday", "month", "hour")
"""What is made of a date, where it varies."""


def part_of_date(dates: Array, part: str) -> Array:
    """Return a part of dates in microseconds since 1970: days since then, or a code; NaN stays NaN."""
    days = dates / DAY
    if part == "number":
        return days
    if part == "weekday":
        return (np.floor(days) + 3) % 7  # 1970 began on a Thursday; Monday is 0
    if part == "hour":
        return np.floor(dates % DAY / (DAY / 24))
    known = ~np.isnan(dates)
    months = np.full(len(dates), np.nan)
    whole = dates[known].astype(np.int64).astype("datetime64[us]").astype("datetime64[M]")
    months[known] = whole.astype(np.int64) % 12
    return months


def days_of_parts(parts: dict[str, Array], extent: tuple[float, float]) -> Array:
    """Return days since 1970 near the days `number`, of the given months, weekdays and hours.

    A model draws the parts of a date independently of each other. The month moves the day to a year in which
    it is between the first and last day of training, or closest to that; the weekday by a few days within the
    month; the hour within the day.
    """
    known = ~np.isnan(parts["number"])
    number = parts["number"][known]
    day, clock = np.floor(number), number % 1
    if "month" in parts:
        wanted = parts["month"][known].astype(np.int64)
        dates = day.astype(np.int64).astype("datetime64[D]")
        place, found = dates - dates.astype("datetime64[M]"), []
        for years in (0, -1, 1):
            month = (dates.astype("datetime64[Y]") + years).astype("datetime64[M]") + wanted
            first, last = month.astype("datetime64[D]"), (month + 1).astype("datetime64[D]") - 1
            found.append(np.minimum(first + place, last).astype(np.int64).astype(np.float64))
        moved = np.stack(found)
        outside = np.maximum(np.maximum(np.floor(extent[0]) - moved, moved - extent[1]), 0.0)
        best = np.lexsort((np.abs(moved - day), outside), axis=0)[0]
        day = moved[best, np.arange(len(day))]
    if "weekday" in parts:
        step = (parts["weekday"][known] - (day + 3) % 7 + 3) % 7 - 3
        other = part_of_date((day + step) * DAY, "month") != part_of_date(day * DAY, "month")
        day = day + np.where(other & ("month" in parts), step - 7 * np.sign(step), step)
    if "hour" in parts:
        clock = (parts["hour"][known] + clock * 24 % 1) / 24
    found_days = np.full(len(known), np.nan)
    found_days[known] = day + clock
    return found_days


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
