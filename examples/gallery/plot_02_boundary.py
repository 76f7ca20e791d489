"""
What calibration does to a boundary
===================================

Gaussian naive Bayes of two columns: where the classes are equally probable, before and after calibration.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.model_selection import train_test_split

from riskbayes import GaussianNB

data = load_breast_cancer(as_frame=True)
X = data.data[["mean concavity", "compactness error"]]
X_train, X_test, y_train, y_test = train_test_split(X, data.target, stratify=data.target, random_state=0)

figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained", sharey=True)
for ax, learner in zip(axes, ("closed_form", "rc"), strict=True):
    clf = GaussianNB(learner=learner).fit(X_train, y_train)
    DecisionBoundaryDisplay.from_estimator(
        clf,
        X_train,
        response_method="predict_proba",
        class_of_interest=1,
        cmap="RdBu",
        alpha=0.6,
        eps=0.01,
        ax=ax,
    )
    ax.scatter(*X_test.to_numpy().T, c=np.where(y_test, "#1d6fb8", "#c2410c"), s=12)
    ax.set_title(f"{learner}: {100 * (1 - clf.score(X_test, y_test)):.1f} % held-out error")
plt.show()
