"""
Draw new rows
=============

``sample`` draws classes and rows from the joint. The closed form is the better density; calibration bends it
for the sake of the boundary.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits

from riskbayes import QuadraticDiscriminantAnalysis

X, y = load_digits(return_X_y=True)
inked = X.var(axis=0) > 0  # three pixels have no ink in any digit
figure, axes = plt.subplots(3, 10, figsize=(9, 3.2), layout="constrained")
rows = {
    "data": X[[np.flatnonzero(y == k)[0] for k in range(10)]][:, inked],
    "closed form": None,
    "RC": None,
}
for name, learner in (("closed form", "closed_form"), ("RC", "rc")):
    clf = QuadraticDiscriminantAnalysis(covariance_strength=20.0, diagonal_mix=0.5, learner=learner).fit(
        X[:, inked], y
    )
    drawn, labels = clf.sample(500, random_state=0)
    rows[name] = drawn[[np.flatnonzero(labels == k)[0] for k in range(10)]]
for line, (name, digits) in zip(axes, rows.items(), strict=True):
    for ax, digit in zip(line, digits, strict=True):
        picture = np.zeros(64)
        picture[inked] = digit.clip(0, 16)
        ax.imshow(picture.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
        ax.set(xticks=[], yticks=[])
    line[0].set_ylabel(name)
plt.show()
