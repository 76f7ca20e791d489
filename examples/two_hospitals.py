"""Two hospitals train one model: each sends a model file of sums over its rows, and no row leaves the house.

The merged closed form is that of one fit to the rows of both. Each hospital may then calibrate it on rows of
its own. Sums over few rows can tell of single ones: this is no proof of privacy.
"""

import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import riskbayes
from riskbayes import LinearDiscriminantAnalysis

X, y = load_breast_cancer(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
north = X[:, 0] < np.median(X[:, 0])  # the two see different patients


def fitted(rows):
    """The closed form of some rows."""
    return LinearDiscriminantAnalysis(learner="closed_form").fit(X[rows], y[rows])


with tempfile.TemporaryDirectory() as folder:
    files = [
        fitted(own).save(Path(folder) / f"{name}.rb") for name, own in (("north", north), ("south", ~north))
    ]
    sizes = ", ".join(f"{file.stat().st_size} bytes" for file in files)
    merged, other = (riskbayes.load(file) for file in files)
print(f"what travels: {sizes}, for {north.sum()} and {(~north).sum()} rows of {X.shape[1]} columns")
for name, own in (("north", north), ("south", ~north)):
    print(f"{name} alone: {fitted(own).score(X_test, y_test):.3f} right on held-out rows of both")
merged.merge(other)
whole = fitted(slice(None))
gap = np.abs(merged.predict_log_proba(X_test) - whole.predict_log_proba(X_test)).max()
print(f"merged: {merged.score(X_test, y_test):.3f}, largest difference from one fit on all rows {gap:.1e}")
merged.set_params(learner="rc").calibrate(X[north], y[north])
print(f"merged, then calibrated on the rows of the north: {merged.score(X_test, y_test):.3f}")
