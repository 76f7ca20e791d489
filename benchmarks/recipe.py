"""Why this recipe: its neighbours, on the splits that it was composed on (0 to 2 and 100 to 104).

Mean held-out error in percent over the paper's 15 tabular sets after so many scans, sets above 8000 rows cut
to 8000, and the paired difference to the recipe after 24 scans, ± its standard error over splits.

    RISKBAYES_DATA=<folder> python benchmarks/recipe.py    # prints benchmarks/results/recipe.txt
"""

from dataclasses import dataclass

import numpy as np
from study import Part, Study, print_table, spread

from riskbayes import ProductOfExperts, QuadraticDiscriminantAnalysis, SmoothNB
from riskbayes.estimators.family import fold_posteriors
from riskbayes.estimators.member import ANCHOR, RATE, Member
from riskbayes.learners import RC

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
        return RC(
            lr=self.rate, max_iter=n_iter, monitor="log_loss", step="fixed", generative_weight=self.anchor
        )


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


class Recipe(Study):
    """Settings by scans."""

    name, splits, figures = "recipe", (0, 1, 2, 100, 101, 102, 103, 104), ("error",)
    n_shared = 1
    methods = tuple(f"{setting} | {scans}" for setting in SETTINGS for scans in SHOWN)

    def fit(self, methods, part: Part) -> dict[str, dict]:
        """Held-out errors of a setting along its path."""
        name = methods[0].split(" | ")[0]
        setting, r = SETTINGS[name], 1 + int(max(part.y.max(), part.y_test.max()))
        X, y = np.concatenate([part.X, part.X_test]), np.concatenate([part.y, part.y_test])
        kept, held = np.split(np.arange(len(y)), [len(part.y)])
        learner, member = setting.learner(SHOWN[-1]), setting.member(X.shape[1])
        P = fold_posteriors(member, X, y, None, kept, held, r, learner, SHOWN)
        errors = [(p.argmax(axis=1) != part.y_test).mean() for p in P]
        return {f"{name} | {scans}": {"error": e} for scans, e in zip(SHOWN, errors, strict=True)}

    def show(self) -> None:
        shown = (*(f"{scans} scans" for scans in SHOWN), "to the recipe, 24 scans")
        title = f"Held out, {len(self.sets)} sets, splits {', '.join(map(str, self.splits))}"
        rows, base = [], self.grid("the recipe | 24")
        for name in SETTINGS:
            means = (f"{100 * self.grid(f'{name} | {scans}').mean():.2f}" for scans in SHOWN)
            gap = 100 * (self.grid(f"{name} | 24") - base).mean(axis=0)
            rows.append([name, *means, f"{gap.mean():+.2f} ± {spread(gap):.2f}" if rows else ""])
        print_table(title, ("setting", *shown), rows, 130)


if __name__ == "__main__":
    Recipe().main()
