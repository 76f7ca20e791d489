"""The paper's tables, from the long table alone, with the printed figure beside every cell."""

from __future__ import annotations

from dataclasses import dataclass, replace

from riskbayes.experiments import published
from riskbayes.experiments.protocols import LEARNERS, PROTOCOLS, STRATEGIES
from riskbayes.experiments.published import PaperTable
from riskbayes.experiments.results import Results, Setting

FAR = 2.0
"""A measured error that is further from the printed one than this, in points, is marked."""

FAMILY = Setting("family", "map", "held-out")
"""What RiskBayesClassifier was run under."""

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
    beside : bool, default=False
        It has a place for the printed figure beside it, also where the paper prints none.
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
    beside: bool = False
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
                cell = error(results, data_set, setting, learner, part, printed)
                row.append(replace(cell, beside=True))
            if method != "closed_form":
                steps = results.iterations(data_set, setting, learner)
                printed = published.figure(name, data_set, method, "iter")
                mean = float(steps.mean()) if len(steps) else None
                row.append(Value(mean, published=printed, beside=True))
        printed = published.figure(name, data_set, "rc", "reach")
        needed = results.reach(data_set, setting, "rc_paper", paper.rival)
        row.append(Value(needed, published=printed, beside=True))
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
            row.append(Value(mean, published=published.rank(name, method, part), beside=True, digits=2))
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
                row.append(error(results, data_set, setting, learner, "test", printed))
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


def family_table(results: Results) -> ResultTable:
    """Test errors of RiskBayesClassifier, beside the paper's models by MAP."""
    columns = [
        (Setting(model, "map", FAMILY.protocol), learner, f"{model.upper()} {LEARNERS[learner]}")
        for model in ("nb", "qda")
        for learner in ("closed_form", "rc_paper", "rc")
    ] + [(FAMILY, strategy, strategy) for strategy in STRATEGIES]
    rows: list[list[Cell]] = []
    sets = [name for name in results.sets if any(results.of(name, FAMILY, who) for who in STRATEGIES)]
    for name in sets:
        row: list[Cell] = [results.label(name)]
        row += [error(results, name, setting, learner, "test") for setting, learner, _ in columns]
        mark_best(row, list(range(1, len(row))))
        rows.append(row)
    complete = [name for name in sets if all(results.of(name, s, who) for s, who, _ in columns)]
    if complete:
        means = [[results.errors(name, s, who).mean() for name in complete] for s, who, _ in columns]
        rows.append([f"mean of {len(complete)} sets", *(Value(sum(m) / len(m), digits=2) for m in means)])
    return ResultTable(
        "family",
        "RiskBayesClassifier beside the paper's models by MAP, held-out",
        f"Test errors in percent, mean ± standard deviation over splits; {PROTOCOLS[FAMILY.protocol]}. Its "
        f"settings were composed on splits of these sets, 0 to 2 among them. {len(sets)} data sets.",
        ["data set", *(words for _, _, words in columns)],
        rows,
        FAMILY.protocol,
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
