"""Why this recipe: its neighbours, on the splits that it was composed on (0 to 2 and 100 to 104).

Mean held-out error in percent over the paper's 15 tabular sets after so many scans, sets above 8000 rows cut
to 8000, and the paired difference to the recipe after 24 scans, ± its standard error over splits.

    RISKBAYES_DATA=<folder> python benchmarks/recipe.py > benchmarks/results/recipe.txt
"""

import os
import warnings
from dataclasses import dataclass

import numpy as np
from default_rc import MOST_ROWS
from joblib import Parallel, delayed
from rich.console import Console
from rich.table import Table
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from riskbayes import ProductOfExperts, QuadraticDiscriminantAnalysis, SmoothNB
from riskbayes.estimators.family import fold_posteriors
from riskbayes.estimators.member import ANCHOR, RATE, Member
from riskbayes.learners import RC
from riskbayes_paper.datasets import PAPER_TABULAR, load_csv

SPLITS = (0, 1, 2, 100, 101, 102, 103, 104)
SHOWN = (0, 8, 16, 24, 32)


@dataclass(frozen=True)
class Setting:
    """The recipe, but for what is said here."""

    strength: float = 5.0
    """Rows a column that the prior of the covariances counts as."""
    mix: float = 0.3
    alpha: float = 5.0
    n_knots: int = 6
    powers: tuple[float, float] = (0.25, 0.25)
    rate: float = RATE
    anchor: float = ANCHOR

    def member(self, n: int) -> Member:
        """Its product, for n columns."""
        gaussian = QuadraticDiscriminantAnalysis(
            prior="recommended", covariance_strength=self.strength * n, diagonal_mix=self.mix
        )
        experts = [gaussian, SmoothNB(n_knots=self.n_knots, alpha=self.alpha)]
        return Member("", ProductOfExperts(experts, list(self.powers)))

    def learner(self, n_iter: int) -> RC:
        """How it is trained."""
        return RC(lr=self.rate, max_iter=n_iter, monitor="log_loss", generative_weight=self.anchor)


SETTINGS = {
    "the recipe": Setting(),
    "powers 1/2": Setting(powers=(0.5, 0.5)),
    "powers 0.15": Setting(powers=(0.15, 0.15)),
    "powers 0.3 and 0.2": Setting(powers=(0.3, 0.2)),
    "powers 0.2 and 0.3": Setting(powers=(0.2, 0.3)),
    "prior of 2 n rows": Setting(strength=2.0),
    "prior of 20 n rows": Setting(strength=20.0),
    "half of the diagonal": Setting(mix=0.5),
    "one pseudo-count a knot": Setting(alpha=1.0),
    "20 pseudo-counts a knot": Setting(alpha=20.0),
    "8 knots": Setting(n_knots=8),
    "steps of 0.1": Setting(rate=0.1),
    "steps of 0.6": Setting(rate=0.6),
    "no anchor": Setting(anchor=0.0),
    "anchor 0.3": Setting(anchor=0.3),
    "before: 1/2, half, 1, steps of 0.1": Setting(mix=0.5, alpha=1.0, powers=(0.5, 0.5), rate=0.1),
}


def errors(name: str, split: int) -> list[list[float]]:
    """Held-out errors of every setting along its path."""
    data = load_csv(name).cut(MOST_ROWS)
    codes = data.y
    kept, held = train_test_split(np.arange(len(codes)), test_size=0.25, random_state=split)
    found = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for setting in SETTINGS.values():
            learner = setting.learner(SHOWN[-1])
            member, r = setting.member(data.X.shape[1]), int(codes.max()) + 1
            P = fold_posteriors(member, data.X, codes, None, kept, held, r, learner, SHOWN)
            found.append([100 * (p.argmax(axis=1) != codes[held]).mean() for p in P])
    return found


def main() -> None:
    units = [(name, split) for split in SPLITS for name in PAPER_TABULAR]
    rows = Parallel(os.cpu_count())(delayed(errors)(*unit) for unit in units)
    found = np.array(rows).reshape(len(SPLITS), len(PAPER_TABULAR), len(SETTINGS), len(SHOWN))
    table = Table(
        "setting",
        *(f"{scans} scans" for scans in SHOWN),
        "to the recipe, 24 scans",
        title=f"Held out, {len(PAPER_TABULAR)} sets, splits {', '.join(map(str, SPLITS))}",
    )
    at = SHOWN.index(24)
    for i, name in enumerate(SETTINGS):
        gap = (found[:, :, i, at] - found[:, :, 0, at]).mean(axis=1)
        error = gap.std(ddof=1) / np.sqrt(len(gap))
        means = found[:, :, i].mean(axis=(0, 1))
        cells = (f"{mean:.2f}" for mean in means)
        table.add_row(name, *cells, f"{gap.mean():+.2f} ± {error:.2f}" if i else "")
    Console(width=130).print(table)


if __name__ == "__main__":
    main()
