"""Costs: train for them, or train as usual and decide for the least expected cost?

One class's errors are ten times as dear as the others'. On the paper's 15 tabular sets, five random
75/25 splits, the mean held-out cost of

- trained, largest posterior:  RC(objective=C), the largest of `predict_proba`
- trained, least cost:         RC(objective=C), `predict`
- plain, least cost:           RC(step="adaptive"), `decide(X, C)`
- default, least cost:         learner="rc", `decide(X, C)`

Categorical naive Bayes in five bins; the dear class is the rarest. Sets above 8000 rows are cut to 8000.
Run: RISKBAYES_DATA=<folder of csv.gz files> python benchmarks/costs.py
"""

import numpy as np
from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from riskbayes import CategoricalNB
from riskbayes.learners import RC
from riskbayes.preprocessing import KMeansBins
from riskbayes_paper.datasets import PAPER_TABULAR, load_csv

SPLITS = range(5)
WAYS = ("trained, largest posterior", "trained, least cost", "plain, least cost", "default, least cost")


def held_out_costs(name: str, split: int) -> list[float]:
    data = load_csv(name).cut(8000)
    X, y = data.X, data.y
    r = y.max() + 1
    C = 1.0 - np.eye(r)
    C[np.bincount(y).argmin()] *= 10.0
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=split)
    if len(np.unique(y)) < r:
        raise ValueError(f"{name}, split {split}: a class has no training row.")
    bins = KMeansBins().fit(X)
    X, X_test = bins.transform(X), bins.transform(X_test)

    def cost(decided: np.ndarray) -> float:
        return C[y_test, decided].mean()

    with threadpool_limits(1):
        trained = CategoricalNB(learner=RC(objective=C, step="adaptive")).fit(X, y)
        plain = CategoricalNB(learner=RC(step="adaptive")).fit(X, y)
        default = CategoricalNB().fit(X, y)
    return [
        cost(trained.predict(X_test)),
        *(cost(clf.decide(X_test, C)) for clf in (trained, plain, default)),
    ]


def main() -> None:
    units = [(n, s) for n in PAPER_TABULAR for s in SPLITS]
    found = Parallel(-1, return_as="generator")(delayed(held_out_costs)(*unit) for unit in units)
    rows = list(track(found, total=len(units), description="sets x splits", console=Console(stderr=True)))
    costs = np.array(rows).reshape(len(PAPER_TABULAR), len(SPLITS), len(WAYS))
    table = Table("data set", *WAYS, title="Mean held-out cost, one class ten times as dear")
    for name, by_split in zip(PAPER_TABULAR, costs, strict=True):
        table.add_row(name, *(f"{c:.3f}" for c in by_split.mean(axis=0)))
    means = costs.mean(axis=1)
    table.add_section()
    table.add_row("mean", *(f"{c:.3f}" for c in means.mean(axis=0)))
    console = Console(width=130)
    console.print(table)
    for i in range(2):
        gap = (costs[:, :, 2] - costs[:, :, i]).mean(axis=0)
        console.print(
            f"{WAYS[i]} against {WAYS[2]}: lower on {(means[:, i] < means[:, 2]).sum()} of {len(means)}, "
            f"on average by {gap.mean():.3f} ± {gap.std(ddof=1) / np.sqrt(len(gap)):.3f}"
        )


if __name__ == "__main__":
    main()
