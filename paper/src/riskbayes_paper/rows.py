"""The rows of the reproduction's long table: what came of one unit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self, get_type_hints

from riskbayes_paper import ExperimentError
from riskbayes_paper.longtable import Record, read_file
from riskbayes_paper.protocols import Unit

FILE = "results.csv"


@dataclass(frozen=True)
class Row:
    """What came of one unit.

    Parameters
    ----------
    unit : Unit
        What was fitted on what: the first six columns.
    m, n, classes : int
        Size of the data set.
    source, stand_in : str
        Where it came from, and what its features are where they are not the paper's.
    n_test : int
        Number of test rows.
    train_error : float
        Share of the training rows that the returned model gets wrong.
    status : str
        How the fit ended.
    scans : int
        Scans of the data after that of the closed form, those of rejected trials included.
    seconds : float
        Time of the fit, with the test rows judged on the way.
    engine, version, finished, settings : str
        Where it ran, the version of riskbayes, when it ended (UTC), and the classifier in words.
    soft_error : tuple of float
        Of the training rows, for every model kept on the way; the first is the closed form.
    test_wrong : tuple of int
        Test rows that each of these models gets wrong.
    """

    unit: Unit
    m: int
    n: int
    classes: int
    source: str
    stand_in: str
    n_test: int
    train_error: float
    status: str
    scans: int
    seconds: float
    engine: str
    version: str
    finished: str
    settings: str
    soft_error: tuple[float, ...]
    test_wrong: tuple[int, ...]

    def error(self, part: str) -> float:
        """Return the share of the "train" or "test" rows that the returned model gets wrong."""
        return self.train_error if part == "train" else self.test_wrong[-1] / self.n_test

    def to_record(self) -> Record:
        """Return its values by their columns."""
        figures = dict(vars(self))
        return figures.pop("unit")._asdict() | figures

    @classmethod
    def from_record(cls, record: Record) -> Self:
        """Return the row of these values."""
        unit = Unit(*(record[name] for name in Unit._fields))
        return cls(unit, **{name: value for name, value in record.items() if name not in Unit._fields})


COLUMNS = get_type_hints(Unit) | {n: kind for n, kind in get_type_hints(Row).items() if n != "unit"}
"""The columns of the table, and the types of their values."""


def read_folder(folder: Path) -> list[Row]:
    """Return the rows of every table in a folder, each unit once: that of the last file by name."""
    paths = sorted(folder.glob("*.csv"))
    if not paths:
        raise ExperimentError(
            f"There is no table of results in {str(folder)!r}: run riskbayes reproduce first."
        )
    rows = [Row.from_record(record) for path in paths for record in read_file(path, COLUMNS)[0]]
    return list({row.unit: row for row in rows}.values())
