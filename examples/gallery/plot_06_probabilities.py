"""
Are the probabilities right?
============================

Naive Bayes by its closed form is too sure of itself, since it counts what correlated columns say several
times. Calibration by the log loss corrects most of that; what remains can be corrected by
``CalibratedClassifierCV``.
"""

from matplotlib import pyplot as plt
from sklearn.calibration import CalibratedClassifierCV, CalibrationDisplay
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from riskbayes import MixedNB
from riskbayes.datasets import load_adult_sample

people, income = load_adult_sample(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(people, income, random_state=0)
models = {
    "closed form": MixedNB(learner="closed_form"),
    "RC": MixedNB(),
    "RC, CalibratedClassifierCV": CalibratedClassifierCV(MixedNB(), cv=3),
}
figure, ax = plt.subplots(figsize=(6, 5), layout="constrained")
for name, clf in models.items():
    P = clf.fit(X_train, y_train).predict_proba(X_test)
    CalibrationDisplay.from_predictions(
        y_test, P[:, 1], pos_label=clf.classes_[1], n_bins=8, name=name, ax=ax
    )
    print(f"{name:28} log loss {log_loss(y_test, P):.3f}")
plt.show()
