"""
Why this answer?
================

The log-odds of two classes are a sum: the prior, and what each column contributes. Nothing is sampled, and
the terms add up.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_breast_cancer

from riskbayes import QuadraticDiscriminantAnalysis

cancer = load_breast_cancer(as_frame=True)
X, y = cancer.data, cancer.target_names[cancer.target]
clf = QuadraticDiscriminantAnalysis().fit(X, y)
explanation = clf.explain(X)
odds = explanation.log_odds("malignant", "benign")
print(np.abs(odds.baseline + odds.values.sum(axis=1) - odds.total).max() < 1e-9)

# %%
# A row that is nearly undecided:
row = int(np.abs(odds.total).argmin())
explanation.plot(row)
plt.show()

# %%
# Which columns drive the model? The mean of the contributions, without their sign:
size = np.abs(odds.values).mean(axis=0)
order = np.argsort(size)[-10:]
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.barh(X.columns[order], size[order])
ax.set_xlabel("mean contribution to the log-odds")
plt.show()
