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

    RISKBAYES_DATA=<folder> python benchmarks/density.py --svg doc/density.svg    # prints results/density.txt
"""

import numpy as np
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from study import Part, Study, print_table

from riskbayes import GaussianNB, QuadraticDiscriminantAnalysis, SmoothNB
from riskbayes.learners import RC, ClosedForm
from riskbayes.plotting import new_figure

WEIGHTS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)
MODELS = {
    "GaussianNB": GaussianNB(prior=None),
    "SmoothNB": SmoothNB(),
    "QDA, prior": QuadraticDiscriminantAnalysis(prior="recommended"),
}
COLUMNS = ("log p(x), mean", "median", "error", "flagged", "AUC")


def learners() -> dict[str, RC | ClosedForm]:
    """The closed form, RC by g, and the default."""
    weights = {f"g = {g:g}": RC(step="adaptive", generative_weight=g) for g in WEIGHTS}
    return {"closed form": ClosedForm(), **weights, "learner='rc'": RC()}


class Density(Study):
    """Models by learners."""

    name, splits, figures = "density", range(3), ("mean", "median", "error", "flagged", "auc")
    sets, most_rows = ("satellite", "vehicle", "optdigits", "qsar", "magic", "pulsar"), 6000
    stratified, n_shared = True, 1
    methods = tuple(f"{model} | {learner}" for model in MODELS for learner in learners())

    def load(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        X, y = super().load(name)
        return X[:, np.ptp(X, axis=0) > 0], y

    def fit(self, methods, part: Part) -> dict[str, dict]:
        """The figures of every learner of a model; the closed form is the first."""
        kind, closed, found = methods[0].split(" | ")[0], None, {}
        _, _, X, X_test, y, y_test = part
        for name, learner in learners().items():
            clf = clone(MODELS[kind]).set_params(learner=learner).fit(X, y)
            density = clf.score_samples(X_test)
            closed = density if closed is None else closed
            gap = (density - closed) / X.shape[1]
            flagged = clf.is_outlier(X_test, 0.01, reference=X)
            figures = {"mean": gap.mean(), "median": np.median(gap), "flagged": flagged.mean()}
            figures["error"] = np.mean(clf.predict(X_test) != y_test)
            if y.max() > 1:
                known, seen = y < y.max(), y_test < y_test.max()
                rows = clf.fit(X[known], y[known])
                figures["auc"] = roc_auc_score(~seen, -rows.score_samples(X_test))
            found[f"{kind} | {name}"] = figures
        return found

    def by_set(self, method: str) -> np.ndarray:
        """Means over the splits: sets x figures."""
        scales = (1, 1, 100, 100, 1)
        figures = zip(self.figures, scales, strict=True)
        return np.stack([s * self.grid(method, figure).mean(axis=1) for figure, s in figures], axis=1)

    def show(self) -> None:
        each, whole = [], []
        for kind in MODELS:
            found = {learner: self.by_set(f"{kind} | {learner}") for learner in learners()}
            for learner, rows in found.items():
                whole.append([kind, learner, *shown(np.nanmean(rows, axis=0))])
            whole.append([])
            for i, name in enumerate(self.sets):
                for learner, rows in found.items():
                    each.append([name, kind, learner, *shown(rows[i])])
                each.append([])
        print_table("Means over the sets", ("model", "learner", *COLUMNS), whole, 120)
        print_table("By set", ("set", "model", "learner", *COLUMNS), each, 120)


def picture(study: Density, path: str) -> None:
    """Draw the held-out log density and the error by g, one line a model."""
    figure = new_figure(8, 3.2)
    marks = {"GaussianNB": ("#0072b2", "o-"), "SmoothNB": ("#e69f00", "s--"), "QDA, prior": ("#222222", "^:")}
    places = np.arange(len(WEIGHTS) + 1)
    for ax, k, title in zip(
        figure.subplots(1, 2), (1, 2), ("median change of log p(x), a column", "error, percent"), strict=True
    ):
        for name in MODELS:
            table = np.stack(
                [np.nanmean(study.by_set(f"{name} | {learner}"), axis=0) for learner in learners()]
            )
            colour, style = marks[name]
            values = np.append(table[1 : 1 + len(WEIGHTS), k], table[0, k])
            ax.plot(places, values, style, color=colour, label=name, markersize=4)
        ax.set_xticks(places, [*(f"{g:g}" for g in WEIGHTS), "closed\nform"])
        ax.set(xlabel="generative_weight", title=title)
        ax.grid(axis="y", linewidth=0.4)
    ax.legend(fontsize=8)
    figure.savefig(path)


def shown(row: np.ndarray) -> list[str]:
    """The cells of a row of a table."""
    return ["" if np.isnan(v) else f"{v:.3f}" if k in (0, 1, 4) else f"{v:.2f}" for k, v in enumerate(row)]


if __name__ == "__main__":
    study = Density()
    parser = study.parser()
    parser.add_argument("--svg", help="file of the picture")
    given = parser.parse_args()
    study.main(given)
    if given.svg:
        picture(study, given.svg)
