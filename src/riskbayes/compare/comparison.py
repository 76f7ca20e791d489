"""`compare`: from a table and the name of its target to a report and a model."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

import narwhals as nw
import numpy as np

from riskbayes.compare.alone import alone
from riskbayes.compare.checks import all_findings, by_weight
from riskbayes.compare.contenders import candidates
from riskbayes.compare.data import Data
from riskbayes.compare.explained import explain_study
from riskbayes.compare.explorer import explorer
from riskbayes.compare.report import Report, Run
from riskbayes.compare.scores import DEFINITIONS, METRICS, confusion, reliability
from riskbayes.compare.splits import make_split
from riskbayes.compare.study import Progress, Study, Trial, contenders, run_study
from riskbayes.compare.verdict import is_rare, rule, verdict, why
from riskbayes.estimators.shift import Shift
from riskbayes.findings import Finding, without
from riskbayes.input.files.table import require_column
from riskbayes.versions import versions

MOST_ROWS = 50_000
"""Rows that are compared on by default; larger tables are sampled."""


@dataclass(frozen=True)
class Comparison:
    """A report, and the best model of riskbayes, fitted to all rows."""

    report: Report
    model: Any
    study: Study = field(repr=False)
    """What was run: rows held out, and the models that have not seen them."""

    def drift(self, X_new: Any) -> Shift:
        """Return how rows without labels differ from held-out rows, by the best model of riskbayes.

        It is the one of the first part of the split, which has not seen the rows that this holds out.

        Parameters
        ----------
        X_new : data frame
            The rows, with the columns of the table that was compared on, in any order; others are ignored.

        Returns
        -------
        shift : Shift
            What moved and what is at stake, as `clf.drift` returns it.
        """
        study, part = self.study, self.study.parts[0]
        names = [column.name for column in study.data.columns]
        frame = nw.from_native(X_new, eager_only=True)
        for name in names:
            require_column("The table of new rows", frame.columns, name, "model")
        rows, codes = frame.select(names).to_native(), study.data.codes[part.held]
        found = study.best.models[0].drift(rows, part.test, codes)
        texts = np.array(study.data.texts)
        return replace(found, classes=texts[found.classes])

    def against(self, X_new: Any, name: str = "the new rows") -> Comparison:
        """Return the comparison with a finding about new rows, RB033, if they differ from held-out rows.

        Parameters
        ----------
        X_new : data frame
            The rows, as for `drift`.
        name : str, default="the new rows"
            What they are called in the finding.
        """
        shift = self.drift(X_new)
        if shift.verdict == "nothing" or "RB033" in self.report.run.ignored:
            return self
        where = str(shift.moved[0]) if shift.moved else self.report.data.target
        words = f"In {name}, against held-out rows: {' '.join(shift.sentences())}"
        found = Finding("RB033", words, where, "warning" if shift.moved else "info")
        return replace(self, report=replace(self.report, findings=by_weight([*self.report.findings, found])))


def compare(
    table: Any,
    target: str,
    *,
    cv: int | None = None,
    time_column: str | None = None,
    group: str | None = None,
    columns: Mapping[str, str] | None = None,
    strategies: Sequence[str] = ("single",),
    metric: str = "log_loss",
    seed: int = 0,
    ignore: Collection[str] = (),
    progress: Progress | None = None,
    name: str = "",
    command: str = "",
    max_rows: int = MOST_ROWS,
    sha256: str = "",
    findings: Sequence[Finding] = (),
) -> Comparison:
    """Compare models of riskbayes and of scikit-learn on rows that they were not trained on.

    Parameters
    ----------
    table : data frame of pandas or polars, or Arrow table
        The rows, with the target among the columns.
    target : str
        Name of the column to predict.
    cv : int, default=None
        Number of folds. By default tables under 2000 rows have five, and of others a quarter is held out.
    time_column : str, default=None
        Column of dates or numbers: about the last quarter of the rows is held out. Models do not read it.
    group : str, default=None
        Column of groups that must not be split. Models do not read it.
    columns : dict of column to kind, default=None
        What columns hold, where their cells do not say it, as of :class:`RiskBayesClassifier`.
    strategies : sequence of {"auto", "single", "glass", "neighbours", "cv", "ensemble"}, default=("single",)
        Strategies of `RiskBayesClassifier` to compare.
    metric : {"log_loss", "error", "brier", "auc"}, default="log_loss"
        The figure on held-out rows that the best model is chosen by.
    seed : int, default=0
        Seed of the split, and of all models that draw.
    ignore : collection of str, default=()
        Codes of findings to leave out, such as "RB004".
    progress : callable, default=None
        Called before every fit as `progress(name of the model, fits done, fits in all)`.
    name, command, sha256 : str, default=""
        Of the file, for the report.
    max_rows : int, default=50000
        Larger tables are compared on a sample of so many rows. The model is fitted to all rows.
    findings : sequence of Finding, default=()
        What was found when the table was read, for the report.

    Returns
    -------
    comparison : Comparison
        `report`, a :class:`Report`, and `model`, the best model of riskbayes, fitted to all rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from riskbayes.compare import compare
    >>> found = compare(load_iris(as_frame=True).frame, "target", cv=2)
    >>> found.report.contenders[-1].name
    'majority class'
    >>> found.model.classes_
    array([0, 1, 2])
    """
    started, start = datetime.now(UTC), perf_counter()
    without((), ignore)  # refuses an unknown code before the work, not after it
    if not strategies:
        raise ValueError("strategies must name at least one strategy of RiskBayesClassifier.")
    if metric not in METRICS:
        raise ValueError(f"metric={metric!r} is none of {', '.join(map(repr, METRICS))}.")
    if max_rows < 1:
        raise ValueError(f"max_rows={max_rows!r} must be positive.")
    held_out_by = {"time_column": time_column, "group": group}
    data = Data.of(table, target, **held_out_by, columns=columns, max_rows=max_rows, seed=seed)
    split = make_split(data, cv, seed)
    models = candidates(data, strategies, seed, len(split.parts))
    study = run_study(data, split, models, progress, metric)
    model = refit(study, study.best)
    found, by_column = contenders(study), alone(study)
    explained = explain_study(study, found, by_column)
    findings = without(all_findings(study, by_column, model, findings), ignore)
    best, held = study.best, study.held
    run = Run(
        *(command, versions(), seed, started.isoformat(timespec="seconds")),
        *(perf_counter() - start, tuple(ignore)),
    )
    report = Report(
        data=data.summary(name, sha256),
        split=study.split.summary,
        verdict=verdict(study, found, findings),
        contenders=found,
        best=best.candidate.name,
        why=why(study, found),
        labels=tuple(data.texts),
        confusion=confusion(best.P, held),
        reliability=reliability(best.P, held, study.groups),
        findings=tuple(findings),
        run=run,
        rule=rule(study),
        definitions=DEFINITIONS,
        **vars(explained),
        explorer=explorer(study, model, explained.contributions, explained.examples),
        metric=metric,
        lead="auc" if is_rare(study) and "auc" in found[0].scores else "error",
    )
    return Comparison(report, model, study)


def refit(study: Study, trial: Trial) -> Any:
    """Return a model fitted to all rows of the table, with the labels as they stand there."""
    frame, labels, *_ = study.data.labelled
    names = [column.name for column in study.data.columns]
    model = trial.candidate.make(study.data.encoder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is wrong with it is asked of the fitted model
        return model.fit(frame.select(names).to_native(), labels)
