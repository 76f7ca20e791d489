"""Noise: does anything look better than the coin that made the labels, or cost more than the frequencies?

    python benchmarks/noise.py            # fits what is missing, then prints results/noise.csv
    python benchmarks/noise.py --print

coin: labels of a coin, 60 to 1000 rows of numbers, categories of 3 and of 12 levels, and missing cells.
weak: 500 rows of 40 columns of noise and one whose classes lie 0.3 standard deviations apart.

The default is the ensemble here. Each table is fitted once and scored on 2000 more rows; "says" is the least
cross-validated error that the leaderboard of a strategy has of its members.
"""

import numpy as np
import pandas as pd
from study import Part, Study, judged, print_table, spread

from riskbayes import MixedNB, RiskBayesClassifier

TABLES, TEST, APART = 60, 2000, 0.3
METHODS = {
    "default": lambda: RiskBayesClassifier(random_state=0),
    "glass": lambda: RiskBayesClassifier("glass"),
    "single": lambda: RiskBayesClassifier("single"),
    "MixedNB, rc": lambda: MixedNB(missing="informative"),
    "MixedNB, rc_cv": lambda: MixedNB(missing="informative", learner="rc_cv"),
    "frequencies": lambda: Frequencies(),
}

HEADS = (
    *("method", "coin: error", "below 50 % by two standard errors", "least error it says", "coin: log loss"),
    *("weak: error", "weak: log loss"),
)


class Frequencies:
    """The classes as often as in training."""

    def fit(self, X, y):
        self.classes_, counts = np.unique(y, return_counts=True)
        self.shares = counts / counts.sum()
        return self

    def predict_proba(self, X):
        return np.tile(self.shares, (len(X), 1))


def coin(rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """A table whose labels are those of a coin, and its labels."""
    m = round(np.exp(rng.uniform(np.log(60), np.log(1000)))) + TEST
    X = pd.DataFrame(
        {f"normal {j}": rng.normal(size=m) for j in range(4)}
        | {"skewed": rng.exponential(size=m), "few": rng.choice(list("xyz"), m)}
        | {"many": rng.choice([f"k{i}" for i in range(12)], m)}
    )
    return X.mask(rng.random(X.shape) < 0.05), rng.integers(2, size=m)


def weak(rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """A table with one weak column among 40 of noise, and its labels."""
    m = 500 + TEST
    y = rng.integers(2, size=m)
    X = rng.normal(size=(m, 41))
    X[:, 0] += APART * y
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(41)]), y


class Noise(Study):
    """Tables by their seeds, in place of splits."""

    name, splits, methods, sets = "noise", range(TABLES), tuple(METHODS), ("coin", "weak")
    figures = ("error", "log_loss", "says")

    def part(self, name: str, split: int) -> Part:
        X, y = (coin if name == "coin" else weak)(np.random.default_rng(split))
        return Part(name, split, X[:-TEST], X[-TEST:], y[:-TEST], y[-TEST:])

    def fit(self, methods, part: Part) -> dict[str, dict]:
        clf = METHODS[methods[0]]()
        found = judged(clf, part)
        board = getattr(clf, "leaderboard_", {})
        said = {"says": board["cv_error"].min()} if "cv_error" in board else {}
        return {methods[0]: {name: found[name] for name in ("error", "log_loss")} | said}

    def rows(self) -> list[list[str]]:
        """A row a method: errors and log losses on both kinds of tables."""
        rows, limit = [], 0.5 - 2 * np.sqrt(0.25 / TEST)
        for method in self.methods:
            errors, losses, said = (self.grid(method, what) for what in self.figures)
            gaps = losses - self.grid("frequencies", "log_loss")
            cells = [f"{100 * own.mean():.2f} ± {100 * spread(own):.2f}" for own in errors]
            beyond = [f"{gap.mean():+.4f} ± {spread(gap):.4f}" for gap in gaps]
            says = "" if np.isnan(said[0]).all() else f"{100 * np.nanmean(said[0]):.1f}"
            lucky = f"{(errors[0] < limit).sum()} of {len(errors[0])}"
            rows.append([method, cells[0], lucky, says, beyond[0], cells[1], beyond[1]])
        return rows

    def show(self) -> None:
        print_table(
            "Held-out error in percent; log loss less that of the class frequencies", HEADS, self.rows(), 150
        )


if __name__ == "__main__":
    Noise().main()
