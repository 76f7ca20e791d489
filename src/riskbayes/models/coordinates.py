"""The coordinates that a quasi-Newton step moves: each model says which suit it. S stays the loop's value.

A table of probabilities moves by its logarithms: they are free, and no step takes a cell below zero. All else
moves by its statistics. Either way a point is a dict of arrays by the names of the statistics, in units in
which their variances are one: logarithms times the standard deviation of the statistic, or statistics over
it. It is the deviation that is stored, for variances of second moments may overflow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from riskbayes.arrays import Array, max_of, namespace, positive, sum_of
from riskbayes.statistics import Statistics

if TYPE_CHECKING:
    from riskbayes.models.base import Fitted

Point = dict[str, Array]
"""Arrays by the names of the statistics."""

Groups = tuple[Callable[[Array], Array], Callable[[Array], Array]]
"""The sums of a table over each distribution, and such sums repeated for each cell."""

LEAST_SHARE = 1e-3
"""Lower bound on a variance, as a share of its mean over the array."""

LEAST_MASS = 1e-6
"""Lower bound on the mass of a distribution that a class has no rows of, as a share of the total weight."""

FARTHEST_LOG = 700.0
"""Bound on how far logarithms are below the largest of a class: there exp is not zero yet."""

SMOOTHED = 0.05
"""Share of the pooled frequencies in variances of a table: cells that a class never has need one too."""


class Coordinates:
    """The statistics themselves, over their standard deviations.

    Parameters
    ----------
    S : Statistics
        The statistics of the data. Proposals have their total and their frame.
    unit : dict of arrays, optional
        The standard deviation of each statistic of a row; by default the root of its size.
    """

    target: Statistics | None = None
    """The statistics whose likelihood an anchor monitors, once they were asked for."""

    def __init__(self, S: Statistics, unit: Point | None = None):
        self.S, self.closed = S, (1.0 / S.total) * S
        found = {name: sizes(value) ** 0.5 for name, value in self.closed.items()} if unit is None else unit
        self.unit = {name: positive(value) for name, value in found.items()}
        self.varies = {name: value > 0 for name, value in found.items()}

    def point(self, fitted: Fitted) -> Point:
        """Return the coordinates of a fitted model."""
        own, total = fitted.S.to_frame(self.S.frame), self.S.total
        return {name: own[name] / (total * unit) for name, unit in self.unit.items()}

    def gradient(self, dS: Statistics, weight: float, fitted: Fitted) -> Point:
        """Return the gradient of the objective's gain, which a step ascends, by the coordinates.

        dS are the statistics of the residual, a row of weight one; `weight` is that of the anchor.
        """
        found = dS.to_frame(self.S.frame)
        if weight > 0:
            found = found.plus(weight, self.pull(fitted))
        return {name: found[name] / unit for name, unit in self.unit.items()}

    def pull(self, fitted: Fitted) -> Statistics:
        """Return the gradient of the log-likelihood that an anchor monitors, by the canonical parameters.

        Under MAP and with a given p(y) its rows are not those of the data. A model that cannot be monitored
        is drawn to the statistics of the data.
        """
        model = fitted.model
        if not model.implements("expected_statistics"):
            return self.closed - (1.0 / self.S.total) * fitted.S.to_frame(self.S.frame)
        if self.target is None:
            self.target = model.anchor_statistics(self.S)
        expected = model.expected_statistics(fitted.theta, 1.0)
        found = self.target.to_frame(self.S.frame) - expected.to_frame(self.S.frame)
        xp = namespace(found["s0"])
        return Statistics({n: xp.where(self.varies[n], v, 0.0) for n, v in found.items()}, found.frame)

    def statistics(self, point: Point, s0: Array | None = None) -> Statistics:
        """Return the statistics at a point, with class masses s0 if another expert has moved them."""
        total = self.S.total
        found = {name: total * unit * point[name] for name, unit in self.unit.items() if name in point}
        if s0 is None:  # steps sum to zero but for the rounding of gradients, which short steps divide by
            s0 = found["s0"] * (total / sum_of(found["s0"]))
        return Statistics({**found, "s0": s0}, self.S.frame)

    def independent(self) -> Statistics:
        """Return statistics of the same rows with columns that do not depend on the class."""
        found, share = {**self.S}, self.S["s0"] / self.S.total
        for name, value in self.S.items():
            if name != "s0" and value.shape[0] == share.shape[0]:  # others are of all classes together
                column = namespace(share).reshape(share, (-1,) + (1,) * (len(value.shape) - 1))
                found[name] = column * sum_of(value, axis=0, keepdims=True)
        return Statistics(found, self.S.frame)


class ClassPrior(NamedTuple):
    """What the class masses become p(y) by."""

    alpha: float = 0.0
    fixed: Array | None = None

    def masses(self, logs: Array, total: float) -> Array:
        """Return masses of the classes, of this total, whose smoothed shares are exp(logs), normalised."""
        xp, logs = namespace(logs), logs - max_of(logs)
        log_prior = logs - xp.log(sum_of(xp.exp(logs)))
        return invert_class_prior(log_prior, total, self.alpha if self.fixed is None else 0.0)


class TableCoordinates(Coordinates):
    """log p(y), and the logarithms of tables of probabilities, each up to a constant of its distribution.

    The gradient by them is the centred statistic, dS - p sum dS, whether cells are missing or not.

    Parameters
    ----------
    S : Statistics
        The statistics of the data, with the tables as `counts`.
    closed : Statistics
        The statistics of total one whose likelihood an anchor adds.
    pseudo : float or array
        Pseudo-counts of a cell.
    floor : float or array
        Lower bound on a smoothed count.
    prior : ClassPrior
        Pseudo-counts of the classes, or a fixed p(y).
    groups : tuple of two functions, optional
        The sums of a table over each distribution, and such sums repeated for each cell; by default those of
        the frame, one distribution for each feature.
    tied : array of bool, optional
        Cells that have one probability for all classes: no step moves them.
    """

    def __init__(
        self,
        S: Statistics,
        closed: Statistics,
        pseudo: Any,
        floor: Any,
        prior: ClassPrior,
        groups: Groups | None = None,
        tied: Array | None = None,
    ):
        self.S, self.closed, self.pseudo, self.floor, self.prior = S, closed, pseudo, floor, prior
        self.sums: Callable[[Array], Array]
        self.spread: Callable[[Array], Array]
        self.sums, self.spread = (S.frame.sums, S.frame.spread) if groups is None else groups
        self.tied = tied
        smoothed = S["counts"] + pseudo + 0.0 * S["counts"]
        self.mass = self.spread(namespace(smoothed).clip(self.sums(smoothed), min=LEAST_MASS * S.total))
        pooled = (
            sum_of(closed["counts"], axis=0, keepdims=True) * (closed["s0"] / sum_of(closed["s0"]))[:, None]
        )
        counts = (1.0 - SMOOTHED) * closed["counts"] + SMOOTHED * pooled
        self.unit = {"s0": positive(closed["s0"]) ** 0.5, "counts": positive(counts) ** 0.5}

    def logs(self, theta: Any) -> Array:
        """Return the logarithms of the tables."""
        return theta.log_prob

    def shares(self, theta: Any) -> Array:
        """Return the share of each cell in the expected statistics of its distribution."""
        return namespace(theta.log_prob).exp(theta.log_prob)

    def point(self, fitted: Fitted) -> Point:
        """Return log p(y) and the logarithms of the tables."""
        logs = {"s0": fitted.theta.log_prior, "counts": self.logs(fitted.theta)}
        return {name: unit * logs[name] for name, unit in self.unit.items()}

    def gradient(self, dS: Statistics, weight: float, fitted: Fitted) -> Point:
        """Return the centred statistics."""
        found, theta = dS.to_frame(self.S.frame), fitted.theta
        xp, prior = namespace(theta.log_prior), found["s0"]
        if weight > 0:
            found = found.plus(weight, self.closed)
            p = xp.exp(theta.log_prior)
            prior = found["s0"] - weight * p
        if self.prior.fixed is not None:
            prior = 0.0 * prior
        gradient = {"s0": prior, "counts": self.centred_gradient(found, fitted)}
        return {name: gradient[name] / unit for name, unit in self.unit.items()}

    def centred_gradient(self, R: Statistics, fitted: Fitted) -> Array:
        """Return R minus the shares of its sums; zero for a cell on its floor that is pushed further down."""
        counts, shares, xp = R["counts"], self.shares(fitted.theta), namespace(R["s0"])

        def centred(values: Array) -> Array:
            return values - shares * self.spread(self.sums(values))

        stuck = (shares * self.mass <= 1.001 * self.floor) & (centred(counts) < 0)
        if self.tied is not None:
            stuck = stuck | self.tied
        return xp.where(stuck, 0.0, centred(xp.where(stuck, 0.0, counts)))

    def statistics(self, point: Point, s0: Array | None = None) -> Statistics:
        """Return statistics whose parameters have these logarithms."""
        s0 = self.prior.masses(point["s0"] / self.unit["s0"], self.S.total) if s0 is None else s0
        return self.of_logs(s0, point["counts"] / self.unit["counts"])

    def of_logs(self, s0: Array, logs: Array) -> Statistics:
        """Return statistics with these class masses and logarithms; each distribution has the data's mass."""
        found = {**self.S, "s0": s0}
        if "mass" in found:
            found["mass"] = found["mass"] * (s0 / positive(self.S["s0"]))[:, None]
        counts = self.counts(logs, found["mass"] if "mass" in found else s0[:, None])
        return Statistics(found | {"counts": counts}, self.S.frame)

    def counts(self, logs: Array, mass: Array) -> Array:
        """Return the counts of such statistics; `mass` is that of the cells, for models of counts."""
        return self.distribution(logs) * self.mass - self.pseudo

    def independent(self) -> Statistics:
        """Return statistics whose tables are the same in all classes."""
        xp, prior = namespace(self.S["s0"]), self.closed["s0"]
        logs = self.pooled_logs() + 0.0 * self.closed["counts"]
        return self.of_logs(self.prior.masses(xp.log(prior), self.S.total), logs)

    def pooled_logs(self) -> Array:
        """Return the logarithms of a table of all classes together."""
        counts = self.closed["counts"]
        return namespace(counts).log(positive(sum_of(counts, axis=0, keepdims=True)))

    def distribution(self, logs: Array) -> Array:
        """Return exp(logs), normalised over each distribution.

        After a long step one may be so far below the others that all of its cells would underflow.
        """
        xp = namespace(logs)
        e = xp.exp(xp.clip(logs - max_of(logs, axis=1, keepdims=True), min=-FARTHEST_LOG))
        return e / self.spread(self.sums(e))


def invert_class_prior(log_prior: Array, total: float, alpha: float = 0.0) -> Array:
    """Return the class masses of this total whose smoothed frequencies are p(y).

    Where alpha is much larger than the total, p(y) has few of the digits of the masses: what their sum lacks
    of the total is divided by p(y).
    """
    p = namespace(log_prior).exp(log_prior)
    if not alpha:
        return p * total
    s0 = p * (total + alpha * log_prior.shape[0]) - alpha
    return s0 + p * (total - sum_of(s0))


def sizes(value: Array) -> Array:
    """Return the sizes of statistics, raised to a share of the mean of those that are not zero."""
    size, xp = abs(value), namespace(value)
    mean = sum_of(size) / xp.clip(sum_of(xp.astype(size > 0, size.dtype)), min=1.0)
    return xp.clip(size, min=LEAST_SHARE * float(mean))
