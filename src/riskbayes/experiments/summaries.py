"""Who is better, on how many sets; and where the published figures agree with which protocol."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from riskbayes.experiments import published
from riskbayes.experiments.protocols import LEARNERS
from riskbayes.experiments.published import PAPER_TABLES
from riskbayes.experiments.results import POINT, Difference, Results, Setting
from riskbayes.experiments.tables import (
    FAR,
    RIVALS,
    Cell,
    ResultTable,
    Value,
    difference_table,
    error,
    family_table,
    learner_table,
    paper_table,
    setting_title,
    short,
    three_columns,
)

VERY_FAR = 8.0
"""Points by which a held-out error is nowhere near the printed one."""

FIRST_RIVALS = ("closed_form", "gd", "tm")
"""Those of the headline: what RC starts from, the paper's rival, and the closest relative."""


def all_tables(results: Results) -> list[ResultTable]:
    """Every table that these results can fill."""
    found = [headline(results), *summaries(results), agreement(results), family_table(results)]
    for name, paper in PAPER_TABLES.items():
        found.append(three_columns(results, name, paper))
    for protocol in results.protocols:
        found += [paper_table(results, name, paper, protocol) for name, paper in PAPER_TABLES.items()]
    for setting in results.settings:
        found += [learner_table(results, setting), difference_table(results, setting)]
    return [table for table in found if table.rows]


def headline(results: Results) -> ResultTable:
    """Count the sets on which the default RC is better, equal and worse than its first rivals."""
    rows: list[list[Cell]] = []
    for setting in by_protocol(results):
        counts = []
        for rival in FIRST_RIVALS:
            gaps = differences(results, setting, "rc", rival)
            counts.append(" / ".join(map(str, count(gaps))) if gaps else "-")
        if any(cell != "-" for cell in counts):
            rows.append([setting.protocol, setting_title(setting), *counts])
    rivals = [LEARNERS[rival] for rival in FIRST_RIVALS]
    return ResultTable(
        "headline",
        f"RC (default) against {', '.join(rivals[:-1])} and {rivals[-1]}: better / equal / worse",
        f"Sets on which RC's mean test error is lower (better) or higher (worse) by more than {POINT} point, "
        f"or neither (equal). {results.coverage}.",
        ["protocol", "model", *rivals],
        rows,
    )


def by_protocol(results: Results) -> list[Setting]:
    """Return the settings, held out first: it is what counts."""
    return sorted(results.settings, key=lambda setting: results.protocols.index(setting.protocol))


def differences(
    results: Results, setting: Setting, learner: str, rival: str, part: str = "test"
) -> list[Difference]:
    """Compare a learner with a rival on every set that has both."""
    gaps = [results.difference(name, setting, learner, rival, part) for name in results.sets]
    return [gap for gap in gaps if gap is not None]


def count(gaps: list[Difference]) -> list[int]:
    """Count the sets on which the first learner is better, equal, worse."""
    return [sum(gap.verdict == kind for gap in gaps) for kind in ("better", "equal", "worse")]


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
    for setting in by_protocol(results):
        for rival in RIVALS:
            for part in parts:
                known = differences(results, setting, learner, rival, part)
                counts = printed(setting, rival, part) if printed else None
                if not known or counts == "":  # of the paper's RC only what the paper counts
                    continue
                means = [gap.mean for gap in known]
                spread = float(np.std(means, ddof=1) / np.sqrt(len(means))) if len(means) > 1 else None
                rows.append(
                    [
                        setting.protocol,
                        setting_title(setting),
                        LEARNERS[rival],
                        *([part] if len(parts) > 1 else []),
                        *(Value(float(n), digits=0) for n in [*count(known), len(known)]),
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
    for name, paper in PAPER_TABLES.items() if results.protocols else ():
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
