"""Rows encoded for a network of numbers and categories, and the moments that they add up to."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from riskbayes.arrays import Array
from riskbayes.exceptions import ColumnError
from riskbayes.frames import Arrays
from riskbayes.models.network import Network
from riskbayes.models.parent_tables import TreeCodes

LEAST_UNIT = 1e-290
"""Least standard deviation of a column: what is much smaller has lost digits."""


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
    covariance : array of shape (m, numbers, numbers), optional
        Of numbers that are expected, given what is present; zero by default.
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
        covariance: Array | None = None,
    ):
        self.frame, self.D, self.codes, self.values, self.seen = frame, D, codes, values, seen
        self.hard = hard if hard is not None and hard.any() else None
        self.log_units, self.covariance = log_units, covariance
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
    def cells(self) -> Array:
        """The cell of each number, counted from its first one, of shape (m, numbers).

        Where a category is missing the row needs inference, or the number is missing too.
        """
        found = np.zeros(self.D.shape, dtype=np.int64)
        for j, (given, steps) in enumerate(zip(self.frame.category_parents, self.frame.strides, strict=True)):
            for c, step in zip(given, steps, strict=True):
                found[:, j] += step * np.maximum(self.values[:, c], 0)
        return found

    @cached_property
    def hot(self) -> dict[str, csr_array]:
        """The moments of the rows in the cells of numbers that have several; transposed."""
        found, m = {}, len(self)
        for name, values in self._moments().items():
            slots = self.frame.slots[name]
            several = np.flatnonzero(self.frame.sizes[slots.number] > 1)
            if len(several):
                own = slots.number[several]
                places = slots.first[several] + slots.step[several] * self.cells[:, own]
                pointers = np.arange(0, m * len(several) + 1, len(several))
                entries = values[:, several].ravel(), places.ravel(), pointers
                found[name] = csr_array(entries, shape=(m, slots.size)).T
        return found

    def _moments(self) -> Arrays:
        """Return the moments of each row, zero where a number is not counted as it is."""
        frame, D, seen = self.frame, self.D, self.counted
        x = D if seen is None else np.where(seen, D, 0.0)
        found = {"mass": np.ones_like(D) if seen is None else seen.astype(np.float64), "s1": x, "s2": x * x}
        if frame.slope_pairs.size:
            (child, parent), (p, q) = frame.slope_pairs, frame.parent_pairs
            here = found["mass"]
            found["cross"], found["parent1"] = x[:, child] * D[:, parent], here[:, child] * D[:, parent]
            products = frame.slots["parent2"].number
            found["parent2"] = here[:, products] * D[:, p] * D[:, q]
        if (C := self.covariance) is not None:
            here, own = found["mass"], np.arange(D.shape[1])
            found["s2"] = found["s2"] + here * C[:, own, own]
            if "cross" in found:
                found["cross"] += here[:, child] * C[:, child, parent]
                found["parent2"] += here[:, products] * C[:, p, q]
        return found

    def moments(self, W: Array) -> Arrays:
        """Return mass, s1, s2, cross, parent1 and parent2 of the numbers that are counted as they are."""
        frame = self.frame
        found = {name: np.zeros((W.shape[1], slots.size)) for name, slots in frame.slots.items()}
        for name, values in self._moments().items():
            slots = frame.slots[name]
            single = frame.sizes[slots.number] == 1
            found[name][:, slots.first[single]] = W.T @ values[:, single]
            if name in self.hot:
                found[name] += (self.hot[name] @ W).T
        return found


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
