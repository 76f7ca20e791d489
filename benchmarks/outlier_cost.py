"""What does a fit cost more if it keeps the densities of training rows, for `outlier_score`?

Best of several fits in milliseconds, without and with them. A closed form does not keep them in the library;
here it is made to.

    python benchmarks/outlier_cost.py > benchmarks/results/outlier_cost.txt
"""

import warnings
from timeit import repeat

from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_iris, make_classification

from riskbayes import (
    FlooredWarning,
    GaussianNB,
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
    SmoothNB,
)
from riskbayes.estimators import fitting
from riskbayes.learners import RC, ClosedForm

KEEP = fitting.keep_densities
ROUNDS = 4


def not_kept(clf, engine) -> None:
    """Keep nothing."""


def kept(clf, engine) -> None:
    """Keep the densities after a closed form too."""
    learner, clf.learner_ = clf.learner_, RC()
    KEEP(clf, engine)
    clf.learner_ = learner


def best(clf, X, y, number: int) -> float:
    """The shortest of several fits, in milliseconds."""
    return 1e3 * min(repeat(lambda: clf.fit(X, y), number=1, repeat=number))


def main() -> None:
    warnings.simplefilter("ignore", FlooredWarning)
    options = {"n_informative": 8, "n_classes": 3, "random_state": 0}
    sets = {"150 x 4": load_iris(return_X_y=True)}
    sets |= {f"{m} x {n}": make_classification(m, n, **options) for m, n in [(1000, 20), (50000, 20)]}
    table = Table("rows", "estimator", "learner", "without, ms", "with, ms", "more, percent")
    for name, (X, y) in sets.items():
        for kind in (GaussianNB, LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis, SmoothNB):
            for learner in (ClosedForm(), RC()):
                if len(X) > 1000 and isinstance(learner, RC):
                    continue
                clf, found = kind(learner=learner), {not_kept: [], kept: []}
                for _ in range(ROUNDS):
                    for way in found:
                        fitting.keep_densities = way
                        found[way].append(best(clf, X, y, 10))
                a, b = (min(times) for times in found.values())
                row = (f"{a:.2f}", f"{b:.2f}", f"{100 * (b / a - 1):+.1f}")
                table.add_row(name, kind.__name__, type(learner).__name__, *row)
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
