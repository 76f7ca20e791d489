"""Compare models on random small tables, in a fast form, and hold the reports to laws.

    python tests/fuzz_compare.py --cases 20000 --seed 0 --jobs 2
    python tests/fuzz_compare.py --seed 0 --case 123        # one of them again

A case is determined by its seed and its number. The contenders are closed forms, sometimes logistic
regression, and the majority class. Each violation is printed with the command that repeats it, and makes the
exit code 1. Refusals are answers too: they are counted by message, for a person to read.
"""

import os

# Before NumPy and SciPy are imported: one core for each process.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import argparse
import io
import re
import sys
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from html.parser import HTMLParser
from multiprocessing import get_context
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from rich.console import Console
from scipy.stats import binom
from sklearn import config_context
from sklearn.metrics import brier_score_loss, confusion_matrix, log_loss, roc_auc_score, zero_one_loss

from fuzz import shape_of
from fuzzing.cases import Refusal, Violation, attempt
from fuzzing.tables import Array
from riskbayes.compare import comparison
from riskbayes.compare.contenders import LOGISTIC
from riskbayes.compare.report import Report
from riskbayes.compare.scores import LEAST
from riskbayes.compare.study import Study
from riskbayes.compare.terminal import print_report
from riskbayes.input.files.options import kind_option

try:
    from polars import from_pandas as as_polars
except ImportError:  # a machine without it compares the same tables as pandas frames
    as_polars = None

MOST_CLAIMS, CHANCE = 0.02, 1e-4
"""Share of tables with noise labels whose target is said to be predictable at most, and the probability that
as many as are counted say so if it is no more: below it, the share is a violation."""

TOLERANCE = 1e-9
"""Of figures that scikit-learn sums in another order."""

NASTY = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "a|b",
    "[/b]",
    "[red]x",
    "$(touch x)",
    "`x`",
    "*x* _y_ # z",
    "\x1b[31mred",
    "'; --",
    "50 of 3",
    "120 %",
    "&lt;b&gt;",
    "日本",
    "مرحبا",
    "é e\u0301",
    "a\nb",
    " x ",
    "None?",
    "\\",
)
"""Names and labels that a page, a table of Markdown or a terminal could obey."""


@dataclass(frozen=True)
class Drawn:
    """A table to compare models on, the name of its target, and the options."""

    table: pd.DataFrame
    target: str
    options: dict[str, Any]
    noise: bool
    """True if the labels have nothing to do with the columns."""
    logistic: bool

    def __str__(self) -> str:
        m, n = self.table.shape
        kinds = ", ".join(f"{name!r}: {kind}" for name, kind in self.table.dtypes.items())
        words = "noise labels" if self.noise else "labels"
        return f"{m} x {n}, {words} {self.target!r}, {self.options}; {kinds}"


def draw(seed: int, number: int) -> Drawn:
    """Return the table and the options that a seed and a number stand for."""
    rng = np.random.default_rng([seed, number])
    few, some = rng.integers(4, 25), rng.integers(25, 120)
    m, n, r = int(rng.choice([few, some])), int(rng.integers(1, 6)), int(rng.choice([2, 2, 3, 5]))
    shares = rng.dirichlet(np.full(r, rng.choice([0.5, 5.0])))
    y, noise = rng.choice(r, size=m, p=shares), bool(rng.random() < 0.4)
    hidden = rng.permutation(y) if noise else y
    names = random_names(n + 3, rng)
    columns = {name: random_column(hidden, rng) for name in names[:n]}
    target, extra, options = names[n], names[n + 1], {"seed": int(rng.integers(3))}
    columns[target] = random_labels(r, rng)[y]
    if (split := rng.random()) < 0.15:
        days = rng.integers(0, 400, size=m)
        columns[extra] = days if rng.random() < 0.5 else pd.to_datetime(days, unit="D")
        options["time_column"] = extra
    else:
        if split < 0.35:
            columns[extra] = rng.integers(max(2, m // 5), size=m)
            options["group"] = extra
        options["cv"] = int(rng.choice([2, 2, 2, 3]))
    if rng.random() < 0.1:
        options["max_rows"] = m // 2 + 1
    order = rng.permutation(list(columns)).tolist()
    frame = pd.DataFrame(columns)[order]
    if rng.random() < 0.15 and not noise:  # a row that comes again says what its label is
        frame = pd.concat([frame, frame.iloc[: m // 2]], ignore_index=True)
    return Drawn(frame, target, options, noise, bool(rng.random() < 0.2))


def random_names(number: int, rng: np.random.Generator) -> list[str]:
    """Return distinct names, some of which mean something to a page or a terminal."""
    plain = [f"column {j}" for j in range(number)]
    nasty = rng.permutation(NASTY)[:number].tolist()
    return [odd if rng.random() < 0.3 else name for name, odd in zip(plain, nasty, strict=True)]


def random_labels(r: int, rng: np.random.Generator) -> Array:
    """Return the labels of the classes: words, numbers, booleans, or what looks like something else."""
    kinds = [
        np.array([f"class {k}" for k in range(r)], dtype=object),
        np.arange(r) - 1,
        np.arange(r) + 0.0,
        np.array(rng.permutation(NASTY)[:r].tolist(), dtype=object),
    ]
    return np.array([False, True]) if r == 2 and rng.random() < 0.1 else kinds[rng.integers(len(kinds))]


def random_column(y: Array, rng: np.random.Generator) -> Any:
    """Return numbers, words or dates that depend on the class, or not; some cells are missing."""
    m, strength = len(y), rng.choice([0.0, 0.0, 0.7, 3.0])
    x = rng.standard_normal(m) + strength * y
    kind = rng.choice(
        ["number", "whole", "word", "date", "constant", "identifier", "running", "copy"], p=KINDS
    )
    found = pd.Series(
        {
            "number": x * 10.0 ** rng.integers(-3, 4),
            "whole": np.round(3 * x),
            "word": [NASTY[round(v) % len(NASTY)] for v in x],
            "date": pd.to_datetime(np.round(100 * x) + 20_000, unit="D"),
            "constant": np.full(m, 7.0),
            "identifier": [f"row {i}" for i in range(m)],
            "running": np.arange(float(m)),
            "copy": [f"answer {k}" for k in y],
        }[str(kind)]
    )
    return found.mask(rng.random(m) < rng.choice([0.0, 0.0, 0.2, 0.7]))


KINDS = [0.35, 0.15, 0.25, 0.08, 0.04, 0.05, 0.04, 0.04]
"""Shares of the kinds of columns."""


@dataclass
class Outcome:
    """What came of one case; plain values, to be sent between processes."""

    number: int
    violations: list[tuple[str, str]] = field(default_factory=list)
    """(law, what went wrong)."""
    refusal: str | None = None
    claims: bool | None = None
    """Whether noise labels are said to be predictable; None for other labels."""
    seconds: float = 0.0


def compare_fast(drawn: Drawn) -> tuple[Report, Study]:
    """Return the report of a comparison of few and quick contenders, and the study that it tells of."""
    every, run, seen = comparison.candidates, comparison.run_study, []

    def few(*arguments: Any) -> list[Any]:
        kept = (LOGISTIC,) if drawn.logistic else ()
        found = every(*arguments)
        return [c for c in found if c.learner == "closed form" or c.kind == "baseline" or c.name in kept]

    def remembered(*arguments: Any) -> Study:
        seen.append(run(*arguments))
        return seen[-1]

    table: Any = drawn.table
    if as_polars is not None and len(table) % 3 == 0:
        table = as_polars(table)
    with (
        mock.patch.object(comparison, "candidates", few),
        mock.patch.object(comparison, "run_study", remembered),
    ):
        return comparison.compare(table, drawn.target, **drawn.options).report, seen[0]


def run_case(seed: int, number: int, *, raising: bool = False) -> Outcome:
    """Draw a case and hold it to the laws; `raising` shows the traceback of a violation."""
    start, drawn, outcome = time.perf_counter(), draw(seed, number), Outcome(number)

    def hold(law: str, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except Exception as error:
            if raising:
                traceback.print_exc()
            what = str(error) if isinstance(error, Violation) else f"the law itself fails: {error!r}"
            outcome.violations.append((law, what))
            return None

    found = hold("a report, or a sentence", lambda: attempt(lambda: compare_fast(drawn)))
    if isinstance(found, Refusal):
        outcome.refusal = found.message
        hold("a report, or a sentence", lambda: check_sentence(found.message))
    elif found is not None:
        for law, work in LAWS.items():
            hold(law, lambda work=work: work(drawn, *found))
        if drawn.noise:
            outcome.claims = all(finding.code != "RB010" for finding in found[0].findings)
    outcome.seconds = time.perf_counter() - start
    return outcome


def check_sentence(message: str) -> None:
    """Require a refusal of one line that ends as a sentence does."""
    if "\n" in message.strip() or not message.rstrip().endswith((".", "?")):
        raise Violation(f"this is no sentence: {message!r}")


@config_context(skip_parameter_validation=True, assume_finite=True)
def figures_of_sklearn(drawn: Drawn, report: Report, study: Study) -> None:
    """The figures of every model are those of scikit-learn, from its probabilities of the held-out rows."""
    held, r = study.held, len(study.data.classes)
    classes, ends = np.arange(r), np.cumsum([len(part.held) for part in study.parts])
    folds = np.split(np.arange(len(held)), ends[:-1])
    if report.split.test_rows != len(held):
        raise Violation(f"{report.split.test_rows} held-out rows; there are {len(held)}")
    for contender in report.contenders:
        if contender.failed:
            continue
        P = study.trial(contender.name).P
        clipped = np.clip(P, LEAST, 1.0)
        own = -np.log(clipped[np.arange(len(held)), held]).mean()
        expected = {
            "error": 100 * zero_one_loss(held, P.argmax(axis=1)),
            "log_loss": own if (P < LEAST).any() else log_loss(held, P, labels=classes),
            "brier": brier_score_loss(held, P if r > 2 else P[:, 1], labels=classes),
        }
        areas = [area_of(held[rows], P[rows]) for rows in folds if len(set(held[rows].tolist())) > 1]
        expected |= {"auc": np.mean(areas)} if areas else {}
        for name, value in expected.items():
            told = contender.scores[name].value
            if told is None or abs(told - value) > TOLERANCE * (1 + abs(value)):
                raise Violation(f"the {name} of {contender.name} is {told}, by scikit-learn {value}")
        for name in ("error", "log_loss"):
            for others, gap in (("majority class", contender.gain), (report.best, contender.behind)):
                other = next(c for c in report.contenders if c.name == others).scores[name].value
                if gap and abs(gap[name].value - (contender.scores[name].value - other)) > 1e-6:
                    raise Violation(f"{contender.name} minus {others}: {gap[name].value} of {name}")
    counted = confusion_matrix(held, study.trial(report.best).P.argmax(axis=1), labels=classes)
    if counted.tolist() != [list(line) for line in report.confusion]:
        raise Violation(f"the confusion is {report.confusion}, by scikit-learn {counted.tolist()}")
    if report.reliability and sum(part.rows for part in report.reliability) != len(held):
        raise Violation("the bins of confidence do not have all held-out rows")


def area_of(y: Array, P: Array) -> float:
    """The areas under the ROC curves of the classes against all others, weighted by their rows."""
    return sum((y == c).mean() * roc_auc_score(y == c, P[:, c]) for c in np.unique(y))


def counts_of_findings(drawn: Drawn, report: Report, study: Study) -> None:
    """No finding states more rows than there are, or a share beyond all of them."""
    m = len(drawn.table)
    words = {str(cell) for name in drawn.table.columns for cell in drawn.table[name].tolist()}
    quoted = [repr(str(text)) for text in (*drawn.table.columns, *report.labels, *words)]
    quoted += [kind_option(str(name), "category") for name in drawn.table.columns]
    for finding in report.findings:
        message = finding.message
        for text in sorted(quoted, key=len, reverse=True):
            message = message.replace(text, "")
        for part, whole in re.findall(r"(\d+) (?:distinct values )?of (\d+)", message):
            if not int(part) <= int(whole) <= m:
                raise Violation(f"{finding.message} (of {m} rows)")
        for rows in re.findall(r"(\d+(?:\.\d+)?) rows?\b", message):
            if float(rows) > m:
                raise Violation(f"{finding.message} (of {m} rows)")
        for share in re.findall(r"(-?\d+(?:\.\d+)?) %", message):
            if not 0 <= float(share) <= 100:
                raise Violation(finding.message)


def json_keeps_it(drawn: Drawn, report: Report, study: Study) -> None:
    """A report that was written as JSON and read again is the same."""
    if Report.from_json(report.to_json()) != report:
        raise Violation("the report changes as it is written and read")


class Page(HTMLParser):
    """The text of a page, and every element and attribute that stands in it."""

    def __init__(self, page: str):
        super().__init__(convert_charrefs=True)
        self.words, self.tags, self.attributes, self._hidden = [], Counter(), Counter(), 0
        self.feed(page)
        self.close()

    def updatepos(self, i: int, j: int) -> int:
        """Do not count lines, which takes a fifth of the time."""
        return j

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes.update(name for name, _ in attrs)
        self._hidden += tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.words.append(data)


def squeezed(text: str) -> str:
    """A text without blanks and control characters, which each rendering sets in its own way."""
    return re.sub(r"[\s\x00-\x1f\x7f-\x9f\ufffd]", "", text)


def page_shows_it(drawn: Drawn, report: Report, study: Study) -> None:
    """The page has the verdict, the names and the figures; it has no element that a user wrote."""
    page = Page(report.to_html())
    shown = squeezed("".join(page.words))
    best = next(c for c in report.contenders if c.name == report.best)
    for text in (report.data.target, report.best, f"{best.scores['error'].value:.1f}", *report.labels):
        if squeezed(text) not in shown:
            raise Violation(f"the page lacks {text!r}")
    obeyed = [name for name in page.attributes if name.startswith("on")]
    if page.tags["img"] or page.tags["script"] != 1 or obeyed:
        raise Violation(f"the page obeys a user's text: {page.tags['script']} scripts, {obeyed}")


def markdown_shows_it(drawn: Drawn, report: Report, study: Study) -> None:
    """The Markdown has the verdict, the figures of every model, and tables of as many cells as headers."""
    text = report.to_markdown()
    plain = squeezed(re.sub(r"\\(\W|_)", r"\1", text))
    for wanted in (report.verdict, report.best, *report.labels):
        if squeezed(wanted) not in plain:
            raise Violation(f"the Markdown lacks {wanted!r}")
    fitted = [c for c in report.contenders if not c.failed]
    rows = text.partition("\n## Models\n")[2].splitlines()[3 : 3 + len(fitted)]
    for contender, row in zip(fitted, rows, strict=True):
        shown = row.split(" | ")[1].split()[0]
        unit = 10.0 ** -len(shown.partition(".")[2])
        if abs(float(shown) - contender.scores["error"].value) > 0.5 * unit + TOLERANCE:
            raise Violation(f"the Markdown has another error of {contender.name}: {shown}")
    wide = 0
    for line in text.splitlines():
        cells = len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) if line.startswith("|") else 0
        if cells and wide and cells != wide:
            raise Violation(f"a row of {cells - 1} cells in a table of {wide - 1}: {line}")
        wide = cells
    if re.search(r"(?<!\\)<(script|img)", text) or "\x1b" in text:
        raise Violation("the Markdown has an element or a control character of a user")


def terminal_shows_it(drawn: Drawn, report: Report, study: Study) -> None:
    """A terminal shows the verdict, and gets no control character that a user wrote."""
    written = io.StringIO()
    print_report(report, Console(file=written, width=200))
    if squeezed(report.verdict) not in squeezed(written.getvalue()):
        raise Violation("the terminal lacks the verdict")
    if re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", written.getvalue()):
        raise Violation("the terminal gets a control character of a user")


LAWS: dict[str, Callable[[Drawn, Report, Study], None]] = {
    "figures are scikit-learn's, from the held-out predictions": figures_of_sklearn,
    "no finding counts more rows than there are": counts_of_findings,
    "JSON keeps the report": json_keeps_it,
    "the page shows it, and obeys no user's text": page_shows_it,
    "Markdown shows it, and obeys no user's text": markdown_shows_it,
    "a terminal shows it, and obeys no user's text": terminal_shows_it,
}


def run_chunk(seed: int, numbers: list[int]) -> list[Outcome]:
    """Several cases, in one process."""
    return [run_case(seed, number) for number in numbers]


def run_cases(seed: int, cases: int, jobs: int) -> Iterator[Outcome]:
    """Yield the outcomes of cases, in their order, a chunk at a time."""
    chunks = [list(range(first, min(first + 20, cases))) for first in range(0, cases, 20)]
    if jobs == 1:
        for chunk in chunks:
            yield from run_chunk(seed, chunk)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for outcomes in pool.map(run_chunk, [seed] * len(chunks), chunks):
            yield from outcomes


def too_many_claims(claims: int, tables: int) -> bool:
    """True if chance explains so many claims on tables with noise labels no more."""
    return bool(binom.sf(claims - 1, tables, MOST_CLAIMS) < CHANCE)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(description="Hold comparisons of random tables to the laws.")
    parser.add_argument("--cases", type=int, default=2000, help="how many (default: 2000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: 1)")
    parser.add_argument("--case", type=int, help="repeat this case alone")
    options = parser.parse_args(arguments)
    if options.case is not None:
        print(draw(options.seed, options.case))
        outcome = run_case(options.seed, options.case, raising=True)
        print(outcome)
        return int(bool(outcome.violations))
    laws, refusals, noise, claimed, slowest = Counter(), defaultdict(list), 0, [], []
    start, told = time.perf_counter(), 0.0
    for done, outcome in enumerate(run_cases(options.seed, options.cases, options.jobs), 1):
        for law, what in outcome.violations:
            laws[law] += 1
            command = f"python tests/fuzz_compare.py --seed {options.seed} --case {outcome.number}"
            print(f"{command}  # {law}: {' '.join(what.split())[:300]}", flush=True)
        if outcome.refusal is not None:
            refusals[shape_of(outcome.refusal)].append(outcome.number)
        noise += outcome.claims is not None
        claimed += [outcome.number] if outcome.claims else []
        slowest = sorted([*slowest, (outcome.seconds, outcome.number)])[-5:]
        seconds = time.perf_counter() - start
        if seconds - told > 10 or done == options.cases:
            told = seconds
            rate = f"{done / seconds:.1f} a second"
            print(f"{done}/{options.cases} cases, {rate}, {laws.total()} violated", flush=True)
    dishonest = too_many_claims(len(claimed), noise)
    print("\nrefusals, by message, with the number of a case")
    for message, numbers in sorted(refusals.items(), key=lambda item: -len(item[1])):
        print(f"{len(numbers):6d}  {message[:160]}  ({numbers[0]})")
    for law in ("a report, or a sentence", *LAWS):
        print(f"{laws[law]:6d} violations of: {law}")
    print(f"{int(dishonest):6d} violations of: at most {100 * MOST_CLAIMS:g} % of tables of noise claim more")
    print(f"{noise} tables of noise labels, of which {len(claimed)} claim to predict: {claimed[:10]}")
    print("slowest: " + ", ".join(f"case {n} {s:.1f} s" for s, n in reversed(slowest)))
    print(f"\n{options.cases} cases of seed {options.seed}: {laws.total() + dishonest} violations")
    return int(laws.total() + dishonest > 0)


if __name__ == "__main__":
    sys.exit(main())
