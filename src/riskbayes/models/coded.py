"""What models of category codes share: their statistics, counts, and how scans read them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from riskbayes.arrays import Array, astype, sum_of, to_widest
from riskbayes.frames import CountsByFeature
from riskbayes.models.base import GenerativeModel, Sample
from riskbayes.models.codes import Codes, DeviceCodes
from riskbayes.models.traits import Traits
from riskbayes.scanners import Scanner
from riskbayes.scanners.compiled import CodesPart, CompiledScanner
from riskbayes.scanners.dense import Labels
from riskbayes.statistics import Statistics


@dataclass(frozen=True)
class CategoricalParameters:
    """log p(y), log p(x_i | y) in the columns of `frame`, and the log probability of an unseen category."""

    log_prior: Array
    log_prob: Array
    log_unseen: Array
    frame: CountsByFeature
    floored: Array


class JointScanner(CompiledScanner):
    """Compiled scans of codes of a few features each."""

    kind = CodesPart

    def part(self, theta: CategoricalParameters) -> CodesPart:
        """Return the codes of a compiled scan."""
        groups, table = self.Z.grouping[0], self.Z.grouping[0].table(theta.log_prob)
        return CodesPart(self.Z.frame, groups.first, groups.back, table, theta.log_prior)

    def chunk_of_labels(self, Z: Codes, labels: Labels) -> Statistics:
        """Return the counts of labelled rows."""
        assert Z.grouping is not None
        s0 = np.bincount(labels.y, weights=labels.w, minlength=labels.n_classes).astype(np.float64)
        counts = Z.grouping[0].label_counts(Z.grouping[1], *labels)
        return Statistics({"s0": s0, "counts": counts}, Z.frame)


@dataclass(frozen=True)
class CodedModel(GenerativeModel):
    """Base class of models whose rows are codes: their scores are a sum over the codes that are present.

    Parameters
    ----------
    alpha : float
        Pseudo-counts; 0 is maximum likelihood.
    class_alpha : float
        Pseudo-counts per class for p(y).
    class_prior : array of shape (n_classes,), optional
        A fixed p(y).
    """

    traits: ClassVar[Traits] = Traits("categories", array_api=True, takes_missing=True)
    _non_negative: ClassVar[tuple[str, ...]] = ("s0", "counts")

    alpha: float = 0.0
    class_alpha: float = 0.0
    class_prior: Array | None = None

    @abstractmethod
    def learn(self, sample: Sample) -> CountsByFeature:
        """Return the categories of each feature."""

    def cast(self, theta: CategoricalParameters, Z: Codes | DeviceCodes) -> CategoricalParameters:
        """Return theta in the dtype of one-hot rows."""
        if Z.dtype == theta.log_prob.dtype:
            return theta
        logs = ("log_prior", "log_prob", "log_unseen")
        return replace(theta, **{name: astype(getattr(theta, name), Z.dtype) for name in logs})

    def scanner(self, Z: Codes | DeviceCodes) -> Scanner:
        """Return a compiled scanner of rows that are coded jointly."""
        kind = Scanner if Z.grouping is None else JointScanner
        return kind(self, Z, cells=Z.cells, releases_lock=Z.grouping is not None)

    def statistics(self, Z: Codes | DeviceCodes, W: Array) -> Statistics:
        """Return weighted counts of classes and of (class, feature, category); missing cells have none."""
        V = astype(W, Z.dtype)
        return Statistics({"s0": to_widest(sum_of(W, axis=0)), "counts": to_widest(Z.counts(V))}, Z.frame)

    def is_legal(self, S: Statistics) -> bool:
        """True if every class has a mass. Cells need no check: they are floored."""
        return S.least_mass() + self.class_alpha > 0

    def log_joint(self, Z: Codes | DeviceCodes, theta: CategoricalParameters) -> Array:
        """log p(y) + sum_i log p(x_i | y) over the features that are present."""
        known, unseen = Z.times(theta.log_prob)
        joint = known + theta.log_prior[None, :]
        return joint if unseen is None else joint + unseen @ theta.log_unseen.T
