"""The base class of Gaussian models with full covariances: what rows with missing cells add to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from riskbayes.arrays import Array, eye_like, namespace, to_widest
from riskbayes.models.centred import Centred, Origin
from riskbayes.models.conditional import Given
from riskbayes.models.gaussian import GaussianModel
from riskbayes.models.quadrature import normal_densities
from riskbayes.scanners.dense import Scanner
from riskbayes.statistics import Statistics

FEW_ROWS = 2048
"""Rows with missing cells that are grouped once for all classes; of more, each class groups its own."""


class HolesScanner(Scanner):
    """Scans of rows with missing cells, whose factors are computed once, for scores and moments."""

    model: CorrelatedModel

    def begin(self, Z: Centred, theta: Any) -> tuple[Array, Callable[[Array], Statistics]]:
        """Return the scores and the function of dS."""
        assert Z.holes is not None
        found = theta.conditional.given(Z.exact[Z.holes.incomplete], Z.holes.gaps)
        scores = self.model.observed_log_joint(Z, theta, found)
        return scores, lambda E: self.model.expected(Z, E, theta, found)[0]


@dataclass(frozen=True)
class CorrelatedModel(GaussianModel):
    """Base class of LDA and QDA: rows with missing cells have the density of their observed part.

    Their statistics are the expected ones given that part: those of the data under the parameters that EM
    found (the start of the frame), those of a residual under the parameters of the scan.
    """

    second: ClassVar[str]
    """Name of the second moments."""
    widest: ClassVar[float] = np.inf
    """Upper bound on the columns that the chunk size is computed for: wider rows are read in chunks as if
    they had this many."""

    def from_moments(self, s0: Array, means: Array, C: Array, frame: Origin) -> Statistics:
        """Return the statistics of rows with these masses and means, and with covariance C in each class."""
        raise NotImplementedError

    def scanner(self, Z: Centred) -> Scanner:
        """Return a scanner in threads; the missing block of a row is a matrix."""
        cells = min(Z.shape[1], self.widest)
        if Z.holes is None:
            return Scanner(self, Z, cells=cells, releases_lock=True)
        return HolesScanner(self, Z, cells=cells + Z.holes.factor_cells, releases_lock=True)

    def observed_log_joint(self, Z: Centred, theta: Any, found: Given | None = None) -> Array:
        """Return log p(x_o, y) of rows with missing cells; `found` are those rows given the classes."""
        assert Z.holes is not None
        rows, out = Z.holes.incomplete, np.empty((len(Z), len(theta.means)))
        out[Z.holes.complete] = self.log_joint(Z.complete, theta)
        given = theta.conditional.given(Z.exact[rows], Z.holes.gaps) if found is None else found
        out[rows] = theta.conditional.log_joint(given)
        return out

    def expected(
        self, Z: Centred, V: Array, theta: Any, found: Given | None = None
    ) -> tuple[Statistics, float]:
        """Return the expected statistics of rows with missing cells under theta, and their log-likelihood.

        That is sum_ik V[i, k] log p(x_o, k), which is not computed if `found` is known, the rows with missing
        cells given the classes.
        """
        assert Z.holes is not None
        V, full, rows = to_widest(V), Z.holes.complete, Z.holes.incomplete
        first, second, value = theta.conditional.moments(Z.exact[rows], Z.holes.gaps, V[rows], found)
        arrays = {"s0": V.sum(axis=0), "s1": first, self.second: second}
        if len(full):
            S = self.statistics(Z.complete, V[full])
            arrays |= {name: arrays[name] + S[name] for name in ("s1", self.second)}
            value += 0.0 if found is not None else float((V[full] * self.log_joint(Z.complete, theta)).sum())
        return Statistics(arrays, Z.frame), value

    def expected_under_start(self, Z: Centred, W: Array) -> Statistics:
        """Return the expected statistics of rows with missing cells under the start of the frame."""
        assert Z.holes is not None
        start, full = Z.frame.start, Z.holes.complete
        if start is None and not W[Z.holes.incomplete].any():
            return self.statistics(Z.complete, W[full])
        if start is None:
            raise ValueError(
                "These rows have missing cells, and the rows of the fit had none: they are not among those "
                "that were fitted."
            )
        own = Z.about(replace(Z.frame, origin=start.frame.origin))  # statistics may have been recentred
        return self.expected(own, W, start)[0].to_frame(Z.frame)

    def residual_statistics(self, Z: Centred, E: Array, theta: Any) -> Statistics:
        """Return the statistics of a residual; those of missing cells are expected under theta."""
        if Z.holes is None:
            return self.statistics(Z, E)
        rows, found = Z.holes.incomplete, None
        if len(rows) <= FEW_ROWS:
            found = theta.conditional.given(Z.exact[rows], Z.holes.gaps)
        return self.expected(Z, E, theta, found)[0]

    def cell_densities(self, Z: Centred, theta: Any, j: int) -> tuple[Array, Array]:
        """Return the densities of the cell given the observed ones, at the nodes of a quadrature."""
        assert Z.holes is not None
        return normal_densities(*theta.conditional.cell(theta.conditional.given(Z.exact, Z.holes), j))

    def fill(self, Z: Centred, theta: Any, y: Array, rng: np.random.Generator | None = None) -> Array:
        """Return rows with the conditional mean of their class in the missing cells, or a joint draw."""
        D, holes = np.array(Z.exact), Z.holes
        if holes is not None:
            rows = holes.incomplete
            D[rows] = theta.conditional.fill(D[rows], holes[rows], y[rows], rng)
        return D + Z.frame.origin


def shrunk(C: Array, share: float) -> Array:
    """Return (1 - share) C + share tr(C)/n I, of a covariance or of each of a stack."""
    return (1 - share) * C + share * spread(C) * eye_like(C)


def unshrunk(C: Array, share: float) -> Array:
    """Return the matrices that `shrunk` gives C for; C itself if the share is one, which leaves no trace."""
    return C if share >= 1 else (C - share * spread(C) * eye_like(C)) / (1 - share)


def spread(C: Array) -> Array:
    """Return tr(C)/n, with two more axes."""
    return (namespace(C).linalg.trace(C) / C.shape[-1])[..., None, None]
