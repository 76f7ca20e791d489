"""The same rows in two notations: fitted in one and read in the other they are right or refused, never wrong.

Each case is made from its number alone. Each file proves its own notation by a cell of each column.
Delimiter, decimal sign, thousands, order of dates, currency, quotes and encoding differ. Where the user says
how the second file is written, it must be read right. Run: python tests/fuzz_notation.py --cases 2000
"""

from __future__ import annotations

import argparse
import csv
import datetime
import io
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

FLAGS = [("yes", "no"), ("TRUE", "FALSE"), ("ja", "nein"), ("Oui", "Non"), ("y", "n"), ("sí", "no")]
ORDERS = ["%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%Y/%m/%d", "%d-%b-%y"]


class Dialect(NamedTuple):
    delimiter: str
    decimal: str
    thousands: str
    order: str
    unit: str
    flags: tuple[str, str]
    quoting: int
    encoding: str
    padding: str


def dialect(rng: random.Random) -> Dialect:
    decimal = rng.choice(".,")
    return Dialect(
        rng.choice(",;\t|"),
        decimal,
        rng.choice(["", "," if decimal == "." else ".", " ", "'", "\u202f"]),
        rng.choice(ORDERS),
        rng.choice(["", "", " €", "$", " kg", " %"]),
        rng.choice(FLAGS),
        rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
        rng.choice(["utf-8", "utf-8-sig", "utf-16"]),
        rng.choice(["", "", "", " "]),
    )


def table(rng: random.Random) -> dict[str, list]:
    """Return columns of values; the last row shows how numbers and dates are written."""
    m = rng.choice([2, 5, 20, 80])
    digits = rng.choice([1, 2, 2, 3, 4])
    day = datetime.date(2000, 1, 1)
    return {
        "whole": [rng.randint(-5, 10 ** rng.randint(1, 7)) for _ in range(m)] + [1234567],
        "money": [round(rng.uniform(-9, 10 ** rng.randint(0, 6)), 2) for _ in range(m)] + [1234567.25],
        "real": [round(rng.gauss(0, 100), digits) for _ in range(m)] + [0.5],
        "day": [day + datetime.timedelta(rng.randint(0, 9000)) for _ in range(m)]
        + [datetime.date(2020, 3, 28)],
        "flag": [rng.random() < 0.5 for _ in range(m - 1)] + [True, False],
        "word": [rng.choice(["red", "green", "blue"]) for _ in range(m)] + ["red"],
    }


def number(value: float, how: Dialect, unit: bool) -> str:
    text = repr(abs(value))
    whole, _, rest = text.partition(".")
    grouped = f"{int(whole):,}".replace(",", how.thousands)
    text = ("-" if value < 0 else "") + grouped + (how.decimal + rest if rest else "")
    return (
        text
        if not unit
        else (how.unit + text if how.unit == "$" and value >= 0 else text + how.unit.strip("$"))
    )


def written(columns: dict[str, list], how: Dialect) -> bytes:
    cells = {
        "whole": [number(v, how, False) for v in columns["whole"]],
        "money": [number(v, how, True) for v in columns["money"]],
        "real": [number(v, how, False) for v in columns["real"]],
        "day": [v.strftime(how.order) for v in columns["day"]],
        "flag": [how.flags[not v] for v in columns["flag"]],
        "word": columns["word"],
    }
    text = io.StringIO()
    quoting = how.quoting if not how.padding else csv.QUOTE_MINIMAL
    writer = csv.writer(text, delimiter=how.delimiter, quoting=quoting, lineterminator="\n")
    writer.writerow(cells)
    for row in zip(*cells.values(), strict=True):
        clash = any(how.delimiter in cell for cell in row)
        writer.writerow([cell if clash or not j else how.padding + cell for j, cell in enumerate(row)])
    return text.getvalue().encode(how.encoding)


def differences(found, columns: dict[str, list]) -> str:
    """Return the first cell that differs; "" if there is none."""
    for name, expected in columns.items():
        for i, (a, b) in enumerate(zip(found[name].to_pylist(), expected, strict=True)):
            a = a.date() if isinstance(a, datetime.datetime) else a
            if a != b and not (isinstance(b, float) and isinstance(a, float) and abs(a - b) <= 1e-9 * abs(b)):
                return f"{name}[{i}] is {a!r} and should be {b!r}"
    return ""


def run(case: int, folder: Path) -> str:
    """Return "right", "refused", or what is wrong."""
    import pyarrow as pa

    from riskbayes.input.files import UserError
    from riskbayes.input.files.batches import Batches
    from riskbayes.input.files.expected import Expected
    from riskbayes.input.files.options import Options
    from riskbayes.input.files.table import read_table

    rng = random.Random(case)
    columns, first, second = table(rng), dialect(rng), dialect(rng)
    if rng.random() < 0.3:
        second = second._replace(decimal=first.decimal, thousands=first.thousands, order=first.order)
    if rng.random() < 0.7:
        second = second._replace(unit=first.unit)
    told = rng.random() < 0.3
    (folder / "a.csv").write_bytes(written(columns, first))
    (folder / "b.csv").write_bytes(written(columns, second))
    trained = read_table(folder / "a.csv")
    if wrong := differences(trained.table, columns):
        return f"case {case}: at fit, {first}: {wrong}"
    order = {"d": "dmy", "m": "mdy", "Y": "ymd"}[second.order[1]]
    options = Options(decimal=second.decimal, date_order=order) if told else Options()
    try:
        with Batches(folder / "b.csv", Expected(trained.notations), options) as batches:
            found = pa.concat_tables([batch.X for batch in batches], promote_options="permissive")
    except UserError as error:
        if told and second.unit == first.unit:
            return f"case {case}: refused though it was said, {first} {second}: {error}"
        return "refused" if len(str(error).splitlines()) == 1 else f"case {case}: no sentence: {error}"
    wrong = differences(found, columns)
    return f"case {case}: {first} {second}: {wrong}" if wrong else "right"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    given = parser.parse_args()
    outcomes: Counter = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for case in range(given.first, given.first + given.cases):
            outcome = run(case, Path(folder))
            if outcome not in ("right", "refused"):
                print(outcome, flush=True)
                outcome = "wrong"
            outcomes[outcome] += 1
    print(f"{given.cases} cases: {dict(outcomes)}")
    sys.exit(outcomes["wrong"] > 0)


if __name__ == "__main__":
    main()
