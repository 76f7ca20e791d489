"""Compiled scans of large tables: one call for each chunk, in place of some eighty NumPy calls.

Each of those releases the GIL and acquires it again, so that chunks in several threads would wait for one
another. The scanner of a model has its part of such a scan: a Gaussian for each class, look-ups between
knots, or joint codes of categories. A product of these is one scan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from riskbayes.arrays import Array
from riskbayes.loaded import require, require_shape
from riskbayes.objectives import Objective
from riskbayes.risks import Risks
from riskbayes.scanners.dense import Labels, Scanner
from riskbayes.scanners.kernels import BLOCK, known, readonly
from riskbayes.statistics import Statistics

OTHER_COLUMNS = "rows have other columns than the model"


@dataclass(frozen=True)
class GaussianPart:
    """Scores -|W^T (x - origin) + shift|^2 / 2 + constant of each class, and moments about the origin."""

    frame: Any
    origin: Array
    whiteners: Array
    """A stack of upper triangles W."""
    shifts: Array
    constants: Array

    def check_shapes(self, r: int) -> None:
        """Require one shape for each of r classes: compiled code checks no bounds."""
        n = len(self.origin)
        require_shape(self.shifts, (r, n), "f", "shifts")
        require_shape(self.whiteners, (r, n, n), "f", "whiteners")

    def parameters(self, weight: float) -> tuple[Any, ...]:
        """Return the arguments of the compiled scan besides rows; `weight` multiplies the scores."""
        return readonly(self.origin), readonly(self.whiteners), readonly(self.shifts), float(weight)

    def rows(self, Z: Any) -> tuple[Array, ...]:
        """Return the rows of a chunk as compiled code reads them."""
        require(Z.X.shape[1] == len(self.origin), OTHER_COLUMNS)
        return (readonly(Z.X),)

    def sums(self) -> tuple[Array, ...]:
        """Return zeros to add first and second moments to."""
        r, n = self.shifts.shape
        return np.zeros((r, n)), np.zeros((r, n, n))

    def space(self) -> tuple[Array, ...]:
        """Return arrays for the rows of a block, column by column, and for one column."""
        return np.empty((len(self.origin), BLOCK)), np.empty(BLOCK)

    def statistics(self, s0: Array, s1: Array, s2: Array) -> Statistics:
        """Return the sums by name, with those of the last class and the lower triangles."""
        add_last(s1)
        add_last(s2)
        s2 += np.triu(s2, 1).swapaxes(1, 2)
        return Statistics({"s0": s0, "s1": s1, "s2": s2}, self.frame)


@dataclass(frozen=True)
class LookUpPart:
    """Scores from a table (knots + 2, classes) + constant of each class, and counts of the knots."""

    frame: Any
    offsets: Array
    table: Array
    constants: Array

    def check_shapes(self, r: int) -> None:
        """Require rows of the table for all knots and r classes: compiled code checks no bounds."""
        require_shape(self.table, (len(self.frame.positions) + 2, r), "f", "table")

    def parameters(self, weight: float) -> tuple[Any, ...]:
        """Return the arguments of the compiled scan besides rows; scores are relative to the last class."""
        return readonly(self.offsets, np.int64), relative(weight, self.table)

    def rows(self, Z: Any) -> tuple[Array, ...]:
        """Return the rows of a chunk as compiled code reads them."""
        require(Z.places.shape[1] == len(self.offsets), OTHER_COLUMNS)
        return readonly(Z.places), readonly(Z.beyond)

    def sums(self) -> tuple[Array, ...]:
        """Return zeros to add counts and distances into the tails to."""
        knots, r = self.table.shape
        return np.zeros((knots, r)), np.zeros(r)

    def space(self) -> tuple[Array, ...]:
        """Return an array for a number of each class but the last."""
        return (np.empty(self.table.shape[1] - 1),)

    def statistics(self, s0: Array, counts: Array, tails: Array) -> Statistics:
        """Return the sums by name, with those of the last class."""
        add_last(counts.T)
        add_last(tails)
        return Statistics(
            {"s0": s0, "counts": np.ascontiguousarray(counts[:-2].T), "beyond": tails}, self.frame
        )


@dataclass(frozen=True)
class CodesPart:
    """Scores from a table (joint codes, classes) + constant of each class, and counts of the categories."""

    frame: Any
    first: Array
    """Rows of the table before those of each group of features, and after the last one."""
    back: Any
    """Matrix that sums counts of joint codes to those of categories."""
    table: Array
    constants: Array

    def check_shapes(self, r: int) -> None:
        """Require rows of the table for all joint codes and r classes: compiled code checks no bounds."""
        require_shape(self.table, (int(self.first[-1]), r), "f", "table")

    def parameters(self, weight: float) -> tuple[Any, ...]:
        """Return the arguments of the compiled scan besides rows; scores are relative to the last class."""
        return readonly(self.first, np.uint64), relative(weight, self.table)

    def rows(self, Z: Any) -> tuple[Array, ...]:
        """Return the joint codes of a chunk, group by group."""
        joint = Z.grouping[1]
        require(len(joint) == len(self.first) - 1, OTHER_COLUMNS)
        return (readonly(joint, joint.dtype),)

    def sums(self) -> tuple[Array, ...]:
        """Return zeros to add counts of the joint codes to."""
        return (np.zeros(self.table.shape),)

    def space(self) -> tuple[Array, ...]:
        """Return arrays for the scores of a block, row by row, and for the numbers of its rows."""
        return np.empty((BLOCK, self.table.shape[1] - 1)), np.empty(BLOCK, dtype=np.int64)

    def statistics(self, s0: Array, counts: Array) -> Statistics:
        """Return the sums by name, with those of the last class."""
        add_last(counts.T)
        return Statistics({"s0": s0, "counts": (self.back @ counts).T}, self.frame)


def relative(weight: float, table: Array) -> Array:
    """Return the weighted table of all classes but the last, relative to it, as compiled code reads it."""
    return readonly(weight * (table[:, :-1] - table[:, -1:]))


def add_last(sums: Array) -> None:
    """Write the sums of the last class, minus those of the others, to the end of the first axis."""
    np.negative(sums[:-1].sum(axis=0), out=sums[-1, ...])


Part = GaussianPart | LookUpPart | CodesPart


class CompiledScanner(Scanner):
    """Scans by compiled code, for objectives that have a power; by the formulas of the model for others.

    A subclass says which parts the scan has, and joins their statistics.
    """

    kind: type[Part] | None = None
    """The type of the part that this scanner adds to the scan of a product; None if it adds none."""

    def part(self, theta: Any) -> Part:
        """Return the part that a compiled scan computes for this model with parameters theta."""
        raise NotImplementedError

    def compiled(self, theta: Any) -> CompiledScan:
        """Return the compiled scan with parameters theta."""
        part = self.part(theta)
        return CompiledScan((part,), (1.0,), np.zeros_like(part.constants))

    def rows(self, Z: Any) -> Sequence[Any]:
        """Return the rows of a chunk as encoded for each part."""
        return (Z,)

    def join(self, found: Sequence[Statistics]) -> Statistics:
        """Return the statistics of the model, given those of each part."""
        return found[0]

    def scan(
        self, theta: Any, labels: Labels, objective: Objective, risks_only: bool = False
    ) -> tuple[Statistics | None, Risks]:
        """Return dS (None with `risks_only`) and the risks of all rows."""
        if objective.power is None:
            return super().scan(theta, labels, objective, risks_only)
        scan = self.compiled(theta)

        def work(Z: Any, labels: Labels) -> tuple[Statistics | None, Risks]:
            found, risks = scan.chunk(self.rows(Z), labels.y, labels.w, objective, risks_only)
            return None if found is None else self.join(found), risks

        return self.sum(work, labels)


class CompiledScan:
    """A scan whose scores are a constant for each class plus weighted parts, at most one of each type."""

    def __init__(self, parts: Sequence[Part], weights: Sequence[float], constants: Array):
        self.parts, r = parts, len(constants)
        for part in parts:
            part.check_shapes(r)
        pairs = list(zip(parts, weights, strict=True))
        self._parameters = [part.parameters(weight) for part, weight in pairs]
        self._constants = readonly(constants + sum(weight * part.constants for part, weight in pairs))

    def chunk(
        self, rows: Sequence[Any], y: Array, w: Array | None, objective: Objective, risks_only: bool
    ) -> tuple[list[Statistics] | None, Risks]:
        """Return the residual statistics of each part and the risks; `rows` are encoded for each part."""
        from riskbayes.scanners.kernels import loops  # numba is slow to import, and optional

        s0, risks, sums = np.zeros(len(self._constants)), np.zeros(3), [part.sums() for part in self.parts]
        given = {
            type(part): (*part.rows(Z), *own, *added, *part.space())
            for part, Z, own, added in zip(self.parts, rows, self._parameters, sums, strict=True)
        }
        loops.scan(
            *(given.get(kind) for kind in (GaussianPart, LookUpPart, CodesPart)),
            self._constants,
            readonly(y, np.int64),
            readonly(np.empty(0) if w is None else w),
            objective.power,
            known(len(s0) - 1),
            risks_only,
            np.empty((len(s0), BLOCK)),
            s0,
            risks,
        )
        add_last(s0)
        mass = float(len(y) if w is None else w.sum())
        found = (
            None if risks_only else [p.statistics(s0, *own) for p, own in zip(self.parts, sums, strict=True)]
        )
        return found, Risks(("soft_error", "error", "log_loss"), risks, mass)
