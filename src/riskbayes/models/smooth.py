"""Smooth naive Bayes: psi(x) = (1, two hat weights for each feature, between quantile knots)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from riskbayes.arrays import Array
from riskbayes.frames import Frame
from riskbayes.models.base import Described, Sample
from riskbayes.models.categorical import CellModel, shares_present
from riskbayes.models.coordinates import TableCoordinates
from riskbayes.models.hats import Hats, Knots, Places, hats_of, knots_of
from riskbayes.models.quadrature import legendre
from riskbayes.models.traits import Traits
from riskbayes.scanners import Scanner
from riskbayes.scanners.compiled import CompiledScanner, LookUpPart
from riskbayes.statistics import Statistics

PARTS_OF_PIECE = 4
"""Parts of a piece between knots that a quadrature takes one by one: a density may fall by 20 nats there."""


@dataclass(frozen=True)
class SmoothParameters:
    """log p(y), and the log density of each class at the knots of `frame`."""

    log_prior: Array
    log_density: Array
    frame: Knots
    floored: Array

    @cached_property
    def table(self) -> Array:
        """Log densities in the layout of look-ups: (knots + 2, classes); the last two rows are zero."""
        return np.ascontiguousarray(np.pad(self.log_density, ((0, 0), (0, 2))).T)

    @cached_property
    def masses(self) -> Array:
        """Probabilities given y of the lower tail, the piece after, and the upper tail of each knot."""
        return np.stack(part_masses(self.log_density, self.frame))

    @cached_property
    def hats(self) -> Array:
        """Expected weight of the hat of each knot given y: they sum to one over a feature."""
        low, piece, high = self.masses
        rise = np.diff(self.log_density, axis=1, append=0.0)
        right = np.where(self.frame.pieces > 0, piece * right_share(rise), 0.0)
        found = low + high + piece - right
        found[:, 1:] += right[:, :-1]
        return found


class HatCoordinates(TableCoordinates):
    """log p(y) and the log densities at the knots."""

    def logs(self, theta: SmoothParameters) -> Array:
        """Return the log densities."""
        return theta.log_density

    def shares(self, theta: SmoothParameters) -> Array:
        """Return the expected weights of the hats."""
        return theta.hats

    def pooled_logs(self) -> Array:
        """Return the log density of all classes together, up to a constant of each feature."""
        return super().pooled_logs() - np.log(self.S.frame.widths)

    def distribution(self, logs: Array) -> Array:
        """Return the ratios of the counts of the hats: heights times widths."""
        return super().distribution(logs + np.log(self.S.frame.widths))


class LookUpScanner(CompiledScanner):
    """Compiled look-ups between knots."""

    kind = LookUpPart

    def part(self, theta: SmoothParameters) -> LookUpPart:
        """Return the look-ups of a compiled scan."""
        return LookUpPart(self.Z.frame, self.Z.frame.offsets, theta.table, theta.log_prior)


@dataclass(frozen=True)
class SmoothModel(CellModel):
    """Features independent given the class, each with a density that is log-linear between knots.

    The heights at the knots are the frequencies of the hats divided by their widths, normalised so that the
    density integrates to one. This closed form is a plug-in estimate, not the maximum of the likelihood,
    which has no closed form. Knots are quantiles of the values that are present, with `alpha`
    pseudo-counts each.

    Parameters
    ----------
    n_knots : int
        Knots per feature.
    max_categories : int
        A feature of at most this many values has a probability for each of them in place of a density.
    outer : float
        Share of the rows in each tail, beyond the outer knots.
    """

    traits: ClassVar[Traits] = Traits(takes_missing=True, additive=False)  # knots are quantiles of the rows
    _non_negative: ClassVar[tuple[str, ...]] = ("s0", "counts", "beyond")

    n_knots: int = 6
    max_categories: int = 20
    alpha: float = 0.0
    class_alpha: float = 0.0
    class_prior: Array | None = None
    outer: float = 0.01

    def learn(self, sample: Sample) -> Frame:
        """Return knots at quantiles of the rows."""
        return knots_of(sample.X, sample.w, self.n_knots, self.max_categories, self.outer)

    def encode(self, X: Array, frame: Knots) -> Hats | Places:  # type: ignore[override]
        """Return the place of every value between the knots."""
        return hats_of(X, frame)

    def scanner(self, Z: Hats | Places) -> Scanner:
        """Return a compiled scanner of `Places`; sparse products with `Hats` hold the GIL."""
        if isinstance(Z, Places):
            return LookUpScanner(self, Z, releases_lock=True)
        return Scanner(self, Z)

    def statistics(self, Z: Hats | Places, W: Array) -> Statistics:
        """Return masses, weighted counts of the hats, and the sums of the distances into the tails."""
        V = np.asarray(W, dtype=np.float64)
        return Statistics({"s0": V.sum(axis=0), "counts": Z.counts(V), "beyond": Z.beyond @ V}, Z.frame)

    def parameters(self, S: Statistics) -> SmoothParameters:
        """Return log p(knot | y) - log width - log of the integral, and log p(y)."""
        frame: Knots = S.frame
        counts = S["counts"] + self.alpha
        floor = self.floor(S)
        floored = counts < floor
        counts = np.where(floored, floor, counts)
        height = np.log(counts) - frame.spread(np.log(frame.sums(counts))) - np.log(frame.widths)
        integral = frame.sums(sum(part_masses(height, frame)))
        log_density = height - frame.spread(np.log(integral))
        return SmoothParameters(self.log_prior(S), log_density, frame, np.count_nonzero(floored, axis=1))

    def log_joint(self, Z: Hats | Places, theta: SmoothParameters) -> Array:
        """Return log p(y) + sum_i log p(x_i | y)."""
        return Z.look_up(theta.table) + theta.log_prior - Z.beyond[:, None]

    def scores(self, Z: Hats | Places, theta: SmoothParameters) -> Array:
        """Return the log joint without the decay in the tails, which is the same for all classes."""
        return Z.look_up(theta.table) + theta.log_prior

    def contributions(self, Z: Hats | Places, theta: SmoothParameters) -> Array:
        """Return log p(x_i | y) of each column, without the decay in the tails, as in `scores`."""
        left, low, high = Z.left_and_weights()
        return low[:, :, None] * theta.table[left] + high[:, :, None] * theta.table[left + 1]

    def cell_densities(self, Z: Hats | Places, theta: SmoothParameters, j: int) -> tuple[Array, Array]:
        """Return the densities at nodes between the knots, and one for each tail: the classes decay alike."""
        frame = theta.frame
        own = slice(frame.offsets[j], frame.offsets[j] + frame.n_categories[j])
        height = theta.log_density[:, own].T
        if frame.few_values[j]:
            return height[None], np.ones((1, len(height)))
        pieces, (low, high) = frame.pieces[own][:-1], frame.tails[j]
        place, share = legendre(PARTS_OF_PIECE)
        inside = height[:-1, None] + place[:, None] * np.diff(height, axis=0)[:, None]
        weights = np.concatenate([[low], np.outer(pieces, share).ravel(), [high]])
        return np.concatenate([height[:1], inside.reshape(-1, height.shape[1]), height[-1:]])[None], weights[
            None
        ]

    def describe(self, theta: SmoothParameters) -> Iterator[Described]:
        """Yield the log densities at the knots, or the log probabilities of few values."""
        frame = theta.frame
        feature = np.repeat(np.arange(len(frame.n_categories)), frame.n_categories)
        kinds = np.where(frame.few_values, "log probability of", "log density at")[feature].tolist()
        named = [((j, x),) for j, x in zip(feature.tolist(), frame.positions.tolist(), strict=True)]
        names = [f"{kind} {{}}" for kind in kinds]
        hats = np.exp(theta.log_density) * frame.widths  # in the ratios of their counts
        shares = hats / frame.spread(frame.sums(hats))
        yield Described(feature, names, theta.log_density, np.ones_like(hats), named, shares)

    def sample_rows(self, theta: SmoothParameters, y: Array, rng: np.random.Generator) -> Array:
        """Draw each feature by `draw_values`."""
        X = np.empty((len(y), len(theta.frame.n_categories)))
        for j in range(X.shape[1]):
            X[:, j] = draw_values(theta, j, y, rng)
        return X

    def fill(
        self, Z: Hats | Places, theta: SmoothParameters, y: Array, rng: np.random.Generator | None = None
    ) -> Array:
        """Fill with the mean of the density of the class, or draw from it.

        Values in a tail come back as the outer knot.
        """
        X, frame = Z.values(), theta.frame
        for j in range(X.shape[1]):
            rows = np.flatnonzero(np.isnan(X[:, j]))
            if rng is not None:
                X[rows, j] = draw_values(theta, j, y[rows], rng)
                continue
            own = slice(frame.offsets[j], frame.offsets[j] + frame.n_categories[j])
            X[rows, j] = means(theta, own)[y[rows]]
        return X

    def anchor_statistics(self, S: Statistics) -> Statistics:
        """Return the expected statistics of the closed form, times the share of cells that are present."""
        return self._expected(self.parameters(S), 1.0, shares_present(S))

    def expected_statistics(self, theta: SmoothParameters, total: float) -> Statistics:
        """Return the expected statistics of `total` rows of the densities, without missing cells."""
        return self._expected(theta, total, np.ones((1, 1)))

    def _expected(self, theta: SmoothParameters, total: float, shares: Array) -> Statistics:
        """Return the expected statistics of rows of which these shares, by class and feature, are present."""
        frame, s0 = theta.frame, total * np.exp(theta.log_prior)
        shares = frame.spread(np.broadcast_to(shares, (len(s0), len(frame.n_categories))))
        low, _, high = theta.masses
        hats = theta.hats
        beyond = (shares * (low + high)).sum(axis=1)  # the mean length of a tail, in its own unit, is one
        counts = s0[:, None] * (shares * hats)
        return Statistics({"s0": s0, "counts": counts, "beyond": s0 * beyond}, frame)

    def coordinates(self, S: Statistics) -> TableCoordinates:
        """Return log p(y) and the log densities at the knots."""
        return self.tables(S, HatCoordinates)

    def log_likelihood(self, S: Statistics, theta: SmoothParameters) -> float:
        """Return sum_y s0 log p(y) + sum_iy s_iy log p(knot_i | y) - the decay in the tails."""
        S = S.to_frame(theta.frame)
        return float(S["s0"] @ theta.log_prior + (S["counts"] * theta.log_density).sum() - S["beyond"].sum())

    def degrees_of_freedom(self, S: Statistics) -> float:
        """Return the sum over classes of one mass and, for each feature, all heights but one."""
        knots = S.frame.n_categories
        return float(len(S["s0"]) * (1 + (knots - 1).sum()))


def part_masses(height: Array, frame: Knots) -> tuple[Array, Array, Array]:
    """Return the integrals of exp(height) over the lower tail, the piece after, and the upper tail of knots.

    A piece of length h from a to b has h (e^b - e^a) / (b - a). A feature of few values has e^height.
    """
    e = np.exp(height)
    after = np.roll(e, -1, axis=1)
    rise = np.roll(height, -1, axis=1) - height
    near = np.abs(rise) < 1e-3  # where a series is more precise
    middle = np.exp(height + rise / 2)
    mean = np.where(near, middle * (1 + rise**2 / 24), (after - e) / np.where(near, 1.0, rise))
    few = np.repeat(frame.few_values, frame.n_categories)
    return e * frame.lower, np.where(few, e, frame.pieces * mean), e * frame.upper


def draw_values(theta: SmoothParameters, j: int, y: Array, rng: np.random.Generator) -> Array:
    """Draw a value of feature j for each class code: a tail or piece, then by the inverse distribution."""
    frame, n = theta.frame, len(y)
    first, k = frame.offsets[j], frame.n_categories[j]
    rise = np.diff(theta.log_density, axis=1, append=0.0)
    masses = theta.masses[:, :, first : first + k].transpose(1, 0, 2).reshape(len(theta.log_prior), 3 * k)
    below = np.cumsum(masses, axis=1)
    part = (rng.random(n)[:, None] * below[y, -1:] > below[y]).sum(axis=1)
    kind, knot = np.divmod(np.minimum(part, 3 * k - 1), k)
    knot, u = knot + first, rng.random(n)
    d = rise[y, knot]
    flat = np.abs(d) < 1e-9
    fall = np.where(flat, -1.0, -np.abs(d))  # from the higher end: e^d may overflow
    away = np.where(flat, u, np.log1p(u * np.expm1(fall)) / fall)
    along = np.where(d > 0, 1.0 - away, away)
    tail = -np.log1p(-u)
    steps = np.stack([-frame.lower[knot] * tail, frame.pieces[knot] * along, frame.upper[knot] * tail])
    return frame.positions[knot] + steps[kind, np.arange(n)]


def means(theta: SmoothParameters, own: slice) -> Array:
    """Return the mean of a density in each class, given the columns of its knots."""
    frame, rise = theta.frame, np.diff(theta.log_density, axis=1, append=0.0)[:, own]
    low, piece, high = theta.masses[:, :, own]
    position, pieces = frame.positions[own], frame.pieces[own]
    away = high * frame.upper[own] - low * frame.lower[own]
    away += piece * np.where(pieces > 0, pieces * right_share(rise), 0.0)
    mass = low + piece + high
    return (mass * position + away).sum(axis=1) / mass.sum(axis=1)


def right_share(d: Array) -> Array:
    """Return the mean place, 0 to 1, along a piece whose log density rises by d: 1 / (1 - e^-d) - 1 / d."""
    near = np.abs(d) < 1e-3
    safe = np.where(near, 1.0, d)
    with np.errstate(over="ignore"):
        return np.where(near, 0.5 + d / 12, -1.0 / np.expm1(-safe) - 1.0 / safe)
