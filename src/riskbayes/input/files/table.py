"""A user's file as an Arrow table, and its columns by what they are for: features, target, weights."""

from __future__ import annotations

import difflib
import os
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from riskbayes.arrays import Array
from riskbayes.exceptions import listed
from riskbayes.findings import Finding
from riskbayes.input.arrow import lacking_column, open_files
from riskbayes.input.files import UserError
from riskbayes.input.files.arrow import ds, pa, pc
from riskbayes.input.files.blocks import CSV
from riskbayes.input.files.deciding import WHOLE, Cells, all_match, cells_of, decide
from riskbayes.input.files.dialect import refuse_repeated_names
from riskbayes.input.files.notation import TEXT, Notation, trimmed
from riskbayes.input.files.opening import EXPORT, STDIN, is_arrow, open_file, reading
from riskbayes.input.files.options import NOTHING_SAID, Options
from riskbayes.input.labels import labelled_rows


def open_table(path: str | os.PathLike, labels: Iterable[str] = ()) -> Any:
    r"""Return a user's file as an Arrow table.

    Parameters
    ----------
    path : path
        A CSV, plain or compressed (gzip, bzip2, xz, zstd), whose delimiter, encoding, header and decimal
        comma are detected; "-" for standard input; Parquet or Arrow files, a folder or a pattern of them.
    labels : iterable of str, default=()
        Columns of labels, which are read as numbers or text only.

    Returns
    -------
    table : pyarrow.Table
        Columns of a CSV as numbers, dates, times, booleans or text, by how their cells are written; missing
        cells are null. Columns of other files have the types that these say.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "some.csv"
    >>> _ = path.write_bytes("name;weight\nJos\u00e9;1,5\nAnn;NA\n".encode("latin-1"))
    >>> open_table(path).to_pylist()
    [{'name': 'José', 'weight': 1.5}, {'name': 'Ann', 'weight': None}]
    """
    return read_table(path, labels=labels).table


class ReadTable(NamedTuple):
    """A user's file, and how it was read."""

    table: Any
    notations: dict[str, Notation]
    """How the columns of a CSV are written; empty for other files."""
    findings: list[Finding]
    """What was left out, guessed or not understood."""


def read_table(
    path: str | os.PathLike, options: Options = NOTHING_SAID, labels: Iterable[str] = ()
) -> ReadTable:
    """Return a user's file with how it was read; columns of labels hold no dates and no units."""
    file, kind = open_csv(path, options)
    if file is None:
        found = ReadTable(read_arrow(path, kind), {}, [])
    else:
        with file, reading(file.name):
            found = read_csv(file, options, labels)
    for name in options.kinds:
        require_column(str(path), found.table.column_names, name, "kind")
    return found


def open_csv(path: str | os.PathLike, options: Options) -> tuple[CSV | None, str | None]:
    """Return a user's file if it is a CSV, else None and its format; without that, Arrow goes by its name."""
    if is_arrow(path):
        return None, None
    opened = open_file(path)
    if opened.kind == "text":
        return CSV(path, opened, options), None
    opened.close()
    if str(path) == STDIN:  # which cannot be read twice
        raise UserError("Standard input holds Parquet or Arrow; from there CSV is read. Name the file.")
    return None, opened.kind


def read_csv(file: CSV, options: Options = NOTHING_SAID, labels: Iterable[str] = ()) -> ReadTable:
    """Return all rows of a CSV, each column by the notation that all its cells decide."""
    tables, lines, starts = [], [], [0]
    for block in file.blocks():
        tables.append(file.cells(block))
        lines.append(block.lines())
        starts.append(starts[-1] + len(block.ends))
    if not tables:
        raise UserError(f"{file.name} has a header and no rows. Add them.")

    def line_of_row(row: int) -> int:
        k = bisect_right(starts, row) - 1
        return lines[k][row - starts[k]]

    text = without_unlabelled(pa.concat_tables(tables), labels)
    del tables
    cells: dict[str, Cells] = {}
    coded: dict[str, Any] = {}
    for name in file.dialect.names:
        cells[name], coded[name] = cells_of(name, text.column(name), line_of_row)
    decided = decide(cells, file.dialect.delimiter, options, labels)
    columns = {}
    for name, how in decided.notations.items():
        columns[name] = coded[name].cast(pa.string()) if how.kind == TEXT else values_of(coded[name], how)
    return ReadTable(pa.table(columns), decided.notations, [*below_table(file), *decided.findings])


def without_unlabelled(text: Any, labels: Iterable[str]) -> Any:
    """Return a table whose rows without a label are empty: a row of totals decides nothing about columns."""
    for name in set(labels) & set(text.column_names):
        there = pc.is_valid(trimmed(text.column(name)))
        if not pc.all(there).as_py():
            empty = pa.scalar(None, pa.string())
            columns = [pc.if_else(there, column, empty) for column in text.columns]
            text = pa.table(columns, names=text.column_names)
    return text


def values_of(coded: Any, how: Notation) -> Any:
    """Return a column of coded cells by its notation; whole numbers stay whole."""
    distinct = coded.dictionary
    if how.is_plain and not how.digits and all_match(distinct, WHOLE):
        try:
            return pc.cast(pc.utf8_ltrim(distinct, "+"), pa.int64()).take(coded.indices)
        except pa.ArrowInvalid:  # more than 64 bits
            pass
    return how.read(distinct).take(coded.indices)


def below_table(file: CSV) -> list[Finding]:
    """Return the finding about lines below a table that are no rows."""
    if not file.below:
        return []
    line, record = file.below[-1]
    count = f"{len(file.below)} lines below the table are no rows" if file.below[1:] else "One line is no row"
    return [
        Finding(
            "RB031",
            f"{count} of {file.name} and left out, such as line {line}: {record[:60]!r}. Take "
            "them out of the file.",
        )
    ]


def read_arrow(path: str | os.PathLike, kind: str | None = None) -> Any:
    """Return all rows of Parquet or Arrow files, a folder or a pattern of them."""
    dataset = open_dataset(path, kind)
    with reading(str(path)):
        try:
            problem = lacking_column(dataset)
            found = None if problem else dataset.to_table()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowKeyError, OSError) as error:
            raise bad_arrow(path, error) from None
    if found is None:
        raise UserError(problem)
    if not found.num_rows:
        raise UserError(f"{path} has columns and no rows. Add them.")
    return found


def open_dataset(path: str | os.PathLike, kind: str | None = None) -> Any:
    """Return an Arrow dataset of files; what is wrong with them is said in a sentence."""
    try:
        found = ds.dataset(str(path), format=kind) if kind is not None else open_files(path)
    except FileNotFoundError:
        raise UserError(
            f"There is no file {str(path)!r} that can be read: files, folders and patterns of CSV, .parquet, "
            ".arrow and .feather are; a folder of CSV files is not."
        ) from None
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, OSError) as error:
        raise bad_arrow(path, error) from None
    except ValueError as error:
        raise UserError(str(error)) from None
    refuse_repeated_names(str(path), found.schema.names)
    return found


def bad_arrow(path: str | os.PathLike, error: Exception) -> UserError:
    """Return the error for a file of Parquet or Arrow that cannot be read."""
    why = " ".join(str(error).split())[:200]
    return UserError(f"{path} cannot be read as Parquet or Arrow ({why}). Copy it again. {EXPORT}")


class Training(NamedTuple):
    """The columns of a table by what they are for."""

    X: Any
    """An Arrow table of features."""
    y: Array
    weights: Array | None
    lost: int
    """Rows that were left out because they have no label."""


def split_columns(
    table: Any, target: str, weight: str | None = None, drop: Sequence[str] = (), name: str = "The table"
) -> Training:
    """Return features, labels and weights of the rows that have a label."""
    for what, column in (("target", target), ("weight", weight), *(("drop", each) for each in drop)):
        if column is not None:
            require_column(name, table.column_names, column, what)
    features = [each for each in table.column_names if each not in (target, weight, *drop)]
    if not features:
        raise UserError(f"{name} has no column but the target {target!r} to learn from. Add columns.")
    found = labelled_rows(nw.from_native(table, eager_only=True), target)
    table = found.frame.to_native()
    weights = None if weight is None else weights_of(table.column(weight), weight, found.rows)
    return Training(table.select(features), found.labels, weights, found.lost)


def require_column(name: str, names: Sequence[str], column: str, what: str) -> None:
    """Raise an error that suggests the nearest name if there is no such column."""
    if column in names:
        return
    lower = {each.lower(): each for each in names}
    near = [lower[n] for n in difflib.get_close_matches(column.lower(), list(lower), 1)]
    hint = f" Did you mean {near[0]!r}?" if near else no_header(names)
    raise UserError(f"{name} has no column {column!r} for the {what}; it has {listed(names)}.{hint}")


def no_header(names: Sequence[str]) -> str:
    """Return a hint for a file whose first row was taken for data; "" if its columns have names."""
    numbered = all(each == f"column{j}" for j, each in enumerate(names, 1))
    return " Its first row was taken for data: if it is a header, pass --header." if numbered else ""


def weights_of(column: Any, name: str, rows: Array) -> Array:
    """Return a column as weights of rows, of which `rows` are the numbers; refuse what is no weight."""
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise UserError(f"The weight {name!r} holds {column.type}, and weights are numbers.")
    found = column.cast(pa.float64()).to_numpy()
    bad = ~(np.isfinite(found) & (found >= 0))
    if bad.any():
        i = int(np.argmax(bad))
        raise UserError(
            f"The weight {name!r} is {found[i]:g} in row {rows[i]} (counted from 0). Weights are numbers "
            "of at least zero."
        )
    return found
