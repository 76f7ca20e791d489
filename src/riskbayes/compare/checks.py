"""Findings of a comparison: what may be wrong with the table, with the split, or with the best model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from scipy.stats import norm

from riskbayes.compare.alike import numbers_that_name_rows, repeated_keys, same_columns
from riskbayes.compare.alone import Alone
from riskbayes.compare.contenders import LEARNERS, MAJORITY
from riskbayes.compare.drift import drifts
from riskbayes.compare.evidence import BEYOND_CHANCE, CERTAINLY, beyond, negate
from riskbayes.compare.leaks import almost_no_errors, leaking_columns, partial_leaks
from riskbayes.compare.numbers import CLEARLY
from riskbayes.compare.repeats import repeats
from riskbayes.compare.scores import differences, overconfidence, row_losses
from riskbayes.compare.study import Study, Trial
from riskbayes.compare.verdict import apart, compare_peer, judged_by
from riskbayes.estimators.fitted_checks import column_findings, few_rows, grouped
from riskbayes.exceptions import listed
from riskbayes.findings import Finding
from riskbayes.input.labels import rows_without_target
from riskbayes.two_samples import LEVEL

STRONG_SHARE, STRONG_RATIO, VERY_STRONG = 1 / 3, 1.5, 0.1
"""A single column is strong if it has this share of what can be gained in log loss, and so many times that of
the next column; it weighs as a warning if it alone makes at most the last share of the majority's errors."""

TWINS, MANY_TWINS, FEW_DISTINCT = 0.005, 0.02, 0.5
"""Shares of held-out rows repeated in training that are mentioned, and that weigh; where fewer of the rows
than the last share are distinct, rows repeat by nature."""

FEWEST_LATER = 50
"""Of fewer held-out rows nobody can tell whether a relation turned round."""

MANY_UNKNOWN = 0.01
"""Share of held-out rows of classes without training rows that makes figures worthless."""

TOO_SURE, CONTRADICTORY, UNSEEN, MANY_UNSEEN = 2.0, 0.01, 0.01, 0.05
"""Points of overconfidence, share of contradictory rows, and shares of unseen cells that are mentioned."""


def all_findings(
    study: Study, by_column: list[Alone], model: Any, read: Iterable[Finding] = ()
) -> list[Finding]:
    """Return all findings, those that weigh most first; `model` is the best one, fitted to all rows.

    `read` are those of whoever read the table.
    """
    data, leaks = study.data, leaking_columns(study, by_column)
    found = [
        *read,
        *nothing_to_predict(study),
        *single_columns(study, by_column, leaks),
        *partial_leaks(study, leaks),
        *almost_no_errors(study, leaks),
        *unknown_classes(study),
        *across_the_split(study),
        *keys(study),
        *redundant(study),
        *turned(study, by_column),
        *drifting_columns(study),
        *too_sure(study),
        *better_peers(study),
        *worse_than_simpler(study),
        *few_rows(data.texts, np.array(data.class_rows)),
        *contradictions(study),
        *column_findings(data.columns, len(data.codes)),
        *running_numbers(study),
        *unseen_categories(study),
        *sampled(study),
        *rows_without_target(data.labelled.lost, len(data.labelled.rows), data.target),
        *(f for f in model.checks_ if f.code not in ("RB005", "RB006", "RB007", "RB008", "RB032")),
    ]
    return list(by_weight(found))


def by_weight(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings, those first that weigh most."""
    weight = {"error": 0, "warning": 1, "info": 2}
    return tuple(sorted(findings, key=lambda finding: (weight[finding.severity], finding.code)))


def nothing_to_predict(study: Study) -> Iterator[Finding]:
    """Yield RB010 if no model says anything about the class."""
    if not study.predicts:
        n = len(study.usable) - 1
        yield Finding(
            "RB010",
            f"None of {n} models is better than always answering the most frequent class, in error or in log "
            f"loss, or ranks rows of different classes better than a coin (AUC), by more than "
            f"{BEYOND_CHANCE:g} standard errors, or more where rows or groups are few.",
            study.data.target,
        )


def single_columns(study: Study, by_column: list[Alone], leaks: list[Alone]) -> Iterator[Finding]:
    """Yield RB003 for columns that give the answer away, RB014 for one that says far more than the others."""
    wrong, loss = study.base_error, study.risk(study.trial(MAJORITY), "log_loss")
    if not study.predicts:
        return
    for one in leaks:
        yield Finding(
            "RB003",
            f"Column {one.column!r} alone is wrong on {one.error:.3g} % of the held-out rows; the most "
            f"frequent class on {wrong:.3g} %.",
            one.column,
            "error",
        )
    if leaks:
        return
    reached = [study.risk(trial, "log_loss") for trial in study.usable]
    least = min([*reached, *(one.log_loss for one in by_column)])
    if least >= loss:  # rows are told apart, but by models that are too sure
        return
    shares = [(loss - one.log_loss) / (loss - least) for one in by_column] + [0.0]
    if by_column and shares[0] >= STRONG_SHARE and shares[0] >= STRONG_RATIO * shares[1]:
        one = by_column[0]
        others = (
            f"; the next, {by_column[1].column!r}, {100 * max(shares[1], 0):.0f} %" if shares[1:-1] else ""
        )
        yield Finding(
            "RB014",
            f"Column {one.column!r} alone gains {min(100 * shares[0], 100):.0f} % of what the best model "
            f"gains in log loss over the most frequent class{others}. Alone it is wrong on {one.error:.3g} % "
            "of the held-out rows.",
            one.column,
            "warning" if one.error <= VERY_STRONG * wrong else "info",
        )


def across_the_split(study: Study) -> Iterator[Finding]:
    """Yield RB004 if held-out rows are repeated in training, with the errors of these and of the others."""
    found, m = repeats(study), len(study.held)
    alike, n = found.alike, int(found.alike.sum())
    if n < TWINS * m:
        return
    errors = row_losses(study.best.P, study.held)["error"]
    message = (
        f"{n} of {m} held-out rows ({100 * n / m:.3g} %) have an equal training row with the same label."
    )
    if n < m:
        message += (
            f" {study.best.candidate.name} is wrong on {errors[alike].mean():.3g} % of them and on "
            f"{errors[~alike].mean():.3g} % of the others."
        )
    same = int(found.same.sum())
    if same < n:
        few = f"Only {same}" if same else "None"
        message += f" {few} of them are equal in {listed(found.names)} too, which name rows."
    natural = found.distinct < FEW_DISTINCT
    if natural:
        message += " Rows of this table repeat by nature: few are distinct."
    heavy = same >= MANY_TWINS * m and not natural
    yield Finding("RB004", message, severity="warning" if heavy else "info")


def drifting_columns(study: Study) -> Iterator[Finding]:
    """Yield RB009 for the columns that drift in a split in time."""
    if study.data.time is None:
        return
    part = study.parts[0]
    found = drifts(study.data, part.kept, part.held)
    words = "is distributed differently in the held-out, later rows: distance {:.2f} of at most 1"
    for grows, severity in ((False, "warning"), (True, "info")):
        named = {
            one.column: words.format(one.distance) + (". It grows with time" if grows else "")
            for one in found
            if one.grows == grows
        }
        yield from grouped("RB009", named, "are distributed differently in the later rows", severity)


def too_sure(study: Study) -> Iterator[Finding]:
    """Yield RB002 if the best model is surer than it is right."""
    gap = overconfidence(study.best.P, study.held, study.groups)
    if gap.value is None or gap.error is None:
        return
    if gap.value > TOO_SURE and gap.value > CERTAINLY * gap.error:
        sure = 100 * float(study.best.P.max(axis=1).mean())
        right = max(0.0, round(sure - gap.value, 9))  # a difference of rounded sums may be just below zero
        yield Finding(
            "RB002",
            f"{study.best.candidate.name} is sure of {sure:.3g} % on average and right on "
            f"{right:.3g} % of the held-out rows: {apart(gap)} points apart.",
            study.best.candidate.name,
        )


def better_peers(study: Study) -> Iterator[Finding]:
    """Yield RB013 for models of scikit-learn that are clearly better than the best of riskbayes.

    By their error, or by their log loss where a class is rare.
    """
    metric, best = judged_by(study), study.best
    for trial in study.usable:
        if trial.candidate.kind != "peer":
            continue
        name, gap = trial.candidate.name, differences(trial.P, best.P, study.held, study.groups)[metric]
        if beyond(gap, CLEARLY):
            than = f" than {'' if metric == 'error' else 'that of '}{best.candidate.name}."
            yield Finding("RB013", compare_peer(name, gap, metric) + than, name)


def worse_than_simpler(study: Study) -> Iterator[Finding]:
    """Yield RB017 for RC that is clearly worse than its closed form, RB018 if the best errs most of all."""
    by_name = {trial.candidate.name: trial for trial in study.usable}
    for name, trial in by_name.items():
        plain = by_name.get(name.removesuffix(LEARNERS["rc"]) + LEARNERS["closed_form"])
        if plain is None or not name.endswith(f", {LEARNERS['rc']}"):
            continue
        gaps = differences(plain.P, trial.P, study.held, study.groups)
        clear = [metric for metric, gap in gaps.items() if beyond(gap, CLEARLY)]
        if clear and not any(beyond(negate(gap), CLEARLY) for gap in gaps.values()):
            ours, theirs = (figure_of(one, study, clear[0]) for one in (trial, plain))
            yield Finding(
                "RB017",
                f"{name} has {ours} on the held-out rows, its closed form {theirs}: a difference of "
                f"{apart(gaps[clear[0]], 3)}{' points' if clear[0] == 'error' else ''}.",
                name,
                "warning" if trial is study.best else "info",
            )
    best, base = study.best, study.trial(MAJORITY)
    gap = differences(base.P, best.P, study.held, study.groups)["error"]
    if beyond(gap, CLEARLY):
        yield Finding(
            "RB018",
            f"{best.candidate.name} has {figure_of(best, study, 'error')} on the held-out rows, always "
            f"answering the most frequent class {figure_of(base, study, 'error')}: a difference of "
            f"{apart(gap)} points.",
            best.candidate.name,
        )


def figure_of(trial: Trial, study: Study, metric: str) -> str:
    """Return a figure of a model in words."""
    mean = study.risk(trial, metric)
    return f"an error of {mean:.1f} %" if metric == "error" else f"a log loss of {mean:.3f}"


def contradictions(study: Study) -> Iterator[Finding]:
    """Yield RB012 if equal rows have different labels."""
    n, m = repeats(study).contradictory, len(study.data.codes)
    if n >= max(CONTRADICTORY * m, 2):
        yield Finding(
            "RB012",
            f"No model of these columns can be right on more than {100 * (1 - n / m):.3g} % of the rows: {n} "
            "of them have the columns of other rows, and another label.",
            severity="info",
        )


def running_numbers(study: Study) -> Iterator[Finding]:
    """Yield RB006 for columns of whole numbers that name rows; models read them as numbers."""
    words = (
        "names rows: {n} distinct whole numbers in {n} cells. Models read it as a number: better leave it out"
    )
    named = {name: words.format(n=n) for name, n in numbers_that_name_rows(study.data)}
    yield from grouped("RB006", named, "name rows, and are read as numbers: better leave them out")


def keys(study: Study) -> Iterator[Finding]:
    """Yield RB026 for columns that name what several rows belong to, unless rows are held out by one."""
    if study.data.groups is None:
        words = (
            "has {} values, and two rows of one value have the same label in {:.0f} % of the cases, two rows "
            "of neighbouring values in {:.0f} %. If it says whom or what a row belongs to, hold rows out by "
            "it (group)"
        )
        named = {
            name: words.format(number, 100 * same, 100 * apart)
            for name, number, same, apart in repeated_keys(study.data)
        }
        yield from grouped("RB026", named, "name what several rows belong to: hold rows out by one of them")


def redundant(study: Study) -> Iterator[Finding]:
    """Yield RB027 for columns that say the same."""
    for names in same_columns(study.data):
        yield Finding("RB027", f"Columns {listed(names)} say the same: one of them is enough.", names[1])


def unknown_classes(study: Study) -> Iterator[Finding]:
    """Yield RB021 for classes of held-out rows that no training row has."""
    data, m = study.data, len(study.held)
    counts = np.zeros(len(data.classes), dtype=int)
    for part in study.parts:
        held = np.bincount(data.codes[part.held], minlength=len(counts))
        held[data.codes[part.kept]] = 0
        counts += held
    for label, n in zip(data.texts, counts.tolist(), strict=True):
        if n:
            yield Finding(
                "RB021",
                f"Class {label!r} has {n} of the {m} held-out rows and none of the training rows: every "
                "model is wrong on these.",
                label,
                "error" if n >= MANY_UNKNOWN * m else "warning",
            )


def turned(study: Study, by_column: list[Alone]) -> Iterator[Finding]:
    """Yield RB022 for columns that say the opposite in the later rows of a split in time."""
    if study.data.time is None or len(study.held) < FEWEST_LATER:
        return
    limit = max(BEYOND_CHANCE, float(norm.isf(LEVEL / max(len(by_column), 1))))
    named = {
        one.column: "says the opposite in the held-out, later rows: what it learned from the others has an "
        f"AUC of {one.area.auc:.3f} ± {one.area.error:.3f}, below the 0.5 of a coin"
        for one in by_column
        if one.area is not None and one.area.z < -limit
    }
    yield from grouped("RB022", named, "say the opposite in the later rows")


def unseen_categories(study: Study) -> Iterator[Finding]:
    """Yield RB015 for columns whose held-out rows have categories that training rows lack."""
    m, counts = len(study.held), dict.fromkeys((column.name for column in study.data.columns), 0)
    for part in study.parts:
        known = {place: i for i, place in enumerate(part.encoder.encoded)}
        for i, (j, kind) in enumerate(study.data.encoder.encoded):
            if kind == "category" and (j, kind) in known:
                there = ~np.isnan(study.data.Z[part.held, i])
                unseen = np.isnan(part.Z_test[:, known[j, kind]]) & there
                counts[study.data.columns[j].name] += int(unseen.sum())
    for severity, low, high in (("warning", MANY_UNSEEN, 2.0), ("info", UNSEEN, MANY_UNSEEN)):
        named = {
            name: f"has categories in {n} of {m} held-out rows ({100 * n / m:.3g} %) that training rows lack"
            for name, n in counts.items()
            if low <= n / m < high
        }
        yield from grouped("RB015", named, "have categories that training rows lack", severity)


def sampled(study: Study) -> Iterator[Finding]:
    """Yield RB016 if a sample of the rows was taken."""
    used, total = len(study.data.codes), sum(study.data.class_rows)
    if used < total:
        yield Finding(
            "RB016",
            f"The figures are those of {used} rows, drawn by class from {total}. The model is fitted to all.",
            severity="info",
        )
