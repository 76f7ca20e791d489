"""The table of the explainable boosting machine's README, by its own protocol: AUC on held-out rows.

    RISKBAYES_DATA=FOLDER python benchmarks/ebm_table.py            # fits what is missing, then prints
    RISKBAYES_DATA=FOLDER python benchmarks/ebm_table.py --print    # prints results/ebm_table.csv

`StratifiedShuffleSplit(3, test_size=.25, random_state=1337)`; the published figures are those that the README
prints. Its tables are adult.data (the first 32561 rows of `adult.csv.gz`), the IBM sample of customers of a
telephone company, and breast cancer of scikit-learn.
"""

import numpy as np
from mixed import Mixed
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedShuffleSplit
from study import Part, print_table

from riskbayes import RiskBayesClassifier

ADULT_DATA = 32561
"""Rows of adult.data, which come before those of adult.test."""

PEERS = ("logistic regression", "random forest", "XGBoost", "EBM")
PUBLISHED = {
    "adult": (0.907, 0.903, 0.927, 0.928),
    "telco_churn": (0.849, 0.824, 0.828, 0.852),
    "breast_cancer": (0.995, 0.992, 0.992, 0.995),
}
"""The means that the README of interpret prints, by `PEERS`."""

METHODS = {
    "default": lambda: RiskBayesClassifier(random_state=0),
    "glass": lambda: RiskBayesClassifier("glass"),
    "single": lambda: RiskBayesClassifier("single"),
}

HEADS = ("table", *METHODS, *(f"{peer}, published" for peer in PEERS))


class EBMTable(Mixed):
    """Strategies by the protocol of that README."""

    name, splits, methods, most_rows = "ebm_table", range(3), tuple(METHODS), None
    sets, figures = tuple(PUBLISHED), ("auc",)

    def load(self, name: str):
        if name == "breast_cancer":
            return load_breast_cancer(return_X_y=True, as_frame=True)
        X, y = super().load(name)
        return (X[:ADULT_DATA], y[:ADULT_DATA]) if name == "adult" else (X, y)

    def part(self, name: str, split: int) -> Part:
        X, y = self.data(name)
        y = np.asarray(y)
        parts = StratifiedShuffleSplit(3, test_size=0.25, random_state=1337).split(np.zeros(len(y)), y)
        train, test = list(parts)[split]
        return Part(name, split, X.iloc[train], X.iloc[test], y[train], y[test])

    def fit(self, methods, part: Part) -> dict[str, dict]:
        clf = METHODS[methods[0]]().fit(part.X, part.y)
        return {methods[0]: {"auc": roc_auc_score(part.y_test, clf.predict_proba(part.X_test)[:, 1])}}

    def rows(self) -> list[list[str]]:
        """A row a table: means and standard deviations of ours, and what is published."""
        grids = [self.grid(method, "auc") for method in self.methods]
        return [
            [
                name,
                *(f"{grid[i].mean():.3f} ± {grid[i].std():.3f}" for grid in grids),
                *(f"{auc:.3f}" for auc in PUBLISHED[name]),
            ]
            for i, name in enumerate(self.sets)
        ]

    def show(self) -> None:
        print_table("AUC, mean and standard deviation of three splits", HEADS, self.rows(), 150)


if __name__ == "__main__":
    EBMTable().main()
