"""The coordinates of a network of numbers and categories that a quasi-Newton step moves."""

from __future__ import annotations

import numpy as np

from riskbayes.arrays import Array
from riskbayes.models.augmented_nb import BranchCoordinates, TreeModel
from riskbayes.models.base import Fitted
from riskbayes.models.coordinates import SMOOTHED, ClassPrior, Coordinates, Point, positive
from riskbayes.models.network import Network
from riskbayes.models.network_gaussians import (
    CellGaussians,
    NetworkParameters,
    rests,
)
from riskbayes.models.network_lines import Lines, scaled_parents
from riskbayes.statistics import Statistics

LONGEST_LOG = 300.0
"""Bound on the logarithms of variances: beyond it a step is too long anyway."""


class NetworkCoordinates(Coordinates):
    """log p(y), the logarithms of the tables, and of the Gaussians the means, log variances and slopes.

    A mean is that of a number where its parents are at their means in the data. All are free: no step makes a
    variance negative. The gradient by them is that of the log-likelihood of a residual's statistics; their
    units are the roots of Fisher's information at the closed form.

    Parameters
    ----------
    S : Statistics
        The statistics of the data.
    closed : Statistics
        The statistics of total one whose likelihood an anchor adds.
    gaussians : CellGaussians
        The closed form of the numbers.
    tables : TreeModel
        The model of the categories alone.
    prior : ClassPrior
        What the class masses become p(y) by.
    """

    def __init__(
        self,
        S: Statistics,
        closed: Statistics,
        gaussians: CellGaussians,
        tables: TreeModel,
        prior: ClassPrior,
    ):
        self.S, self.closed, self.gaussians, self.model, self.prior = S, closed, gaussians, tables, prior
        self.tables = BranchCoordinates(of_tables(S), tables) if S.frame.tables else None
        frame: Network = S.frame
        settled = frame.settled
        assert settled is not None
        s0 = closed["s0"]
        mass = S["mass"] / S.total
        mass = (1.0 - SMOOTHED) * mass + SMOOTHED * (s0 / s0.sum())[:, None] * mass.sum(axis=0)
        mass = positive(mass)
        metric: Point = {"s0": positive(s0), "s1": mass / settled.cells, "s2": 0.5 * mass}
        one = scaled_parents(S, np.ones_like(S["mass"]))
        self.middle = one["parent1"]
        metric["cross"] = np.zeros_like(self.middle)
        for cells, slopes, squares in frame.groups:
            spread = np.diagonal(one["parent2"][:, squares], axis1=2, axis2=3) - self.middle[:, slopes] ** 2
            spread = np.maximum(spread, 0.0) + settled.spread[:, slopes]
            pooled = settled.pooled[frame.parent_of_slope[slopes]]
            spread = (1.0 - SMOOTHED) * spread + SMOOTHED * pooled
            metric["cross"][:, slopes] = (mass / settled.cells)[:, cells, None] * spread
        self.unit = {name: positive(value**0.5) for name, value in metric.items()}
        if self.tables is not None:
            self.unit["counts"] = self.tables.unit["counts"]

    def point(self, fitted: Fitted) -> Point:
        """Return the coordinates of a fitted model."""
        theta: NetworkParameters = fitted.theta
        means = theta.means + self._along(theta.slopes)
        free = {"s0": theta.log_prior, "s1": means, "s2": np.log(theta.variances), "cross": theta.slopes}
        found = {name: self.unit[name] * value for name, value in free.items()}
        if self.tables is not None:
            found["counts"] = self.tables.point(self._of_tables(fitted))["counts"]
        return found

    def gradient(self, dS: Statistics, weight: float, fitted: Fitted) -> Point:
        """Return the gradient by the coordinates."""
        R, theta = dS.to_frame(self.S.frame), fitted.theta
        if weight > 0:
            R = R.plus(weight, self.closed)
        prior = R["s0"] - max(weight, 0.0) * np.exp(theta.log_prior)
        v, rest = theta.variances, rests(R, theta)
        low = v <= 1.001 * self.gaussians.floor * self.S.frame.settled.cells
        widths = 0.5 * (rest["s2"] / v - R["mass"])
        turns = np.zeros_like(theta.slopes)
        for cells, slopes, _ in self.S.frame.groups:
            away = rest["s1"][:, cells, None] * self.middle[:, slopes]
            turns[:, slopes] = (rest["cross"][:, slopes] - away) / v[:, cells, None]
        gradient = {
            "s0": prior if self.prior.fixed is None else 0.0 * prior,
            "s1": rest["s1"] / v,
            "s2": np.where(low & (widths < 0), 0.0, widths),
            "cross": turns,
        }
        found = {name: value / self.unit[name] for name, value in gradient.items()}
        if self.tables is not None:
            own = self._of_tables(fitted)
            found["counts"] = self.tables.gradient(of_tables(dS), weight, own)["counts"]
        return found

    def statistics(self, point: Point, s0: Array | None = None) -> Statistics:
        """Return statistics whose parameters these are; each cell has the data's share of its class."""
        free = {name: point[name] / unit for name, unit in self.unit.items() if name in point}
        s0 = self.prior.masses(free["s0"], self.S.total) if s0 is None else s0
        mass = self.S["mass"] * (s0 / positive(self.S["s0"]))[:, None]
        variances = np.exp(np.clip(free["s2"], -LONGEST_LOG, LONGEST_LOG))
        means = free["s1"] - self._along(free["cross"])
        found = self.gaussians.moments_of(Lines(means, free["cross"], variances), self.S, mass)
        if self.tables is not None:
            found["counts"] = self.tables.counts(free["counts"], s0[:, None])
        return Statistics({"s0": s0, **found}, self.S.frame)

    def independent(self) -> Statistics:
        """Return statistics whose lines and tables are the same in all classes, with the prior of each."""
        settled, share = self.S.frame.settled, self.S["s0"] / self.S.total
        lines = self.gaussians.closed_form(super().independent(), settled)
        variances = np.maximum(lines.variances + settled.added, self.gaussians.floor * settled.cells)
        lines = Lines(*(share @ v + 0.0 * v for v in lines._replace(variances=variances)))
        found = {**self.S, **self.gaussians.moments_of(lines, self.S, self.S["mass"].copy())}
        if self.tables is not None:
            found["counts"] = self.tables.independent()["counts"]
        return Statistics(found, self.S.frame)

    def _along(self, slopes: Array) -> Array:
        """Return what the parents add to the means of numbers where they are at their own means."""
        found = np.zeros_like(self.S["s1"])
        for cells, columns, _ in self.S.frame.groups:
            found[:, cells] = (slopes * self.middle)[:, columns].sum(axis=2)
        return found

    def _of_tables(self, fitted: Fitted) -> Fitted:
        """Return the fitted model of the categories."""
        return Fitted(self.model, of_tables(fitted.S), fitted.theta.tables)


def of_tables(S: Statistics) -> Statistics:
    """Return the statistics of the categories alone."""
    return Statistics({"s0": S["s0"], "counts": S["counts"]}, S.frame.tables[0])
