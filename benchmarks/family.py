"""How accurate is `RiskBayesClassifier`? Held-out errors on the paper's 15 tabular sets, beside its peers.

Splits are `train_test_split(test_size=.25, random_state=8..12)`; sets above 8000 rows are cut to 8000 by a
fixed seed; everything is chosen inside the training rows. The recipe and the family were composed on splits
0 to 2 and 100 to 104 (`benchmarks/compose.py`). Peers have their defaults, columns scaled for those that ask
for it; those of other packages are in the group `bench`. Every fit is a row of
`benchmarks/results/family.csv`; units that are there are not run again. "cv" and "ensemble" share one walk of
the family's paths, whose folds have the seed 0. "Ensemble, forest for leaves" is the control: a plain forest
of the same trees in place of the leaves that RC calibrates.

    RISKBAYES_DATA=<folder> python benchmarks/family.py            # fit, then print
    python benchmarks/family.py --print                            # print what is there
    python benchmarks/family.py --doc doc/accuracy.md              # write the page and its picture from it
    RISKBAYES_DATA=<folder> python benchmarks/family.py --time     # speed: results/family_time.txt
"""

import argparse
import csv
import os
import resource
import sys
import warnings
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np
from catboost import CatBoostClassifier
from compose import forest
from default_rc import MOST_ROWS, measures
from joblib import Parallel, delayed
from lightgbm import LGBMClassifier
from rich.console import Console
from rich.progress import track
from rich.table import Table
from skbn import AnDE, WeightedAnDE
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from riskbayes import CategoricalNB, RiskBayesClassifier
from riskbayes.estimators.family import (
    cross_validate,
    family,
    fold_posteriors,
    folds_of,
    recipe,
)
from riskbayes.estimators.kinds import of_numbers
from riskbayes.estimators.member import CHECKPOINTS
from riskbayes.learners import RC
from riskbayes.preprocessing import KMeansBins
from riskbayes.search import HeldOut
from riskbayes_paper.datasets import PAPER_TABULAR, load_csv

RESULTS = Path(__file__).parent / "results" / "family.csv"
FIELDS = ("set", "split", "method", "error", "log_loss", "brier", "calibration_error", "seconds")
SPLITS = range(8, 13)
SEED = 0

ONE_FIT = {
    "RC.paper NB": lambda: make_pipeline(
        KMeansBins(), CategoricalNB(alpha=1, class_alpha=1, learner=RC.paper())
    ),
    "single, closed form": lambda: recipe(0),
    "single": lambda: RiskBayesClassifier(),
    "single, 8 iterations": lambda: recipe(8),
    "single, g = 0.3": lambda: recipe().set_params(learner__generative_weight=0.3),
    "single, calibrated": lambda: CalibratedClassifierCV(RiskBayesClassifier(), cv=4),
    "neighbours": lambda: RiskBayesClassifier("neighbours"),
    "logistic regression": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
    "RBF SVC": lambda: make_pipeline(StandardScaler(), SVC()),
    "random forest": lambda: RandomForestClassifier(random_state=SEED),
    "hist. gradient boosting": lambda: HistGradientBoostingClassifier(random_state=SEED),
    "CatBoost": lambda: CatBoostClassifier(
        verbose=False, random_seed=SEED, thread_count=1, allow_writing_files=False
    ),
    "LightGBM": lambda: LGBMClassifier(verbose=-1, n_jobs=1, random_state=SEED),
    "AnDE": lambda: make_pipeline(KMeansBins(), AnDE()),
    "weighted AnDE": lambda: make_pipeline(KMeansBins(), WeightedAnDE()),
}
CONTROL = "ensemble, forest for leaves"
CHOICES = {
    "cv": lambda found, closed: found.best(),
    "cv, closed forms only": lambda found, closed: closed.best(),
    "ensemble": lambda found, closed: found.ensemble(),
    "ensemble, closed forms only": lambda found, closed: closed.ensemble(),
}
OURS = ("RC.paper NB", "single, closed form", "single", "neighbours", *CHOICES, CONTROL)
PEERS = (
    *("logistic regression", "RBF SVC", "random forest", "hist. gradient boosting", "CatBoost", "LightGBM"),
    *("AnDE", "weighted AnDE"),
)
PARTIAL = "explainable boosting"
"""Of `benchmarks/explainable_boosting.py`, which did not end on all sets."""
REMEDIES = ("single, 8 iterations", "single, g = 0.3", "single, calibrated")


def one_split(name: str, split: int) -> tuple[np.ndarray, ...]:
    data = load_csv(name).cut(MOST_ROWS)
    return train_test_split(data.X, data.y, test_size=0.25, random_state=split)


def fit_all(name: str, split: int) -> list[dict]:
    """Every method on one split of one set."""
    X, X_test, y, y_test = one_split(name, split)
    n, rows = X.shape[1], []

    def record(method: str, P: np.ndarray | None, label: np.ndarray, seconds: float) -> None:
        blank = dict.fromkeys(("brier", "calibration_error", "log_loss"), "")
        found = measures(P, y_test) if P is not None else {"error": (label != y_test).mean(), **blank}
        rows.append({"set": name, "split": split, "method": method, **found, "seconds": seconds})

    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rare classes missing from a fold
        for method, make in ONE_FIT.items():
            start = perf_counter()
            clf = make().fit(X, y)
            spent = perf_counter() - start
            knows = hasattr(clf, "predict_proba")
            P = spread(clf.predict_proba(X_test), clf.classes_, y, y_test) if knows else None
            record(method, P, clf.predict(X_test), spent)
        start, members = perf_counter(), family(of_numbers(n))
        folds = folds_of(4, y, None, SEED)
        found, _ = cross_validate(members, X, y, None, folds, combine=True)
        walked = perf_counter() - start
        closed = HeldOut(found.y, None, int(y.max()) + 1, combine=True)
        for member in members:
            parts = [fold_posteriors(member, X, y, None, *fold, int(y.max()) + 1) for fold in folds]
            closed.add([part[:1] for part in parts])
        for method, choose in CHOICES.items():
            start, P = perf_counter(), 0.0
            for (i, place), weight in choose(found, closed).items():
                clf = members[i].with_iterations(CHECKPOINTS[place]).fit(X, y)
                P = P + weight * clf.predict_proba(X_test)
            record(method, P, P.argmax(axis=1), walked + perf_counter() - start)
        rows.append(control(name, split))
    return rows


def control(name: str, split: int) -> dict:
    """The ensemble with a plain forest of the trees of "leaves" in their place."""
    X, X_test, y, y_test = one_split(name, split)
    start, members, r = perf_counter(), family(of_numbers(X.shape[1])), int(y.max()) + 1
    rows, codes = np.concatenate([X, X_test]), np.concatenate([y, y_test])
    test = np.arange(len(y)), np.arange(len(y), len(codes))
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folds = folds_of(4, y, None, SEED)
        found = HeldOut(y[np.concatenate([held for _, held in folds])], None, r, combine=True)
        for member in members:
            plain = member.name == "leaves"
            posteriors = forest if plain else partial(fold_posteriors, member)
            found.add([posteriors(X, y, *(() if plain else (None,)), *fold, r) for fold in folds])
        P = 0.0
        for (i, place), weight in found.ensemble().items():
            if members[i].name == "leaves":
                own = forest(rows, codes, *test, int(codes.max()) + 1)[0][:, :r]
            else:
                own = members[i].with_iterations(CHECKPOINTS[place]).fit(X, y).predict_proba(X_test)
            P = P + weight * own
    seconds = perf_counter() - start
    return {"set": name, "split": split, "method": CONTROL, **measures(P, y_test), "seconds": seconds}


def one_fit(method: str, name: str, split: int) -> dict:
    """One method that is one fit, on one split of one set."""
    X, X_test, y, y_test = one_split(name, split)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = perf_counter()
        clf = ONE_FIT[method]().fit(X, y)
        spent = perf_counter() - start
        P = spread(clf.predict_proba(X_test), clf.classes_, y, y_test)
    return {"set": name, "split": split, "method": method, **measures(P, y_test), "seconds": spent}


def fit_again(method: str, jobs: int) -> None:
    """Replace the rows of one method in the table of results."""
    work = control if method == CONTROL else partial(one_fit, method)
    todo = [(name, split) for split in SPLITS for name in PAPER_TABULAR]
    fresh = Parallel(jobs)(delayed(work)(*unit) for unit in todo)
    kept = [row for row in read() if row["method"] != method]
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        for row in (*kept, *fresh):
            writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()})


def spread(P: np.ndarray, classes: np.ndarray, y: np.ndarray, y_test: np.ndarray) -> np.ndarray:
    """Posteriors with a column for every code, seen in training or not."""
    full = np.zeros((len(P), 1 + max(y.max(), y_test.max())))
    full[:, classes] = P
    return full


def run(jobs: int) -> None:
    """Fit every unit that the table lacks; rows are written as they come."""
    RESULTS.parent.mkdir(exist_ok=True)
    done = {(row["set"], row["split"]) for row in read()} if RESULTS.exists() else set()
    todo = [(n, s) for s in SPLITS for n in PAPER_TABULAR if (n, str(s)) not in done]
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


class Study:
    """The long table, as sets x splits of every method; only splits that all sets have."""

    def __init__(self, rows: list[dict]):
        self.values = {(r["method"], r["set"], int(r["split"])): r for r in rows}
        found = {(r["set"], int(r["split"])) for r in rows}
        self.splits = [s for s in SPLITS if all((n, s) in found for n in PAPER_TABULAR)]

    def grid(self, method: str, field: str = "error") -> np.ndarray:
        """Values of a field, sets x splits; NaN where a method has none."""
        found = [[self.values.get((method, n, s), {}) for s in self.splits] for n in PAPER_TABULAR]
        return np.array([[float(cell.get(field) or "nan") for cell in row] for row in found])

    def gap(self, a: str, b: str) -> tuple[float, float, int, int]:
        """Mean error of a less that of b in points, its standard error over splits, sets better and worse."""
        points = (100 * (self.grid(a) - self.grid(b))).round(9)  # so that equal errors are a tie
        by_set, by_split = points.mean(axis=1).round(9), points.mean(axis=0)
        error = by_split.std(ddof=1) / np.sqrt(len(by_split)) if len(by_split) > 1 else float("nan")
        return points.mean(), error, int((by_set < 0).sum()), int((by_set > 0).sum())

    def summary(self) -> list[list[str]]:
        """A row a method: error, also without red wine, and the paired gaps to two peers."""
        rows = []
        for method in (*OURS, *PEERS):
            cells = [method, f"{100 * self.grid(method).mean():.2f}"]
            cells.append(
                f"{100 * np.delete(self.grid(method), PAPER_TABULAR.index('redwine'), 0).mean():.2f}"
            )
            for peer in ("random forest", "CatBoost"):
                gap, error, better, worse = self.gap(method, peer)
                cells.append("" if method == peer else f"{gap:+.2f} ± {error:.2f}, {better}:{worse}")
            rows.append(cells)
        return rows

    def probabilities(self) -> list[list[str]]:
        """Log loss, Brier score, calibration error and seconds of a fit."""
        fields = ("log_loss", "brier", "calibration_error", "seconds")
        methods = [m for m in (*OURS, *REMEDIES, *PEERS) if m != "RBF SVC"]
        return [
            [m, f"{100 * self.grid(m).mean():.2f}", *(f"{self.grid(m, f).mean():.3f}" for f in fields)]
            for m in methods
        ]

    def loss_gap(self, a: str, b: str) -> tuple[float, float]:
        """Mean log loss of a less that of b, and its standard error over splits."""
        by_split = (self.grid(a, "log_loss") - self.grid(b, "log_loss")).mean(axis=0)
        return by_split.mean(), by_split.std(ddof=1) / np.sqrt(len(by_split))

    def by_set(self) -> list[list[str]]:
        """Mean error of each set."""
        methods = ("single", "neighbours", "cv", "ensemble", *PEERS)
        grids = [100 * self.grid(m).mean(axis=1) for m in methods]
        return [[n, *(f"{g[i]:.2f}" for g in grids)] for i, n in enumerate(PAPER_TABULAR)]


HEADS = {
    "summary": ("method", "error %", "without red wine", "to the random forest", "to CatBoost"),
    "probabilities": ("method", "error %", "log loss", "Brier", "calibration error", "seconds"),
    "by_set": ("set", "single", "neighbours", "cv", "ensemble", *PEERS),
}


def show(study: Study) -> None:
    console = Console(width=170)
    for name, head in HEADS.items():
        table = Table(*head, title=f"Held out, {len(PAPER_TABULAR)} sets, splits {study.splits}: {name}")
        for row in getattr(study, name)():
            table.add_row(*row)
        console.print(table)
    for a, b, what in (
        ("single", "single, closed form", "what RC is worth to the single recipe"),
        ("cv", "cv, closed forms only", "what RC is worth to the choice by cross-validation"),
        ("ensemble", "ensemble, closed forms only", "what RC is worth to the ensemble"),
        ("ensemble", "RC.paper NB", "the ensemble against RC.paper NB"),
        ("ensemble", CONTROL, "leaves that RC calibrates against a plain forest of the same trees"),
        ("ensemble", "CatBoost", "the ensemble against CatBoost"),
        ("neighbours", "single", "the neighbours beside the recipe"),
    ):
        gap, error, better, worse = study.gap(a, b)
        console.print(f"{what}: {gap:+.2f} ± {error:.2f} points, better on {better}, worse on {worse} sets")
    gap, error = study.loss_gap("ensemble", "CatBoost")
    console.print(f"log loss of the ensemble less that of CatBoost: {gap:+.4f} ± {error:.4f}")


def time_fits() -> None:
    """Seconds to fit, beside CatBoost in two threads; large tables, memory, and prediction."""
    from mixed import CatBoost, names, table
    from mixed import measured as fit_and_judge

    console = Console(width=110)
    found = Table("set", "rows x columns, classes", "single", "neighbours", "ensemble", "CatBoost", "ratio")
    ratios, warm, strategies = [], load_csv("iris"), ("single", "neighbours", "ensemble")

    def two_threads():
        return ONE_FIT["CatBoost"]().set_params(thread_count=2)

    for strategy in strategies:  # what is imported once
        RiskBayesClassifier(strategy, random_state=SEED).fit(warm.X, warm.y).predict(warm.X)
    for name in (*PAPER_TABULAR, *names()):
        tabular = name in PAPER_TABULAR
        whole = () if tabular else table(name)
        parts = one_split(name, 0) if tabular else train_test_split(*whole, test_size=0.25, random_state=100)
        methods = [partial(RiskBayesClassifier, s, random_state=SEED) for s in strategies]
        methods.append(two_threads if tabular else partial(CatBoost, 2))
        X, X_test, y, y_test = parts
        seconds = [fit_and_judge(make, X, y, X_test, y_test)["seconds"] for make in methods]
        ratios.append(seconds[2] / seconds[3])
        shape = f"{X.shape[0]} x {X.shape[1]}, {len(set(y))}"
        found.add_row(name, shape, *(f"{t:.2f}" for t in seconds), f"{ratios[-1]:.2f}")
    console.print(found)
    median = f"median over {len(ratios)} sets: {np.median(ratios):.2f}"
    console.print(f"{os.cpu_count()} cores; ensemble / CatBoost, {median}")
    rng = np.random.default_rng(0)
    for m, n, r in ((15000, 16, 26), (100000, 20, 2)):
        y = rng.integers(r, size=m)
        X = rng.standard_normal((m, n)) + rng.standard_normal((r, n))[y] / 2
        before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, perf_counter()
        clf = RiskBayesClassifier("ensemble", random_state=SEED).fit(X, y)
        middle, peak = perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        clf.predict(X[:10000])
        console.print(
            f"{m} x {n}, {r} classes: the ensemble fits in {middle - start:.1f} s, predicts 10000 rows in "
            f"{perf_counter() - middle:.2f} s; the peak of resident memory rose from {before / 1024:.0f} to "
            f"{peak / 1024:.0f} MB, where the rows have {X.nbytes / 2**20:.0f}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--print", action="store_true", help="only print the table of results")
    parser.add_argument("--doc", type=Path, help="write the page of results to this file")
    parser.add_argument("--time", action="store_true", help="only measure speed")
    parser.add_argument("--again", metavar="METHOD", help="only fit this method again, in place of its rows")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    if options.again:
        fit_again(options.again, options.jobs)
    if options.time:
        time_fits()
        sys.exit()
    if not (options.print or options.doc or options.again):
        run(options.jobs)
    study = Study(read())
    show(study)
    if options.doc:
        from family_page import write

        write(study, options.doc)
