"""
Change one import
=================

The same model by its closed form, which is scikit-learn's, and by risk-based calibration, the default here.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import cross_val_score

from riskbayes import GaussianNB, LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis, SmoothNB

# %%
# Five-fold cross-validation: errors are of rows that the model was not trained on.
kinds = (GaussianNB, SmoothNB, LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis)
figure, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained", sharey=True)
for ax, load in zip(axes, (load_breast_cancer, load_wine), strict=True):
    X, y = load(return_X_y=True)
    for shift, learner in ((0.2, "closed_form"), (-0.2, "rc")):
        errors = [100 * (1 - cross_val_score(kind(learner=learner), X, y).mean()) for kind in kinds]
        ax.barh([i + shift for i in range(4)], errors, height=0.36, label=learner)
        print(f"{load.__name__:20} {learner:12}", np.round(errors, 1))
    ax.set(xlabel="held-out error, %", title=load.__name__.removeprefix("load_").replace("_", " "))
axes[0].set_yticks(range(4), [kind.__name__ for kind in kinds])
axes[0].legend()
plt.show()
