"""Run the units of a study side by side, write each result at once, and go on where a run was stopped."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Iterator, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from riskbayes_paper.longtable import Columns, LongTable, Record, read_file

QUIET_SECONDS = 30.0
"""How often a log that is no terminal gets a line."""

Job = tuple[Any, ...]
"""Units that are run together; each is a NamedTuple of the first columns of the table."""


class Study:
    """What is run, and what of it goes into the long table; a subclass says how a job is run.

    Attributes
    ----------
    unit_type : type of NamedTuple
        What a row is about.
    columns : mapping
        The columns of the table and their types, those of the unit first.
    """

    unit_type: type[Any]
    columns: Columns

    def run_job(self, job: Job) -> list[Record]:
        """Return a row for each unit of a job."""
        raise NotImplementedError

    def shared(self, unit: Any) -> Hashable:
        """Return what a unit shares with those that are run together with it; by default it runs alone."""
        return unit

    def cost(self, job: Job) -> float:
        """Return about how long a job takes, in any unit."""
        return len(job)

    def describe(self, job: Job) -> str:
        """Return a job in words."""
        return " ".join(map(str, job[0]))

    def unit_of(self, record: Record) -> Any:
        """Return what a row is about."""
        return self.unit_type(*(record[name] for name in self.unit_type._fields))

    def done(self, path: Path, units: Sequence[Any]) -> set[Any]:
        """Return those units that are not run again."""
        return {self.unit_of(record) for record in read_file(path, self.columns)[0]}

    def make_jobs(self, units: Iterable[Any]) -> list[Job]:
        """Return the jobs of some units."""
        groups: dict[Hashable, list[Any]] = {}
        for unit in units:
            groups.setdefault(self.shared(unit), []).append(unit)
        return [tuple(group) for group in groups.values()]


def run(
    study: Study, units: Sequence[Any], path: Path, n_jobs: int = 1, console: Console | None = None
) -> None:
    """Run the units that have no row yet, `n_jobs` jobs at a time, and append their rows to a table.

    The progress goes to the console, by default to standard error.
    """
    console = console or Console(stderr=True)
    with LongTable(path, study.columns) as table:
        if table.broken:
            console.print(f"{path}: {table.broken} broken line(s) taken out, to be run again.")
        done = study.done(path, units)
        jobs = study.make_jobs(unit for unit in units if unit not in done)
        workers = Parallel(n_jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="n_jobs")
        with Watch(console, study, jobs, len(units)) as watch:
            results = workers(delayed(study.run_job)(job) for job in watch.started(jobs))
            for records in results:
                table.append(records)
                watch.written(study.unit_of(records[0]))


class Watch(Progress):
    """Says what is running and how long the rest will take: live in a terminal, now and then in a log."""

    def __init__(self, console: Console, study: Study, jobs: list[Job], total: int):
        hidden = not console.is_terminal
        super().__init__(TextColumn("{task.description}"), BarColumn(), console=console, disable=hidden)
        self.study, self.total, self.done_cost = study, total, 0.0
        self.all_cost = sum(map(study.cost, jobs))
        self.n_done = total - sum(map(len, jobs))
        self.running: dict[Any, Job] = {}
        self.begin = self.spoke = monotonic()
        self.task = self.add_task("", total=self.all_cost)

    def started(self, jobs: Iterable[Job]) -> Iterator[Job]:
        """Pass jobs on as workers take them."""
        for job in jobs:
            self.running[job[0]] = job
            self.show()
            yield job

    def written(self, unit: Any) -> None:
        """Count the job that begins with a unit as done: its rows are on the disk."""
        job = self.running.pop(unit)
        self.done_cost += self.study.cost(job)
        self.n_done += len(job)
        self.show(speak=self.n_done == self.total)  # in a log the next start has more to say

    def time_left(self) -> str:
        """Return the time left in words, if the rest goes as what was done."""
        if not self.done_cost:
            return "time left unknown"
        seconds = (monotonic() - self.begin) * (self.all_cost - self.done_cost) / self.done_cost
        return f"about {seconds / 60:.0f} min left" if seconds > 90 else f"about {seconds:.0f} s left"

    def show(self, speak: bool = True) -> None:
        """Bring the display up to date; where it is a log, print a line unless the last one is recent."""
        named = [self.study.describe(job) for job in self.running.values()]
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
