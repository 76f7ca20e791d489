"""A user's file as an Arrow table, and its columns by what they are for: features, target, weights."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from riskbayes.arrays import Array
from riskbayes.input.arrow import lacking_column, open_files
from riskbayes.input.labels import labelled_rows
from riskbayes.reading import UserError
from riskbayes.reading.blocks import CSV, arrow_needed
from riskbayes.reading.dialect import refuse_twins
from riskbayes.reading.files import EXPORT, STDIN, is_arrow, open_file, reading
from riskbayes.reading.numbers import typed


def open_table(path: str | os.PathLike) -> Any:
    r"""Return a user's file as an Arrow table.

    Parameters
    ----------
    path : path
        A CSV, plain or compressed (gzip, bzip2, xz, zstd), whose delimiter, encoding, header and decimal
        comma are found out; "-" for standard input; Parquet or Arrow files, a folder or a pattern of them.

    Returns
    -------
    table : pyarrow.Table
        Columns of numbers as int64 or float64 and all others as text, for a CSV; missing cells are null.
        Columns of other files have the types that these say.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "some.csv"
    >>> _ = path.write_bytes("name;weight\nJos\u00e9;1,5\nAnn;NA\n".encode("latin-1"))
    >>> open_table(path).to_pylist()
    [{'name': 'José', 'weight': 1.5}, {'name': 'Ann', 'weight': None}]
    """
    with arrow_needed():
        if is_arrow(path):
            return read_arrow(path)
        opened = open_file(path)
        if opened.kind != "text":
            opened.close()
            return read_arrow(stored(path), opened.kind)
        with CSV(path, opened) as file, reading(file.name):
            return read_csv(file)


def read_csv(file: CSV) -> Any:
    """Return all rows of a CSV."""
    import pyarrow as pa  # an optional dependency, slow to import

    tables = [file.strings(block) for block in file.blocks()]
    if not tables:
        raise UserError(f"{file.name} has a header and no rows. Add them.")
    found = pa.concat_tables(tables)
    del tables
    columns = [typed(column, file.dialect.decimal) for column in found.columns]
    return pa.table(columns, names=found.column_names)


def stored(path: str | os.PathLike) -> str | os.PathLike:
    """Return the path of a file of Parquet or Arrow; refuse standard input, which cannot be read twice."""
    if str(path) == STDIN:
        raise UserError("Standard input holds Parquet or Arrow; from there CSV is read. Name the file.")
    return path


def read_arrow(path: str | os.PathLike, kind: str | None = None) -> Any:
    """Return all rows of Parquet or Arrow files, a folder or a pattern of them."""
    dataset = open_dataset(path, kind)
    import pyarrow as pa  # an optional dependency, slow to import

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
    import pyarrow as pa  # an optional dependency, slow to import
    import pyarrow.dataset as ds

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
    refuse_twins(str(path), found.schema.names)
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
    hint = f" Did you mean {near[0]!r}?" if near else ""
    listed = ", ".join(map(repr, names[:5])) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    raise UserError(f"{name} has no column {column!r} for the {what}; it has {listed}.{hint}")


def weights_of(column: Any, name: str, rows: Array) -> Array:
    """Return a column as weights of rows, of which `rows` are the numbers; refuse what is no weight."""
    import pyarrow as pa  # an optional dependency, slow to import

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
