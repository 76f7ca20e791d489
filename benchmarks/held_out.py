"""Closed form against RC.paper() on the paper's 15 tabular sets, held out and in-train.

held out: 5 random 75/25 splits; bins and models see the training rows only.
in-train: bins and models see all rows, and are tested on the same 25 % of them.

Naive Bayes by ML in five k-means bins; QDA by ML with eigenvalues floored at 1e-2. Errors in
percent, train/test. Below, the largest differences from the reference figures of a separate NumPy
prototype (another implementation, other splits), quoted in REFERENCE.

Run: RISKBAYES_DATA=<folder of csv.gz files> python benchmarks/held_out.py
"""

import warnings

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.model_selection import train_test_split

from riskbayes import CategoricalNB, FlooredWarning, QuadraticDiscriminantAnalysis
from riskbayes.experiments.datasets import PAPER_TABULAR, load_csv
from riskbayes.learners import RC, ClosedForm
from riskbayes.preprocessing import KMeansBins

SPLITS = range(5)
# (held-out ML, held-out RC, in-train ML, in-train RC), each (train, test) error in percent.
REFERENCE = {
    ("sonar", "QDA"): [(0, 24), (0, 24), (0, 0), (0, 0)],
    ("splice", "QDA"): [(2, 19), (0, 18), (3, 2), (0, 0)],
    ("german_numer", "QDA"): [(20, 29), (9, 28), (21, 22), (12, 12)],
    ("qsar", "QDA"): [(23, 26), (3, 15), (24, 25), (4, 5)],
    ("vehicle", "QDA"): [(9, 16), (3, 17), (10, 9), (4, 5)],
    ("satellite", "QDA"): [(11, 15), (2, 13), (12, 12), (3, 4)],
    ("indian_liver", "QDA"): [(45, 47), (29, 36), (46, 47), (32, 32)],
    ("sonar", "NB"): [(13, 25), (0, 19), (16, 13), (0, 0)],
    ("splice", "NB"): [(9, 10), (2, 8), (8, 7), (2, 3)],
    ("climate_model", "NB"): [(3, 8), (1, 9), (4, 4), (1, 2)],
    ("magic", "NB"): [(25, 25), (17, 18), (25, 25), (17, 18)],
    ("adult_coded", "NB"): [(17, 18), (16, 16), (18, 18), (16, 16)],
}


def errors(model: str, learner, X, y, X_test, y_test) -> tuple[float, float]:
    """Train and test error in percent."""
    if model == "NB":
        bins = KMeansBins().fit(X)
        X, X_test = bins.transform(X), bins.transform(X_test)
        clf = CategoricalNB(alpha=0, learner=learner)
    else:
        clf = QuadraticDiscriminantAnalysis(covariance_floor=1e-2, learner=learner)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FlooredWarning)  # ML: that is what the floor is for
        clf.fit(X, y)
    return 100 * (1 - clf.score(X, y)), 100 * (1 - clf.score(X_test, y_test))


def main() -> None:
    console, results = Console(width=120), {}
    for name in track(PAPER_TABULAR, description="data sets", console=Console(stderr=True)):
        data = load_csv(name)
        for split in SPLITS:
            X, X_test, y, y_test = train_test_split(data.X, data.y, test_size=0.25, random_state=split)
            for model in ("NB", "QDA"):
                for protocol, (A, b) in {"held out": (X, y), "in-train": (data.X, data.y)}.items():
                    for learner in (ClosedForm(), RC.paper()):
                        key = name, model, protocol, type(learner).__name__
                        results.setdefault(key, []).append(errors(model, learner, A, b, X_test, y_test))
    columns = [(p, k) for p in ("held out", "in-train") for k in ("ClosedForm", "RC")]
    titles = [f"{p} {'ML' if k == 'ClosedForm' else k}" for p, k in columns]
    table = Table("data, model", *titles, "reference")
    gaps = []
    for name in PAPER_TABULAR:
        for model in ("NB", "QDA"):
            cells = [np.mean(results[name, model, *column], axis=0) for column in columns]
            known = REFERENCE.get((name, model))
            if known:
                gaps += [
                    (abs(ours - theirs), f"{name} {model}, {p} {k} {part}: {ours:.1f} here, {theirs} there")
                    for (p, k), cell, figures in zip(columns, cells, known, strict=True)
                    for part, ours, theirs in zip(("train", "test"), cell, figures, strict=True)
                ]
            quoted = "  ".join(f"{a}/{b}" for a, b in known) if known else ""
            table.add_row(f"{name}, {model}", *(f"{a:.1f}/{b:.1f}" for a, b in cells), quoted)
    console.print(table)
    for model in ("NB", "QDA"):
        ml, rc = (
            np.array([np.mean(results[name, model, "held out", k], axis=0)[1] for name in PAPER_TABULAR])
            for k in ("ClosedForm", "RC")
        )
        console.print(
            f"{model}, held out, mean test error over {len(ml)} sets: ML {ml.mean():.2f}, RC {rc.mean():.2f}"
        )
        console.print(
            f"  RC is better by more than 0.1 on {(ml - rc > 0.1).sum()}, worse on {(rc - ml > 0.1).sum()}"
        )
    beyond = [gap for gap in sorted(gaps, reverse=True) if gap[0] > 2]
    console.print(f"{len(gaps) - len(beyond)} of {len(gaps)} figures within two points of the reference")
    for _, line in beyond:
        console.print("  beyond: " + line)


if __name__ == "__main__":
    main()
