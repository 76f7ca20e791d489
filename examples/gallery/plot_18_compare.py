"""
Compare models, and find what is wrong with a table
===================================================

``compare`` is the command ``riskbayes compare`` from Python: models on the same held-out rows, and findings
about the data. Here a column is filled in after the answer is known.
"""

import numpy as np
from matplotlib import pyplot as plt

from riskbayes.compare import compare
from riskbayes.datasets import load_adult_sample

table = load_adult_sample()[:900]
rng = np.random.default_rng(0)
rich = (table["income"] == sorted(table["income"].unique())[1]).to_numpy()
table["tax_class"] = np.where(rng.random(len(table)) < 0.97, np.where(rich, "B", "A"), "A")

report = compare(table, "income", cv=2, strategies=["single"]).report
print(report.verdict)

# %%
# The errors of the models, in percent, with standard errors:
scores = {each.name: each.scores["error"] for each in reversed(report.contenders) if not each.failed}
figure, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
values, errors = zip(*((score.value, score.error) for score in scores.values()), strict=True)
ax.errorbar(values, list(scores), xerr=errors, fmt="o")
ax.set_xlabel("held-out error, %")
plt.show()

# %%
# What is suspicious:
for finding in report.findings:
    if finding.severity != "info":
        print(f"{finding.severity}: {finding}")
        print("   what to do:", finding.about.what_to_do)
