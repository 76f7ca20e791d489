"""`riskbayes predict` on a large CSV: megabytes a second, and the most memory it held.

Writes a CSV of numbers, text and missing cells, fits a model to its first rows and runs the command. Run:
python benchmarks/predict_csv.py --megabytes 2000
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

ROWS = 100_000
COMMAND = [sys.executable, "-c", "from riskbayes.entry import main; main()"]


def table(rng: np.random.Generator, missing: float) -> pa.Table:
    """Return rows of six numbers, two whole numbers and four columns of text, some cells missing."""
    y = rng.integers(2, size=ROWS)
    columns: dict[str, np.ndarray] = {
        f"number{j}": np.round(10 * rng.standard_normal(ROWS) + j * y, 4) for j in range(6)
    }
    columns |= {f"count{j}": rng.integers(0, 1000, size=ROWS) + 50 * y for j in range(2)}
    words = np.array(["alpha", "beta", "gamma", "delta", "epsilon"])
    columns |= {
        f"word{j}": words[np.maximum(rng.integers(5, size=ROWS) - y * rng.integers(2, size=ROWS), 0)]
        for j in range(4)
    }
    found = {name: pa.array(values, mask=rng.random(ROWS) < missing) for name, values in columns.items()}
    return pa.table({**found, "answer": np.where(y == 1, "yes", "no")})


def write(path: Path, megabytes: int, missing: float) -> None:
    """Write a CSV of about this size, from ten different parts."""
    rng = np.random.default_rng(0)
    parts = []
    for first in [True, *[False] * 10]:
        sink = pa.BufferOutputStream()
        options = pacsv.WriteOptions(include_header=first, quoting_style="none")
        pacsv.write_csv(table(rng, missing), sink, options)
        parts.append(sink.getvalue().to_pybytes())
    with path.open("wb") as file:
        file.write(parts[0])
        k = 0
        while file.tell() < megabytes * 1e6:
            file.write(parts[1 + k % 10])
            k += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=2000)
    parser.add_argument("--missing", type=float, default=0.02, help="share of cells that are missing")
    parser.add_argument("--folder", type=Path, help="where to write; by default a temporary folder")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        data, some, model, out = (Path(folder) / n for n in ("data.csv", "some.csv", "m.rb", "out.csv"))
        write(data, given.megabytes, given.missing)
        with data.open("rb") as file:
            some.write_bytes(b"".join(file.readline() for _ in range(20_001)))
        subprocess.run([*COMMAND, "fit", some, "--target", "answer", "-o", model], check=True)
        start, size = time.perf_counter(), data.stat().st_size
        child = subprocess.Popen([*COMMAND, "predict", model, data, "-o", out])
        _, status, used = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - start
        assert os.waitstatus_to_exitcode(status) == 0, "the command failed"
        rate = size / 1e6 / seconds
        print(f"{size / 1e6:.0f} MB in {seconds:.1f} s with the start of the command: {rate:.0f} MB/s")
        print(
            f"processor time {used.ru_utime + used.ru_stime:.1f} s; most memory {used.ru_maxrss / 1e3:.0f} MB"
        )
        print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
