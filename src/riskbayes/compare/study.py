"""Runs a comparison: every model in every part of the split, timed; a model that fails is reported."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np

import riskbayes.compare.scores as scores
from riskbayes.arrays import Array
from riskbayes.compare.contenders import MAJORITY, Candidate
from riskbayes.compare.data import Data
from riskbayes.compare.evidence import Evidence, gather_evidence
from riskbayes.compare.report import Contender
from riskbayes.compare.splits import Split
from riskbayes.estimators.table_input import given_kinds
from riskbayes.input.schema import Cells
from riskbayes.preprocessing.encoder import TableEncoder

Progress = Callable[[str, int, int], None]
"""Called with what is done next, how many fits are done, and how many there are."""


@dataclass
class Part:
    """Training rows and held-out rows, as tables and encoded; the encoder has seen the training rows only."""

    kept: Array
    held: Array
    train: Any
    test: Any
    encoder: TableEncoder
    Z_train: Array
    Z_test: Array
    learn_seconds: float
    encode_seconds: float

    @classmethod
    def of(cls, data: Data, kept: Array, held: Array) -> Part:
        """Return a part of the split, encoded."""
        train, test, start = data.take(kept), data.take(held), perf_counter()
        names = [column.name for column in data.columns]
        kinds = given_kinds(data.said, names)
        encoder, Z_train = TableEncoder.learn(train, names, kinds, informative=True)
        learned = perf_counter()
        Z_test = encoder.encode(Cells.of(test, names, kinds))
        return cls(
            *(kept, held, train, test, encoder, Z_train, Z_test),
            *(learned - start, perf_counter() - learned),
        )


@dataclass
class Trial:
    """One model: its probabilities of all held-out rows, its seconds, and the fitted estimators."""

    candidate: Candidate
    P: Array
    """Of shape (held-out rows, classes), in the order of `Split.held`."""
    fit_seconds: list[float] = field(default_factory=list)
    predict_seconds: list[float] = field(default_factory=list)
    models: list[Any] = field(default_factory=list)
    """The fitted estimator of each part; of the models of riskbayes only."""
    failed: str = ""


@dataclass(frozen=True)
class Study:
    """What was run, before anything is said about it."""

    data: Data
    split: Split
    parts: list[Part]
    trials: list[Trial]
    metric: str = "log_loss"
    """The figure that the best model is chosen by; a key of `scores.METRICS`."""

    @property
    def held(self) -> Array:
        """Codes of the true classes of the held-out rows."""
        return self.data.codes[self.split.held]

    @property
    def groups(self) -> Array | None:
        """Groups of the held-out rows, if there are any."""
        return None if self.data.groups is None else self.data.groups[self.split.held]

    @property
    def folds(self) -> Array:
        """The part of the split that each held-out row belongs to."""
        return np.repeat(np.arange(len(self.split.parts)), [len(held) for _, held in self.split.parts])

    def trial(self, name: str) -> Trial:
        """Return the model of this name."""
        return next(trial for trial in self.trials if trial.candidate.name == name)

    @property
    def usable(self) -> list[Trial]:
        """The models that could be fitted."""
        return [trial for trial in self.trials if not trial.failed]

    def risk(self, trial: Trial, metric: str) -> float:
        """Return the mean on the held-out rows of a figure that is one of `scores.row_losses`."""
        return float(scores.row_losses(trial.P, self.held)[metric].mean())

    @property
    def base_error(self) -> float:
        """The error of the majority class on the held-out rows, in percent."""
        return self.risk(self.trial(MAJORITY), "error")

    @cached_property
    def best(self) -> Trial:
        """The model of riskbayes that is best in `metric` on the held-out rows."""
        ours = [trial for trial in self.usable if trial.candidate.kind == "riskbayes"]
        return min(ours, key=self.choosing_score)

    def choosing_score(self, trial: Trial) -> tuple[float, float]:
        """Return what models are ordered by, the best first."""
        return scores.choosing_score(trial.P, self.held, self.folds, self.metric)

    @cached_property
    def evidence(self) -> dict[str, Evidence]:
        """What each model but the majority class shows of its own, by name."""
        base = self.trial(MAJORITY)
        return {
            trial.candidate.name: gather_evidence(trial.P, base.P, self.held, self.groups, self.folds)
            for trial in self.usable
            if trial is not base
        }

    @property
    def predicts(self) -> bool:
        """True if any model says more about the class than its frequencies do, beyond chance."""
        return any(one.beyond for one in self.evidence.values())


def run_study(
    data: Data,
    split: Split,
    found: Sequence[Candidate],
    progress: Progress | None = None,
    metric: str = "log_loss",
) -> Study:
    """Fit every model to the training rows of every part; predict the rows that it holds out."""
    say = progress or (lambda words, done, total: None)
    total, done = len(found) * len(split.parts), 0
    shape = (len(split.held), len(data.classes))
    trials = [Trial(candidate, np.zeros(shape)) for candidate in found]
    parts, first = [], 0
    for kept, held in split.parts:
        part = Part.of(data, kept, held)
        parts.append(part)
        for trial in trials:
            say(trial.candidate.name, done, total)
            done += 1
            if not trial.failed:
                place = slice(first, first + len(held))
                try_part(trial, part, data, place)
        first += len(held)
    say("", total, total)
    ours = [trial for trial in trials if trial.candidate.kind == "riskbayes"]
    if all(trial.failed for trial in ours):
        raise ValueError(f"No model of riskbayes can be fitted to this table: {ours[0].failed}")
    return Study(data, split, parts, trials, metric)


def try_part(trial: Trial, part: Part, data: Data, place: slice) -> None:
    """Fit a model to a part and store its probabilities; keep the reason if it cannot be."""
    candidate, codes = trial.candidate, data.codes[part.kept]
    table = candidate.reads_table
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what they warn of is asked of the fitted models
            start = perf_counter()
            model = candidate.make(part.encoder)
            model.fit(part.train if table else part.Z_train, codes)
            fitted = perf_counter()
            P = np.asarray(model.predict_proba(part.test if table else part.Z_test), dtype=np.float64)
            end = perf_counter()
    except Exception as error:  # one model must not take the others with it; the report says which failed
        trial.failed = str(error).strip().split("\n")[0] or type(error).__name__
        return
    if not np.isfinite(P).all():
        trial.failed = "Its probabilities are not finite on some held-out rows."
        return
    trial.P[place, np.asarray(model.classes_)] = P
    trial.fit_seconds.append(fitted - start + (0 if table else part.learn_seconds))
    trial.predict_seconds.append(end - fitted + (0 if table else part.encode_seconds))
    if candidate.kind == "riskbayes":
        trial.models.append(model)


def contenders(study: Study) -> tuple[Contender, ...]:
    """Return the figures of every model, those first that would be chosen first; last those that failed."""
    held, groups, folds = study.held, study.groups, study.folds
    base, best = study.trial(MAJORITY), study.best
    order = {trial.candidate.name: study.choosing_score(trial) for trial in study.usable}
    found = []
    for trial in study.trials:
        about = trial.candidate
        if trial.failed:
            found.append(Contender(about.name, about.kind, about.learner, failed=trial.failed))
            continue
        gain = study.evidence[about.name].gain if trial is not base else {}
        behind = scores.differences(trial.P, best.P, held, groups) if trial is not best else {}
        found.append(
            Contender(
                about.name,
                about.kind,
                about.learner,
                scores.all_scores(trial.P, held, groups, folds),
                gain,
                behind,
                float(np.mean(trial.fit_seconds)),
                float(np.mean(trial.predict_seconds)),
            )
        )
    return tuple(sorted(found, key=lambda c: order.get(c.name, (float("inf"),))))
