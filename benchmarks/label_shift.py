"""Label shift: one class is ten times rarer in the test rows. What do `with_priors` and its estimate mend?

Five random 75/25 splits; in the test rows nine of ten rows of one class, in turn the frequent and the rare
one, are left out. Mean held-out error in percent of

- as fitted:  the classifier of the training rows
- estimated:  `clf.with_priors(clf.estimate_priors(X_test))`, without a label of the test rows
- true:       `clf.with_priors(frequencies of the test rows)`
- replaced:   as "estimated", but p(y) of the calibrated model is set to these frequencies, instead of being
              moved by their ratio to those of the training rows. The same for a closed form.

CategoricalNB reads five bins of each column. Sets above 20000 rows are cut to 20000.

    RISKBAYES_DATA=<folder> python benchmarks/label_shift.py    # prints results/label_shift.txt
"""

from itertools import product

import numpy as np
from rich.console import Console
from study import Part, Study, print_table, spread

from riskbayes import CategoricalNB, GaussianNB, RiskBayesClassifier, SmoothNB
from riskbayes.preprocessing import KMeansBins

THINNED = ("frequent class", "rare class")
WAYS = ("as fitted", "estimated", "true", "replaced")
CLASSIFIERS = {
    "GaussianNB, closed form": lambda: GaussianNB(learner="closed_form"),
    "GaussianNB": GaussianNB,
    "SmoothNB": SmoothNB,
    "CategoricalNB": CategoricalNB,
    "RiskBayesClassifier": lambda: RiskBayesClassifier("single"),
}


def errors(clf, X, y) -> list[float]:
    """Errors on shifted rows by the ways; NaN where there is no p(y) to replace."""
    estimated, true = clf.estimate_priors(X), np.bincount(y, minlength=len(clf.classes_)) / len(y)
    moved = [clf, clf.with_priors(estimated), clf.with_priors(true)]
    found = [np.mean(each.predict(X) != y) for each in moved]
    if isinstance(clf, RiskBayesClassifier):
        return [*found, np.nan]
    scores = clf.predict_log_proba(X) - clf.parameters_.log_prior + np.log(estimated)
    return [*found, np.mean(scores.argmax(axis=1) != y)]


def thinned(y: np.ndarray, label: int, rng: np.random.Generator) -> np.ndarray:
    """Rows without nine of ten of one class."""
    own = rng.permutation(np.flatnonzero(y == label))
    return np.sort(np.concatenate([np.flatnonzero(y != label), own[: max(1, len(own) // 10)]]))


class LabelShift(Study):
    """Classifiers by the class that is thinned and what is done about it."""

    name, splits, figures = "label_shift", range(5), ("error",)
    n_shared = 1
    sets, most_rows = ("adult_coded", "magic", "pulsar", "german_numer"), 20000
    methods = tuple(map(" | ".join, product(CLASSIFIERS, THINNED, WAYS)))

    def fit(self, methods, part: Part) -> dict[str, dict]:
        kind, X, X_test, found = methods[0].split(" | ")[0], part.X, part.X_test, {}
        if kind == "CategoricalNB":
            bins = KMeansBins().fit(X)
            X, X_test = bins.transform(X), bins.transform(X_test)
        clf, rng = CLASSIFIERS[kind]().fit(X, part.y), np.random.default_rng(part.split)
        common = int(np.bincount(self.data(part.set)[1]).argmax())
        for which, label in zip(THINNED, (common, 1 - common), strict=True):
            rows = thinned(part.y_test, label, rng)
            for way, error in zip(WAYS, errors(clf, X_test[rows], part.y_test[rows]), strict=True):
                found[f"{kind} | {which} | {way}"] = {"error": error}
        return found

    def show(self) -> None:
        cases, by_way, lines = [*product(CLASSIFIERS, THINNED)], {}, []
        for way in WAYS:  # sets x cases x splits
            by_way[way] = 100 * np.stack([self.grid(" | ".join((*case, way))) for case in cases], axis=1)
        for i, name in enumerate(self.sets):
            for k, case in enumerate(cases):
                lines.append([name, *case, *(f"{by_way[way][i, k].mean():.2f}" for way in WAYS)])
            lines.append([])
        heads = ("set", "classifier", "thinned", *WAYS)
        print_table("Held-out error, percent, with one class thinned", heads, lines, 120)
        fitted, estimated, true, replaced = by_way.values()
        lower = estimated.mean(axis=2) < fitted.mean(axis=2)
        gap = (fitted - estimated).mean(axis=(0, 1))
        Console(width=120).print(
            f"Mean over the table: {fitted.mean():.2f} as fitted, {estimated.mean():.2f} estimated, "
            f"{true.mean():.2f} true. Estimated is lower in {lower.sum()} of {lower.size}; on average by "
            f"{gap.mean():.2f} ± {spread(gap):.2f} points over the splits."
        )
        rows = ~np.isnan(replaced)
        Console(width=120).print(
            f"Without RiskBayesClassifier: estimated {estimated[rows].mean():.2f}, replaced "
            f"{replaced[rows].mean():.2f}."
        )


if __name__ == "__main__":
    LabelShift().main()
