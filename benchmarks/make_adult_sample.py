"""Write the sample of adult that ships with the package, from the full table.

    python benchmarks/make_adult_sample.py adult.csv.gz

The same file gives the same bytes.
"""

import argparse
import csv
import gzip
import io
from pathlib import Path

import numpy as np
from sklearn.model_selection import train_test_split

ROWS, SEED = 3000, 0
TARGET = Path(__file__).parents[1] / "src" / "riskbayes" / "data" / "adult_sample.csv.gz"


def sample(lines: list[list[str]]) -> list[list[str]]:
    """Return a header and a stratified random sample of the rows, in their order; `?` becomes empty."""
    header, *rows = lines
    kept, _ = train_test_split(
        np.arange(len(rows)), train_size=ROWS, stratify=[row[-1] for row in rows], random_state=SEED
    )
    chosen = [["" if cell == "?" else cell for cell in rows[i]] for i in sorted(kept)]
    return [[*header[:-1], "income"], *chosen]


def compressed(lines: list[list[str]]) -> bytes:
    """Return a compressed CSV without a time stamp."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(lines)
    return gzip.compress(out.getvalue().encode(), mtime=0)


def main() -> None:
    """Read the full table and write the sample."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "table", type=Path, help="adult.csv.gz: 48842 rows, the target last, missing cells as ?"
    )
    parser.add_argument("--out", type=Path, default=TARGET)
    options = parser.parse_args()
    with gzip.open(options.table, "rt", encoding="utf-8", newline="") as file:
        lines = sample([[cell.strip() for cell in row] for row in csv.reader(file)])
    options.out.write_bytes(compressed(lines))
    print(f"{len(lines) - 1} rows, {len(lines[0])} columns: {options.out}")


if __name__ == "__main__":
    main()
