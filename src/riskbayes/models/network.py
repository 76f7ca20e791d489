"""Trees of numbers and categories: the frame that says what their statistics are sums of, and encoded rows.

Each number has a Gaussian by class in each of its cells. A number whose parent is a category has a cell for
each value of that, and one for values that are unseen in training; any other number has one cell.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from riskbayes.arrays import Array
from riskbayes.exceptions import ColumnError
from riskbayes.frames import Arrays, Frame, same_values
from riskbayes.loaded import require, require_shape
from riskbayes.models.normal_scores import NormalScores
from riskbayes.models.parent_tables import Tables, TreeCodes

LEAST_UNIT = 1e-290
"""Least standard deviation of a column: what is much smaller has lost digits."""


class SettledNetwork(NamedTuple):
    """What the statistics of the data determine and calibration leaves fixed."""

    overall: Array
    """The mean of each number."""
    pooled: Array
    """The variance of each number within the classes, of all classes together."""
    classes: Array
    """The variances of the closed form by class and number."""
    cells: Array
    """The same by class and cell, given the parent: those of calibration are at least a share of these."""
    added: Array
    """What of that was added where the rows do not determine the variance."""
    floored: Array
    """In how many cells with rows it was, by class."""
    parents: Array
    """The variances of the parents of the edges, by class and edge."""


@dataclass(frozen=True, eq=False)
class Network(Frame):
    """The columns of a tree, their parents and the units of its numbers.

    Categories are counted as in `tables`. `s1` and `s2` are first and second moments of the numbers, a column
    for each cell, with the mass of the cells as `mass`. A number that has a number as its parent is an edge:
    `parent1` and `parent2` are the moments of the parent, and `cross` are the products of both. All are of
    (x - origin) / unit.
    """

    categories: Array
    """The columns of categories."""
    numbers: Array
    """The columns of numbers."""
    tables: tuple[Tables, ...]
    """Of the categories; none if there are no categories."""
    parents: Array
    """For each number the number that is its parent, or -1."""
    given: Array
    """For each number the category that is its parent, or -1."""
    origin: Array
    """A point in the middle of the rows."""
    unit: Array
    """A power of two near the standard deviation of each number."""
    maps: tuple[NormalScores, ...]
    """Of the numbers in these units to normal scores, which the moments are then of; none without."""
    eps: Array
    """Machine epsilon of the rows: a column that varies by less than its rounding is constant."""
    settled: SettledNetwork | None = field(default=None, compare=False)
    """None before the statistics of the data are known."""
    start: Any = field(default=None, compare=False)
    """Parameters by which missing parents in the rows of the data are counted; None if none is missing."""
    em_log_likelihood: tuple[float, ...] = field(default=(), compare=False)
    """Mean log-likelihood of the training rows' present cells, by iteration of EM."""

    def check_loaded(self, size: int) -> None:
        """Require each column once, parents without cycles, and units that are positive."""
        n, k = len(self.numbers), len(self.categories)
        columns = np.concatenate([self.categories, self.numbers])
        require(columns.dtype.kind == "i" and len(columns), "columns are not whole numbers")
        require(np.array_equal(np.sort(columns), np.arange(n + k)), "a column is there twice, or not at all")
        require(len(self.tables) == (k > 0), "there are no tables of the categories, or several")
        require(not k or len(self.tables[0].sizes) == k, "tables are of other categories")
        require(not k or self.tables[0].is_tree, "a category has several parents")
        for name in ("parents", "given"):
            require_shape(getattr(self, name), (n,), "i", name)
        for name in ("origin", "unit"):
            require_shape(getattr(self, name), (n,), "f", name)
        require(bool((self.unit > 0).all()), "a unit is not positive")
        require(len(self.maps) <= 1 and all(len(maps.n_knots) == n for maps in self.maps), "maps")
        for above, most in ((self.parents, n), (self.given, k)):
            require(above.min(initial=-1) >= -1 and above.max(initial=-1) < most, "a parent is unknown")
        require(not ((self.parents >= 0) & (self.given >= 0)).any(), "a number has two parents")
        require(len(self.order) == n, "the parents of the numbers go round in a circle")
        super().check_loaded(size)

    def join(self, other: Frame) -> Frame:
        """Return this frame; raise an error if the other one is another tree."""
        names = ("categories", "numbers", "tables", "maps", "parents", "given")
        if type(self) is not type(other) or not all(
            same_values(getattr(self, name), getattr(other, name)) for name in names
        ):
            raise ValueError(
                "These statistics are of another tree. Its edges come from the rows of one fit: fit all rows "
                "together."
            )
        return other if self.settled is None and self == other else self

    def convert(self, arrays: Arrays, target: Frame) -> Arrays:
        """Return the moments about another origin and in other units: z becomes a z + b."""
        self.join(target)
        assert isinstance(target, Network)
        if self.maps:
            if not (same_values(self.unit, target.unit) and same_values(self.origin, target.origin)):
                raise ValueError("These statistics are of other normal scores: fit all rows together.")
            return arrays
        a, b = self.unit / target.unit, (self.origin - target.origin) / target.unit
        own, child, parent = self.owner, self.edges, self.parents[self.edges]
        mass, s1, above = arrays["mass"], arrays["s1"], arrays["parent1"]
        found = {**arrays, "s1": a[own] * s1 + b[own] * mass}
        found["s2"] = a[own] ** 2 * arrays["s2"] + 2.0 * a[own] * b[own] * s1 + b[own] ** 2 * mass
        s1, mass = s1[:, self.cross_places], mass[:, self.cross_places]
        found["parent1"] = a[parent] * above + b[parent] * mass
        found["parent2"] = (
            a[parent] ** 2 * arrays["parent2"] + 2.0 * a[parent] * b[parent] * above + b[parent] ** 2 * mass
        )
        found["cross"] = a[child] * (a[parent] * arrays["cross"] + b[parent] * s1) + b[child] * (
            a[parent] * above + b[parent] * mass
        )
        return found

    def centre(self) -> Array:
        """Return a point in the middle of the training rows."""
        found = np.zeros(len(self.categories) + len(self.numbers))
        found[self.numbers] = self.from_units(np.zeros((1, len(self.numbers))))[0]
        return found

    def in_units(self, X: Array) -> tuple[Array, Array | None, Array | float]:
        """Return the numbers of rows as moments are taken of them, zero where they are missing.

        Also returned are a mask of those present, or None, and the logarithms of the units, summed over the
        numbers that a row has: a density of X is that of the former divided by the units.
        """
        D = (X[:, self.numbers].astype(np.float64) - self.origin) / self.unit
        gone = np.isnan(D)
        seen = ~gone if gone.any() else None
        logs = np.log(self.unit)
        units: Array | float = float(logs.sum()) if seen is None else seen @ logs
        for maps in self.maps:
            D, slopes = maps.forwards(D)
            units = units - (slopes if seen is None else np.where(seen, slopes, 0.0)).sum(axis=1)
        return (D if seen is None else np.where(seen, D, 0.0)), seen, units

    def from_units(self, D: Array) -> Array:
        """Return the numbers that have these values."""
        for maps in self.maps:
            D = maps.backwards(D)
        return self.origin + self.unit * D

    @property
    def parent_of(self) -> dict[int, int | None]:
        """The parent of each column; None for those without one."""
        found: dict[int, int | None] = dict.fromkeys(range(len(self.categories) + len(self.numbers)))
        for i, above in enumerate(self.tables[0].parent_lists if self.tables else ()):
            found |= {int(self.categories[i]): int(self.categories[p]) for p in above}
        for j in self.edges:
            found[int(self.numbers[j])] = int(self.numbers[self.parents[j]])
        for j in self.by_category:
            found[int(self.numbers[j])] = int(self.categories[self.given[j]])
        return found

    @cached_property
    def sizes(self) -> Array:
        """The number of cells of each number."""
        if not self.tables:
            return np.ones(len(self.numbers), dtype=np.int64)
        return np.where(self.given >= 0, self.tables[0].sizes[self.given] + 1, 1)

    @cached_property
    def starts(self) -> Array:
        """The first cell of each number."""
        return np.cumsum(self.sizes) - self.sizes

    @cached_property
    def owner(self) -> Array:
        """The number that each cell belongs to."""
        return np.repeat(np.arange(len(self.numbers)), self.sizes)

    @cached_property
    def by_category(self) -> Array:
        """The numbers whose parent is a category."""
        return np.flatnonzero(self.given >= 0)

    @cached_property
    def edges(self) -> Array:
        """The numbers whose parent is a number."""
        return np.flatnonzero(self.parents >= 0)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The numbers in an order in which each comes after its parent; those on a circle are left out."""
        found: list[int] = []
        ready = np.flatnonzero(self.parents < 0).tolist()
        while ready:
            found += ready
            ready = [i for i in self.edges.tolist() if self.parents[i] in ready]
        return tuple(found)

    @cached_property
    def cross_places(self) -> Array:
        """The cell of each edge's number."""
        return self.starts[self.edges]

    def cells(self, j: int) -> slice:
        """Return the cells of a number."""
        return slice(self.starts[j], self.starts[j] + self.sizes[j])

    def totals(self, table: Array) -> Array:
        """Return sums over the cells of each number."""
        return np.add.reduceat(table, self.starts, axis=1) if len(self.starts) else table

    def over_cells(self, table: Array) -> Array:
        """Return one number for each number of the tree, repeated for each of its cells."""
        return np.repeat(table, self.sizes, axis=-1)

    def family(self, present_categories: Array, seen: Array) -> tuple[Array, Array]:
        """Return masks of the categories and of the numbers of which they or a descendant are present.

        Those of categories do not include descendants among the categories.
        """
        numbers, categories = seen.copy(), present_categories.copy()
        for j in self.order[::-1]:
            if self.parents[j] >= 0:
                numbers[:, self.parents[j]] |= numbers[:, j]
        for j in self.by_category:
            categories[:, self.given[j]] |= numbers[:, j]
        return categories, numbers


class NetworkRows:
    """Rows encoded for a tree.

    Parameters
    ----------
    frame : Network
        The tree.
    D : array of shape (m, numbers)
        Numbers in their units, zero where they are missing.
    codes : TreeCodes or None
        The categories; None if there are none.
    values : array of int, shape (m, categories)
        Own codes of the categories, -1 where they are missing; the number of categories where unseen.
    seen : array of bool, shape (m, numbers), or None
        Numbers that are present; None if all are.
    hard : array of bool, shape (m,), or None
        Rows in which a column is missing and a descendant of it present: these need inference.
    log_units : array of shape (m,), or float
        The logarithms of the units of the numbers that are present, summed.
    """

    def __init__(
        self,
        frame: Network,
        D: Array,
        codes: TreeCodes | None,
        values: Array,
        seen: Array | None,
        hard: Array | None,
        log_units: Array | float = 0.0,
    ):
        self.frame, self.D, self.codes, self.values, self.seen = frame, D, codes, values, seen
        self.hard = hard if hard is not None and hard.any() else None
        self.log_units = log_units
        self.shape = len(D), D.shape[1] + values.shape[1]

    def __len__(self) -> int:
        return len(self.D)

    def __getitem__(self, rows: slice | Array) -> NetworkRows:
        if isinstance(rows, slice) and rows == slice(0, len(self)):
            return self  # a table of one chunk keeps its cached properties
        codes, seen, hard = (
            None if part is None else part[rows] for part in (self.codes, self.seen, self.hard)
        )
        units = self.log_units if isinstance(self.log_units, float) else self.log_units[rows]
        return NetworkRows(self.frame, self.D[rows], codes, self.values[rows], seen, hard, units)

    @cached_property
    def counted(self) -> Array | None:
        """True for the numbers that are counted as they are; None if all are."""
        if self.hard is None:
            return self.seen
        seen = np.ones(self.D.shape, dtype=bool) if self.seen is None else self.seen
        return seen & ~self.hard[:, None]

    @cached_property
    def places(self) -> Array:
        """The cell of each number whose parent is a category, of shape (m, such numbers).

        Where the category is missing the row needs inference, or the number is missing too.
        """
        frame, own = self.frame, self.frame.by_category
        return np.maximum(self.values[:, frame.given[own]], 0) + frame.starts[own]

    @cached_property
    def moments(self) -> list[csr_array]:
        """The one-hot cells of numbers whose parent is a category, times 1, x and x^2; transposed."""
        own = self.frame.by_category
        (m, n), x = self.places.shape, self.D[:, own]
        here = np.ones(x.shape) if self.counted is None else self.counted[:, own].astype(np.float64)
        pointers, shape = np.arange(0, m * n + 1, n), (m, len(self.frame.owner))
        return [
            csr_array(((here * power).ravel(), self.places.ravel(), pointers), shape=shape).T
            for power in (np.ones_like(x), x, x * x)
        ]


def units_of(X: Array, w: Array | None, columns: Array) -> tuple[Array, Array]:
    """Return the origin and the unit of columns of numbers; refuse those that leave the range of floats."""
    weights = np.ones(len(X)) if w is None else w / w.max()
    origin, unit = np.zeros(X.shape[1]), np.ones(X.shape[1])
    for j, x in enumerate(X.T):
        here = (weights > 0) & ~np.isnan(x)
        if not here.any():
            continue
        x, v = x[here].astype(np.float64), weights[here] / weights[here].sum()
        size = np.abs(x).max()
        with np.errstate(over="ignore"):
            if not np.isfinite(4.0 * size):
                raise ColumnError(
                    int(columns[j]),
                    "has a range that overflows. Scale it, or treat such values as missing.",
                )
        low, high = x.min(), x.max()
        if low == high:
            origin[j], unit[j] = low, power_of_two(size) if size > 0 else 1.0
            continue
        reach = high - low
        origin[j] = min(max(low + reach * float(v @ ((x - low) / reach)), low), high)
        deviation = reach * float(np.sqrt(v @ ((x - origin[j]) / reach) ** 2))
        if deviation < LEAST_UNIT:
            raise ColumnError(
                int(columns[j]),
                "has values whose squares underflow: they differ by too little. Multiply it by a power of "
                "ten.",
            )
        unit[j] = power_of_two(deviation)
    return origin, unit


def power_of_two(size: float) -> float:
    """Return the largest power of two that is not above a positive number, within the range of floats."""
    return float(np.ldexp(1.0, max(int(np.frexp(size)[1]) - 1, -1020)))


def counted_moments(rows: NetworkRows, W: Array) -> Arrays:
    """Return mass, s1, s2, cross, parent1 and parent2 of the numbers that are counted as they are."""
    frame, D = rows.frame, rows.D
    r, seen = W.shape[1], rows.counted
    own = np.flatnonzero(frame.given < 0)
    found = {name: np.zeros((r, len(frame.owner))) for name in ("mass", "s1", "s2")}
    here = D if seen is None else np.where(seen, D, 0.0)
    x, at = here[:, own], frame.starts[own]
    found["mass"][:, at] = W.sum(axis=0)[:, None] if seen is None else W.T @ seen[:, own]
    found["s1"][:, at], found["s2"][:, at] = W.T @ x, W.T @ (x * x)
    if len(frame.by_category):
        for name, hot in zip(("mass", "s1", "s2"), rows.moments, strict=True):
            found[name] += (hot @ W).T
    child, parent = here[:, frame.edges], D[:, frame.parents[frame.edges]]
    if seen is not None:
        parent = np.where(seen[:, frame.edges], parent, 0.0)
    found["cross"] = W.T @ (child * parent)
    found["parent1"], found["parent2"] = W.T @ parent, W.T @ (parent * parent)
    return found
