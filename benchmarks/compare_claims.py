"""How often the verdict of `compare` is wrong: claims about noise, and "nothing" about a rare class.

    python benchmarks/compare_claims.py    # prints benchmarks/results/compare_claims.txt
    python benchmarks/compare_claims.py --splits 0,1,2 --methods all --jobs 2

Noise: a target drawn without regard to the columns, in tables of 10 to 1000 rows and two to five classes,
with numbers, categories and missing cells. Rare: one row in 200 is positive, and one column of 40000 rows is
shifted for it such that its true AUC is 0.75. By default the closed forms, MixedNB by RC and logistic
regression take part, which takes minutes; with `--methods all` every model that `compare` fits, which takes
an hour.
"""

import re

import numpy as np
import pandas as pd
from scipy.stats import norm
from study import Study, Unit

from riskbayes.compare.contenders import candidates
from riskbayes.compare.data import Data
from riskbayes.compare.splits import make_split
from riskbayes.compare.study import contenders, run_study
from riskbayes.compare.verdict import verdict

NOISE, RARE = 200, 100
"""Tables of each kind."""

ROWS, LEAST, MOST = 40_000, 10, 1000
"""Rows of a table with a rare class, and the range of those of a table of noise."""

AUC, SHARE = 0.75, 1 / 200

SOME = re.compile("closed form|MixedNB|logistic|majority")
"""The models that take part by default."""


def noise(rng: np.random.Generator) -> pd.DataFrame:
    """A table whose target has nothing to do with its columns; its size is uniform in the logarithm."""
    m = round(np.exp(rng.uniform(np.log(LEAST), np.log(MOST))))
    r = int(rng.choice([2, 2, 3, 5])) if m >= 80 else 2
    shares = np.maximum(rng.dirichlet(np.full(r, 3.0)), 0.05)
    labels = rng.choice([f"class {i}" for i in range(r)], m, p=shares / shares.sum())
    while np.unique(labels, return_counts=True)[1].max() < 5 or len(np.unique(labels)) < 2:
        labels = rng.choice([f"class {i}" for i in range(r)], m)
    table = pd.DataFrame(
        {
            "normal": rng.normal(size=m),
            "skewed": rng.exponential(size=m),
            "few": rng.choice(list("xyz"), m),
            "many": rng.choice([f"k{i}" for i in range(12)], m),
            "target": labels,
        }
    )
    table.loc[rng.random(m) < 0.1, "normal"] = np.nan
    return table


def rare(rng: np.random.Generator) -> pd.DataFrame:
    """A table with one positive row in 200, and one column that ranks rows with an AUC of 0.75."""
    y = np.zeros(ROWS, dtype=int)
    y[rng.choice(ROWS, round(SHARE * ROWS), replace=False)] = 1
    shift = np.sqrt(2) * norm.ppf(AUC)
    return pd.DataFrame(
        {
            "a": rng.normal(size=ROWS) + shift * y,
            "b": rng.normal(size=ROWS),
            "c": rng.choice(list("xyz"), ROWS),
            "target": np.where(y == 1, "yes", "no"),
        }
    )


class Claims(Study):
    """Tables by their seeds, in place of splits, and the verdict on each."""

    name, splits, methods, figures = "compare_claims", range(NOISE), ("some",), ("verdict",)
    sets, kind = ("noise", "rare"), str

    def units(self) -> list[Unit]:
        return [u for u in super().units() if u.set == "noise" or u.split < RARE]

    def run_job(self, job: tuple[Unit, ...]) -> list[dict]:
        """The verdict on a table, without the rest of the report."""
        (unit,) = job
        table = (noise if unit.set == "noise" else rare)(np.random.default_rng(unit.split))
        data = Data.of(table, "target", time_column=None, group=None, max_rows=len(table), seed=0)
        models = candidates(data, ("single",), 0)
        models = [c for c in models if unit.method == "all" or SOME.search(c.name)]
        study = run_study(data, make_split(data, None, 0), models)
        return [unit._asdict() | {"verdict": verdict(study, contenders(study), ())}]

    def show(self) -> None:
        """Print the shares, and every verdict that is wrong."""
        texts = {name: {} for name in self.sets}
        for unit in self.units():
            if unit in self.records:
                texts[unit.set][unit.split] = self.records[unit]["verdict"]
        found, missed = texts["noise"], texts["rare"]
        claims = {i: text for i, text in found.items() if not text.startswith("Nothing about")}
        for seed, text in claims.items():
            print(f"noise {seed}: {text}")
        print(
            f"{len(found)} tables of noise, {LEAST} to {MOST} rows: the verdict claims something about "
            f"{len(claims)} ({100 * len(claims) / max(len(found), 1):.1f} %)."
        )
        lost = sum(text.startswith("Nothing about") for text in missed.values())
        print(
            f"{len(missed)} tables of {ROWS} rows with a class of one row in {1 / SHARE:.0f} and a true AUC "
            f'of {AUC}: the verdict is "nothing" for {lost} ({100 * lost / max(len(missed), 1):.1f} %).'
        )
        if missed:
            print("The first of them:", next(iter(missed.values())))


if __name__ == "__main__":
    Claims().main()
