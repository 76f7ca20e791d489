"""The paper's tables, measured again, with the printed figure beside every cell."""

from __future__ import annotations

from dataclasses import replace

from riskbayes.pages.table import Cell, Table
from riskbayes_paper import published
from riskbayes_paper.protocols import LEARNERS, PROTOCOLS
from riskbayes_paper.published import PAPER_TABLES, PaperTable
from riskbayes_paper.results import Results, Setting
from riskbayes_paper.tables import FAR, Measured, mark_best

VERY_FAR = 8.0
"""Points by which a held-out error is nowhere near the printed one."""


def paper_table(results: Results, name: str, paper: PaperTable, protocol: str) -> Table:
    """Return a table in the paper's form: training and test errors, Iter, Reach, average ranks."""
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
                cell = results.mean_error(data_set, setting, learner, part, printed)
                row.append(replace(cell, beside=True))
            if method != "closed_form":
                steps = results.iterations(data_set, setting, learner)
                printed = published.figure(name, data_set, method, "iter")
                row.append(Measured(Measured.over(steps).mean, published=printed, beside=True))
        printed = published.figure(name, data_set, "rc", "reach")
        needed = results.reach(data_set, setting, "rc_paper", paper.rival)
        row.append(Measured(needed, published=printed, beside=True))
        for part in ("train", "test"):
            mark_best(row, [headers.index(f"{short(method, paper)} {part}") for method in paper.methods])
        rows.append(row)
    if rows:
        rows.append(rank_row(results, name, paper, setting))
    return Table(
        headers,
        rows,
        f"{paper.title}, {protocol}",
        f"Errors in percent, mean ± standard deviation over splits; {PROTOCOLS[protocol]}. Beside it the "
        "paper's figure. Iter: the iteration of the lowest training soft error, the closed form being 1. "
        f"Reach: the iterations RC needs to get to {LEARNERS[paper.rival]}'s lowest soft error, where it "
        f"does in all splits. Average rank: over these sets. {results.coverage}.",
        f"{name}_{protocol}",
        protocol,
    )


def rank_row(results: Results, name: str, paper: PaperTable, setting: Setting) -> list[Cell]:
    """Return the average rank of each method; the paper has it over its 20 sets."""
    learners = list(paper.methods.values())
    row: list[Cell] = ["average rank"]
    ranks = {part: results.ranks(setting, learners, part) for part in ("train", "test")}
    for j, method in enumerate(paper.methods):
        for part in ("train", "test"):
            mean = Measured.over(ranks[part][:, j]).mean
            row.append(Measured(mean, published=published.rank(name, method, part), beside=True, digits=2))
        row += [""] if method != "closed_form" else []
    return [*row, ""]


def three_columns(results: Results, name: str, paper: PaperTable) -> Table:
    """Return the test errors: published, held-out, in-train."""
    headers, rows = ["data set"], []
    for method in paper.methods:
        headers += [f"{short(method, paper)} {column}" for column in ("published", *results.protocols)]
    for data_set in results.sets if results.protocols else ():  # of the family alone there are none
        row: list[Cell] = [results.label(data_set)]
        for method in paper.methods:
            cells = measured(results, name, data_set, method)
            row += [Measured(cells[0].published, digits=0), *cells]
        if any(isinstance(cell, Measured) and cell.is_error and cell.mean is not None for cell in row):
            rows.append(row)
    return Table(
        headers,
        rows,
        f"{paper.title}: published, {', '.join(results.protocols)}",
        "Test errors in percent, mean ± standard deviation over splits. "
        + "; ".join(f"{p}: {PROTOCOLS[p]}" for p in results.protocols)
        + f". {results.coverage}.",
        f"{name}_three_columns",
    )


def measured(results: Results, name: str, data_set: str, method: str) -> list[Measured]:
    """Return the measured test error of a method of a paper's table under each protocol."""
    paper = PAPER_TABLES[name]
    printed = published.figure(name, data_set, method, "test_error_pct")
    settings = [Setting(paper.model, paper.estimate, protocol) for protocol in results.protocols]
    return [results.mean_error(data_set, s, paper.methods[method], "test", printed) for s in settings]


def agreement(results: Results) -> Table:
    """Return on how many sets the printed test error is within two points of the measured one."""
    rows: list[list[Cell]] = []
    for name, paper in PAPER_TABLES.items() if results.protocols else ():
        for method in paper.methods:
            row: list[Cell] = [paper.title, short(method, paper)]
            by_set = [measured(results, name, data_set, method) for data_set in results.sets]
            for cells in zip(*by_set, strict=True):
                known = [c for c in cells if c.mean is not None and c.published is not None]
                gaps = [abs(c.mean - c.published) for c in known]
                near = float(sum(gap <= FAR for gap in gaps)) if gaps else None
                row += [Measured(near, digits=0), Measured(Measured.over(gaps).mean)]
            rows.append(row)
    headers = [f"{p} {what}" for p in results.protocols for what in ("within 2", "mean distance")]
    return Table(
        ["table", "method", *headers],
        rows,
        "Where the published test figures stand",
        "Number of sets on which the measured mean test error is within two points of the published one, and "
        f"the mean distance in points. {results.coverage}.",
        "agreement",
    )


def only_in_train(results: Results) -> list[str]:
    """Return where RC's published test error agrees with in-train and not with held-out, in sentences."""
    lines = []
    for name, paper in PAPER_TABLES.items():
        near = []
        for data_set in results.sets if len(results.protocols) == len(PROTOCOLS) else ():
            held_out, in_train = measured(results, name, data_set, "rc")
            if None in (held_out.published, held_out.mean, in_train.mean) or in_train.far:
                continue
            if abs(held_out.mean - held_out.published) > VERY_FAR:  # type: ignore[operator]
                near.append(results.label(data_set))
        if near and name != "dfe":  # whose RC is that of NB by ML
            lines.append(
                f"{paper.title}: the published test error of RC is within {FAR:g} points of in-train and "
                f"more than {VERY_FAR:g} from held-out on {len(near)} of {len(results.sets)} sets: "
                f"{', '.join(near)}."
            )
    return lines


def short(method: str, paper: PaperTable) -> str:
    """Return a method as the paper's headers call it."""
    return paper.estimate.upper() if method == "closed_form" else method.upper()
