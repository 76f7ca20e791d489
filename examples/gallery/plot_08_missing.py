"""
Missing cells need no imputation
================================

Cells are removed at random from training and test rows. LDA integrates them out; the alternative fills in
means and adds nothing else.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_wine
from sklearn.impute import SimpleImputer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from riskbayes import LinearDiscriminantAnalysis

X, y = load_wine(return_X_y=True)
X = X[:, [0, 6, 9, 11, 12]]
shares = [0.0, 0.3, 0.6]
models = {
    "as they are": LinearDiscriminantAnalysis(),
    "means filled in": make_pipeline(SimpleImputer(), LinearDiscriminantAnalysis()),
}
rng = np.random.default_rng(0)
masks = [rng.random(X.shape) < share for share in shares]
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, clf in models.items():
    errors = [100 * (1 - cross_val_score(clf, np.where(mask, np.nan, X), y).mean()) for mask in masks]
    ax.plot(shares, errors, "o-", label=name)
    print(f"{name:16}", np.round(errors, 1))
ax.set(xlabel="share of missing cells", ylabel="held-out error, %")
ax.legend()
plt.show()
