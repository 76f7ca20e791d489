"""
Models for some of the columns, one classifier
==============================================

A product of experts multiplies joint models and calibrates them together. Here each has columns of its own: a
Gaussian with correlations the numbers, naive Bayes the words.
"""

from matplotlib import pyplot as plt
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from riskbayes import CategoricalNB, ProductOfExperts, QuadraticDiscriminantAnalysis
from riskbayes.datasets import load_adult_sample

people, income = load_adult_sample(return_X_y=True)
words = ["workclass", "marital_status", "occupation", "relationship", "sex"]
numbers = ["age", "education_num", "hours_per_week"]
X_train, X_test, y_train, y_test = train_test_split(people[words + numbers], income, random_state=0)

experts = {
    "numbers": ("numbers", QuadraticDiscriminantAnalysis(), numbers),
    "words": ("words", CategoricalNB(), words),
}
losses = {}
for name, chosen in (("numbers", ["numbers"]), ("words", ["words"]), ("both", ["numbers", "words"])):
    clf = ProductOfExperts([experts[each] for each in chosen]).fit(X_train, y_train)
    losses[name] = log_loss(y_test, clf.predict_proba(X_test))
print({name: round(loss, 3) for name, loss in losses.items()})

figure, ax = plt.subplots(figsize=(6, 2.5), layout="constrained")
ax.barh(list(losses), list(losses.values()))
ax.set_xlabel("held-out log loss")
plt.show()
