"""A model of your own with missing cells, explanations, samples and a file: naive Bayes of angles.

p(x_j | y) = exp(kappa cos(x_j - mu)) / (2 pi I0(kappa)), von Mises: psi(x) = (1, cos x, sin x).
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import i0e, i1e

import riskbayes
from riskbayes.models import GenerativeModel, Traits
from riskbayes.models.base import log_class_prior
from riskbayes.statistics import Statistics


class Directions(NamedTuple):
    log_prior: np.ndarray
    mean: np.ndarray
    kappa: np.ndarray


@dataclass(frozen=True)
class VonMises(GenerativeModel):
    traits: ClassVar[Traits] = Traits(takes_missing=True)
    alpha: float = 1.0  # pseudo-rows without a direction

    def statistics(self, Z, W):
        seen, x = ~np.isnan(Z), np.nan_to_num(Z)
        sums = {"cells": seen, "cos": seen * np.cos(x), "sin": seen * np.sin(x)}
        return Statistics({"s0": W.sum(axis=0), **{name: W.T @ part for name, part in sums.items()}})

    def parameters(self, S):
        R = np.clip(np.hypot(S["cos"], S["sin"]) / (S["cells"] + self.alpha).clip(self.alpha), 1e-6, 1 - 1e-6)
        kappa = R * (2 - R**2) / (1 - R**2)  # then Newton's steps to I1(kappa) / I0(kappa) = R
        for _ in range(5):
            A = i1e(kappa) / i0e(kappa)
            kappa = np.maximum(kappa - (A - R) / (1 - A**2 - A / kappa), 1e-6)
        return Directions(log_class_prior(S["s0"]), np.arctan2(S["sin"], S["cos"]), kappa)

    def contributions(self, Z, theta):
        x, kappa = Z[:, :, None], theta.kappa.T
        return np.nan_to_num(kappa * (np.cos(x - theta.mean.T) - 1) - np.log(2 * np.pi * i0e(kappa)))

    def log_joint(self, Z, theta):
        return theta.log_prior + self.contributions(Z, theta).sum(axis=1)

    def sample_rows(self, theta, y, rng):
        return rng.vonmises(theta.mean[y], theta.kappa[y])


if __name__ == "__main__":
    rng, y = np.random.default_rng(0), np.arange(2000) % 2
    X = rng.vonmises(np.where(y[:, None] == 1, [0.5, 3.0], [0.0, -3.0]), [2.0, 1.0])
    X[rng.random(X.shape) < 0.1] = np.nan  # the wind vane was frozen
    clf = riskbayes.GenerativeClassifier(VonMises()).fit(X[:1000], y[:1000])
    clf.save("angles.rb", classes=[VonMises, Directions])
    again = riskbayes.load("angles.rb", classes=[VonMises, Directions])
    print(again.score(X[1000:], y[1000:]), again.sample(1)[0], again.explain(X[:1]).values[0, :, 1].round(2))
