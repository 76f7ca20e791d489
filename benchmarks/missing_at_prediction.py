# ruff: noqa: E501 (lines of the page)
"""Cells that are missing only at prediction: train on complete rows, then remove cells of the test rows.

From 0 to 70 percent of the cells, in one of two ways

- at random:              each cell by itself
- most informative first: whole columns, in the order of scikit-learn's mutual information with the class

Ours leave the cells out of the joint: the recipe (`RiskBayesClassifier("single")`), the ensemble
(`RiskBayesClassifier()`), MixedNB, a tree of all columns (`ConditionalGaussianNB`), and QDA with a prior where
all columns are numbers. Histogram boosting and CatBoost read NaN; "trained with gaps" is histogram boosting of the training rows and a copy of them
whose rows lack a random share of their cells, up to 70 percent; the random forest reads rows whose cells were filled by the median (of categories
by the most frequent one), or by scikit-learn's IterativeImputer, both fitted to the training rows.

Five sets of numbers and two tables with categories, at most 2000 rows, random 75/25 splits 20 to 24, on which
nothing was composed. Writes
doc/missing_at_prediction.md and its picture from the table of results.

    RISKBAYES_DATA=<folder> python benchmarks/missing_at_prediction.py            # fit, then write
    RISKBAYES_DATA=<folder> python benchmarks/missing_at_prediction.py --print    # write from the table
"""

import os
from itertools import product
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.figure import Figure
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.feature_selection import mutual_info_classif
from sklearn.impute import IterativeImputer, SimpleImputer
from study import DOC, Part, Study, measures, spread

from riskbayes import ConditionalGaussianNB, MixedNB, QuadraticDiscriminantAnalysis, RiskBayesClassifier
from riskbayes.datasets import load_adult_sample

WAYS = ("at random", "most informative first")
SHARES = (0, 10, 20, 30, 40, 50, 60, 70)
OURS = ("recipe", "ensemble", "MixedNB", "tree", "QDA")
GAPS = "boosting trained with gaps"
OTHERS = ("histogram boosting", GAPS, "CatBoost", "forest, median", "forest, iterative")
MODELS = (*OURS, *OTHERS)
TABLES = ("car_evaluation", "adult")
COLOURS = (
    "#0072b2",
    "#222222",
    "#56b4e9",
    "#009e73",
    "#8c6bb1",
    "#d55e00",
    "#e69f00",
    "#cc79a7",
    "#999999",
    "#b09060",
)


class Boosted:
    """CatBoost, which reads categories as strings."""

    def __init__(self, categories):
        from catboost import CatBoostClassifier  # of the group bench only

        self.categories = categories
        self.clf = CatBoostClassifier(
            iterations=300, verbose=False, thread_count=1, random_seed=0, allow_writing_files=False
        )

    def frame(self, X):
        """The rows with categories as strings."""
        found = pd.DataFrame(X)
        for j in self.categories:
            found[j] = found[j].map(lambda v: "missing" if np.isnan(v) else f"c{v:.0f}")
        return found

    def fit(self, X, y):
        self.clf.fit(self.frame(X), y, cat_features=list(self.categories))
        self.classes_ = self.clf.classes_
        return self

    def predict_proba(self, X):
        return self.clf.predict_proba(self.frame(X))


class Filled:
    """A random forest of rows whose missing cells an imputer fills."""

    def __init__(self, imputer):
        self.imputer, self.forest = imputer, RandomForestClassifier(100, random_state=0)

    def fit(self, X, y):
        self.forest.fit(self.imputer.fit_transform(X), y)
        self.classes_ = self.forest.classes_
        return self

    def predict_proba(self, X):
        return self.forest.predict_proba(self.imputer.transform(X))


def filler(model: str, n: int, categories: list[int]):
    """The imputer of a forest."""
    if model == "forest, iterative":
        return IterativeImputer(max_iter=5, random_state=0)
    numbers = [j for j in range(n) if j not in categories]
    return make_column_transformer(
        (SimpleImputer(strategy="median"), numbers), (SimpleImputer(strategy="most_frequent"), categories)
    )


def without(X, way: str, share: int, order, seed: int):
    """Rows without a share of their cells."""
    if way == WAYS[0]:
        return np.where(np.random.default_rng(seed).random(X.shape) < share / 100, np.nan, X)
    found = X.copy()
    found[:, order[: round(share / 100 * X.shape[1])]] = np.nan
    return found


class MissingAtPrediction(Study):
    """Models by the way and the share of the missing cells; each model is fitted once a split."""

    name, splits, figures, n_shared = "missing_at_prediction", range(20, 25), ("error", "log_loss"), 1
    sets, most_rows = ("vehicle", "qsar", "satellite", "redwine", "magic", *TABLES), 2000
    methods = tuple(map(" | ".join, product(MODELS, WAYS, map(str, SHARES))))

    def load(self, name: str):
        if name not in TABLES:
            return super().load(name)
        if name == "adult":
            table = load_adult_sample().dropna()
        else:
            table = pd.read_csv(Path(os.environ["RISKBAYES_DATA"]) / "mixed" / f"{name}.csv.gz")
        rows = np.random.default_rng(0).permutation(len(table))[: self.most_rows]
        table = table.iloc[rows]
        *columns, target = table.columns
        words = [column for column in columns if table[column].dtype.kind not in "iuf"]
        codes = table[columns].apply(lambda c: c.astype("category").cat.codes if c.name in words else c)
        X = codes.to_numpy(dtype=float)
        self.categories[name] = [columns.index(word) for word in words]
        return X, np.unique(table[target], return_inverse=True)[1]

    categories: ClassVar[dict[str, list[int]]] = {}
    """Columns of codes."""

    def made(self, model: str, n: int, categories: list[int]):
        """The unfitted classifier; None if it does not read categories."""
        marked = {"categorical_features": categories} if categories else {}
        match model:
            case "recipe":
                return RiskBayesClassifier("single", **marked)
            case "ensemble":
                return RiskBayesClassifier("ensemble", random_state=0, **marked)
            case "MixedNB":
                return MixedNB(**marked)
            case "tree":
                return ConditionalGaussianNB(**marked)
            case "QDA":
                return None if categories else QuadraticDiscriminantAnalysis(prior="recommended")
            case "histogram boosting" | "boosting trained with gaps":
                own = {"categorical_features": categories} if categories else {}
                return HistGradientBoostingClassifier(random_state=0, **own)
            case "CatBoost":
                return Boosted(categories)
        return Filled(filler(model, n, categories))

    def fit(self, methods, part: Part) -> dict[str, dict]:
        model = methods[0].split(" | ")[0]
        X, y, categories = part.X.astype(float), part.y, self.categories.get(part.set, [])
        clf = self.made(model, X.shape[1], categories)
        if clf is None:
            return {}
        rows, labels = X, y
        if model == GAPS:
            rng = np.random.default_rng(part.split)
            gone = rng.random(X.shape) < 0.7 * rng.random((len(X), 1))
            rows, labels = np.concatenate([X, np.where(gone, np.nan, X)]), np.concatenate([y, y])
        clf.fit(rows, labels)
        discrete = np.isin(np.arange(X.shape[1]), categories)
        order = np.argsort(-mutual_info_classif(X, y, discrete_features=discrete, random_state=0))
        found = {}
        for method in methods:
            _, way, share = method.split(" | ")
            rows = without(part.X_test.astype(float), way, int(share), order, part.split)
            P = np.zeros((len(rows), 1 + max(y.max(), part.y_test.max())))
            P[:, np.asarray(clf.classes_, dtype=int)] = clf.predict_proba(rows)
            found[method] = {name: measures(P, part.y_test)[name] for name in self.figures}
        return found

    def means(self, figure: str, sets, way: str) -> pd.DataFrame:
        """The mean of a figure over sets and splits, by model and share."""
        rows = [list(self.sets).index(name) for name in sets]
        scale = 100 if figure == "error" else 1
        cells = {
            model: [scale * self.grid(f"{model} | {way} | {share}", figure)[rows].mean() for share in SHARES]
            for model in MODELS
        }
        return pd.DataFrame(cells, index=SHARES).T

    def show(self) -> None:
        numbers = [name for name in self.sets if name not in TABLES]
        for way, figure in product(WAYS, self.figures):
            print(
                f"{figure}, {way}, sets of numbers\n{self.means(figure, numbers, way).round(3).to_string()}\n"
            )
            print(f"{figure}, {way}, tables\n{self.means(figure, TABLES, way).round(3).to_string()}\n")
        self.picture(numbers)
        page = self.page(numbers).rstrip() + "\n"
        (DOC / "missing_at_prediction.md").write_text(page, encoding="utf-8")

    def picture(self, numbers) -> None:
        """The error by the share of missing cells, of the sets of numbers."""
        colours = dict(
            zip(
                MODELS,
                COLOURS,
                strict=True,
            )
        )
        figure = Figure(figsize=(7.6, 3.8), layout="constrained")
        for ax, way in zip(figure.subplots(1, 2, sharey=True), WAYS, strict=True):
            for model, row in self.means("error", numbers, way).iterrows():
                style = {"linewidth": 2.0} if model in OURS else {"linewidth": 1.2, "linestyle": "--"}
                ax.plot(SHARES, row, color=colours[model], label=model, **style)
            ax.set_title(way, fontsize=9)
            ax.set_xlabel("missing cells of the test rows, percent")
            ax.grid(axis="y", color="#dddddd", linewidth=0.6)
            for side in ("top", "right"):
                ax.spines[side].set_visible(False)
        figure.axes[0].set_ylabel("error, percent")
        figure.axes[0].legend(frameon=False, fontsize=7)
        with rc_context({"svg.hashsalt": "missing_at_prediction.svg", "svg.fonttype": "none"}):
            figure.savefig(DOC / "missing_at_prediction.svg", metadata={"Date": None})

    def table(self, figure: str, sets, way: str) -> str:
        """Some shares as a table in Markdown; the least figure of each column is bold."""
        found = self.means(figure, sets, way)[[0, 10, 30, 50, 70]].dropna()
        digits, best = (1 if figure == "error" else 3), found.min()
        lines = [f"| {figure.replace('_', ' ')} | {' | '.join(f'{share} %' for share in found)} |"]
        lines.append("|---" * (1 + found.shape[1]) + "|")
        for model, row in found.iterrows():
            cells = [f"{v:.{digits}f}" for v in row]
            cells = [
                f"**{c}**" if c == f"{best[s]:.{digits}f}" else c for c, s in zip(cells, found, strict=True)
            ]
            lines.append(f"| {model} | {' | '.join(cells)} |")
        return "\n".join(lines)

    def gap(self, a: str, b: str, way: str, share: int, sets) -> str:
        """How much lower the error of a is than that of b, in points."""
        rows = [list(self.sets).index(name) for name in sets]
        cells = [100 * self.grid(f"{m} | {way} | {share}")[rows] for m in (b, a)]
        gap = cells[0] - cells[1]
        lower = int((gap.mean(axis=1) > 0).sum())
        return f"{gap.mean():+.1f} ± {spread(gap.mean(axis=0)):.1f}, {lower} of {len(rows)}"

    def gaps(self, a: str, sets) -> str:
        """A table in Markdown of how much lower the error of a model is than those of the others."""
        cases = [(WAYS[0], 0), *product(WAYS, (30, 50, 70))]
        lines = [f"| {a}, missing | {' | '.join(OTHERS)} |", "|---" * (1 + len(OTHERS)) + "|"]
        for way, share in cases:
            cells = [self.gap(a, other, way, share, sets) for other in OTHERS]
            named = f"{share} % {way}" if share else "nothing"
            lines.append(f"| {named} | {' | '.join(cells)} |")
        return "\n".join(lines)

    def best(self, sets, way: str, share: int) -> str:
        """The best of ours and of the others, with their errors."""
        column = self.means("error", sets, way)[share].dropna()
        ours, others = (column[column.index.isin(of)] for of in (OURS, OTHERS))
        return f"{ours.idxmin()} {ours.min():.1f} %, {others.idxmin()} {others.min():.1f} %"

    def page(self, numbers) -> str:
        """The page."""
        sections = []
        for way in WAYS:
            sections.append(f"### Missing {way}\n")
            for figure in self.figures:
                sections.append(f"Sets of numbers:\n\n{self.table(figure, numbers, way)}\n")
            for name, figure in product(TABLES, self.figures):
                sections.append(f"{name}:\n\n{self.table(figure, (name,), way)}\n")
        bests = "\n".join(
            f"| {share} % {way} | "
            + " | ".join(self.best(sets, way, share) for sets in (numbers, *((name,) for name in TABLES)))
            + " |"
            for way, share in product(WAYS, (10, 30, 50, 70))
        )
        return f"""# Cells that are missing only at prediction

<!-- written by benchmarks/missing_at_prediction.py -->

A sensor fails, a test was not made, a question was not answered: the model was trained on complete rows, and the
row to predict has gaps. A joint model leaves the missing cells out of p(x, y). That is exact for the model, and needs
neither an imputer nor training with gaps. How much is it worth?

`benchmarks/missing_at_prediction.py` trains on complete rows and removes cells of the test rows: {len(numbers)} sets
of numbers ({", ".join(numbers)}) and {len(TABLES)} tables with categories ({", ".join(TABLES)}), at most
{self.most_rows} rows, {len(self.splits)} random 75/25 splits on which nothing was composed. Cells go missing at random, or whole columns do, in the
order of their mutual information with the class. Nothing is trained again, and one peer only knows of gaps
beforehand:

| | |
|---|---|
| recipe, ensemble | `RiskBayesClassifier("single")` and `RiskBayesClassifier("ensemble")` |
| MixedNB, tree, QDA | `MixedNB()`, `ConditionalGaussianNB()`, `QuadraticDiscriminantAnalysis(prior="recommended")` |
| histogram boosting | scikit-learn's. A missing cell of a column without any in training goes the way of most rows |
| {GAPS} | the same of the training rows and a copy of them, of which each row lacks a random share of its cells, up to 70 % |
| CatBoost | 300 trees. A missing number counts as less than all others, its default |
| forest | 100 trees; cells are filled by the median (of categories by the most frequent one) or by `IterativeImputer`, fitted to the training rows |

All have their defaults otherwise. Every figure is of held-out rows, and written by the command from
`benchmarks/results/missing_at_prediction.csv`.

![Error by the share of missing cells, sets of numbers](missing_at_prediction.svg)

The lowest mean error of ours and of the others:

| missing | sets of numbers | {" | ".join(TABLES)} |
|---|---|---|---|
{bests}

On these sets of numbers the joint models lose least, at random and the most informative first. On adult all are
close. On car_evaluation, a complete table of a rule over all columns, others are better from 30 % on.

How many points lower the error is than that of the others, on sets of numbers (± standard error over the splits, which
share rows), and on how many of the sets it is lower:

{self.gaps("ensemble", numbers)}

{self.gaps("recipe", numbers)}

## Error and log loss

{chr(10).join(sections)}"""


if __name__ == "__main__":
    MissingAtPrediction().main()
