"""Prediction sets: do they cover the true class as often as they say, and do they know a class nobody taught?

Half of the rows train, a quarter calibrate, a quarter test, on 20 random splits. At alpha = 0.1

- coverage: the share of test rows whose set holds their class, of eight sets; between 0.9 and 0.9 plus one
  over the number of calibration rows (for the density: of those of the class). The line "off by" is the
  distance from this in standard errors of the mean over the splits
- unseen class: rows of one class, in turn each, are only in the test rows, of sets with three classes or
  more: the share of these rows with the empty set, and that of the rows of known classes

Models: the posterior and the density within each class of RiskBayesClassifier("single") and of SmoothNB, and
a random forest of scikit-learn, whose sets are by the same rule from its votes.

    RISKBAYES_DATA=<folder> python benchmarks/prediction_sets.py    # prints results/prediction_sets.txt
"""

from itertools import product

import numpy as np
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from study import Part, Study, markdown, print_table, write_between

from riskbayes import RiskBayesClassifier, SmoothNB

ALPHA = 0.1
MODELS = {
    "recipe": lambda: RiskBayesClassifier("single"),
    "SmoothNB": SmoothNB,
    "forest": lambda: RandomForestClassifier(100, random_state=0),
}
WAYS = (*product(("recipe", "SmoothNB"), ("posterior", "density")), ("forest", "posterior"))
BUNDLED = {"breast_cancer": load_breast_cancer, "wine": load_wine}
SEVERAL = ("wine", "vehicle", "redwine", "satellite", "optdigits")
"""Sets with three classes or more."""


def forest_sets(clf, X_cal, y_cal, X):
    """The sets of the posterior: classes whose votes are not below a quantile of those of true classes."""
    own = np.sort(clf.predict_proba(X_cal)[np.arange(len(y_cal)), np.searchsorted(clf.classes_, y_cal)])
    P = clf.predict_proba(X)
    return 1 + np.searchsorted(own, P, side="right") > ALPHA * (len(own) + 1)


class PredictionSets(Study):
    """Coverage and the size of sets; empty sets of rows of an unseen class and of the others."""

    name, splits, n_shared = "prediction_sets", range(20), 1
    sets = ("wine", "breast_cancer", "vehicle", "german_numer", "qsar", "redwine", "satellite", "optdigits")
    most_rows = 2000
    figures = ("coverage", "least", "most", "size", "empty_unseen", "empty_known")
    methods = tuple(map(" | ".join, WAYS))

    def load(self, name: str):
        return BUNDLED[name](return_X_y=True) if name in BUNDLED else super().load(name)

    def part(self, name: str, split: int) -> Part:
        X, y = self.data(name)
        kept = np.bincount(y)[y] >= 40  # of fewer rows of a class hardly any would calibrate
        X, y = X[kept], np.unique(y[kept], return_inverse=True)[1]
        return Part(name, split, *train_test_split(X, y, test_size=0.25, random_state=split))

    def fit(self, methods, part: Part) -> dict[str, dict]:
        kind, found = methods[0].split(" | ")[0], {}
        rows = train_test_split(part.X, part.y, test_size=1 / 3, random_state=part.split)
        scores, y_cal = [method.split(" | ")[1] for method in methods], rows[3]
        made = self.made(kind, scores, rows, part.X_test)
        if part.set in SEVERAL:
            unseen = part.split % (part.y.max() + 1)
            known = [labels != unseen for labels in (rows[2], y_cal)] * 2
            taught = [rows_of[own] for rows_of, own in zip(rows, known, strict=True)]
            new = part.y_test == unseen
            others = self.made(kind, scores, taught, part.X_test)
        for i, (method, score) in enumerate(zip(methods, scores, strict=True)):
            sets = made[i]
            own = len(y_cal) if score == "posterior" else np.bincount(y_cal)[part.y_test]
            found[method] = {
                "coverage": sets[np.arange(len(part.y_test)), part.y_test].mean(),
                "least": 1 - ALPHA,
                "most": 1 - ALPHA + np.mean(1 / (own + 1)),
                "size": sets.sum(axis=1).mean(),
            }
            if part.set in SEVERAL:
                empty = ~others[i].any(axis=1)
                found[method] |= {"empty_unseen": empty[new].mean(), "empty_known": empty[~new].mean()}
        return found

    def made(self, kind, scores, rows, X_test):
        """The sets of test rows by each score."""
        X, X_cal, y, y_cal = rows
        clf = MODELS[kind]().fit(X, y)
        if kind == "forest":
            return [forest_sets(clf, X_cal, y_cal, X_test)]
        clf.conformalize(X_cal, y_cal)
        return [clf.predict_set(X_test, ALPHA, score=score) for score in scores]

    def show(self) -> None:
        lines = []
        for name in self.sets:
            for method in self.methods:
                figures = {f: self.grid(method, f)[list(self.sets).index(name)] for f in self.figures}
                mean = figures["coverage"].mean()
                error = figures["coverage"].std(ddof=1) / np.sqrt(len(self.splits))
                most = figures["most"].mean()
                off = max(mean - most, 0.0) / error + min(mean - (1 - ALPHA), 0.0) / error
                empty = [figures[f"empty_{rows}"] for rows in ("unseen", "known")]
                lines.append(
                    [
                        name,
                        method,
                        f"{100 * mean:.1f} ± {100 * error:.1f}",
                        f"{100 * most:.1f}",
                        f"{off:+.1f}",
                    ]
                    + [f"{figures['size'].mean():.2f}"]
                    + ["" if np.isnan(e).all() else f"{100 * np.nanmean(e):.1f}" for e in empty]
                )
            lines.append([])
        heads = ("set", "sets by", "coverage", "at most", "off by", "size", "empty, unseen", "empty, known")
        print_table("Sets at alpha = 0.1, percent", heads, lines, 130)
        within = [abs(float(line[4])) <= 2 for line in lines if line]
        found = []
        for method in self.methods:
            own = [line for line in lines if line and line[1] == method]
            covered = [100 * self.grid(method, "coverage")[i].mean() for i in range(len(self.sets))]
            rows = [list(self.sets).index(name) for name in SEVERAL]
            empty = [100 * np.nanmean(self.grid(method, f"empty_{of}")[rows]) for of in ("unseen", "known")]
            inside = sum(abs(float(line[4])) <= 2 for line in own)
            found.append(
                [
                    method.replace(" | ", ", "),
                    f"{min(covered):.1f} to {max(covered):.1f}",
                    f"{inside} of {len(own)}",
                    f"{self.grid(method, 'size').mean():.2f}",
                    *(f"{share:.1f}" for share in empty),
                ]
            )
        heads = ("sets by", "coverage, %", "as promised", "classes in a set", "empty, unseen class, %")
        table = markdown((*heads, "empty, known classes, %"), found)
        words = f"Coverage within two standard errors of what is promised: {sum(within)} of {len(within)}."
        print("\n".join([*table, words]))
        write_between("guide/sets.md", "prediction_sets", [*table, "", words])


if __name__ == "__main__":
    PredictionSets().main()
