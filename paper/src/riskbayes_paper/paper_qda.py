"""Quadratic discriminant analysis as a stand-in for the paper's, which does not say what its floor is."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from riskbayes.arrays import eye_like, namespace
from riskbayes.estimators import QuadraticDiscriminantAnalysis
from riskbayes.models.qda import QDAModel
from riskbayes.models.settled import Settled
from riskbayes.statistics import Statistics


@dataclass(frozen=True)
class PaperQDAModel(QDAModel):
    """QDA whose eigenvalues are at least `covariance_floor` where each column has a total variance of one.

    Maximum likelihood of splice, sonar or optdigits has no covariance, and the paper does not say what took
    its place: the published figures are nearest with a floor of 1e-2. It bends covariances that the rows
    determine, and depends on the distances between classes, so the library itself has another.
    """

    def settled_by(self, S: Statistics) -> Settled:
        """Put the variances of the columns in the place of the closed form, which the floor is a share of."""
        settled = super().settled_by(S)
        own = eye_like(settled.covariance) * (settled.scale * settled.scale)[None, :]
        reference = namespace(own).broadcast_to(own[None, ...], (S["s0"].shape[0], *own.shape))
        none = 0 * settled.missing  # type: ignore[operator]
        return replace(settled, completion=None, missing=none, reference=reference)


class PaperQDA(QuadraticDiscriminantAnalysis):
    """:class:`riskbayes.QuadraticDiscriminantAnalysis` with the stand-in's floor."""

    def _make_model(self) -> PaperQDAModel:
        model = super()._make_model()
        return PaperQDAModel(**{f.name: getattr(model, f.name) for f in fields(model)})
