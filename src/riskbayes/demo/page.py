"""The tables and the page of the demo."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import isnan

import numpy as np
import sklearn

import riskbayes
from riskbayes.compare import Report
from riskbayes.compare.contenders import LEARNERS, MAJORITY
from riskbayes.demo.boundary import boundary_figure
from riskbayes.demo.experiment import MOST_ROWS, TEST_SIZE, SetErrors
from riskbayes.pages.shell import Section, page
from riskbayes.pages.table import Cell, Table, Value, as_html, verdict

ROUNDING = 1e-9
"""Sums of the same fractions differ in the last bits: a difference of less is called equal."""

CITATION = (
    "Becker, B. and Kohavi, R. (1996). Adult. UCI Machine Learning Repository. doi:10.24432/C5XW20. "
    "CC BY 4.0."
)


def models_of(results: Sequence[SetErrors]) -> list[str]:
    """Return the names of the models, those of all sets, in their order."""
    return list(dict.fromkeys(model for result in results for model in result.errors))


def error_table(results: Sequence[SetErrors]) -> Table:
    """Return the mean errors, a row for each model; few splits have no standard deviation worth showing."""
    lowest = [min(round(r.mean(m), 1) for m in r.errors if not isnan(r.mean(m))) for r in results]
    rows: list[list[Cell]] = []
    for model in models_of(results):
        cells: list[Cell] = [model]
        for result, least in zip(results, lowest, strict=True):
            mean = result.mean(model)
            cells.append(Value(None if isnan(mean) else mean, best=round(mean, 1) == least))
        rows.append(cells)
    return Table(["model", *(r.data_set for r in results)], rows, "Error on held-out rows, percent")


def calibrated(results: Sequence[SetErrors]) -> dict[str, tuple[str, str]]:
    """Return the plain models that were trained in both ways: their names by closed form and by RC."""
    plain, rc = (f", {words}" for words in LEARNERS.values())
    names = [model.removesuffix(rc) for model in models_of(results) if model.endswith(rc)]
    return {name: (name + plain, name + rc) for name in names}


def change_table(results: Sequence[SetErrors]) -> Table:
    """Return what RC changes: its mean error minus that of the closed form, in points."""
    rows: list[list[Cell]] = []
    for name, (plain, rc) in calibrated(results).items():
        cells: list[Cell] = [name]
        for result in results:
            gap = result.mean(rc) - result.mean(plain)
            known = None if isnan(gap) else gap
            cells.append(Value(known, signed=True, kind="" if known is None else verdict(gap, ROUNDING)))
        rows.append(cells)
    title = "Error of RC minus that of the closed form, points"
    return Table(["model", *(r.data_set for r in results)], rows, title)


def tally(results: Sequence[SetErrors]) -> str:
    """Return how often RC is better than the closed form, and how the recipe does, in two sentences."""
    gaps = [r.mean(rc) - r.mean(plain) for plain, rc in calibrated(results).values() for r in results]
    kinds = [verdict(gap, ROUNDING) for gap in gaps]
    n = {kind: kinds.count(kind) for kind in ("better", "equal", "worse")}
    ranks = []
    for result in results:
        means = [result.mean(model) for model in result.errors if model != MAJORITY]
        own = result.mean("RiskBayesClassifier")
        ranks.append(1 + sum(mean < own - ROUNDING for mean in means))
    return (
        f"RC is better than the closed form in {n['better']} of {len(gaps)} pairs, equal in {n['equal']} and "
        f"worse in {n['worse']}. RiskBayesClassifier, without tuning, is at place "
        f"{', '.join(map(str, ranks))} of {len(models_of(results)) - 1} (ties share a place)."
    )


def demo_page(results: Sequence[SetErrors], report: Report, command: str) -> str:
    """Return the page of what `run_demo` gave and of the report; it names the command that made it."""
    lead = (
        "<p>Generative classifiers, trained by their closed form and by risk-based calibration (RC), beside "
        "models that you know. RC starts from the closed form and moves the statistics that it is computed "
        "from, guided by the errors of the training rows.</p>\n"
        '<p class="note">\u201cCalibration\u201d here adjusts the model\u2019s statistics; it is not '
        "probability calibration (Platt, isotonic).</p>"
    )
    first = results[0]
    notes = [
        "Percent, mean over splits; the lowest of a column in bold. MixedNB is naive Bayes of numbers and "
        "categories. Of tables with strings, LDA and QDA read the columns of numbers only.",
        f"The sets are small: one row of {first.data_set} is {100 / first.n_test:.1f} points of a split, and "
        "the splits share rows. A small difference decides nothing.",
    ]
    errors = f"<p>{escape(tally(results))}</p>\n{as_html(error_table(results))}\n"
    errors += "\n".join(f'<p class="small">{escape(note)}</p>' for note in notes)
    change = (
        "<p>Error of RC minus that of the closed form, in percentage points: below zero RC is better.</p>"
    )
    change += as_html(change_table(results)) + boundary_figure()
    return page(
        "Generative classifiers, calibrated",
        lead,
        [
            Section("How often are they wrong on new rows?", errors),
            Section("What does calibration change?", change),
            Section("And on a table of your own?", own_table(report)),
            Section("What was run", what_was_run(results, command)),
        ],
    )


def own_table(report: Report) -> str:
    """Return the answer of the report on the sample of adult, and how to have one for another table."""
    return (
        f"<p>One command makes a report of any table. For {escape(report.data.name)}, "
        f"{report.data.rows} rows with strings and missing cells, it says:</p>\n"
        f'<p class="note">{escape(report.verdict)}</p>\n'
        '<p><a href="report.html"><strong>Open the report</strong></a>: all models with their errors, '
        "whether the best one can be trusted, what drives it, and what is wrong with the data. It was made "
        "by</p>\n"
        f"<p><code>{escape(report.run.command)}</code></p>\n"
        f'<p class="small">The rows are a sample of {escape(CITATION)}</p>'
    )


def what_was_run(results: Sequence[SetErrors], command: str) -> str:
    """Return the command, the versions and the protocol."""
    sizes = ", ".join(f"{r.data_set} {r.n_test}" for r in results)
    n_splits = max(len(errors) for r in results for errors in r.errors.values())
    return (
        f"<dl><dt>Command</dt><dd><code>{escape(command)}</code></dd>\n"
        f"<dt>Versions</dt><dd>riskbayes {riskbayes.__version__}, scikit-learn {sklearn.__version__}, "
        f"NumPy {np.__version__}</dd>\n"
        f"<dt>Protocol</dt><dd>Held out: {n_splits} stratified random splits, {1 - TEST_SIZE:.0%} of the "
        f"rows to train on and {TEST_SIZE:.0%} to test on; nothing is learned from the test rows. "
        f"Bundled sets have at most {MOST_ROWS} rows, drawn at random.</dd>\n"
        f"<dt>Test rows</dt><dd>{escape(sizes)} a split</dd>\n"
        "<dt>Models</dt><dd>All with their defaults, QDA with its recommended prior; logistic regression on "
        "scaled numbers and indicators of categories. Nothing was tuned.</dd></dl>"
    )
