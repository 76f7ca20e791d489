"""The Gaussians of the numbers of a network: their closed form with its prior, its inverse, and densities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from riskbayes.arrays import Array
from riskbayes.frames import Arrays
from riskbayes.models.augmented_nb import TreeParameters
from riskbayes.models.network import CellPrior, Network, SettledNetwork
from riskbayes.models.network_lines import CellMoments, Lines, PriorRow, scaled_parents, store
from riskbayes.models.network_messages import LOG_2PI
from riskbayes.models.network_rows import NetworkRows
from riskbayes.models.settled import SEPARATING, TINY
from riskbayes.statistics import Statistics

EPS = float(np.finfo(float).eps)

COLLINEAR = 1e-9
"""Share of its variance about a line in others below which a number is a function of these."""


@dataclass(frozen=True)
class NetworkParameters:
    """log p(y), the tables of the categories, and the Gaussians of the numbers in the cells of `frame`.

    A number is normal with the mean of its cell, plus its slopes there times its parents among the numbers.
    """

    log_prior: Array
    tables: TreeParameters | None
    """None if there are no categories."""
    means: Array
    variances: Array
    slopes: Array
    """By class and column of `cross`."""
    parent1: Array
    """The means of the parents in the rows of each cell, by class."""
    parent2: Array
    """The means of their products."""
    shares: Array
    """The mass of each cell, as a share of that of the class: calibration does not change it."""
    frame: Any
    floored: Array

    def parents_in(self, mass: Array) -> Arrays:
        """Return the expected moments of the parents in cells of these masses."""
        found = {"mass": mass, "parent1": self.parent1.copy(), "parent2": self.parent2.copy()}
        for cells, slopes, squares in self.frame.groups:
            found["parent1"][:, slopes] *= mass[:, cells, None]
            found["parent2"][:, squares] *= mass[:, cells, None, None]
        return found

    def line(self, y: Array, j: int, cell: Array, D: Array, rng: np.random.Generator | None = None) -> Array:
        """Return the means of a number in rows of classes y, given its cell and its parents, or a draw."""
        at, group = self.frame.starts[j] + cell, self.frame.groups_of[j]
        found = self.means[y, at]
        for place, p in enumerate(self.frame.number_parents[j]):
            found = found + self.slopes[y, group.slopes[cell, place]] * D[:, p]
        if rng is None:
            return found
        return found + np.sqrt(self.variances[y, at]) * rng.standard_normal(len(y))


@dataclass(frozen=True)
class CellGaussians:
    """The closed form of the Gaussians, with its prior.

    A number with parents has `backoff` more rows in each cell than the data: there it is about the line that
    it has with fewer parents, first without its last category, then without the one before it, and so on,
    without any parents in the end, and its parents are as in all rows of the class. These rows are those of
    the data's closed form: calibration does not move them.

    Parameters
    ----------
    alpha : float
        The rows that the pooled variance of a number counts as in each class.
    backoff : float
        The rows that p(x | fewer parents, y) counts as in p(x | parents, y).
    floor : float
        Least variance of a number given its parents, as a share of the closed form's.
    """

    alpha: float
    backoff: float
    floor: float

    def settled_by(self, S: Statistics) -> SettledNetwork:
        """Return what the statistics of the data determine and calibration leaves fixed.

        A variance within its rounding is not determined by the rows. That of a class is then the pooled one,
        that of a cell the class's, that about a line the pooled one about lines; where these are not
        determined either, it is a small share of the column's own.
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
        mean, variance = self._class_moments(S, overall, pooled)
        constant = second / safe - (first / safe) ** 2 <= noise(second / safe, frame)
        classes = np.where(constant, pooled, variance)
        prior, spread = self._prior(S, mean, classes, overall, pooled)
        nothing = np.zeros((1, 1))
        settled = SettledNetwork(overall, pooled, prior, spread, nothing, nothing, nothing, nothing)
        parents = np.zeros_like(S["parent2"])
        for group in frame.groups:
            row, own = PriorRow.of(prior, group), spread[:, group.slopes]
            parents[:, group.squares] = self._of_parents(CellMoments.of(S, group), row, own)[2]
        settled = settled._replace(parents=parents)
        raw, mass = self.closed_form(S, settled).variances, S["mass"]
        low = raw <= noise(S["s2"] / np.where(mass > 0, mass, 1.0), frame, frame.owner)
        one_cell = np.array([not given for given in frame.category_parents], dtype=bool)
        low |= frame.over_cells(constant & one_cell)
        instead = frame.over_cells(classes)
        for j in (j for j, above in enumerate(frame.number_parents) if above):
            at = frame.cells(j)
            about = (mass[:, at] * np.where(low[:, at], 0.0, raw[:, at])).sum()
            shared = about / max(float(mass[:, at].sum()), TINY)
            small = SEPARATING * classes[:, [j]]
            instead[:, at] = np.where(shared > small, shared, small)
        added = np.where(low, instead - raw, 0.0)
        floored = np.count_nonzero(low & (mass > 0), axis=1)
        return settled._replace(cells=raw + added, added=added, floored=floored)

    def _class_moments(self, S: Statistics, overall: Array, pooled: Array) -> tuple[Array, Array]:
        """Return the mean and the variance of each number by class, with `alpha` rows of the pooled one."""
        frame: Network = S.frame
        mass, first, second = (frame.totals(S[name]) for name in ("mass", "s1", "s2"))
        some = mass > 0
        safe = np.where(some, mass, 1.0)
        mean = np.where(some, first / safe, overall)
        squares = np.where(some, second - mass * mean**2, 0.0) + self.alpha * pooled
        weight = np.where(some, mass, 0.0) + self.alpha
        return mean, np.where(weight > 0, squares / np.where(weight > 0, weight, 1.0), pooled)

    def _prior(
        self, S: Statistics, mean: Array, variance: Array, overall: Array, pooled: Array
    ) -> tuple[CellPrior, Array]:
        """Return the rows of the prior, and what is added to the variances of parents, by class and slope.

        `mean` and `variance` are those of each number by class.
        """
        frame: Network = S.frame
        prior = CellPrior(*(np.zeros_like(S[name]) for name in ("s1", "cross", "s2", "parent1", "parent2")))
        spread, r = np.zeros_like(S["cross"]), len(mean)
        for j, parents in enumerate(map(list, frame.number_parents)):
            # First the numbers, in one cell; then one category after another.
            steps = [*([1] if parents else []), *[*frame.strides[j], frame.sizes[j]][1:]]
            group = frame.groups_of[j]
            M = CellMoments.of(S, group)
            whole = M.summed_to(1)
            known, middle = whole.mass[:, :, None] > 0, overall[parents]
            mass = np.where(known, whole.mass[:, :, None], 1.0)
            parent1 = np.where(known, whole.parent1 / mass, middle)
            parent2 = np.where(known[..., None], whole.parent2 / mass[..., None], middle[:, None] * middle)
            line = Lines(mean[:, [j]], np.zeros((r, 1, len(parents))), variance[:, [j]])
            row, own = PriorRow(line, parent1, parent2), np.zeros((r, 1, len(parents)))
            for cells in steps:
                part = M.summed_to(cells)
                times = cells // line.means.shape[1]
                row = row._replace(line=Lines(*(np.tile(v, (1, times, 1)[: v.ndim]) for v in line)))
                own = self._added_spread(part, row, frame, parents, pooled)
                line = self._line(part, row, own)
            for name, value in zip(Lines._fields, row.line, strict=True):
                getattr(prior, name)[:, group.slopes if name == "slopes" else group.cells] = value
            prior.parent1[:, group.slopes], prior.parent2[:, group.squares] = parent1, parent2
            spread[:, group.slopes] = own
        return prior, spread

    def _added_spread(
        self, M: CellMoments, row: PriorRow, frame: Network, parents: list[int], pooled: Array
    ) -> Array:
        """Return what to add to the variances of parents that the rows do not determine.

        These are parents that hardly vary beyond what the parents before them say. They then vary by as much
        as in all classes.
        """
        _, middle, C = self._of_parents(M, row, 0.0)
        found = np.zeros_like(middle)
        second = np.diagonal(C, axis1=2, axis2=3) + middle**2
        least = noise(second, frame, parents) + COLLINEAR * np.diagonal(C, axis1=2, axis2=3)
        for i, p in enumerate(parents):
            low = C[:, :, i, i] <= least[:, :, i]
            found[:, :, i] = np.where(low, pooled[p], 0.0)
            pivot = C[:, :, i, i] + found[:, :, i]
            C = C - C[:, :, :, [i]] * (C[:, :, [i], :] / pivot[:, :, None, None])
        return found

    def _of_parents(self, M: CellMoments, row: PriorRow, spread: Array | float) -> tuple[Array, Array, Array]:
        """Return the rows of each cell with those of the prior, and their parents' mean and covariance."""
        n = np.maximum(M.mass, 0.0) + self.backoff
        safe = np.where(n > 0, n, 1.0)[..., None]
        middle = (M.parent1 + self.backoff * row.parent1) / safe
        second = (M.parent2 + self.backoff * row.parent2) / safe[..., None]
        C = second - middle[..., None] * middle[:, :, None, :]
        places = np.arange(C.shape[2])
        rounding = EPS * np.diagonal(second, axis1=2, axis2=3) + (n <= 0)[..., None]
        C[:, :, places, places] += spread + rounding  # a batch may lack what the data have
        return n, middle, C

    def _line(self, M: CellMoments, row: PriorRow, spread: Array, reference: Array | None = None) -> Lines:
        """Return the regression of these rows and those of the prior.

        The covariance of the parents is at least `floor` times the reference, in its metric.
        """
        n, middle, C = self._of_parents(M, row, spread)
        if reference is not None and C.size:
            C = at_least(C, reference, self.floor)
        rest, some, safe = M.about(row.line), n > 0, np.where(n > 0, n, 1.0)
        shift = rest.s1 / safe
        along = rest.cross / safe[..., None] - middle * shift[..., None]
        turn = np.linalg.solve(C, along[..., None])[..., 0]
        variance = (rest.s2 + self.backoff * row.line.variances) / safe - shift**2
        variance -= (turn * along).sum(axis=2)
        return Lines(
            row.line.means + shift - (turn * middle).sum(axis=2),
            row.line.slopes + turn,
            np.where(some, variance, row.line.variances),
        )

    def with_prior(self, S: Statistics, scale: Array) -> Arrays:
        """Return masses of cells and moments of parents of the data and the prior, times a number a class."""
        frame: Network = S.frame
        assert frame.settled is not None
        found = {name: S[name].copy() for name in ("mass", "parent1", "parent2")}
        for group in frame.groups:
            row = PriorRow.of(frame.settled.prior, group)
            found["mass"][:, group.cells] += self.backoff
            found["parent1"][:, group.slopes] += self.backoff * row.parent1
            found["parent2"][:, group.squares] += self.backoff * row.parent2
        at = frame.starts[frame.roots]
        found["mass"][:, at] = S["mass"][:, at]
        return {name: scale[:, None] * value for name, value in found.items()}

    def closed_form(self, S: Statistics, settled: SettledNetwork) -> Lines:
        """Return means, slopes, and variances before floors, in the columns of the frame."""
        frame: Network = S.frame
        found = Lines(*(np.zeros_like(S[name]) for name in ("s1", "cross", "s2")))
        for group in frame.groups:
            line = self._line(
                CellMoments.of(S, group),
                PriorRow.of(settled.prior, group),
                settled.spread[:, group.slopes],
                settled.parents[:, group.squares],
            )
            for value, own, columns in zip(
                found, line, (group.cells, group.slopes, group.cells), strict=True
            ):
                value[:, columns] = own
        mean, variance = self._class_moments(S, settled.overall, settled.pooled)
        at = frame.starts[frame.roots]
        found.means[:, at], found.variances[:, at] = mean[:, frame.roots], variance[:, frame.roots]
        return found

    def moments_of(self, lines: Lines, S: Statistics, mass: Array) -> Arrays:
        """Return the moments whose closed form these are, for cells of these masses, by the prior of S.

        Parents have the moments of S.
        """
        frame: Network = S.frame
        settled = frame.settled
        assert settled is not None
        found = scaled_parents(S, mass)
        raw = lines.variances - settled.added
        for group in frame.groups:
            row, wanted = PriorRow.of(settled.prior, group), Lines.of(lines, group)
            M = CellMoments.of(found, group)
            n, middle, C = self._of_parents(M, row, settled.spread[:, group.slopes])
            turn = wanted.slopes - row.line.slopes
            along = (C @ turn[..., None])[..., 0]
            shift = wanted.means - row.line.means + (turn * middle).sum(axis=2)
            s2 = n * (raw[:, group.cells] + shift**2 + (turn * along).sum(axis=2))
            rest = M._replace(
                s1=n * shift,
                cross=n[..., None] * (along + middle * shift[..., None]),
                s2=s2 - self.backoff * row.line.variances,
            )
            store(found, rest.plus(row.line), group)
        at = frame.starts[frame.roots]
        own, mean = mass[:, at], lines.means[:, at]
        found["s1"][:, at] = own * mean
        squares = (own + self.alpha) * raw[:, at] - self.alpha * settled.pooled[frame.roots]
        found["s2"][:, at] = squares + own * mean**2
        return found


def noise(second: Array, frame: Network, owner: Any = slice(None)) -> Array:
    """Return the rounding error of variances whose second moments about the origin are given."""
    eps = 8.0 * float(frame.eps)
    away = eps * np.abs(frame.origin / frame.unit)[owner]
    return 64.0 * EPS * np.abs(second) + eps**2 * second + away**2


def at_least(C: Array, reference: Array, floor: float) -> Array:
    """Return symmetric matrices with eigenvalues of at least `floor` in the metric of the reference."""
    L = np.linalg.cholesky(reference)
    half = np.linalg.solve(L, C)
    values, vectors = np.linalg.eigh(np.linalg.solve(L, half.swapaxes(-1, -2)))
    if (values >= floor).all():
        return C
    root = L @ vectors
    return (root * np.maximum(values, floor)[..., None, :]) @ root.swapaxes(-1, -2)


def number_terms(Z: NetworkRows, theta: NetworkParameters) -> Iterator[tuple[int, Array]]:
    """Yield each number and its log p(x | parents, y) in units, zero where it is not counted as it is."""
    frame, D, counted = Z.frame, Z.D, Z.counted
    constants = -0.5 * (np.log(theta.variances) + LOG_2PI)
    halves = -0.5 / theta.variances
    for j, parents in enumerate(frame.number_parents):
        cell: Any = Z.cells[:, j] if frame.sizes[j] > 1 else 0
        at, slopes = frame.starts[j] + cell, frame.groups_of[j].slopes
        away = D[:, j, None] - theta.means.T[at]
        for place, p in enumerate(parents):
            away -= D[:, p, None] * theta.slopes.T[slopes[cell, place]]
        term = away * away * halves.T[at] + constants.T[at]
        yield j, term if counted is None else np.where(counted[:, j, None], term, 0.0)


def expected_moments(parents: Arrays, theta: NetworkParameters) -> Arrays:
    """Return the moments that are expected of cells of these masses and moments of parents."""
    found = {name: np.array(value) for name, value in parents.items()}
    for name in ("s1", "s2", "cross"):
        found[name] = np.zeros_like(theta.slopes if name == "cross" else theta.means)
    for group in theta.frame.groups:
        line, M = Lines.of(theta, group), CellMoments.of(found, group)
        store(found, M._replace(s2=line.variances * M.mass).plus(line), group)
    return found


def rests(S: Arrays | Statistics, theta: NetworkParameters) -> Arrays:
    """Return the moments of x - mean - slopes parents of rows with moments S."""
    found = {name: np.array(S[name]) for name in CellMoments._fields}
    for group in theta.frame.groups:
        store(found, CellMoments.of(S, group).about(Lines.of(theta, group)), group)
    return found


def log_likelihood(S: Statistics, theta: NetworkParameters) -> float:
    """Return the log-likelihood of the numbers of rows with these moments, in their units."""
    logs = np.log(theta.variances) + LOG_2PI + 2.0 * np.log(theta.frame.unit)[theta.frame.owner]
    return -0.5 * float((S["mass"] * logs + rests(S, theta)["s2"] / theta.variances).sum())
