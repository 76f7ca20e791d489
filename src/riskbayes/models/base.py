"""The base class of generative models: three formulas that each must write, and optional methods."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, is_dataclass, replace
from functools import partial, singledispatch
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from riskbayes.arrays import Array, clip_below, namespace, sum_of, to_device, to_numpy
from riskbayes.frames import Frame
from riskbayes.models.coordinates import Coordinates
from riskbayes.models.traits import Traits
from riskbayes.scanners import Scanner
from riskbayes.statistics import Statistics

COUNT_ROUNDING = 1e-9
"""Largest rounding error of a float64 sum of non-negative terms, as a share of the largest sum."""

SINGLE_ROUNDING = 1e-5
"""The same where rows may be float32: for sums that are not NumPy arrays (those on a device)."""


@dataclass(frozen=True)
class Sample:
    """The rows that a model learns its frame from.

    They are all rows where the engine holds them. Other engines (a disk, a cluster) pass a bounded sample,
    drawn uniformly but with rows of every class, and `largest`, which is exact over all rows.
    """

    X: Array
    """Rows, from which the model may estimate an origin, knots, dependences or components."""
    y: Array
    """Their class codes."""
    w: Array | None
    """Their weights; None stands for one each."""
    n_classes: int
    largest: Array | None = None
    """The largest value of each column over all rows, so that no category is missed. None where X holds all
    rows."""


class Described(NamedTuple):
    """Parameters of one kind by class, named for people."""

    columns: Array
    """The index of the column that each parameter belongs to, of shape (p,)."""
    names: Sequence[str]
    """Their names, with a `{}` for each entry of `named`."""
    values: Array
    """Their values, of shape (r, p)."""
    units: Array
    """The size of a change that counts as one, of shape (r, p): a standard deviation for a mean, one for a
    logarithm."""
    named: Sequence[tuple[tuple[int, int | float | None], ...]] = ()
    """For each parameter, what its name is completed by: a column and a code, for the category of that code,
    a column and a float, for a value of the column, or a column and None, for the name of the column."""
    shares: Array | None = None
    """At most this share of the rows of a class tells of each parameter, of shape (r, p); None: all rows."""


DERIVED = {
    "scores": ("log_joint",),
    "scanner": ("log_joint", "scores", "statistics", "residual_statistics"),
}
"""Methods that a class writes for its own formulas: with others they would give wrong answers."""


def home_of(kind: type, name: str) -> type:
    """Return the class that a class has an attribute from."""
    return next(each for each in kind.__mro__ if name in vars(each))


class GenerativeModel(ABC):
    """A joint model p(x, y) with additive statistics and a closed form.

    Subclass it, write `statistics`, `parameters` and `log_joint`, and hand an instance to
    :class:`riskbayes.GenerativeClassifier`. A model is immutable and holds its hyper-parameters only. Its
    methods receive the rest: encoded rows `Z`, the frame that was learned before the loop, statistics `S` and
    parameters `theta`. `theta` is any object with an attribute `log_prior` (n_classes,), and, where the
    closed form projects, `floored` (n_classes,): how many of a class's parameters were raised to a floor.

    Everything else is optional:

    =========================================  =============================================================
    what a model writes                        what it buys
    =========================================  =============================================================
    `learn`, `encode`, `fix_prior`             a frame learned before the loop; rows encoded once a fit
    `learn_own`                                rows that are left out of their own comparison
    `traits`                                   missing cells, other array libraries, honest densities
    `scores`, `scanner`, `cast`                speed
    `is_legal`                                 a domain of statistics other than classes with a mass
    `residual_statistics`                      statistics that depend on theta: missing cells, components
    `posterior_statistics`                     EM: rows without a label
    `log_likelihood`, `expected_statistics`    an anchor for RC; `anchor_statistics`, `anchor_likelihood`
                                               where these are not its best form
    `degrees_of_freedom`                       the recommended strength of that anchor
    `coordinates`                              quasi-Newton steps in others than the statistics
    `sample_rows`                              `sample`
    `contributions`, `baseline`                `explain`
    `fill`                                     `impute`
    `cell_densities`                           `next_cell`
    `describe`                                 `parameters_frame`
    `is_attainable`                            `forget` refuses rows that were never fitted
    `centre`                                   a point that overflowing rows are told by
    `floor_warning`                            a warning where the closed form projects
    `implements`                               a composite model answers for its parts
    =========================================  =============================================================

    Gradient steps need the methods of :class:`riskbayes.models.natural.NaturalModel` besides.
    """

    traits: ClassVar[Traits] = Traits()
    """What kind of model it is: whether cells may be missing, whether the joint is normalised, and so on."""

    floor_warning: ClassVar[str | None] = None
    """The warning for a closed form with floored parameters, a format string with the fields `{classes}` and
    `{most}` (the largest number of floored parameters of a class); None for no warning."""

    _non_negative: ClassVar[tuple[str, ...]] = ("s0",)
    """Names of the statistics that are non-negative for all rows of non-negative weight, if S has them."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Drop what a base class derived from formulas that are replaced: scans would still go by these."""
        super().__init_subclass__(**options)
        for derived, formulas in DERIVED.items():
            home = home_of(cls, derived)
            replaced = [name for name in formulas if name in vars(cls)]
            if home is not cls and any(home_of(home, name) is not GenerativeModel for name in replaced):
                setattr(cls, derived, getattr(GenerativeModel, derived))

    def learn(self, sample: Sample) -> Frame:
        """Return the frame: what is estimated from the rows before the loop and fixed during calibration.

        Called once for each fit, and once for each fold on the rows of that fold. Categories must be exact
        (`sample.largest`); an origin, knots, dependences and components may come from a sample. What needs
        sums over all rows, such as a pooled prior, is added by `fix_prior`.
        """
        return Frame()

    def learn_own(self, sample: Sample) -> tuple[Frame, Any]:
        """Return the frame, and the encoded rows of the sample, or None where `encode` returns the same.

        A model that compares rows with those it learned from leaves each row out of its own comparison here:
        the label of a row must not predict the row itself. It must see all rows at once: an engine that holds
        them in parts refuses a model that implements this method.
        """
        return self.learn(sample), None

    def encode(self, X: Array, frame: Frame) -> Any:
        """Return the encoded rows Z that the formulas read, of training, validation or new rows.

        Any object with a `shape` and `Z[rows]` will do; by default the rows themselves.
        """
        return X

    def fix_prior(self, S: Statistics) -> Statistics:
        """Return the statistics of the data with a settled frame, which also holds what they determine.

        Called once `S` of all rows is known: a pooled prior and the floors of a covariance depend on it and
        must stay fixed during calibration.
        """
        return S

    def centre(self, frame: Frame) -> Array | None:
        """Return a point in the middle of the training rows, or None if the frame knows none."""
        return frame.centre()

    def cast(self, theta: Any, Z: Any) -> Any:
        """Return theta in the dtype of Z, as the formulas read it; by default as it is."""
        return theta

    def scanner(self, Z: Any) -> Scanner:
        """Return the scanner of the rows Z, which knows how a pass over them is computed."""
        return Scanner(self, Z)

    @abstractmethod
    def statistics(self, Z: Any, W: Array) -> Statistics:
        """Return S = sum_i sum_k W[i, k] s(x_i, k): linear in W, additive over rows."""

    @abstractmethod
    def parameters(self, S: Statistics) -> Any:
        """Return theta(S), the closed form, ML or MAP. Priors are added here and are never part of S."""

    @abstractmethod
    def log_joint(self, Z: Any, theta: Any) -> Array:
        """Return log p(x_i, y=k), of shape (m, r)."""

    def scores(self, Z: Any, theta: Any) -> Array:
        """Return the log joint up to a constant of the row: enough for the posterior, and often cheaper."""
        return self.log_joint(Z, theta)

    def is_legal(self, S: Statistics) -> bool:
        """True if S is in the domain of `parameters`, after the prior is added."""
        return S.least_mass() > 0

    def is_attainable(self, S: Statistics, ever: Statistics) -> bool:
        """False if no rows of non-negative weight have the statistics S, up to rounding.

        `ever` are the statistics, in the frame of S, of all rows that were added or subtracted to get S: they
        set the scale of rounding. True proves nothing: other rows may have the same statistics.
        """
        rounding = COUNT_ROUNDING if isinstance(S["s0"], np.ndarray) else SINGLE_ROUNDING
        names = (name for name in self._non_negative if name in S)
        pairs = ((to_numpy(S[name]), to_numpy(ever[name])) for name in names)
        return all(
            value.min(initial=0.0) >= -rounding * np.abs(most).max(initial=0.0) for value, most in pairs
        )

    def sample_rows(self, theta: Any, y: Array, rng: np.random.Generator) -> Array:
        """Draw a row x from p(x | y) for each class code in y."""
        raise NotImplementedError(f"{type(self).__name__} has no `sample_rows`.")

    def baseline(self, theta: Any) -> Array:
        """Return the part of the scores that no column adds, of shape (r,): log p(y) if they contain it."""
        return theta.log_prior

    def contributions(self, Z: Any, theta: Any) -> Array:
        """Return what each column of the rows adds to the score of each class, of shape (m, n, r).

        `baseline` plus their sum over the columns is `scores`, up to a constant of the row. A missing cell
        adds zero.
        """
        raise NotImplementedError(f"{type(self).__name__} has no `contributions`.")

    def describe(self, theta: Any) -> Iterable[Described]:
        """Yield the parameters by class with names, other than log p(y), for a table that people read."""
        raise NotImplementedError(f"{type(self).__name__} has no `describe`.")

    def fill(self, Z: Any, theta: Any, y: Array, rng: np.random.Generator | None = None) -> Array:
        """Return rows as a float array, with their missing cells filled given their class codes y.

        A missing cell gets its most probable value or its mean given the cells that are present, or with
        `rng` a draw from p(missing | present, y). Cells that are present come back as Z keeps them, which may
        be rounded: a caller who has the rows takes the missing cells only.
        """
        raise NotImplementedError(f"{type(self).__name__} has no `fill`.")

    def cell_densities(self, Z: Any, theta: Any, j: int) -> tuple[Array, Array]:
        """Return log p(x_j | x_o, y) at some values of column j, and weights that integrate over these.

        The cell is missing in all rows of Z, and x_o are the cells that are not. Of shapes (m, values, r) and
        (m, values), where m is one if x_o does not matter. A category has all its values, with weights of
        one; a number has nodes of a quadrature, at which no class may be narrow between two of them.
        """
        raise NotImplementedError(f"{type(self).__name__} has no `cell_densities`.")

    def expected_statistics(self, theta: Any, total: float) -> Statistics:
        """Return the expected statistics of `total` rows of the model.

        Under ML this is the inverse of `parameters`.
        """
        raise NotImplementedError(f"{type(self).__name__} has no `expected_statistics`.")

    def anchor_statistics(self, S: Statistics) -> Statistics:
        """Return statistics of total one whose likelihood is largest at `parameters(S)`, for an anchor.

        By default the expected statistics of the closed form: under ML they are S / total, under MAP they
        include the prior as if it were rows.
        """
        return self.expected_statistics(self.parameters(S), 1.0)

    def anchor_likelihood(self, S: Statistics) -> Callable[[Any], float]:
        """Return the function of theta that an anchor monitors: the log-likelihood of `anchor_statistics`."""
        return partial(self.log_likelihood, self.anchor_statistics(S))

    def degrees_of_freedom(self, S: Statistics) -> float:
        """Return the effective number of parameters: by default, the number of statistics of the classes.

        A model whose prior determines some of them in part may return less.
        """
        r = S["s0"].shape[0]
        return float(sum(math.prod(value.shape) for value in S.values() if value.shape[0] == r))

    def coordinates(self, S: Statistics) -> Coordinates:
        """Return the coordinates that a quasi-Newton step moves, about the statistics S of the data.

        By default the statistics themselves.
        """
        return Coordinates(S)

    def log_likelihood(self, S: Statistics, theta: Any) -> float:
        """Return the joint log-likelihood of rows with statistics S: sum_ik W[i, k] log p(x_i, k)."""
        raise NotImplementedError(f"{type(self).__name__} has no `log_likelihood`.")

    def implements(self, name: str) -> bool:
        """True if the model implements the optional method `name`. A composite model also asks its parts."""
        return getattr(type(self), name, None) is not getattr(GenerativeModel, name, None)

    def residual_statistics(self, Z: Any, E: Array, theta: Any) -> Statistics:
        """Return dS, the statistics of a residual E; a mixture divides E among its components by theta.

        Those of missing cells are the expected ones under theta, given the observed cells of the row.
        """
        return self.statistics(Z, E)

    def posterior_statistics(self, Z: Any, P: Array, theta: Any) -> Statistics:
        """Return the statistics of rows without a label, with weights P >= 0 of the classes, for EM.

        Those of missing cells are expected under theta, as in a residual.
        """
        return self.residual_statistics(Z, P, theta)


class Fitted(NamedTuple):
    """A model, its statistics and their parameters: all that scans and predictions need."""

    model: GenerativeModel
    S: Statistics
    theta: Any

    @classmethod
    def of(cls, model: GenerativeModel, S: Statistics) -> Self:
        """Return the model with S and the parameters of S."""
        return cls(model, S, model.parameters(S))


@singledispatch
def with_log_prior(theta: Any, log_prior: Array) -> Any:
    """Return theta with another log p(y), and the same p(x | y).

    Parameters that are no dataclass and no NamedTuple, or that hold p(y) in more than one place, register a
    function of their own: `@with_log_prior.register`.
    """
    if is_dataclass(theta) and not isinstance(theta, type):
        return replace(theta, log_prior=log_prior)
    if isinstance(theta, tuple) and hasattr(theta, "_replace"):  # a NamedTuple
        return theta._replace(log_prior=log_prior)
    raise NotImplementedError(
        f"{type(theta).__name__} is no dataclass and no NamedTuple: make it one, or register a function "
        "for it with riskbayes.models.base.with_log_prior."
    )


def log_class_prior(s0: Array, alpha: float = 0.0, fixed: Array | None = None) -> Array:
    """Return log p(y): the frequencies with `alpha` pseudo-counts for each class, or `fixed`, normalised.

    A class without mass, which `partial_fit` allows, gets log 0.
    """
    xp, mass = namespace(s0), s0 + alpha if alpha else s0
    if fixed is not None:
        mass = to_device(fixed, s0)
    if xp is np and not np.count_nonzero(mass <= 0):
        return np.log(mass / sum_of(mass))
    mass = clip_below(mass, 0.0)
    with np.errstate(divide="ignore"):
        return xp.log(mass / sum_of(mass))


def draw_rows(model: GenerativeModel, theta: Any, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw n rows and their class codes from the joint."""
    if not model.implements("sample_rows"):
        raise NotImplementedError(f"{type(model).__name__} has no `sample_rows`, which draws rows.")
    y = rng.choice(theta.log_prior.shape[0], size=n, p=np.exp(theta.log_prior))
    return model.sample_rows(theta, y, rng), y
