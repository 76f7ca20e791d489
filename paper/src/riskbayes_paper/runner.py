"""Run units side by side, write each result at once, and go on where a run was stopped."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from time import monotonic

from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from riskbayes_paper import ExperimentError
from riskbayes_paper.datasets import PAPER_SETS
from riskbayes_paper.fitting import Job, run_job
from riskbayes_paper.longtable import FILE, LongTable, Row, read_folder
from riskbayes_paper.protocols import MAX_ITER, Unit, settings_text

FAMILY_SCANS = 4000
"""About how many scans a family takes: those of all members, folds and iterations."""

OVERHEAD = 2e6
"""What a scan costs beside its products, in the units of `cost`."""

QUIET_SECONDS = 30.0
"""How often a log that is no terminal gets a line."""


def make_jobs(units: Iterable[Unit]) -> list[Job]:
    """Return the jobs of some units: those that share their training rows share one fit."""
    groups: dict[tuple, list[Unit]] = {}
    for unit in units:
        shared = unit._replace(split=0) if unit.protocol == "in-train" else unit
        groups.setdefault(shared, []).append(unit)
    return [Job(tuple(group)) for group in groups.values()]


def cost(job: Job) -> float:
    """Return about how long a job takes, in multiplications."""
    unit, paper = job.units[0], PAPER_SETS[job.units[0].set]
    scans = {"closed_form": 1, "cv": FAMILY_SCANS, "ensemble": FAMILY_SCANS}.get(unit.learner, MAX_ITER)
    return scans * (OVERHEAD + paper.m * paper.n * paper.classes * (1 if unit.model == "nb" else paper.n))


def left_to_do(units: Iterable[Unit], done: Iterable[Row]) -> list[Unit]:
    """Return the units without a row; refuse rows of other settings, which are no results of this run."""
    found = {row.unit: row for row in done}
    left = []
    for unit in units:
        row = found.get(unit)
        if row is None:
            left.append(unit)
        elif row.settings != settings_text(unit.model, unit.estimate, unit.learner):
            raise ExperimentError(
                f"The table has {' '.join(map(str, unit))} with other settings ({row.settings}): choose "
                "another --out, or move the table away."
            )
    return left


def run(
    units: list[Unit],
    out: Path,
    data_dir: Path | None = None,
    n_jobs: int = 1,
    engine: str = "memory",
    console: Console | None = None,
) -> None:
    """Fit the units that the tables in the folder `out` lack, and append their rows to its `results.csv`.

    `n_jobs` fits run at a time. The engine holds the rows: "memory" is NumPy, "torch" and "cuda" are tensors
    on the processor or on a GPU. The progress goes to the console, by default to standard error.
    """
    console = console or Console(stderr=True)
    with LongTable(out) as table:
        if table.broken:
            console.print(f"{out / FILE}: {table.broken} broken line(s) taken out, to be run again.")
        jobs = make_jobs(left_to_do(units, read_folder(out)))
        workers = Parallel(n_jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="n_jobs")
        with Watch(console, jobs, len(units)) as watch:
            results = workers(delayed(run_job)(job, data_dir, engine) for job in watch.started(jobs))
            for rows in results:
                table.append(rows)
                watch.written(rows)


class Watch(Progress):
    """Says what is running and how long the rest will take: live in a terminal, now and then in a log."""

    def __init__(self, console: Console, jobs: list[Job], total: int):
        hidden = not console.is_terminal
        super().__init__(TextColumn("{task.description}"), BarColumn(), console=console, disable=hidden)
        self.total, self.all_cost, self.done_cost = total, sum(map(cost, jobs)), 0.0
        self.n_done = total - sum(len(job.units) for job in jobs)
        self.running: dict[Unit, Job] = {}
        self.begin = self.spoke = monotonic()
        self.task = self.add_task("", total=self.all_cost)

    def started(self, jobs: Iterable[Job]) -> Iterator[Job]:
        """Pass jobs on as workers take them."""
        for job in jobs:
            self.running[job.units[0]] = job
            self.show()
            yield job

    def written(self, rows: list[Row]) -> None:
        """Count a job as done: its rows are on the disk."""
        job = self.running.pop(rows[0].unit)
        self.done_cost += cost(job)
        self.n_done += len(job.units)
        self.show(speak=self.n_done == self.total)  # in a log the next start has more to say

    def time_left(self) -> str:
        """Return the time left in words, if the rest goes as what was done."""
        if not self.done_cost:
            return "time left unknown"
        seconds = (monotonic() - self.begin) * (self.all_cost - self.done_cost) / self.done_cost
        return f"about {seconds / 60:.0f} min left" if seconds > 90 else f"about {seconds:.0f} s left"

    def show(self, speak: bool = True) -> None:
        """Bring the display up to date; where it is a log, print a line unless the last one is recent."""
        named = [str(job) for job in self.running.values()]
        more = f" and {len(named) - 3} more" if len(named) > 3 else ""
        words = f"{self.n_done} of {self.total} units, {self.time_left()}; running: "
        words += "; ".join(named[:3]) + more if named else "nothing"
        self.update(self.task, completed=self.done_cost, description=words)
        if speak and self.disable and monotonic() - self.spoke > QUIET_SECONDS:
            self.spoke = monotonic()
            self.console.print(words, highlight=False, soft_wrap=True)


def default_jobs() -> int:
    """Return the number of cores that this process may use: one fit each."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
