"""The base class of Gaussian models with full covariances: what rows with missing cells add to them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from riskbayes.arrays import Array, eye_like, namespace, to_widest
from riskbayes.models.centred import Centred, Origin
from riskbayes.models.conditional import Given
from riskbayes.models.gaussian import GaussianModel
from riskbayes.objectives import Objective
from riskbayes.risks import Risks
from riskbayes.scanners.dense import Scanner, residual_and_risks
from riskbayes.statistics import Statistics

FEW_ROWS = 2048
"""Rows with missing cells that are grouped once for all classes; of more, each class groups its own."""


class HolesScanner(Scanner):
    """Scans of rows with missing cells, whose factors are computed once, for scores and moments."""

    model: CorrelatedModel

    def chunk(
        self, Z: Centred, y: Array, w: Array | None, theta: Any, objective: Objective, risks_only: bool
    ) -> tuple[Statistics | Array | None, Risks]:
        """Return dS and the risks of a chunk; there may be no missing cell in it."""
        if Z.holes is None:
            return super().chunk(Z, y, w, theta, objective, risks_only)
        rows = Z.holes.incomplete
        found = None if risks_only else list(theta.conditional.given(Z.exact[rows], Z.holes.gaps))
        scores = self.model.observed_log_joint(Z, theta, found)
        E, risks = residual_and_risks(scores, y, w, objective, risks_only)
        return None if E is None else self.model.expected(Z, E, theta, found)[0], risks


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
        return HolesScanner(self, Z, cells=cells + float(np.mean(Z.holes.numbers**2)), releases_lock=True)

    def observed_log_joint(self, Z: Centred, theta: Any, found: list[Given] | None = None) -> Array:
        """Return log p(x_o, y) of rows with missing cells; `found` are those rows given each class."""
        assert Z.holes is not None
        full, rows = Z.holes.complete, Z.holes.incomplete
        out, gaps = np.empty((len(Z), len(theta.means))), Z.holes.gaps
        out[full] = self.log_joint(Centred(Z.X[full], Z.frame, Z.dtype), theta)
        given = theta.conditional.given(Z.exact[rows], gaps) if found is None else found
        out[rows] = theta.conditional.log_joint(gaps, given)
        return out

    def expected(
        self, Z: Centred, V: Array, theta: Any, found: list[Given] | None = None
    ) -> tuple[Statistics, float]:
        """Return the expected statistics of rows with missing cells under theta, and their log-likelihood.

        That is sum_ik V[i, k] log p(x_o, k), which is not computed if `found` is known, the rows with missing
        cells given each class.
        """
        assert Z.holes is not None
        V, full, rows = to_widest(V), Z.holes.complete, Z.holes.incomplete
        first, second, value = theta.conditional.moments(Z.exact[rows], Z.holes.gaps, V[rows], found)
        arrays = {"s0": V.sum(axis=0), "s1": first, self.second: second}
        if len(full):
            Zf = Centred(Z.X[full], Z.frame, Z.dtype)
            S = self.statistics(Zf, V[full])
            arrays |= {name: arrays[name] + S[name] for name in ("s1", self.second)}
            value += 0.0 if found is not None else float((V[full] * self.log_joint(Zf, theta)).sum())
        return Statistics(arrays, Z.frame), value

    def expected_under_start(self, Z: Centred, W: Array) -> Statistics:
        """Return the expected statistics of rows with missing cells under the start of the frame."""
        assert Z.holes is not None
        start, full = Z.frame.start, Z.holes.complete
        if start is None and not W[Z.holes.incomplete].any():
            return self.statistics(Centred(Z.X[full], Z.frame, Z.dtype), W[full])
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
            found = list(theta.conditional.given(Z.exact[rows], Z.holes.gaps))
        return self.expected(Z, E, theta, found)[0]

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
