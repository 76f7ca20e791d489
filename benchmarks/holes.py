"""A third of the cells removed: fitting with the holes, or filling them first?

    RISKBAYES_DATA=FOLDER python benchmarks/holes.py          # runs what is missing, then prints
    RISKBAYES_DATA=FOLDER python benchmarks/holes.py --print  # the summary of the committed table

Satellite, vehicle, qsar and optdigits (cut to 3000 rows), splits 0 to 4 (75/25), held-out error in percent.
Cells are removed from training and test rows alike, "at random" (30 %) or "by class": 10 % or 50 %, by a coin
that is thrown once for each class and column. "holes" leaves the missing cells out of the likelihood, "mask"
also models whether a cell is missing; "mean" and "iterative" are scikit-learn's imputers, fitted to the
training rows, before the same classifier; their seconds include the imputation.
"""

import argparse
import csv
import warnings
from itertools import product
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.model_selection import train_test_split

from riskbayes import (
    GaussianNB,
    ProductOfExperts,
    QuadraticDiscriminantAnalysis,
    RiskBayesClassifier,
    SmoothNB,
)
from riskbayes.learners import RC
from riskbayes_paper.datasets import load_csv

RESULTS = Path(__file__).parent / "results" / "holes.csv"
FIELDS = ("how", "set", "split", "model", "treatment", "error", "seconds")
WAYS = ("at random", "by class")
SETS, MOST_ROWS = ("satellite", "vehicle", "qsar", "optdigits"), 3000
LEARNER = RC(max_iter=24, lr=0.3, generative_weight=0.03, monitor="log_loss")
MODELS = {
    "Gaussian NB": lambda: GaussianNB(),
    "smooth NB": lambda: SmoothNB(),
    "QDA with a prior": lambda: QuadraticDiscriminantAnalysis(prior="recommended", learner=LEARNER),
}


NAMES = (*MODELS, "the recipe")
IMPUTERS = {
    "mean": lambda: SimpleImputer(keep_empty_features=True),
    "iterative": lambda: IterativeImputer(random_state=0, keep_empty_features=True),
}
TREATMENTS = ("holes", "mask", *IMPUTERS)


def classifier(model: str, treatment: str):
    """A model of the rows with holes, with their mask, or of filled rows."""
    if model == "the recipe":
        return RiskBayesClassifier(missing="ignore" if treatment == "holes" else "informative")
    clf = MODELS[model]()
    if treatment != "mask":
        return clf
    experts = [("numbers", clf, slice(None))]
    return ProductOfExperts(experts, missing="informative", learner=clf.learner)


def with_holes(X, y, how: str, seed: int):
    rng = np.random.default_rng(seed)
    share = 0.3
    if how == "by class":
        share = rng.choice([0.1, 0.5], size=(int(y.max()) + 1, X.shape[1]))[y]
    return np.where(rng.random(X.shape) < share, np.nan, X)


def run(splits, out: Path) -> None:
    """Fit what the table of results lacks."""
    done = set()
    if out.exists():
        with out.open() as file:
            done = {tuple(row[name] for name in FIELDS[:5]) for row in csv.DictReader(file)}
    with out.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if not done:
            writer.writeheader()
        for how, name, split, treatment in product(WAYS, SETS, splits, TREATMENTS):
            left = [m for m in NAMES if (how, name, str(split), m, treatment) not in done]
            if not left:
                continue
            data = load_csv(name).cut(MOST_ROWS)
            X = with_holes(data.X, data.y, how, split)
            A, B, y, y_test = train_test_split(X, data.y, test_size=0.25, random_state=split)
            start = perf_counter()
            if treatment in IMPUTERS:
                imputer = IMPUTERS[treatment]().fit(A)
                A, B = imputer.transform(A), imputer.transform(B)
            filled = perf_counter() - start
            for model in left:
                start = perf_counter()
                error = (classifier(model, treatment).fit(A, y).predict(B) != y_test).mean()
                values = (how, name, split, model, treatment, error, filled + perf_counter() - start)
                writer.writerow(dict(zip(FIELDS, values, strict=True)))
                file.flush()


def show() -> None:
    """Print the means over the splits, and the time of satellite."""
    study = pd.read_csv(RESULTS)
    print(f"Means over {study['split'].nunique()} splits: error in percent (seconds)\n")
    for how in WAYS:
        own = study[study["how"] == how]
        errors, seconds = (
            own.pivot_table(index=["model", "treatment"], columns="set", values=value, sort=False)[list(SETS)]
            for value in ("error", "seconds")
        )
        errors, seconds = (
            (100 * errors).assign(mean=100 * errors.mean(axis=1)),
            seconds.assign(mean=seconds.mean(axis=1)),
        )
        print(f"Cells removed {how}\n")
        print((errors.map("{:.1f}".format) + " (" + seconds.map("{:.1f}".format) + ")").to_string(), "\n")
        means = own.pivot_table(index=["model", "split"], columns="treatment", values="error") * 100
        for model in NAMES:
            for ours, other in (("holes", "mean"), ("holes", "iterative"), ("mask", "iterative")):
                gap = (means[ours] - means[other])[model]
                spread = gap.std() / len(gap) ** 0.5
                print(f"{model}: {ours} - {other} {gap.mean():+.2f} ± {spread:.2f} points")
        print()
    data = load_csv("satellite")
    X = with_holes(data.X, data.y, "at random", 0)[:4800]
    start = perf_counter()
    clf = MODELS["QDA with a prior"]().fit(X, data.y[:4800])
    print(f"satellite, 4800 x 36 x 6, QDA with a prior, {clf.n_iter_} scans: {perf_counter() - start:.1f} s")


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # the iterative imputer does not converge
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--splits", default="0,1,2,3,4", help="splits, separated by commas")
    parser.add_argument("--print", action="store_true", help="only print the summary")
    parser.add_argument("--out", type=Path, help="a table of its own for these splits; nothing is printed")
    given = parser.parse_args()
    if not given.print:
        run([int(split) for split in given.splits.split(",")], given.out or RESULTS)
    if given.out is None:
        show()
