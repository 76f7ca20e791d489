"""The training soft error that RC reaches: the paper's rule against the natural gradient of the soft error.

`RC(objective="soft_error", step="adaptive")` against `RC.paper()`, at most 64 scans each, on all rows of
the paper's 15 tabular sets (in-train): naive Bayes by ML in five bins, and QDA by ML.
Run: RISKBAYES_DATA=<folder of csv.gz files> python benchmarks/soft_error.py
"""

import warnings

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from riskbayes import CategoricalNB, FlooredWarning, QuadraticDiscriminantAnalysis
from riskbayes.learners import RC
from riskbayes.preprocessing import KMeansBins
from riskbayes_paper.datasets import PAPER_TABULAR, load_csv

LEARNERS = {"paper": RC.paper(), "soft error": RC(objective="soft_error", step="adaptive")}


def main() -> None:
    table = Table("data set", *(f"{m}, {k}" for m in ("NB", "QDA") for k in ("closed form", *LEARNERS)))
    table.title = "Training soft error (in-train)"
    gaps: dict[str, list[float]] = {"NB": [], "QDA": []}
    for name in track(PAPER_TABULAR, description="data sets", console=Console(stderr=True)):
        data = load_csv(name)
        cells = []
        for model, clf, X in (
            ("NB", CategoricalNB(alpha=0), KMeansBins().fit_transform(data.X)),
            ("QDA", QuadraticDiscriminantAnalysis(), data.X),
        ):
            reached = []
            for learner in LEARNERS.values():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", FlooredWarning)  # ML: that is what the floor is for
                    history = clf.set_params(learner=learner).fit(X, data.y).history_
                reached.append(history["soft_error"][history["accepted"]][-1])
            cells += [history["soft_error"][0], *reached]
            gaps[model].append(reached[0] - reached[1])
        table.add_row(name, *(f"{cell:.6f}" for cell in cells))
    console = Console(width=130)
    console.print(table)
    for model, gap in gaps.items():
        g = np.array(gap)
        lower, higher = (g > 1e-6).sum(), (g < -1e-6).sum()
        console.print(f"{model}: lower on {lower}, tied on {len(g) - lower - higher}, higher on {higher}")


if __name__ == "__main__":
    main()
