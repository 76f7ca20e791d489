"""Networks of numbers and categories: the frame that says what their statistics are sums of.

A number has a cell for each combination of the values of the categories that are its parents, one value of
each standing for those that are unseen in training; without such parents it has one cell. In each cell it
has, by class, a Gaussian about a linear function of the numbers that are its parents.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from riskbayes.arrays import Array
from riskbayes.frames import Arrays, Frame, same_values
from riskbayes.loaded import require, require_shape
from riskbayes.models.messages import informed
from riskbayes.models.normal_scores import NormalScores
from riskbayes.models.parent_tables import Tables
from riskbayes.models.structure import Parents, topological_order


class CellPrior(NamedTuple):
    """What `backoff` rows of each cell hold: the parents as in the class, the number by fewer parents."""

    means: Array
    """Intercepts by class and cell."""
    slopes: Array
    """By class and slope."""
    variances: Array
    """By class and cell."""
    parent1: Array
    """The mean of the parents, by class and slope."""
    parent2: Array
    """The mean of their products."""


class SettledNetwork(NamedTuple):
    """What the statistics of the data determine and calibration leaves fixed."""

    overall: Array
    """The mean of each number."""
    pooled: Array
    """The variance of each number within the classes, of all classes together."""
    prior: CellPrior
    """That of the numbers which have parents."""
    spread: Array
    """What is added to the variances of parents, by class and slope, where the rows do not determine them."""
    parents: Array
    """The covariances of parents in the cells and the prior's rows, by class and column of `parent2`."""
    cells: Array
    """The variances of the closed form by class and cell; calibration keeps at least a share of these."""
    added: Array
    """What of that was added where the rows do not determine the variance."""
    floored: Array
    """In how many cells with rows it was, by class."""


class Slots(NamedTuple):
    """The columns of one kind of moments."""

    number: Array
    """The number that each moment of a row belongs to."""
    first: Array
    """Its column in the first cell of that number."""
    step: Array
    """How many columns it moves by a cell."""
    size: int
    """How many columns there are."""


class CellGroup(NamedTuple):
    """The cells of numbers that have equally many numbers as parents."""

    cells: Array
    """Columns of `mass`, `s1` and `s2`."""
    slopes: Array
    """Columns of `cross` and `parent1`, of shape (cells, parents)."""
    squares: Array
    """Columns of `parent2`, of shape (cells, parents, parents)."""

    @property
    def columns(self) -> tuple[Array, ...]:
        """The columns of `mass`, `s1`, `s2`, `cross`, `parent1` and `parent2`."""
        return (*(self.cells,) * 3, *(self.slopes,) * 2, self.squares)


@dataclass(frozen=True, eq=False)
class Network(Frame):
    """The columns of a network, their parents and the units of its numbers.

    Categories are counted as in `tables`. `s1` and `s2` are first and second moments of the numbers, a column
    for each cell, with the mass of the cells as `mass`. Where numbers are parents, `parent1` and `parent2`
    are their first moments and products in each cell, and `cross` are their products with the number below
    them. All are of (x - origin) / unit.
    """

    categories: Array
    """The columns of categories."""
    numbers: Array
    """The columns of numbers."""
    tables: tuple[Tables, ...]
    """Of the categories; none if there are no categories."""
    parents: Array
    """The numbers that are parents of each number, one row per number, padded with -1."""
    given: Array
    """The categories that are, the strongest first."""
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
        for name, most in (("parents", n), ("given", k)):
            above = getattr(self, name)
            require_shape(above, (n, above.shape[-1] if above.ndim else 0), "i", name)
            require(above.min(initial=-1) >= -1 and above.max(initial=-1) < most, "a parent is unknown")
        for name in ("origin", "unit"):
            require_shape(getattr(self, name), (n,), "f", name)
        require(bool((self.unit > 0).all()), "a unit is not positive")
        require(len(self.maps) <= 1 and all(len(maps.n_knots) == n for maps in self.maps), "maps")
        topological_order(self.number_parents)
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
        own, mass, s1 = self.owner, arrays["mass"], arrays["s1"]
        found = {name: np.array(value) for name, value in arrays.items()}
        found["s1"] = a[own] * s1 + b[own] * mass
        found["s2"] = a[own] ** 2 * arrays["s2"] + 2.0 * a[own] * b[own] * s1 + b[own] ** 2 * mass
        for cells, slopes, squares in self.groups:
            if slopes.shape[1]:
                x, z = own[cells][:, None], self.parent_of_slope[slopes]
                n, first = mass[:, cells, None], s1[:, cells, None]
                above, products = arrays["parent1"][:, slopes], arrays["parent2"][:, squares]
                found["parent1"][:, slopes] = moved = a[z] * above + b[z] * n
                found["cross"][:, slopes] = a[x] * (a[z] * arrays["cross"][:, slopes] + b[z] * first)
                found["cross"][:, slopes] += b[x] * moved
                scale = a[z][..., None] * a[z][:, None, :]
                shifts = b[z][..., None] * (a[z] * above)[:, :, None, :]
                found["parent2"][:, squares] = scale * products + shifts + shifts.swapaxes(2, 3)
                found["parent2"][:, squares] += (b[z][..., None] * b[z][:, None, :]) * n[..., None]
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
    def parent_lists(self) -> dict[int, tuple[int, ...]]:
        """The columns that are parents of each column."""
        found: dict[int, tuple[int, ...]] = dict.fromkeys(range(len(self.categories) + len(self.numbers)), ())
        for i, above in enumerate(self.tables[0].parent_lists if self.tables else ()):
            found[int(self.categories[i])] = tuple(self.categories[list(above)].tolist())
        for j, column in enumerate(self.numbers.tolist()):
            given, parents = self.categories[list(self.category_parents[j])], list(self.number_parents[j])
            found[column] = (*given.tolist(), *self.numbers[parents].tolist())
        return found

    @cached_property
    def number_parents(self) -> Parents:
        """The numbers that are parents of each number, as tuples."""
        return tuple(tuple(p for p in above if p >= 0) for above in self.parents.tolist())

    @cached_property
    def category_parents(self) -> Parents:
        """The categories that are, as tuples."""
        return tuple(tuple(c for c in given if c >= 0) for given in self.given.tolist())

    @cached_property
    def parent(self) -> Array:
        """In a tree, the number that is the parent of each number, or -1."""
        return np.array([above[0] if above else -1 for above in self.number_parents], dtype=np.int64)

    @cached_property
    def category(self) -> Array:
        """In a tree, the category that is the parent of each number, or -1."""
        return np.array([given[0] if given else -1 for given in self.category_parents], dtype=np.int64)

    @cached_property
    def is_tree(self) -> bool:
        """True if no column has more than one parent."""
        whole = all(tables.is_tree for tables in self.tables)
        return whole and max((*map(len, self.all_parents),), default=0) <= 1

    @property
    def all_parents(self) -> Parents:
        """The numbers and the categories that are parents of each number."""
        return tuple(map(tuple.__add__, self.number_parents, self.category_parents))

    @cached_property
    def order(self) -> list[int]:
        """The numbers in an order in which each comes after its parents."""
        return topological_order(self.number_parents)

    @cached_property
    def strides(self) -> tuple[tuple[int, ...], ...]:
        """By how many cells of each number the codes of its categories count."""
        sizes = (self.tables[0].sizes + 1).tolist() if self.tables else []
        return tuple(
            tuple(math.prod(sizes[c] for c in given[:place]) for place in range(len(given)))
            for given in self.category_parents
        )

    @cached_property
    def sizes(self) -> Array:
        """The number of cells of each number."""
        sizes = (self.tables[0].sizes + 1).tolist() if self.tables else []
        cells = [math.prod(sizes[c] for c in given) for given in self.category_parents]
        return np.array(cells, dtype=np.int64)

    @cached_property
    def starts(self) -> Array:
        """The first cell of each number."""
        return np.cumsum(self.sizes) - self.sizes

    @cached_property
    def owner(self) -> Array:
        """The number that each cell belongs to."""
        return np.repeat(np.arange(len(self.numbers)), self.sizes)

    @cached_property
    def slots(self) -> dict[str, Slots]:
        """The columns of the moments of each kind."""
        lengths = np.array([len(above) for above in self.number_parents], dtype=np.int64)
        found: dict[str, Slots] = {}
        for names, widths in (
            (("mass", "s1", "s2"), np.ones_like(lengths)),
            (("cross", "parent1"), lengths),
            (("parent2",), lengths**2),
        ):
            number = np.repeat(np.arange(len(lengths)), widths)
            within = np.arange(len(number)) - np.repeat(np.cumsum(widths) - widths, widths)
            columns = self.sizes * widths
            first = (np.cumsum(columns) - columns)[number] + within
            found |= dict.fromkeys(names, Slots(number, first, widths[number], int(columns.sum())))
        return found

    @cached_property
    def slope_pairs(self) -> Array:
        """The number and its parent of each moment of a row in `cross`, of shape (2, moments)."""
        pairs = [(j, p) for j, above in enumerate(self.number_parents) for p in above]
        return np.array(pairs, dtype=np.int64).reshape(-1, 2).T

    @cached_property
    def parent_pairs(self) -> Array:
        """The two parents of each moment of a row in `parent2`, of shape (2, moments)."""
        pairs = [(p, q) for above in self.number_parents for p in above for q in above]
        return np.array(pairs, dtype=np.int64).reshape(-1, 2).T

    @cached_property
    def parent_of_slope(self) -> Array:
        """The parent of each column of `cross`."""
        found = np.empty(self.slots["cross"].size, dtype=np.int64)
        for group, above in zip(self.groups_of, self.number_parents, strict=True):
            found[group.slopes] = above
        return found

    @cached_property
    def groups_of(self) -> tuple[CellGroup, ...]:
        """The cells of each number."""
        found = []
        for j, above in enumerate(self.number_parents):
            K, d = self.sizes[j], len(above)
            slopes, squares = self.slots["cross"], self.slots["parent2"]
            first = slopes.first[np.searchsorted(slopes.number, j) :][:1].sum()
            second = squares.first[np.searchsorted(squares.number, j) :][:1].sum()
            found.append(
                CellGroup(
                    self.starts[j] + np.arange(K),
                    first + np.arange(K * d).reshape(K, d),
                    second + np.arange(K * d * d).reshape(K, d, d),
                )
            )
        return tuple(found)

    @cached_property
    def groups(self) -> tuple[CellGroup, ...]:
        """The cells of all numbers, by how many numbers these have as parents."""
        lengths = [len(above) for above in self.number_parents]
        return tuple(
            CellGroup(*map(np.concatenate, zip(*own, strict=True)))
            for d in sorted(set(lengths))
            if (own := [group for group, length in zip(self.groups_of, lengths, strict=True) if length == d])
        )

    @cached_property
    def roots(self) -> Array:
        """The numbers without parents."""
        return np.array([j for j, above in enumerate(self.all_parents) if not above], dtype=np.int64)

    def cells(self, j: int) -> slice:
        """Return the cells of a number."""
        return slice(self.starts[j], self.starts[j] + self.sizes[j])

    def totals(self, table: Array) -> Array:
        """Return sums over the cells of each number."""
        return np.add.reduceat(table, self.starts, axis=1) if len(self.starts) else table

    def over_cells(self, table: Array) -> Array:
        """Return one number for each number of the network, repeated for each of its cells."""
        return np.repeat(table, self.sizes, axis=-1)

    def family(self, present_categories: Array, seen: Array) -> tuple[Array, Array]:
        """Return masks of the categories and of the numbers of which they or a descendant are present.

        Those of categories do not include descendants among the categories.
        """
        numbers, categories = informed(seen, self.number_parents), present_categories.copy()
        for j, given in enumerate(self.category_parents):
            for c in given:
                categories[:, c] |= numbers[:, j]
        return categories, numbers

    def families(self, present_categories: Array, seen: Array) -> Array:
        """Return a mask of the numbers that are present with all their parents."""
        found = seen.copy()
        for j in range(found.shape[1]):
            found[:, j] &= seen[:, list(self.number_parents[j])].all(axis=1)
            found[:, j] &= present_categories[:, list(self.category_parents[j])].all(axis=1)
        return found
