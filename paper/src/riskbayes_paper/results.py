"""What the long table says: errors, iterations, reach, ranks, and who is better."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from riskbayes.pages.table import Cell, verdict
from riskbayes.statistics import Array
from riskbayes_paper.datasets import PAPER_SETS
from riskbayes_paper.protocols import LEARNERS, PROTOCOLS
from riskbayes_paper.rows import Row
from riskbayes_paper.tables import Measured, mark_best

POINT = 0.1
"""A mean difference of less, in percentage points, is called equal."""


class Setting(NamedTuple):
    """A model, its estimate and a protocol: what learners are compared under."""

    model: str
    estimate: str
    protocol: str

    @property
    def title(self) -> str:
        """The model and its estimate, in words."""
        return f"{'Naive Bayes' if self.model == 'nb' else 'QDA'} by {self.estimate.upper()}"


class Difference(NamedTuple):
    """Error of one learner minus that of another on the same splits, in percentage points."""

    mean: float
    standard_error: float
    """Of the mean over splits; not a number where there is one split."""

    @property
    def verdict(self) -> str:
        """Whether the first learner is "better", "equal" or "worse"."""
        return verdict(self.mean, POINT)


class Results:
    """The rows of the long table, each unit at most once, found by what they are about."""

    def __init__(self, rows: Iterable[Row]):
        self.rows = sorted(rows, key=lambda row: (list(PAPER_SETS).index(row.unit.set), row.unit.split))
        self.groups: dict[tuple[str, Setting, str], list[Row]] = {}
        for row in self.rows:
            u = row.unit
            setting = Setting(u.model, u.estimate, u.protocol)
            self.groups.setdefault((u.set, setting, u.learner), []).append(row)
        self.sets = list(dict.fromkeys(row.unit.set for row in self.rows))
        found = {setting for _, setting, learner in self.groups if learner in LEARNERS}
        self.settings = sorted(found, key=lambda s: (s.model, s.estimate == "map", s.protocol))
        self.protocols = [name for name in PROTOCOLS if any(s.protocol == name for s in found)]

    @cached_property
    def stand_ins(self) -> dict[str, str]:
        """Sets whose features are not the paper's, and what they are."""
        return {row.unit.set: row.stand_in for row in self.rows if row.stand_in}

    @property
    def coverage(self) -> str:
        """How many of the paper's sets are here, which are stand-ins, and which are missing."""
        kinds = sorted(set(self.stand_ins.values()))
        sets = {kind: [name for name, found in self.stand_ins.items() if found == kind] for kind in kinds}
        named = "".join(f"; {kind}: {', '.join(names)}" for kind, names in sets.items())
        missing = [name for name in PAPER_SETS if name not in self.sets]
        without = f"; missing: {', '.join(missing)}" if missing else ""
        return f"{len(self.sets)} of {len(PAPER_SETS)} data sets{named}{without}"

    def of(self, name: str, setting: Setting, learner: str) -> list[Row]:
        """Return the rows of a set, by split."""
        return self.groups.get((name, setting, learner), [])

    def learners(self, setting: Setting) -> list[str]:
        """Return the learners that have rows under a setting."""
        found = {learner for _, s, learner in self.groups if s == setting}
        return [learner for learner in LEARNERS if learner in found]

    def label(self, name: str) -> str:
        """Return the name of a set as tables and figures have it: a stand-in says so."""
        words = name.replace("_", " ")
        return f"{words} ({self.stand_ins[name]})" if name in self.stand_ins else words

    def errors(self, name: str, setting: Setting, learner: str, part: str = "test") -> Array:
        """Return the errors in percent, by split."""
        return np.array([100 * row.error(part) for row in self.of(name, setting, learner)])

    def mean_error(
        self, name: str, setting: Setting, learner: str, part: str = "test", printed: float | None = None
    ) -> Measured:
        """Return mean and standard deviation of an error over splits, and the paper's figure."""
        return Measured.over(self.errors(name, setting, learner, part), published=printed, is_error=True)

    def error_cells(self, name: str, columns: Iterable[tuple[Setting, str]]) -> list[Cell]:
        """Return the mean test errors of some learners, the lowest marked; nothing where there is none."""
        cells: list[Cell] = [self.mean_error(name, setting, learner) for setting, learner in columns]
        mark_best(cells, range(len(cells)))
        return cells if any(isinstance(cell, Measured) and cell.mean is not None for cell in cells) else []

    def iterations(self, name: str, setting: Setting, learner: str) -> Array:
        """Return the iteration of the lowest soft error, by split; the closed form is iteration 1."""
        return np.array([1 + int(np.argmin(row.soft_error)) for row in self.of(name, setting, learner)])

    def reach(self, name: str, setting: Setting, learner: str, rival: str) -> float | None:
        """Return the mean iterations to the rival's lowest soft error; None unless all splits get there."""
        theirs = {row.unit.split: min(row.soft_error) for row in self.of(name, setting, rival)}
        needed = []
        for row in self.of(name, setting, learner):
            there = np.flatnonzero(np.array(row.soft_error) <= theirs.get(row.unit.split, -1.0))
            if not len(there):
                return None
            needed.append(1 + there[0])
        return float(np.mean(needed)) if needed else None

    def difference(
        self, name: str, setting: Setting, learner: str, rival: str, part: str = "test"
    ) -> Difference | None:
        """Compare a learner with a rival on the splits that both have; None where there is none."""
        own, theirs = (
            {row.unit.split: 100 * row.error(part) for row in self.of(name, setting, who)}
            for who in (learner, rival)
        )
        gaps = [own[split] - theirs[split] for split in own if split in theirs]
        if not gaps:
            return None
        error = np.std(gaps, ddof=1) / np.sqrt(len(gaps)) if len(gaps) > 1 else np.nan
        return Difference(float(np.mean(gaps)), float(error))

    def with_all(self, setting: Setting, learners: Sequence[str]) -> list[str]:
        """Return the sets that all these learners were run on."""
        return [name for name in self.sets if all(self.of(name, setting, who) for who in learners)]

    def ranks(self, setting: Setting, learners: Sequence[str], part: str = "test") -> Array:
        """Return ranks by mean error, 1 the lowest: a row for each set that has all these learners."""
        means = [
            [self.errors(name, setting, learner, part).mean() for learner in learners]
            for name in self.with_all(setting, learners)
        ]
        # Sums of the same errors differ in the last bits, which must not break a tie.
        return rankdata(np.round(means, 9), axis=1) if means else np.empty((0, len(learners)))
