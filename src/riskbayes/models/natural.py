"""What a model has besides its formulas if gradient steps in natural parameters are to move it."""

from __future__ import annotations

from typing import Any, Protocol

from riskbayes.arrays import Array
from riskbayes.statistics import Statistics


class NaturalModel(Protocol):
    """A model whose natural parameters are those of the paper's appendix, with eta0 = log p(y)."""

    def to_natural(self, theta: Any) -> dict[str, Array]:
        """Return the natural parameters of theta."""

    def natural_gradient(self, dS: Statistics, theta: Any) -> dict[str, Array]:
        """Return the gradient of the conditional log-likelihood by them: the centred statistics."""

    def from_natural(self, eta: dict[str, Array], theta: Any, simplex: Any, floor: float) -> Any:
        """Return theta of natural parameters, after projection.

        `simplex` projects logarithms (last axis) to logarithms of probabilities; eigenvalues of
        covariances are raised to `floor`. The former `theta` provides the frame.
        """

    def inverse_parameters(self, theta: Any, total: float) -> Statistics:
        """Return statistics S of this total with `parameters(S)` equal to theta, under MAP too."""
