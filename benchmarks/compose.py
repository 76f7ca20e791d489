"""Which members does the family need? Candidates, and ensembles of them, on the splits for composing.

Splits 0 to 2 and 100 to 102 of the 15 tabular sets, and 100 to 103 of the tables with strings and holes; no
others. Every candidate is trained in every fold and on all training rows, and ensembles are composed of its
posteriors at the checkpoints as `strategy="ensemble"` does; a new ensemble trains its members only. "forest"
is the control: the trees of "leaves" as a plain forest, whose posteriors are the mean class frequencies of
the leaves.

    RISKBAYES_DATA=<folder> python benchmarks/compose.py           # minutes on 16 cores; results/compose.txt
    RISKBAYES_DATA=<folder> python benchmarks/compose.py --mixed   # results/compose_mixed.txt
"""

import sys
from dataclasses import replace
from time import perf_counter
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
from mixed import INTERACTIONS, Mixed
from sklearn.preprocessing import QuantileTransformer
from study import Part, Study

from riskbayes import MixtureDiscriminantAnalysis, ProductOfExperts, RiskBayesClassifier, TreeAugmentedNB
from riskbayes.estimators import family as module
from riskbayes.estimators.family import family, fold_posteriors, folds_of, measured_columns, recipe
from riskbayes.estimators.kinds import Kinds, of_numbers
from riskbayes.estimators.member import CHECKPOINTS, Member
from riskbayes.models.base import Sample
from riskbayes.models.leaves import LeavesModel
from riskbayes.preprocessing import KMeansBins
from riskbayes.search import HeldOut

FAMILY = ["product with neighbours", "leaves", "QDA, n", "QDA of indicators", "LDA"]
MORE = (
    *("product", "120 trees", "coarse leaves", "product of normal scores", "TAN", "MDA, 3 components"),
    "forest",
)


def candidates(kinds: Kinds) -> list[Member]:
    """The family, and what else was compared."""
    columns, codes = measured_columns(kinds)
    usual, n = LeavesModel(categories=codes), len(kinds.numbers)

    def leaves(**changes) -> ProductOfExperts:
        return ProductOfExperts([("leaves", replace(usual, **changes), columns)], [1.0])

    found = [
        *family(kinds),
        Member("product", recipe(kinds=kinds)),
        Member("120 trees", leaves(n_trees=120)),
        Member("coarse leaves", leaves(max_leaves=32, min_rows=20, power=3.0, alpha=20.0)),
    ]
    if not kinds.mixed:
        scores = QuantileTransformer(n_quantiles=50, output_distribution="normal")
        tied = MixtureDiscriminantAnalysis(3, covariance_strength=5 * n, diagonal_mix=0.5)
        found += [
            Member("product of normal scores", recipe(), scores),
            Member("TAN", TreeAugmentedNB(), KMeansBins()),
            Member("MDA, 3 components", tied),
        ]
    return found


def forest(X, y, kept, held, r: int, codes: tuple[int, ...] = ()) -> np.ndarray:
    """Posteriors of the trees of "leaves" as a plain forest, at every checkpoint."""
    frame = LeavesModel(categories=codes).learn(Sample(X[kept], y[kept], None, r))
    leaf, asked = frame.trees.codes(X[kept]), frame.trees.codes(X[held])
    P = np.zeros((len(held), r))
    for t, size in enumerate(frame.n_categories):
        counts = np.zeros((size, r))
        np.add.at(counts, (leaf[:, t], y[kept]), 1.0)
        P += (counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0))[asked[:, t]]
    P /= P.sum(axis=1, keepdims=True)
    return np.repeat(P[None].astype(np.float32), len(CHECKPOINTS), axis=0)


class Walked(NamedTuple):
    """A candidate on one split: posteriors of held-out rows of all folds and of the test rows; seconds."""

    held: np.ndarray
    test: np.ndarray
    seconds: float


class Rows(NamedTuple):
    """Encoded rows of a split, those of training first, and the held-out rows of each fold."""

    y: np.ndarray
    y_test: np.ndarray
    folds: list[np.ndarray]


def risks(P: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Error and log loss."""
    right = P[np.arange(len(P)), y] / P.sum(axis=1)
    return {"error": (P.argmax(axis=1) != y).mean(), "log_loss": -np.log(np.maximum(right, 1e-15)).mean()}


def ensemble(rows: Rows, found: dict[str, Walked], label: str) -> dict[str, float]:
    """Risks on the test rows of an ensemble, or of the best of its members."""
    names, enough, closed, way = ENSEMBLES[label]
    names = [name for name in names if name in found]
    k = min(len(rows.folds), int(np.searchsorted(np.cumsum([len(f) for f in rows.folds]), enough)) + 1)
    y = rows.y[np.concatenate(rows.folds[:k])]
    held = HeldOut(y, None, 1 + int(max(rows.y.max(), rows.y_test.max())), True)
    for name in names:
        held.add([found[name].held[: 1 if closed else None, : len(y)].astype(np.float32)])
    chosen = held.best() if way == "best" else held.ensemble()
    parts = [w * found[names[i]].test[place].astype(np.float64) for (i, place), w in chosen.items()]
    return risks(sum(parts), rows.y_test) | {"seconds": 0.0}


def without(old: str, new: str | None = None) -> list[str]:
    """The family without a member, or with another in its place."""
    return [new if name == old else name for name in FAMILY if name != old or new is not None]


EVERY = 10**9
ENSEMBLES = {
    "the family": (FAMILY, 1000, False, ""),
    "by all four folds": (FAMILY, EVERY, False, ""),
    "closed forms only": (FAMILY, 1000, True, ""),
    "the best member alone": (FAMILY, 1000, False, "best"),
    **{f"without {name}": (without(name), 1000, False, "") for name in FAMILY},
    "the control: forest for leaves": (without("leaves", "forest"), 1000, False, ""),
    "product for that with neighbours": (without(FAMILY[0], "product"), 1000, False, ""),
    **{
        f"with {name}": ([*FAMILY, name], 1000, False, "")
        for name in (
            "forest",
            "coarse leaves",
            "product",
            "product of normal scores",
            "TAN",
            "MDA, 3 components",
        )
    },
    "120 trees for 60": (without("leaves", "120 trees"), 1000, False, ""),
}


class Compose(Study):
    """Members at their checkpoints, and ensembles; those that a table has no columns for have no figures."""

    name, splits, figures = "compose", (0, 1, 2, 100, 101, 102), ("error", "log_loss", "seconds")
    left_out: tuple[str, ...] = ("redwine",)
    n_shared = 0
    methods = (
        *(f"{name} | {scans}" for name in (*FAMILY, *MORE) for scans in CHECKPOINTS),
        *(f"ensemble | {label}" for label in ENSEMBLES),
    )

    def encoded(self, part: Part) -> tuple[np.ndarray, Kinds]:
        """Training and test rows as the members read them, and the kinds of their columns."""
        return np.concatenate([part.X, part.X_test]), of_numbers(part.X.shape[1])

    def fit(self, methods, part: Part) -> dict[str, dict]:
        X, kinds = self.encoded(part)
        y, m = np.concatenate([part.y, part.y_test]), len(part.y)
        pairs = [method.split(" | ") for method in methods]
        asked = {n for key, label in pairs for n in (ENSEMBLES[label][0] if key == "ensemble" else [key])}
        with patch.object(module, "ENOUGH_HELD", EVERY):  # all four folds, to compare with fewer
            folds = folds_of(4, part.y, None, 0)
        splits, found = [*folds, (np.arange(m), np.arange(m, len(y)))], {}
        for member in (*candidates(kinds), None):
            name = "forest" if member is None else member.name
            if name in asked:
                found[name] = walked(member, X, y, kinds, splits)
        rows, figures = Rows(part.y, part.y_test, [held for _, held in folds]), {}
        for method, (key, label) in zip(methods, pairs, strict=True):
            if key in found:
                P = found[key].test[CHECKPOINTS.index(int(label))].astype(np.float64)
                figures[method] = risks(P, part.y_test) | {"seconds": found[key].seconds}
            elif key == "ensemble" and ("with " not in label or ENSEMBLES[label][0][-1] in found):
                figures[method] = ensemble(rows, found, label)
        return figures

    def show(self) -> None:
        """Print means over sets of all that was walked."""
        left = [name not in self.left_out for name in self.sets]
        words = f"error (%) and log loss; without {', '.join(self.left_out)}"
        print(f"{len(self.sets)} sets, splits {tuple(self.splits)}: {words}")
        for method in self.methods:
            error, loss, seconds = (self.grid(method, figure).mean(axis=1) for figure in self.figures)
            if np.isnan(error).all():
                continue
            cells = (
                f"{100 * np.nanmean(error[k]):6.2f} {np.nanmean(loss[k]):.4f}" for k in (slice(None), left)
            )
            spent = f", {np.nanmean(seconds):.2f} s for five fits" if np.nanmax(seconds) else ""
            key, label = method.split(" | ")
            print(f"{key:26s} {label:34s} {'   '.join(cells)}{spent}")


def walked(member: Member | None, X, y, kinds: Kinds, splits: list[tuple]) -> Walked:
    """Train a candidate, or the plain forest, in every fold and on all training rows."""
    start, parts, (columns, codes) = perf_counter(), [], measured_columns(kinds)
    for kept, held in splits:
        if member is None:
            parts.append(forest(X[:, columns], y, kept, held, int(y.max()) + 1, codes))
        else:
            parts.append(fold_posteriors(member, X, y, None, kept, held, int(y.max()) + 1))
    return Walked(np.concatenate(parts[:-1], axis=1), parts[-1], perf_counter() - start)


class ComposeMixed(Compose, Mixed):
    """The same on the tables with strings and holes."""

    name, splits, left_out = "compose_mixed", (100, 101, 102, 103), INTERACTIONS

    def encoded(self, part: Part) -> tuple[np.ndarray, Kinds]:
        clf = RiskBayesClassifier("single")
        cells = clf._input.read(clf, part.X, reset=True, learn=True)
        clf._input.decide(clf, clf._input.schema_of(clf, cells), more=False)
        test_cells = clf._input.read(clf, part.X_test, reset=False, learn=False)
        rows = [clf._input.encode(clf, each) for each in (cells, test_cells)]
        kinds = of_numbers(rows[0].shape[1]) if clf._table is None else Kinds.of(clf._table.kinds)
        return np.concatenate(rows), kinds


if __name__ == "__main__":
    study = ComposeMixed() if "--mixed" in sys.argv else Compose()
    parser = study.parser()
    parser.add_argument("--mixed", action="store_true", help="the tables with strings and holes")
    study.main(parser.parse_args())
