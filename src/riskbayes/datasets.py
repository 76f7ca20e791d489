"""A table that ships with the package: strings, numbers and missing cells, to try things on."""

from __future__ import annotations

import csv
import gzip
import io
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

import narwhals as nw

TARGET = "income"
LIBRARIES = ("pandas", "polars", "pyarrow")


def load_adult_sample(*, return_X_y: bool = False) -> Any:
    """Return 3000 rows of the census data Adult, a table with strings and missing cells.

    `income`, the last column, says whether a person earns more than 50000 dollars a year. A random sample,
    stratified by `income`, of Becker and Kohavi (1996), Adult, UCI Machine Learning Repository,
    doi:10.24432/C5XW20, licensed under CC BY 4.0.

    Parameters
    ----------
    return_X_y : bool, default=False
        If True, return the table without `income`, and that column.

    Returns
    -------
    table : data frame
        Of pandas, or else polars, or else Arrow: the first that is installed. Missing cells are null.

    Examples
    --------
    >>> from riskbayes.datasets import load_adult_sample
    >>> X, y = load_adult_sample(return_X_y=True)
    >>> X.shape
    (3000, 14)
    """
    header, *rows = csv.reader(io.StringIO(adult_sample_csv().decode(), newline=""))
    columns = {name: typed(list(cells)) for name, cells in zip(header, zip(*rows, strict=True), strict=True)}
    table = nw.from_dict(columns, backend=frame_library())
    if return_X_y:
        return table.drop(TARGET).to_native(), table[TARGET].to_native()
    return table.to_native()


def frame_library() -> Any:
    """Return the name of the first library of data frames that is installed."""
    found = next((name for name in LIBRARIES if find_spec(name) is not None), None)
    if found is None:
        raise ImportError('This needs data frames: pip install "riskbayes[cli]", or pandas, or polars.')
    return found


def adult_sample_csv() -> bytes:
    """Return the sample as the bytes of a CSV file."""
    return gzip.decompress((files(__package__) / "data" / "adult_sample.csv.gz").read_bytes())


def typed(cells: list[str]) -> list[Any]:
    """Return the cells of a column as whole numbers if all are, else as strings; an empty one is None."""
    if all(cell.isdigit() for cell in cells):
        return [int(cell) for cell in cells]
    return [cell or None for cell in cells]
