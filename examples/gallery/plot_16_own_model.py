"""
A model of your own: directions of the wind
===========================================

Three formulas make a joint model a classifier: statistics, parameters, log joint. Angles have no place on a
line, so neither a normal density nor knots suit them; here each column has a von Mises distribution.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from matplotlib import pyplot as plt
from scipy.special import i0e, i1e

from riskbayes import RC, GaussianNB, GenerativeClassifier
from riskbayes.models import GenerativeModel
from riskbayes.statistics import Statistics


class Directions(NamedTuple):
    log_prior: np.ndarray
    mean: np.ndarray
    kappa: np.ndarray


@dataclass(frozen=True)
class VonMises(GenerativeModel):
    def statistics(self, Z, W):
        return Statistics({"s0": W.sum(axis=0), "cos": W.T @ np.cos(Z), "sin": W.T @ np.sin(Z)})

    def parameters(self, S):
        R = np.clip(np.hypot(S["cos"], S["sin"]) / S["s0"][:, None], 1e-6, 1 - 1e-6)
        kappa = R * (2 - R**2) / (1 - R**2)
        for _ in range(5):  # Newton's steps to I1(kappa) / I0(kappa) = R
            A = i1e(kappa) / i0e(kappa)
            kappa = np.maximum(kappa - (A - R) / (1 - A**2 - A / kappa), 1e-6)
        return Directions(np.log(S["s0"] / S["s0"].sum()), np.arctan2(S["sin"], S["cos"]), kappa)

    def log_joint(self, Z, theta):
        away = np.cos(Z[:, None, :] - theta.mean) - 1
        return theta.log_prior + (theta.kappa * away - np.log(2 * np.pi * i0e(theta.kappa))).sum(axis=2)


# %%
# Two kinds of days; the wind turns from north, which is an angle of pi and of -pi.
rng = np.random.default_rng(0)
y = rng.integers(2, size=600)
X = rng.vonmises(np.where(y[:, None] == 1, [np.pi, 0.3], [1.2, 0.0]), [2.0, 1.0])
models = {
    "Gaussian": GaussianNB(),
    "von Mises": GenerativeClassifier(VonMises(), learner=RC(generative_weight=0)),
}
for name, clf in models.items():
    clf.fit(X[:300], y[:300])
    print(f"{name:10} held-out error {100 * (1 - clf.score(X[300:], y[300:])):.1f} %")

# %%
angle = np.linspace(-np.pi, np.pi, 200)
rows = np.stack([angle, np.zeros_like(angle)], axis=1)
ax = plt.figure(figsize=(5, 5), layout="constrained").add_subplot(projection="polar")
for name, clf in models.items():
    ax.plot(angle, clf.predict_proba(rows)[:, 1], label=name)
ax.hist(X[y == 1, 0], bins=24, weights=np.full((y == 1).sum(), 0.02), alpha=0.3)
ax.set_title("probability of class 1 by the first direction")
ax.legend(loc="lower left")
plt.show()
