"""The paper's toy example: three rows, two classes, two means, and nothing else to learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from riskbayes.engines import MemoryEngine
from riskbayes.experiments.tables import Table
from riskbayes.frames import Origin
from riskbayes.learners import RC
from riskbayes.loop import Iteration, Task, run
from riskbayes.models import LDAModel
from riskbayes.plotting import new_figure
from riskbayes.risks import log_posterior
from riskbayes.statistics import Array

X = np.array([[0.0], [1.0], [4.0]])
LABELS = (1, 2, 2)
LR = 0.5
SHOWN = (0, 1, 2, 4, 8, 16, 32, 64)
"""The iterations of the paper's table; 0 is the closed form."""

STATISTICS = ("s0_1", "s1_1", "s0_2", "s1_2")
BLUE, RED = "#1f5fb4", "#c22f2f"


@dataclass(frozen=True)
class Toy:
    """What the iterations of `t` look like.

    Parameters
    ----------
    t : tuple of int
        Iterations.
    posterior : dict of str to list of float
        "x,y" of each row to p(y | x), iteration by iteration.
    soft_error : list of float
        Mean of 1 - p(y | x) over the rows.
    statistics : list of list of float
        Mass and sum of class 1, then of class 2, about the origin 0.
    models : list
        The model's parameters.
    """

    t: tuple[int, ...]
    posterior: dict[str, list[float]]
    soft_error: list[float]
    statistics: list[list[float]]
    models: list[Any]

    def as_json(self) -> dict[str, Any]:
        """All but the models, as plain lists."""
        return {
            "t": list(self.t),
            "posterior": self.posterior,
            "soft_error": self.soft_error,
            "statistics": self.statistics,
        }


def toy_model() -> LDAModel:
    """Two Gaussians of weight 1/2 and variance 1: their means s1 / s0 are all that moves."""
    return LDAModel(class_prior=np.array([0.5, 0.5]), fixed_covariance=np.eye(1))


def posteriors(log_joint: Array) -> Array:
    """p(y | x) from log p(x, y)."""
    return np.exp(log_posterior(log_joint))


def run_toy() -> Toy:
    """Run RC with learning rate 0.5 for 64 iterations.

    Examples
    --------
    >>> from riskbayes.experiments.toy import run_toy
    >>> [round(value, 2) for value in run_toy().statistics[1]]
    [0.69, -0.33, 2.31, 5.33]
    """
    codes = np.array(LABELS) - 1
    model = toy_model()
    rows = model.prepare(X)
    engine = MemoryEngine(model, rows, codes, None, 2)
    S = engine.statistics()
    engine.model = model = model.bind(S)
    names = [f"{x:g},{y}" for x, y in zip(X[:, 0], LABELS, strict=True)]
    toy = Toy(SHOWN, {name: [] for name in names}, [], [], [])
    zero = Origin(np.zeros(1))  # the paper's sums are about 0, the library's about the mean

    def record(iteration: Iteration) -> bool:
        if iteration.number in SHOWN:
            own = posteriors(model.log_joint(rows, iteration.theta))[np.arange(len(codes)), codes]
            for name, p in zip(names, own, strict=True):
                toy.posterior[name].append(float(p))
            toy.soft_error.append(iteration.risks["soft_error"])
            S = iteration.S.to_frame(zero)
            toy.statistics.append(np.column_stack([S["s0"], S["s1"][:, 0]]).ravel().tolist())
            toy.models.append(iteration.theta)
        return False

    run(Task(model, engine, S, S, on_iteration=record), RC(lr=LR, max_iter=max(SHOWN)))
    return toy


def toy_table(toy: Toy) -> Table:
    """Posteriors of the labels, the soft error and the statistics, one column an iteration."""
    lines = [(f"p(y|x) at {name}", values) for name, values in toy.posterior.items()]
    lines.append(("soft error", toy.soft_error))
    columns = np.array(toy.statistics).T.tolist()
    lines += list(zip(STATISTICS, columns, strict=True))
    return Table(
        ["iteration", *map(str, toy.t)],
        [[name, *(f"{value:.2f}" for value in values)] for name, values in lines],
        "RC on X = (0, 1, 4), Y = (1, 2, 2)",
    )


def toy_figure(toy: Toy) -> Any:
    """The paper's two panels: the closed form, and the model after the first step."""
    model = toy_model()
    x = np.linspace(-1.0, 4.5, 401)
    figure = new_figure(9.0, 3.8)
    titles = ("Closed form (t = 0)", f"After the first step (t = 1, learning rate {LR:g})")
    for ax, theta, title in zip(figure.subplots(1, 2, sharey=True), toy.models[:2], titles, strict=True):
        log_joint = model.log_joint(model.rows(x[:, None], theta), theta)
        joint, posterior = np.exp(log_joint), posteriors(log_joint)
        means = (theta.means + theta.frame.origin)[:, 0]
        boundary = means.mean()  # equal weights and variances
        ax.axvspan(x[0], boundary, color=BLUE, alpha=0.12, linewidth=0)
        ax.axvspan(boundary, x[-1], color=RED, alpha=0.12, linewidth=0)
        ax.axvline(boundary, color="black", linewidth=1.5)
        for k, colour in enumerate((BLUE, RED)):
            ax.plot(x, joint[:, k], color=colour, label=f"$p(x, y={k + 1})$")
            ax.plot(x, posterior[:, k], color=colour, linestyle="dashed", label=f"$p(y={k + 1} | x)$")
            ax.axvline(means[k], color=colour, linestyle="dotted", linewidth=1.2)
            ax.annotate(
                rf"$\mu_{k + 1}={means[k]:.2f}$",
                (means[k], 1.0),
                (0, 3),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                color=colour,
                ha="center",
            )
        colours = [(BLUE, RED)[label - 1] for label in LABELS]
        # The points sit on the axis, so they must not be cut at it.
        ax.scatter(X[:, 0], np.zeros(len(X)), c=colours, edgecolors="white", zorder=3, clip_on=False)
        ax.set(xlim=(-1, 4.5), ylim=(0, 1), xlabel="$x$")
        ax.set_title(title, pad=20)
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    return figure
