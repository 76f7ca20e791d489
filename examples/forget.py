"""A person asks to be deleted: their row is subtracted from the model, which is then as if it had never been.

The closed form is sums over rows, so that this is exact. Risk-based calibration has seen the row in its
steps: the model is calibrated again, on the remaining rows, from the statistics without the row. Where the
optimum is the only one, as that of naive Bayes of categories, it comes as near as the tolerance of the fit.
"""

import numpy as np
from sklearn.datasets import load_breast_cancer

from riskbayes import CategoricalNB
from riskbayes.preprocessing import KMeansBins

X, y = load_breast_cancer(return_X_y=True)
X = KMeansBins().fit(X).transform(X)
person, others = slice(17, 18), np.arange(len(X)) != 17


def gap(clf, other):
    """The largest difference of the probabilities of two models."""
    return np.abs(clf.predict_proba(X) - other.predict_proba(X)).max()


clf = CategoricalNB(learner="closed_form").fit(X, y)
never = CategoricalNB(learner="closed_form").fit(X[others], y[others])
print(f"closed form, before: {gap(clf, never):.1e} from the model that never saw the row")
clf.forget(X[person], y[person])
print(f"closed form, after forget: {gap(clf, never):.1e}")

try:
    clf.forget(4 - X[person], y[person])
except ValueError as error:
    print(f"a row that was never fitted: {error}")

clf = CategoricalNB().fit(X, y)
never = CategoricalNB().fit(X[others], y[others])
clf.forget(X[person], y[person])
print(f"RC, after forget: {gap(clf, never):.1e}")
clf.calibrate(X[others], y[others])
print(f"RC, calibrated on the remaining rows: {gap(clf, never):.1e}")
