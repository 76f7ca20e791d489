"""What an explanation by drawn orders costs, and how large its errors are: the table of doc/joint.md.

python benchmarks/evidence.py
"""

from time import perf_counter

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.model_selection import train_test_split
from study import write_between

from riskbayes import MixtureDiscriminantAnalysis, RiskBayesClassifier

ROWS = 20
SETS = {"wine": load_wine, "breast cancer": load_breast_cancer, "digits": load_digits}
MODELS = {
    "MDA": lambda: MixtureDiscriminantAnalysis(prior="recommended"),
    "neighbours": lambda: RiskBayesClassifier("neighbours"),
    "ensemble": lambda: RiskBayesClassifier("ensemble", random_state=0),
}


def lines() -> list[str]:
    """Return the lines of the table: errors in log-odds of the answer against the next class."""
    found = [
        f"{ROWS} held-out rows each, 32 orders. The error is the root mean square of the standard errors, "
        "the size that of the contributions, both in log-odds of the answer against the next class.",
        "",
        "| set | columns | model | size | error | seconds a row |",
        "|---|---|---|---|---|---|",
    ]
    for name, load in SETS.items():
        X, y = load(return_X_y=True)
        train, test, codes, _ = train_test_split(X, y, stratify=y, random_state=0)
        for model, make in MODELS.items():
            clf = make().fit(train, codes)
            start = perf_counter()
            odds = clf.explain(test[:ROWS]).log_odds()
            seconds = (perf_counter() - start) / ROWS
            size, error = (np.sqrt((part**2).mean()) for part in (odds.values, odds.errors))
            found.append(f"| {name} | {X.shape[1]} | {model} | {size:.3f} | {error:.3f} | {seconds:.2f} |")
    return found


if __name__ == "__main__":
    write_between("joint.md", "evidence", lines())
