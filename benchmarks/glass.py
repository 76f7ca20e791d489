"""The recipe, its tables of columns and of pairs, and the ensemble, on the splits that they are composed on.

    RISKBAYES_DATA=FOLDER python benchmarks/glass.py            # runs what is missing, then prints
    RISKBAYES_DATA=FOLDER python benchmarks/glass.py --print    # the summary of the committed table

The tables are those of FOLDER/mixed and FOLDER/mixed_more, the numbers the fifteen sets of the paper; those
above 3000 rows are cut to 3000. Splits 100 and 101 (75/25) compose and judge nothing. One thread each.
"""

import os
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
from family import ONE_FIT as FAMILY_METHODS
from mixed import CatBoost
from study import Part, Study, judged, spread

from riskbayes import RiskBayesClassifier
from riskbayes.estimators import glass, glass_search, risk_bayes
from riskbayes.estimators.family import family
from riskbayes.estimators.kinds import Kinds
from riskbayes_paper.datasets import PAPER_TABULAR

TABLES = (
    *("annealing", "bank_marketing", "car_evaluation", "credit_approval", "german_credit", "heart_cleveland"),
    *(
        "hepatitis",
        "horse_colic",
        "house_votes_84",
        "kr_vs_kp",
        "nursery",
        "ozone_8hr",
        "penguins_raw",
        "sick",
    ),
    *("telco_churn", "tic_tac_toe", "titanic"),
)

METHODS = {
    "single": "single",
    "glass, tables only": "glass",
    "glass": "glass",
    "ensemble without glass": "ensemble",
    "ensemble": "ensemble",
    "CatBoost": None,
}
"""The strategy of each method."""


def without_glass(kinds: Kinds) -> list:
    """The family without the product with tables."""
    return [member for member in family(kinds) if not isinstance(member, glass_search.GlassMember)]


CHANGES = {
    "glass, tables only": (glass, "PAIRS_PER_COLUMN", 0),
    "ensemble without glass": (risk_bayes, "family", without_glass),
}
"""What a method changes in the library."""


class Glass(Study):
    """Tables as data frames, and sets of numbers."""

    name, splits, methods = "glass", (100, 101), tuple(METHODS)
    figures = ("error", "log_loss", "seconds")
    sets = (*TABLES, *PAPER_TABULAR)
    most_rows = 3000

    def load(self, name: str):
        if name in PAPER_TABULAR:
            return super().load(name)
        folder = Path(os.environ["RISKBAYES_DATA"])
        place = next(folder.glob(f"mixed*/{name}.csv.gz"))
        X = pd.read_csv(place, keep_default_na=False, na_values=[""])
        if len(X) > self.most_rows:
            X = X.sample(self.most_rows, random_state=0).reset_index(drop=True)
        return X.drop(columns="target"), np.unique(X["target"].astype(str), return_inverse=True)[1]

    def fit(self, methods, part: Part) -> dict[str, dict]:
        (method,) = methods
        change = patch.object(*CHANGES[method]) if method in CHANGES else nullcontext()
        with change:
            found = judged(self.make(method, part), part)
        return {method: {name: found[name] for name in self.figures}}

    def make(self, method: str, part: Part):
        """A strategy of ours, or CatBoost of data frames or of numbers."""
        if method in CHANGES or METHODS[method]:
            return RiskBayesClassifier(METHODS[method], random_state=0)
        return CatBoost() if part.set in TABLES else FAMILY_METHODS["CatBoost"]()

    def show(self) -> None:
        """Compare methods on the sets and splits that all of them have."""
        found = self.frame()
        found = found[found["method"].isin(self.methods) & found["split"].isin(self.splits)]
        wide = found.pivot(index=["set", "split"], columns="method", values=list(self.figures)).dropna()
        for title, own in (("tables", TABLES), ("numbers", PAPER_TABULAR)):
            part = wide[wide.index.get_level_values("set").isin(own)]
            if not len(part):
                continue
            means = 100 * part["error"][list(self.methods)].groupby(level="set").mean()
            print(f"{len(means)} {title}, {len(part)} fits of each method\n")
            for method in self.methods:
                gap = means[method] - means[self.methods[0]]
                print(
                    f"{method:24s} error {100 * part['error'][method].mean():.2f} %, log loss "
                    f"{part['log_loss'][method].mean():.4f}, median of seconds "
                    f"{part['seconds'][method].median():.2f}; against {self.methods[0]} {gap.mean():+.2f} ± "
                    f"{spread(gap.to_numpy()):.2f}, better on {(gap < 0).sum()}, worse on {(gap > 0).sum()}"
                )
            print("\nerror in percent\n", means.round(2).to_string(), "\n")


if __name__ == "__main__":
    Glass().main()
