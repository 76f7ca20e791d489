"""Which members does the family need? Candidates, and ensembles of them, on the splits for composing.

Splits 0 to 2 and 100 to 102 of the 15 tabular sets, and 100 to 103 of the tables with strings and holes; no
others. Every candidate is trained in every fold and on all training rows; its posteriors at the checkpoints
are kept in FOLDER, and ensembles are composed of them as `strategy="ensemble"` does. "forest" is the control:
the trees of "leaves" as a plain forest, whose posteriors are the mean class frequencies of the leaves.

    RISKBAYES_DATA=<folder> python benchmarks/compose.py walk FOLDER [--mixed]   # minutes on 16 cores
    python benchmarks/compose.py show FOLDER [--mixed]                           # results/compose*.txt
"""

import argparse
import os
import pickle
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import numpy as np
from default_rc import MOST_ROWS
from joblib import Parallel, delayed
from mixed import INTERACTIONS, names, table
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import QuantileTransformer
from threadpoolctl import threadpool_limits

from riskbayes import MixtureDiscriminantAnalysis, ProductOfExperts, RiskBayesClassifier, TreeAugmentedNB
from riskbayes.estimators import family as module
from riskbayes.estimators.family import family, fold_posteriors, folds_of, measured_columns, recipe
from riskbayes.estimators.kinds import Kinds, of_numbers
from riskbayes.estimators.member import CHECKPOINTS, Member
from riskbayes.models.base import Sample
from riskbayes.models.leaves import LeavesModel
from riskbayes.preprocessing import KMeansBins
from riskbayes.search import HeldOut
from riskbayes_paper.datasets import PAPER_TABULAR, load_csv

SPLITS = {False: (0, 1, 2, 100, 101, 102), True: (100, 101, 102, 103)}
FAMILY = ["product with neighbours", "leaves", "QDA, n", "QDA of indicators", "LDA"]


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


def unit(name: str, split: int, mixed: bool):
    """Return encoded rows, codes of the classes, the kinds of columns, and the number of training rows."""
    if mixed:
        X, y = table(name)
        train, test = train_test_split(np.arange(len(X)), test_size=0.25, random_state=split)
        clf = RiskBayesClassifier()
        cells = clf._input.read(clf, X.iloc[train], reset=True, learn=True)
        clf._input.decide(clf, clf._input.schema_of(clf, cells), more=False)
        test_cells = clf._input.read(clf, X.iloc[test], reset=False, learn=False)
        rows = [clf._input.encode(clf, each) for each in (cells, test_cells)]
        kinds = of_numbers(rows[0].shape[1]) if clf._table is None else Kinds.of(clf._table.kinds)
        codes = np.unique(y, return_inverse=True)[1]
    else:
        data = load_csv(name).cut(MOST_ROWS)
        train, test = train_test_split(np.arange(len(data.y)), test_size=0.25, random_state=split)
        rows, codes = [data.X[train], data.X[test]], np.asarray(data.y)
        kinds = of_numbers(data.X.shape[1])
    return np.concatenate(rows), np.concatenate([codes[train], codes[test]]), kinds, len(train)


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


def walk(name: str, split: int, mixed: bool, folder: Path) -> str:
    """Keep the posteriors of every candidate on one split; all four folds, to compare with fewer."""
    X, y, kinds, m = unit(name, split, mixed)
    r, rows, found = int(y.max()) + 1, np.arange(len(y)), {}
    columns, codes = measured_columns(kinds)
    module.ENOUGH_HELD = 10**9
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folds = folds_of(4, y[:m], None, 0)
        for member in [*candidates(kinds), None]:
            start, parts = perf_counter(), []
            for kept, held in [*folds, (rows[:m], rows[m:])]:
                if member is None:
                    parts.append(forest(X[:, columns], y, kept, held, r, codes))
                else:
                    parts.append(fold_posteriors(member, X, y, None, kept, held, r))
            label = "forest" if member is None else member.name
            held = np.concatenate(parts[:-1], axis=1)
            found[label] = held, parts[-1], perf_counter() - start
    whole = {"members": found, "y": y[:m], "y_test": y[m:], "folds": [held for _, held in folds]}
    (folder / f"{'mixed-' if mixed else ''}{name}-{split}.pickle").write_bytes(pickle.dumps(whole))
    return f"{name} {split}: {sum(seconds for *_, seconds in found.values()):.1f} s"


def risks(P: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Error in percent, and log loss."""
    right = P[np.arange(len(P)), y] / P.sum(axis=1)
    return 100 * (P.argmax(axis=1) != y).mean(), -np.log(np.maximum(right, 1e-15)).mean()


def judged(found: dict, names: list[str], enough: int, closed: bool, way: str) -> tuple[float, float]:
    """Error and log loss on the test rows of an ensemble of these members, or of the best of them."""
    names = [name for name in names if name in found["members"]]
    sizes = np.cumsum([len(held) for held in found["folds"]])
    k = min(len(sizes), int(np.searchsorted(sizes, enough)) + 1)
    y = found["y"][np.concatenate(found["folds"][:k])]
    held = HeldOut(y, None, 1 + int(max(found["y"].max(), found["y_test"].max())), True)
    for name in names:
        held.add([found["members"][name][0][: 1 if closed else None, : len(y)].astype(np.float32)])
    chosen = held.best() if way == "best" else held.ensemble()
    parts = [w * found["members"][names[i]][1][place].astype(np.float64) for (i, place), w in chosen.items()]
    return risks(sum(parts), found["y_test"])


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


def of_file(file: Path) -> dict:
    """Risks of all members at checkpoints, and of all ensembles, on one split."""
    found = pickle.loads(file.read_bytes())
    y, rows = found["y_test"], {}
    for name, (_, test, seconds) in found["members"].items():
        for place, scans in enumerate(CHECKPOINTS):
            rows[name, scans] = (*risks(test[place].astype(np.float64), y), seconds)
    for label, (members, enough, closed, way) in ENSEMBLES.items():
        if "with " not in label or members[-1] in found["members"]:
            rows["ensemble", label] = (*judged(found, members, enough, closed, way), 0.0)
    return rows


def show(folder: Path, mixed: bool, jobs: int) -> None:
    """Print means over sets of all that was walked."""
    files = [file for file in sorted(folder.glob("*.pickle")) if file.stem.startswith("mixed-") == mixed]
    found = Parallel(jobs)(delayed(of_file)(file) for file in files)
    sets = [file.stem.removeprefix("mixed-").rsplit("-", 1)[0] for file in files]
    left = INTERACTIONS if mixed else ("redwine",)
    keys = list(dict.fromkeys(key for rows in found for key in rows))
    print(f"{len(set(sets))} sets, splits {SPLITS[mixed]}: error (%) and log loss; without {', '.join(left)}")
    for key in keys:
        by_set: dict[str, list] = {}
        for name, rows in zip(sets, found, strict=True):
            if key in rows:
                by_set.setdefault(name, []).append(rows[key])
        means = {name: np.mean(values, axis=0) for name, values in by_set.items()}
        every = np.mean(list(means.values()), axis=0)
        rest = np.mean([value for name, value in means.items() if name not in left], axis=0)
        seconds = f", {every[2]:.2f} s for five fits" if every[2] else ""
        values = f"{every[0]:6.2f} {every[1]:.4f}   {rest[0]:6.2f} {rest[1]:.4f}"
        print(f"{key[0]:26s} {key[1]!s:34s} {values}{seconds}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=("walk", "show"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mixed", action="store_true", help="the tables with strings and holes")
    parser.add_argument("--sets", default="", help="only these, by commas")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    given = parser.parse_args()
    if given.what == "show":
        show(given.folder, given.mixed, given.jobs)
        sys.exit()
    given.folder.mkdir(exist_ok=True)
    chosen = [
        s for s in (names() if given.mixed else PAPER_TABULAR[::-1]) if s in (given.sets or s).split(",")
    ]
    todo = [(name, split) for name in chosen for split in SPLITS[given.mixed]]
    parts = Parallel(given.jobs, return_as="generator_unordered")(
        delayed(walk)(name, split, given.mixed, given.folder) for name, split in todo
    )
    for number, line in enumerate(parts, 1):
        print(f"{number}/{len(todo)} {line}", file=sys.stderr, flush=True)
