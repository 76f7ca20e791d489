"""How often `compare` claims something where there is nothing: targets drawn without regard to the columns.

    python benchmarks/compare_noise.py > benchmarks/results/compare_noise.txt

Tables of 80 to 400 rows and two to five classes of unequal size; numbers, categories and missing cells.
"""

import sys
from collections import Counter

import numpy as np
import pandas as pd

from riskbayes.compare import compare

TABLES = 60


def noise(rng: np.random.Generator) -> pd.DataFrame:
    m, r = int(rng.choice([80, 200, 400])), int(rng.choice([2, 2, 3, 5]))
    shares = np.maximum(rng.dirichlet(np.full(r, 3.0)), 0.05)
    table = pd.DataFrame(
        {
            "normal": rng.normal(size=m),
            "skewed": rng.exponential(size=m),
            "few": rng.choice(list("xyz"), m),
            "many": rng.choice([f"k{i}" for i in range(12)], m),
            "target": rng.choice([f"class {i}" for i in range(r)], m, p=shares / shares.sum()),
        }
    )
    table.loc[rng.random(m) < 0.1, "normal"] = np.nan
    return table


def main(tables: int) -> None:
    codes: Counter[str] = Counter()
    claims = 0
    for seed in range(tables):
        report = compare(noise(np.random.default_rng(seed)), "target").report
        codes.update({finding.code for finding in report.findings})
        if not report.verdict.startswith("Nothing about"):
            claims += 1
            print(f"table {seed}: {report.verdict}")
    print(f"{tables} tables without anything to predict; the verdict claims something about {claims}.")
    print("Tables with a finding:", ", ".join(f"{code} {n}" for code, n in sorted(codes.items())))


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else TABLES)
