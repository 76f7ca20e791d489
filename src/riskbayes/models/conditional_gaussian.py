"""Conditional Gaussian networks: categories and numbers, each with at most k parents beside the class.

psi(x) = (1, one-hot of each category together with its parents, and for each number 1, x, z, x^2, x z, z z'
in each cell, where z are the numbers that are its parents and a cell is a combination of the values of the
categories that are). A category has a table given its parents; a number has a Gaussian about a linear
function of z in each cell.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from riskbayes.arrays import Array, eps_of, one_hot
from riskbayes.em import em
from riskbayes.frames import Arrays, Frame
from riskbayes.models.augmented_nb import EM_ITER, EM_TOLERANCE, TreeModel
from riskbayes.models.base import Described, GenerativeModel, Sample, log_class_prior
from riskbayes.models.codes import categories_of, check_codes, check_sizes
from riskbayes.models.coordinates import ClassPrior
from riskbayes.models.messages import informed
from riskbayes.models.mixed_structure import MixedParents, Numbers, mixed_parents
from riskbayes.models.network import Network
from riskbayes.models.network_completions import inferences
from riskbayes.models.network_coordinates import NetworkCoordinates, of_tables
from riskbayes.models.network_gaussians import (
    EPS,
    CellGaussians,
    NetworkParameters,
    expected_moments,
    log_likelihood,
    number_terms,
)
from riskbayes.models.network_lines import scaled_parents
from riskbayes.models.network_rows import NetworkRows, units_of
from riskbayes.models.normal_scores import normal_scores
from riskbayes.models.parent_tables import Tables, TreeCodes, present_families, tables_of
from riskbayes.models.product import in_columns
from riskbayes.models.settled import TINY
from riskbayes.models.structure import Parents, check_table, topological_order
from riskbayes.models.traits import Traits
from riskbayes.scanners import Scanner
from riskbayes.statistics import Statistics


@dataclass(frozen=True)
class ConditionalGaussianModel(GenerativeModel):
    """Categories and numbers in a network: each column has the class and at most k other columns as parents.

    A category has categories as its parents, a number has both. What is missing below a column that is
    present drops out. A row that lacks a column of which a descendant is present has the exact marginal of
    its cells, by messages along the edges of a tree, by sums over the missing categories where k is above 1,
    and statistics that are expected given these: for the rows of the data under the start of the frame, which
    EM finds, for the residual of a scan under its parameters.

    The mass of a cell, of a class and values of its categories, moves with that of the class alone: residual
    statistics are completed to the same share by expected ones, which change no parameter. So no cell can
    lose its mass.

    Parameters
    ----------
    categories : tuple of int
        The columns of categories, as codes from 0; all others are numbers.
    k : int
        The most parents of a column; 0 is naive Bayes, 1 a tree.
    alpha : float
        Pseudo-counts of each cell of a table p(x | y), and the rows that the pooled variance of a number
        counts as in each class.
    backoff : float
        The rows that p(x | y) counts as in p(x | parent, y): in tables, in the Gaussians of cells, and as
        rows in which a number does not depend on its parents. With several categories as parents, the rows
        that p(x | all but the last) counts as, and so on down to p(x | y).
    class_alpha : float
        Pseudo-counts per class for p(y).
    class_prior : array of shape (n_classes,), optional
        A fixed p(y).
    covariance_floor : float
        Least variance of a number given its parent during calibration, as a share of the closed form's.
    smooth : bool
        If True, the Gaussians are those of normal scores of the numbers: by a monotone map of each column
        that is the same for all classes.
    """

    floor_warning: ClassVar[str | None] = (
        "{most} numbers do not vary within class {classes}, or within a value of their parent there: their "
        "variances were taken from all values and classes together. Drop constant columns, and those that "
        "are a function of another."
    )
    _non_negative: ClassVar[tuple[str, ...]] = ("s0", "counts", "mass")

    categories: tuple[int, ...] = ()
    k: int = 1
    alpha: float = 0.0
    backoff: float = 0.0
    class_alpha: float = 0.0
    class_prior: Array | None = None
    covariance_floor: float = 1e-2
    smooth: bool = False

    traits: ClassVar[Traits] = Traits(takes_missing=True, additive=False)  # edges and units are of the rows

    @property
    def _tables(self) -> TreeModel:
        """The model of the categories alone."""
        return TreeModel(None, self.alpha, self.backoff, self.class_alpha, self.class_prior)

    @property
    def _gaussians(self) -> CellGaussians:
        """The closed form of the numbers."""
        return CellGaussians(self.alpha, self.backoff, self.covariance_floor)

    def learn(self, sample: Sample) -> Frame:
        """Return the network of largest worth, and the origin and unit of each number."""
        X, w = sample.X, sample.w
        categories = np.array(self.categories, dtype=np.int64)
        numbers = np.setdiff1d(np.arange(X.shape[1]), categories)
        origin, unit = units_of(X[:, numbers], w, numbers)
        codes, sizes = X[:, categories], np.zeros(0, dtype=np.int64)
        if len(categories):
            check_codes(codes)
            largest = None if sample.largest is None else sample.largest[categories]
            sizes = categories_of(codes, None, largest).n_categories
            check_sizes(sizes)
        found = MixedParents(((),) * len(categories), *(((),) * len(numbers),) * 2)
        none = padded(found.numbers)
        eps = np.array(eps_of(X) if X.dtype.kind == "f" else EPS)
        plain = Network(categories, numbers, (), none, none, origin, unit, (), eps)
        if self.smooth:
            D = (X[:, numbers].astype(np.float64) - origin) / unit
            plain = replace(plain, maps=(normal_scores(D, w),))
        if self.k:
            weights = np.ones(len(X)) if w is None else w
            rows = slice(None) if w is None else w > 0
            D, seen, _ = plain.in_units(X[rows])
            seen = np.ones(D.shape, dtype=bool) if seen is None else seen
            weights, y = weights[rows], sample.y[rows]
            own = replace(sample, X=codes[rows], y=y, w=weights, largest=None)
            found = mixed_parents(own, Numbers(D, seen, y, weights, sample.n_classes), sizes, self.k)
        tables = (tables_of(sizes, found.categories),) if len(categories) else ()
        for column, given in zip(numbers.tolist(), found.given, strict=True):
            check_table(sample.n_classes * math.prod(int(sizes[c]) + 1 for c in given), column, given)
        edges = {"parents": padded(found.numbers), "given": padded(found.given)}
        return self._with_start(replace(plain, tables=tables, **edges), sample)

    def _with_start(self, frame: Network, sample: Sample) -> Network:
        """Return the frame with the start that EM finds, if parents are missing in rows."""
        Z = self.encode(sample.X, frame)
        if Z.hard is None:
            return frame
        W = one_hot(sample.y, sample.n_classes, sample.w, np.dtype(np.float64))
        total = W.sum()

        def expect(theta: NetworkParameters) -> tuple[Statistics, float]:
            value = float((W * self.log_joint(Z, theta)).sum() / total)
            return self._counted(Z, W, theta), value

        best, path = em(self._counted(Z, W, None), self.parameters, expect, EM_ITER, EM_TOLERANCE)
        return replace(frame, start=best, em_log_likelihood=tuple(path))

    def encode(self, X: Array, frame: Network) -> NetworkRows:  # type: ignore[override]
        """Return the numbers in their units, and joint codes of the categories and their parents."""
        D, seen, units = frame.in_units(X)
        values, codes = np.zeros((len(X), 0), dtype=np.int64), None
        if frame.tables:
            codes = self._tables.encode(X[:, frame.categories], frame.tables[0])
            sizes = codes.frame.sizes + 1
            values = codes.codes % sizes if codes.values is None else codes.values
        if seen is None and (codes is None or codes.values is None):
            return NetworkRows(frame, D, codes, values, None, None, units)
        present, here = values >= 0, np.ones(D.shape, dtype=bool) if seen is None else seen
        told, below = frame.family(present, here)
        hard = (below & ~here).any(axis=1)
        if codes is not None:
            told = informed(told, codes.frame.parent_lists)
            hard |= (told & ~present).any(axis=1)
            if hard.any():
                gone = np.where(hard[:, None], codes.frame.n_categories, codes.codes)
                codes = TreeCodes(gone, codes.frame, values, hard)
        return NetworkRows(frame, D, codes, values, seen, hard, units)

    def scanner(self, Z: NetworkRows) -> Scanner:
        """Return a scanner in threads: NumPy releases the GIL in most of what a chunk takes."""
        return Scanner(self, Z, cells=3 * Z.shape[1], releases_lock=True)

    def statistics(self, Z: NetworkRows, W: Array) -> Statistics:
        """Return the counts of the categories and the moments of the numbers.

        In rows that lack a parent they are expected ones by the start of the frame; without a start, those of
        the columns whose parent is present.
        """
        return self._counted(Z, W, Z.frame.start)

    def posterior_statistics(self, Z: NetworkRows, P: Array, theta: NetworkParameters) -> Statistics:
        """Return the same by the current parameters."""
        return self._counted(Z, P, theta)

    def residual_statistics(self, Z: NetworkRows, E: Array, theta: NetworkParameters) -> Statistics:
        """Return the same, completed by expected ones: each cell keeps its share of the mass of the class."""
        S = self._counted(Z, E, theta)
        lacking, arrays = theta.shares * S["s0"][:, None] - S["mass"], dict(S)
        for name, value in expected_moments(theta.parents_in(lacking), theta).items():
            arrays[name] = arrays[name] + value
        return Statistics(arrays, S.frame)

    def _counted(self, Z: NetworkRows, W: Array, theta: NetworkParameters | None) -> Statistics:
        """Return statistics, expected under theta in the rows that need inference."""
        W = np.asarray(W, dtype=np.float64)
        found = Z.moments(W)
        if Z.codes is not None:
            found["counts"] = np.ascontiguousarray(Z.codes.counts(W))
        if Z.hard is not None:
            rows, weights = Z[Z.hard], W[Z.hard]
            for part in self._of_hard_rows(rows, weights, theta):
                found = {name: value + part.get(name, 0.0) for name, value in found.items()}
        return Statistics({"s0": W.sum(axis=0), **found}, Z.frame)

    def _of_hard_rows(self, rows: NetworkRows, W: Array, theta: NetworkParameters | None) -> Iterator[Arrays]:
        """Yield the statistics of rows that lack a parent, block by block."""
        if theta is not None:
            for part, inference in inferences(rows, theta):
                yield inference.statistics(W[part])
            return
        frame, seen = rows.frame, np.ones(rows.D.shape, dtype=bool) if rows.seen is None else rows.seen
        whole = frame.families(rows.values >= 0, seen)
        yield NetworkRows(frame, rows.D, None, rows.values, whole, None).moments(W)
        if frame.tables:
            yield {"counts": present_families(rows.values, frame.tables[0]).counts(W)}

    def fix_prior(self, S: Statistics) -> Statistics:
        """Return S with a frame that holds the prior and the variances of the closed form."""
        tables: tuple[Tables, ...] = S.frame.tables
        if tables and not tables[0].is_tree:
            tables = (replace(tables[0], prior=self._tables.recursive_prior(of_tables(S))),)
        return S.with_frame(replace(S.frame, tables=tables, settled=self._gaussians.settled_by(S)))

    def parameters(self, S: Statistics) -> NetworkParameters:
        """Return the tables of the categories, and the Gaussians of the numbers with floored variances."""
        if S.frame.settled is None:
            S = self.fix_prior(S)
        frame: Network = S.frame
        settled = frame.settled
        assert settled is not None
        means, slopes, variances = self._gaussians.closed_form(S, settled)
        variances = variances + settled.added
        least = self.covariance_floor * settled.cells
        low = variances < least
        floored = settled.floored + np.count_nonzero(low, axis=1)
        tables = None
        if frame.tables:
            tables = self._tables.parameters(of_tables(S))
        s0, of_parents = S["s0"][:, None], scaled_parents(S, np.ones_like(S["mass"]))
        return NetworkParameters(
            log_class_prior(S["s0"], self.class_alpha, self.class_prior),
            tables,
            means,
            np.where(low, least, variances),
            slopes,
            of_parents["parent1"],
            of_parents["parent2"],
            S["mass"] / np.where(s0 > 0, s0, 1.0),
            frame,
            floored,
        )

    def is_legal(self, S: Statistics) -> bool:
        """True if every class has a mass. Cells need no check: variances and counts are floored."""
        return S.least_mass() + self.class_alpha > 0

    def log_joint(self, Z: NetworkRows, theta: NetworkParameters) -> Array:
        """Return log p(y) + sum_i log p(x_i | parents, y) over the columns that are present."""
        units = Z.log_units
        return self._joint(Z, theta) - (units if isinstance(units, float) else units[:, None])

    def scores(self, Z: NetworkRows, theta: NetworkParameters) -> Array:
        """Return the same without the units of the numbers, which are those of all classes."""
        return self._joint(Z, theta)

    def _joint(self, Z: NetworkRows, theta: NetworkParameters) -> Array:
        """Return the log joint of numbers in their units."""
        joint = np.zeros((len(Z), len(theta.log_prior)))
        if Z.codes is not None:
            assert theta.tables is not None
            joint += Z.codes.times(theta.tables.log_prob)[0]
        for _, term in number_terms(Z, theta):
            joint += term
        if Z.hard is not None:
            rows = Z[Z.hard]
            joint[Z.hard] = np.concatenate(
                [inference.log_joint.T for _, inference in inferences(rows, theta)]
            )
        return joint + theta.log_prior

    def contributions(self, Z: NetworkRows, theta: NetworkParameters) -> Array:
        """Return log p(x_i | parents, y) of each column: a column is given its own factor.

        In rows that lack a parent of what is present, it is given log p(x_i | present columns before it, y),
        categories first, in an order in which each comes after its parents.
        """
        frame, found = Z.frame, np.zeros((*Z.shape, len(theta.log_prior)))
        if Z.codes is not None:
            assert theta.tables is not None
            gone = Z.codes.is_missing
            codes = np.where(gone, 0, Z.codes.codes).astype(np.int64)
            logs = theta.tables.log_prob.T[codes + Z.codes.frame.offsets]
            found[:, frame.categories] = np.where(gone[:, :, None], 0.0, logs)
        for j, term in number_terms(Z, theta):
            found[:, frame.numbers[j]] = term
        if Z.hard is None:
            return found
        rows = Z[Z.hard]
        values, seen = np.full_like(rows.values, -1), np.zeros(rows.D.shape, dtype=bool)
        before: Any = 0.0
        steps = [(True, i) for i in topological_order(frame.tables[0].parent_lists)] if frame.tables else []
        for is_category, i in [*steps, *((False, j) for j in frame.order)]:
            if is_category:
                values[:, i] = rows.values[:, i]
            else:
                seen[:, i] = True if rows.seen is None else rows.seen[:, i]
            known = NetworkRows(frame, np.where(seen, rows.D, 0.0), None, values.copy(), seen.copy(), None)
            joint = np.concatenate([inference.log_joint.T for _, inference in inferences(known, theta)])
            column = (frame.categories if is_category else frame.numbers)[i]
            found[Z.hard, column] = joint - before
            before = joint
        return found

    def describe(self, theta: NetworkParameters) -> Iterator[Described]:
        """Yield the tables of the categories; means, slopes and standard deviations of the numbers."""
        frame: Network = theta.frame
        if theta.tables is not None:
            for block in self._tables.describe(theta.tables):
                yield in_columns(block, frame.categories.tolist())
        unit, origin, of = frame.unit, frame.origin, ""
        if frame.maps:
            unit, origin, of = np.ones_like(unit), np.zeros_like(origin), "normal score's "
        for j, column in enumerate(frame.numbers.tolist()):
            known, cells = self._known_cells(frame, j)
            at, slopes = frame.starts[j] + known, frame.groups_of[j].slopes[known]
            deviations, means = unit[j] * np.sqrt(theta.variances[:, at]), theta.means[:, at]
            parents = list(frame.number_parents[j])
            given = " and ".join(["{} = {}"] * len(frame.category_parents[j]))
            means = means + (theta.slopes[:, slopes] * theta.parent1[:, slopes]).sum(axis=2)
            columns, shares = np.full(len(known), column), theta.shares[:, at] if given else None
            above = tuple((int(frame.numbers[p]), None) for p in parents)
            for i, p in enumerate(parents):
                slope = theta.slopes[:, slopes[:, i]] * unit[j] / unit[p]
                square = np.diagonal(theta.parent2[:, frame.groups_of[j].squares[known]], axis1=2, axis2=3)
                spread = np.maximum(square[:, :, i] - theta.parent1[:, slopes[:, i]] ** 2, TINY) ** 0.5
                name = f"{of}slope on {{}}" + (f" given {given}" if given else "")
                named = [((int(frame.numbers[p]), None), *cell) for cell in cells]
                yield Described(
                    columns, [name] * len(known), slope, deviations / (unit[p] * spread), named, shares
                )
            told, others = [(*cell, *above) for cell in cells], " and ".join(["{}"] * len(above))
            verb = "is at its mean" if len(above) == 1 else "are at their means"
            for what, value, end in (
                ("mean", origin[j] + unit[j] * means, f" where {others} {verb}"),
                ("standard deviation", deviations, f" about the line in {others}"),
            ):
                name = f"{of}{what}" + (f" given {given}" if given else "") + (end if above else "")
                yield Described(columns, [name] * len(known), value, deviations, told, shares)

    def _known_cells(self, frame: Network, j: int) -> tuple[Array, list[tuple[Any, ...]]]:
        """Return the cells of a number without those of unseen values, and what its categories are there."""
        cells = np.arange(frame.sizes[j])
        named: list[tuple[Any, ...]] = [()] * len(cells)
        known = np.ones(len(cells), dtype=bool)
        for c, step in zip(frame.category_parents[j], frame.strides[j], strict=True):
            size, column = int(frame.tables[0].sizes[c]), int(frame.categories[c])
            values = cells // step % (size + 1)
            known &= values < size
            pairs = [((column, None), (column, value)) for value in values.tolist()]
            named = [(*before, *pair) for before, pair in zip(named, pairs, strict=True)]
        kept = np.flatnonzero(known)
        return kept, [named[i] for i in kept]

    def sample_rows(self, theta: NetworkParameters, y: Array, rng: np.random.Generator) -> Array:
        """Draw each column after its parents."""
        frame: Network = theta.frame
        X = np.empty((len(y), len(frame.categories) + len(frame.numbers)))
        if theta.tables is not None:
            X[:, frame.categories] = self._tables.sample_rows(theta.tables, y, rng)
        D, values = np.zeros((len(y), len(frame.numbers))), X[:, frame.categories].astype(np.int64)
        cells = NetworkRows(frame, D, None, values, None, None).cells
        for j in frame.order:
            D[:, j] = theta.line(y, j, cells[:, j], D, rng)
        X[:, frame.numbers] = frame.from_units(D)
        return X

    def fill(
        self,
        Z: NetworkRows,
        theta: NetworkParameters,
        y: Array,
        rng: np.random.Generator | None = None,
    ) -> Array:
        """Return the rows with their missing cells filled given the cells that are present and the class.

        Categories have the most probable values together, numbers their means; with `rng` all are a draw.
        """
        frame = Z.frame
        found = np.empty(Z.shape)
        for part, inference in inferences(Z, theta):
            values, D = inference.fill(y[part], rng)
            found[part, frame.categories] = values
            found[part, frame.numbers] = frame.from_units(D)
        return found

    def expected_statistics(self, theta: NetworkParameters, total: float) -> Statistics:
        """Return the expected statistics of `total` rows without missing cells.

        Under ML `parameters` of these is theta.
        """
        frame: Network = theta.frame
        s0, n = total * np.exp(theta.log_prior), len(frame.numbers)
        values, D = np.full((1, len(frame.categories)), -1), np.zeros((1, n))
        nothing = NetworkRows(frame, D, None, values, np.zeros((1, n), dtype=bool), None)
        ((_, inference),) = inferences(nothing, theta, every=True)
        return Statistics({"s0": s0, **inference.statistics(s0[None])}, frame)

    def anchor_statistics(self, S: Statistics) -> Statistics:
        """Return the closed form's expected statistics, of the data's masses of cells and of parents.

        To these belong the rows of the prior: nothing else holds the Gaussian of a cell that a class has no
        rows of, which other classes' rows push without end.
        """
        if S.frame.settled is None:
            S = self.fix_prior(S)
        theta, frame = self.parameters(S), S.frame
        s0 = np.exp(theta.log_prior)
        counted = self._gaussians.with_prior(S, s0 / np.maximum(S["s0"], TINY))
        found = expected_moments(counted, theta)
        if frame.tables:
            found["counts"] = self._tables.anchor_statistics(of_tables(S))["counts"]
        return Statistics({"s0": s0, **found}, frame)

    def log_likelihood(self, S: Statistics, theta: NetworkParameters) -> float:
        """Return sum_y s0 log p(y), plus the log-likelihoods of the tables and of the Gaussians."""
        S = S.to_frame(theta.frame)
        value = float(S["s0"] @ theta.log_prior)
        if theta.tables is not None:
            value += float((S["counts"] * theta.tables.log_prob).sum())
        return value + log_likelihood(S, theta)

    def degrees_of_freedom(self, S: Statistics) -> float:
        """Return those of the classes and tables, and of numbers two per cell and one per slope.

        Each counts by the data's share in its estimate.
        """
        frame: Network = S.frame
        found = float(len(S["s0"]))
        if frame.tables:
            found = self._tables.degrees_of_freedom(of_tables(S))
        mass = np.maximum(S["mass"], 0.0)
        several = np.array([bool(given) for given in frame.category_parents], dtype=bool)
        prior = np.where(frame.over_cells(several), self.backoff, 0.0)
        found += float(2.0 * (mass / np.maximum(mass + prior, TINY)).sum())
        for cells, slopes, _ in frame.groups:
            own = mass[:, cells]
            found += slopes.shape[1] * float((own / np.maximum(own + self.backoff, TINY)).sum())
        return found

    def coordinates(self, S: Statistics) -> NetworkCoordinates:
        """Return log p(y), the logarithms of tables, and means, log variances and slopes of numbers."""
        prior = ClassPrior(self.class_alpha, self.class_prior)
        return NetworkCoordinates(S, self.anchor_statistics(S), self._gaussians, self._tables, prior)


def padded(parents: Parents) -> Array:
    """Return lists of parents as rows of an array, padded with -1."""
    most = max(map(len, parents), default=0)
    rows = [[*above, *[-1] * (most - len(above))] for above in parents]
    return np.array(rows, dtype=np.int64).reshape(len(parents), most)
