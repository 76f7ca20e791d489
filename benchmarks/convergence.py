"""How many scans RC takes to its optimum: adaptive steps beside quasi-Newton steps.

    RISKBAYES_DATA=<folder> python benchmarks/convergence.py    # prints benchmarks/results/convergence.txt

The gap is that of the monitored quantity, the log loss plus the anchor of `RC()`, from the closed form to
the best value that either of the two finds in 400 scans, on all rows (at most 8000). The gradient at the end
of the quasi-Newton fit, in the metric of its coordinates, is shown as a share of the largest. Then the log
loss of categorical naive Bayes without prior and anchor beside the optimum of one-hot logistic regression, on
columns of which every class has every bin. ComplementNB is no joint: its log loss is not convex, has no
anchor, and goes on falling as long as it is scanned.
"""

import os
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder
from study import print_table

import riskbayes as rb
from riskbayes.learners import RC
from riskbayes.preprocessing import KMeansBins
from riskbayes_paper.datasets import load_csv

SCANS, MOST_ROWS = 400, 8000
SHARES = 0.99, 0.999


class Recording(RC):
    """RC that keeps the monitored quantity of each accepted scan in `path`, and the size of its gradient."""

    name = "recording"

    def fit_statistics(self, task):
        self.path, self.sizes = {}, []
        weight, coordinates = self._anchor_weight(task), task.model.coordinates(task.S)

        def keep(iteration):
            self.path[iteration.number] = iteration.value
            dS = (1.0 / task.engine.mass) * iteration.scan.dS
            gradient = coordinates.gradient(dS, weight, iteration.fitted)
            self.sizes.append(np.sqrt(sum((value**2).sum() for value in gradient.values())))
            return task.on_iteration(iteration)

        return super().fit_statistics(replace(task, on_iteration=keep))


def table(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """A table of strings and numbers."""
    rows = pd.read_csv(Path(os.environ["RISKBAYES_DATA"]) / "mixed" / f"{name}.csv.gz")
    rows = rows[rows["target"].notna()]
    rows = rows.sample(min(len(rows), MOST_ROWS), random_state=0)
    return rows.drop(columns="target"), rows["target"].astype(str).to_numpy()


def strings(name: str) -> tuple[np.ndarray, np.ndarray]:
    """A table whose numbers of many values are cut into five bins; a missing cell is a value."""
    X, y = table(name)
    for column in X.select_dtypes("number"):
        if X[column].nunique() > 12:
            X[column] = pd.qcut(X[column], 5, duplicates="drop").astype(str)
    return X.astype(object).where(X.notna(), "missing").astype(str).to_numpy(dtype=object), y


def numbers(name: str) -> tuple[np.ndarray, np.ndarray]:
    """A table of numbers."""
    data = load_csv(name).cut(MOST_ROWS)
    return data.X, data.y


def cases() -> Iterator[tuple]:
    """Yield each model with a table that suits it."""
    for name in ("car_evaluation", "nursery", "house_votes_84", "german_credit"):
        yield name, rb.CategoricalNB(alpha=1.0), strings(name)
    for model in (rb.TreeAugmentedNB(), rb.KDependenceNB()):
        yield "car_evaluation", model, strings("car_evaluation")
    yield "german_credit", rb.MixedNB(), table("german_credit")
    vehicle = numbers("vehicle")
    for model in (
        rb.QuadraticDiscriminantAnalysis(prior=None),
        rb.QuadraticDiscriminantAnalysis(),
        rb.LinearDiscriminantAnalysis(),
        rb.GaussianNB(),
        rb.SmoothNB(),
        rb.MixtureDiscriminantAnalysis(),
        rb.ProductOfExperts(),
    ):
        yield "vehicle", model, vehicle
    digits = numbers("optdigits")
    for model in (rb.MultinomialNB(), rb.BernoulliNB(binarize=7.0), rb.PoissonNB(), rb.ComplementNB()):
        yield "optdigits", model, digits
    for model in (rb.GaussianNB(), rb.QuadraticDiscriminantAnalysis(), rb.MixtureDiscriminantAnalysis()):
        yield "digits", model, load_digits(return_X_y=True)


def scans_to(path: dict[int, float], target: float) -> str:
    """The first scan whose value is no more than the target."""
    return str(next((number for number, value in path.items() if value <= target), f"> {SCANS}"))


def show_scans() -> None:
    """Print scans to close the gap, by model and table."""
    rows = []
    for name, model, (X, y) in cases():
        paths, status = {}, ""
        for step in ("adaptive", "quasi_newton"):
            weight = 0.0 if isinstance(model, rb.ComplementNB) else "auto"
            learner = Recording(step=step, max_iter=SCANS, generative_weight=weight)
            clf = model.set_params(learner=learner).fit(X, y)
            paths[step], status, sizes = clf.learner_.path, clf.status_.value, clf.learner_.sizes
        first, best = paths["adaptive"][0], min(min(path.values()) for path in paths.values())
        targets = [first - share * (first - best) + 1e-12 * abs(best) for share in SHARES]
        cells = [" / ".join(scans_to(path, target) for target in targets) for path in paths.values()]
        prior = " (no prior)" if getattr(model, "prior", "auto") is None else ""
        prior += " (not convex)" if isinstance(model, rb.ComplementNB) else ""
        end = f"{status}, {sizes[-1] / max(sizes):.1e}"
        rows.append((name, type(model).__name__ + prior, *cells, f"{first:.4f}", f"{best:.4f}", end))
    heads = ("table", "model", "adaptive", "quasi-Newton", "closed form", "best", "end, gradient")
    print_table("Scans to close 99 % / 99.9 % of the gap to the anchored optimum", heads, rows, 140)


def show_logistic() -> None:
    """Print the log loss of naive Bayes after sixty scans, less that of logistic regression."""
    rows = []
    sets = {name: numbers(name) for name in ("german_numer", "vehicle", "redwine")}
    for name, (X, y) in (sets | {"breast_cancer": load_breast_cancer(return_X_y=True)}).items():
        Z, y = KMeansBins(3).fit_transform(X[:, :8]), np.unique(y, return_inverse=True)[1]
        counts = [
            np.stack([np.bincount(z[y == k], minlength=z.max() + 1) for k in np.unique(y)]) for z in Z.T
        ]
        Z = Z[:, [found.min() > 0 for found in counts]]
        if not Z.shape[1]:
            continue
        one_hot = OneHotEncoder().fit_transform(Z)
        peer = LogisticRegression(C=np.inf, max_iter=10000, tol=1e-9).fit(one_hot, y)
        optimum = -np.log(peer.predict_proba(one_hot)[np.arange(len(y)), y]).mean()
        clf = rb.CategoricalNB(alpha=0.0, learner=Recording(max_iter=60, generative_weight=0.0)).fit(Z, y)
        path = clf.learner_.path
        gap, at = min(path.values()) - optimum, scans_to(path, optimum + 1e-4)
        rows.append((name, str(Z.shape[1]), f"{path[0]:.5f}", f"{optimum:.5f}", f"{gap:+.1e}", at))
    heads = ("set", "columns", "closed form", "logistic regression", "after 60 scans", "scans to 1e-4")
    print_table("Log loss of categorical naive Bayes without a prior", heads, rows, 110)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    show_scans()
    show_logistic()
