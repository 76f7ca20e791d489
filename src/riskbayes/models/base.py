"""What a generative model is: three formulas and a test, and what it may add to them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from riskbayes.arrays import (
    Array,
    astype,
    is_false,
    namespace,
    one_hot,
    sum_of,
    to_device,
    to_numpy,
    widest_float,
)
from riskbayes.frames import Frame
from riskbayes.models.kernels.scan import CompiledScan, Part
from riskbayes.objectives import Objective
from riskbayes.risks import Risks, posterior_and_risks
from riskbayes.statistics import Statistics

COUNT_ROUNDING = 1e-9
"""What rounding may take from a sum of non-negative terms, as a share of the largest one, in float64."""

SINGLE_ROUNDING = 1e-5
"""The same of sums whose rows may have been in float32: Gaussian models', and all on devices."""


@dataclass(frozen=True)
class Sample:
    """What a model learns its frame from.

    An engine that holds all rows gives them all. One that cannot (a disk, a cluster) gives a bounded sample,
    drawn uniformly but with rows of every class, and what must be exact over all rows.
    """

    X: Array
    """Rows, of which the model may take positions: an origin, knots, dependences, components."""
    y: Array
    """Their class codes."""
    w: Array | None
    """Their weights; None is one each."""
    n_classes: int
    largest: Array | None = None
    """The largest value of each column over all rows: a category that is not counted would be lost.
    None where X is all rows."""


class GenerativeModel(ABC):
    """A joint model p(x, y) with additive statistics and a closed form.

    Subclass it, write `statistics`, `parameters` and `log_joint`, and hand an instance to
    :class:`riskbayes.GenerativeClassifier`. A model is immutable and knows its hyper-parameters
    only: rows are in `Z`, what was learned before the loop in the frame, what was counted in `S`, what was
    estimated in `theta`. `theta` is any object with an attribute `log_prior` (n_classes,), and, where the
    closed form projects, `floored` (n_classes,): how many of a class's parameters are on a floor.
    """

    support: ClassVar[str] = "real"
    """What a feature is: "real" numbers or "categories" (codes from 0)."""

    array_api: ClassVar[bool] = False
    """True if its formulas take arrays of every library (see :mod:`riskbayes.arrays`), not NumPy's only."""

    normalised: ClassVar[bool] = True
    """True if the joint sums, or integrates, to one."""

    additive: ClassVar[bool] = True
    """True if the statistics of tables that were learned from apart add up. False for a model that learns
    structure from the rows: what it counts then differs by table."""

    encode_copies: ClassVar[bool] = True
    """True if encoded rows take memory of their own: of many rows to predict, a block is then encoded at a
    time."""

    floor_warning: ClassVar[str | None] = None
    """The warning for a closed form that is on a floor, with the names `{classes}` and `{most}` (floored
    parameters of a class); None for no warning."""

    non_negative: ClassVar[tuple[str, ...]] = ("s0",)
    """Names of the statistics that no rows of non-negative weight can make negative."""

    def learn(self, sample: Sample) -> Frame:
        """Return all that the rows determine before the loop and calibration does not move.

        Called once a fit and once a fold, on the rows of that fold. Categories must be exact
        (`sample.largest`); an origin, knots, dependences and components may come from a sample. What needs
        sums over all rows, such as a pooled prior, is set by `settle`.
        """
        return Frame()

    def encode(self, X: Array, frame: Frame) -> Any:
        """Return rows as the formulas read them: training, validation or new rows, a table or a chunk.

        Any object with a `shape` and `Z[rows]` will do; by default the rows themselves.
        """
        return X

    def settle(self, S: Statistics) -> Statistics:
        """Return the statistics of the data in a frame that also holds what they determine themselves.

        Called once `S` of all rows is known: a pooled prior and the floors of a covariance depend on it and
        must not move during calibration.
        """
        return S

    def row_cells(self, Z: Any) -> float:
        """Return how many numbers a scan holds for each row of Z, beside its scores."""
        return Z.shape[1]

    def score_cells(self, Z: Any) -> float:
        """Return how many numbers the scores alone hold for each row of Z, beside themselves."""
        return max(self.row_cells(Z), Z.shape[1])

    def releases_lock(self, Z: Any) -> bool:
        """True if scans of Z spend their time outside of Python's lock, so that threads gain."""
        return False

    def returns_residuals(self, Z: Any) -> bool:
        """True if `scan_chunk` returns the residuals of its rows in place of their statistics.

        These are then summed for all rows at once, as those of the labels are: statistics may be larger than
        a chunk of rows.
        """
        return False

    def plan(self, Z: Any, theta: Any) -> Any:
        """Return what the formulas read in place of theta for rows like Z: in their dtype, say."""
        return theta

    def plan_scan(self, Z: Any, theta: Any, objective: Objective, last: Any) -> Any:
        """Return the plan of a scan of all rows Z, which `scan_chunk` reads in place of theta.

        `last` is the plan of the last such scan of the same rows, or None: what it found may save work.
        """
        theta = self.plan(Z, theta)
        if objective.power is None or not self.is_compiled(Z):
            return theta
        part = self.compiled_part(Z, theta)
        return CompiledScan((part,), (1.0,), np.zeros_like(part.constants))

    def is_compiled(self, Z: Any) -> bool:
        """True if the model has a part of compiled scans of the rows Z, the whole table."""
        return False

    def compiled_part(self, Z: Any, theta: Any) -> Part:
        """Return the model's part of a compiled scan of Z, with the scores of theta."""
        raise NotImplementedError(f"{type(self).__name__} has no `compiled_part`.")

    @abstractmethod
    def statistics(self, Z: Any, W: Array) -> Statistics:
        """S = sum_i sum_k W[i, k] s(x_i, k): linear in W, additive over rows."""

    def label_statistics(self, Z: Any, y: Array, w: Array | None, n_classes: int) -> Statistics:
        """s(X, Y): labels, times weights, as W."""
        return self.statistics(Z, one_hot(y, n_classes, w, widest_float(y)))

    @abstractmethod
    def parameters(self, S: Statistics) -> Any:
        """theta(S): the closed form, ML or MAP. Priors enter here, never S."""

    @abstractmethod
    def log_joint(self, Z: Any, theta: Any) -> Array:
        """log p(x_i, y=k), of shape (m, r)."""

    def scores(self, Z: Any, theta: Any) -> Array:
        """The log joint up to a constant of the row: enough for the posterior, often cheaper."""
        return self.log_joint(Z, theta)

    def is_legal(self, S: Statistics) -> bool:
        """Is S in the domain of `parameters`, judged after the prior is added?"""
        return S.least_mass() > 0

    def could_be_counted(self, S: Statistics, ever: Statistics) -> bool:
        """False if no rows of non-negative weight have the statistics S, up to rounding.

        `ever` are the statistics of all rows that were added or subtracted on the way to S, in its frame:
        rounding is measured by them. True proves nothing: other rows may have the same statistics.
        """
        rounding = COUNT_ROUNDING if isinstance(S["s0"], np.ndarray) else SINGLE_ROUNDING
        pairs = ((to_numpy(S[name]), to_numpy(ever[name])) for name in self.non_negative)
        return all(
            value.min(initial=0.0) >= -rounding * np.abs(most).max(initial=0.0) for value, most in pairs
        )

    def sample(self, theta: Any, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """n rows and their class codes, drawn from the joint."""
        raise NotImplementedError(f"{type(self).__name__} has no `sample`.")

    def expected_statistics(self, theta: Any, total: float) -> Statistics:
        """The statistics that `total` rows of the model would have on average.

        Under ML, the inverse of `parameters`.
        """
        raise NotImplementedError(f"{type(self).__name__} has no `expected_statistics`.")

    def anchor_statistics(self, S: Statistics) -> Statistics:
        """Return statistics of total one whose likelihood is largest at `parameters(S)`, for an anchor.

        By default the expected ones of the closed form: under ML those of the data, under MAP the prior
        counts as rows.
        """
        return self.expected_statistics(self.parameters(S), 1.0)

    def degrees_of_freedom(self, S: Statistics) -> float:
        """How many numbers the rows determine: here, the statistics that differ by class.

        A model whose prior holds some of them may count less.
        """
        r = S["s0"].shape[0]
        return float(sum(math.prod(value.shape) for value in S.values() if value.shape[0] == r))

    def log_likelihood(self, S: Statistics, theta: Any) -> float:
        """The joint log-likelihood of rows whose statistics are S: sum_ik W[i, k] log p(x_i, k)."""
        raise NotImplementedError(f"{type(self).__name__} has no `log_likelihood`.")

    def inverse_parameters(self, theta: Any, total: float) -> Statistics:
        """Statistics S of that total with `parameters(S)` equal to theta, under MAP too."""
        raise NotImplementedError(f"{type(self).__name__} has no `inverse_parameters`.")

    def to_natural(self, theta: Any) -> dict[str, Array]:
        """The natural parameters of the paper's appendix, with eta0 = log p(y)."""
        raise NotImplementedError(f"{type(self).__name__} has no `to_natural`.")

    def natural_gradient(self, dS: Statistics, theta: Any) -> dict[str, Array]:
        """The gradient of the conditional log-likelihood in them: the centred statistics."""
        raise NotImplementedError(f"{type(self).__name__} has no `natural_gradient`.")

    def from_natural(self, eta: dict[str, Array], theta: Any, simplex: Any, floor: float) -> Any:
        """theta of natural parameters, after projection.

        `simplex` brings logarithms (last axis) to logarithms of probabilities; eigenvalues of
        covariances are at least `floor`. The former `theta` tells the frame.
        """
        raise NotImplementedError(f"{type(self).__name__} has no `from_natural`.")

    def writes(self, name: str) -> bool:
        """True if the model implements the optional method `name`. A composite model also asks its parts."""
        return getattr(type(self), name, None) is not getattr(GenerativeModel, name, None)

    def residual_statistics(self, Z: Any, E: Array, theta: Any) -> Statistics:
        """Return dS, the statistics of a residual; a mixture shares it among components by theta."""
        return self.statistics(Z, E)

    def scan_chunk(
        self, Z: Any, y: Array, w: Array | None, plan: Any, objective: Objective, risks_only: bool
    ) -> tuple[Statistics | Array | None, Risks]:
        """Log joint, posterior, residual, statistics: one pass over a chunk of rows."""
        if isinstance(plan, CompiledScan):
            found, risks = plan.chunk((Z,), y, w, objective, risks_only)
            return None if found is None else found[0], risks
        return self.scan_scores(Z, self.scores(Z, plan), y, w, plan, objective, risks_only)

    def scan_scores(
        self,
        Z: Any,
        scores: Array,
        y: Array,
        w: Array | None,
        theta: Any,
        objective: Objective,
        risks_only: bool,
    ) -> tuple[Statistics | Array | None, Risks]:
        """The same, once the scores of the chunk are known."""
        P, risks = posterior_and_risks(scores, y, w, objective)
        if risks_only:
            return None, risks
        E = objective.residual(P, y)
        E = E if w is None else E * astype(w, E.dtype)[:, None]
        return self.residual_statistics(Z, E, theta), risks


class Fitted(NamedTuple):
    """A model, statistics, and the parameters of these: all that scans and predictions ask for."""

    model: GenerativeModel
    S: Statistics
    theta: Any

    @classmethod
    def of(cls, model: GenerativeModel, S: Statistics) -> Self:
        """Return the model with the parameters of S."""
        return cls(model, S, model.parameters(S))

    @property
    def floored(self) -> Array | None:
        """How many parameters of each class are on a floor; None where the model has no floors."""
        return getattr(self.theta, "floored", None)


def log_class_prior(s0: Array, alpha: float = 0.0, fixed: Array | None = None) -> Array:
    """log p(y): frequencies with `alpha` pseudo-counts a class, unless the user fixed it.

    A class without mass, as `partial_fit` may leave it, gets log 0.
    """
    xp, mass = namespace(s0), s0 + alpha if alpha else s0
    if fixed is not None:
        mass = to_device(fixed, s0)
    empty = mass <= 0
    if is_false(empty):
        return xp.log(mass / sum_of(mass))
    mass = xp.where(empty, 0.0, mass)
    with np.errstate(divide="ignore"):
        return xp.log(mass / sum_of(mass))


def invert_class_prior(log_prior: Array, total: float, alpha: float = 0.0) -> Array:
    """Class masses of that total whose smoothed frequencies are p(y)."""
    return namespace(log_prior).exp(log_prior) * (total + alpha * log_prior.shape[0]) - alpha


def draw_classes(log_prior: Array, n: int, rng: np.random.Generator) -> Array:
    """n class codes from p(y)."""
    return rng.choice(log_prior.shape[0], size=n, p=np.exp(log_prior))
