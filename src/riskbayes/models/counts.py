"""Rows of counts, dense or sparse, and the base of the models whose scores are linear in them.

All of them have psi(x) = (1, x): statistics are the mass of each class and the sum of each column by class,
and scores are x @ weights + constant. Sparse rows (CSR) are multiplied as they are, never copied to a dense
table; an empty cell costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, issparse

from riskbayes.arrays import (
    Array,
    astype,
    has_missing,
    known_all_false,
    namespace,
    rows_above,
    sum_of,
    take_rows,
    to_device,
    to_widest,
    widest_float,
)
from riskbayes.frames import Arrays, Frame
from riskbayes.models.base import Described, GenerativeModel, Sample
from riskbayes.models.categorical import count_floor
from riskbayes.models.traits import Traits
from riskbayes.scanners import Scanner
from riskbayes.scanners.kernels import NO_RESIDUAL
from riskbayes.scanners.kernels.sparse import is_worth_it, sums_by_class
from riskbayes.scanners.sparse import SparseScanner
from riskbayes.statistics import Statistics


@dataclass(frozen=True, eq=False)
class Cells(Frame):
    """The cells that sums are over: all of them, or the observed ones, whose weight is then in `mass`."""

    missing: Array
    """True, as an array without axes, if cells are missing."""

    def join(self, other: Frame) -> Frame:
        """Return the frame of the observed cells, if one of the two is."""
        super().join(other)
        return other if other.missing else self  # type: ignore[attr-defined]

    def convert(self, arrays: Arrays, target: Frame) -> Arrays:
        """Add `mass`: where no cell is missing it is that of the class in every column."""
        if self == target:
            return arrays
        if self.missing:
            raise ValueError("Statistics of observed cells cannot be expressed as those of all cells.")
        mass = arrays["s0"][:, None] + 0.0 * arrays["counts"]
        return {**arrays, "mass": mass}


class DenseCounts:
    """Dense rows, with zeros in missing cells and a mask of the observed ones (None if all are)."""

    is_sparse = is_compiled = False

    def __init__(self, X: Array, observed: Array | None, frame: Any):
        self.X, self.observed, self.frame = X, observed, frame
        self.shape, self.cells = X.shape, float(X.shape[1])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | Array) -> DenseCounts:
        observed = None if self.observed is None else take_rows(self.observed, rows)
        return DenseCounts(take_rows(self.X, rows), observed, self.frame)

    def scores(self, theta: CountParameters) -> Array:
        """Return x @ weights + constants; a missing cell adds nothing."""
        found = to_widest(self.X) @ theta.weights.T
        if self.observed is None:
            return found + theta.constants[None, :]
        found = found + theta.class_constants[None, :]
        return found if theta.cell_constants is None else found + self.observed @ theta.cell_constants.T

    def to_dense(self) -> Array:
        """Return the rows as float64, with zeros in missing cells."""
        return to_widest(self.X)

    def sums(self, V: Array) -> Array:
        """Return the sum of each column by class, weighted by V (m, classes)."""
        return V.T @ to_widest(self.X)

    def mass(self, V: Array) -> Array:
        """Return the weight of the observed cells of each column, by class."""
        if self.observed is None:
            return whole_mass(V, self.shape[1])
        return V.T @ self.observed

    def row_sums(self, function: Any) -> Array:
        """Return the sum over the columns of a function whose value at zero is zero."""
        return function(self.X).sum(axis=1)


@dataclass(frozen=True, eq=False)
class SparseCounts:
    """Rows of a CSR table; a slice of them shares its memory."""

    is_sparse: ClassVar[bool] = True
    observed: ClassVar[None] = None
    """No cell is missing."""

    data: Array
    indices: Array
    indptr: Array
    """Bounds of the rows in `data` and `indices`; a slice does not start at 0."""
    shape: tuple[int, int]
    frame: Any
    is_compiled: bool

    @classmethod
    def of(cls, X: Any, frame: Any) -> SparseCounts:
        """Return the rows of a CSR table; whole numbers are cast to float64."""
        data = X.data if X.data.dtype.kind == "f" else X.data.astype(np.float64)
        return cls(data, X.indices, X.indptr, X.shape, frame, is_worth_it(X.nnz))

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def cells(self) -> float:
        """Stored values of a row, on average."""
        return float(self.indptr[-1] - self.indptr[0]) / max(1, self.shape[0])

    def __getitem__(self, rows: slice | Array) -> SparseCounts:
        if not isinstance(rows, slice):
            return SparseCounts.of(self.matrix[rows], self.frame)
        start, stop, _ = rows.indices(self.shape[0])
        return replace(self, indptr=self.indptr[start : stop + 1], shape=(stop - start, self.shape[1]))

    @cached_property
    def matrix(self) -> csr_array:
        """The rows as SciPy's CSR."""
        stored = slice(int(self.indptr[0]), int(self.indptr[-1]))
        parts = self.data[stored], self.indices[stored], self.indptr - self.indptr[0]
        return csr_array(parts, shape=self.shape, copy=False)

    def scores(self, theta: CountParameters) -> Array:
        """Return x @ weights + constants."""
        return self.matrix @ theta.table + theta.constants

    def to_dense(self) -> Array:
        """Return the rows as a dense float64 array."""
        return self.matrix.astype(np.float64).toarray()

    def sums(self, V: Array) -> Array:
        """Return the sum of each column by class, weighted by V; rows without a residual are left out."""
        if self.is_compiled:
            return sums_by_class(self, V)
        rows = rows_above(np.abs(V).max(axis=1, initial=0.0), NO_RESIDUAL)
        X, W = (self.matrix, V) if rows is None else (self.matrix[rows], V[rows])
        return np.ascontiguousarray((X.T @ np.ascontiguousarray(W)).T)

    def mass(self, V: Array) -> Array:
        """Return the weight of the cells of each column, by class: none is missing."""
        return whole_mass(V, self.shape[1])

    def row_sums(self, function: Any) -> Array:
        """Return the sum over the columns of a function whose value at zero is zero."""
        X = self.matrix
        return csr_array((function(X.data), X.indices, X.indptr), shape=X.shape).sum(axis=1)


class CountParameters:
    """What the scores need of the parameters of a model of counts."""

    log_prior: Array

    @property
    def weights(self) -> Array:
        """Weights of the scores, of shape (classes, columns)."""
        raise NotImplementedError

    @property
    def means(self) -> Array:
        """The expected value of each column, by class."""
        raise NotImplementedError

    @property
    def class_constants(self) -> Array:
        """Constant of each class."""
        return self.log_prior

    @property
    def cell_constants(self) -> Array | None:
        """Constant that each observed cell adds, of shape (classes, columns); None for none."""
        return None

    @cached_property
    def constants(self) -> Array:
        """Constant of each class in a row without missing cells."""
        cells = self.cell_constants
        return self.class_constants if cells is None else self.class_constants + sum_of(cells, axis=1)

    @cached_property
    def table(self) -> Array:
        """The weights in the layout of sparse products: (columns, classes)."""
        return np.ascontiguousarray(self.weights.T)


class CountModel(GenerativeModel):
    """Base class of the models of counts: statistics `s0` and `counts`, scores linear in the row.

    With missing cells, `mass` is the weight of the observed cells by class and column.
    """

    traits: ClassVar[Traits] = Traits("counts", array_api=True, encode_copies=False)
    _non_negative: ClassVar[tuple[str, ...]] = ("s0", "counts", "mass")

    def learn(self, sample: Sample) -> Frame:
        """Return whether cells are missing."""
        X = sample.X
        return Cells(np.array(not issparse(X) and has_missing(X)))

    def encode(self, X: Any, frame: Frame) -> DenseCounts | SparseCounts:
        """Return the rows; of a dense table with missing cells, also a mask of the observed ones."""
        if issparse(X):
            return SparseCounts.of(X, frame)
        if not has_missing(X):
            return DenseCounts(X, None, frame)
        xp = namespace(X)
        gaps = xp.isnan(X)
        return DenseCounts(xp.where(gaps, 0.0, X), astype(~gaps, widest_float(X)), frame)

    def scanner(self, Z: DenseCounts | SparseCounts) -> Scanner:
        """Return a scanner that reads the stored values of a row.

        Of sparse rows the sums of a chunk, all columns by class, are larger than the chunk.
        """
        kind = SparseScanner if Z.is_compiled else Scanner  # SciPy's sparse products hold the GIL
        return kind(
            self,
            Z,
            cells=Z.cells,
            score_cells=Z.cells,
            releases_lock=Z.is_compiled,
            sums_residuals=Z.is_sparse,
        )

    def of_sums(self, s0: Array, counts: Array, frame: Frame) -> Statistics:
        """Return the statistics of rows without missing cells, in a frame that may have some."""
        found = {"s0": s0, "counts": counts}
        if frame.missing:  # type: ignore[attr-defined]
            found["mass"] = s0[:, None] + 0.0 * counts
        return Statistics(found, frame)

    def statistics(self, Z: DenseCounts | SparseCounts, W: Array) -> Statistics:
        """Return the masses and the weighted sums of the columns, by class."""
        V = to_widest(W)
        found = {"s0": sum_of(V, axis=0), "counts": Z.sums(V)}
        if Z.frame.missing:
            found["mass"] = Z.mass(V)
        return Statistics(found, Z.frame)

    def log_joint(self, Z: DenseCounts | SparseCounts, theta: Any) -> Array:
        """Return x @ weights + constants."""
        return Z.scores(theta)

    def scores(self, Z: DenseCounts | SparseCounts, theta: Any) -> Array:
        """Return x @ weights + constants."""
        return Z.scores(theta)

    def contributions(self, Z: DenseCounts | SparseCounts, theta: Any) -> Array:
        """Return x_j times the weight of the class, plus the constant that an observed cell adds."""
        found, cells = Z.to_dense()[:, :, None] * theta.weights.T, theta.cell_constants
        if cells is None:
            return found
        return found + (cells.T if Z.observed is None else Z.observed[:, :, None] * cells.T)

    def degrees_of_freedom(self, S: Statistics) -> float:
        """Return the number of classes and of sums by class and column."""
        r, n = S["counts"].shape
        return float(r + r * n)


class CountDensity(CountModel):
    """Base class of the models of counts with a log joint in the exponential family of each column.

    Its natural parameters are the weights of the scores, and its mean parameters `means`.
    """

    class_prior: Array | None

    def expected_statistics(self, theta: Any, total: float) -> Statistics:
        """Return total p(y), and that times the means, of complete rows."""
        s0 = total * namespace(theta.log_prior).exp(theta.log_prior)
        return self.of_sums(s0, s0[:, None] * theta.means, theta.frame)

    def log_likelihood(self, S: Statistics, theta: Any) -> float:
        """sum_y s0 log p(y) + sum_jy s_jy weight_jy + m_jy constant_jy.

        It lacks what is no function of the statistics and does not depend on theta, as log x! of Poisson.
        """
        value, cells = sum_of(S["counts"] * theta.weights), theta.cell_constants
        if cells is not None:
            value = value + sum_of(mass_of(S) * cells)
        return float(sum_of(S["s0"] * theta.log_prior) + value)

    def to_natural(self, theta: Any) -> dict[str, Array]:
        """Return log p(y) and the weights."""
        return {"eta0": theta.log_prior, "eta": theta.weights}

    def natural_gradient(self, dS: Statistics, theta: Any) -> dict[str, Array]:
        """Return the centred statistics; zero for a fixed p(y)."""
        centred = dS["counts"] - theta.means * mass_of(dS)
        return {"eta0": (self.class_prior is None) * dS["s0"], "eta": centred}


def described(name: str, values: Array) -> Iterator[Described]:
    """Yield one parameter of each column by class, whose change is the difference."""
    n = values.shape[1]
    yield Described(np.arange(n), [name] * n, values, np.ones_like(values))


def whole_mass(V: Array, n: int) -> Array:
    """Return the weight of the cells of each of n columns by class, where none is missing."""
    return namespace(V).broadcast_to(sum_of(V, axis=0)[:, None], (V.shape[1], n))


def mass_of(S: Statistics) -> Array:
    """Return the weight of the observed cells, of shape (classes, columns) or (classes, 1)."""
    return S["mass"] if "mass" in S else S["s0"][:, None]


def at_least(values: Array, floor: Any) -> tuple[Array, Array]:
    """Return values raised to a floor, and how many were raised by class."""
    xp = namespace(values)
    below = values < floor
    if known_all_false(below):
        return values, np.zeros(len(values), dtype=np.intp)
    return xp.where(below, floor, values), xp.count_nonzero(below, axis=1)


def pseudo_counts(S: Statistics, alpha: float | Array) -> Any:
    """Return alpha, as a row on the device of the counts if it differs by column."""
    return alpha if isinstance(alpha, float | int) else to_device(alpha, S["s0"])[None, :]


def smoothed_floor(S: Statistics, alpha: float | Array) -> Any:
    """Return the floor of smoothed counts: alpha, so that the counts themselves are never below zero.

    RC subtracts from cells that no row of the class has, and a cell far below alpha would decide rows alone:
    on text this floor has the least held-out error (`benchmarks/docstrings.py`). Without pseudo-counts it is
    a share of the total weight.
    """
    floor = count_floor(S)
    if isinstance(alpha, float | int):
        return alpha if alpha > 0 else floor
    a = np.asarray(alpha)
    return to_device(np.where(a > 0, a, floor), S["s0"])[None, :]
