"""Reports of comparisons that never took place: ordinary ones, extreme ones and hostile ones."""

import datetime
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd

from riskbayes import RiskBayesClassifier
from riskbayes.compare.explorer import json_cell
from riskbayes.compare.report import (
    CellContribution,
    ClassShare,
    ColumnContribution,
    ColumnSummary,
    Contender,
    DataSummary,
    MovedParameter,
    ReliabilityBin,
    Report,
    RowExample,
    RowLogOdds,
    Run,
    Score,
    SplitSummary,
)
from riskbayes.export import portable, to_json
from riskbayes.findings import CODES, Finding

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</style><script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "&lt;b&gt; &#60;script&#62;",
    "' onmouseover='alert(1)",
    "javascript:alert(1)",
    "\u0627\u0644\u062f\u062e\u0644 \u05e9\u05dc\u05d5\u05dd",
    "\u202eabc\u2066def",
    "nul\x00 bell\x07 half \ud800 pair",
    "https://example.org/a.png",
    "x" * 300,
    "",
)
"""Texts that want to be more than text, turn the line round, or cannot be written."""

NAMES = (
    *("age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation"),
    *("relationship", "race", "sex", "capital_gain", "capital_loss", "hours_per_week", "native_country"),
)


def contenders(rng, base, n_classes, test_rows, gain=1.0):
    """The usual field; errors in percent."""

    def one(name, kind, learner, error, fit):
        se = float(np.sqrt(error * (100 - error) / test_rows))
        scores = {
            "error": Score(error, se),
            "log_loss": Score(0.02 + error / 45, se / 60),
            "brier": Score(error / 68, se / 100),
            "calibration_error": Score(0.01 + error / 900, 0.004),
        }
        if n_classes == 2:
            scores["auc"] = Score(0.5 if kind == "baseline" else 1 - error / 140, 0.006)
        paired = {"error": Score(error - best, se / 2), "log_loss": Score((error - best) / 45, se / 120)}
        gained = {"error": Score(error - base, se / 2), "log_loss": Score((error - base) / 45, se / 120)}
        return Contender(name, kind, learner, scores, gained, paired, fit, fit / 9)

    best = base * (1 - 0.40 * gain)
    return (
        one("RiskBayesClassifier", "riskbayes", "", best, 1.234),
        one("Naive Bayes, RC", "riskbayes", "RC", base * (1 - 0.33 * gain), 0.41),
        one("Naive Bayes, closed form", "riskbayes", "closed form", base * (1 - 0.27 * gain), 0.032),
        one("LDA, RC", "riskbayes", "RC", base * (1 - 0.345 * gain), 0.3),
        one("LDA, closed form", "riskbayes", "closed form", base * (1 - 0.335 * gain), 0.08),
        one("QDA, RC", "riskbayes", "RC", base * (1 - 0.31 * gain), 0.9),
        one("logistic regression", "peer", "", base * (1 - 0.38 * gain), 0.22),
        one("histogram boosting", "peer", "", base * (1 - 0.42 * gain), 0.8),
        one("majority class", "baseline", "", base, 0.0004),
    )


def example(rng, row, truth, predicted, probability, columns):
    values = np.sort(np.abs(rng.standard_normal(len(columns))))[::-1] * rng.choice(
        [-1, 1], len(columns), p=[0.3, 0.7]
    )
    cells = tuple(
        CellContribution(column, f"value {i}", float(value))
        for i, (column, value) in enumerate(zip(columns, values, strict=True))
    )
    cells, rest = cells[:8], [cell.contribution for cell in cells[8:]]
    total = float(np.log(probability / (1 - probability)))
    prior = total - sum(cell.contribution for cell in cells) - sum(rest)
    other = "another" if truth == predicted else truth
    sums = RowLogOdds(predicted, probability, other, 1 - probability, prior, len(rest), sum(rest), total)
    return RowExample(row, truth, predicted, probability, cells, sums)


def made(labels=("<=50K", ">50K"), names=NAMES, base=24.1, rows=3000, gain=1.0, seed=0):
    """A report in which nothing is missing."""
    rng = np.random.default_rng(seed)
    r, test_rows = len(labels), rows // 4
    shares = np.sort(rng.dirichlet(np.full(r, 5.0)))[::-1] if r != 2 else np.array([0.759, 0.241])
    confusion = rng.multinomial(test_rows // 6, np.full(r * r, 1 / r**2)).reshape(r, r)
    confusion[np.diag_indices(r)] += np.round(shares * test_rows * 5 / 6).astype(int)
    predicted = np.linspace(max(0.55, 1 / r), 0.98, 9)
    bins = tuple(
        ReliabilityBin(
            float(p), float(p - 0.04 * np.sin(9 * p)), float(p - 0.1), min(float(p + 0.06), 1.0), int(n)
        )
        for p, n in zip(predicted, rng.integers(9, 200, 9), strict=True)
    )
    kinds = ("number", "category", "date", "count")
    columns = [
        ColumnSummary(name, kinds[i % 4], (name,), "", (0.0, 0.056, 0.0004)[i % 3], int(rng.integers(2, 900)))
        for i, name in enumerate(names)
    ]
    columns.append(ColumnSummary("id", "text", (), "a value of its own in almost every row", 0.0, rows))
    return Report(
        data=DataSummary(
            "adult_sample.csv",
            rows,
            "income",
            tuple(
                ClassShare(label, round(rows * s), float(s)) for label, s in zip(labels, shares, strict=True)
            ),
            tuple(columns),
            "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        ),
        split=SplitSummary(
            "holdout", 1, rows - test_rows, test_rows, "a quarter of the rows, drawn at random", "", 0
        ),
        verdict="income can be predicted well: 14.5 % of the held-out rows are wrong, against 24.1 % for the "
        "most frequent class. The difference of 9.6 points is 11 standard errors, far beyond chance.",
        contenders=contenders(rng, base, r, test_rows, gain),
        best="RiskBayesClassifier",
        why="It has the lowest log loss of the models of riskbayes, and no model of another kind is better "
        "beyond chance.",
        labels=tuple(labels),
        confusion=tuple(tuple(int(n) for n in row) for row in confusion),
        reliability=bins,
        surest_wrong=tuple(
            example(rng, 17 * i + 3, labels[0], labels[1], 0.9991 - 0.01 * i, names) for i in range(5)
        ),
        contributions=tuple(
            ColumnContribution(
                name, float(1.5 * 0.8**i) if i < len(names) - 1 else None, float(base * (0.8 + 0.01 * i))
            )
            for i, name in enumerate(names)
        ),
        explained="RiskBayesClassifier",
        method="terms of a sum",
        moved_in="Naive Bayes, RC",
        examples=tuple(
            example(rng, 31 * i + 5, labels[i % r], labels[(i + i % 2) % r], 0.6 + 0.07 * i, names)
            for i in range(5)
        ),
        moved=tuple(
            MovedParameter(
                f"p({names[i % len(names)]} = value {i})", 0.4 - 0.04 * i, 0.1 + 0.05 * i, labels[i % r]
            )
            for i in range(8)
        ),
        findings=(
            Finding("RB004", "52 held-out rows also stand among the training rows (1.7 %).", "", "error"),
            Finding("RB007", "5.6 % of the cells of 'occupation' are missing.", "occupation"),
            Finding("RB007", "5.6 % of the cells of 'workclass' are missing.", "workclass"),
            Finding("RB002", "It says 91 % on average, and is right in 86 %.", "RiskBayesClassifier"),
            Finding("RB006", "It was left out.", "id", "info"),
        ),
        run=Run(
            "riskbayes compare adult_sample.csv --target income --seed 0",
            {"riskbayes": "0.1.0", "scikit-learn": "1.9.0", "NumPy": "2.4.0", "Python": "3.13.1"},
            0,
            "2026-01-31T12:00:00+00:00",
            12.34,
        ),
    )


def fifteen_classes():
    words = ("setosa", "a class with a long name of several words", "c", "Iris-virginica (Anderson)")
    return made([f"{words[i % 4]} {i}" for i in range(15)], base=88.0, rows=20000)


def many_classes():
    return made([f"class {i}" for i in range(60)], base=97.0, rows=9000)


def two_columns():
    return made(names=("x", "y"), rows=120)


def nothing_predictable():
    report = made(gain=0.0, base=49.6, rows=800)
    return replace(
        report,
        verdict="income cannot be predicted from these columns: no model beats always answering <=50K.",
        findings=(Finding("RB010", "The best is 0.0 ± 1.8 points from the majority class.", "", "error"),),
        moved=(),
        surest_wrong=(),
    )


def long_names():
    names = tuple(f"{'a_very_long_column_name_without_a_space_' * 3}{i}" for i in range(10))
    words = tuple(
        f"average number of days between order and delivery in the year {i}, by region" for i in range(8)
    )
    return made(names=names + words)


def wide():
    report = made(names=tuple(f"sensor_{i:03d}" for i in range(200)))
    missing = [Finding("RB007", f"{i} % of the cells are missing.", f"sensor_{i:03d}") for i in range(60)]
    every = [Finding(code, f"An example of {code}.", "sensor_001", "info") for code in CODES]
    return replace(report, findings=(*missing, *every))


def incomplete():
    """A failed model, figures that could not be had, infinite times, and empty lists."""
    report = made()
    failed = Contender(
        "QDA, RC", "riskbayes", failed="QuadraticDiscriminantAnalysis does not take missing cells."
    )
    bare = Contender("LDA, RC", "riskbayes", scores={"error": Score(17.25), "log_loss": Score(None)})
    nowhere = Contender("histogram boosting", "peer", scores={"error": Score(float("nan"), float("inf"))})
    return replace(
        report,
        contenders=(*(c for c in report.contenders if c.name[0] not in "LQh"), failed, bare, nowhere),
        reliability=(),
        confusion=(),
        surest_wrong=(),
        contributions=(),
        examples=(),
        moved=(MovedParameter("mean of age", 36.9, 44.2, ">50K"), MovedParameter("variance", -1e9, 1e-9)),
        findings=(),
        data=replace(report.data, sha256="", columns=(ColumnSummary("age", "number"),)),
        run=replace(report.run, seconds=754.0),
    )


def hostile():
    """Every text of a user is an attack."""
    h = list(HOSTILE)
    report = with_explorer(made(labels=h[:4], names=h, base=60.0), (*h[:9], "d"), tuple(h[:5]))
    models = [replace(c, name=h[i] or "x", failed="") for i, c in enumerate(report.contenders)]
    models.append(Contender(h[3], "peer", h[1], failed=h[0]))
    return replace(
        report,
        verdict=h[0] + h[7] + h[9],
        why=h[2],
        best=models[0].name,
        explained=h[1],
        method=h[2],
        contenders=tuple(models),
        data=replace(report.data, name=h[1], target=h[0], sha256=h[5]),
        split=replace(report.split, words=h[4] + h[8]),
        findings=tuple(Finding("RB003", text, text, "warning") for text in h),
        moved=tuple(MovedParameter(text, 1.0, 200.0 * i, text) for i, text in enumerate(h)),
        run=replace(
            report.run,
            command=f"riskbayes compare '{h[3]}' --target '{h[0]}'",
            versions={h[0]: h[1]},
            started=h[5],
        ),
    )


def table_to_explore(names, words, m=200):
    """A table of every kind of column, of which cells are missing, and labels: the first two of the words."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=m)
    columns = [
        [None if gone else float(x) for x, gone in zip(rng.normal(y), rng.random(m) < 0.1, strict=True)],
        rng.integers(4, size=m) + y,
        [words[2 + i] for i in np.minimum(rng.integers(3, size=m) + y, 2)],
        rng.random(m) < 0.3 + 0.4 * y,
        [datetime.date(2024, 1, 1) + datetime.timedelta(int(d)) for d in rng.integers(400, size=m) + 90 * y],
        [f"note {i}" if rng.random() < 0.2 + 0.5 * k else None for i, k in enumerate(y)],
        *(rng.normal(size=(m, 4)) + 0.1 * y[:, None]).T,
    ]
    return pd.DataFrame(dict(zip(names, columns, strict=True))), np.array(words[:2])[y]


COLUMNS = ("size", "visits", "colour", "member", "since", "note", "a", "b", "c", "d")
WORDS = ("no", "yes", "red", "green", "blue")


@cache
def explored(names=COLUMNS, words=WORDS):
    """The model that a page answers with, and its table."""
    df, y = table_to_explore(names, words)
    return RiskBayesClassifier("single").fit(df, y), df


def with_explorer(report, names=COLUMNS, words=WORDS):
    """A report whose page answers for changed rows: the first three of the table."""
    clf, df = explored(names, words)
    rows = [
        {"row": 7 + i, "cells": [json_cell(cell) for cell in df.iloc[i].astype(object).tolist()]}
        for i in range(3)
    ]
    found = {"model": portable(clf), "order": list(range(len(names))), "rows": rows}
    return replace(report, explorer=to_json(found))


def explorable():
    return with_explorer(made(names=COLUMNS))


REPORTS = {
    "adult": made,
    "explorable": explorable,
    "fifteen": fifteen_classes,
    "many": many_classes,
    "two": two_columns,
    "nothing": nothing_predictable,
    "long": long_names,
    "wide": wide,
    "incomplete": incomplete,
    "hostile": hostile,
}
