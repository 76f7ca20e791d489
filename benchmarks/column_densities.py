"""Would densities of their own pay in `MixedNB`: gamma and log-normal for positive numbers, beta for shares?

Columns of numbers of more than 20 values that are positive in all rows, of the tables with strings
and holes and of the paper's sets, at most 4000 rows, random 75/25 splits 100 to 102. Beta is for those that
lie between 0 and 1. Each density is that of a class, by maximum likelihood; "smooth" and "gaussian" are
those that `MixedNB` has.

- log p:  mean held-out log p(x_j | y) of a column, in nats a cell, minus that of "smooth"
- best:   on how many columns a density is the best one
- error:  held-out error of naive Bayes of these columns of a table alone, in percent, of closed forms

    RISKBAYES_DATA=<folder> python benchmarks/column_densities.py    # prints results/column_densities.txt
"""

import warnings

import numpy as np
from scipy import stats
from study import Part, markdown, spread, write_between
from trees import FEW_VALUES, Trees

from riskbayes import MixedNB

FAMILIES = {
    "gamma": lambda x: stats.gamma(*stats.gamma.fit(x, floc=0)),
    "log-normal": lambda x: stats.lognorm(*stats.lognorm.fit(x, floc=0)),
    "beta": lambda x: stats.beta(*stats.beta.fit(x, floc=0, fscale=1)),
}
MIXED = ("smooth", "gaussian")
FEWEST_ROWS = 10
"""Classes with fewer rows in training are left out."""


class ColumnDensities(Trees):
    """A row for each density, with means over the columns of a table that it can be of."""

    name, methods, n_shared = "column_densities", (*MIXED, *FAMILIES), 0
    figures = ("columns", "log_p", "median", "best", "error")

    def fit(self, methods, part: Part) -> dict[str, dict]:
        common = np.flatnonzero(np.bincount(part.y) >= FEWEST_ROWS)
        kept, held = (np.isin(y, common) for y in (part.y, part.y_test))
        X, X_test = part.X[kept], part.X_test[held]
        y, y_test = part.y[kept], part.y_test[held]
        numbers = X.select_dtypes("number")
        wide = [c for c in numbers if numbers[c].nunique() > FEW_VALUES and numbers[c].min() > 0]
        wide = [c for c in wide if (numbers.groupby(y)[c].nunique() > 1).all() and not (X_test[c] <= 0).any()]
        if not wide:
            return {}
        tables = {name: [] for name in methods}
        for column in wide:
            train, test = X[column].to_numpy(float), X_test[column].to_numpy(float)
            for name in methods:
                unit = train.max() if np.isnan(train).all() else max(np.nanmax(train), np.nanmax(test))
                tables[name].append(None if name == "beta" and unit >= 1 else densities(name, train, y, test))
        own = np.arange(len(y_test)), np.searchsorted(common, y_test)
        prior = np.log(np.bincount(y)[common] / len(y))
        scores = {
            n: [np.nan if t is None else np.nanmean(t[own]) for t in own_] for n, own_ in tables.items()
        }
        table = np.array([scores[name] for name in methods])
        first = np.nanargmax(table, axis=0)
        found = {}
        for i, name in enumerate(methods):
            gaps = (table[i] - table[0])[~np.isnan(table[i])]
            if not len(gaps):
                continue
            whole = [np.where(np.isnan(t), 0.0, t) for t in tables[name] if t is not None]
            answer = (sum(whole) + prior).argmax(axis=1)
            found[name] = {
                "columns": len(gaps),
                "log_p": gaps.mean(),
                "median": np.median(gaps),
                "best": (first == i).sum(),
                "error": np.mean(answer != own[1]) if len(gaps) == len(wide) else np.nan,
            }
        return found

    def show(self) -> None:
        lines = []
        for name in self.methods:
            columns, gap, best, error = (self.grid(name, f) for f in ("columns", "log_p", "best", "error"))
            there = ~np.isnan(columns)
            middle, known = self.grid(name, "median")[there], ~np.isnan(error).all(axis=1)
            loss = 100 * (error - self.grid("smooth", "error"))[known].mean(axis=1)
            words = f"{loss.mean():+.2f} ± {spread(loss):.2f}, higher on {(loss > 0).sum()} of {len(loss)}"
            lines.append(
                [
                    name,
                    f"{columns[there].sum():.0f}",
                    f"{(gap * columns)[there].sum() / columns[there].sum():+.3f}",
                    f"{np.median(middle):+.3f}",
                    f"{best[there].sum():.0f}",
                    words if len(loss) > 1 and name != "smooth" else "",
                ]
            )
        heads = ("density", "columns x splits", "log p - smooth, mean", "median of tables", "best on")
        table = markdown((*heads, "error - smooth, points, tables"), lines)
        print("\n".join(table))
        write_between("guide/densities.md", "column_densities", table)


def densities(name: str, x: np.ndarray, y: np.ndarray, x_test: np.ndarray) -> np.ndarray:
    """Return log p(x | y) of test cells by class, NaN where they are missing."""
    here, asked = ~np.isnan(x), ~np.isnan(x_test)
    classes = np.unique(y)
    found = np.full((len(x_test), len(classes)), np.nan)
    if name in MIXED:
        clf = MixedNB(name, learner="closed_form").fit(x[here, None], y[here])
        joint = clf.predict_joint_log_proba(x_test[asked, None])
        found[asked] = joint - clf.predict_joint_log_proba(np.full((1, 1), np.nan))
        return found
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k, label in enumerate(classes):
            found[asked, k] = FAMILIES[name](x[here & (y == label)]).logpdf(x_test[asked])
    return found


if __name__ == "__main__":
    ColumnDensities().main()
