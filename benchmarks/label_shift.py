"""Label shift: one class is ten times rarer in the test rows. What do `with_priors` and its estimate mend?

Five random 75/25 splits; in the test rows nine of ten rows of one class, in turn the frequent and the rare
one, are left out. Mean held-out error in percent of

- as fitted:  the classifier of the training rows
- estimated:  `clf.with_priors(clf.estimate_priors(X_test))`, without a label of the test rows
- true:       `clf.with_priors(frequencies of the test rows)`
- replaced:   as "estimated", but p(y) of the calibrated model is set to these frequencies, instead of being
              moved by their ratio to those of the training rows. The same for a closed form.

CategoricalNB reads five bins of each column. Sets above 20000 rows are cut to 20000.

    RISKBAYES_DATA=<folder> python benchmarks/label_shift.py > benchmarks/results/label_shift.txt
"""

import warnings

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from riskbayes import CategoricalNB, FlooredWarning, GaussianNB, RiskBayesClassifier, SmoothNB
from riskbayes.preprocessing import KMeansBins
from riskbayes_paper.datasets import load_csv

SETS, SPLITS, MOST_ROWS = ("adult_coded", "magic", "pulsar", "german_numer"), range(5), 20000
WAYS = ("as fitted", "estimated", "true", "replaced")
CLASSIFIERS = {
    "GaussianNB, closed form": lambda: GaussianNB(learner="closed_form"),
    "GaussianNB": GaussianNB,
    "SmoothNB": SmoothNB,
    "CategoricalNB": CategoricalNB,
    "RiskBayesClassifier": RiskBayesClassifier,
}


def errors(clf, X, y) -> list[float]:
    """Error of each way on shifted rows; NaN where there is no p(y) to replace."""
    estimated, true = clf.estimate_priors(X), np.bincount(y, minlength=len(clf.classes_)) / len(y)
    moved = [clf, clf.with_priors(estimated), clf.with_priors(true)]
    found = [100 * np.mean(each.predict(X) != y) for each in moved]
    if isinstance(clf, RiskBayesClassifier):
        return [*found, np.nan]
    scores = clf.predict_log_proba(X) - clf.parameters_.log_prior + np.log(estimated)
    return [*found, 100 * np.mean(scores.argmax(axis=1) != y)]


def thinned(y: np.ndarray, label: int, rng: np.random.Generator) -> np.ndarray:
    """Rows without nine of ten of one class."""
    own = rng.permutation(np.flatnonzero(y == label))
    return np.sort(np.concatenate([np.flatnonzero(y != label), own[: max(1, len(own) // 10)]]))


def main() -> None:
    warnings.simplefilter("ignore", FlooredWarning)
    console = Console(width=120)
    gains = []
    title = "Held-out error, percent, with one class thinned"
    table = Table("set", "classifier", "thinned", *WAYS, title=title)
    for name in SETS:
        data = load_csv(name).cut(MOST_ROWS)
        common = int(np.bincount(data.y).argmax())
        for kind, make in CLASSIFIERS.items():
            by_split = []
            for split in SPLITS:
                X, X_test, y, y_test = train_test_split(data.X, data.y, test_size=0.25, random_state=split)
                if kind == "CategoricalNB":
                    bins = KMeansBins().fit(X)
                    X, X_test = bins.transform(X), bins.transform(X_test)
                with threadpool_limits(1):
                    clf = make().fit(X, y)
                rng = np.random.default_rng(split)
                parts = [thinned(y_test, label, rng) for label in (common, 1 - common)]
                by_split.append([errors(clf, X_test[rows], y_test[rows]) for rows in parts])
            for k, which in enumerate(("frequent class", "rare class")):
                found = np.array(by_split)[:, k]
                gains.append(found)
                table.add_row(name, kind, which, *(f"{e:.2f}" for e in found.mean(axis=0)))
        table.add_section()
    console.print(table)
    whole = np.array(gains)
    mean = whole.mean(axis=(0, 1))
    lower = (whole.mean(axis=1)[:, 1] < whole.mean(axis=1)[:, 0]).sum()
    gap = (whole[:, :, 0] - whole[:, :, 1]).mean(axis=0)
    console.print(
        f"Mean over the table: {mean[0]:.2f} as fitted, {mean[1]:.2f} estimated, {mean[2]:.2f} true. "
        f"Estimated is lower in {lower} of {len(whole)}; on average by {gap.mean():.2f} ± "
        f"{gap.std(ddof=1) / np.sqrt(len(gap)):.2f} points over the splits."
    )
    rows = ~np.isnan(whole[:, 0, 3])
    console.print(
        f"Without RiskBayesClassifier: estimated {whole[rows][:, :, 1].mean():.2f}, replaced "
        f"{whole[rows][:, :, 3].mean():.2f}."
    )


if __name__ == "__main__":
    main()
