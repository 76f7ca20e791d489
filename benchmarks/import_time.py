"""`import riskbayes` against `import sklearn.naive_bayes`: time, and heavy modules it must not load.

Each import runs in a process of its own, in turn; the least of seven is taken.
Run: python benchmarks/import_time.py
"""

import subprocess
import sys

HEAVY = {"matplotlib", "pandas", "polars", "torch", "numba", "dask", "click", "rich"}
PROBE = """
import sys, time
start = time.perf_counter()
import {module}
spent = time.perf_counter() - start
print(spent, *sorted({{name.split('.')[0] for name in sys.modules}} & {heavy}))
"""


def probe(module: str) -> tuple[float, set[str]]:
    code = PROBE.format(module=module, heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    spent, *heavy = done.stdout.split()
    return float(spent), set(heavy)


def main() -> None:
    runs: dict[str, list] = {"sklearn.naive_bayes": [], "riskbayes": []}
    for _ in range(7):  # in turn, so that a slow moment meets both
        for module, found in runs.items():
            found.append(probe(module))
    least = {module: min(spent for spent, _ in found) for module, found in runs.items()}
    for module, spent in least.items():
        print(f"import {module:20s} {spent * 1e3:7.1f} ms")
    extra = least["riskbayes"] - least["sklearn.naive_bayes"]
    more = runs["riskbayes"][0][1] - runs["sklearn.naive_bayes"][0][1]
    print(f"difference                  {extra * 1e3:7.1f} ms    (at most 150)")
    print(f"heavy modules that only riskbayes loads: {', '.join(sorted(more)) or 'none'}")


if __name__ == "__main__":
    main()
