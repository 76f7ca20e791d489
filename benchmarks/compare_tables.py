"""`compare` on real tables with no option but the target: kinds, the best model, findings, seconds.

    RISKBAYES_DATA=FOLDER python benchmarks/compare_tables.py > benchmarks/results/compare_tables.txt
    RISKBAYES_DATA=FOLDER python benchmarks/compare_tables.py titanic adult

The tables are those of FOLDER/mixed, adult and the red wines; pandas reads them. Seconds are those of the
processor, which a busy machine does not change much: with one thread (OMP_NUM_THREADS=1,
OPENBLAS_NUM_THREADS=1) they are what a quiet machine takes.
"""

import os
import sys
from collections import Counter
from pathlib import Path
from time import process_time

import pandas as pd

from riskbayes.compare import Report, compare

OTHERS = ("adult", "redwine")


def paths() -> list[Path]:
    folder = Path(os.environ["RISKBAYES_DATA"])
    return [*sorted((folder / "mixed").glob("*.csv.gz")), *(folder / f"{name}.csv.gz" for name in OTHERS)]


def line_of(report: Report, seconds: float) -> str:
    kinds = Counter(column.kind for column in report.data.columns)
    shown = ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items()))
    best = next(c for c in report.contenders if c.name == report.best)
    error, base = best.scores["error"], next(c for c in report.contenders if c.kind == "baseline")
    return (
        f"{report.data.name}: {report.data.rows} rows ({shown}), {report.split.kind}; {report.best}: error "
        f"{error.value:.2f} ± {error.error:.2f} %, majority class {base.scores['error'].value:.2f} %; "
        f"{seconds:.1f} s"
    )


def main(names: list[str]) -> None:
    for path in paths():
        name = path.name.removesuffix(".csv.gz")
        if names and name not in names:
            continue
        table = pd.read_csv(path, keep_default_na=False, na_values=[""])
        start = process_time()
        report = compare(table, "target", name=name).report
        print(line_of(report, process_time() - start))
        for contender in report.contenders:
            error, loss = (contender.scores.get(key) for key in ("error", "log_loss"))
            if contender.failed:
                print(f"    {contender.name}: failed: {contender.failed}")
            else:
                print(f"    {contender.name}: error {error.value:.2f}, log loss {loss.value:.3f}")
        for finding in report.findings:
            print(f"    [{finding.severity}] {finding}")
        print(f"    {report.verdict}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
