"""The dialect of a CSV: delimiter, header, decimal comma, detected from the first lines."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from riskbayes.exceptions import listed
from riskbayes.input.files import UserError
from riskbayes.input.files.notation import MISSING, PLAIN
from riskbayes.input.files.options import Options

DELIMITERS = ",;\t|"
"""Delimiters that are tried; of equally good ones the first is taken."""

SAMPLE_ROWS = 500
"""Rows that the dialect is detected from."""

MOST_COLUMNS = 20_000
"""The most columns of a CSV."""

SEPARATOR = re.compile(r"sep=(.)\r?\n?", re.IGNORECASE)
"""A first line by which Excel is told the delimiter."""

NUMBER = re.compile(rf"{PLAIN}|[+-]?\d{{1,3}}(,\d{{3}})+(\.\d*)?", re.ASCII)
"""A number with a decimal point, perhaps with commas between thousands."""

EUROPEAN = re.compile(
    r"[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d*)?([eE][+-]?\d+)?|[+-]?,\d+([eE][+-]?\d+)?", re.ASCII
)
"""A number with a decimal comma, perhaps with points between thousands."""

YEAR = re.compile(r"(19|20)\d\d")

TITLES = 10
"""Most lines above the header, such as the title of a sheet."""

QUOTE = "Look for a quote that is not closed."

Row = list[str]


@dataclass(frozen=True)
class Dialect:
    """How a CSV is written."""

    delimiter: str
    names: tuple[str, ...]
    """Names of the columns: those of the header, or column1, column2, ... if there is none."""
    skipped: int
    """Lines before the first row: comments, blank lines, the header."""
    header: int = 0
    """Lines of the header; 0 if there is none."""
    decimal: str = ""
    """The decimal sign, if columns of the first lines prove it."""


def is_european(cell: str) -> bool:
    """True for a number that has a decimal comma."""
    return "," in cell and EUROPEAN.fullmatch(cell) is not None


def find_dialect(name: str, text: str, options: Options) -> Dialect:
    """Return the dialect of a CSV by its first lines; refuse what is no table.

    Parameters
    ----------
    name : str
        How messages call the file.
    text : str
        The first lines of the file, the last one whole.
    options : Options
        What the user says about the file.
    """
    first = 0
    lines = [line + "\n" for line in re.sub("\r(?!\n)", " ", text).removesuffix("\n").split("\n")]
    given = SEPARATOR.fullmatch(lines[0]) if lines else None
    if given is not None:
        first = 1
    while first < len(lines) and not lines[first].strip():
        first += 1
    if first == len(lines):
        raise UserError(f"{name} is empty. It needs a header and rows.")
    tried = given.group(1) if given is not None and given.group(1) in DELIMITERS else DELIMITERS
    tried = options.delimiter or tried
    attempts = [attempt(name, lines, first, delimiter, options.header) for delimiter in tried]
    found = [each for each in attempts if each is not None]
    if not found:
        raise UserError(
            f"{name} begins with a cell of more than {csv.field_size_limit()} characters. {QUOTE}"
        )
    return max(found, key=lambda each: each[0])[1]


def attempt(
    name: str, lines: Sequence[str], first: int, delimiter: str, header: bool | None
) -> tuple[tuple, Dialect] | None:
    """Return how well a delimiter fits, and the dialect with it; None if cells would be too long with it.

    It fits well if all rows have the same number of cells, and few cells hold another delimiter.
    """
    try:
        rows, ends = read_rows(name, lines[first:], delimiter)
    except csv.Error:
        return None
    body = [row for row in rows if not row[0].lstrip().startswith("#")] or rows
    usual, count = Counter(map(len, body)).most_common(1)[0]
    if len(body) == 2:  # a header and a row: the header is right
        usual, count = len(body[0]), 1 + (len(body[0]) == len(body[1]))
    start = 0
    while start < len(rows) - 1 and header is None and is_above(rows[start], usual, start):
        start += 1  # comments, titles
    skipped = first + (ends[start - 1] if start else 0)
    rows = rows[start:]
    cells = [cell for row in rows for cell in row]
    others = [d for d in DELIMITERS if d != delimiter]
    clean = sum(not any(d in cell for d in others) or is_european(cell.strip()) for cell in cells)
    fit = count / len(body) * clean / len(cells) if usual > 1 else 0.0
    rows = [[cell.strip() for cell in row] for row in rows]
    height = ends[start] - (ends[start - 1] if start else 0)
    dialect = with_header(Dialect(delimiter, (), skipped), rows, height, header)
    decimal = decimal_of(rows[1:] if dialect.header else rows)
    return (round(fit, 3), usual), replace(dialect, decimal=decimal)


def is_above(row: Row, usual: int, number: int) -> bool:
    """True for a row above the header: a comment, or a title in a single cell of a wider table."""
    alone = usual > 1 and (len(row) == 1 or (usual > 2 and sum(bool(cell.strip()) for cell in row) <= 1))
    return (row[0].lstrip().startswith("#") and len(row) != usual) or (alone and number < TITLES)


def read_rows(name: str, lines: Sequence[str], delimiter: str) -> tuple[list[Row], list[int]]:
    """Return the first rows that are not blank, and the number of lines up to the end of each."""
    rows: list[Row] = []
    ends: list[int] = []
    reader = csv.reader(lines, delimiter=delimiter)
    for row in reader:
        if len(row) > MOST_COLUMNS:
            raise UserError(
                f"{name} has {len(row)} columns in line {reader.line_num}, and at most {MOST_COLUMNS} are "
                "read. Turn rows and columns, or save it as Parquet."
            )
        if row:
            rows.append(row)
            ends.append(reader.line_num)
        if len(rows) == SAMPLE_ROWS:
            break
    return rows, ends


def with_header(dialect: Dialect, rows: list[Row], height: int, header: bool | None) -> Dialect:
    """Return the dialect with the names of the columns; the first row is a header unless it looks like data.

    It looks like data if it holds a number, and no text above a column of numbers; but years above other
    numbers, beside names that do not occur again, are a header.
    """
    head, body = rows[0], rows[1:]
    numbers = [bool(NUMBER.fullmatch(cell) or is_european(cell)) for cell in head]
    below = [kinds_below(body, j) for j in range(len(head))]
    titled = any(
        under and not number and cell not in MISSING
        for cell, number, under in zip(head, numbers, below, strict=True)
    )
    if header is False or (
        header is None and any(numbers) and not titled and not are_years(head, numbers, body)
    ):
        return replace(dialect, names=tuple(f"column{j + 1}" for j in range(len(head))))
    names = [cell.removeprefix("\ufeff") or f"column{j + 1}" for j, cell in enumerate(head)]
    return replace(dialect, names=tuple(names), skipped=dialect.skipped + height, header=height)


def are_years(head: Row, numbers: list[bool], body: list[Row]) -> bool:
    """True if the numbers of a row are different years over other numbers, and its words occur only there."""
    years = [j for j, number in enumerate(numbers) if number]
    others = [j for j, number in enumerate(numbers) if not number and head[j] not in MISSING]
    full = [row for row in body if len(row) == len(head)]
    return (
        len({head[j] for j in years}) == len(years)
        and all(YEAR.fullmatch(head[j]) for j in years)
        and any(not YEAR.fullmatch(row[j]) for row in full for j in years if row[j] not in MISSING)
        and not any(row[j] == head[j] for row in full for j in others)
    )


def refuse_repeated_names(name: str, names: Sequence[str]) -> None:
    """Refuse names that several columns have."""
    twice = [each for each, count in Counter(names).items() if count > 1]
    if twice:
        raise UserError(f"{name} has several columns named {listed(twice)}. Rename or remove all but one.")


def kinds_below(body: list[Row], j: int) -> bool:
    """True if the present cells of a column are numbers, and there are some."""
    cells = present(body, j)
    return bool(cells) and all(NUMBER.fullmatch(cell) or is_european(cell) for cell in cells)


def present(body: list[Row], j: int) -> set[str]:
    """Return the distinct present cells of a column."""
    return {row[j] for row in body if j < len(row)} - MISSING


def decimal_of(body: list[Row]) -> str:
    """Return the decimal sign that columns prove, by a cell that can be read in one way; "" if none does."""
    found = set()
    for j in range(max(map(len, body), default=0)):
        cells = present(body, j)
        for sign, pattern in ((".", NUMBER), (",", EUROPEAN)):
            other = EUROPEAN if sign == "." else NUMBER
            if cells and all(map(pattern.fullmatch, cells)) and any(not other.fullmatch(c) for c in cells):
                found.add(sign)
    return found.pop() if len(found) == 1 else ""
