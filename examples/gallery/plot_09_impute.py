"""
Fill in missing cells, or draw them
===================================

``impute`` gives the mean of a missing cell given the others, or with ``random_state`` a draw. Draws keep the
spread of the data, as multiple imputation needs.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_iris

from riskbayes import QuadraticDiscriminantAnalysis

X, y = load_iris(return_X_y=True)
hidden = X.copy()
hidden[::3, 2] = np.nan  # petal length of every third flower
clf = QuadraticDiscriminantAnalysis(learner="closed_form").fit(hidden, y)

figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained", sharex=True, sharey=True)
for ax, name, filled in zip(
    axes,
    ("the true cells", "filled with means", "drawn"),
    (X, clf.impute(hidden), clf.impute(hidden, random_state=0)),
    strict=True,
):
    ax.scatter(X[:, 0], X[:, 2], s=6, color="lightgray")
    ax.scatter(filled[::3, 0], filled[::3, 2], s=14, c=y[::3], cmap="viridis")
    off = np.abs(filled[::3, 2] - X[::3, 2]).mean()
    ax.set(title=f"{name} (off by {off:.2f} cm)", xlabel="sepal length")
axes[0].set_ylabel("petal length")
plt.show()
