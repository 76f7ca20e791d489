"""
Errors that cost differently
============================

A missed illness costs more than a false alarm. ``decide`` takes the label of least expected cost; a model can
also be trained for the costs.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from riskbayes import RC, GaussianNB

X, y = load_breast_cancer(return_X_y=True)  # 0 malignant, 1 benign
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
plain = GaussianNB().fit(X_train, y_train)

dear = [1, 3, 10, 30, 100]
found = {"most probable class": [], "decide": [], "trained for the costs": []}
for cost in dear:
    matrix = np.array([[0, cost], [1, 0]])
    trained = GaussianNB(learner=RC(objective=matrix)).fit(X_train, y_train)
    answers = plain.predict(X_test), plain.decide(X_test, matrix), trained.predict(X_test)
    for name, answer in zip(found, answers, strict=True):
        found[name].append(matrix[y_test, answer].mean())

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, costs in found.items():
    ax.plot(dear, costs, "o-", label=name)
    print(f"{name:22}", np.round(costs, 3))
ax.set(xscale="log", xlabel="cost of a missed illness (a false alarm costs 1)", ylabel="held-out mean cost")
ax.legend()
plt.show()
