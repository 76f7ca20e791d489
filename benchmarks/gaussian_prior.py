"""Which prior do LDA, Gaussian naive Bayes and mixtures recommend beside RC? QDA's is of `default_rc.py`.

Held-out error and log loss on the paper's 15 tabular sets (at most 2000 rows), splits 0 to 2, by RC:

- LDA, mixture: strength of the prior on covariances, in rows per column, with half its diagonal;
- GaussianNB: strength of the prior on variances, in rows.

Run: RISKBAYES_DATA=<folder of csv.gz files> python benchmarks/gaussian_prior.py
"""

from study import Part, Study, spread

from riskbayes import (
    GaussianNB,
    LinearDiscriminantAnalysis,
    MixtureDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)

STRENGTHS = {
    "QDA": (0, 5, 20),
    "LDA": (0, 1, 5, 20),
    "GaussianNB": (0, 1, 5, 20, 50, 100, 200),
    "mixture": (0, 1, 5, 20),
}
CLASSES = {
    "QDA": QuadraticDiscriminantAnalysis,
    "LDA": LinearDiscriminantAnalysis,
    "mixture": MixtureDiscriminantAnalysis,
}


class GaussianPrior(Study):
    """Gaussian models by the strength of their prior, with a start at half the diagonal."""

    name, splits, most_rows, figures = "gaussian_prior", range(3), 2000, ("error", "log_loss")
    methods = tuple(f"{name} | {strength}" for name, found in STRENGTHS.items() for strength in found)

    def make(self, method: str, part: Part):
        name, strength = method.split(" | ")
        if name == "GaussianNB":
            return GaussianNB(variance_strength=float(strength))
        n = part.X.shape[1]
        return CLASSES[name](covariance_strength=float(strength) * n, diagonal_mix=0.5)

    def show(self) -> None:
        for method in self.methods:
            name = method.split(" | ")[0]
            errors, losses = (self.grid(method, figure) for figure in ("error", "log_loss"))
            plain = self.grid(f"{name} | 0"), self.grid(f"{name} | 0", "log_loss")
            gap, loss_gap = (100 * (errors - plain[0])).mean(axis=0), (losses - plain[1]).mean(axis=0)
            print(
                f"{method:16s} error {100 * errors.mean():.2f} % ({gap.mean():+.2f} ± {spread(gap):.2f}), "
                f"log loss {losses.mean():.3f} ({loss_gap.mean():+.3f} ± {spread(loss_gap):.3f})"
            )


if __name__ == "__main__":
    GaussianPrior().main()
