"""
Pictures of a model, before and after
=====================================

``riskbayes.plotting`` has displays in the way of scikit-learn: ``from_estimator`` computes and draws one, and
``plot`` draws it again. Those of densities, regions and reliability show the closed form too.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from riskbayes import GaussianNB
from riskbayes.plotting import BeeswarmDisplay, DensityDisplay, RegionsDisplay, ReliabilityDisplay

data = load_breast_cancer(as_frame=True)
X, y = data.data[["mean concavity", "compactness error", "worst texture"]], data.target_names[data.target]
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
clf = GaussianNB().fit(X_train, y_train)

# %%
# The density of a column in each class, and the answers over two columns; the third is integrated out.
figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
DensityDisplay.from_estimator(clf, X_train, y_train, "mean concavity", ax=axes[0])
RegionsDisplay.from_estimator(clf, X_test, y_test, ("mean concavity", "compactness error"), ax=axes[1])
plt.show()

# %%
# Are the probabilities of held-out rows right? And what did each cell contribute?
figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
ReliabilityDisplay.from_estimator(clf, X_test, y_test, ax=axes[0])
BeeswarmDisplay.from_explanation(clf.explain(X_test), positive="malignant", negative="benign", ax=axes[1])
plt.show()
