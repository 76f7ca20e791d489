"""
Rows in files, larger than memory
=================================

``riskbayes.rows`` reads files, queries and streams batch by batch. The fit is that of the same rows in
memory, and predictions go to a file.
"""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

import riskbayes
from riskbayes import MixedNB

folder = Path(tempfile.mkdtemp())
rng = np.random.default_rng(0)
for month in range(4):  # four files, as a pipeline leaves them
    bought = rng.random(2000) < 0.3
    page = np.where(
        rng.random(2000) < 0.4 + 0.4 * bought, "offer", rng.choice(["home", "search", "help"], 2000)
    )
    seconds = rng.gamma(np.where(bought, 3.0, 1.5), 20.0)
    table = pd.DataFrame({"page": page, "seconds": seconds, "bought": bought})
    table.to_parquet(folder / f"clicks-{month}.parquet")

# %%
files = riskbayes.rows(folder / "clicks-*.parquet", target="bought")
clf = MixedNB().fit(files)
print(clf.schema_)

# %%
clf.predict_to(riskbayes.rows(folder / "clicks-*.parquet", target="bought"), folder / "out.parquet")
answers = pd.read_parquet(folder / "out.parquet")
print(answers.head(3).round(3))

# %%
figure, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
ax.hist(answers.iloc[:, -1], bins=40)
ax.set(xlabel="probability that the visitor buys", ylabel="rows")
plt.show()
