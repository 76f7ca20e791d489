r"""How far does training for the risk bend the density p(x), and what does `generative_weight` hold of it?

Six sets, three random 75/25 splits, RC with adaptive steps and 64 scans. By model and `generative_weight` g,
means over sets and splits:

- log p(x):  held-out log density of a row and column, minus that of the closed form; below zero is worse.
             Mean and median over the rows
- error:     held-out error in percent
- flagged:   share of held-out rows that `is_outlier(X, fpr=0.01)` flags, compared with all training rows, in
             percent. 1 would be right
- AUC:       on the sets of more than two classes: how well the density of a model without the rows of one
             class tells these rows from held-out rows of the others. 0.5 is chance

Constant columns are left out, and sets above 6000 rows are cut to 6000.

    RISKBAYES_DATA=<folder> python benchmarks/density.py --svg doc/density.svg \
        > benchmarks/results/density.txt
"""

import warnings
from argparse import ArgumentParser

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from riskbayes import FlooredWarning, GaussianNB, QuadraticDiscriminantAnalysis, SmoothNB
from riskbayes.learners import RC, ClosedForm
from riskbayes.plotting import new_figure
from riskbayes_paper.datasets import load_csv

SETS = ("satellite", "vehicle", "optdigits", "qsar", "magic", "pulsar")
SPLITS, MOST_ROWS, WEIGHTS = range(3), 6000, (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)
MODELS = {
    "GaussianNB": GaussianNB(),
    "SmoothNB": SmoothNB(),
    "QDA, prior": QuadraticDiscriminantAnalysis(prior="recommended"),
}
COLUMNS = ("log p(x), mean", "median", "error", "flagged", "AUC")


def learners() -> dict[str, RC | ClosedForm]:
    """The closed form, RC by g, and the default."""
    weights = {f"g = {g:g}": RC(step="adaptive", generative_weight=g) for g in WEIGHTS}
    return {"closed form": ClosedForm(), **weights, "learner='rc'": RC.recommended()}


def measured(model, X, y, X_test, y_test) -> np.ndarray:
    """The columns of the table for every learner."""
    closed, rows = None, []
    for learner in learners().values():
        clf = model.set_params(learner=learner).fit(X, y)
        density = clf.score_samples(X_test)
        closed = density if closed is None else closed
        gap = (density - closed) / X.shape[1]
        flagged = clf.is_outlier(X_test, 0.01, reference=X)
        error = np.mean(clf.predict(X_test) != y_test)
        rows.append([gap.mean(), np.median(gap), 100 * error, 100 * flagged.mean(), np.nan])
        if y.max() > 1:
            known, seen = y < y.max(), y_test < y_test.max()
            part = model.fit(X[known], y[known])
            rows[-1][4] = roc_auc_score(~seen, -part.score_samples(X_test))
    return np.array(rows)


def picture(found: dict[str, np.ndarray], path: str) -> None:
    """Draw the held-out log density and the error by g, one line a model."""
    figure = new_figure(8, 3.2)
    marks = {"GaussianNB": ("#0072b2", "o-"), "SmoothNB": ("#e69f00", "s--"), "QDA, prior": ("#222222", "^:")}
    places = np.arange(len(WEIGHTS) + 1)
    for ax, k, title in zip(
        figure.subplots(1, 2), (1, 2), ("median change of log p(x), a column", "error, percent"), strict=True
    ):
        for name, table in found.items():
            colour, style = marks[name]
            values = np.append(table[1 : 1 + len(WEIGHTS), k], table[0, k])
            ax.plot(places, values, style, color=colour, label=name, markersize=4)
        ax.set_xticks(places, [*(f"{g:g}" for g in WEIGHTS), "closed\nform"])
        ax.set(xlabel="generative_weight", title=title)
        ax.grid(axis="y", linewidth=0.4)
    ax.legend(fontsize=8)
    figure.savefig(path)


def main() -> None:
    parser = ArgumentParser()
    parser.add_argument("--svg", help="file of the picture")
    options = parser.parse_args()
    warnings.simplefilter("ignore", FlooredWarning)
    console, means = Console(width=120), {}
    each = Table("set", "model", "learner", *COLUMNS, title="By set")
    whole = Table("model", "learner", *COLUMNS, title="Means over the sets")
    for kind, model in MODELS.items():
        by_set = []
        for name in SETS:
            data = load_csv(name).cut(MOST_ROWS)
            X, y = data.X[:, np.ptp(data.X, axis=0) > 0], data.y
            found = []
            for split in SPLITS:
                parts = train_test_split(X, y, test_size=0.25, random_state=split, stratify=y)
                with threadpool_limits(1):
                    found.append(measured(model, parts[0], parts[2], parts[1], parts[3]))
            by_set.append(np.mean(found, axis=0))
            for learner, row in zip(learners(), by_set[-1], strict=True):
                each.add_row(name, kind, learner, *shown(row))
            each.add_section()
        means[kind] = np.nanmean(by_set, axis=0)
        for learner, row in zip(learners(), means[kind], strict=True):
            whole.add_row(kind, learner, *shown(row))
        whole.add_section()
    console.print(whole)
    console.print(each)
    if options.svg:
        picture(means, options.svg)


def shown(row: np.ndarray) -> list[str]:
    """The cells of a row of a table."""
    return ["" if np.isnan(v) else f"{v:.3f}" if k in (0, 1, 4) else f"{v:.2f}" for k, v in enumerate(row)]


if __name__ == "__main__":
    main()
