"""
Watch a fit
===========

``history_`` has the risk of every scan. The paper's rule takes fixed steps and stops at the first rise of the
soft error. The default goes to the optimum of the log loss and an anchor, a pull back to the closed form: a
stronger anchor ends at a higher training loss. Hollow points are steps that were tried and refused.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import load_breast_cancer

from riskbayes import RC, SmoothNB
from riskbayes.plotting import RiskPathDisplay

X, y = load_breast_cancer(return_X_y=True)
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, learner in (
    ("RC.paper()", RC.paper()),
    ("RC()", RC()),
    ("RC(generative_weight=0.3)", RC(generative_weight=0.3)),
):
    clf = SmoothNB(learner=learner).fit(X, y)
    RiskPathDisplay.from_estimator(clf, risk="log_loss", label=name, ax=ax)
    print(f"{name:26} {clf.n_iter_:3} scans, {clf.status_.message}")
ax.set(yscale="log", ylabel="training log loss")
ax.legend()
plt.show()
