"""Random tables by every way in: arrays, data frames, batches, streams, files and Dask are read alike.

    python tests/fuzz_input.py --cases 20000 --seed 0 --jobs 2
    python tests/fuzz_input.py --seed 0 --case 123        # one of them again

A case is determined by its seed and its number: a random estimator is fitted to a random table in memory and
by other ways in, and all that it read, learned and answers is compared (`tests/fuzzing/ways.py`). Each
violation is printed with the command that repeats it, and makes the exit code 1.
"""

import os

# Before NumPy is imported: one core for each process.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from fuzzing.ways import check_ways

THREADS, PROCESSES = 10, 50
"""One case in so many is also fitted on Dask, by threads or by processes."""


def scheduler_of(number: int) -> str | None:
    """Return Dask's scheduler in a case; None for a case without Dask."""
    if number % PROCESSES == PROCESSES - 5:
        return "processes"
    return "threads" if number % THREADS == 0 else None


def run_case(seed: int, number: int) -> tuple[int, str, str]:
    """Return the number of a case, how it ended, and what went wrong."""
    try:
        return number, check_ways(seed, number, scheduler_of(number)), ""
    except Exception as error:
        what = str(error) if isinstance(error, AssertionError) else f"the law itself fails: {error!r}"
        return number, "violated", " ".join(what.split())


def run_chunk(seed: int, numbers: range) -> list[tuple[int, str, str]]:
    """Run several cases, in one process."""
    return [run_case(seed, number) for number in numbers]


def run_cases(seed: int, cases: int, jobs: int) -> Iterator[tuple[int, str, str]]:
    """Yield what came of the cases, in their order."""
    chunks = [range(i, min(i + 20, cases)) for i in range(0, cases, 20)]
    if jobs == 1:
        for chunk in chunks:
            yield from run_chunk(seed, chunk)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for reports in pool.map(run_chunk, [seed] * len(chunks), chunks):
            yield from reports


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(description="Hold random fits by every way in to those in memory.")
    parser.add_argument("--cases", type=int, default=2000, help="how many (default: 2000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: 1)")
    parser.add_argument("--case", type=int, help="repeat this case alone, with its traceback")
    options = parser.parse_args(arguments)
    if options.case is not None:
        print(check_ways(options.seed, options.case, scheduler_of(options.case)))
        return 0
    ends: Counter = Counter()
    start, told = time.perf_counter(), 0.0
    for done, (number, end, what) in enumerate(run_cases(options.seed, options.cases, options.jobs), 1):
        ends[end] += 1
        if what:
            print(
                f"python tests/fuzz_input.py --seed {options.seed} --case {number}  # {what[:600]}",
                flush=True,
            )
        seconds = time.perf_counter() - start
        if seconds - told > 10 or done == options.cases:
            told = seconds
            print(f"{done}/{options.cases} cases, {done / seconds:.1f} a second, {dict(ends)}", flush=True)
    return int(ends["violated"] > 0)


if __name__ == "__main__":
    sys.exit(main())
