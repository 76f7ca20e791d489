"""A third of the cells removed: fitting with the holes, or filling them first?

    RISKBAYES_DATA=FOLDER python benchmarks/holes.py > benchmarks/results/holes.txt

Satellite, vehicle, qsar and optdigits (cut to 3000 rows), splits 0 to 4 (75/25), held-out error in percent.
Cells are removed from training and test rows alike, "at random" (30 %) or "by class": 10 % or 50 %, by a coin
that is thrown once for each class and column. "holes" leaves the missing cells out of the likelihood, "mask"
also models whether a cell is missing; "mean" and "iterative" are scikit-learn's imputers, fitted to the
training rows, before the same classifier.
"""

import argparse
import warnings
from collections import defaultdict
from time import perf_counter

import numpy as np
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from riskbayes import (
    GaussianNB,
    ProductOfExperts,
    QuadraticDiscriminantAnalysis,
    RiskBayesClassifier,
    SmoothNB,
)
from riskbayes.experiments.datasets import load_csv
from riskbayes.learners import RC

SETS, MOST_ROWS = ("satellite", "vehicle", "qsar", "optdigits"), 3000
LEARNER = RC(max_iter=24, lr=0.3, generative_weight=0.03, monitor="log_loss")
MODELS = {
    "Gaussian NB": lambda: GaussianNB(learner=LEARNER),
    "smooth NB": lambda: SmoothNB(learner=LEARNER),
    "QDA with a prior": lambda: QuadraticDiscriminantAnalysis(prior="recommended", learner=LEARNER),
}


def masked(make):
    """The model beside the mask of missing cells."""
    return lambda: ProductOfExperts(
        [("numbers", make(), slice(None))], missing="informative", learner=LEARNER
    )


TREATMENTS = {
    "holes": lambda make: make(),
    "mask": lambda make: masked(make)(),
    "mean": lambda make: make_pipeline(SimpleImputer(keep_empty_features=True), make()),
    "iterative": lambda make: make_pipeline(
        IterativeImputer(random_state=0, keep_empty_features=True), make()
    ),
}
RECIPES = {
    "holes": lambda: RiskBayesClassifier(missing="ignore"),
    "mask": lambda: RiskBayesClassifier(),
    "mean": lambda: make_pipeline(SimpleImputer(keep_empty_features=True), RiskBayesClassifier()),
    "iterative": lambda: make_pipeline(
        IterativeImputer(random_state=0, keep_empty_features=True), RiskBayesClassifier()
    ),
}


def with_holes(X, y, how: str, seed: int):
    rng = np.random.default_rng(seed)
    share = 0.3
    if how == "by class":
        share = rng.choice([0.1, 0.5], size=(int(y.max()) + 1, X.shape[1]))[y]
    return np.where(rng.random(X.shape) < share, np.nan, X)


def main(splits) -> None:
    warnings.simplefilter("ignore")  # the iterative imputer does not converge
    found, seconds = defaultdict(list), defaultdict(list)
    for how in ("at random", "by class"):
        for name in SETS:
            data = load_csv(name).cut(MOST_ROWS)
            for split in splits:
                X = with_holes(data.X, data.y, how, split)
                A, B, y, y_test = train_test_split(X, data.y, test_size=0.25, random_state=split)
                for treatment in TREATMENTS:
                    fits = {model: TREATMENTS[treatment](make) for model, make in MODELS.items()}
                    fits["the recipe"] = RECIPES[treatment]()
                    for model, clf in fits.items():
                        start = perf_counter()
                        error = 100 * (clf.fit(A, y).predict(B) != y_test).mean()
                        found[how, model, treatment, name].append(error)
                        seconds[how, model, treatment, name].append(perf_counter() - start)
    for how in ("at random", "by class"):
        print(f"Cells removed {how}: error in percent (seconds)\n")
        print(f"{'':18s}{'':11s}" + "".join(f"{name:>16s}" for name in (*SETS, "mean")))
        for model in (*MODELS, "the recipe"):
            for treatment in TREATMENTS:
                cells = [
                    (np.mean(found[how, model, treatment, s]), np.mean(seconds[how, model, treatment, s]))
                    for s in SETS
                ]
                cells.append(tuple(np.mean(cells, axis=0)))
                row = "".join(f"{f'{error:.1f} ({spent:.1f})':>16s}" for error, spent in cells)
                print(f"{model:18s}{treatment:11s}{row}")
        print()
    data = load_csv("satellite")
    X = with_holes(data.X, data.y, "at random", 0)[:4800]
    start = perf_counter()
    clf = MODELS["QDA with a prior"]().fit(X, data.y[:4800])
    print(f"satellite, 4800 x 36 x 6, QDA with a prior, {clf.n_iter_} scans: {perf_counter() - start:.1f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--splits", default="0,1,2,3,4", help="splits, separated by commas")
    main([int(split) for split in parser.parse_args().splits.split(",")])
