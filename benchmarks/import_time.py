"""What the estimators take to import beside scikit-learn, and `riskbayes --help` beside Python itself.

The first in one process, scikit-learn first: what they share is not counted, and its noise neither; with it
the heavy modules that must not be loaded. The least of seven processes is taken.
Run: python benchmarks/import_time.py
"""

import subprocess
import sys
import time

HEAVY = {"matplotlib", "pandas", "polars", "torch", "numba", "dask", "click", "rich"}
PROBE = f"""
import sys, time
start = time.perf_counter()
import sklearn.naive_bayes
middle, before = time.perf_counter(), set(sys.modules)
import riskbayes.estimators
more = {{name.split('.')[0] for name in set(sys.modules) - before}}
print(middle - start, time.perf_counter() - middle, *sorted(more & {HEAVY}))
"""
HELP = ["from riskbayes.entry import main; main()", "--help"]


def seconds(*arguments: str) -> float:
    """Return the least time of seven processes of Python."""
    times = []
    for _ in range(7):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", *arguments], stdout=subprocess.DEVNULL, check=True)
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    runs = []
    for _ in range(7):
        done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
        runs.append(done.stdout.split())
    theirs, ours = (1e3 * min(float(run[i]) for run in runs) for i in (0, 1))
    print(f"import sklearn.naive_bayes       {theirs:7.1f} ms")
    print(f"import riskbayes.estimators then {ours:7.1f} ms    (at most 150)")
    print(f"heavy modules that only riskbayes loads: {', '.join(runs[0][2:]) or 'none'}")
    more = 1e3 * (seconds(*HELP) - seconds("pass"))
    print(f"riskbayes --help beyond Python   {more:7.1f} ms    (at most 400)")


if __name__ == "__main__":
    main()
