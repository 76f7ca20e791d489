"""How fast: every figure is a ratio to a peer or to a floor, measured in this process and in turn."""

from __future__ import annotations

import json
import os
import platform
import tracemalloc
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_info

import riskbayes
from riskbayes.new_files import write_files
from riskbayes.pages.table import Cell, Mark, Table
from riskbayes.threads import available_threads
from riskbayes_paper import ExperimentError
from riskbayes_paper.datasets import DataSet, load_csv, load_npz

LEAST_TURNS, MOST_TURNS = 3, 51
BUDGET = 4.0
"""Seconds that the turns of one comparison should take together; long jobs take longer."""
LONG = 5.0
"""Seconds of a round above which the first one counts too: starting up is nothing beside it."""

PACKAGES = ("riskbayes", "numpy", "scipy", "scikit-learn", "numba", "pomegranate")

Job = Callable[[], Any]


@dataclass(frozen=True)
class Figure:
    """One line of the table.

    Parameters
    ----------
    what, against : str
        What was measured, and the peer or floor that it is compared with.
    size : str
        Of which data: rows x features x classes.
    ours, peer : float or None
        Medians, in `unit`. No peer: it was skipped; a peer alone: ours did not get there.
    bar : float or None
        The largest ratio that holds what was promised; None promises nothing.
    unit : {"s", "B"}
        Seconds or bytes.
    note : str
        What else there is to know, in a sentence.
    group : str
        Number and name of the case.
    """

    what: str
    against: str = ""
    size: str = ""
    ours: float | None = None
    peer: float | None = None
    bar: float | None = None
    unit: str = "s"
    note: str = ""
    group: str = ""

    @property
    def ratio(self) -> float | None:
        """Ours over the peer's; None where one of them is missing."""
        return None if self.ours is None or self.peer is None else self.ours / self.peer

    @property
    def verdict(self) -> str:
        """Whether it holds: "ok" or "short"; "skipped"; nothing where nothing was promised."""
        if self.peer is None:
            return "skipped"
        if self.bar is None:
            return ""
        return "ok" if self.ratio is not None and self.ratio <= self.bar else "short"


@dataclass
class Bench:
    """What every case is given: its sizes, its data, its clock.

    Parameters
    ----------
    quick : bool, default=False
        Small sizes and few turns: it shows that everything runs, and no figure of worth.
    folder : path, default=None
        The folder of data sets; None: that of the variable RISKBAYES_DATA.
    say : callable, default=print
        Is told what is being measured.
    """

    quick: bool = False
    folder: str | os.PathLike | None = None
    say: Callable[[str], object] = print
    _read: dict[str, DataSet] = field(default_factory=dict)

    def size(self, m: int, n: int) -> tuple[int, int]:
        """Return rows and features: as they are, or a few."""
        return (max(200, m // 100), max(4, n // 32)) if self.quick else (m, n)

    @property
    def budget(self) -> float:
        """Seconds for the turns of one comparison."""
        return 0.0 if self.quick else BUDGET

    def data(self, name: str) -> DataSet:
        """Return a set of the folder, read once and cut to its size; "mnist" is the MNIST stand-in."""
        if name not in self._read:
            self.say(f"reading {name}")
            data = (load_npz if name == "mnist" else load_csv)(name, self.folder)
            m, n = self.size(*data.X.shape)
            kept = data.cut(m)
            self._read[name] = kept._replace(X=np.ascontiguousarray(kept.X[:, :n]))
        return self._read[name]

    def compare(
        self, what: str, against: str, size: str, ours: Job, peer: Job, bar: float | None = None
    ) -> Figure:
        """Time two jobs in turn."""
        self.say(f"{what} against {against}, {size}")
        mine, theirs = in_turn([ours, peer], self.budget)
        return Figure(what, against, size, mine, theirs, bar)


class Case(NamedTuple):
    """Figures that belong together: the number and name of their group, what they are about."""

    number: int
    group: str
    about: str
    measure: Callable[[Bench], Iterator[Figure]]


def in_turn(jobs: Sequence[Job], budget: float) -> list[float]:
    """Return the median seconds of each job; they run one after the other, round after round.

    The first round warms up (compiled code, pages, caches) and counts only if it is long.
    """
    rounds = [[seconds(job) for job in jobs]]
    first = sum(rounds[0])
    turns = int(np.clip(budget / first, LEAST_TURNS, MOST_TURNS))
    if first < LONG:
        rounds.clear()
    while len(rounds) < turns:
        rounds.append([seconds(job) for job in jobs])
    return np.median(rounds, axis=0).tolist()


def seconds(job: Job) -> float:
    """Return how long a job takes once."""
    start = perf_counter()
    job()
    return perf_counter() - start


def peak_bytes(job: Job) -> int:
    """Return the most memory that the job's arrays take at a time, what it leaves behind included."""
    tracemalloc.start()
    try:
        job()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def run_bench(cases: Iterable[Case], bench: Bench) -> list[Figure]:
    """Measure the cases; one whose data or peer is missing or cannot be used gives a line that says so."""
    figures = []
    for case in cases:
        group = f"{case.number} {case.group}"
        try:
            # What is timed may warn, on every turn: of covariances without full rank, of iterations used up.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                figures += [replace(figure, group=group) for figure in case.measure(bench)]
        except (FileNotFoundError, ImportError, ExperimentError) as missing:
            figures.append(Figure(case.about, group=group, note=str(missing)))
    return figures


def machine() -> dict[str, Any]:
    """Return what the figures depend on."""
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = riskbayes.__version__ if name == "riskbayes" else version(name)
        except PackageNotFoundError:
            versions[name] = "not installed"
    blas = sorted(
        {f"{p['internal_api']} {p['version']}" for p in threadpool_info() if p["user_api"] == "blas"}
    )
    return {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "threads": available_threads(),
        "system": platform.platform(),
        "blas": blas,
        "versions": versions,
    }


def cpu_model() -> str:
    """Return the name of the processor, as far as the system tells it."""
    listed = Path("/proc/cpuinfo")
    lines = listed.read_text(encoding="utf-8").splitlines() if listed.exists() else []
    named = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())


def speed_table(figures: Sequence[Figure], title: str = "") -> Table:
    """Return the table of all figures."""
    kinds = {"ok": "better", "short": "worse", "skipped": "equal", "": ""}
    rows: list[list[Cell]] = []
    for f in figures:
        ours = "not reached" if f.ours is None and f.peer is not None else quantity(f.ours, f.unit)
        ratio = "" if f.ratio is None else f"{f.ratio:.2f}"
        bar = "" if f.bar is None else f"{f.bar:g}"
        texts = [ours, quantity(f.peer, f.unit), ratio, bar]
        marks = [*map(Mark, texts), Mark(f.verdict, kinds[f.verdict])]
        rows.append([f.group, f.what, f.against, f.size, *marks])
    headers = ["must hold", "measured", "against", "size", "ours", "peer", "ratio", "bar", ""]
    return Table(headers, rows, title)


def quantity(value: float | None, unit: str) -> str:
    """Return a time or a size in memory with its unit."""
    if value is None:
        return ""
    if unit == "B":
        return f"{value / 1e6:.0f} MB"
    return f"{value:.2f} s" if value >= 1 else f"{value * 1e3:.3g} ms"


def notes(figures: Sequence[Figure]) -> list[str]:
    """Return what the table has no room for: each sentence once, with the lines that it belongs to."""
    said: dict[str, list[str]] = {}
    for f in figures:
        if f.note:
            said.setdefault(f.note, []).append(", ".join(filter(None, [f.group, f.what, f.size])))
    return [f"{'; '.join(where)}: {note}" for note, where in said.items()]


def tally(figures: Sequence[Figure]) -> str:
    """Return how many bars hold, in a sentence."""
    n = {kind: sum(f.verdict == kind for f in figures) for kind in ("ok", "short", "skipped")}
    return f"{n['ok']} of {n['ok'] + n['short']} bars hold, {n['short']} fall short; skipped: {n['skipped']}."


def write_json(path: Path, figures: Sequence[Figure], about: dict[str, Any], quick: bool) -> None:
    """Write the figures and the machine, for other programs."""
    lines = [{**vars(figure), "ratio": figure.ratio, "verdict": figure.verdict} for figure in figures]
    found = {"machine": about, "quick": quick, "figures": lines}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_files({path: json.dumps(found, indent=1) + "\n"})
