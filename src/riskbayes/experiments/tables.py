"""The paper's tables, from the long table alone, with the printed figure beside every cell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from riskbayes.experiments import published
from riskbayes.experiments.protocols import LEARNERS, PROTOCOLS
from riskbayes.experiments.published import PAPER_TABLES, PaperTable
from riskbayes.experiments.results import POINT, Results, Setting

FAR = 2.0
"""A measured error that is further from the printed one than this, in points, is marked."""

VERY_FAR = 8.0
"""Points by which a held-out error is nowhere near the printed one."""

RIVALS = ("closed_form", "gd", "gd_scaled", "dfe", "tm")


@dataclass(frozen=True)
class Value:
    """A number of a table.

    Parameters
    ----------
    mean : float or None
        What was measured.
    spread : float, default=None
        Standard deviation over splits, or a standard error where the table says so.
    published : float, default=None
        What the paper prints.
    best : bool, default=False
        The lowest among its peers.
    is_error : bool, default=False
        An error in percent: far from the printed figure it gets a mark.
    beside : bool, default=True
        Show the printed figure beside it; False where it has a column of its own.
    digits : int, default=1
        Digits after the point.
    signed : bool, default=False
        A difference, shown with its sign.
    kind : str, default=""
        "better", "equal" or "worse".
    """

    mean: float | None
    spread: float | None = None
    published: float | None = None
    best: bool = False
    is_error: bool = False
    beside: bool = True
    digits: int = 1
    signed: bool = False
    kind: str = ""

    @property
    def far(self) -> bool:
        """Whether it is an error more than two points from the printed one."""
        known = self.is_error and self.mean is not None and self.published is not None
        return known and abs(self.mean - self.published) > FAR  # type: ignore[operator]


Cell = str | Value


@dataclass(frozen=True)
class ResultTable:
    """A table of results, before it is text, CSV, LaTeX or HTML."""

    name: str
    title: str
    note: str
    headers: list[str]
    rows: list[list[Cell]]
    protocol: str = ""
    """What its errors were measured under; empty where it shows both."""


def all_tables(results: Results) -> list[ResultTable]:
    """Every table that these results can fill."""
    found = [*summaries(results), agreement(results)]
    for name, paper in PAPER_TABLES.items():
        found.append(three_columns(results, name, paper))
    for protocol in results.protocols:
        found += [paper_table(results, name, paper, protocol) for name, paper in PAPER_TABLES.items()]
    for setting in results.settings:
        found += [learner_table(results, setting), difference_table(results, setting)]
    return [table for table in found if table.rows]


def paper_table(results: Results, name: str, paper: PaperTable, protocol: str) -> ResultTable:
    """A table in the paper's form: training and test errors, Iter, Reach, average ranks."""
    setting = Setting(paper.model, paper.estimate, protocol)
    headers, rows = ["data set"], []
    for method in paper.methods:
        word = short(method, paper)
        headers += [f"{word} train", f"{word} test"] + ([f"{word} iter"] if method != "closed_form" else [])
    headers.append("reach")
    for data_set in results.sets:
        if not any(results.of(data_set, setting, learner) for learner in paper.methods.values()):
            continue
        row: list[Cell] = [results.label(data_set)]
        for method, learner in paper.methods.items():
            for part in ("train", "test"):
                printed = published.figure(name, data_set, method, f"{part}_error_pct")
                row.append(error(results, data_set, setting, learner, part, printed))
            if method != "closed_form":
                steps = results.iterations(data_set, setting, learner)
                printed = published.figure(name, data_set, method, "iter")
                row.append(Value(float(steps.mean()) if len(steps) else None, published=printed))
        printed = published.figure(name, data_set, "rc", "reach")
        row.append(Value(results.reach(data_set, setting, "rc_paper", paper.rival), published=printed))
        for part in ("train", "test"):
            mark_best(row, [headers.index(f"{short(method, paper)} {part}") for method in paper.methods])
        rows.append(row)
    if rows:
        rows.append(rank_row(results, name, paper, setting))
    return ResultTable(
        f"{name}_{protocol}",
        f"{paper.title}, {protocol}",
        f"Errors in percent, mean ± standard deviation over splits; {PROTOCOLS[protocol]}. Beside it the "
        "paper's figure. Iter: the iteration of the lowest training soft error, the closed form being 1. "
        f"Reach: the iterations RC needs to get to {LEARNERS[paper.rival]}'s lowest soft error, where it "
        f"does in all splits. Average rank: over these sets. {results.coverage}.",
        headers,
        rows,
        protocol,
    )


def rank_row(results: Results, name: str, paper: PaperTable, setting: Setting) -> list[Cell]:
    """The average rank of each method; the paper has it over its 20 sets."""
    learners = list(paper.methods.values())
    row: list[Cell] = ["average rank"]
    ranks = {part: results.ranks(setting, learners, part) for part in ("train", "test")}
    for j, method in enumerate(paper.methods):
        for part in ("train", "test"):
            mean = float(ranks[part][:, j].mean()) if len(ranks[part]) else None
            row.append(Value(mean, published=published.rank(name, method, part), digits=2))
        row += [""] if method != "closed_form" else []
    return [*row, ""]


def three_columns(results: Results, name: str, paper: PaperTable) -> ResultTable:
    """Test errors: published, held-out, in-train."""
    headers, rows = ["data set"], []
    for method in paper.methods:
        headers += [f"{short(method, paper)} {column}" for column in ("published", *results.protocols)]
    for data_set in results.sets:
        row: list[Cell] = [results.label(data_set)]
        for method, learner in paper.methods.items():
            printed = published.figure(name, data_set, method, "test_error_pct")
            row.append(Value(printed, digits=0))
            for protocol in results.protocols:
                setting = Setting(paper.model, paper.estimate, protocol)
                cell = error(results, data_set, setting, learner, "test", printed)
                row.append(replace(cell, beside=False))
        if any(isinstance(cell, Value) and cell.is_error and cell.mean is not None for cell in row):
            rows.append(row)
    return ResultTable(
        f"{name}_three_columns",
        f"{paper.title}: published, {', '.join(results.protocols)}",
        "Test errors in percent, mean ± standard deviation over splits. "
        + "; ".join(f"{p}: {PROTOCOLS[p]}" for p in results.protocols)
        + f". {results.coverage}.",
        headers,
        rows,
    )


def learner_table(results: Results, setting: Setting) -> ResultTable:
    """Test errors of every learner."""
    learners = results.learners(setting)
    rows: list[list[Cell]] = []
    for name in results.sets:
        row: list[Cell] = [results.label(name)]
        row += [error(results, name, setting, learner, "test") for learner in learners]
        if any(isinstance(cell, Value) and cell.mean is not None for cell in row):
            mark_best(row, list(range(1, len(row))))
            rows.append(row)
    ranks = results.ranks(setting, learners)
    if len(ranks):
        rows.append(["average rank", *(Value(float(mean), digits=2) for mean in ranks.mean(axis=0))])
    return ResultTable(
        f"{setting.model}_{setting.estimate}_learners_{setting.protocol}",
        f"{setting_title(setting)}: every learner, {setting.protocol}",
        f"Test errors in percent, mean ± standard deviation over splits; {PROTOCOLS[setting.protocol]}. "
        f"{results.coverage}.",
        ["data set", *(LEARNERS[learner] for learner in learners)],
        rows,
        setting.protocol,
    )


def difference_table(results: Results, setting: Setting) -> ResultTable:
    """The default RC against every rival, set by set, with paired standard errors."""
    rivals = [rival for rival in RIVALS if rival in results.learners(setting)]
    rows: list[list[Cell]] = []
    for name in results.sets:
        gaps = [results.difference(name, setting, "rc", rival) for rival in rivals]
        cells = [
            Value(None)
            if gap is None
            else Value(gap.mean, gap.standard_error, digits=2, signed=True, kind=gap.verdict)
            for gap in gaps
        ]
        if any(gaps):
            rows.append([results.label(name), *cells])
    return ResultTable(
        f"{setting.model}_{setting.estimate}_differences_{setting.protocol}",
        f"{setting_title(setting)}: RC (default) minus the others, {setting.protocol}",
        "Test error of RC (default) minus that of the other, in percentage points, mean ± paired standard "
        f"error over splits: below zero RC is better. {PROTOCOLS[setting.protocol]}. {results.coverage}.",
        ["data set", *(LEARNERS[rival] for rival in rivals)],
        rows,
        setting.protocol,
    )


def summaries(results: Results) -> list[ResultTable]:
    """On how many sets RC is better, equal and worse: the default, then the paper's."""

    def printed(setting: Setting, rival: str, part: str) -> str:
        table = f"{setting.model}_{setting.estimate}"
        return published.counts("dfe" if (table, rival) == ("nb_ml", "dfe") else table, rival, part)

    return [
        summary(results, "summary_default", "RC (default) against the others", "rc", ["test"], None),
        summary(
            results,
            "summary_paper",
            "RC as in the paper against the others",
            "rc_paper",
            ["test", "train"],
            printed,
        ),
    ]


def summary(
    results: Results,
    name: str,
    title: str,
    learner: str,
    parts: list[str],
    printed: Callable[[Setting, str, str], str] | None,
) -> ResultTable:
    """One learner against its rivals under every setting; `printed` gives the paper's counts."""
    rows: list[list[Cell]] = []
    which = "error" if len(parts) > 1 else f"{parts[0]} error"
    # Held out first: it is what counts.
    for setting in sorted(results.settings, key=lambda s: results.protocols.index(s.protocol)):
        for rival in RIVALS:
            for part in parts:
                gaps = [results.difference(s, setting, learner, rival, part) for s in results.sets]
                known = [gap for gap in gaps if gap is not None]
                counts = printed(setting, rival, part) if printed else None
                if not known or counts == "":  # of the paper's RC only what the paper counts
                    continue
                n = [sum(gap.verdict == kind for gap in known) for kind in ("better", "equal", "worse")]
                means = [gap.mean for gap in known]
                spread = float(np.std(means, ddof=1) / np.sqrt(len(means))) if len(means) > 1 else None
                rows.append(
                    [
                        setting.protocol,
                        setting_title(setting),
                        LEARNERS[rival],
                        *([part] if len(parts) > 1 else []),
                        *(Value(float(count), digits=0) for count in [*n, len(known)]),
                        *([] if counts is None else [counts]),
                        Value(float(np.mean(means)), spread, digits=2, signed=True),
                    ]
                )
    return ResultTable(
        name,
        title,
        f"Sets on which RC's mean {which} is lower (better) or higher (worse) by more than {POINT} point. "
        + ("Published: better / equal / worse as the paper prints it, over 20 sets. " if printed else "")
        + f"Difference: mean over sets, in points, ± its standard error over sets. {results.coverage}.",
        [
            *("protocol", "model", "against", *(["rows"] if len(parts) > 1 else [])),
            *("better", "equal", "worse", "sets"),
            *(["published"] if printed else []),
            "difference",
        ],
        rows,
    )


def headline(results: Results) -> list[str]:
    """The default RC against the closed form and GD on held-out rows, in sentences."""
    lines = []
    for setting in results.settings:
        for rival in ("closed_form", "gd") if setting.protocol == "held-out" else ():
            gaps = [results.difference(name, setting, "rc", rival) for name in results.sets]
            known = [gap for gap in gaps if gap is not None]
            if known:
                n = [sum(gap.verdict == kind for gap in known) for kind in ("better", "equal", "worse")]
                lines.append(
                    f"{setting_title(setting)}, held out: RC (default) is better than {LEARNERS[rival]} on "
                    f"{n[0]} of {len(known)} sets, equal on {n[1]}, worse on {n[2]}."
                )
    return lines


def only_in_train(results: Results) -> list[str]:
    """Where RC's published test error agrees with in-train and not with held-out, in sentences."""
    lines = []
    for name, paper in PAPER_TABLES.items():
        near = []
        for data_set in results.sets:
            printed = published.figure(name, data_set, "rc", "test_error_pct")
            means = [
                error(
                    results, data_set, Setting(paper.model, paper.estimate, protocol), "rc_paper", "test"
                ).mean
                for protocol in ("held-out", "in-train")
            ]
            if printed is None or means[0] is None or means[1] is None:
                continue
            if abs(means[1] - printed) <= FAR and abs(means[0] - printed) > VERY_FAR:
                near.append(results.label(data_set))
        if near and name != "dfe":  # whose RC is that of NB by ML
            lines.append(
                f"{paper.title}: the published test error of RC is within {FAR:g} points of in-train and "
                f"more than {VERY_FAR:g} from held-out on {len(near)} of {len(results.sets)} sets: "
                f"{', '.join(near)}."
            )
    return lines


def agreement(results: Results) -> ResultTable:
    """On how many sets the printed test error is within two points of the measured one."""
    rows: list[list[Cell]] = []
    for name, paper in PAPER_TABLES.items():
        for method, learner in paper.methods.items():
            row: list[Cell] = [paper.title, short(method, paper)]
            for protocol in results.protocols:
                setting = Setting(paper.model, paper.estimate, protocol)
                gaps = [
                    abs(cell.mean - cell.published)
                    for s in results.sets
                    for printed in [published.figure(name, s, method, "test_error_pct")]
                    for cell in [error(results, s, setting, learner, "test", printed)]
                    if cell.mean is not None and cell.published is not None
                ]
                near = float(sum(gap <= FAR for gap in gaps)) if gaps else None
                row += [Value(near, digits=0), Value(float(np.mean(gaps)) if gaps else None)]
            rows.append(row)
    headers = [f"{p} {what}" for p in results.protocols for what in ("within 2", "mean distance")]
    return ResultTable(
        "agreement",
        "Where the published test figures stand",
        "Number of sets on which the measured mean test error is within two points of the published one, and "
        f"the mean distance in points. {results.coverage}.",
        ["table", "method", *headers],
        rows,
    )


def error(
    results: Results, name: str, setting: Setting, learner: str, part: str, printed: float | None = None
) -> Value:
    """Mean and standard deviation of an error over splits."""
    found = results.errors(name, setting, learner, part)
    if not len(found):
        return Value(None, published=printed, is_error=True)
    spread = float(found.std(ddof=1)) if len(found) > 1 else None
    return Value(float(found.mean()), spread, printed, is_error=True)


def mark_best(row: list[Cell], columns: list[int]) -> None:
    """Mark the lowest mean of some columns, and those that equal it as shown."""
    values = {j: cell for j in columns if isinstance(cell := row[j], Value) and cell.mean is not None}
    least = min((round(v.mean, 1) for v in values.values() if v.mean is not None), default=None)
    for j, value in values.items():
        row[j] = replace(value, best=value.mean is not None and round(value.mean, 1) == least)


def short(method: str, paper: PaperTable) -> str:
    """A method as the paper's headers call it."""
    return paper.estimate.upper() if method == "closed_form" else method.upper()


def setting_title(setting: Setting) -> str:
    """The model of a setting."""
    return f"{'Naive Bayes' if setting.model == 'nb' else 'QDA'} by {setting.estimate.upper()}"
