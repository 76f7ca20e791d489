"""A model of your own: the paper's toy example. Fixed equal weights, unit variances, two means."""

from typing import NamedTuple

import numpy as np

from riskbayes import GenerativeClassifier
from riskbayes.learners import RC
from riskbayes.models import GenerativeModel
from riskbayes.statistics import Statistics


class Theta(NamedTuple):
    log_prior: np.ndarray
    means: np.ndarray


class TwoMeans(GenerativeModel):
    def statistics(self, Z, W):
        return Statistics({"s0": W.sum(axis=0), "s1": W.T @ Z})

    def parameters(self, S):
        return Theta(np.log([0.5, 0.5]), S["s1"] / S["s0"][:, None])

    def log_joint(self, Z, theta):
        return theta.log_prior - 0.5 * np.log(2 * np.pi) - 0.5 * (Z - theta.means[:, 0]) ** 2

    def sample_rows(self, theta, y, rng):
        return rng.standard_normal((len(y), 1)) + theta.means[y]


if __name__ == "__main__":
    X, y = np.array([[0.0], [1.0], [4.0]]), np.array([1, 2, 2])
    clf = GenerativeClassifier(TwoMeans(), learner=RC(lr=0.5, step="fixed", generative_weight=0)).fit(X, y)
    print("soft error by iteration:", clf.history_["soft_error"].round(2)[[0, 1, 2, 4, 8, 16, 32, 64]])
    print("means:", clf.parameters_.means[:, 0].round(2), " three draws:", clf.sample(3, random_state=0))
