"""Lines in the cells of a network's numbers, and the moments of cells about them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from riskbayes.arrays import Array
from riskbayes.frames import Arrays
from riskbayes.models.network import CellGroup, CellPrior
from riskbayes.statistics import Statistics


class Lines(NamedTuple):
    """Gaussians about linear functions of d numbers."""

    means: Array
    """Of shape (classes, cells)."""
    slopes: Array
    """Of shape (classes, cells, d)."""
    variances: Array

    @classmethod
    def of(cls, theta: Any, group: CellGroup) -> Lines:
        """Return those of a group of cells."""
        return cls(
            theta.means[:, group.cells], theta.slopes[:, group.slopes], theta.variances[:, group.cells]
        )


class CellMoments(NamedTuple):
    """Moments of cells of numbers with d numbers as parents."""

    mass: Array
    """Of shape (classes, cells)."""
    s1: Array
    s2: Array
    cross: Array
    """Of shape (classes, cells, d)."""
    parent1: Array
    parent2: Array
    """Of shape (classes, cells, d, d)."""

    @classmethod
    def of(cls, S: Arrays | Statistics, group: CellGroup) -> CellMoments:
        """Return those of a group of cells."""
        return cls(*(S[name][:, columns] for name, columns in zip(cls._fields, group.columns, strict=True)))

    def summed_to(self, cells: int) -> CellMoments:
        """Return those of the first categories, which have this many cells together."""
        later = self.mass.shape[1] // cells
        return CellMoments(*(v.reshape(len(v), later, cells, *v.shape[2:]).sum(axis=1) for v in self))

    def about(self, line: Lines) -> CellMoments:
        """Return the moments of x - mean - slopes z in place of x."""
        a, b = line.means, line.slopes
        along, bent = (b * self.parent1).sum(axis=2), (self.parent2 @ b[..., None])[..., 0]
        s2 = self.s2 - 2.0 * (a * self.s1 + (b * self.cross).sum(axis=2))
        return self._replace(
            s1=self.s1 - a * self.mass - along,
            s2=s2 + a * a * self.mass + 2.0 * a * along + (b * bent).sum(axis=2),
            cross=self.cross - a[..., None] * self.parent1 - bent,
        )

    def plus(self, line: Lines) -> CellMoments:
        """Return the moments of x + mean + slopes z in place of x."""
        return self.about(Lines(-line.means, -line.slopes, line.variances))


class PriorRow(NamedTuple):
    """What a row of the prior holds: the mean and the products of its parents, and a line that x is about."""

    line: Lines
    parent1: Array
    parent2: Array

    @classmethod
    def of(cls, prior: CellPrior, group: CellGroup) -> PriorRow:
        """Return those of a group of cells."""
        return cls(Lines.of(prior, group), prior.parent1[:, group.slopes], prior.parent2[:, group.squares])


def scaled_parents(S: Statistics, mass: Array) -> Arrays:
    """Return moments of cells of these masses whose parents are as in S; those of the numbers are zero."""
    counted = np.where(S["mass"] > 0, S["mass"], 1.0)
    ratio = mass / counted
    found = {name: np.zeros_like(S[name]) for name in ("s1", "s2", "cross")}
    found |= {"mass": mass, "parent1": S["parent1"].copy(), "parent2": S["parent2"].copy()}
    for cells, slopes, squares in S.frame.groups:
        found["parent1"][:, slopes] *= ratio[:, cells, None]
        found["parent2"][:, squares] *= ratio[:, cells, None, None]
    return found


def store(found: Arrays, M: CellMoments, group: CellGroup) -> None:
    """Write the moments of a group of cells."""
    for name, value, columns in zip(CellMoments._fields, M, group.columns, strict=True):
        found[name][:, columns] = value
