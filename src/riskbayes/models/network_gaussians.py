"""The Gaussians of the numbers of a tree: their closed form with its prior, its inverse, and densities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from riskbayes.arrays import Array
from riskbayes.frames import Arrays
from riskbayes.models.augmented_nb import TreeParameters
from riskbayes.models.network import Network, NetworkRows, SettledNetwork
from riskbayes.models.network_messages import LOG_2PI
from riskbayes.models.settled import SEPARATING, TINY
from riskbayes.statistics import Statistics

EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class NetworkParameters:
    """log p(y), the tables of the categories, and the Gaussians of the numbers in the cells of `frame`.

    A number is normal with the mean of its cell, plus its slope times its parent.
    """

    log_prior: Array
    tables: TreeParameters | None
    """None if there are no categories."""
    means: Array
    variances: Array
    slopes: Array
    """By class and edge."""
    parent1: Array
    """The mean of the parent of each edge in the rows of the class."""
    parent2: Array
    """The mean of its squares."""
    shares: Array
    """The mass of each cell, as a share of that of the class: calibration does not change it."""
    frame: Any
    floored: Array


@dataclass(frozen=True)
class CellGaussians:
    """The closed form of the Gaussians, with its prior.

    Parameters
    ----------
    alpha : float
        The rows that the pooled variance of a number counts as in each class.
    backoff : float
        The rows that p(x | y) counts as in p(x | parent, y).
    floor : float
        Least variance of a number given its parent, as a share of the closed form's.
    """

    alpha: float
    backoff: float
    floor: float

    def settled_by(self, S: Statistics) -> SettledNetwork:
        """Return what the statistics of the data determine and calibration leaves fixed.

        A variance within its rounding is not determined by the rows. That of a class is then the pooled one,
        that of a value of the parent the class's, that about a line the pooled one about lines; where these
        are not determined either, it is a small share of the column's own.
        """
        frame: Network = S.frame
        mass, first, second = (frame.totals(S[name]) for name in ("mass", "s1", "s2"))
        whole = np.maximum(mass.sum(axis=0), TINY)
        overall, square = first.sum(axis=0) / whole, second.sum(axis=0) / whole
        empty = mass.sum(axis=0) <= 0
        safe = np.where(mass > 0, mass, 1.0)
        within = (second - first**2 / safe).sum(axis=0) / whole
        pooled = np.where(within > noise(square, frame), within, SEPARATING)
        pooled = np.where(empty, 1.0, pooled)
        nothing = np.zeros((1, 1))
        settled = SettledNetwork(overall, pooled, nothing, nothing, nothing, nothing, nothing)
        constant = second / safe - (first / safe) ** 2 <= noise(second / safe, frame)
        classes = np.where(constant, pooled, self._class_moments(S, settled)[1])
        parent = frame.parents[frame.edges]
        own = np.maximum(S["mass"][:, frame.cross_places], TINY)
        at1, at2 = S["parent1"] / own, S["parent2"] / own
        above = at2 - at1**2
        above = np.where(above > noise(at2, frame, parent), above, pooled[parent])
        settled = settled._replace(classes=classes, parents=above)
        raw = self.closed_form(S, settled)[1]
        mass = S["mass"]
        least = noise(S["s2"] / np.where(mass > 0, mass, 1.0), frame, frame.owner)
        low = raw <= least
        low |= frame.over_cells(constant) & (frame.given < 0)[frame.owner]
        instead = frame.over_cells(classes)
        places = frame.cross_places
        if len(places):
            about = np.where(low, 0.0, raw)[:, places]
            shared = (mass[:, places] * about).sum(axis=0) / np.maximum(mass[:, places].sum(axis=0), TINY)
            small = SEPARATING * classes[:, frame.edges]
            instead[:, places] = np.where(shared > small, shared, small)
        added = np.where(low, instead - raw, 0.0)
        floored = np.count_nonzero(low & (mass > 0), axis=1)
        return settled._replace(cells=raw + added, added=added, floored=floored)

    def _class_moments(self, S: Statistics, settled: SettledNetwork) -> tuple[Array, Array]:
        """Return the mean and the variance of each number by class, with `alpha` rows of the pooled one."""
        frame: Network = S.frame
        mass, first, second = (frame.totals(S[name]) for name in ("mass", "s1", "s2"))
        some = mass > 0
        safe = np.where(some, mass, 1.0)
        mean = np.where(some, first / safe, settled.overall)
        squares = np.where(some, second - mass * mean**2, 0.0) + self.alpha * settled.pooled
        weight = np.where(some, mass, 0.0) + self.alpha
        variance = np.where(weight > 0, squares / np.where(weight > 0, weight, 1.0), settled.pooled)
        return mean, variance

    def closed_form(self, S: Statistics, settled: SettledNetwork) -> tuple[Array, Array, Array, Array, Array]:
        """Return means, variances before floors, slopes, and the first two moments of parents."""
        frame: Network = S.frame
        mean, variance = self._class_moments(S, settled)
        means, variances = frame.over_cells(mean), frame.over_cells(variance)
        held = np.maximum(variance, self.floor * settled.classes)
        for j in frame.by_category.tolist():
            at = frame.cells(j)
            centre, spread = mean[:, [j]], held[:, [j]]
            mass = np.maximum(S["mass"][:, at], 0.0)
            away = S["s1"][:, at] - S["mass"][:, at] * centre
            squares = S["s2"][:, at] - 2.0 * centre * S["s1"][:, at] + S["mass"][:, at] * centre**2
            weight = mass + self.backoff
            some, safe = weight > 0, np.where(weight > 0, weight, 1.0)
            shift = np.where(some, away / safe, 0.0)
            means[:, at] = centre + shift
            variances[:, at] = np.where(some, (squares + self.backoff * spread) / safe - shift**2, spread)
        edges, places, above = frame.edges, frame.cross_places, frame.parents[frame.edges]
        mass = S["mass"][:, places]
        some, safe = mass > 0, np.where(mass > 0, mass, 1.0)
        parent1 = np.where(some, S["parent1"] / safe, settled.overall[above])
        spread = np.where(some, S["parent2"] / safe - parent1**2, settled.pooled[above])
        spread = np.maximum(spread, self.floor * settled.parents)
        together = np.where(some, S["cross"] / safe - mean[:, edges] * parent1, 0.0)
        together = together * (mass / np.where(some, mass + self.backoff, 1.0))
        slopes = together / spread
        means[:, places] -= slopes * parent1
        variances[:, places] -= slopes * together
        return means, variances, slopes, parent1, spread + parent1**2

    def moments_of(self, means: Array, variances: Array, slopes: Array, S: Statistics, mass: Array) -> Arrays:
        """Return the moments whose closed form these are, for cells of these masses, by the prior of S.

        `means` are those of a number where its parent is at its mean in S. So are the moments of the parents.
        """
        frame: Network = S.frame
        settled = frame.settled
        assert settled is not None
        raw = variances - settled.added
        s1, s2 = mass * means, (mass + self.alpha) * raw - self.alpha * settled.pooled[frame.owner]
        s2 += mass * means**2
        for j in frame.by_category.tolist():
            at = frame.cells(j)
            own, mean, m = mass[:, at], means[:, at], self.backoff
            weight = np.maximum(own + m, TINY)
            centre = (weight * mean).sum(axis=1, keepdims=True) / weight.sum(axis=1, keepdims=True)
            shift = mean - centre
            squares = weight * (raw[:, at] + shift**2)
            prior = own.sum(axis=1, keepdims=True) + self.alpha + m * own.shape[1]
            total = squares.sum(axis=1, keepdims=True) + self.alpha * settled.pooled[j]
            squares = squares - m * total / np.maximum(prior, TINY)
            s1[:, at] = own * centre + weight * shift
            s2[:, at] = squares + 2.0 * centre * s1[:, at] - own * centre**2
        places = frame.cross_places
        own, counted = mass[:, places], S["mass"][:, places]
        safe = np.where(counted > 0, counted, 1.0)
        parent1, parent2 = S["parent1"] / safe, S["parent2"] / safe
        spread = np.maximum(parent2 - parent1**2, self.floor * settled.parents)
        whole = raw[:, places] + slopes**2 * spread
        pooled = self.alpha * settled.pooled[frame.edges]
        s2[:, places] = (own + self.alpha) * whole - pooled + own * means[:, places] ** 2
        cross = (own + self.backoff) * slopes * spread + s1[:, places] * parent1
        found = {"mass": mass, "s1": s1, "s2": s2, "cross": cross}
        return found | {"parent1": own * parent1, "parent2": own * parent2}


def noise(second: Array, frame: Network, owner: Any = slice(None)) -> Array:
    """Return the rounding error of variances whose second moments about the origin are given."""
    eps = 8.0 * float(frame.eps)
    away = eps * np.abs(frame.origin / frame.unit)[owner]
    return 64.0 * EPS * np.abs(second) + eps**2 * second + away**2


def number_terms(Z: NetworkRows, theta: NetworkParameters) -> Iterator[tuple[int, Array]]:
    """Yield each number and its log p(x | parent, y) in units, zero where it is not counted as it is."""
    frame, D, counted = Z.frame, Z.D, Z.counted
    constants = -0.5 * (np.log(theta.variances) + LOG_2PI)
    halves = -0.5 / theta.variances
    of_category = {int(j): i for i, j in enumerate(frame.by_category)}
    of_edge = {int(j): i for i, j in enumerate(frame.edges)}
    for j in range(D.shape[1]):
        if j in of_category:
            cell: Any = Z.places[:, of_category[j]]
            away = D[:, j, None] - theta.means.T[cell]
            term = away * away * halves.T[cell] + constants.T[cell]
        else:
            first = frame.starts[j]
            away = D[:, j, None] - theta.means[:, first]
            if j in of_edge:
                away -= D[:, frame.parents[j], None] * theta.slopes[:, of_edge[j]]
            term = away * away * halves[:, first] + constants[:, first]
        yield j, term if counted is None else np.where(counted[:, j, None], term, 0.0)


def expected_moments(mass: Array, theta: NetworkParameters) -> Arrays:
    """Return the expected moments of numbers, of these masses by class and cell."""
    at = theta.frame.cross_places
    a, v, b = theta.means[:, at], theta.variances[:, at], theta.slopes
    mean, second = theta.means.copy(), theta.variances + theta.means**2
    mean[:, at] = a + b * theta.parent1
    second[:, at] = v + a * a + 2.0 * a * b * theta.parent1 + b * b * theta.parent2
    own = mass[:, at]
    return {
        "mass": mass,
        "s1": mass * mean,
        "s2": mass * second,
        "cross": own * (a * theta.parent1 + b * theta.parent2),
        "parent1": own * theta.parent1,
        "parent2": own * theta.parent2,
    }


def squares_about(S: Arrays | Statistics, theta: NetworkParameters) -> Array:
    """Return the sums of (x - mean - slope parent)^2 of rows with these moments, by class and cell."""
    a, b, at = theta.means, theta.slopes, theta.frame.cross_places
    found = S["s2"] - 2.0 * a * S["s1"] + a * a * S["mass"]
    found[:, at] += b * (b * S["parent2"] - 2.0 * S["cross"] + 2.0 * a[:, at] * S["parent1"])
    return found


def log_likelihood(S: Statistics, theta: NetworkParameters) -> float:
    """Return the log-likelihood of the numbers of rows with these moments, in their units."""
    logs = np.log(theta.variances) + LOG_2PI + 2.0 * np.log(theta.frame.unit)[theta.frame.owner]
    return -0.5 * float((S["mass"] * logs + squares_about(S, theta) / theta.variances).sum())
