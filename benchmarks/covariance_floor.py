"""How small may calibration make a covariance, and what stands in where the rows do not determine it?

Mean held-out error in percent and log loss over the paper's 15 tabular sets, splits 0 to 2, sets above 8000
rows cut to 8000. `floor`: the least share of its closed form that calibration leaves each class in every
direction (`covariance_floor`). `share`: what of the pooled covariance stands in for directions that the rows
of a class do not determine; the library takes all of it.

    RISKBAYES_DATA=<folder> python benchmarks/covariance_floor.py > benchmarks/results/covariance_floor.txt
"""

import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from default_rc import MOST_ROWS, measures
from joblib import Parallel, delayed
from rich.console import Console
from rich.table import Table
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from riskbayes import GenerativeClassifier
from riskbayes.learners import RC, TM, ClosedForm
from riskbayes.models import GaussianNBModel, LDAModel, QDAModel
from riskbayes_paper.datasets import PAPER_TABULAR, load_csv

FLOORS = (0.1, 1e-2, 1e-3, 1e-4, 1e-8)
SHARES = (1.0, 0.1, 1e-2, 1e-4)


@dataclass(frozen=True)
class SharedQDAModel(QDAModel):
    """QDA with a share of the pooled covariance where the rows of a class do not determine theirs."""

    share: float = 1.0

    def completion(self, *args):
        """A share of what the model adds."""
        found, missing = super().completion(*args)
        return None if found is None else self.share * found, missing


def settings(n: int) -> Iterator[tuple]:
    """(model, learner) by name, floor and share, for n columns."""
    rc, paper = RC.recommended(), RC.paper()
    for share in SHARES:
        yield "QDA", "closed form", None, share, SharedQDAModel(share=share), ClosedForm()
        yield "QDA", "rc", 1e-2, share, SharedQDAModel(share=share), rc
    for floor in FLOORS:
        shrunk = QDAModel(covariance_floor=floor, covariance_strength=20 * n, diagonal_mix=0.5)
        yield "QDA", "rc", floor, 1.0, QDAModel(covariance_floor=floor), rc
        yield "QDA", "RC.paper", floor, 1.0, QDAModel(covariance_floor=floor), paper
        yield "QDA", "TM", floor, 1.0, QDAModel(covariance_floor=floor), TM()
        yield "QDA, prior", "rc", floor, 1.0, shrunk, rc
        yield "LDA", "rc", floor, 1.0, LDAModel(covariance_floor=floor), rc
        yield "GaussianNB", "rc", floor, 1.0, GaussianNBModel(covariance_floor=floor), rc


def fit_all(name: str, split: int) -> dict[tuple, tuple[float, float]]:
    """Error and log loss of every setting on one split of one set."""
    data = load_csv(name).cut(MOST_ROWS)
    X, X_test, y, y_test = train_test_split(data.X, data.y, test_size=0.25, random_state=split)
    found = {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for *key, model, learner in settings(X.shape[1]):
            clf = GenerativeClassifier(model, learner).fit(X, y)
            measured = measures(clf.predict_proba(X_test), y_test)
            found[tuple(key)] = measured["error"], measured["log_loss"]
    return found


if __name__ == "__main__":
    units = [(name, split) for split in range(3) for name in PAPER_TABULAR]
    parts = Parallel(os.cpu_count())(delayed(fit_all)(*unit) for unit in units)
    table = Table(
        "model", "learner", "floor", "share", "error %", "log loss", title="Held out, splits 0 to 2"
    )
    for key in parts[0]:
        error, loss = np.mean([part[key] for part in parts], axis=0)
        model, learner, floor, share = key
        table.add_row(model, learner, f"{floor or ''}", f"{share:g}", f"{100 * error:.2f}", f"{loss:.3f}")
    Console(width=100).print(table)
