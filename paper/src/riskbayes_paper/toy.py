"""The paper's toy example: three rows, two classes, two means, and nothing else to learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from riskbayes.estimators import LinearDiscriminantAnalysis
from riskbayes.learners import RC
from riskbayes.models import LDAModel
from riskbayes.pages.table import Table
from riskbayes.plotting import new_figure
from riskbayes_paper.fitting import EachIteration

X = np.array([[0.0], [1.0], [4.0]])
LABELS = (1, 2, 2)
LR = 0.5
SHOWN = (0, 1, 2, 4, 8, 16, 32, 64)
"""The iterations of the paper's table; 0 is the closed form."""

STATISTICS = ("s0_1", "s1_1", "s0_2", "s1_2")
BLUE, RED = "#1f5fb4", "#c22f2f"


class UnitVariance:
    """The covariance one, whatever the rows."""

    covariance_ = np.eye(1)

    def fit(self, X: Any) -> None:
        """Learn nothing."""


class ToyClassifier(LinearDiscriminantAnalysis):
    """Two Gaussians of weight 1/2 and variance 1: their means s1 / s0 are all that moves."""

    def _make_model(self) -> LDAModel:
        return LDAModel(class_prior=np.array([0.5, 0.5]), covariance_estimator=UnitVariance())


@dataclass(frozen=True)
class Toy:
    """The classifiers of the iterations `t`, and what the paper prints of them.

    Parameters
    ----------
    t : tuple of int
        Iterations.
    posterior : dict of str to list of float
        "x,y" of each row to p(y | x), iteration by iteration.
    soft_error : list of float
        Mean of 1 - p(y | x) over the rows.
    statistics : list of list of float
        Mass and sum of class 1, then of class 2.
    models : list of ToyClassifier
        The classifiers.
    """

    t: tuple[int, ...]
    posterior: dict[str, list[float]]
    soft_error: list[float]
    statistics: list[list[float]]
    models: list[ToyClassifier]

    def as_json(self) -> dict[str, Any]:
        """Return all but the classifiers, as plain lists."""
        return {name: value for name, value in vars(self).items() if name != "models"}


def run_toy() -> Toy:
    """Run RC with learning rate 0.5 for 64 iterations.

    Examples
    --------
    >>> from riskbayes_paper.toy import run_toy
    >>> [round(value, 2) for value in run_toy().statistics[1]]
    [0.69, -0.33, 2.31, 5.33]
    """
    found: list[ToyClassifier] = []
    clf = ToyClassifier(learner=RC(lr=LR, max_iter=max(SHOWN), step="fixed", generative_weight=0.0))
    clf.set_callbacks(EachIteration(found.append)).fit(X, LABELS)
    models = [found[t] for t in SHOWN]
    own = np.array([m.predict_proba(X)[np.arange(len(X)), np.array(LABELS) - 1] for m in models])
    names = [f"{x:g},{y}" for x, y in zip(X[:, 0], LABELS, strict=True)]
    masses = [m.statistics_["s0"] for m in models]
    statistics = [
        np.column_stack([s0, s0 * m.means_[:, 0]]).ravel().tolist()
        for s0, m in zip(masses, models, strict=True)
    ]
    posterior = dict(zip(names, own.T.tolist(), strict=True))
    return Toy(SHOWN, posterior, (1 - own).mean(axis=1).tolist(), statistics, models)


def toy_table(toy: Toy) -> Table:
    """Return posteriors of the labels, soft error and statistics, one column an iteration."""
    lines = {f"p(y|x) at {name}": values for name, values in toy.posterior.items()}
    lines["soft error"] = toy.soft_error
    lines |= zip(STATISTICS, np.array(toy.statistics).T.tolist(), strict=True)
    rows = [[name, *(f"{value:.2f}" for value in values)] for name, values in lines.items()]
    return Table(["iteration", *map(str, toy.t)], rows, "RC on X = (0, 1, 4), Y = (1, 2, 2)")


def toy_figure(toy: Toy) -> Any:
    """Draw the paper's two panels: the closed form, and the model after the first step."""
    x = np.linspace(-1.0, 4.5, 401)
    figure = new_figure(9.0, 3.8)
    titles = ("Closed form (t = 0)", f"After the first step (t = 1, learning rate {LR:g})")
    for ax, clf, title in zip(figure.subplots(1, 2, sharey=True), toy.models[:2], titles, strict=True):
        joint = np.exp(clf.predict_joint_log_proba(x[:, None]))
        posterior, means = clf.predict_proba(x[:, None]), clf.means_[:, 0]
        boundary = means.mean()  # equal weights and variances
        ax.axvspan(x[0], boundary, color=BLUE, alpha=0.12, linewidth=0)
        ax.axvspan(boundary, x[-1], color=RED, alpha=0.12, linewidth=0)
        ax.axvline(boundary, color="black", linewidth=1.5)
        for k, colour in enumerate((BLUE, RED)):
            ax.plot(x, joint[:, k], color=colour, label=f"$p(x, y={k + 1})$")
            ax.plot(x, posterior[:, k], color=colour, linestyle="dashed", label=f"$p(y={k + 1} | x)$")
            ax.axvline(means[k], color=colour, linestyle="dotted", linewidth=1.2)
            above = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points", "ha": "center"}
            ax.annotate(rf"$\mu_{k + 1}={means[k]:.2f}$", (means[k], 1.0), (0, 3), color=colour, **above)
        colours = [(BLUE, RED)[label - 1] for label in LABELS]
        # The points sit on the axis, so they must not be cut at it.
        ax.scatter(X[:, 0], np.zeros(len(X)), c=colours, edgecolors="white", zorder=3, clip_on=False)
        ax.set(xlim=(-1, 4.5), ylim=(0, 1), xlabel="$x$")
        ax.set_title(title, pad=20)
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    return figure
