"""
Rows that come and go
=====================

Statistics are sums: rows can be added as they come and taken out again, and the model is that of one fit to
the rows that remain.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits

from riskbayes import GaussianNB

X, y = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
order = rng.permutation(len(X))
X, y = X[order], y[order]
test, X, y = (X[:400], y[:400]), X[400:], y[400:]
half = len(X) // 2
X[half:] = 16 - X[half:]  # from here on the camera inverts its pictures
inverted = 16 - test[0]

batches = np.array_split(np.arange(len(X)), 28)
keeps, forgets = (GaussianNB(learner="closed_form", var_smoothing=1e-2) for _ in range(2))
errors = []
for number, rows in enumerate(batches):
    for clf in (keeps, forgets):
        clf.partial_fit(X[rows], y[rows], classes=range(10))
    if number >= 8:
        old = batches[number - 8]
        forgets.forget(X[old], y[old])
    now = test[0] if rows[0] < half else inverted
    errors.append([100 * (1 - clf.score(now, test[1])) for clf in (keeps, forgets)])

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(errors, "o-", label=["keeps all rows", "forgets all but the last 8 batches"])
ax.axvline(len(batches) / 2 - 0.5, color="gray", linestyle=":")
ax.set(xlabel="batch", ylabel="held-out error, %", ylim=(0, 100))
ax.legend()
plt.show()
