"""A third of the cells removed: fitting with the holes, or filling them first?

    RISKBAYES_DATA=FOLDER python benchmarks/holes.py          # runs what is missing, then prints
    RISKBAYES_DATA=FOLDER python benchmarks/holes.py --print  # the summary of the committed table

Satellite, vehicle, qsar and optdigits (cut to 3000 rows), splits 0 to 4 (75/25), held-out error in percent.
Cells are removed from training and test rows alike, "at random" (30 %) or "by class": 10 % or 50 %, by a coin
that is thrown once for each class and column. "holes" leaves the missing cells out of the likelihood, "mask"
also models whether a cell is missing; "mean" and "iterative" are scikit-learn's imputers, fitted to the
training rows, before the same classifier; their seconds include the imputation.
"""

from itertools import product
from time import perf_counter

import numpy as np
import pandas as pd
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.model_selection import train_test_split
from study import Part, Study, Unit, judged, spread

from riskbayes import GaussianNB, ProductOfExperts, RiskBayesClassifier, SmoothNB
from riskbayes import QuadraticDiscriminantAnalysis as QDA
from riskbayes.learners import RC

WAYS = ("at random", "by class")
LEARNER = RC(max_iter=24, lr=0.3, generative_weight=0.03, step="fixed", monitor="log_loss")
MODELS = {
    "Gaussian NB": lambda: GaussianNB(prior=None),
    "smooth NB": lambda: SmoothNB(),
    "QDA with a prior": lambda: QDA(prior="recommended", learner=LEARNER),
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
        return RiskBayesClassifier("single", missing="ignore" if treatment == "holes" else "informative")
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


class Holes(Study):
    """Ways that cells are missing, models, and treatments; the models of a treatment share its imputation."""

    name, splits, figures = "holes", range(5), ("error", "seconds")
    sets, most_rows = ("satellite", "vehicle", "qsar", "optdigits"), 3000
    methods = tuple(map(" | ".join, product(WAYS, NAMES, TREATMENTS)))

    def shared(self, unit: Unit):
        how, _, treatment = unit.parts
        return unit.set, unit.split, how, treatment

    def fit(self, methods, part: Part) -> dict[str, dict]:
        how, _, treatment = methods[0].split(" | ")
        X, y = self.data(part.set)
        X, X_test, *labels = train_test_split(
            with_holes(X, y, how, part.split), y, test_size=0.25, random_state=part.split
        )
        start = perf_counter()
        if treatment in IMPUTERS:
            imputer = IMPUTERS[treatment]().fit(X)
            X, X_test = imputer.transform(X), imputer.transform(X_test)
        filled = perf_counter() - start
        part, found = Part(part.set, part.split, X, X_test, *labels), {}
        for method in methods:
            found[method] = judged(classifier(method.split(" | ")[1], treatment), part)
            found[method]["seconds"] += filled
        return found

    def frame(self) -> pd.DataFrame:
        found = super().frame()
        found[["how", "model", "treatment"]] = found["method"].str.split(" | ", regex=False, expand=True)
        return found

    def show(self) -> None:
        """Print the means over the splits."""
        study = self.frame()
        print(f"Means over {study['split'].nunique()} splits: error in percent (seconds)\n")
        for how in WAYS:
            own = study[study["how"] == how]
            tables = []
            for figure, scale in (("error", 100), ("seconds", 1)):
                keys = {"index": ["model", "treatment"], "columns": "set", "values": figure, "sort": False}
                table = own.pivot_table(**keys)[list(self.sets)]
                means = (scale * table).assign(mean=scale * table.mean(axis=1))
                tables.append(means.map("{:.1f}".format))
            print(f"Cells removed {how}\n")
            print((tables[0] + " (" + tables[1] + ")").to_string(), "\n")
            means = own.pivot_table(index=["model", "split"], columns="treatment", values="error") * 100
            for model in NAMES:
                for ours, other in (("holes", "mean"), ("holes", "iterative"), ("mask", "iterative")):
                    gap = (means[ours] - means[other])[model]
                    print(f"{model}: {ours} - {other} {gap.mean():+.2f} ± {spread(gap):.2f} points")
            print()


if __name__ == "__main__":
    Holes().main()
