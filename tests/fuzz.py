"""Fit random estimators on random tables and hold them to the laws of `fuzzing/laws.py`.

    python tests/fuzz.py --cases 20000 --seed 0 --jobs 2
    python tests/fuzz.py --seed 0 --case 123        # one of them again
    python tests/fuzz.py --cases 10000 --endings    # one fit a case, to its optimum: how does it end?

A case is determined by its seed and its number. Each violation is printed with the command that repeats it,
and makes the exit code 1. Refusals are answers too: they are counted by message, for a person to read.
"""

import os

# Before NumPy and SciPy are imported: one core for each process, and arrays of every library.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import argparse
import re
import sys
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context

import numpy as np
from sklearn.base import clone

import fuzzing.holes  # noqa: F401 - it registers laws
from conftest import WatchedRC
from fuzzing.cases import HELD, REFUSED, ROUNDING, UNDECIDED, Case, Refusal, Violation
from fuzzing.estimators import ESTIMATORS
from fuzzing.laws import ANSWERS, CHANGES, ENDING, check_ending
from fuzzing.streams import noise_error

CHANGES_A_CASE = 4
"""Laws that fit again, of those that apply to a case."""

NOISE_SHARE = 0.08
"""Share of the cases that also fit noise labels."""

ENDING_SCANS = 300
"""The most scans of a fit whose ending is looked at: nearly all end before."""

STANDARD_ERRORS = 4.5
"""Of the mean held-out error on noise labels, from one half: chance reaches it once in 150000 means."""

HONEST = "held-out error on noise labels is one half"
VIOLATED = "violated"
OUTCOMES = (HELD, ROUNDING, UNDECIDED, REFUSED, VIOLATED)


@dataclass
class Report:
    """What came of one case; plain values, to be sent between processes."""

    number: int
    name: str
    outcomes: list[tuple[str, str]] = field(default_factory=list)
    violations: list[tuple[str, str]] = field(default_factory=list)
    """(law, what went wrong)."""
    refusal: str | None = None
    noise: float | None = None
    seconds: float = 0.0


def run_case(seed: int, number: int, *, raising: bool = False) -> Report:
    """Draw a case and hold it to its laws; `raising` shows the traceback of a violation."""
    start, case = time.perf_counter(), Case(seed, number)
    report = Report(number, case.name)

    def hold(law: str, work: Callable[[], str]) -> None:
        try:
            outcome = work()
        except Exception as error:
            if raising:
                traceback.print_exc()
            what = str(error) if isinstance(error, Violation) else f"the law itself fails: {error!r}"
            report.violations.append((law, what))
            outcome = VIOLATED
        report.outcomes.append((law, outcome))

    def fits() -> str:
        report.refusal = case.fitted.message if isinstance(case.fitted, Refusal) else None
        return HELD if report.refusal is None else REFUSED

    def fits_noise() -> str:
        report.noise = noise_error(case)
        return REFUSED if report.noise is None else HELD

    hold("a fit answers or refuses in a sentence", fits)
    if not report.violations:
        for law, work in ANSWERS.items():
            hold(law, lambda work=work: work(case))
        rng = case.rng(5)
        applying = [law for law, (_, applies) in CHANGES.items() if applies(case)]
        for i in rng.permutation(len(applying))[:CHANGES_A_CASE]:
            hold(applying[i], lambda i=i: CHANGES[applying[i]][0](case))
        if rng.random() < NOISE_SHARE:
            hold("noise labels can be fitted", fits_noise)
    report.seconds = time.perf_counter() - start
    return report


def run_ending(seed: int, number: int, *, raising: bool = False) -> Report:
    """Fit the estimator of a case by quasi-Newton steps, and hold how they end to its law."""
    start, case = time.perf_counter(), Case(seed, number)
    report, rng = Report(number, case.name), case.rng(7)
    weight = ("auto", 0.0, 0.03, 1.0)[rng.integers(4)]
    objective = ("log_loss", "log_loss", "soft_error")[rng.integers(3)]
    learner = WatchedRC(max_iter=ENDING_SCANS, objective=objective, generative_weight=weight)
    try:
        if case.learner is None:
            outcome = UNDECIDED
        else:
            found = case.fit(clone(case.estimator).set_params(learner=learner), case.table)
            refused = isinstance(found, Refusal)
            report.refusal = found.message if refused else None
            outcome = REFUSED if refused else check_ending(found)
            if not refused:
                report.outcomes.append((f"ends by {found.status_.value}", outcome))
    except Exception as error:
        if raising:
            traceback.print_exc()
        report.violations.append((ENDING, str(error)))
        outcome = VIOLATED
    report.outcomes.append((ENDING, outcome))
    report.seconds = time.perf_counter() - start
    return report


def run_chunk(run: Callable[[int, int], Report], seed: int, numbers: Iterable[int]) -> list[Report]:
    """Several cases, in one process."""
    return [run(seed, number) for number in numbers]


def run_cases(
    run: Callable[[int, int], Report], seed: int, numbers: list[int], jobs: int
) -> Iterator[Report]:
    """Yield the reports of cases, in their order, a chunk at a time."""
    chunks = [numbers[i : i + 20] for i in range(0, len(numbers), 20)]
    if jobs == 1:
        for chunk in chunks:
            yield from run_chunk(run, seed, chunk)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for reports in pool.map(partial(run_chunk, run), [seed] * len(chunks), chunks):
            yield from reports


@dataclass
class Summary:
    """Counts over the cases of a run."""

    seed: int
    by_law: dict[str, Counter] = field(default_factory=lambda: defaultdict(Counter))
    by_model: dict[str, Counter] = field(default_factory=lambda: defaultdict(Counter))
    refusals: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    noise: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    slowest: list[tuple[float, int]] = field(default_factory=list)
    violations: int = 0

    def add(self, report: Report) -> None:
        """Count one case, and print its violations."""
        for law, outcome in report.outcomes:
            self.by_law[law][outcome] += 1
        counts = self.by_model[report.name]
        counts["cases"] += 1
        counts["refused"] += report.refusal is not None
        counts[VIOLATED] += len(report.violations)
        self.violations += len(report.violations)
        if report.refusal is not None:
            self.refusals[shape_of(report.refusal)].append(report.number)
        if report.noise is not None:
            self.noise[report.name].append(report.noise)
        self.slowest = sorted([*self.slowest, (report.seconds, report.number)])[-5:]
        for law, what in report.violations:
            self.print_violation(f"--case {report.number}", law, report.name, what)

    def print_violation(self, which: str, law: str, name: str, what: str) -> None:
        """One line that repeats a violation."""
        what = " ".join(what.split())
        print(f"python tests/fuzz.py --seed {self.seed} {which}  # {law}: {name}: {what[:300]}", flush=True)

    def judge_noise(self, numbers: int) -> None:
        """Compare the mean error on noise labels with one half, model by model."""
        for name, errors in sorted(self.noise.items()):
            mean, error = np.mean(errors), np.std(errors) / max(1, len(errors)) ** 0.5
            dishonest = len(errors) >= 20 and abs(mean - 0.5) > STANDARD_ERRORS * error
            self.by_law[HONEST][VIOLATED if dishonest else HELD if len(errors) >= 20 else UNDECIDED] += 1
            print(f"noise labels, {name}: held-out error {mean:.3f} +- {error:.3f} in {len(errors)} cases")
            if dishonest:
                self.violations += 1
                self.by_model[name][VIOLATED] += 1
                what = f"{mean:.3f} +- {error:.3f} in {len(errors)} cases"
                self.print_violation(f"--cases {numbers} --only {name}", HONEST, name, what)

    def print(self) -> None:
        """Tables by law and by model, refusals by message, the slowest cases."""
        print_table("law", self.by_law, OUTCOMES)
        print_table("model", self.by_model, ("cases", "refused", VIOLATED))
        print("\nrefusals of fit, by message, with the number of a case")
        for message, numbers in sorted(self.refusals.items(), key=lambda item: -len(item[1])):
            print(f"{len(numbers):6d}  {message[:160]}  ({numbers[0]})")
        print("\nslowest: " + ", ".join(f"case {n} {s:.1f} s" for s, n in reversed(self.slowest)))


def shape_of(message: str) -> str:
    """A message without what differs from case to case."""
    message = re.sub(r"'[^']*'|\[[^\]]*\]", "'...'", " ".join(message.split()))
    return re.sub(r"-?\d+(\.\d+)?(e[+-]?\d+)?", "#", message)


def print_table(title: str, rows: dict[str, Counter], columns: Iterable[str]) -> None:
    """Counts in columns, one line a row."""
    width = max([len(title), *map(len, rows)])
    print("\n" + title.ljust(width) + "".join(f"{name:>11}" for name in columns))
    for name, counts in sorted(rows.items()):
        print(name.ljust(width) + "".join(f"{counts[column]:11d}" for column in columns))


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(description="Hold random fits of every estimator to the laws.")
    parser.add_argument("--cases", type=int, default=2000, help="how many (default: 2000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: 1)")
    parser.add_argument("--only", choices=sorted(ESTIMATORS), help="leave out the cases of other estimators")
    parser.add_argument("--case", type=int, help="repeat this case alone, and tell how each law ended")
    parser.add_argument("--endings", action="store_true", help="only how quasi-Newton steps end")
    options = parser.parse_args(arguments)
    run = run_ending if options.endings else run_case
    if options.case is not None:
        return show(run, options.seed, options.case)
    numbers = [n for n in range(options.cases) if options.only in (None, Case(options.seed, n).name)]
    summary, start, told = Summary(options.seed), time.perf_counter(), 0.0
    for done, report in enumerate(run_cases(run, options.seed, numbers, options.jobs), 1):
        summary.add(report)
        seconds = time.perf_counter() - start
        if seconds - told > 10 or done == len(numbers):
            told = seconds
            print(
                f"{done}/{len(numbers)} cases, {done / seconds:.1f} a second, {summary.violations} violated",
                flush=True,
            )
    summary.judge_noise(options.cases)
    summary.print()
    print(f"\n{len(numbers)} cases of seed {options.seed}: {summary.violations} violations")
    return int(summary.violations > 0)


def show(run: Callable[..., Report], seed: int, number: int) -> int:
    """One case in full: what it is, and how each of its laws ended."""
    print(Case(seed, number))
    report = run(seed, number, raising=True)
    if report.refusal is not None:
        print(f"fit is refused: {report.refusal}")
    for law, outcome in report.outcomes:
        print(f"{outcome:>10}  {law}")
    for law, what in report.violations:
        print(f"{law}: {what}")
    return int(bool(report.violations))


if __name__ == "__main__":
    sys.exit(main())
