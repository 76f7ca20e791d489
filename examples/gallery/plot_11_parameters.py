"""
What calibration moved
======================

The parameters of the model, before and after: a table, and a picture of those that moved most.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import load_wine

from riskbayes import GaussianNB
from riskbayes.plotting import ParametersDisplay

wine = load_wine(as_frame=True)
clf = GaussianNB(prior=None).fit(wine.data, wine.target_names[wine.target])
print(clf.parameters_frame().head(6).round(2).to_string(index=False))

# %%
ParametersDisplay.from_estimator(clf)
plt.show()
