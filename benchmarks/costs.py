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
from rich.console import Console
from study import Part, Study, print_table, spread

from riskbayes import CategoricalNB
from riskbayes.learners import RC
from riskbayes.preprocessing import KMeansBins

WAYS = ("trained, largest posterior", "trained, least cost", "plain, least cost", "default, least cost")


class Costs(Study):
    """Ways to train and to decide."""

    name, splits, methods, figures = "costs", range(5), WAYS, ("cost",)
    n_shared = 0

    def fit(self, methods, part: Part) -> dict[str, dict]:
        y_all = self.data(part.set)[1]
        C = 1.0 - np.eye(y_all.max() + 1)
        C[np.bincount(y_all).argmin()] *= 10.0
        if len(np.unique(part.y)) < len(C):
            raise ValueError(f"{part.set}, split {part.split}: a class has no training row.")
        bins = KMeansBins().fit(part.X)
        X, X_test = bins.transform(part.X), bins.transform(part.X_test)
        trained = CategoricalNB(learner=RC(objective=C, step="adaptive", generative_weight=0.0)).fit(
            X, part.y
        )
        plain = CategoricalNB(learner=RC(step="adaptive", generative_weight=0.0)).fit(X, part.y)
        default = CategoricalNB().fit(X, part.y)
        largest = trained.classes_[trained.predict_proba(X_test).argmax(axis=1)]
        decided = [largest, *(clf.decide(X_test, C) for clf in (trained, plain, default))]
        return {way: {"cost": C[part.y_test, d].mean()} for way, d in zip(WAYS, decided, strict=True)}

    def show(self) -> None:
        costs = np.stack([self.grid(way, "cost") for way in WAYS])
        means = costs.mean(axis=2)
        rows = [[name, *(f"{c:.3f}" for c in each)] for name, each in zip(self.sets, means.T, strict=True)]
        rows += [[], ["mean", *(f"{c:.3f}" for c in means.mean(axis=1))]]
        print_table("Mean held-out cost, one class ten times as dear", ("data set", *WAYS), rows, 130)
        for i in range(2):
            gap = (costs[2] - costs[i]).mean(axis=0)
            Console(width=130).print(
                f"{WAYS[i]} against {WAYS[2]}: lower on {(means[i] < means[2]).sum()} of {len(self.sets)}, "
                f"on average by {gap.mean():.3f} ± {spread(gap):.3f}"
            )


if __name__ == "__main__":
    Costs().main()
