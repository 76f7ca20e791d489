"""A product of experts: a weighted sum of log joints, one class prior, statistics side by side.

Experts read all columns, or columns of their own. If no column has two experts and all weights are one, the
product is naive Bayes over blocks of columns: normalised, with samples and densities.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from riskbayes.arrays import Array, namespace, sum_of, to_numpy
from riskbayes.exceptions import ColumnError
from riskbayes.frames import Frame, SideBySide
from riskbayes.models.base import Described, GenerativeModel, Sample
from riskbayes.models.composite_coordinates import SideBySideCoordinates
from riskbayes.models.gaussian_nb import GaussianNBModel
from riskbayes.models.qda import QDAModel
from riskbayes.models.traits import Traits
from riskbayes.scanners import Scanner
from riskbayes.scanners.compiled import CompiledScan, CompiledScanner
from riskbayes.statistics import Statistics


class ExpertRows:
    """The same rows, encoded for each expert."""

    def __init__(self, parts: Sequence[Any], n: int):
        self.parts = tuple(parts)
        self.shape = len(self.parts[0]), n

    def __len__(self) -> int:
        return len(self.parts[0])

    def __getitem__(self, rows: slice | Array) -> ExpertRows:
        return ExpertRows([Z[rows] for Z in self.parts], self.shape[1])


class ProductScanner(Scanner):
    """Scans by the scanners of the experts, whose rows are read in turn."""

    model: ProductModel

    def __init__(self, model: ProductModel, Z: ExpertRows, own: Sequence[Any], cells: float):
        super().__init__(model, Z, cells=cells, releases_lock=all(each.releases_lock for each in own))
        self.own = own

    def begin(self, Z: ExpertRows, theta: ProductParameters) -> tuple[Array, Callable[[Array], Statistics]]:
        """Return the scores and the function of dS, from those of the experts."""
        triples = zip(self.own, Z.parts, theta.experts, strict=True)
        found = [scanner.begin(part, own) for scanner, part, own in triples]
        scores = self.model.weighted([own for own, _ in found], theta)
        return scores, lambda E: side_by_side([statistics(E) for _, statistics in found])


class CompiledProductScanner(ProductScanner, CompiledScanner):
    """Compiled scans of the parts of all experts."""

    def compiled(self, theta: ProductParameters) -> CompiledScan:
        """Return the scan whose scores are the weighted sum of the experts', with one class prior."""
        weights, pairs = self.model.weights, zip(self.own, theta.experts, strict=True)
        priors = (w * possible(own.log_prior) for w, own in zip(weights, theta.experts, strict=True))
        parts = [scanner.part(own) for scanner, own in pairs]
        return CompiledScan(parts, weights, theta.log_prior - sum(priors))

    def rows(self, Z: ExpertRows) -> Sequence[Any]:
        """Return the rows as encoded for each expert."""
        return Z.parts

    def join(self, found: Sequence[Statistics]) -> Statistics:
        """Return the statistics of the experts, side by side."""
        return side_by_side(found)


@dataclass(frozen=True)
class ProductParameters:
    """p(y), and the parameters of each expert."""

    log_prior: Array
    experts: tuple[Any, ...]
    floored: Array


@dataclass(frozen=True)
class ProductModel(GenerativeModel):
    """p(x, y) proportional to p(y) prod_e p_e(x | y)^weight_e.

    If experts share columns or have other weights than one, it is not normalised: the product of their
    densities has an integral that is not known and differs by class. The posterior does not need it; there is
    no `sample` then, and log densities lack a constant.

    Parameters
    ----------
    experts : tuple of GenerativeModel
        Models of the same rows.
    weights : tuple of float
        The exponents of their densities.
    columns : tuple of tuples of int, optional
        The columns that each expert reads; by default all of them.
    n_columns : int, optional
        The number of columns of the rows; by default up to the last one that an expert reads.
    """

    experts: tuple[GenerativeModel, ...] = (QDAModel(), GaussianNBModel())
    weights: tuple[float, ...] = (0.5, 0.5)
    columns: tuple[tuple[int, ...], ...] | None = None
    n_columns: int | None = None

    @property
    def _width(self) -> int:
        """The number of columns of the rows, where experts have columns of their own."""
        return self.n_columns or 1 + max(max(own) for own in self.columns or ())

    @property
    def traits(self) -> Traits:  # type: ignore[override]
        """Those that all experts have; normalised if all weights are one and no column has two experts."""
        own = [expert.traits for expert in self.experts]
        return Traits(
            array_api=all(each.array_api for each in own),
            takes_missing=all(each.takes_missing for each in own),
            normalised=self._is_naive_bayes and all(each.normalised for each in own),
            describes_rows=all(each.describes_rows for each in own),
            columns=self._read([each.columns for each in own]),
            additive=all(each.additive for each in own),
        )

    def _read(self, own: Sequence[tuple[int, ...] | None]) -> tuple[int, ...] | None:
        """Return the columns that some expert reads, given those of each by its own numbers."""
        if self.columns is None:
            return None if None in own else tuple(sorted(set().union(*own)))  # type: ignore[arg-type]
        pairs = zip(self.columns, own, strict=True)
        read = (columns if some is None else [columns[j] for j in some] for columns, some in pairs)
        return tuple(sorted(set().union(*read)))

    @property
    def _is_naive_bayes(self) -> bool:
        """True if all weights are one and no column has two experts."""
        read = [j for own in self.columns or () for j in own]
        alone = len(self.experts) == 1 if self.columns is None else len(set(read)) == len(read)
        return alone and set(self.weights) == {1.0}

    def _own(self, X: Array) -> list[Array]:
        """Return the columns of each expert."""
        if self.columns is None:
            return [X] * len(self.experts)
        every = tuple(range(X.shape[1]))
        return [X if own == every else X[:, list(own)] for own in self.columns]

    @contextmanager
    def _naming(self, i: int) -> Iterator[None]:
        """Number the column in a ColumnError of expert i as in the whole table."""
        try:
            yield
        except ColumnError as error:
            if self.columns is None or error.name is not None:
                raise
            raise ColumnError(self.columns[i][error.column], error.problem) from None

    @property
    def floor_warning(self) -> str | None:  # type: ignore[override]
        """The warning of the first expert that has one."""
        return None if self._warner is None else self.experts[self._warner].floor_warning

    @property
    def _warner(self) -> int | None:
        return next((i for i, e in enumerate(self.experts) if e.floor_warning is not None), None)

    def implements(self, name: str) -> bool:
        """True if the product and all its experts implement the method; to draw needs a normalised joint.

        One expert is enough for `learn_own`, which must then see all rows at once.
        """
        if name == "sample_rows" and not self.traits.normalised:
            return False
        if name == "cell_densities" and not self._is_naive_bayes:
            return False
        found = [expert.implements(name) for expert in self.experts]
        return super().implements(name) and (any(found) if name == "learn_own" else all(found))

    def learn(self, sample: Sample) -> Frame:
        """Return the frames of the experts, side by side."""
        return SideBySide(tuple(frame for frame, _ in self._learned(sample)))

    def learn_own(self, sample: Sample) -> tuple[Frame, ExpertRows | None]:
        """Return the same, and the encoded rows if those of an expert are not what `encode` returns."""
        found = self._learned(sample)
        frame = SideBySide(tuple(own for own, _ in found))
        if all(Z is None for _, Z in found):
            return frame, None
        encoded = self.encode(sample.X, frame).parts
        own = [part if Z is None else Z for (_, Z), part in zip(found, encoded, strict=True)]
        return frame, ExpertRows(own, sample.X.shape[1])

    def _learned(self, sample: Sample) -> list[tuple[Frame, Any]]:
        """Return what each expert learns of its columns: its frame, and its rows or None."""
        found = []
        for i, (expert, X) in enumerate(zip(self.experts, self._own(sample.X), strict=True)):
            largest = sample.largest
            if largest is not None and self.columns is not None:
                largest = largest[list(self.columns[i])]
            with self._naming(i):
                found.append(expert.learn_own(replace(sample, X=X, largest=largest)))
        return found

    def encode(self, X: Array, frame: SideBySide) -> ExpertRows:  # type: ignore[override]
        """Return the rows, encoded for each expert."""
        parts = []
        triples = zip(self.experts, self._own(X), frame.frames, strict=True)
        for i, (expert, own, learned) in enumerate(triples):
            with self._naming(i):
                parts.append(expert.encode(own, learned))
        return ExpertRows(parts, X.shape[1])

    def centre(self, frame: SideBySide) -> Array | None:  # type: ignore[override]
        """Return the centre of the first expert that reads all columns; else the centres of all experts."""
        pairs = zip(self.experts, frame.frames, strict=True)
        centres = [expert.centre(own) for expert, own in pairs]
        if self.columns is None:
            return next((c for c in centres if c is not None), None)
        found = np.zeros(self._width)
        for own, middle in zip(self.columns, centres, strict=True):
            if middle is not None:
                found[list(own)] = to_numpy(middle)
        return found

    def sample_rows(self, theta: ProductParameters, y: Array, rng: np.random.Generator) -> Array:
        """Draw the columns of each expert; a column that no expert reads is missing."""
        if self.columns is None:
            return self.experts[0].sample_rows(theta.experts[0], y, rng)
        X = np.full((len(y), self._width), np.nan)
        for expert, own, columns in zip(self.experts, theta.experts, self.columns, strict=True):
            X[:, list(columns)] = expert.sample_rows(own, y, rng)
        return X

    def fix_prior(self, S: Statistics) -> Statistics:
        """Return the settled statistics of the experts, side by side."""
        found = []
        for i, (expert, own) in enumerate(zip(self.experts, parts(S), strict=True)):
            with self._naming(i):
                found.append(expert.fix_prior(own))
        return side_by_side(found)

    def cast(self, theta: ProductParameters, Z: ExpertRows) -> ProductParameters:
        """Return theta with the parameters of each expert in the dtype of its rows."""
        triples = zip(self.experts, Z.parts, theta.experts, strict=True)
        return replace(theta, experts=tuple(e.cast(own, part) for e, part, own in triples))

    def scanner(self, Z: ExpertRows) -> Scanner:
        """Return a scanner that is compiled if every expert adds a part of its own kind to it."""
        own = [expert.scanner(part) for expert, part in zip(self.experts, Z.parts, strict=True)]
        kinds = {each.kind for each in own if isinstance(each, CompiledScanner) and each.kind}
        if len(kinds) == len(own):
            return CompiledProductScanner(self, Z, own, max(each.cells for each in own))
        return ProductScanner(self, Z, own, sum(each.cells for each in own))

    def is_attainable(self, S: Statistics, ever: Statistics) -> bool:
        """False if no rows have the statistics of some expert."""
        triples = zip(self.experts, parts(S), parts(ever), strict=True)
        return all(expert.is_attainable(own, most) for expert, own, most in triples)

    def statistics(self, Z: ExpertRows, W: Array) -> Statistics:
        """Return the statistics of the experts, side by side."""
        return side_by_side([e.statistics(part, W) for e, part in zip(self.experts, Z.parts, strict=True)])

    def residual_statistics(self, Z: ExpertRows, E: Array, theta: ProductParameters) -> Statistics:
        """Return the residual statistics of the experts, side by side."""
        triples = zip(self.experts, Z.parts, theta.experts, strict=True)
        return side_by_side([e.residual_statistics(part, E, own) for e, part, own in triples])

    def posterior_statistics(self, Z: ExpertRows, P: Array, theta: ProductParameters) -> Statistics:
        """Return the statistics of the experts of rows without a label, side by side."""
        triples = zip(self.experts, Z.parts, theta.experts, strict=True)
        return side_by_side([e.posterior_statistics(part, P, own) for e, part, own in triples])

    def parameters(self, S: Statistics) -> ProductParameters:
        """Return the parameters of each expert; p(y) is that of the first."""
        found = tuple(e.parameters(own) for e, own in zip(self.experts, parts(S), strict=True))
        floored = 0 * S["s0"] if self._warner is None else found[self._warner].floored
        return ProductParameters(found[0].log_prior, found, floored)

    def is_legal(self, S: Statistics) -> bool:
        """True if the statistics of every expert are legal."""
        return all(e.is_legal(own) for e, own in zip(self.experts, parts(S), strict=True))

    def weighted(self, joints: Sequence[Array], theta: ProductParameters) -> Array:
        """Return log p(y) + sum_e weight_e log p_e(x | y), from the log joints or scores of the experts."""
        total: Any = theta.log_prior
        quadruples = zip(self.experts, self.weights, joints, theta.experts, strict=True)
        for expert, weight, joint, own in quadruples:
            total = total + weight * (joint - possible(expert.baseline(own))[None, :])
        return total

    def log_joint(self, Z: ExpertRows, theta: ProductParameters) -> Array:
        """Return log p(y) + sum_e weight_e log p_e(x | y), which is not normalised."""
        triples = zip(self.experts, Z.parts, theta.experts, strict=True)
        return self.weighted([expert.log_joint(part, own) for expert, part, own in triples], theta)

    def scores(self, Z: ExpertRows, theta: ProductParameters) -> Array:
        """Return the same from the experts' scores."""
        triples = zip(self.experts, Z.parts, theta.experts, strict=True)
        return self.weighted([expert.scores(part, own) for expert, part, own in triples], theta)

    def contributions(self, Z: ExpertRows, theta: ProductParameters) -> Array:
        """Return the weighted sums of the experts' contributions; a column that none reads has zero."""
        total = np.zeros((*Z.shape, len(theta.log_prior)))
        quadruples = zip(self.experts, self.weights, Z.parts, theta.experts, strict=True)
        for i, (expert, weight, part, own) in enumerate(quadruples):
            read = slice(None) if self.columns is None else list(self.columns[i])
            total[:, read] += weight * expert.contributions(part, own)
        return total

    def fill(
        self, Z: ExpertRows, theta: ProductParameters, y: Array, rng: np.random.Generator | None = None
    ) -> Array:
        """Return rows whose missing cells are filled by the first expert that reads the column."""
        X = np.full(Z.shape, np.nan)
        triples = list(zip(self.experts, Z.parts, theta.experts, strict=True))
        for i, (expert, part, own) in reversed(list(enumerate(triples))):
            read = slice(None) if self.columns is None else list(self.columns[i])
            X[:, read] = expert.fill(part, own, y, rng)
        return X

    def cell_densities(self, Z: ExpertRows, theta: ProductParameters, j: int) -> tuple[Array, Array]:
        """Return those of the expert that reads column j."""
        columns = self.columns or (tuple(range(Z.shape[1])),)
        i = next(i for i, own in enumerate(columns) if j in own)
        return self.experts[i].cell_densities(Z.parts[i], theta.experts[i], columns[i].index(j))

    def describe(self, theta: ProductParameters) -> Iterator[Described]:
        """Yield the parameters of the experts, each with the name of its model before its own."""
        for i, (expert, own) in enumerate(zip(self.experts, theta.experts, strict=True)):
            kind = type(expert).__name__.removesuffix("Model")
            for block in expert.describe(own):
                named = block._replace(names=[f"{kind}: {name}" for name in block.names])
                yield named if self.columns is None else in_columns(named, self.columns[i])

    def expected_statistics(self, theta: ProductParameters, total: float) -> Statistics:
        """Return the expected statistics of `total` rows of each expert, side by side."""
        pairs = zip(self.experts, theta.experts, strict=True)
        return side_by_side([e.expected_statistics(own, total) for e, own in pairs])

    def anchor_statistics(self, S: Statistics) -> Statistics:
        """Return those of the experts: the anchor pulls each of them to its own closed form."""
        return side_by_side([e.anchor_statistics(own) for e, own in zip(self.experts, parts(S), strict=True)])

    def coordinates(self, S: Statistics) -> SideBySideCoordinates:
        """Return those of the experts, side by side."""
        own = [expert.coordinates(part) for expert, part in zip(self.experts, parts(S), strict=True)]
        return SideBySideCoordinates(S, own, self.weights, parts)

    def log_likelihood(self, S: Statistics, theta: ProductParameters) -> float:
        """Return sum_ik W[i, k] log p(x_i, k) of the product, which is not normalised."""
        value = float(sum_of(S["s0"] * theta.log_prior))
        for expert, weight, own, part in zip(
            self.experts, self.weights, theta.experts, parts(S), strict=True
        ):
            value += weight * (expert.log_likelihood(part, own) - float(sum_of(part["s0"] * own.log_prior)))
        return value

    def degrees_of_freedom(self, S: Statistics) -> float:
        """Return the weighted sum over the experts."""
        own = (e.degrees_of_freedom(part) for e, part in zip(self.experts, parts(S), strict=True))
        return float(sum(w * d for w, d in zip(self.weights, own, strict=True)))


def possible(log_prior: Array) -> Array:
    """Return log p(y) with zero in place of -inf, so that subtracting it never gives NaN."""
    return namespace(log_prior).where(log_prior > -math.inf, log_prior, 0.0)


def in_columns(block: Described, columns: Sequence[int]) -> Described:
    """Return described parameters with the columns of an expert numbered as in the whole table."""
    named = [tuple((columns[j], code) for j, code in parts) for parts in block.named]
    return block._replace(columns=np.array(columns)[block.columns], named=named)


def parts(S: Statistics) -> list[Statistics]:
    """Return the statistics of each expert."""
    return [Statistics(S.frame.part(S, i), frame) for i, frame in enumerate(S.frame.frames)]


def side_by_side(found: Sequence[Statistics]) -> Statistics:
    """Return the statistics of the experts as one value; they share the class masses."""
    arrays = {f"{i}:{name}": S[name] for i, S in enumerate(found) for name in S if name != "s0"}
    return Statistics({"s0": found[0]["s0"], **arrays}, SideBySide(tuple(S.frame for S in found)))
