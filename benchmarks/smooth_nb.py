"""SmoothNB: is a normalised density better than an unnormalised one, and which tails?

Held-out error and held-out mean log density on the paper's 15 tabular sets, splits 0 to 2, sets above 8000
rows cut to 8000. The unnormalised form takes the logarithms of the hats' frequencies as they are, as a
prototype did. Tails: the share of the training rows beyond each outer knot; they fall exponentially, with
the mean excess.

    RISKBAYES_DATA=<folder> python benchmarks/smooth_nb.py
"""

from dataclasses import dataclass, replace

import numpy as np
from study import Part, Study, judged, print_table

from riskbayes import GenerativeClassifier
from riskbayes.estimators.member import family_learner
from riskbayes.models import ProductModel, QDAModel, SmoothModel
from riskbayes.models.smooth import SmoothParameters
from riskbayes.statistics import Statistics


@dataclass(frozen=True)
class UnnormalisedModel(SmoothModel):
    """Frequencies of the hats in place of densities."""

    def parameters(self, S: Statistics) -> SmoothParameters:
        """log p(knot | y)."""
        theta = super().parameters(S)
        frequencies = np.exp(theta.log_density) * theta.frame.widths
        sums = theta.frame.spread(theta.frame.sums(frequencies))
        return replace(theta, log_density=np.log(frequencies / sums))


CANDIDATES = {
    "normalised, tails of 1 %": SmoothModel(alpha=1.0),
    "normalised, no rows in the tails": SmoothModel(alpha=1.0, outer=0.0),
    "normalised, tails of 5 %": SmoothModel(alpha=1.0, outer=0.05),
    "unnormalised": UnnormalisedModel(alpha=1.0),
}
LEARNERS = ("closed_form", "rc")
IN_PRODUCT = {"in the recipe, tails of 1 %": 0.01, "in the recipe, tails of 5 %": 0.05}
"""The same beside a Gaussian a class, as `RiskBayesClassifier` fits them."""


def recipe_with_tails(n: int, outer: float) -> ProductModel:
    gaussian = QDAModel(covariance_strength=5 * n, diagonal_mix=0.3)
    return ProductModel((gaussian, SmoothModel(alpha=5.0, outer=outer)), (0.25, 0.25))


class Smooth(Study):
    """Forms of the density by learners, and in the recipe."""

    name, splits, figures = "smooth_nb", range(3), ("error", "density")
    methods = (
        *(f"{key} | {learner}" for learner in LEARNERS for key in CANDIDATES),
        *(f"{key} | rc, 24 scans" for key in IN_PRODUCT),
    )

    def fit(self, methods, part: Part) -> dict[str, dict]:
        key, learner = methods[0].split(" | ")
        if key in IN_PRODUCT:
            model = recipe_with_tails(part.X.shape[1], IN_PRODUCT[key])
            return {methods[0]: judged(GenerativeClassifier(model, family_learner(24)), part)}
        clf = GenerativeClassifier(CANDIDATES[key], learner)
        return {methods[0]: judged(clf, part) | {"density": clf.score_samples(part.X_test).mean()}}

    def show(self) -> None:
        base = self.grid(self.methods[0], "density")
        rows, heads = [], ("mean log density, to the first line", "sets x splits above it")
        for method in self.methods:
            key, learner = method.split(" | ")
            gap = self.grid(method, "density") - base
            known = key in CANDIDATES and key != "unnormalised"  # others have no log density
            above = f"{np.median(gap):+.3f} (median)", f"{(gap > 0).sum()} of {gap.size}"
            ends = above if known else ("", "")
            rows.append([key, learner, f"{100 * self.grid(method).mean():.2f}", *ends])
        title = f"SmoothNB, held out, {len(self.sets)} sets, splits 0 to 2"
        print_table(title, ("form", "learner", "error %", *heads), rows, 120)


if __name__ == "__main__":
    Smooth().main()
