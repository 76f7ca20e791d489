"""Planted drift: does `clf.drift` name what moved, and how often does it raise a false alarm?

Half of the rows train MixedNB, a quarter are the reference, a quarter are new, in five tables of at most 4000
rows and 20 random splits: 100 cases of each of

- nothing:      the new rows as they are
- one column:   three quarters of a standard deviation is added to a random column of numbers
- two columns:  to two of them
- frequencies:  three of four new rows of a random one of the two most frequent classes are left out

"named right" is a verdict that is the planted one, and no other column than the planted ones. Also: the mean
absolute error of the estimated class frequencies, with posteriors calibrated on the reference rows or as they
are, and that of the accuracy on the new rows, which the estimate needs no labels for.

    RISKBAYES_DATA=<folder> python benchmarks/drift.py    # prints results/drift.txt
"""

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split
from study import Part, Study, markdown, print_table, write_between

from riskbayes import MixedNB
from riskbayes.datasets import load_adult_sample

PLANTS = {
    "nothing": "nothing",
    "one column": "columns",
    "two columns": "columns",
    "frequencies": "frequencies",
}


def planted(plant: str, X: pd.DataFrame, y: np.ndarray, rng: np.random.Generator):
    """New rows with a drift, their labels, and the columns that were moved."""
    if plant == "frequencies":
        label = rng.choice(np.argsort(-np.bincount(y))[:2])
        kept = (y != label) | (rng.random(len(y)) < 0.25)
        return X[kept], y[kept], set()
    number = ("nothing", "one column", "two columns").index(plant)
    wide = [name for name in X if X[name].dtype.kind in "iuf" and X[name].nunique() > 10]
    names = rng.choice(wide, number, replace=False)
    return X.assign(**{name: X[name] + 0.75 * X[name].std() for name in names}), y, set(names)


class Drift(Study):
    """Planted drifts of one fit."""

    name, splits, methods, n_shared = "drift", range(20), tuple(PLANTS), 0
    sets, most_rows = ("magic", "pulsar", "satellite", "optdigits", "adult"), 4000
    figures = ("named_right", "frequencies_error", "frequencies_error_uncalibrated", "accuracy_error")

    def load(self, name: str):
        if name == "adult":
            table = load_adult_sample()
            return table.drop(columns="income"), np.unique(table["income"], return_inverse=True)[1]
        X, y = super().load(name)
        return pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]), y

    def part(self, name: str, split: int) -> Part:
        return Part(name, split, *train_test_split(*self.data(name), test_size=0.5, random_state=split))

    def fit(self, methods, part: Part) -> dict[str, dict]:
        clf, found = MixedNB().fit(part.X, part.y), {}
        halves = train_test_split(part.X_test, part.y_test, test_size=0.5, random_state=part.split)
        X, X_new, y, y_new = halves
        for plant in methods:
            rng = np.random.default_rng((part.split, list(PLANTS).index(plant)))
            rows, labels, names = planted(plant, X_new, y_new, rng)
            shift = clf.drift(rows, X, y)
            true = np.bincount(labels, minlength=len(clf.classes_)) / len(labels)
            found[plant] = {
                "named_right": float(shift.verdict == PLANTS[plant] and set(shift.moved) == names),
                "frequencies_error": np.abs(shift.priors - true).mean(),
                "frequencies_error_uncalibrated": np.abs(clf.estimate_priors(rows) - true).mean(),
                "accuracy_error": abs(shift.accuracy_now - clf.score(rows, labels)),
            }
        return found

    def show(self) -> None:
        lines = []
        for plant in PLANTS:
            right, *errors = (self.grid(plant, figure) for figure in self.figures)
            by_set = [f"{int(row.sum())}" for row in right]
            means = [f"{100 * error.mean():.2f}" for error in errors]
            lines.append([plant, *by_set, f"{int(right.sum())} of {right.size}", *means])
        heads = ("planted", *self.sets, "named right", "frequencies", "uncalibrated", "accuracy")
        print_table("Named right, of 20 a set; mean absolute errors in percent", heads, lines, 120)
        heads = ("planted", "named right", *(f"{name}, off by %" for name in heads[-3:]))
        table = markdown(heads, [[line[0], *line[-4:]] for line in lines])
        write_between("guide/shift.md", "drift", table)


if __name__ == "__main__":
    Drift().main()
