"""Categorical naive Bayes at 70000 x 512 x 10: 64 RC iterations against scikit-learn's fit and predict.

Two tables of five values a feature: the MNIST stand-in (512 SqueezeNet features) cut into five levels, where
posteriors saturate and few rows have a residual, and uniform noise, where all do. Both sides run in this
process, in turn; the median of three is taken. The extra `fast` must be installed.
Run: RISKBAYES_DATA=<folder with mnist.npz> python benchmarks/categorical_speed.py
"""

from collections.abc import Callable
from time import perf_counter

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.naive_bayes import CategoricalNB as TheirNB
from threadpoolctl import threadpool_info

from riskbayes import CategoricalNB
from riskbayes.experiments.datasets import data_folder
from riskbayes.learners import RC

TURNS = 3


def seconds(*jobs: Callable[[], object]) -> list[float]:
    """The median time of each job, in turn."""
    spent = np.empty((TURNS, len(jobs)))
    for turn in range(TURNS):
        for i, job in enumerate(jobs):
            start = perf_counter()
            job()
            spent[turn, i] = perf_counter() - start
    return np.median(spent, axis=0).tolist()


def five_levels(q: np.ndarray) -> np.ndarray:
    low, high = q.min(axis=0).astype(float), q.max(axis=0).astype(float)
    return np.minimum((q - low) / np.maximum(high - low, 1e-9) * 5, 4).astype(np.uint8)


def main() -> None:
    stored = np.load(data_folder() / "mnist.npz")
    y = stored["y"]
    tables = {
        "MNIST stand-in": five_levels(stored["q"]),
        "uniform noise": np.random.default_rng(0).integers(5, size=(len(y), 512)).astype(np.uint8),
    }
    CategoricalNB(learner=RC(max_iter=1)).fit(tables["MNIST stand-in"][:8000], y[:8000])  # compile once
    threads = max(pool["num_threads"] for pool in threadpool_info())
    table = Table("table", "what", "riskbayes, s", "scikit-learn, s", "ratio", "at most")
    table.title = f"Categorical naive Bayes, {len(y)} x 512, 10 classes, float64, {threads} threads"
    for name, X in tables.items():
        ours, theirs = CategoricalNB(learner="closed_form").fit(X, y), TheirNB().fit(X, y)
        rc = CategoricalNB(learner=RC(monitor="log_loss"))
        fit, their_fit, predict, their_predict, calibrate = seconds(
            lambda X=X: CategoricalNB(learner="closed_form").fit(X, y),
            lambda X=X: TheirNB().fit(X, y),
            lambda X=X, ours=ours: ours.predict_log_proba(X),
            lambda X=X, theirs=theirs: theirs.predict_log_proba(X),
            lambda X=X, rc=rc: rc.fit(X, y),
        )
        bar = "0.75" if name.startswith("MNIST") else "1.5"
        both = their_fit + their_predict
        table.add_row(
            name, "closed form, fit", f"{fit:.2f}", f"{their_fit:.2f}", f"{fit / their_fit:.2f}", "0.25"
        )
        table.add_row(
            *(name, "predict_log_proba", f"{predict:.2f}", f"{their_predict:.2f}"),
            *(f"{predict / their_predict:.2f}", "0.25"),
        )
        whole = calibrate * 64 / max(rc.n_iter_, 1)
        table.add_row(
            *(name, f"RC, {rc.n_iter_} iterations, scaled to 64, against fit + predict"),
            *(f"{whole:.2f}", f"{both:.2f}", f"{whole / both:.2f}", bar),
        )
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
