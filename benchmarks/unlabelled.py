"""Rows without a label: does EM on them help, where 5 % of the training rows have one?

Five sets, five random 75/25 splits; of the training rows 5 % keep their label, drawn class by class, two rows
or more of each class. Mean held-out error in percent of the model fitted to

- labelled:  the labelled rows
- light:     all training rows with `unlabelled=-1`, and `sample_weight` such that the unlabelled rows weigh
             as much together as the labelled ones
- full:      the same, with weight one for every row
- all:       all training rows with all labels, for scale

    RISKBAYES_DATA=<folder> python benchmarks/unlabelled.py    # prints results/unlabelled.txt
"""

import numpy as np
from sklearn.base import clone
from study import Part, Study, print_table, spread

from riskbayes import GaussianNB, LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis

SHARE = 0.05
MODELS = {
    "GaussianNB": GaussianNB(prior=None),
    "LDA": LinearDiscriminantAnalysis(prior=None),
    "QDA, prior": QuadraticDiscriminantAnalysis(prior="recommended"),
}
WAYS = ("labelled", "light", "full", "all")


def hidden(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The labels with -1 for all but a share of each class."""
    found = np.full(len(y), -1)
    for k in np.unique(y):
        own = rng.permutation(np.flatnonzero(y == k))
        kept = own[: max(2, round(SHARE * len(own)))]
        found[kept] = k
    return found


class Unlabelled(Study):
    """Models by learners by what they are fitted to."""

    name, splits, figures = "unlabelled", range(5), ("error",)
    sets, most_rows = ("satellite", "optdigits", "vehicle", "german_numer", "pulsar"), None
    stratified = True
    pairs = tuple(f"{model} | {learner}" for model in MODELS for learner in ("closed_form", "rc"))
    methods = tuple(f"{pair} | {way}" for pair in pairs for way in WAYS)

    def fit(self, methods, part: Part) -> dict[str, dict]:
        kind, learner, way = methods[0].split(" | ")
        X, y, clf = part.X, part.y, clone(MODELS[kind]).set_params(learner=learner)
        labels = hidden(y, np.random.default_rng(part.split))
        known = labels >= 0
        w = np.where(known, 1.0, known.sum() / (~known).sum())
        if way in ("labelled", "all"):
            clf.fit(*((X, y) if way == "all" else (X[known], y[known])))
        else:
            clf.fit(X, labels, w if way == "light" else None, unlabelled=-1)
        return {methods[0]: {"error": (clf.predict(part.X_test) != part.y_test).mean()}}

    def show(self) -> None:
        heads = ("set", "model", "learner", *WAYS, "gain, light", "gain, full")
        rows = []
        errors = {pair: np.stack([100 * self.grid(f"{pair} | {w}") for w in WAYS]) for pair in self.pairs}
        gains = {pair: found[:1] - found[1:3] for pair, found in errors.items()}  # ways x sets x splits
        for i, name in enumerate(self.sets):
            for pair in self.pairs:
                means = (f"{e:.2f}" for e in errors[pair][:, i].mean(axis=1))
                ends = (f"{g.mean():+.2f} ± {spread(g):.2f}" for g in gains[pair][:, i])
                rows.append([name, *pair.split(" | "), *means, *ends])
            rows.append([])
        for pair, gain in gains.items():
            by_set = gain.mean(axis=2)
            ends = (f"{g.mean():+.2f}, on {(g > 0).sum()} of {len(g)}" for g in by_set)
            rows.append(["mean, sets won", *pair.split(" | "), *[""] * len(WAYS), *ends])
        print_table("Held-out error, percent, 5 % of the labels", heads, rows, 120)


if __name__ == "__main__":
    Unlabelled().main()
