"""SmoothNB: is a normalised density better than an unnormalised one, and which tails?

Held-out error and held-out mean log density on the paper's 15 tabular sets, splits 0 to 2, sets above 8000
rows cut to 8000. The unnormalised form takes the logarithms of the hats' frequencies as they are, as a
prototype did. Tails: the share of the training rows beyond each outer knot; they fall exponentially, with
the mean excess.

    RISKBAYES_DATA=<folder> python benchmarks/smooth_nb.py
"""

import warnings
from dataclasses import dataclass, replace

import numpy as np
from default_rc import DECIDE, MOST_ROWS
from rich.console import Console
from rich.table import Table
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from riskbayes import GenerativeClassifier
from riskbayes.estimators.member import family_learner
from riskbayes.models import ProductModel, QDAModel, SmoothModel
from riskbayes.models.smooth import SmoothParameters
from riskbayes.statistics import Statistics
from riskbayes_paper.datasets import PAPER_TABULAR, load_csv


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


def main() -> None:
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in PAPER_TABULAR:
            data = load_csv(name).cut(MOST_ROWS)
            for split in DECIDE:
                X, X_test, y, y_test = train_test_split(data.X, data.y, test_size=0.25, random_state=split)
                for learner in LEARNERS:
                    for key, model in CANDIDATES.items():
                        clf = GenerativeClassifier(model, learner).fit(X, y)
                        error = (clf.predict(X_test) != y_test).mean()
                        found.setdefault((key, learner), []).append((error, clf.score_samples(X_test).mean()))
                for key, outer in IN_PRODUCT.items():
                    model = recipe_with_tails(X.shape[1], outer)
                    clf = GenerativeClassifier(model, family_learner(24)).fit(X, y)
                    error = (clf.predict(X_test) != y_test).mean()
                    found.setdefault((key, "rc, 24 scans"), []).append((error, np.nan))
    base = np.array(found["normalised, tails of 1 %", "closed_form"])[:, 1]
    table = Table(
        *("form", "learner", "error %", "mean log density, to the first line", "sets x splits above it"),
        title=f"SmoothNB, held out, {len(PAPER_TABULAR)} sets, splits 0 to 2",
    )
    for (key, learner), values in found.items():
        error, density = np.array(values).T
        gap = density - base
        known = key in CANDIDATES and key != "unnormalised"  # others have no log density
        cells = (f"{np.median(gap):+.3f} (median)", f"{(gap > 0).sum()} of {len(gap)}") if known else ("", "")
        table.add_row(key, learner, f"{100 * error.mean():.2f}", *cells)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
