"""Tables of the learners beside each other: who is better, on how many sets, and by how much."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from riskbayes.pages.table import Cell, Table
from riskbayes_paper import published
from riskbayes_paper.protocols import LEARNERS, PROTOCOLS, STRATEGIES
from riskbayes_paper.results import POINT, Difference, Results, Setting
from riskbayes_paper.tables import Measured

FAMILY = Setting("family", "map", "held-out")
"""What RiskBayesClassifier was run under."""

RIVALS = ("closed_form", "gd", "gd_scaled", "dfe", "tm")
FIRST_RIVALS = ("closed_form", "gd", "tm")
"""Those of the headline: what RC starts from, the paper's rival, and the closest relative."""

COUNTED = ("better", "equal", "worse", "sets")
OF_GAP = "Difference: mean over sets, in points, ± its standard error over sets."


def headline(results: Results) -> Table:
    """Count the sets on which the default RC is better, equal and worse than its first rivals."""
    rows: list[list[Cell]] = []
    for setting in by_protocol(results):
        counts = []
        for rival in FIRST_RIVALS:
            gaps = differences(results, setting, "rc", rival)
            counts.append(" / ".join(map(str, count(gaps))) if gaps else "-")
        if any(cell != "-" for cell in counts):
            rows.append([setting.protocol, setting.title, *counts])
    rivals = [LEARNERS[rival] for rival in FIRST_RIVALS]
    return Table(
        ["protocol", "model", *rivals],
        rows,
        f"RC (default) against {', '.join(rivals[:-1])} and {rivals[-1]}: better / equal / worse",
        f"Sets on which RC's mean test error is lower (better) or higher (worse) by more than {POINT} point, "
        f"or neither (equal). {results.coverage}.",
        "headline",
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


def default_summary(results: Results) -> Table:
    """Count the sets on which the default RC is better, equal and worse than every rival."""
    rows: list[list[Cell]] = []
    for setting in by_protocol(results):
        for rival in RIVALS:
            if gaps := differences(results, setting, "rc", rival):
                rows.append([setting.protocol, setting.title, LEARNERS[rival], *summary_cells(gaps)])
    return Table(
        ["protocol", "model", "against", *COUNTED, "difference"],
        rows,
        "RC (default) against the others",
        f"{of_sets('test error')}{OF_GAP} {results.coverage}.",
        "summary_default",
    )


def paper_summary(results: Results) -> Table:
    """Count the same of the paper's RC, where the paper prints its counts, and beside these."""
    rows: list[list[Cell]] = []
    for setting in by_protocol(results):
        for rival in RIVALS:
            table = f"{setting.model}_{setting.estimate}"
            table = "dfe" if (table, rival) == ("nb_ml", "dfe") else table
            for part in ("test", "train"):
                gaps = differences(results, setting, "rc_paper", rival, part)
                printed = published.counts(table, rival, part)
                if gaps and printed:
                    words = [setting.protocol, setting.title, LEARNERS[rival], part]
                    rows.append([*words, *summary_cells(gaps, printed)])
    return Table(
        ["protocol", "model", "against", "rows", *COUNTED, "published", "difference"],
        rows,
        "RC as in the paper against the others",
        f"{of_sets('error')}Published: better / equal / worse as the paper prints it, over 20 sets. {OF_GAP} "
        f"{results.coverage}.",
        "summary_paper",
    )


def of_sets(which: str) -> str:
    """Return the sentence on what the counts of a summary mean."""
    return f"Sets on which RC's mean {which} is lower (better) or higher (worse) by more than {POINT} point. "


def summary_cells(gaps: list[Difference], *printed: str) -> list[Cell]:
    """Return the counts, what the paper prints of them, and the mean difference with its standard error."""
    counts = [Measured(float(n), digits=0) for n in [*count(gaps), len(gaps)]]
    mean = Measured.over([gap.mean for gap in gaps], digits=2, signed=True)
    error = None if mean.spread is None else float(mean.spread / np.sqrt(len(gaps)))
    return [*counts, *printed, replace(mean, spread=error)]


def learner_table(results: Results, setting: Setting) -> Table:
    """Return the test errors of every learner."""
    learners = results.learners(setting)
    columns = [(setting, learner) for learner in learners]
    measured = {name: results.error_cells(name, columns) for name in results.sets}
    rows = [[results.label(name), *cells] for name, cells in measured.items() if cells]
    ranks = results.ranks(setting, learners)
    if len(ranks):
        rows.append(["average rank", *(Measured(float(mean), digits=2) for mean in ranks.mean(axis=0))])
    return Table(
        ["data set", *(LEARNERS[learner] for learner in learners)],
        rows,
        f"{setting.title}: every learner, {setting.protocol}",
        f"Test errors in percent, mean ± standard deviation over splits; {PROTOCOLS[setting.protocol]}. "
        f"{results.coverage}.",
        f"{setting.model}_{setting.estimate}_learners_{setting.protocol}",
        setting.protocol,
    )


def difference_table(results: Results, setting: Setting) -> Table:
    """Compare the default RC with every rival, set by set, with paired standard errors."""
    rivals = [rival for rival in RIVALS if rival in results.learners(setting)]
    rows: list[list[Cell]] = []
    for name in results.sets:
        gaps = [results.difference(name, setting, "rc", rival) for rival in rivals]
        if any(gaps):
            rows.append([results.label(name), *(paired(gap) for gap in gaps)])
    return Table(
        ["data set", *(LEARNERS[rival] for rival in rivals)],
        rows,
        f"{setting.title}: RC (default) minus the others, {setting.protocol}",
        "Test error of RC (default) minus that of the other, in percentage points, mean ± paired standard "
        f"error over splits: below zero RC is better. {PROTOCOLS[setting.protocol]}. {results.coverage}.",
        f"{setting.model}_{setting.estimate}_differences_{setting.protocol}",
        setting.protocol,
    )


def paired(gap: Difference | None) -> Measured:
    """Return the difference on one set with its paired standard error over splits."""
    if gap is None:
        return Measured(None)
    return Measured(gap.mean, gap.standard_error, digits=2, signed=True, kind=gap.verdict)


def family_table(results: Results) -> Table:
    """Return the test errors of RiskBayesClassifier, beside the paper's models by MAP."""
    columns = {
        f"{model.upper()} {LEARNERS[learner]}": (Setting(model, "map", FAMILY.protocol), learner)
        for model in ("nb", "qda")
        for learner in ("closed_form", "rc_paper", "rc")
    } | {strategy: (FAMILY, strategy) for strategy in STRATEGIES}
    sets = [name for name in results.sets if any(results.of(name, FAMILY, who) for who in STRATEGIES)]
    rows = [[results.label(name), *results.error_cells(name, columns.values())] for name in sets]
    complete = [name for name in sets if all(results.of(name, *column) for column in columns.values())]
    if complete:
        means = [[results.errors(name, *c).mean() for name in complete] for c in columns.values()]
        rows.append([f"mean of {len(complete)} sets", *(Measured(sum(m) / len(m), digits=2) for m in means)])
    return Table(
        ["data set", *columns],
        rows,
        "RiskBayesClassifier beside the paper's models by MAP, held-out",
        f"Test errors in percent, mean ± standard deviation over splits; {PROTOCOLS[FAMILY.protocol]}. Its "
        f"settings were composed on splits of these sets, 0 to 2 among them. {len(sets)} data sets.",
        "family",
        FAMILY.protocol,
    )
