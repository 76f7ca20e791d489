"""What an engine is: where the scan of the data runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

from riskbayes.arrays import sum_of
from riskbayes.models.base import GenerativeModel, Residual
from riskbayes.risks import Risks
from riskbayes.statistics import Array, Statistics


class Scan(NamedTuple):
    """One pass over the data: the change of the statistics (None without a residual), the risks."""

    dS: Statistics | None
    risks: Risks


class Engine(ABC):
    """Holds the rows, splits them, reduces what the model makes of each part.

    `model` may be replaced by its bound form once the statistics of the data are known.
    """

    model: GenerativeModel

    @property
    @abstractmethod
    def y(self) -> Array:
        """Class codes of the rows."""

    @property
    @abstractmethod
    def w(self) -> Array | None:
        """Weights of the rows; None is one each."""

    @property
    def mass(self) -> float:
        """The weight of all rows."""
        return float(self.y.shape[0] if self.w is None else sum_of(self.w))

    @abstractmethod
    def statistics(self) -> Statistics:
        """s(X, Y): labels, times weights, as W."""

    @abstractmethod
    def scan(self, theta: Any, residual: Residual | None, rows: Array | slice | None = None) -> Scan:
        """One pass over all rows, or some. No residual: only the risks."""

    def subset(self, rows: Array) -> Self:
        """An engine over some of the rows (repeats allowed), without a copy of them."""
        raise NotImplementedError(f"{type(self).__name__} cannot pick rows.")

    def fold(
        self, kept: Array, held: Array, mass: float, past: Statistics | None = None
    ) -> tuple[Self, Self, Statistics]:
        """Engines over the kept and the held rows, and the statistics that the held rows have no part in.

        Everything is learned anew from the kept rows: structure, frame, and what `bind` freezes. Their
        weights are then scaled to `mass`, that of both parts, so that priors and anchors act as they do on
        all rows. `past` are the statistics of rows counted before, which this engine does not hold.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot hold rows out.")

    def read_by(self, model: GenerativeModel, theta: Any) -> Self:
        """An engine over the same rows, as a model with the parameters theta reads them."""
        raise NotImplementedError(f"{type(self).__name__} cannot read its rows again.")

    def rows(self, order: Array) -> Iterator[tuple[Any, int, float]]:
        """One row after another, for a learner that goes row by row: Z, class code, weight."""
        raise NotImplementedError(f"{type(self).__name__} cannot go row by row.")
