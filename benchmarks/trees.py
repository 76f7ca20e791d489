"""Are trees over all columns better joints and classifiers than naive Bayes and QDA, and do two parents pay?

The tables with strings and holes and the paper's sets of numbers, at most 4000 rows, random 75/25 splits 100
to 102, which are for composing; no others. A tree is `ConditionalGaussianNB`, and "k = 2" the same with two
parents. A table where that has more combinations of missing categories than it sums over has no figure of it.

- densities: mean held-out log p(x) of closed forms, in nats a row. Numbers of at most 20 values are
             categories in all models, so that all are densities of the same kind. QDA reads numbers only, and
             is compared with the others on these columns, where there are two or more
- errors:    held-out error and log loss of the tree, of k = 2 and of MixedNB as they are, by RC; and of the
             tree with numbers of few values as Gaussians (few_values=0)
- recipe:    `RiskBayesClassifier("single")`, and the same with the tree in place of its naive Bayes, or
             beside it
- family:    `RiskBayesClassifier("ensemble")`, and the same with the tree as one more member, of backoff=5
- time:      `--time` fits adult (48842 x 14), the tree and MixedNB in turn in this process

    RISKBAYES_DATA=<folder> python benchmarks/trees.py           # prints results/trees.txt, writes the page
    RISKBAYES_DATA=<folder> python benchmarks/trees.py --time    # prints results/trees_time.txt
"""

import sys
from contextlib import ExitStack
from functools import partial
from statistics import median
from time import perf_counter
from typing import ClassVar
from unittest.mock import patch

import numpy as np
import pandas as pd
from mixed import Mixed
from study import Part, judged, markdown, print_table, spread, write_between

from riskbayes import ConditionalGaussianNB, MixedNB, QuadraticDiscriminantAnalysis, RiskBayesClassifier
from riskbayes.estimators import family as module
from riskbayes.estimators import risk_bayes
from riskbayes.estimators.kinds import Kinds
from riskbayes.estimators.member import Member
from riskbayes.estimators.product_of_experts import ProductOfExperts
from riskbayes.models import ConditionalGaussianModel
from riskbayes_paper.datasets import PAPER_TABULAR, load_csv

FEW_VALUES = 20
DENSITIES = {
    "tree": ConditionalGaussianNB,
    "k = 2": partial(ConditionalGaussianNB, 2),
    "tree of Gaussians": partial(ConditionalGaussianNB, numeric="gaussian"),
    "MixedNB": MixedNB,
    "MixedNB of Gaussians": partial(MixedNB, "gaussian"),
}
NUMBERS = ("tree", "k = 2", "tree of Gaussians", "MixedNB", "QDA")
BY_RC = {
    "tree": ConditionalGaussianNB,
    "k = 2": partial(ConditionalGaussianNB, 2),
    "tree, few_values=0": partial(ConditionalGaussianNB, few_values=0),
    "MixedNB": MixedNB,
}
NUMBER_OF_SETS = tuple(name for name in PAPER_TABULAR if name != "adult_coded")


def tree_of(kinds: Kinds, backoff: float = 20.0) -> tuple[str, ConditionalGaussianModel, tuple[int, ...]]:
    """The tree as an expert for all columns that are measured."""
    columns, codes = module.measured_columns(kinds)
    return "tree", ConditionalGaussianModel(codes, alpha=1.0, backoff=backoff, smooth=True), columns


def with_tree(
    power: float, beside: bool, kinds: Kinds, n_rows: int = 0, n_iter: int = 32
) -> ProductOfExperts:
    """The recipe with a tree in place of naive Bayes, or beside it."""
    usual = module.recipe(n_iter, kinds, n_rows)
    powers, _ = module.MIXED_RECIPE if kinds.categories else module.RECIPE
    many = kinds.categories and n_rows >= module.MANY_ROWS
    experts = module.default_experts(len(kinds.numbers), module.MANY_KNOTS if many else module.FEW_KNOTS)
    triples, weights = module.experts_of(kinds, experts, list(powers))
    if not beside:
        kept = [i for i, (name, _, _) in enumerate(triples) if name not in ("categories", "numbers 1")]
        triples, weights = [triples[i] for i in kept], [weights[i] for i in kept]
    if module.measured_columns(kinds)[0]:
        triples, weights = [*triples, tree_of(kinds)], [*weights, power]
    return ProductOfExperts(triples, weights, learner=usual.learner)


def with_tree_member(kinds: Kinds) -> list:
    """The family and the tree."""
    marks = (
        [("marks", module.MarkModel(alpha=5.0, level=module.MARK_LEVEL), kinds.marks)] if kinds.marks else []
    )
    own = [tree_of(kinds, 5.0), *marks]
    return [*USUAL_FAMILY(kinds), Member("tree", ProductOfExperts(own, [1.0] * len(own)))]


USUAL_FAMILY = module.family
CHANGED = {
    "single": {},
    "single, tree for naive Bayes": {"recipe": partial(with_tree, 0.35, False)},
    "single, tree for naive Bayes, half power": {"recipe": partial(with_tree, 0.2, False)},
    "single, tree beside": {"recipe": partial(with_tree, 0.1, True)},
    "ensemble": {},
    "ensemble with the tree": {"family": with_tree_member},
}


class Trees(Mixed):
    """Densities, errors, and what a tree changes in the recipe and the family."""

    name, splits, most_rows = "trees", (100, 101, 102), 4000
    sets = (*Mixed.sets, *NUMBER_OF_SETS)
    figures = ("density", "median", "error", "log_loss", "seconds")
    methods = (
        *(f"density | {name}" for name in DENSITIES),
        *(f"numbers | {name}" for name in NUMBERS),
        *(f"rc | {name}" for name in BY_RC),
        *(f"strategy | {name}" for name in CHANGED),
    )

    def load(self, name: str) -> tuple[pd.DataFrame, np.ndarray]:
        if name not in NUMBER_OF_SETS:
            return super().load(name)
        data = load_csv(name).cut(self.most_rows)
        return pd.DataFrame(data.X, columns=[f"x{j}" for j in range(data.X.shape[1])]), data.y

    few: ClassVar[dict[str, list[str]]] = {}
    """Numbers of few values in each table."""

    def fit(self, methods, part: Part) -> dict[str, dict]:
        (method,) = methods
        try:
            return self.measured(method, part)
        except ValueError as error:
            if "combinations of the values" not in str(error):
                raise
            return {}

    def measured(self, method: str, part: Part) -> dict[str, dict]:
        """The figures of one method."""
        way, name = method.split(" | ")
        X, X_test = part.X, part.X_test
        numbers = X.select_dtypes("number").columns
        few = [c for c in numbers if X[c].nunique() <= FEW_VALUES]
        if way == "rc":
            return {method: judged(BY_RC[name](missing="informative"), part)}
        if way == "strategy":
            with ExitStack() as changed:
                for what, value in CHANGED[name].items():
                    changed.enter_context(patch.object(risk_bayes, what, value))
                return {
                    method: judged(RiskBayesClassifier(name.split(" ")[0].strip(","), random_state=0), part)
                }
        if way == "numbers":
            wide = [c for c in numbers if c not in few]
            wide = [c for c in wide if X[c].notna().any()]
            if len(wide) < 2:
                return {}
            part = part._replace(X=X[wide], X_test=X_test[wide])
            if name == "QDA":
                clf = QuadraticDiscriminantAnalysis(prior="recommended", learner="closed_form")
                part = part._replace(X=X[wide].to_numpy(float), X_test=X_test[wide].to_numpy(float))
            else:
                clf = DENSITIES[name](learner="closed_form")
        else:
            clf = DENSITIES[name](learner="closed_form", columns=dict.fromkeys(few, "category"))
        found = judged(clf, part)
        density = clf.score_samples(part.X_test)
        return {method: found | {"density": density.mean(), "median": np.median(density)}}

    def show(self) -> None:
        """Print the tables and what they come to; write that into the page."""
        shown = [m for m in self.methods if m.split(" | ")[0] in ("rc", "strategy")]
        for way, names in (("density", DENSITIES), ("numbers", NUMBERS)):
            grids = [self.grid(f"{way} | {name}", "density").mean(axis=1) for name in names]
            rows = [[n, *(f"{g[i]:.2f}" for g in grids)] for i, n in enumerate(self.sets) if g_is(grids, i)]
            columns = "all columns" if way == "density" else "numbers"
            print_table(
                f"Held-out log p(x) of closed forms, nats a row: {columns}", ("set", *names), rows, 110
            )
        errors = [100 * self.grid(m).mean(axis=1) for m in shown]
        rows = [[n, *(f"{e[i]:.2f}" for e in errors)] for i, n in enumerate(self.sets)]
        rows += [[], ["mean", *(f"{e.mean():.2f}" for e in errors)]]
        rows += [["log loss", *(f"{self.grid(m, 'log_loss').mean():.4f}" for m in shown)]]
        print_table("Held-out error, percent", ("set", *(m.split(" | ")[1] for m in shown)), rows, 150)
        longer = np.divide(
            *(self.grid(f"strategy | {m}", "seconds").mean(axis=1) for m in list(CHANGED)[:-3:-1])
        )
        words = f"A fit of the ensemble with the tree takes {np.median(longer):.2f} times as long (median)."
        found = [*self.densities(), "", *self.errors(), "", words]
        print("\n".join(found))
        write_between("guide/trees.md", "trees", found)

    def densities(self) -> list[str]:
        """A table in Markdown of how often, and by how much, the tree has the higher density."""
        lines = []
        for way, names in (("density", tuple(DENSITIES)), ("numbers", NUMBERS)):
            pairs = [("tree", other) for other in names if other not in ("tree", "k = 2")]
            for own, other in (*pairs, ("k = 2", "tree")):
                gaps = [
                    self.grid(f"{way} | {own}", figure).mean(axis=1)
                    - self.grid(f"{way} | {other}", figure).mean(axis=1)
                    for figure in ("density", "median")
                ]
                gaps = [gap[np.isfinite(gap)] for gap in gaps]
                higher = [f"{(gap > 0).sum()} of {len(gap)}" for gap in gaps]
                columns = "all" if way == "density" else "numbers"
                lines.append([columns, own, other, *higher, f"{np.median(gaps[0]):+.2f}"])
        heads = (
            "columns",
            "",
            "against",
            "higher mean log p(x)",
            "higher median",
            "median difference, nats a row",
        )
        return markdown(heads, lines)

    def errors(self) -> list[str]:
        """A table in Markdown of the differences of errors and log losses."""
        pairs = [("rc | tree", "rc | MixedNB"), ("rc | tree, few_values=0", "rc | MixedNB")]
        pairs += [("rc | k = 2", "rc | MixedNB"), ("rc | k = 2", "rc | tree")]
        pairs += [(f"strategy | {name}", "strategy | single") for name in CHANGED if name[:7] == "single,"]
        pairs += [("strategy | ensemble with the tree", "strategy | ensemble")]
        lines = []
        for a, b in pairs:
            cells = []
            for figure, scale, digits in (("error", 100, 2), ("log_loss", 1, 4)):
                gap = scale * (self.grid(a, figure) - self.grid(b, figure))
                gap = gap[np.isfinite(gap).all(axis=1)]
                means = gap.mean(axis=1)
                cells.append(f"{gap.mean():+.{digits}f} ± {spread(gap.mean(axis=0)):.{digits}f}")
                cells.append(f"{(means < -1e-9).sum()}, {(means > 1e-9).sum()} of {len(gap)}")
            lines.append([a.split(" | ")[1], b.split(" | ")[1], *cells])
        heads = ("", "against", "error, points", "lower, higher on", "log loss", "lower, higher on")
        return markdown(heads, lines)


def g_is(grids: list[np.ndarray], i: int) -> bool:
    """True if there are figures of a table."""
    return bool(np.isfinite(grids[0][i]))


def time_adult() -> None:
    """Print the seconds of fits of adult, in turn, and their ratio."""
    study = Trees()
    study.most_rows = None
    X, y = study.load("adult")
    print(f"adult, {X.shape[0]} x {X.shape[1]}: median seconds of five fits in turn")
    for learner in ("closed_form", "rc"):
        kinds = {"MixedNB": MixedNB, "tree": ConditionalGaussianNB}
        seconds = {name: [] for name in kinds}
        for _ in range(6):
            for name, kind in kinds.items():
                start = perf_counter()
                kind(learner=learner).fit(X, y)
                seconds[name].append(perf_counter() - start)
        mixed, tree = (median(values[1:]) for values in seconds.values())  # the first compiles
        print(f"{learner:12} MixedNB {mixed:.2f}, tree {tree:.2f}: ratio {tree / mixed:.2f}")


if __name__ == "__main__":
    if "--time" in sys.argv:
        time_adult()
    else:
        Trees().main()
