"""Rows without a label: does EM on them help, where 5 % of the training rows have one?

Five sets, five random 75/25 splits; of the training rows 5 % keep their label, drawn class by class, two rows
or more of each class. Mean held-out error in percent of the model fitted to

- labelled:  the labelled rows
- light:     all training rows with `unlabelled=-1`, and `sample_weight` such that the unlabelled rows weigh
             as much together as the labelled ones
- full:      the same, with weight one for every row
- all:       all training rows with all labels, for scale

    RISKBAYES_DATA=<folder> python benchmarks/unlabelled.py > benchmarks/results/unlabelled.txt
"""

import warnings

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from riskbayes import FlooredWarning, GaussianNB, LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from riskbayes_paper.datasets import load_csv

SETS, SPLITS, SHARE = ("satellite", "optdigits", "vehicle", "german_numer", "pulsar"), range(5), 0.05
MODELS = {
    "GaussianNB": GaussianNB(),
    "LDA": LinearDiscriminantAnalysis(),
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


def main() -> None:
    warnings.simplefilter("ignore", FlooredWarning)
    table = Table(
        "set",
        "model",
        "learner",
        *WAYS,
        "gain, light",
        "gain, full",
        title="Held-out error, percent, 5 % of the labels",
    )
    gains: dict[tuple[str, str], list[np.ndarray]] = {}
    for name in SETS:
        data = load_csv(name)
        for kind, model in MODELS.items():
            for learner in ("closed_form", "rc"):
                found = []
                for split in SPLITS:
                    X, X_test, y, y_test = train_test_split(
                        data.X, data.y, test_size=0.25, random_state=split, stratify=data.y
                    )
                    part = hidden(y, np.random.default_rng(split))
                    known = part >= 0
                    w = np.where(known, 1.0, known.sum() / (~known).sum())
                    with threadpool_limits(1):
                        fits = (
                            model.set_params(learner=learner).fit(X[known], y[known]).predict(X_test),
                            model.fit(X, part, w, unlabelled=-1).predict(X_test),
                            model.fit(X, part, unlabelled=-1).predict(X_test),
                            model.fit(X, y).predict(X_test),
                        )
                    found.append([100 * np.mean(predicted != y_test) for predicted in fits])
                errors = np.array(found)
                gaps = errors[:, :1] - errors[:, 1:3]
                gains.setdefault((kind, learner), []).append(gaps.mean(axis=0))
                spread = gaps.std(axis=0, ddof=1) / np.sqrt(len(gaps))
                table.add_row(
                    name,
                    kind,
                    learner,
                    *(f"{e:.2f}" for e in errors.mean(axis=0)),
                    *(f"{g:+.2f} ± {s:.2f}" for g, s in zip(gaps.mean(axis=0), spread, strict=True)),
                )
        table.add_section()
    for (kind, learner), by_set in gains.items():
        mean, better = np.mean(by_set, axis=0), (np.array(by_set) > 0).sum(axis=0)
        ends = (f"{g:+.2f}, on {b} of {len(by_set)}" for g, b in zip(mean, better, strict=True))
        table.add_row("mean, sets won", kind, learner, *[""] * len(WAYS), *ends)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
