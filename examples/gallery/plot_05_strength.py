"""
How far to calibrate
====================

``RCCV`` walks from the class frequencies over the closed form and strong anchors to weak ones in every fold,
and keeps the strength of the least held-out score. A weak anchor overfits small tables; a strong one leaves
the closed form as it is.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_breast_cancer

from riskbayes import RCCV, LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis

X, y = load_breast_cancer(return_X_y=True)
X, y = X[::3], y[::3]  # few rows: 190
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for kind in (LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis):
    learner = kind(learner=RCCV(random_state=0)).fit(X, y).learner_
    weights = np.array([weight for _, weight in learner.settings_])
    finite = np.isfinite(weights)
    (line,) = ax.plot(weights[finite], learner.cv_log_loss_[finite], "o-", label=kind.__name__)
    ax.axhline(learner.cv_log_loss_[~finite][-1], color=line.get_color(), linestyle=":")
    print(f"{kind.__name__}: chose {learner.generative_weight_:.3f}")
ax.set(xscale="log", xlabel="generative_weight (dotted: the closed form)", ylabel="held-out log loss")
ax.legend()
plt.show()
