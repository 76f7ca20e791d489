"""Numbers as a reader wants them: as many digits as their standard error allows, and no more."""

from __future__ import annotations

from collections.abc import Iterable
from math import floor, isfinite, log10, sqrt
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from riskbayes.compare.report import Score

NONE = "\u2013"
"""What stands in the place of a figure that cannot be had."""

NORMAL = 1.96
"""Standard errors to each side of a 95 % interval."""

CLEARLY = 2.0
"""Standard errors beyond which another model is called better."""

MINUS, THIN = "\u2212", "\u202f"


def is_known(value: float | None) -> bool:
    """True if there is a value, and it is finite."""
    return value is not None and isfinite(value)


def wilson(hits: float, rows: float, z: float = NORMAL) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share."""
    p, c = hits / rows, z * z / rows
    middle, half = (p + c / 2) / (1 + c), z * sqrt(p * (1 - p) / rows + c / (4 * rows)) / (1 + c)
    return max(0.0, middle - half), min(1.0, middle + half)


def error_interval(error: float, spread: float | None, rows: int, grouped: bool) -> tuple[float, float]:
    """Return the 95 % interval of an error in percent: Wilson's, or the normal one of rows in groups."""
    if grouped and spread is not None:
        return max(0.0, error - NORMAL * spread), min(100.0, error + NORMAL * spread)
    low, high = wilson(round(error * rows / 100), rows)
    return 100 * low, 100 * high


def is_clear(difference: Score) -> bool:
    """True if a difference is hardly chance: not zero by more than `CLEARLY` standard errors."""
    value, error = difference.value, difference.error
    return value is not None and error is not None and abs(value) > CLEARLY * error


def digits_of(errors: Iterable[float | None], default: int) -> int:
    """Return the decimals at which a typical one of these standard errors has one digit.

    An error that begins with 1 has two: 1.4 as 1 would lose a third of it. All figures of a column get
    the same decimals, so that they stand below one another.
    """
    known = [error for error in errors if error is not None and isfinite(error) and error > 0]
    if not known:
        return default
    typical = median(known)
    size = floor(log10(typical))
    return min(max(-size + (typical < 1.95 * 10.0**size), 0), 5)


def digits_like(largest: float) -> int:
    """Return the decimals of a column of numbers whose largest is this: it gets three digits that count."""
    return min(max(2 - floor(log10(abs(largest))), 0), 5) if largest and isfinite(largest) else 2


def fixed(value: float | None, digits: int) -> str:
    """Return a number with so many decimals."""
    if value is None or not isfinite(value):
        return NONE
    shown = f"{value:.{digits}f}"
    return shown.replace("-", "" if float(shown) == 0 else MINUS)


def signed(value: float | None, digits: int) -> str:
    """Return a difference with its sign; what rounds to zero has none."""
    shown = fixed(value, digits)
    positive = value is not None and value > 0 and is_known(value) and float(shown) != 0
    return f"+{shown}" if positive else shown


def brief(value: float) -> str:
    """Return a number of unknown size with three digits that count."""
    if not isfinite(value):
        return NONE
    size = 0 if value == 0 else floor(log10(abs(value)))
    if not -4 < size < 7:
        return f"{value:.2e}".replace("-", MINUS)
    shown = f"{value:,.{min(max(2 - size, 0), 5)}f}"
    shown = shown.rstrip("0").rstrip(".") if "." in shown else shown
    return shown.replace("-", "" if shown.strip("-0.") == "" else MINUS)


def percent(share: float | None, digits: int = 0) -> str:
    """Return a share in percent; a share that is not zero never reads 0 %, and not all never reads 100 %."""
    if share is None or not isfinite(share):
        return NONE
    least = 10.0**-digits
    if 0 < 100 * share <= least / 2:
        return f"<{THIN}{least:.{digits}f}{THIN}%"
    if 100 - least / 2 <= 100 * share < 100:
        return f">{THIN}{100 - least:.{digits}f}{THIN}%"
    return f"{100 * share:.{digits}f}{THIN}%"


def as_plain(shown: str) -> str:
    """Return a number as a terminal and Markdown have it: with plain blanks and signs."""
    return shown.replace(MINUS, "-").replace(NONE, "-").replace(THIN, " ")


def count(number: int) -> str:
    """Return a whole number with its thousands apart."""
    return f"{number:,}"


def plural(number: int, one: str, many: str = "") -> str:
    """Return a number and what is counted: "1 row", "2 rows"."""
    return f"{count(number)} {one if number == 1 else many or one + 's'}"


def seconds(value: float | None) -> str:
    """Return a time in two digits that count."""
    if value is None or not isfinite(value):
        return NONE
    if value >= 60:
        minutes, rest = divmod(round(value), 60)
        return f"{count(minutes)}{THIN}min {rest:02d}{THIN}s"
    if value >= 9.95:
        return f"{value:.0f}{THIN}s"
    if value >= 0.0995:
        return f"{value:.1f}{THIN}s"
    return f"{max(1000 * value, 0.1):.{0 if value >= 0.00095 else 1}f}{THIN}ms"
