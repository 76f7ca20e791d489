"""The notation of each column, decided once from all its cells.

A cell that can be read in one way only is sure; "1,234" and "03/04/2025" are not. The sure cells of a column
decide it, then those of the other columns of the file, then a custom that a finding names. A few odd cells
among many are typing errors: they count as missing, and never turn a column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from riskbayes.arrays import Array
from riskbayes.findings import Finding
from riskbayes.input.files import UserError
from riskbayes.input.files.arrow import pa, pc
from riskbayes.input.files.notation import (
    BLANK,
    CURRENCY,
    DASHES,
    DATE,
    FALSE,
    FLAG,
    MINUS,
    NUMBER,
    PER,
    PLAIN,
    TEXT,
    TIME,
    TIMES,
    TRUE,
    Notation,
    digits_pattern,
    parts_of_dates,
    parts_of_numbers,
    read_dates,
    read_times,
    trimmed,
)
from riskbayes.input.files.options import Options, kind_option
from riskbayes.preprocessing.encoder import FEW_VALUES, ID_SHARE

CODE, WHOLE = r"^[+-]?0\d", r"^[+-]?\d+$"
DIGIT = "[0-9]"

SIGNS = ((".", ","), (",", "."))
"""Decimal signs, and the signs between thousands that go with them."""

QUANTITY = rf"^[(<>~≤≥+{MINUS}]*{BLANK}?(?:{CURRENCY})?{BLANK}?\d"
"""How a number, a date or a time begins."""

LONG = 8
"""Digits of a padded number; with more it is a telephone number, an account, a key."""

SAMPLE = 1000
"""Distinct cells by which kinds are ruled out; the others are decided by all cells."""

FEWEST = 50
"""Of fewer cells nobody can tell which are typing errors."""


def are_few(odd: float, total: float) -> bool:
    """True if odd cells among others may be typing errors: one in a hundred, or one of at least fifty."""
    return total >= FEWEST and odd <= max(1, total // 100)


class Cells(NamedTuple):
    """The distinct present cells of a column, trimmed."""

    name: str
    values: Any
    counts: Array
    line_of: Callable[[str], int]
    """Returns the line in which a cell occurs first."""

    def where(self, chosen: Array) -> str:
        """Return the first of some cells and its line, for a message."""
        cell = first(self.values, chosen)
        return f"{cell!r} in line {self.line_of(cell)}"

    def told(self, code: str, what: str) -> Finding:
        """Return a finding about the column."""
        return Finding(code, f"Column {self.name!r} {what}", self.name)


@dataclass(frozen=True)
class Evidence:
    """Two ways to read the cells of a column, by decimal signs or by orders of dates."""

    kind: str
    ways: Sequence[Notation]
    fits: Sequence[Array]
    """For each way, which of the distinct cells fit it."""
    open: Array
    """Cells that look as if the way mattered."""
    counts: Array

    def weight(self, chosen: Array) -> int:
        """Return the number of cells, by a mask of the distinct ones."""
        return int(self.counts[chosen].sum())

    @property
    def sure(self) -> tuple[int, int]:
        """Cells that fit the first way alone, and the second alone."""
        a, b = self.fits
        return self.weight(a & ~b & self.open), self.weight(b & ~a & self.open)

    @property
    def unsure(self) -> int:
        """Cells that fit both ways, with different values."""
        return self.weight(self.fits[0] & self.fits[1] & self.open)

    def vote(self) -> int | None:
        """Return the way that sure cells prove; None if there is none, or both."""
        a, b = self.sure
        votes = [k for k, sure in enumerate((a, b)) if sure and not are_few(sure, a + b + self.unsure)]
        return votes[0] if len(votes) == 1 else None

    def choose(self, file: int | None, custom: int) -> tuple[int, bool]:
        """Return the way of the column, and whether it was guessed: no cell of the file tells it."""
        own, (a, b) = self.vote(), self.sure
        if own is not None:
            return own, False
        if a and b and not are_few(min(a, b), a + b + self.unsure):
            return int(b > a), False  # a mixture, of which many cells will not fit
        return (custom if file is None else file), file is None and self.unsure > 0 and not (a or b)


def decide(
    columns: Mapping[str, Cells], delimiter: str, options: Options, labels: Iterable[str] = ()
) -> Decided:
    """Return the notations of the columns of a file, and findings; labels are no dates and have no units."""
    labels, columns = set(labels), {name: without_dashes(cells) for name, cells in columns.items()}
    seen = {name: evidence_of(cells, options.kinds.get(name)) for name, cells in columns.items()}
    file = {
        kind: common(e.vote() for e in seen.values() if e is not None and e.kind == kind)
        for kind in (NUMBER, DATE)
    }
    if options.decimal is not None:
        file[NUMBER] = int(options.decimal == ",")
    if options.date_order is not None:
        file[DATE] = int(options.date_order == "mdy")
    if file[DATE] is None and file[NUMBER] == 1:
        file[DATE] = 0  # where commas are decimal signs, days come first
    notations, findings = {}, []
    for name, cells in columns.items():
        how, found = decide_column(cells, seen[name], file, delimiter, options)
        if name in labels and (how.kind not in (NUMBER, TEXT) or how.unit):
            how, found = Notation(TEXT), []
        notations[name] = how
        findings += found
    return Decided(notations, findings)


class Decided(NamedTuple):
    """How the columns of a file are written."""

    notations: dict[str, Notation]
    findings: list[Finding]


def common(votes: Iterable[int | None]) -> int | None:
    """Return what all votes agree on; None if they do not."""
    found = {vote for vote in votes if vote is not None}
    return found.pop() if len(found) == 1 else None


def evidence_of(cells: Cells, wanted: str | None) -> Evidence | None:
    """Return what the cells of a column tell of numbers, or of dates; None if they are neither."""
    if wanted not in (None, NUMBER, DATE) or not len(cells.values):
        return None
    step = -(-len(cells.values) // SAMPLE)
    some = cells.values.take(np.arange(0, len(cells.values), step))
    if wanted is None and 2 * matches(some, DIGIT).sum() < len(some):
        return None  # words: the patterns of numbers and dates take much longer
    found = None
    for kind, gather in ((NUMBER, number_evidence), (DATE, date_evidence)):
        if found is None and wanted in (None, kind):
            tried = gather(some, cells.counts if step == 1 else np.ones(len(some)))
            if wanted == kind or 2 * (tried.fits[0] | tried.fits[1]).sum() >= len(some):
                found = tried if step == 1 else gather(cells.values, cells.counts)
    return found


def number_evidence(values: Any, counts: Array) -> Evidence:
    """Return what cells tell of their decimal sign: the point first, then the comma."""
    if all_match(values, f"^({PLAIN})$"):  # most columns: one pattern, and a second where there is a point
        point = np.ones(len(values), dtype=bool)
        with_point = pc.match_substring(values, ".").to_numpy(False)
        comma = matches(values, r"^[+-]?([1-9]\d{0,2}(\.\d{3})+|\d+)$") if with_point.any() else point
        grouped = "." if (comma & with_point).any() else ""
        plain = Notation(NUMBER, "."), Notation(NUMBER, ",", grouped)
        return Evidence(NUMBER, plain, (point, comma), with_point, counts)
    digits, units, _ = parts_of_numbers(values)
    used = pc.value_counts(units.filter(digits.is_valid())).to_pylist()
    used = [each["values"] for each in sorted(used, key=lambda each: -each["counts"])]
    unit = next((each for k, each in enumerate(used) if (each and not k) or re.fullmatch(CURRENCY, each)), "")
    allowed = pa.array([unit] if unit in PER else [unit, ""])
    right = pc.is_in(units, value_set=allowed).to_numpy(False)
    signed = {sign: matches(digits, re.escape(sign)) for sign in ".,"}
    fits = tuple(matches(digits, digits_pattern(sign, other)) & right for sign, other in SIGNS)
    ways = tuple(
        Notation(NUMBER, sign, other if (signed[other] & fit).any() else "", unit=unit)
        for (sign, other), fit in zip(SIGNS, fits, strict=True)
    )
    return Evidence(NUMBER, ways, fits, signed["."] | signed[","], counts)


def date_evidence(values: Any, counts: Array) -> Evidence:
    """Return what cells tell of the order of dates: the day first, then the month."""
    found, part = parts_of_dates(values)
    behind = part["a"] >= 0
    used = {sign.strip() for sign in pc.unique(pc.struct_field(found, "s")).drop_null().to_pylist()} - {""}
    separator = used.pop() if len(used) == 1 else ""
    ways = tuple(
        Notation(DATE, order=o if behind.any() else "ymd", separator=separator) for o in ("dmy", "mdy")
    )
    day, month = (read_dates(values, how).is_valid().to_numpy(False) for how in ways)
    # Points stand between the day and the month where the day comes first.
    if separator == ".":
        month = month & ~day
    return Evidence(DATE, ways, (day, month), behind & (part["a"] != part["b"]), counts)


def decide_column(
    cells: Cells, seen: Evidence | None, file: Mapping[str, int | None], delimiter: str, options: Options
) -> tuple[Notation, list[Finding]]:
    """Return the notation of a column, and what is to be said about it."""
    name, values, total = cells.name, cells.values, int(cells.counts.sum())
    wanted = options.kinds.get(name)
    if not total or wanted not in (None, NUMBER, DATE):
        return Notation(TEXT), []
    if seen is not None:
        custom = int(delimiter == ";" and seen.kind == NUMBER and bool(seen.ways[1].thousands != "."))
        way, guessed = seen.choose(file[seen.kind], custom)
        how, fits = seen.ways[way], seen.fits[way]
        odd = total - seen.weight(fits)
        rare = not odd or are_few(odd, total) or wanted == seen.kind
        example = first(values, fits)
        if not example:
            where = cells.where(~fits)
            option = kind_option(name, str(wanted))
            raise UserError(f"{option}: no cell of the column is a {wanted}, such as {where}.")
        if rare and not (seen.kind == NUMBER and wanted is None and are_codes(values, how)):
            how = replace(how, example=example)
            if how.kind == NUMBER:
                signed = seen.open & fits
                digits = fraction_digits(values.filter(pa.array(signed)), how)
                how = replace(how, decimal=how.decimal if signed.any() else "", digits=digits)
            findings = [odd_cells(cells, how, fits, odd)] if odd else []
            return how, findings + ([guess(cells, how, first(values, seen.open & fits))] if guessed else [])
        if not rare and (5 * odd <= total or len(values) > FEW_VALUES):
            return Notation(TEXT), [unread(cells, seen.kind, example, fits, odd)]
        return Notation(TEXT), []
    if (
        re.search(DIGIT, values[0].as_py())
        and all_match(values.slice(0, SAMPLE), TIMES)
        and not read_times(values).null_count
    ):
        return Notation(TIME, example=values[0].as_py()), []
    spelled = {value.lower() for value in values.to_pylist()} if len(values) < 9 else set()
    if spelled & TRUE and spelled & FALSE and spelled <= TRUE | FALSE:
        return Notation(FLAG, example=values[0].as_py()), []
    is_odd = wanted is None and FEW_VALUES < len(values) <= ID_SHARE * total
    # Four cells of five begin as numbers, dates and times do.
    is_odd = is_odd and 5 * int(matches(values, QUANTITY).sum()) >= 4 * len(values)
    return Notation(TEXT), [unknown(cells)] if is_odd else []


def fraction_digits(values: Any, how: Notation) -> int:
    """Return the most digits behind the decimal sign."""
    if not how.is_plain:
        values = pc.replace_substring_regex(values, r"[^\d.,]+", "")
    places = pc.find_substring(values, how.decimal)
    behind = pc.subtract(pc.utf8_length(values), pc.if_else(pc.less(places, 0), None, places))
    return int(pc.max(behind).as_py() or 1) - 1


def are_codes(values: Any, how: Notation) -> bool:
    """True if numbers are codes: with leading zeros, or most of them with more digits than 64 bits hold.

    Of 00123 and 12345 the zeros belong to a postcode. Of 1 and 01, or of 00202 and 02000, where every cell
    begins with a zero, they only pad a number.
    """
    if how.unit or how.thousands:
        return False
    lengths = pc.utf8_length(pc.utf8_ltrim(values, "+-"))
    long = pc.greater(lengths, 18)
    if 2 * pc.sum(long).as_py() > len(values) and all_match(values, WHOLE):
        return True
    zeros = matches(values, CODE)
    if not zeros.any():
        return False
    widths = pc.min_max(lengths).as_py()
    return (widths["min"] == widths["max"] and not zeros.all()) or widths["max"] > LONG


def without_dashes(cells: Cells) -> Cells:
    """Return the cells that are present also if the column holds no words."""
    kept = ~pc.is_in(cells.values, value_set=pa.array(sorted(DASHES))).to_numpy(False)
    return (
        cells
        if kept.all()
        else cells._replace(values=cells.values.filter(pa.array(kept)), counts=cells.counts[kept])
    )


def matches(values: Any, pattern: str) -> Array:
    """Return which values match a pattern; null does not."""
    return pc.fill_null(pc.match_substring_regex(values, pattern), False).to_numpy(False)


def all_match(values: Any, pattern: str) -> bool:
    """True if all values match a pattern."""
    return bool(matches(values, pattern).all())


def first(values: Any, chosen: Array) -> str:
    """Return the first of some values; "" if there is none."""
    return values[int(np.argmax(chosen))].as_py() if chosen.any() else ""


def odd_cells(cells: Cells, how: Notation, fits: Array, odd: int) -> Finding:
    """Return the finding about cells that are read as missing."""
    others = f"{odd} cells are none, such as" if odd > 1 else "one cell is none,"
    count = "they count as missing. Correct them" if odd > 1 else "it counts as missing. Correct it"
    return cells.told(
        "RB029",
        f"holds {how.kind}s such as {how.example!r}; {others} {cells.where(~fits)}: {count}, or read the "
        f"column as text with {kind_option(cells.name, 'category')}.",
    )


def unread(cells: Cells, kind: str, example: str, fits: Array, odd: int) -> Finding:
    """Return the finding about a column that is text though most of its cells are numbers or dates."""
    return cells.told(
        "RB029",
        f"is read as text: most of its cells are {kind}s such as {example!r}, and {odd} are not, such as "
        f"{cells.where(~fits)}. Write them in one way, or pass {kind_option(cells.name, kind)} to count "
        "those as missing.",
    )


def unknown(cells: Cells) -> Finding:
    """Return the finding about a column whose cells look like quantities and are read as text."""
    return cells.told(
        "RB029",
        "is read as text: its cells begin as numbers, dates or times do, such as "
        f"{cells.where(matches(cells.values, QUANTITY))}, and are written in no way that is known. Write "
        f"them as plain numbers or ISO dates, or pass {kind_option(cells.name, 'category')} if they are "
        "words.",
    )


def guess(cells: Cells, how: Notation, cell: str) -> Finding:
    """Return the finding about a column whose cells can be read in two ways."""
    if how.kind == DATE:
        first_part, other = ("day", "mdy") if how.order == "dmy" else ("month", "dmy")
        what, option = f"the {first_part} is read as coming first", f"--date-order {other}"
    else:
        sign = {".": "point", ",": "comma"}[how.decimal]
        what = f"the decimal sign is taken to be the {sign}"
        option = f"--decimal {',' if how.decimal == '.' else '.'}"
    return cells.told(
        "RB030",
        f"can be read in two ways, and no cell of the file tells which: of {cell!r} {what}. If that is "
        f"wrong, pass {option}.",
    )


def cells_of(name: str, column: Any, line_of_row: Callable[[int], int]) -> tuple[Cells, Any]:
    """Return the distinct cells of a column of text, trimmed, and the column as their indices."""
    coded = column.combine_chunks().dictionary_encode()
    coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
    clean = trimmed(coded.dictionary)
    if not clean.equals(coded.dictionary):
        again = clean.dictionary_encode()
        coded = pa.DictionaryArray.from_arrays(again.indices.take(coded.indices), again.dictionary)
    counts = np.bincount(coded.indices.drop_null().to_numpy(), minlength=len(coded.dictionary))

    def line_of(cell: str) -> int:
        return line_of_row(pc.index(coded.cast(pa.string()), cell).as_py())

    return Cells(name, coded.dictionary, counts, line_of), coded
