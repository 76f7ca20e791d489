"""Which cells are missing, which are numbers, and columns of text as columns of numbers."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

MISSING = frozenset(
    ("", "?", "#N/A", "#N/A N/A", "#NA", "<NA>", "N/A", "NA", "n/a", "NULL", "null", "None", "NaN", "nan")
) | frozenset(("-NaN", "-nan", "1.#IND", "1.#QNAN", "-1.#IND", "-1.#QNAN"))
"""Cells that are missing: those of pandas, and the question mark of the UCI repository."""

PLAIN = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?([iI][nN][fF]([iI][nN][iI][tT][yY])?)"
GROUPED = r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?"
COMMAS = r"[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d*)?([eE][+-]?\d+)?|[+-]?,\d+([eE][+-]?\d+)?"
POINTS = r"[+-]?\d{1,3}(\.\d{3})+"
CODE = r"[+-]?0\d.*"
WHOLE = r"[+-]?\d+"

LONG = 8
"""Digits of a padded number; with more it is a telephone number, an account, a key."""

FEW = 32
"""Distinct values that are matched one by one."""

NUMBER = re.compile(f"{PLAIN}|{GROUPED}", re.ASCII)
"""A number with a decimal point, perhaps with commas between thousands."""

EUROPEAN = re.compile(COMMAS, re.ASCII)
"""A number with a decimal comma, perhaps with points between thousands."""


def is_european(cell: str) -> bool:
    """True for a number that has a decimal comma."""
    return "," in cell and EUROPEAN.fullmatch(cell) is not None


def all_match(values: Any, pattern: str) -> bool:
    """True if all values, which are not null, match a pattern as a whole."""
    import pyarrow.compute as pc  # an optional dependency, slow to import

    if len(values) <= FEW:  # a call of Arrow takes longer
        return all(map(compiled(pattern).fullmatch, values.to_pylist()))
    return bool(pc.all(pc.match_substring_regex(values, f"^({pattern})$")).as_py())


def any_match(values: Any, pattern: str) -> bool:
    """True if a value matches a pattern as a whole."""
    import pyarrow.compute as pc  # an optional dependency, slow to import

    if len(values) <= FEW:
        return any(map(compiled(pattern).fullmatch, values.to_pylist()))
    return bool(pc.any(pc.match_substring_regex(values, f"^({pattern})$")).as_py())


@cache
def compiled(pattern: str) -> re.Pattern:
    """Return a compiled pattern."""
    return re.compile(pattern, re.ASCII)


def typed(column: Any, decimal: str = ".") -> Any:
    """Return a column of text as whole numbers or numbers if all its present cells are; else as it is.

    Codes with leading zeros, such as postcodes, stay text. So do whole numbers beyond 64 bits, if most are:
    as numbers they would lose digits.
    """
    import pyarrow.compute as pc  # an optional dependency, slow to import

    coded = column.combine_chunks().dictionary_encode()
    coded = coded.combine_chunks() if hasattr(coded, "combine_chunks") else coded
    values = coded.dictionary
    found = numbers_of(values.drop_null(), decimal) if len(values) else None
    return column if found is None else pc.take(found, coded.indices)


def numbers_of(values: Any, decimal: str) -> Any:
    """Return distinct cells as numbers, if all are; None otherwise."""
    import pyarrow as pa  # an optional dependency, slow to import
    import pyarrow.compute as pc

    plain = normalised(values, decimal)
    if plain is None or are_codes(plain):
        return None
    try:
        if all_match(plain, WHOLE):
            return pc.cast(pc.utf8_ltrim(plain, "+"), pa.int64())
    except pa.ArrowInvalid:  # more than 64 bits
        if 2 * pc.sum(pc.less_equal(pc.utf8_length(plain), 18)).as_py() <= len(plain):
            return None
    return pc.cast(plain, pa.float64())


def are_codes(values: Any) -> bool:
    """True if numbers with leading zeros are codes: long ones, or of one width with other first digits too.

    Of 00123 and 12345 the zeros belong to a postcode. Of 1 and 01, or of 00202 and 02000, where every cell
    begins with a zero, they only pad a number.
    """
    import pyarrow.compute as pc  # an optional dependency, slow to import

    if not any_match(values, CODE):
        return False
    widths = pc.min_max(pc.utf8_length(values)).as_py()
    full = widths["min"] == widths["max"] and not all_match(values, CODE)
    return full or widths["max"] > LONG


def normalised(values: Any, decimal: str) -> Any:
    """Return cells as numbers with a decimal point and nothing between thousands; None if they are not."""
    import pyarrow.compute as pc  # an optional dependency, slow to import

    values = pc.utf8_trim_whitespace(values)
    if decimal == "," and all_match(values, COMMAS) and any_match(values, f".*,.*|{POINTS}"):
        return pc.replace_substring(pc.replace_substring(values, ".", ""), ",", ".")
    if all_match(values, PLAIN):
        return values
    if all_match(values, f"{PLAIN}|{GROUPED}"):
        return pc.replace_substring(values, ",", "")
    if all_match(values, f"{PLAIN}|{COMMAS}") and not any_match(values, r".*\..*"):
        return pc.replace_substring(values, ",", ".")
    return None


def as_numbers(column: Any, decimal: str) -> Any:
    """Return an array of text as float64, with nulls where cells are missing; None if a cell is no number."""
    import pyarrow as pa  # an optional dependency, slow to import
    import pyarrow.compute as pc

    present = normalised(column.drop_null(), decimal)
    if present is None:
        return None
    found = pc.cast(present, pa.float64())
    return pc.replace_with_mask(pa.nulls(len(column), pa.float64()), column.is_valid(), found)
