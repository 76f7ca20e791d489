"""
A table with strings and missing cells
======================================

``RiskBayesClassifier`` takes a data frame as it is, and says what it made of each column.
"""

import numpy as np
from matplotlib import pyplot as plt

from riskbayes import RiskBayesClassifier
from riskbayes.datasets import load_adult_sample

people, income = load_adult_sample(return_X_y=True)
people.head(3)

# %%
# ``"single"`` fits one recipe, in a fraction of a second. ``RiskBayesClassifier()`` averages several models,
# takes some seconds, and is more accurate.
train = np.arange(len(people)) % 4 > 0
clf = RiskBayesClassifier("single").fit(people[train], income[train])
print(f"held-out error {100 * (1 - clf.score(people[~train], income[~train])):.1f} %")

# %%
# What became of the columns, and what may be wrong with them:
for column in clf.columns_:
    print(f"{column.name:16} {column.kind:10} {column.n_missing:4} missing  {column.reason}")
for finding in clf.checks_:
    print(finding)

# %%
# How much does each column drive the answers? The mean of its contributions to the log-odds, without their
# sign:
odds = clf.explain(people[~train]).log_odds()
size = np.abs(odds.values).mean(axis=0)
order = np.argsort(size)[-8:]
figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.barh(people.columns[order], size[order])
ax.set_xlabel("mean contribution to the log-odds")
plt.show()

# %%
# Answers for new people, as labels and as probabilities:
clf.predict(people[~train][:3]), clf.predict_proba(people[~train][:3]).round(2)
