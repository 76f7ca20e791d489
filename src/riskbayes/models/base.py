"""What a generative model is: three formulas and a test."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np

from riskbayes.arrays import (
    Array,
    as_kind,
    label_rows,
    namespace,
    sent_to,
    sum_of,
    to_numpy,
    widest_float,
)
from riskbayes.risks import Risks, posterior_and_risks
from riskbayes.statistics import Statistics

Residual = Callable[[Array, Array], Array]
"""(P, y) -> E: what a learner adds to each row's statistics."""

COUNT_ROUNDING = 1e-9
"""What rounding may take from a sum of non-negative terms, as a share of the largest one, in float64."""

SINGLE_ROUNDING = 1e-5
"""The same of sums whose rows may have been in float32: Gaussian models', and all on devices."""


class GenerativeModel(ABC):
    """A joint model p(x, y) with additive statistics and a closed form.

    Subclass it, write `statistics`, `parameters` and `log_joint`, and hand an instance to
    :class:`riskbayes.GenerativeClassifier`. A model is immutable and knows its hyper-parameters
    only: the data live in `Z`, what was counted in `S`, what was estimated in `theta`.
    `theta` is any object with an attribute `log_prior` (n_classes,), and, where the closed form
    projects, `floored` (n_classes,): how many of a class's parameters sit on a floor.
    """

    support: ClassVar[str] = "real"
    """What a feature is: "real" numbers or "categories" (codes from 0)."""

    array_api: ClassVar[bool] = False
    """Whether its formulas take arrays of every library (see :mod:`riskbayes.arrays`), not NumPy's only."""

    normalised: ClassVar[bool] = True
    """Whether the joint sums, or integrates, to one."""

    floor_warning: ClassVar[str | None] = None
    """What to tell the user, of `{classes}` and at `{most}` floored parameters of a class, when the closed
    form itself sits on a floor; None: nothing."""

    non_negative: ClassVar[tuple[str, ...]] = ("s0",)
    """Names of the statistics that no rows of non-negative weight can make negative."""

    @property
    def additive(self) -> bool:
        """True if the statistics of tables that were learned from apart add up.

        False for a model that learns structure from the rows: what it counts then differs by table.
        """
        return not self.writes("learn")

    def learn(self, X: Array, y: Array, w: Array | None, n_classes: int) -> Self:
        """Return the model with the structure that these rows and labels determine, by default none.

        Called once a fit and once a fold, before `prepare`. A learned model can learn again: its
        hyper-parameters say how, and what it learned before is replaced.
        """
        return self

    def prepare(self, X: Array, sample_weight: Array | None = None) -> Any:
        """Rows as the scans read them, made once a fit: any object with a length and `Z[rows]`.

        It may say how many cells a scan holds for each row (`width`), and that its scans are compiled code
        which lets other threads run (`releases_gil`).
        """
        return X

    def rows(self, X: Array, theta: Any) -> Any:
        """Rows as `log_joint` reads them once theta is known."""
        return self.prepare(X)

    def for_scan(self, theta: Any, Z: Any) -> Any:
        """theta as the scan of Z reads it, made once a scan: in the precision of the rows, say."""
        return theta

    def for_full_scan(self, theta: Any, Z: Any, residual: Residual | None) -> Any:
        """The same for a scan of every row of Z, which may gain from what Z remembers of the last one."""
        return self.for_scan(theta, Z)

    def bind(self, S: Statistics) -> Self:
        """Freeze what depends on the data but must not move during calibration."""
        return self

    @abstractmethod
    def statistics(self, Z: Any, W: Array) -> Statistics:
        """S = sum_i sum_k W[i, k] s(x_i, k): linear in W, additive over rows."""

    def label_statistics(self, Z: Any, y: Array, w: Array | None, n_classes: int) -> Statistics:
        """s(X, Y): labels, times weights, as W."""
        return self.statistics(Z, label_rows(y, n_classes, w, widest_float(y)))

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
        """Statistics of total one whose likelihood is largest at `parameters(S)`: what an anchor holds to.

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
        """Whether it has a method that this class leaves open; a model made of others asks these too."""
        return getattr(type(self), name, None) is not getattr(GenerativeModel, name, None)

    def residual_statistics(self, Z: Any, E: Array, theta: Any) -> Statistics:
        """dS, the statistics of a residual: those of its weights, however theta would share them."""
        return self.statistics(Z, E)

    def scan_chunk(
        self, Z: Any, y: Array, w: Array | None, theta: Any, residual: Residual | None
    ) -> tuple[Statistics | None, Risks]:
        """Log joint, posterior, residual, statistics: one pass over a chunk of rows."""
        P, risks = posterior_and_risks(self.scores(Z, theta), y, w, residual)
        if residual is None:
            return None, risks
        E = residual(P, y)
        E = E if w is None else E * as_kind(w, E.dtype)[:, None]
        return self.residual_statistics(Z, E, theta), risks


def log_class_prior(s0: Array, alpha: float = 0.0, fixed: Array | None = None) -> Array:
    """log p(y): frequencies with `alpha` pseudo-counts a class, unless the user fixed it.

    A class without mass, as `partial_fit` may leave it, gets log 0.
    """
    xp = namespace(s0)
    mass = s0 + alpha
    p = xp.where(mass > 0, mass, 0.0) if fixed is None else sent_to(fixed, s0)
    with np.errstate(divide="ignore"):
        return xp.log(p / sum_of(p))


def invert_class_prior(log_prior: Array, total: float, alpha: float = 0.0) -> Array:
    """Class masses of that total whose smoothed frequencies are p(y)."""
    return namespace(log_prior).exp(log_prior) * (total + alpha * log_prior.shape[0]) - alpha


def draw_classes(log_prior: Array, n: int, rng: np.random.Generator) -> Array:
    """n class codes from p(y)."""
    return rng.choice(log_prior.shape[0], size=n, p=np.exp(log_prior))
