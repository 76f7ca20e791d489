"""Write the golden model files: python tests/golden/make.py. Files of a released version are never changed.

Each model has a JSON file beside it, of rows and of the probabilities that it predicted for them.
"""

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from riskbayes import CategoricalNB, GaussianNB, MixedNB, QuadraticDiscriminantAnalysis, RiskBayesClassifier
from riskbayes.learners import RC

FOLDER = Path(__file__).parent
CREATED = "2026-11-17T12:00:00+00:00"


def rows(m: int = 48) -> tuple[pd.DataFrame, np.ndarray]:
    """A table of numbers, words, dates and flags with missing cells, and labels that are strings."""
    rng = np.random.default_rng(16)
    y = np.arange(m) % 2
    X = pd.DataFrame(
        {
            "age": (rng.normal(40, 10, size=m) + 8 * y).round(2),
            "town": rng.choice(["Łódź", "Bilbao", "Oslo"], m),
            "since": pd.date_range("2019-12-01", periods=m, freq="53h"),
            "seen": [f"2020-{1 + i % 12:02d}-15" for i in range(m)],
            "smokes": rng.random(m) < 0.3 + 0.3 * y,
        }
    )
    X.loc[::6, ["age", "town", "since"]] = None
    return X, np.array(["no", "yes"])[y]


def main() -> None:
    """Fit and save the models."""
    X, y = rows()
    numbers = np.random.default_rng(17).normal(size=(48, 2)).round(3) + (y == "yes")[:, None]
    learner = RC(max_iter=3)
    models = {
        "gaussian_nb": (GaussianNB(learner=learner), numbers),
        "qda": (QuadraticDiscriminantAnalysis(learner="closed_form"), numbers),
        "categorical_nb": (CategoricalNB(learner=learner), X[["town", "smokes"]]),
        "mixed_nb": (MixedNB(missing="informative", learner=learner), X),
        "recipe": (RiskBayesClassifier("single"), X),
    }
    for name, (clf, table) in models.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clf.fit(table, y)
        clf.save(FOLDER / f"{name}.rb", created=CREATED, about={"data": "drawn by tests/golden/make.py"})
        some = table[:12]
        kept = (
            some.to_json(date_format="iso") if isinstance(some, pd.DataFrame) else json.dumps(some.tolist())
        )
        found = {"classes": clf.classes_.tolist(), "probabilities": clf.predict_proba(some).tolist()}
        (FOLDER / f"{name}.json").write_text(json.dumps({"rows": json.loads(kept), **found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
