"""What is compared and how: models, priors, learners, splits, and which rows are trained on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split

from riskbayes import CategoricalNB, RiskBayesClassifier
from riskbayes.learners import DFE, GD, RC, TM, ClosedForm
from riskbayes.statistics import Array
from riskbayes_paper.paper_qda import PaperQDA

TEST_SIZE = 0.25
LR, MAX_ITER = 0.1, 64

PROTOCOLS = {
    "held-out": "trained on 75 % of the rows, tested on the other 25 %",
    "in-train": "trained on all rows, tested on 25 % of them",
}
MODELS = {
    "nb": "naive Bayes in five k-means bins",
    "qda": "quadratic discriminant analysis",
    "family": "RiskBayesClassifier, which the paper does not have, on held-out rows",
}
ESTIMATES = {"ml": "maximum likelihood", "map": "maximum a posteriori, the paper's prior"}
LEARNERS = {
    "closed_form": "closed form",
    "rc_paper": "RC (paper)",
    "rc": "RC (default)",
    "gd": "GD",
    "gd_scaled": "GD, scaled",
    "dfe": "DFE",
    "tm": "TM",
}
"""Names for the command and the table, and for readers."""

STRATEGIES = {"single": "single recipe", "cv": "by cross-validation", "ensemble": "ensemble"}
"""What the family has in place of a learner."""

ONLY_FOR = {"dfe": "nb", "gd_scaled": "qda"}
"""DFE adds to counts; a scale matters only where columns are not cut into bins."""

SETTINGS: dict[str, dict[str, Any]] = {
    "closed_form": {"learner": ClosedForm()},
    "rc_paper": {"learner": RC.paper()},
    "rc": {"learner": RC()},
    "gd": {"learner": GD(lr=LR, max_iter=MAX_ITER)},
    "gd_scaled": {"learner": GD(lr=LR, max_iter=MAX_ITER)},
    "dfe": {"learner": DFE(lr=LR, max_iter=MAX_ITER)},
    "tm": {"learner": TM(max_iter=MAX_ITER)},
    **{name: {"strategy": name} for name in STRATEGIES},
}

# ML has no prior, so a floor holds covariances that the rows do not determine. The paper does not name its
# own: 1e-2 of the total variance is a stand-in, here and for MAP. The paper's MAP: one
# pseudo-count a class and a cell, and strengths of ten with the pooled mean and covariance.
PRIORS: dict[tuple[str, str], Any] = {
    ("nb", "ml"): CategoricalNB(alpha=0.0),
    ("nb", "map"): CategoricalNB(alpha=1.0, class_alpha=1.0),
    ("qda", "ml"): PaperQDA(prior=None, covariance_floor=1e-2),
    ("qda", "map"): PaperQDA(
        prior=None,
        covariance_floor=1e-2,
        mean_strength=10.0,
        covariance_strength=10.0,
        class_alpha=1.0,
        prior_form="paper",
    ),
    ("family", "map"): RiskBayesClassifier(random_state=0),
}


class Unit(NamedTuple):
    """One unit of work, which is one row of the long table."""

    set: str
    split: int
    model: str
    estimate: str
    learner: str
    protocol: str


def make_classifier(model: str, estimate: str, learner: str) -> Any:
    """Return an unfitted classifier; naive Bayes expects the codes of bins."""
    return clone(clone(PRIORS[model, estimate]).set_params(**SETTINGS[learner]))


def settings_text(model: str, estimate: str, learner: str) -> str:
    """Return the classifier in words, for the long table."""
    scaled = "columns scaled to mean 0 and variance 1; " if learner == "gd_scaled" else ""
    return scaled + " ".join(repr(make_classifier(model, estimate, learner)).split())


def split_rows(m: int, split: int) -> tuple[Array, Array]:
    """Return the rows of the training and of the test part of a split."""
    train, test = train_test_split(np.arange(m), test_size=TEST_SIZE, random_state=split)
    return train, test


def plan(
    sets: list[str],
    n_splits: int,
    models: list[str],
    estimates: list[str],
    learners: list[str],
    protocols: list[str],
) -> list[Unit]:
    """Return every unit that these choices make, in the order of the sets."""
    return [
        unit
        for name in sets
        for protocol in protocols
        for split in range(n_splits)
        for model in models
        for estimate in estimates
        for learner in (*learners, *STRATEGIES)
        if is_compared(unit := Unit(name, split, model, estimate, learner, protocol))
    ]


def is_compared(unit: Unit) -> bool:
    """True if a unit is one of the experiments."""
    if unit.model == "family":
        return unit.learner in STRATEGIES and unit.estimate == "map" and unit.protocol == "held-out"
    return unit.learner in LEARNERS and ONLY_FOR.get(unit.learner, unit.model) == unit.model
