"""A study: methods on splits of data sets, each a row of `benchmarks/results/<name>.csv`, and its reader.

A subclass says what is fitted; `main` runs the units that the table lacks, and prints. A run that was
stopped goes on where it was.

    RISKBAYES_DATA=<folder> python benchmarks/<name>.py                  # fit, then print
    python benchmarks/<name>.py --print                                  # print what is there
    python benchmarks/<name>.py --methods "CatBoost;LightGBM" --again    # fit these again
"""

import argparse
import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, get_type_hints

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from riskbayes.new_files import write_files
from riskbayes_paper import runner
from riskbayes_paper.datasets import PAPER_TABULAR, load_csv
from riskbayes_paper.longtable import from_line, header, read_file, read_lines

RESULTS = Path(__file__).parent / "results"
DOC = Path(__file__).parents[1] / "doc"
DATA: dict[tuple, tuple] = {}
"""The data set that this process read last."""


class Unit(NamedTuple):
    """What a row is about; a method of several parts has them with " | " between."""

    set: str
    split: int
    method: str

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(self.method.split(" | "))


class Part(NamedTuple):
    """One split of a data set."""

    set: str
    split: int
    X: Any
    X_test: Any
    y: np.ndarray
    y_test: np.ndarray


class Study(runner.Study):
    """Methods on splits of data sets; `figures` are the columns of its table behind set, split and method."""

    unit_type = Unit
    name: str
    methods: Sequence[str]
    splits: Sequence[int]
    figures: Sequence[str] = ("error", "log_loss", "brier", "calibration_error", "seconds")
    sets: Sequence[str] = PAPER_TABULAR
    most_rows: int | None = 8000
    stratified = False
    n_shared: int | None = None
    """Methods that are equal in so many of their first parts are run together; None: each alone."""
    kind: type = float

    def make(self, method: str, part: Part) -> Any:
        """The unfitted classifier of a method."""
        raise NotImplementedError

    def fit(self, methods: Sequence[str], part: Part) -> Mapping[str, Mapping[str, float]]:
        """The figures of methods that are run together."""
        return {method: judged(self.make(method, part), part) for method in methods}

    def load(self, name: str) -> tuple[Any, np.ndarray]:
        """Features and codes of the classes."""
        data = load_csv(name)
        data = data if self.most_rows is None else data.cut(self.most_rows)
        return data.X, data.y

    @property
    def columns(self) -> dict[str, type]:
        return get_type_hints(Unit) | dict.fromkeys(self.figures, self.kind)

    @cached_property
    def path(self) -> Path:
        return RESULTS / f"{self.name}.csv"

    def units(self) -> list[Unit]:
        return [Unit(n, s, m) for s in self.splits for n in self.sets for m in self.methods]

    def shared(self, unit: Unit) -> Hashable:
        return unit.set, unit.split, unit.parts[: self.n_shared]

    def data(self, name: str) -> tuple[Any, np.ndarray]:
        """Features and classes of a data set, kept while its units run."""
        if (self.name, name) not in DATA:
            DATA.clear()
            DATA[self.name, name] = self.load(name)
        return DATA[self.name, name]

    def part(self, name: str, split: int) -> Part:
        X, y = self.data(name)
        strata = y if self.stratified else None
        rows = train_test_split(X, y, test_size=0.25, random_state=split, stratify=strata)
        return Part(name, split, *rows)

    def run_job(self, job: tuple[Unit, ...]) -> list[dict]:
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # floors of small classes, rare classes missing from a fold
            found = self.fit([unit.method for unit in job], self.part(job[0].set, job[0].split))
        blank = dict.fromkeys(self.figures, np.nan)
        figures = [blank | dict(found.get(unit.method, {})) for unit in job]
        return [unit._asdict() | each for unit, each in zip(job, figures, strict=True)]

    @cached_property
    def records(self) -> dict[Unit, dict]:
        return {self.unit_of(record): record for record in read_file(self.path, self.columns)[0]}

    def grid(self, method: str, figure: str = "error", splits: Sequence[int] | None = None) -> np.ndarray:
        """A figure as sets x splits; NaN where there is none."""
        splits = self.splits if splits is None else splits
        cells = [[self.records.get(Unit(n, s, method), {}).get(figure) for s in splits] for n in self.sets]
        return np.array(cells, dtype=float)

    def worse_sets(self, a: str, b: str) -> tuple[int, list[str]]:
        """On how many sets the error of a is below that of b, and where it is above by a standard error."""
        gaps = self.grid(a) - self.grid(b)
        means, errors = gaps.mean(axis=1), np.array([spread(gap) for gap in gaps])
        worse = [name for name, mean, error in zip(self.sets, means, errors, strict=True) if mean > error]
        return int((means < -1e-9).sum()), worse

    def frame(self) -> pd.DataFrame:
        """The table as it is."""
        return pd.DataFrame(list(self.records.values()))

    def take_out(self, units: set[Unit]) -> None:
        """Write the table without the rows of some units."""
        lines = [(line, from_line(line, self.columns)) for line in read_lines(self.path, self.columns)]
        kept = [line for line, record in lines if record and self.unit_of(record) not in units]
        write_files({self.path: header(self.columns) + "".join(kept)})

    def show(self) -> None:
        """Print what the table says."""
        raise NotImplementedError

    def parser(self) -> argparse.ArgumentParser:
        words, layout = __import__("__main__").__doc__, argparse.RawTextHelpFormatter
        parser = argparse.ArgumentParser(description=words, formatter_class=layout)
        parser.add_argument("--print", action="store_true", help="only print what the table says")
        parser.add_argument("--again", action="store_true", help="fit also what the table has")
        for name, mark, kind in (("sets", ",", str), ("splits", ",", int), ("methods", ";", str)):
            read = {"type": lambda s, m=mark, k=kind: [*map(k, s.split(m))], "default": getattr(self, name)}
            parser.add_argument(f"--{name}", **read, help=f"only these, with {mark!r} between")
        parser.add_argument("--jobs", type=int, default=runner.default_jobs())
        parser.add_argument("--out", type=Path, default=self.path, help="another table")
        return parser

    def main(self, given: argparse.Namespace | None = None) -> None:
        """Run what the command line asks for, and print."""
        given = given or self.parser().parse_args()
        self.path, self.sets, self.splits, self.methods = given.out, given.sets, given.splits, given.methods
        if not given.print:
            units = self.units()
            if given.again and self.path.exists():
                self.take_out(set(units))
            runner.run(self, units, self.path, given.jobs)
            vars(self).pop("records", None)
        self.show()


def measures(P: np.ndarray, y: np.ndarray, least: float = 1e-15) -> dict[str, float]:
    """Error, Brier score, calibration error of the chosen label in 15 bins, log loss of at least `least`."""
    row, label = np.arange(len(y)), P.argmax(axis=1)
    confidence, right = P.max(axis=1), label == y
    bins = np.minimum((confidence * 15).astype(int), 14)
    gaps = [abs((confidence - right)[bins == b].sum()) for b in range(15)]
    return {
        "error": 1 - right.mean(),
        "brier": ((P - np.eye(P.shape[1])[y]) ** 2).sum(axis=1).mean(),
        "calibration_error": sum(gaps) / len(y),
        "log_loss": -np.log(np.maximum(P[row, y], least)).mean(),
    }


def judged(clf: Any, part: Part, least: float = 1e-15) -> dict[str, float]:
    """Fit, and measure on the test rows; a class that training lacks has probability zero."""
    start = perf_counter()
    clf.fit(part.X, part.y)
    seconds = perf_counter() - start
    last = clf[-1] if hasattr(clf, "steps") else clf
    found = {"seconds": seconds, "n_iter": float(np.max(getattr(last, "n_iter_", 0)))}
    if not hasattr(clf, "predict_proba"):
        return found | {"error": (clf.predict(part.X_test) != part.y_test).mean()}
    P = np.zeros((len(part.y_test), 1 + max(part.y.max(), part.y_test.max())))
    P[:, clf.classes_] = clf.predict_proba(part.X_test)
    return found | measures(P, part.y_test, least)


def print_table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]], width: int) -> None:
    """Print rows of a table; a line between two of them is an empty row."""
    table = Table(*heads, title=title)
    for row in rows:
        table.add_row(*row) if row else table.add_section()
    Console(width=width).print(table)


def write_between(page: str, script: str, lines: Iterable[str]) -> None:
    """Write lines between the marks of a script into a page of the documentation."""
    begin, end = (f"<!-- {part}: made by `python benchmarks/{script}.py` -->" for part in ("begin", "end"))
    text = (DOC / page).read_text(encoding="utf-8")
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"doc/{page} has no marks of benchmarks/{script}.py.")
    inside = "\n".join(lines)
    (DOC / page).write_text(f"{before}{begin}\n\n{inside}\n\n{end}{after}", encoding="utf-8")


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table in Markdown."""
    return [f"| {' | '.join(cells)} |" for cells in (heads, ["---"] * len(heads), *rows)]


def spread(values: np.ndarray) -> float:
    """The standard error of the mean of figures by split."""
    return values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
