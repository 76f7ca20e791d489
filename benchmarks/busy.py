"""What does a busy machine cost a small fit? Digits alone, and beside processes that keep all cores busy.

Threads of BLAS wait for one another after each product, and where other processes have the cores, they wait
for a turn: products that are too small for threads must have one. Each line has the least and the median
seconds of a fit. `limited` is the same fit beside the same processes, with one thread by the user's own
limit: nothing is lost to waits there.

    OPENBLAS_NUM_THREADS=2 python benchmarks/busy.py
"""

import argparse
import os
import subprocess
import sys
import warnings
from contextlib import ExitStack, nullcontext
from statistics import median
from time import perf_counter

from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_info, threadpool_limits

import riskbayes
from riskbayes import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis, RiskBayesClassifier

SPIN = "while True: pass"
"""What a busy process does."""


def seconds(clf, X, y, repeats: int, limit: int | None = None) -> str:
    """Return the least and the median seconds of a fit."""
    found = []
    with nullcontext() if limit is None else threadpool_limits(limit):
        for _ in range(repeats):
            start = perf_counter()
            clf.fit(X, y)
            found.append(perf_counter() - start)
    return f"{min(found):.2f} / {median(found):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="how many keep a core busy")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    X, y = load_digits(return_X_y=True)
    kinds = (LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis, RiskBayesClassifier)
    fits = [kind() for kind in kinds]
    for clf in fits:
        clf.fit(X, y)  # imports and caches
    alone = [seconds(clf, X, y, options.repeats) for clf in fits]
    with ExitStack() as stack:
        for _ in range(options.processes):
            process = subprocess.Popen([sys.executable, "-c", SPIN])
            stack.callback(process.wait)
            stack.callback(process.kill)
        beside = [seconds(clf, X, y, options.repeats) for clf in fits]
        limited = [seconds(clf, X, y, options.repeats, limit=1) for clf in fits]
    threads = max(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
    title = (
        f"riskbayes of {riskbayes.__file__}: digits, {threads} BLAS threads, {os.cpu_count()} cores, "
        f"{options.processes} busy processes; least / median seconds of {options.repeats} fits"
    )
    table = Table("", "alone", "beside", "limited", title=title)
    for row in zip((kind.__name__ for kind in kinds), alone, beside, limited, strict=True):
        table.add_row(*row)
    Console().print(table)


if __name__ == "__main__":
    main()
