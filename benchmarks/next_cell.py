"""Cells measured one by one: does `next_cell` lower the log loss faster than other orders?

Complete test rows start with all cells hidden, and are shown one cell after another

- next_cell:  that of the largest expected gain, given the cells shown so far
- global:     in the order of the expected gain without any other cell, the same for all rows
- forward:    in the order that lowers the log loss of training rows most, cell by cell, the same for all rows
- random:     in a random order, of each row its own

Held-out log loss by the number of cells that are shown, and its mean over these numbers from one to all but
one, with the mean entropy of the posterior, which `next_cell` minimises, and the share of cells that
are those of `global`. GaussianNB, SmoothNB and QDA with a prior; 100 test rows of each split. The same for
`next_cell` and `global` with 100 rows drawn from the model itself: there its columns are as it says.

    RISKBAYES_DATA=<folder> python benchmarks/next_cell.py    # prints results/next_cell.txt
"""

from itertools import product

import numpy as np
from scipy.special import xlogy
from sklearn.datasets import load_breast_cancer, load_wine
from study import Part, Study, markdown, print_table, spread, write_between

from riskbayes import GaussianNB, QuadraticDiscriminantAnalysis, SmoothNB

MODELS = {
    "GaussianNB": GaussianNB,
    "SmoothNB": SmoothNB,
    "QDA": lambda: QuadraticDiscriminantAnalysis(prior="recommended"),
}
ORDERS = ("next_cell", "global", "forward", "random")
DRAWN = ("next_cell, drawn", "global, drawn")
BUNDLED = {"breast_cancer": load_breast_cancer, "wine": load_wine}
SHOWN = (1, 2, 3, 5, 8)
ROWS = 100


def log_loss(clf, X, y) -> float:
    """The mean log loss, of at most 36 a row."""
    return float(-np.maximum(clf.predict_log_proba(X)[np.arange(len(y)), y], -36.0).mean())


def entropy(clf, X) -> float:
    """The mean entropy of the posterior."""
    P = clf.predict_proba(X)
    return float(-xlogy(P, P).sum(axis=1).mean())


def forward_order(clf, X, y) -> list[int]:
    """Columns in the order that lowers the log loss of these rows most."""
    hidden, order = np.full(X.shape, np.nan), []
    while len(order) < X.shape[1]:
        losses = {}
        for j in set(range(X.shape[1])) - set(order):
            tried = hidden.copy()
            tried[:, j] = X[:, j]
            losses[j] = log_loss(clf, tried, y)
        order.append(min(losses, key=losses.get))
        hidden[:, order[-1]] = X[:, order[-1]]
    return order


class NextCells(Study):
    """Log loss by model and order."""

    name, splits, n_shared = "next_cell", range(3), 1
    sets, most_rows = ("wine", "breast_cancer", "vehicle", "magic", "pulsar", "redwine"), 2000
    figures = ("mean", "none", *(f"shown_{k}" for k in SHOWN), "all", "entropy", "as_global")
    methods = tuple(map(" | ".join, product(MODELS, (*ORDERS, *DRAWN))))

    def load(self, name: str):
        return BUNDLED[name](return_X_y=True) if name in BUNDLED else super().load(name)

    def fit(self, methods, part: Part) -> dict[str, dict]:
        kind = methods[0].split(" | ")[0]
        clf, found = MODELS[kind]().fit(part.X, part.y), {}
        rng = np.random.default_rng(part.split)
        X, y, n = part.X_test[:ROWS], np.searchsorted(clf.classes_, part.y_test[:ROWS]), part.X.shape[1]
        first = clf.next_cell(np.full((1, n), np.nan)).values[0]
        same = {"global": np.argsort(-first), "forward": forward_order(clf, part.X[:ROWS], part.y[:ROWS])}
        own = rng.permuted(np.tile(np.arange(n), (len(X), 1)), axis=1)
        drawn, labels = clf.sample(ROWS, random_state=part.split)
        rows = {"": (X, y), "drawn": (np.asarray(drawn, float), np.searchsorted(clf.classes_, labels))}
        for method in methods:
            order, _, kind = method.split(" | ")[1].partition(", ")
            X, y = rows[kind]
            every, shown = np.arange(len(X)), np.full(X.shape, np.nan)
            losses, entropies, alike = [log_loss(clf, shown, y)], [], []
            for k in range(n):
                if order == "next_cell":
                    picked = np.nan_to_num(clf.next_cell(shown).values, nan=-1.0).argmax(axis=1)
                else:
                    picked = own[:, k] if order == "random" else np.full(len(X), same[order][k])
                shown[every, picked] = X[every, picked]
                losses.append(log_loss(clf, shown, y))
                entropies.append(entropy(clf, shown))
                alike.append((picked == same["global"][k]).mean())
            found[method] = {
                "mean": np.mean(losses[1:-1]),
                "none": losses[0],
                "all": losses[-1],
                **{f"shown_{k}": losses[min(k, n)] for k in SHOWN},
                "entropy": np.mean(entropies[:-1]),
                "as_global": np.mean(alike[:-1]),
            }
        return found

    def show(self) -> None:
        heads = ("set", "model", "order", "mean", "none", *(f"{k} shown" for k in SHOWN), "all", "entropy")
        heads = (*heads, "as global")
        lines = []
        for i, name in enumerate(self.sets):
            for model in MODELS:
                for order in (*ORDERS, *DRAWN):
                    cells = [self.grid(f"{model} | {order}", f)[i].mean() for f in self.figures]
                    lines.append([name, model, order, *(f"{cell:.3f}" for cell in cells)])
                lines.append([])
        print_table("Held-out log loss", heads, lines, 130)
        found = []
        for model in MODELS:
            cells = [model]
            for order in ORDERS[1:]:
                gap = self.grid(f"{model} | {order}", "mean") - self.grid(f"{model} | next_cell", "mean")
                lower, of = (gap.mean(axis=1) > 0).sum(), len(gap)
                error = spread(gap.mean(axis=0))
                cells.append(f"{gap.mean():+.3f} ± {error:.3f}, {lower} of {of}")
            found.append(cells)
        table = markdown(("log loss more than by next_cell", *ORDERS[1:]), found)
        table += ["", *self.against_global()]
        print("\n".join(table))
        write_between("guide/next_cell.md", "next_cell", table)

    def against_global(self) -> list[str]:
        """A table in Markdown of what `next_cell` gains over `global` by the model's own measure."""
        found = []
        for model in MODELS:
            cells = [model]
            for figure, end in (("entropy", ""), ("entropy", ", drawn"), ("mean", ", drawn")):
                gap = self.grid(f"{model} | global{end}", figure)
                gap = gap - self.grid(f"{model} | next_cell{end}", figure)
                cells.append(f"{gap.mean():+.3f} ± {spread(gap.mean(axis=0)):.3f}")
            found.append([*cells, f"{self.grid(f'{model} | next_cell', 'as_global').mean():.0%}"])
        heads = ("global more than next_cell", "entropy", "entropy, rows of the model")
        return markdown((*heads, "log loss, rows of the model", "same cells"), found)


if __name__ == "__main__":
    NextCells().main()
