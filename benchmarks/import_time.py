"""What `import riskbayes` takes beside `import sklearn.naive_bayes`, and heavy modules it must not load.

Both in one process, scikit-learn first: what they share is not counted, and its noise neither. The least of
seven processes is taken. Run: python benchmarks/import_time.py
"""

import subprocess
import sys

HEAVY = {"matplotlib", "pandas", "polars", "torch", "numba", "dask", "click", "rich"}
PROBE = f"""
import sys, time
start = time.perf_counter()
import sklearn.naive_bayes
middle, before = time.perf_counter(), set(sys.modules)
import riskbayes
more = {{name.split('.')[0] for name in set(sys.modules) - before}}
print(middle - start, time.perf_counter() - middle, *sorted(more & {HEAVY}))
"""


def main() -> None:
    runs = []
    for _ in range(7):
        done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
        runs.append(done.stdout.split())
    theirs, ours = (1e3 * min(float(run[i]) for run in runs) for i in (0, 1))
    print(f"import sklearn.naive_bayes {theirs:7.1f} ms")
    print(f"import riskbayes then      {ours:7.1f} ms    (at most 150)")
    print(f"heavy modules that only riskbayes loads: {', '.join(runs[0][2:]) or 'none'}")


if __name__ == "__main__":
    main()
