"""Tables with strings and missing cells, as they are: held-out error, log loss and seconds beside peers.

    RISKBAYES_DATA=FOLDER python benchmarks/mixed.py            # runs what is missing, then prints
    RISKBAYES_DATA=FOLDER python benchmarks/mixed.py --print    # the summary of the committed table
    RISKBAYES_DATA=FOLDER python benchmarks/mixed.py --compose  # the recipe among its neighbours

The tables are those of FOLDER/mixed and adult, read by pandas; ours get the data frame and nothing else.
Splits 8 to 12 (75/25) judge; the recipe and the family were composed on splits 100 to 103. Tables above 8000
rows are cut to 8000. The forest and logistic regression read one-hot columns with imputed cells, histogram
boosting and LightGBM categorical columns, CatBoost the strings as its `cat_features`, with missing ones as a
string of their own; the last two are in the group `bench`. One thread each; `benchmarks/family.py --time` has
the times in two threads on a quiet machine.
"""

import argparse
import csv
import os
import warnings
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

from riskbayes import MixedNB, RiskBayesClassifier
from riskbayes.estimators import family

RESULTS = Path(__file__).parent / "results" / "mixed.csv"
FIELDS = ("set", "split", "method", "error", "log_loss", "seconds")
SPLITS, MOST_ROWS = range(8, 13), 8000
INTERACTIONS = ("car_evaluation", "nursery")
"""Tables whose rules are exact interactions of all columns."""


class OneHot:
    """A classifier after one-hot columns and imputed cells."""

    def __init__(self, clf):
        words = make_pipeline(
            SimpleImputer(strategy="constant", fill_value="missing"), OneHotEncoder(handle_unknown="ignore")
        )
        numbers = make_pipeline(SimpleImputer(), StandardScaler())
        before = make_column_transformer(
            (numbers, make_column_selector(dtype_include="number")),
            (words, make_column_selector(dtype_exclude="number")),
        )
        self.pipeline = make_pipeline(before, clf)

    def fit(self, X, y):
        self.present = [name for name in X if X[name].notna().any()]
        self.classes_ = self.pipeline.fit(X[self.present], y).classes_
        return self

    def predict_proba(self, X):
        return self.pipeline.predict_proba(X[self.present])


class Boosting:
    """Boosting of histograms, with strings as categorical columns of at most 255 values."""

    def __init__(self, clf):
        self.clf = clf

    def fit(self, X, y):
        self.words = {
            name: pd.CategoricalDtype(sorted(X[name].dropna().unique())[:255])
            for name in X.select_dtypes(exclude="number")
        }
        self.classes_ = self.clf.fit(X.astype(self.words), y).classes_
        return self

    def predict_proba(self, X):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # values that are not among the categories become missing
            return self.clf.predict_proba(X.astype(self.words))


class CatBoost:
    """CatBoost with its defaults."""

    def __init__(self, threads=1):
        self.threads = threads

    def fit(self, X, y):
        from catboost import CatBoostClassifier  # not always installed

        self.words = list(X.select_dtypes(exclude="number"))
        self.clf = CatBoostClassifier(
            cat_features=self.words,
            verbose=False,
            random_seed=0,
            thread_count=self.threads,
            allow_writing_files=False,
        )
        self.classes_ = self.clf.fit(self.filled(X), y).classes_
        return self

    def filled(self, X):
        return X.assign(**{name: X[name].fillna("missing").astype(str) for name in self.words})

    def predict_proba(self, X):
        return self.clf.predict_proba(self.filled(X))


def light_gbm():
    from lightgbm import LGBMClassifier  # not always installed

    return Boosting(LGBMClassifier(verbose=-1, n_jobs=1, random_state=0))


METHODS = {
    "single": lambda: RiskBayesClassifier(),
    "neighbours": lambda: RiskBayesClassifier("neighbours"),
    "ensemble": lambda: RiskBayesClassifier("ensemble", random_state=0),
    "MixedNB": lambda: MixedNB(missing="informative"),
    "MixedNB, closed form": lambda: MixedNB(missing="informative", learner="closed_form"),
    "logistic regression": lambda: OneHot(LogisticRegression(max_iter=2000)),
    "random forest": lambda: OneHot(RandomForestClassifier(random_state=0)),
    "histogram boosting": lambda: Boosting(
        HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)
    ),
    "LightGBM": light_gbm,
    "CatBoost": lambda: CatBoost(),
}


PEERS = ("logistic regression", "random forest", "histogram boosting", "LightGBM", "CatBoost")


def folder() -> Path:
    return Path(os.environ["RISKBAYES_DATA"])


def names() -> list[str]:
    return [*sorted(path.name[:-7] for path in (folder() / "mixed").glob("*.csv.gz")), "adult"]


def table(name: str, most: int | None = MOST_ROWS) -> tuple[pd.DataFrame, np.ndarray]:
    place = folder() / ("" if name == "adult" else "mixed") / f"{name}.csv.gz"
    X = pd.read_csv(place, keep_default_na=False, na_values=[""])
    if most is not None and len(X) > most:
        X = X.sample(most, random_state=0).reset_index(drop=True)
    return X.drop(columns="target"), X["target"].astype(str).to_numpy()


def measured(make, X, y, X_test, y_test) -> dict:
    """The held-out error, log loss and seconds of one fit; a class that training lacks has probability 0."""
    start = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = make().fit(X, y)
        seconds = perf_counter() - start
        P = clf.predict_proba(X_test)
    right = np.array([P[i, clf.classes_ == label].sum() for i, label in enumerate(y_test)])
    error = (np.asarray(clf.classes_)[P.argmax(axis=1)] != y_test).mean()
    return {"error": error, "log_loss": -np.log(np.maximum(right, 1e-15)).mean(), "seconds": seconds}


def unit(name: str, split: int, done: set) -> list[dict]:
    """Every method that the table of results lacks, on one split."""
    X, y = table(name)
    train, test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=split)
    rows = []
    with threadpool_limits(1):
        for method, make in METHODS.items():
            if (name, str(split), method) not in done:
                found = measured(make, train, y_train, test, y_test)
                rows.append({"set": name, "split": split, "method": method, **found})
    return rows


def run(jobs: int) -> None:
    done = set()
    if RESULTS.exists():
        with RESULTS.open() as file:
            done = {(row["set"], row["split"], row["method"]) for row in csv.DictReader(file)}
    todo = [(name, split) for split in SPLITS for name in names()]
    with RESULTS.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if not done:
            writer.writeheader()
        parts = Parallel(jobs, return_as="generator_unordered")(delayed(unit)(*one, done) for one in todo)
        for number, rows in enumerate(parts, 1):
            writer.writerows(rows)
            file.flush()
            print(
                f"{number}/{len(todo)}: {rows[0]['set']} {rows[0]['split']}" if rows else number, flush=True
            )


def show() -> None:
    """Print the means over splits for each set, and over the sets."""
    study = pd.read_csv(RESULTS)
    for what, scale, digits in (("error", 100, 2), ("log_loss", 1, 4), ("seconds", 1, 2)):
        means = scale * study.pivot_table(index="set", columns="method", values=what)[list(METHODS)]
        others = means.drop(index=list(INTERACTIONS))
        means.loc["mean"] = means.mean()
        means.loc["mean without interactions"] = others.mean()
        if what == "seconds":
            means.loc["median ratio to CatBoost"] = means[:-2].div(means[:-2]["CatBoost"], axis=0).median()
        unit = " (percent)" if what == "error" else ""
        print(f"{what.replace('_', ' ')}{unit}, mean of {study['split'].nunique()} held-out splits\n")
        print(means.round(digits).to_string(), "\n")
    errors = 100 * study.pivot_table(index=["set", "split"], columns="method", values="error")
    errors = errors[~errors.index.get_level_values("set").isin(INTERACTIONS)]
    for ours in ("single", "neighbours", "ensemble"):
        for peer in PEERS:
            by_split = (errors[ours] - errors[peer]).groupby("split").mean()
            spread = by_split.std() / len(by_split) ** 0.5
            print(f"{ours} - {peer}, without interactions: {by_split.mean():+.2f} ± {spread:.2f} points")
    X, y = table("adult", None)
    found = []
    for split in SPLITS:
        train, test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=split)
        found.append(measured(RiskBayesClassifier, train, y_train, test, y_test))
    means = pd.DataFrame(found).mean()
    print(
        f"\nadult, all {len(X)} rows, single: error {100 * means['error']:.2f} %, log loss "
        f"{means['log_loss']:.4f}, {means['seconds']:.2f} s a fit"
    )


CONSTANTS = ("CATEGORY_POWER", "CATEGORY_ALPHA", "MIXED_RECIPE", "FEW_KNOTS", "MANY_KNOTS")
NEIGHBOURS = {
    "the recipe": {},
    "power of categories 0.25": {"CATEGORY_POWER": 0.25},
    "power of categories 1": {"CATEGORY_POWER": 1.0},
    "pseudo-counts 1": {"CATEGORY_ALPHA": 1.0},
    "pseudo-counts 10": {"CATEGORY_ALPHA": 10.0},
    "powers of numbers as without categories": {"MIXED_RECIPE": ((0.25, 0.25), 16)},
    "more smooth NB": {"MIXED_RECIPE": ((0.1, 0.5), 16)},
    "8 iterations": {"MIXED_RECIPE": ((0.15, 0.35), 8)},
    "24 iterations": {"MIXED_RECIPE": ((0.15, 0.35), 24)},
    "few knots in large tables": {"MANY_KNOTS": 6},
    "many knots in all tables": {"FEW_KNOTS": 12},
    "missing cells not informative": {"missing": "ignore"},
}


def compose() -> None:
    """Print the recipe and its neighbours on the splits that it was composed on."""
    usual = {name: getattr(family, name) for name in CONSTANTS}
    print("mean over the tables without interactions, splits 100 to 103\n")
    for label, changes in NEIGHBOURS.items():
        options = {"missing": changes.get("missing", "informative")}
        for name, value in usual.items():
            setattr(family, name, changes.get(name, value))
        found = []
        for name in names():
            X, y = table(name)
            for split in range(100, 104):
                train, test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=split)
                one = measured(partial(RiskBayesClassifier, **options), train, y_train, test, y_test)
                found.append({"set": name, **one})
        means = pd.DataFrame(found).groupby("set").mean().drop(index=list(INTERACTIONS)).mean()
        print(f"{label:40s} error {100 * means['error']:.2f} %, log loss {means['log_loss']:.4f}")
    for name, value in usual.items():
        setattr(family, name, value)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--print", action="store_true", help="only print the summary")
    parser.add_argument("--compose", action="store_true", help="the recipe among its neighbours")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    given = parser.parse_args()
    if given.compose:
        compose()
    else:
        if not given.print:
            run(given.jobs)
        show()
