"""Compiled scans of sparse rows (CSR), all at once: the sums of a chunk, all columns by class, are large."""

from __future__ import annotations

from typing import Any

from riskbayes.objectives import Objective
from riskbayes.risks import Risks
from riskbayes.scanners.dense import Labels, Scanner
from riskbayes.scanners.kernels.sparse import SparseScan
from riskbayes.statistics import Statistics


class SparseScanner(Scanner):
    """Compiled scans of scores x @ weights + constants; by the formulas of the model for other objectives.

    The model has `of_sums(s0, counts, frame)`, which returns its statistics. Rows that are scanned again are
    sorted first.
    """

    last: SparseScan | None = None
    """The last scan, whose sorted rows the next one reads again."""

    def scan(
        self, theta: Any, labels: Labels, objective: Objective, risks_only: bool = False
    ) -> tuple[Statistics | None, Risks]:
        """Return dS (None with `risks_only`) and the risks of all rows."""
        if objective.power is None or theta.weights.shape[0] < 2:
            self.last = None
            return super().scan(theta, labels, objective, risks_only)
        self.last = scan = SparseScan.after(self.last, self.Z, theta.weights, theta.constants)
        if risks_only:
            return None, scan.risks(self.Z, labels.y, labels.w)
        s0, counts, risks = scan.sums(self.Z, labels.y, labels.w, objective.power)
        return self.model.of_sums(s0, counts, self.Z.frame), risks  # type: ignore[attr-defined]

    def forget(self) -> None:
        """Forget the last scan."""
        self.last = None
