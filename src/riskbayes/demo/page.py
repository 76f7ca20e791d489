"""The tables and the page of the demo."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

import numpy as np
import sklearn

from riskbayes import __version__
from riskbayes.compare import Report
from riskbayes.compare.contenders import LEARNERS, MAJORITY
from riskbayes.demo.boundary import find_boundary
from riskbayes.demo.experiment import MOST_ROWS, TEST_SIZE, SetErrors
from riskbayes.pages.shell import environment
from riskbayes.pages.table import Cell, Table, Value, verdict

ROUNDING = 1e-9
"""Sums of the same fractions differ in the last bits: a difference of less is called equal."""

TEMPLATES = environment(__package__)


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
        own = result.mean("RiskBayesClassifier, single")
        ranks.append(1 + sum(mean < own - ROUNDING for mean in means))
    return (
        f"RC is better than the closed form in {n['better']} of {len(gaps)} pairs, equal in {n['equal']} and "
        f"worse in {n['worse']}. The recipe of RiskBayesClassifier, without tuning, is at place "
        f"{', '.join(map(str, ranks))} of {len(models_of(results)) - 1} (ties share a place)."
    )


def demo_page(results: Sequence[SetErrors], report: Report, command: str) -> str:
    """Return the page of what `run_demo` gave and of the report; it names the command that made it."""
    return TEMPLATES.get_template("page.html").render(
        results=results,
        report=report,
        command=command,
        tally=tally(results),
        errors=error_table(results),
        change=change_table(results),
        boundary=find_boundary(),
        versions={"riskbayes": __version__, "scikit-learn": sklearn.__version__, "NumPy": np.__version__},
        n_splits=max(len(errors) for r in results for errors in r.errors.values()),
        test_size=TEST_SIZE,
        most_rows=MOST_ROWS,
    )
