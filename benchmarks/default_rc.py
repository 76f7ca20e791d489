"""Which setting should `learner="rc"` be? Held-out errors on the paper's 15 tabular sets.

Splits are `train_test_split(test_size=.25, random_state=0..7)`; sets above 8000 rows are cut to 8000 by
a fixed seed; bins, scales and priors see training rows only. Candidates were compared on splits 0 to 2;
what was chosen is judged on splits 3 to 7. Every fit is a row of `benchmarks/results/default_rc.csv`.

    RISKBAYES_DATA=<folder> python benchmarks/default_rc.py            # fit, then print
    python benchmarks/default_rc.py --print                            # print what is there
"""

import argparse
import csv
import os
import warnings
from pathlib import Path
from time import perf_counter

import numpy as np
from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import riskbayes
from riskbayes.learners import DFE, GD, RC, RCCV, TM, ClosedForm
from riskbayes.preprocessing import KMeansBins
from riskbayes_paper.datasets import PAPER_TABULAR, load_csv

RESULTS = Path(__file__).parent / "results" / "default_rc.csv"
FIELDS = (
    "set",
    "split",
    "model",
    "learner",
    "error",
    "brier",
    "calibration_error",
    "log_loss",
    "n_iter",
    "seconds",
)
DECIDE, JUDGE = range(3), range(3, 8)
MOST_ROWS = 8000


def models(n: int) -> dict:
    """The models. 'QDA, prior': 20 n rows' worth of half the pooled covariance, half its diagonal."""
    shrunk = riskbayes.QuadraticDiscriminantAnalysis(covariance_strength=20 * n, diagonal_mix=0.5)
    return {
        "NB": make_pipeline(KMeansBins(), riskbayes.CategoricalNB(alpha=1, class_alpha=1)),
        "QDA, prior": make_pipeline(shrunk),
        "QDA": make_pipeline(riskbayes.QuadraticDiscriminantAnalysis()),
        "GaussianNB": make_pipeline(riskbayes.GaussianNB()),
        "LDA": make_pipeline(riskbayes.LinearDiscriminantAnalysis()),
    }


def candidates() -> dict:
    """Settings compared on the first splits only."""
    fixed = {
        f"fixed, g={g}": RC(monitor="objective", generative_weight=g) for g in (0, 0.03, 0.1, 0.3, "auto")
    }
    adaptive = {f"adaptive, g={g}": RC(step="adaptive", generative_weight=g) for g in (0, 0.03, 0.1, 0.3)}
    soft = {
        f"adaptive soft error, g={g}": RC(objective="soft_error", step="adaptive", generative_weight=g)
        for g in (0, 0.1)
    }
    return fixed | adaptive | soft


LEARNERS = {
    "closed form": ClosedForm(),
    "RC.paper": RC.paper(),
    "rc (default)": RC.recommended(),
    "TM": TM(),
    "GD": GD(),
    "DFE": DFE(),
    "RCCV": RCCV(random_state=0),
}
ONLY = {"DFE": {"NB"}, "RCCV": {"NB", "QDA, prior"}}
PEERS = {
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
    "hist. gradient boosting": HistGradientBoostingClassifier(random_state=0),
    "random forest": RandomForestClassifier(random_state=0),
}


def measures(P: np.ndarray, y: np.ndarray) -> dict:
    """Error, Brier score, calibration error of the chosen label in 15 bins, log loss."""
    row, label = np.arange(len(y)), P.argmax(axis=1)
    confidence, right = P.max(axis=1), label == y
    bins = np.minimum((confidence * 15).astype(int), 14)
    gaps = [abs((confidence - right)[bins == b].sum()) for b in range(15)]
    return {
        "error": 1 - right.mean(),
        "brier": ((P - np.eye(P.shape[1])[y]) ** 2).sum(axis=1).mean(),
        "calibration_error": sum(gaps) / len(y),
        "log_loss": -np.log(np.maximum(P[row, y], 1e-15)).mean(),
    }


def fit_all(name: str, split: int) -> list[dict]:
    """Every model and learner on one split of one set."""
    data = load_csv(name).cut(MOST_ROWS)
    X, X_test, y, y_test = train_test_split(data.X, data.y, test_size=0.25, random_state=split)
    jobs = [("peers", peer, clone(clf)) for peer, clf in PEERS.items()]
    learners = LEARNERS | (candidates() if split in DECIDE else {})
    for model, pipeline in models(X.shape[1]).items():
        for learner, how in learners.items():
            if model in ONLY.get(learner, {model}):
                clf = clone(pipeline)
                clf[-1].set_params(learner=clone(how))
                jobs.append((model, learner, clf))
    rows = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # floors of ML on small classes, rare classes missing from a fold
        for model, learner, clf in jobs:
            start = perf_counter()
            clf.fit(X, y)
            spent = perf_counter() - start
            found = measures(clf.predict_proba(X_test), y_test)
            last = clf[-1] if hasattr(clf, "steps") else clf
            steps = int(np.max(getattr(last, "n_iter_", 0)))
            rows.append(
                {
                    "set": name,
                    "split": split,
                    "model": model,
                    "learner": learner,
                    **found,
                    "n_iter": steps,
                    "seconds": spent,
                }
            )
    return rows


def run(jobs: int) -> None:
    """Fit everything that the table lacks; rows are written as they come."""
    RESULTS.parent.mkdir(exist_ok=True)
    done = {(row["set"], row["split"]) for row in read()} if RESULTS.exists() else set()
    todo = [(n, s) for s in (*DECIDE, *JUDGE) for n in PAPER_TABULAR if (n, str(s)) not in done]
    new = not RESULTS.exists()
    with RESULTS.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if new:
            writer.writeheader()
        parts = Parallel(jobs, return_as="generator_unordered")(delayed(fit_all)(*unit) for unit in todo)
        for rows in track(parts, total=len(todo), description="sets x splits", console=Console(stderr=True)):
            for row in rows:
                writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()})
            file.flush()


def read() -> list[dict]:
    with RESULTS.open(newline="") as file:
        return list(csv.DictReader(file))


def show() -> None:
    """Mean error over sets; the paired difference to the closed form with its standard error over splits."""
    rows, console = read(), Console(width=170)
    values = {(r["model"], r["learner"], r["set"], int(r["split"])): r for r in rows}

    def grid(model: str, learner: str, splits: range, field: str) -> np.ndarray:
        return np.array([[float(values[model, learner, n, s][field]) for s in splits] for n in PAPER_TABULAR])

    for title, splits in (
        ("splits 0 to 2, on which the choice was made", DECIDE),
        ("splits 3 to 7, fresh", JUDGE),
        ("splits 0 to 7, all of them", range(DECIDE.start, JUDGE.stop)),
    ):
        table = Table(
            *("model", "learner", "error %", "below closed form", "better", "worse", "worst set"),
            *("Brier", "calib. error", "scans", "seconds"),
            title=f"Held out, {len(PAPER_TABULAR)} sets, {title}",
        )
        pairs = dict.fromkeys((r["model"], r["learner"]) for r in rows if int(r["split"]) == splits[-1])
        for model, learner in pairs:
            error = 100 * grid(model, learner, splits, "error")
            by_split = error.mean(axis=0)
            cells = [
                model,
                learner,
                f"{error.mean():.2f} ± {by_split.std(ddof=1) / np.sqrt(len(splits)):.2f}",
            ]
            if model == "peers":
                cells += ["", "", "", ""]
            else:
                gap = error - 100 * grid(model, "closed form", splits, "error")
                by_set, by_split = gap.mean(axis=1), gap.mean(axis=0)
                spread = gap.std(axis=1, ddof=1) / np.sqrt(len(splits))
                worst = int(np.argmax(by_set - np.maximum(1.0, spread)))
                mark = "!" if by_set[worst] > max(1.0, spread[worst]) else ""
                cells += [
                    f"{-gap.mean():.2f} ± {by_split.std(ddof=1) / np.sqrt(len(splits)):.2f}",
                    f"{(by_set < -0.1).sum()}",
                    f"{(by_set > 0.1).sum()}",
                    f"{PAPER_TABULAR[worst]} {by_set[worst]:+.2f} ± {spread[worst]:.2f}{mark}",
                ]
            cells += [f"{grid(model, learner, splits, f).mean():.3f}" for f in ("brier", "calibration_error")]
            cells += [f"{grid(model, learner, splits, 'n_iter').mean():.0f}"]
            cells += [f"{grid(model, learner, splits, 'seconds').mean():.2f}"]
            table.add_row(*cells, end_section=False)
        console.print(table)
    console.print(
        "better, worse: sets whose mean error is lower or higher by more than 0.1. worst set: the largest "
        "mean difference to the closed form, ± its standard error over splits; '!' where it is more than one "
        "point and more than that error. scans, seconds: mean of a fit, one thread."
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--print", action="store_true", help="only print the table of results")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    if not options.print:
        run(options.jobs)
    show()
