"""How the cells of a column are written, and cells as values: the only way in which text becomes numbers.

A notation is decided once, from all cells of a column (`deciding.py`), stored with the model, and applied
unchanged to every file after. A cell that does not fit it is found, never read in another way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from typing import Any, Self

import numpy as np

from riskbayes.arrays import Array
from riskbayes.input.files.arrow import pa, pc

NUMBER, DATE, TIME, FLAG = "number", "date", "time", "flag"
TEXT, PRESENT, UNREAD = "text", "present", "unread"
"""How a cell is read: as a number, a date, a time of day, true or false, text, "there or missing", or not."""

MISSING = frozenset(
    ("", "?", "#N/A", "#N/A N/A", "#NA", "<NA>", "N/A", "NA", "n/a", "NULL", "null", "None", "NaN", "nan")
) | frozenset(("-NaN", "-nan", "1.#IND", "1.#QNAN", "-1.#IND", "-1.#QNAN"))
"""Cells that are missing: those of pandas, and the question mark of the UCI repository."""

DASHES = frozenset(
    ("-", "--", "\u2013", "\u2014", ".", "..", "...", "n.a.", "N.A.", "k.A.", "k. A.", "n.d.", "s/d", "nd")
) | frozenset(("#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#WERT!", "#BEZUG!"))
"""Cells that are missing too in a column of numbers, dates, times or flags; words are left as they are."""

YES = "yes y true t on ja j wahr oui o vrai si s\u00ed s sim verdadero vero tak da"
NO = "no n false f off nein falsch non faux n\u00e3o nao falso nie nee"
TRUE, FALSE = frozenset(YES.split()), frozenset(NO.split())
"""Spellings of true and of false, in lower case."""

BLANKS = " \u00a0\u2009\u202f"
BLANK = f"[{BLANKS}]"
QUOTES = "'\u2019"
MINUS = "\u2212\u2013-"
CURRENCY = (
    r"US\$|A\$|C\$|R\$|[$€£¥₹₽₩₺₫₪฿]|Fr\.|Rs\.?|kr\.?|zł|"
    r"EUR|USD|GBP|CHF|JPY|INR|CNY|SEK|NOK|DKK|PLN|CZK|AUD|CAD|BRL|MXN|ZAR|TRY|RUB|HUF"
)
UNIT = rf"{CURRENCY}|[%‰]|°?\pL[\pL/.²³°]{{0,11}}|°"
PER = ("%", "\u2030")
"""Units without which a number is another one."""

NO_CENTS = f"[.,][\u2014{MINUS}]{{1,2}}|/-"
"""What stands for no cents behind whole money, as in 1'234.- and 500/-."""

PARTS = (
    rf"^(?P<open>\()?{BLANK}?(?P<sign>[+{MINUS}])?{BLANK}?(?P<before>{CURRENCY})?{BLANK}?(?P<minus>[+{MINUS}])?"
    rf"(?P<digits>[\d.,][\d.,{QUOTES}{BLANKS}]*?(?:[eE][+-]?\d+)?|(?i:inf(?:inity)?))(?:{NO_CENTS})?{BLANK}?"
    rf"(?P<after>{UNIT})?{BLANK}?(?P<behind>-)?(?P<close>\))?$"
)
"""A number as people write it: a sign, a currency before, digits, a unit behind, brackets for a loss."""

PLAIN = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?([iI][nN][fF]([iI][nN][iI][tT][yY])?)"
"""A number as programs write it."""

CLOCK = (
    r"(?P<H>\d{1,2})(?::(?P<M>\d{2})(?::(?P<S>\d{2})(?:[.,](?P<f>\d{1,9}))?)?)?(?: ?(?P<p>[AaPp])\.?[Mm]\.?)?"
)
ZONE = r" ?(?P<o>Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?|[A-Z][A-Za-z]+/[A-Za-z_/]+)?"
DATES = (
    r"^(?:(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})"
    r"|(?P<a>\d{1,2})(?P<s>[-/.]|\. ?)(?P<b>\d{1,2})(?:[-/.]|\. ?)(?P<z>\d{4}|\d{2}))"
    rf"(?:(?:T|,? +){CLOCK}{ZONE})?$"
)
"""A date: the year first, or two numbers and the year behind them; perhaps a time, perhaps a zone."""

TIMES = rf"^{CLOCK}$"

NAMES_OF_MONTHS = (
    "jan janv ene gen,feb f\u00e9v fev,mar m\u00e4r mrz m\u00e4rz,apr avr abr,may mai mag mayo,jun juin giu,"
    "jul juil lug,aug ao\u00fb ago aout,sep set sept,oct okt ott,nov,dec dez d\u00e9c dic"
)
MONTHS = {name: k for k, names in enumerate(NAMES_OF_MONTHS.split(","), 1) for name in names.split()}
"""The beginnings of months in five languages."""

NAMED = re.compile(
    r"(?:(?P<d>\d{1,2})(?:st|nd|rd|th|er)?[-. /]*(?P<m>[^\W\d_]{3,10})|(?P<n>[^\W\d_]{3,10})\.?[ -]*"
    r"(?P<e>\d{1,2})(?:st|nd|rd|th)?)[-., /]+(?P<y>\d{4}|\d{2})(?P<rest>[T ,].*)?"
)
"""A date with the name of the month; the year has four digits unless the day comes first."""


@dataclass(frozen=True)
class Notation:
    """How the cells of one column are written."""

    kind: str = TEXT
    decimal: str = ""
    """The decimal sign of numbers; "" if no cell tells it."""
    thousands: str = ""
    """The sign between thousands, a comma or a point; blanks and apostrophes always may stand there."""
    digits: int = 0
    """The most digits behind a decimal sign."""
    unit: str = ""
    """A currency, per cent or a unit that stands before or behind numbers."""
    order: str = ""
    """Of dates: "ymd", "dmy" or "mdy"."""
    separator: str = ""
    """What stands between day and month; "" for anything."""
    example: str = ""
    """A cell."""

    @classmethod
    def stored(cls, values: Any) -> Self | None:
        """Return a notation from what a model file holds; None if that is none."""
        known = {field.name: int if field.name == "digits" else str for field in fields(cls)}
        if not isinstance(values, Mapping) or not values.keys() <= known.keys():
            return None
        right = all(isinstance(value, known[name]) for name, value in values.items())
        found = cls(**values) if right else None
        allowed = found is not None and {found.decimal, found.thousands} <= {"", ".", ","}
        return found if allowed else None

    def to_store(self) -> dict[str, Any]:
        """Return what a model file holds: all that differs from the default."""
        return {name: value for name, value in asdict(self).items() if value != getattr(Notation(), name)}

    @property
    def is_plain(self) -> bool:
        """True if numbers are written as programs write them, but for the decimal sign."""
        return self.kind == NUMBER and not self.thousands and not self.unit

    def given(self, decimal: str | None, order: str | None) -> Self:
        """Return the notation with what the user says of a file."""
        if self.kind == NUMBER and decimal is not None:
            return replace(self, decimal=decimal, thousands="," if decimal == "." else ".", digits=99)
        if self.kind == DATE and order is not None:
            return replace(self, order=order, separator="")
        return self

    def read(self, cells: Any) -> Any:
        """Return distinct trimmed cells, which are present, as values; null where a cell does not fit."""
        if self.kind == NUMBER:
            return read_numbers(cells, self)
        if self.kind == DATE:
            return read_dates(cells, self)
        if self.kind == TIME:
            return read_times(cells)
        if self.kind == FLAG:
            known = {**dict.fromkeys((*TRUE, "1", "1.0"), True), **dict.fromkeys((*FALSE, "0", "0.0"), False)}
            return pa.array([known.get(cell.lower()) for cell in cells.to_pylist()], pa.bool_())
        if self.kind == PRESENT:
            return pa.array(["present"] * len(cells), pa.string())
        return cells


def trimmed(cells: Any, kind: str = TEXT) -> Any:
    """Return cells without blanks around them, and null for those that are missing in a column of a kind."""
    cells = pc.utf8_trim_whitespace(cells)
    gone = MISSING if kind in (TEXT, PRESENT) else MISSING | DASHES
    return pc.if_else(pc.is_in(cells, value_set=pa.array(sorted(gone))), pa.scalar(None, pa.string()), cells)


@cache
def digits_pattern(decimal: str, thousands: str) -> str:
    """Return the pattern of digits with these signs."""
    sign = re.escape(decimal)
    whole = rf"[1-9]\d{{0,2}}(?:[{thousands}{BLANKS}{QUOTES}]\d{{3}})+|\d+"
    if thousands == ",":
        whole += r"|[1-9]\d?(?:,\d{2})+,\d{3}"  # as in India
    return rf"^(?:(?:{whole})(?:{sign}\d*)?|{sign}\d+)(?:[eE][+-]?\d+)?$|^(?i:inf(?:inity)?)$"


def parts_of_numbers(cells: Any) -> tuple[Any, Any, Any]:
    """Return digits (null where a cell is no number), units, and which cells are negative."""
    found = pc.extract_regex(cells, PARTS)
    part = {name: pc.struct_field(found, name) for name in ("open", "sign", "before", "minus", "digits")}
    part |= {name: pc.struct_field(found, name) for name in ("after", "behind", "close")}
    signs = pc.binary_join_element_wise(part["sign"], part["minus"], part["behind"], part["open"], "")
    wrong = pc.or_(
        pc.xor(pc.equal(part["open"], ""), pc.equal(part["close"], "")), pc.greater(pc.utf8_length(signs), 1)
    )
    twice = pc.and_(pc.not_equal(part["before"], ""), pc.not_equal(part["after"], ""))
    digits = pc.if_else(pc.or_(wrong, twice), None, part["digits"])
    units = pc.binary_join_element_wise(part["before"], part["after"], "")
    return digits, units, pc.and_(pc.not_equal(signs, ""), pc.not_equal(signs, "+"))


def read_numbers(cells: Any, how: Notation) -> Any:
    """Return cells as numbers, null for those that do not fit the notation."""
    decimal = how.decimal or "."
    if how.is_plain and decimal == ".":  # most columns
        try:
            return pc.cast(cells, pa.float64())
        except pa.ArrowInvalid:
            pass
    digits, units, negative = parts_of_numbers(cells)
    fits = pc.match_substring_regex(digits, digits_pattern(decimal, how.thousands))
    allowed = [how.unit] if how.unit in PER else [how.unit, ""]
    fits = pc.and_(fits, pc.is_in(units, value_set=pa.array(allowed)))
    digits = pc.if_else(fits, digits, None)
    digits = pc.replace_substring_regex(digits, f"[{how.thousands}{BLANKS}{QUOTES}]", "")
    if decimal == ",":
        digits = pc.replace_substring(digits, ",", ".")
    values = pc.cast(digits, pa.float64())
    return pc.if_else(negative, pc.negate(values), values)


def ints(found: Any, name: str, default: int = 0) -> Array:
    """Return a part of matches as whole numbers, `default` where it is not there."""
    text = pc.struct_field(found, name)
    text = pc.if_else(pc.equal(pc.fill_null(text, ""), ""), str(default), text)
    return pc.cast(text, pa.int64()).to_numpy(False)


def clock(found: Any) -> tuple[Array, Array]:
    """Return the times of matches in microseconds of the day, and which are times at all."""
    hour, minute, second = (ints(found, part) for part in "HMS")
    half = pc.utf8_lower(pc.struct_field(found, "p")).fill_null("")
    halved, late = (pc.is_in(half, value_set=pa.array(list(of))).to_numpy(False) for of in ("ap", "p"))
    fraction = pc.utf8_rpad(pc.struct_field(found, "f").fill_null(""), 6, "0")
    micro = pc.cast(pc.utf8_slice_codeunits(fraction, 0, 6), pa.int64()).to_numpy()
    right = (minute < 60) & (second < 60) & np.where(halved, (hour > 0) & (hour < 13), hour < 24)
    hour = np.where(halved, hour % 12 + 12 * late, hour)
    return ((hour * 60 + minute) * 60 + second) * 1_000_000 + micro, right


def read_times(cells: Any) -> Any:
    """Return cells as times of day, null for those that are none."""
    found = pc.extract_regex(cells, TIMES)
    micro, right = clock(found)
    timed = pc.fill_null(pc.not_equal(pc.struct_field(found, "M"), ""), False)
    timed = pc.or_(timed, pc.fill_null(pc.not_equal(pc.struct_field(found, "p"), ""), False))
    right &= timed.to_numpy(False)
    return pa.array(micro, pa.int64(), mask=~right).cast(pa.time64("us"))


def month_by_number(cells: Any) -> Any:
    """Return cells with dates whose month has a name written with the year first; others as they are."""
    if not pc.any(pc.match_substring_regex(cells, r"\d.*\pL{3}|\pL{3}.*\d")).as_py():
        return cells

    def rewritten(cell: str) -> str:
        found = NAMED.fullmatch(cell)
        name = (found["m"] or found["n"]).lower() if found else ""
        month = next((MONTHS[name[:k]] for k in (4, 3) if name[:k] in MONTHS), None)
        if not found or month is None or (found["n"] and len(found["y"]) == 2):
            return cell
        year = int(found["y"]) if len(found["y"]) == 4 else full_year(int(found["y"]))
        return f"{year}-{month}-{found['d'] or found['e']}{found['rest'] or ''}"

    return pa.array([rewritten(cell) for cell in cells.to_pylist()], pa.string())


def parts_of_dates(cells: Any) -> tuple[Any, dict[str, Array]]:
    """Return the matches of dates, and their numbers: y, m, d with the year first, else a, b, z."""
    found = pc.extract_regex(month_by_number(cells), DATES)
    return found, {name: ints(found, name, -1) for name in "ymdabz"}


def full_year(short: Any) -> Any:
    """Return a year of two digits, or an array of them, as one of four: from 1969 to 2068."""
    return short + np.where(short < 69, 2000, 1900)


def read_dates(cells: Any, how: Notation) -> Any:
    """Return cells as dates, or as instants in UTC if one has a time; null for those that do not fit.

    A year of four digits that comes first can be read in one way only, so it fits every notation.
    """
    found, part = parts_of_dates(cells)
    day, month = (part["a"], part["b"]) if how.order == "dmy" else (part["b"], part["a"])
    first = part["y"] >= 0
    behind = (part["a"] >= 0) & (how.order in ("dmy", "mdy"))
    if how.separator:
        own = pc.equal(pc.utf8_rtrim(pc.struct_field(found, "s"), " "), how.separator)
        behind &= pc.fill_null(own, False).to_numpy(False)
    short = np.array(pc.fill_null(pc.utf8_length(pc.struct_field(found, "z")), 0)) == 2
    full = np.where(short, full_year(part["z"]), part["z"])
    year, month, day = (
        np.where(first, part[name], other) for name, other in (("y", full), ("m", month), ("d", day))
    )
    right = (first | behind) & (month >= 1) & (month <= 12) & (day >= 1)
    months = (np.where(right, (year - 1970) * 12 + month - 1, 0)).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + (np.where(right, day, 1) - 1)
    right &= days.astype("datetime64[M]") == months
    if not pc.any(pc.not_equal(pc.struct_field(found, "H"), "")).as_py():
        return pa.array(days, mask=~right)
    micro, is_time = clock(found)
    instants = days.astype("datetime64[us]") + micro
    zones = pc.struct_field(found, "o").fill_null("")
    for zone in pc.unique(zones).to_pylist():
        if zone:
            own = pc.equal(zones, zone).to_numpy(False)
            instants[own] = in_utc(instants[own], zone)
    return pa.array(instants, mask=~(right & is_time))


def in_utc(local: Array, zone: str) -> Array:
    """Return local times of an offset or a zone in UTC; NaT if there is no such zone."""
    if zone in ("Z", "UTC", "GMT"):
        return local
    if zone[0] in "+-":
        hours, minutes = int(zone[1:3]), int(zone[3:].lstrip(":") or 0)
        return local - np.timedelta64((hours * 60 + minutes) * (-1 if zone[0] == "-" else 1), "m")
    try:
        known = pc.assume_timezone(pa.array(local), zone, ambiguous="earliest", nonexistent="earliest")
    except (pa.ArrowInvalid, ValueError):
        return np.full_like(local, np.datetime64("NaT"))
    return known.cast(pa.int64()).to_numpy().astype("datetime64[us]")
