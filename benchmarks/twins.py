"""Red wine: how much of a random forest's lead is in test rows whose twin it was trained on?

    RISKBAYES_DATA=FOLDER python benchmarks/twins.py > benchmarks/results/twins.txt

The same splits as `benchmarks/family.py`. A twin has the same features; equal rows are part of that set.
"""

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from riskbayes import RiskBayesClassifier
from riskbayes_paper.datasets import load_csv

SPLITS = range(3, 8)


def main():
    X, y, *_ = load_csv("redwine")
    twins, wrong = [], {"random forest": [], "single recipe": []}
    for split in SPLITS:
        train, test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=split)
        seen = {row.tobytes() for row in train}
        twins.append([row.tobytes() in seen for row in test])
        models = RandomForestClassifier(random_state=0), RiskBayesClassifier("single")
        for found, model in zip(wrong.values(), models, strict=True):
            found.append(model.fit(train, y_train).predict(test) != y_test)
    twin = np.concatenate(twins)
    errors = {
        name: (100 * np.concatenate(found)[twin].mean(), 100 * np.concatenate(found)[~twin].mean())
        for name, found in wrong.items()
    }
    print(
        f"{100 * twin.mean():.0f} % of its test rows are repeated among the training rows. On these the "
        + "error "
        + ", ".join(f"of the {name} is {there:.1f} %" for name, (there, _) in errors.items())
        + "; on the others "
        + ", ".join(f"of the {name} {elsewhere:.1f} %" for name, (_, elsewhere) in errors.items())
        + "."
    )


if __name__ == "__main__":
    main()
