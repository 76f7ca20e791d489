"""Mutated CSVs into the reader, and some of them into a fit: a table or a UserError, and nothing else.

Each case is made from its number alone. Not allowed: another exception, a crash, a case of more than ten
seconds, or memory beyond a bound. Run: python tests/fuzz_csv.py --cases 100000 --jobs 2
"""

from __future__ import annotations

import argparse
import bz2
import faulthandler
import gzip
import json
import lzma
import random
import resource
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from functools import partial
from pathlib import Path

SECONDS = 10
"""Seconds of the processor that a case may take; six times as many by the clock, which others use too."""

MEMORY = 3 * 2**30
"""Bytes of addresses that a process may take, libraries and all."""

WORDS = ["red", "green", "blue", "é", "naïve", "日本", "a b", "x;y", "1,5", 'say "hi"', "", "NA", "?", "None"]
ODD = [
    "1e999",
    "-0",
    "00123",
    "9" * 25,
    "0x1F",
    "1_000",
    "1.234,5",
    "1,234.5",
    "2024-02-30",
    "2024-01-01",
    "inf",
]
BYTES = [
    b"\0",
    b'"',
    b'""',
    b",",
    b";",
    b"\t",
    b"|",
    b"\n",
    b"\r",
    b"\r\n",
    b"\xff",
    b"\xc3",
    b"\xe9",
    b"\xef\xbb\xbf",
]
BYTES += [
    b"\xff\xfe",
    b"#",
    b"'",
    b"\\",
    b" ",
    b"\x1f\x8b",
    b"\xe2\x80\xa8",
    b"sep=;\n",
    b"NaN",
    b"PAR1",
    b"ARROW1",
]
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1", "cp1252", "ascii"]


def table(rng: random.Random) -> str:
    """Return the text of a random table in a random dialect."""
    delimiter, ending = rng.choice(",;\t|"), rng.choice(["\n", "\r\n", "\r"])
    columns = rng.randint(1, 8)

    def cell(j: int) -> str:
        kind = (j * 7 + columns) % 5
        if rng.random() < 0.03:
            return rng.choice(ODD + WORDS)
        if kind == 0:
            return str(rng.randint(-50, 50))
        if kind == 1:
            return f"{rng.gauss(0, 10):.{rng.randint(0, 5)}f}".replace(".", "," if delimiter == ";" else ".")
        return rng.choice(WORDS[:4] if kind == 2 else WORDS)

    def written(text: str) -> str:
        if any(sign in text for sign in (delimiter, '"', "\n")) or rng.random() < 0.05:
            return '"' + text.replace('"', '""') + '"'
        return text

    rows = [[f"c{j}" for j in range(columns)]] if rng.random() < 0.9 else []
    rows += [[cell(j) for j in range(columns)] for _ in range(rng.choice([0, 1, 2, 10, 40, 200]))]
    return ending.join(delimiter.join(map(written, row)) for row in rows) + rng.choice(["", ending])


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Return bytes with one random change."""
    at = rng.randint(0, len(data))
    kind = rng.randint(0, 11)
    if kind == 0 and data:
        at = rng.randrange(len(data))
        return data[:at] + bytes([data[at] ^ (1 << rng.randint(0, 7))]) + data[at + 1 :]
    if kind <= 3:
        return data[:at] + rng.choice(BYTES) * rng.choice([1, 1, 2, 50]) + data[at:]
    if kind == 4:
        return data[:at]
    if kind == 5:
        return data[at:]
    if kind == 6:
        end = rng.randint(at, len(data))
        return data[:at] + data[end:]
    if kind == 7:
        end = min(len(data), at + rng.randint(0, 200))
        return data[:at] + data[at:end] * rng.randint(2, 20) + data[end:]
    if kind == 8:
        return data[:at] + rng.choice(ODD).encode() + data[at:]
    if kind == 9:
        return (
            data[:at]
            + rng.choice([b"x", b",", b"1;", b'"']) * rng.choice([10**3, 10**5, 3 * 10**5])
            + data[at:]
        )
    if kind == 10:
        return data[:at] + rng.randbytes(rng.randint(1, 40)) + data[at:]
    return data.replace(rng.choice(BYTES), rng.choice(BYTES))


def case(number: int) -> bytes:
    """Return the bytes of a case."""
    rng = random.Random(number)
    data = table(rng).encode(rng.choice(ENCODINGS), errors="replace")
    for _ in range(rng.choice([0, 1, 1, 2, 3, 6])):
        data = mutated(data, rng)
    if rng.random() < 0.1:
        data = rng.choice([partial(gzip.compress, mtime=0), bz2.compress, lzma.compress])(data)
        if rng.random() < 0.6:
            data = mutated(data, rng)
    return data


def run(number: int, folder: Path) -> str:
    """Return what became of a case: "table", "refused", or the violation with its traceback."""
    from riskbayes.commands._errors import BadInput, as_sentence
    from riskbayes.input.files import UserError
    from riskbayes.input.files.batches import Batches
    from riskbayes.input.files.expected import Expected
    from riskbayes.input.files.notation import Notation
    from riskbayes.input.files.table import open_table, split_columns

    path = folder / "case.csv"
    path.write_bytes(case(number))
    try:
        found = open_table(path)
        found.validate(full=True)
        if number % 4 == 0:
            expected = Expected(dict.fromkeys(found.column_names, Notation()))
            with Batches(path, expected) as batches:
                count = sum(batch.X.num_rows for batch in batches)
            assert count == found.num_rows, f"{count} rows in batches, and {found.num_rows} in the table"
        if number % 20 == 0:
            fit(found, split_columns, number)
    except UserError as error:
        text = str(error)
        if "memory" in text or len(text.splitlines()) != 1:
            return f"bad sentence: {text}"
        return "refused"
    except Exception as error:
        if isinstance(as_sentence(error), BadInput):
            return "refused by the fit"
        return traceback.format_exc()
    return "table"


def fit(found, split_columns, number: int) -> None:
    """Fit a quick model to a table, by some column."""
    from riskbayes import MixedNB

    X, y, *_ = split_columns(found, found.column_names[number % found.num_columns])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        MixedNB(learner="closed_form").fit(X, y).predict_proba(X.slice(0, 5))


def work(start: int, end: int) -> None:
    """Run cases in this process and print a line for each that is a violation, and where it is."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    faulthandler.register(signal.SIGPROF, chain=True)  # a traceback, then the end
    outcomes: Counter = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(start, end):
            if number % 50 == 0:
                print(json.dumps({"at": number, "outcomes": outcomes}), flush=True)
                outcomes = Counter()
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            faulthandler.dump_traceback_later(6 * SECONDS, exit=True)
            outcome = run(number, Path(folder))
            faulthandler.cancel_dump_traceback_later()
            if outcome not in ("table", "refused", "refused by the fit"):
                print(json.dumps({"violation": number, "what": outcome}), flush=True)
                outcome = "violation"
            outcomes[outcome] += 1
    print(json.dumps({"at": end, "outcomes": outcomes}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0, help="the number of the first case, in millions")
    parser.add_argument("--work", type=int, nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(*given.work)
        return
    first, step = given.seed * 10**6, -(-given.cases // given.jobs)
    parts = [(first + k, min(first + k + step, first + given.cases)) for k in range(0, given.cases, step)]
    outcomes: Counter = Counter()
    bad = 0
    running = [(start_worker(*part), *part) for part in parts]
    for process, start, end in running:
        at = start
        while True:
            for line in process.stdout:
                told = json.loads(line)
                outcomes.update(told.get("outcomes", {}))
                at = told.get("at", at)
                if "violation" in told:
                    bad += 1
                    print(f"case {told['violation']}:\n{told['what']}", flush=True)
            if process.wait() == 0:
                break
            bad += 1
            print(
                f"a process died or hung between case {at} and {at + 50}:\n{process.stderr.read()}",
                flush=True,
            )
            at += 50
            process = start_worker(at, end)
    print(f"{given.cases} cases: {dict(outcomes)}; {bad} violations")
    sys.exit(bad > 0)


def start_worker(start: int, end: int) -> subprocess.Popen:
    """Start a process that runs some cases."""
    command = [sys.executable, __file__, "--work", str(start), str(end)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


if __name__ == "__main__":
    main()
