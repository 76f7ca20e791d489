"""
Other class frequencies
=======================

The classes are more or less frequent where a model is used than where it was trained. ``estimate_priors``
finds the new frequencies from rows without labels, and ``with_priors`` uses them.
"""

import numpy as np
from matplotlib import pyplot as plt

from riskbayes import RiskBayesClassifier
from riskbayes.datasets import load_adult_sample

people, income = load_adult_sample(return_X_y=True)
train = np.arange(len(people)) % 2 == 0
clf = RiskBayesClassifier("single").fit(people[train], income[train])

X, y = people[~train].reset_index(drop=True), income[~train].to_numpy()
rich = y == clf.classes_[1]
true, estimated, errors = [], [], []
for share in (0.05, 0.2, 0.4, 0.6, 0.8):
    rng = np.random.default_rng(0)
    n = 300
    rows = np.r_[
        rng.choice(np.flatnonzero(rich), round(n * share)),
        rng.choice(np.flatnonzero(~rich), round(n * (1 - share))),
    ]
    p = clf.estimate_priors(X.iloc[rows])
    adapted = clf.with_priors(p)
    true.append(share)
    estimated.append(p[1])
    errors.append([100 * (1 - each.score(X.iloc[rows], y[rows])) for each in (clf, adapted)])

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.plot(true, true, ":", color="gray")
left.plot(true, estimated, "o-")
left.set(xlabel="true share of the rich", ylabel="estimated without labels")
right.plot(true, errors, "o-", label=["as fitted", "with_priors"])
right.set(xlabel="true share of the rich", ylabel="held-out error, %")
right.legend()
plt.show()
