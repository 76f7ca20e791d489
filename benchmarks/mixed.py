"""Tables with strings and missing cells, as they are: held-out error, log loss and seconds beside peers.

    RISKBAYES_DATA=FOLDER python benchmarks/mixed.py            # runs what is missing, then prints
    RISKBAYES_DATA=FOLDER python benchmarks/mixed.py --print    # the summary of the committed table
    RISKBAYES_DATA=FOLDER python benchmarks/mixed.py --compose  # the recipe among its neighbours

The tables are those of FOLDER/mixed, FOLDER/mixed_more and adult, read by pandas; ours get the data frame and
nothing else. Splits 13 to 17 (75/25) judge; everything was composed on splits 0 to 2 and 100 to 104. Tables
above 8000 rows are cut to 8000. The forest and logistic regression read one-hot columns with imputed cells,
histogram boosting and LightGBM categorical columns, CatBoost the strings as its `cat_features`, with missing
ones as a string of their own; the last two are in the group `bench`. One thread each;
`benchmarks/family.py --time` has the times in two threads on a quiet machine.
"""

import os
import sys
import warnings
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from study import Part, Study, judged, spread

from riskbayes import MixedNB, RiskBayesClassifier
from riskbayes.estimators import family

INTERACTIONS = ("car_evaluation", "kr_vs_kp", "nursery", "tic_tac_toe")
"""Tables whose classes follow exact rules of several columns."""


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
    """Boosting of histograms, with strings as categorical columns of at most 255 values.

    Columns without a cell in training are left out, for histograms have no bins of them.
    """

    def __init__(self, clf):
        self.clf = clf

    def fit(self, X, y):
        self.words = {
            name: pd.CategoricalDtype(sorted(X[name].dropna().unique())[:255])
            for name in X.select_dtypes(exclude="number")
        }
        self.present = [name for name in X if X[name].notna().any()]
        self.classes_ = self.clf.fit(X.astype(self.words)[self.present], y).classes_
        return self

    def predict_proba(self, X):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # values that are not among the categories become missing
            return self.clf.predict_proba(X.astype(self.words)[self.present])


class CatBoost:
    """CatBoost with its defaults."""

    def __init__(self, threads=1):
        self.threads = threads

    def fit(self, X, y):
        self.words = list(X.select_dtypes(exclude="number"))
        self.clf = import_module("catboost").CatBoostClassifier(
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


METHODS = {
    "single": lambda: RiskBayesClassifier("single"),
    "neighbours": lambda: RiskBayesClassifier("neighbours"),
    "glass": lambda: RiskBayesClassifier("glass"),
    "default": lambda: RiskBayesClassifier(random_state=0),
    "MixedNB": lambda: MixedNB(missing="informative"),
    "MixedNB, closed form": lambda: MixedNB(missing="informative", learner="closed_form"),
    "logistic regression": lambda: OneHot(LogisticRegression(max_iter=2000)),
    "random forest": lambda: OneHot(RandomForestClassifier(random_state=0)),
    "histogram boosting": lambda: Boosting(
        HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)
    ),
    "LightGBM": lambda: Boosting(
        import_module("lightgbm").LGBMClassifier(verbose=-1, n_jobs=1, random_state=0)
    ),
    "CatBoost": lambda: CatBoost(),
}


PEERS = ("logistic regression", "random forest", "histogram boosting", "LightGBM", "CatBoost")


class Mixed(Study):
    """Tables as data frames."""

    name, splits, methods = "mixed", range(13, 18), tuple(METHODS)
    figures = ("error", "log_loss", "seconds")
    sets = (
        *("bank_marketing", "car_evaluation", "credit_approval", "german_credit", "heart_cleveland"),
        *("hepatitis", "horse_colic", "house_votes_84", "nursery", "penguins_raw", "telco_churn", "titanic"),
        *("adult", "annealing", "kr_vs_kp", "ozone_8hr", "sick", "tic_tac_toe"),
    )

    def load(self, name: str) -> tuple[pd.DataFrame, np.ndarray]:
        folder = Path(os.environ["RISKBAYES_DATA"])
        places = (folder / part / f"{name}.csv.gz" for part in ("mixed", "mixed_more", ""))
        X = pd.read_csv(next(p for p in places if p.exists()), keep_default_na=False, na_values=[""])
        if self.most_rows is not None and len(X) > self.most_rows:
            X = X.sample(self.most_rows, random_state=0).reset_index(drop=True)
        return X.drop(columns="target"), np.unique(X["target"].astype(str), return_inverse=True)[1]

    def make(self, method: str, part: Part):
        return METHODS[method]()

    def frame(self) -> pd.DataFrame:
        """The rows of the sets and splits that are asked for."""
        study = super().frame()
        return study[study["set"].isin(self.sets) & study["split"].isin(self.splits)]

    def show(self) -> None:
        """Print the means over splits for each set, and over the sets."""
        study = self.frame()
        for what, scale, digits in (("error", 100, 2), ("log_loss", 1, 4), ("seconds", 1, 2)):
            means = scale * study.pivot_table(index="set", columns="method", values=what)[list(self.methods)]
            others = means.drop(index=list(INTERACTIONS), errors="ignore")
            means.loc["mean"] = means.mean()
            means.loc["mean without interactions"] = others.mean()
            if what == "seconds" and "CatBoost" in means:
                means.loc["median ratio to CatBoost"] = (
                    means[:-2].div(means[:-2]["CatBoost"], axis=0).median()
                )
            unit = " (percent)" if what == "error" else ""
            print(f"{what.replace('_', ' ')}{unit}, mean of {study['split'].nunique()} held-out splits\n")
            print(means.round(digits).to_string(), "\n")
        for ours in ("single", "neighbours", "glass", "default"):
            for peer in PEERS:
                if {ours, peer} <= set(study["method"]):
                    print(f"{ours} - {peer}: {self.paired(ours, peer)} points, log loss ", end="")
                    print(self.paired(ours, peer, "log_loss", 1, 4))
        better, worse = self.worse_sets("glass", "single")
        print(f"glass is better than single on {better} sets, worse by a standard error on {worse}")

    def paired(self, ours: str, peer: str, what: str = "error", scale: float = 100, digits: int = 2) -> str:
        """The mean difference over the sets, ± its standard error over the splits."""
        gap = scale * (self.grid(ours, what) - self.grid(peer, what)).mean(axis=0)
        return f"{gap.mean():+.{digits}f} ± {spread(gap):.{digits}f}"


CONSTANTS = {"CATEGORY_POWER", "CATEGORY_ALPHA", "MIXED_RECIPE", "FEW_KNOTS", "MANY_KNOTS"}
NEIGHBOURS = {
    "the recipe": {},
    "power of categories 0.25": {"CATEGORY_POWER": 0.25},
    "power of categories 1": {"CATEGORY_POWER": 1.0},
    "pseudo-counts 1": {"CATEGORY_ALPHA": 1.0},
    "pseudo-counts 10": {"CATEGORY_ALPHA": 10.0},
    "powers of numbers as without categories": {"MIXED_RECIPE": ((0.25, 0.25), "auto")},
    "more smooth NB": {"MIXED_RECIPE": ((0.1, 0.5), "auto")},
    "anchor 0.03": {"MIXED_RECIPE": ((0.15, 0.35), 0.03)},
    "anchor 0.1": {"MIXED_RECIPE": ((0.15, 0.35), 0.1)},
    "few knots in large tables": {"MANY_KNOTS": 6},
    "many knots in all tables": {"FEW_KNOTS": 12},
    "missing cells not informative": {"missing": "ignore"},
}


class MixedCompose(Mixed):
    """The recipe and its neighbours on the splits that it was composed on."""

    name, splits, methods = "mixed_compose", range(100, 104), tuple(NEIGHBOURS)

    def fit(self, methods, part: Part) -> dict[str, dict]:
        changes = NEIGHBOURS[methods[0]]
        clf = RiskBayesClassifier("single", missing=changes.get("missing", "informative"))
        with ExitStack() as changed:
            for name in CONSTANTS & changes.keys():
                changed.enter_context(patch.object(family, name, changes[name]))
            return {methods[0]: judged(clf, part)}

    def show(self) -> None:
        print("mean over the tables without interactions, splits 100 to 103\n")
        rows = [name not in INTERACTIONS for name in self.sets]
        for label in self.methods:
            error, loss = (self.grid(label, figure)[rows].mean() for figure in ("error", "log_loss"))
            print(f"{label:40s} error {100 * error:.2f} %, log loss {loss:.4f}")


if __name__ == "__main__":
    if "--compose" in sys.argv:
        sys.argv.remove("--compose")
        MixedCompose().main()
    else:
        Mixed().main()
