"""
Rows that the model does not know
=================================

A joint model knows how probable a row is. Trained on the digits 0 to 8, it finds nines, and digits that
nobody wrote.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from riskbayes import LinearDiscriminantAnalysis

pictures, y = load_digits(return_X_y=True)
X = pictures[:, pictures.var(axis=0) > 0]  # three pixels have no ink in any digit
known = y < 9
train = known & (np.arange(len(y)) % 2 == 0)
clf = LinearDiscriminantAnalysis(covariance_strength=100.0).fit(X[train], y[train])

new = ~train
score = clf.outlier_score(X[new])
flagged = clf.is_outlier(X[new & known], fpr=0.05).mean()
print(f"AUC of nines against other new digits {roc_auc_score(y[new] == 9, score):.2f}")
print(f"of new digits that are known {100 * flagged:.0f} % are flagged at fpr 5 %")

# %%
# The rows of least density:
strangest = np.argsort(clf.score_samples(X[new]))[:8]
figure, axes = plt.subplots(1, 8, figsize=(9, 1.6), layout="constrained")
for ax, row in zip(axes, strangest, strict=True):
    ax.imshow(pictures[new][row].reshape(8, 8), cmap="gray_r")
    ax.set(title=f"a {y[new][row]}", xticks=[], yticks=[])
plt.show()
