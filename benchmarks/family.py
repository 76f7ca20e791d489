"""How accurate is `RiskBayesClassifier`? Held-out errors on the paper's 15 tabular sets, beside its peers.

Splits are `train_test_split(test_size=.25, random_state=13, 14, ...)`; sets above 8000 rows are cut to 8000
by a fixed seed; everything is chosen inside the training rows, and was composed on splits 0 to 2 and 100 to
104 (`benchmarks/compose.py`). Peers have their defaults, columns scaled for those that ask for it; those of
other packages are in the group `bench`. Every fit is a row of `benchmarks/results/family.csv`. The
explainable boosting machine takes minutes a fit, so it is run when asked for:
`timeout 400 python benchmarks/family.py --methods "explainable boosting"`; what has ended by then stays.

    RISKBAYES_DATA=<folder> python benchmarks/family.py            # fit, then print
    python benchmarks/family.py --print                            # print what is there
    python benchmarks/family.py --doc doc/accuracy.md              # write the page and its picture from it
    RISKBAYES_DATA=<folder> python benchmarks/family.py --time     # speed: results/family_time.txt
"""

import os
import resource
from importlib import import_module
from pathlib import Path
from time import perf_counter

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from study import Part, Study, judged, print_table, spread

from riskbayes import CategoricalNB, RiskBayesClassifier
from riskbayes.estimators.family import recipe
from riskbayes.learners import RC
from riskbayes.preprocessing import KMeansBins
from riskbayes_paper.datasets import load_csv

SEED = 0
PARTIAL = "explainable boosting"
"""What did not end on all sets."""

ONE_FIT = {
    "RC.paper NB": lambda: make_pipeline(
        KMeansBins(), CategoricalNB(alpha=1, class_alpha=1, learner=RC.paper())
    ),
    "single, closed form": lambda: recipe(0),
    "single": lambda: RiskBayesClassifier("single"),
    "neighbours": lambda: RiskBayesClassifier("neighbours"),
    "glass": lambda: RiskBayesClassifier("glass"),
    "default": lambda: RiskBayesClassifier(random_state=SEED),
    "logistic regression": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
    "RBF SVC": lambda: make_pipeline(StandardScaler(), SVC()),
    "random forest": lambda: RandomForestClassifier(random_state=SEED),
    "hist. gradient boosting": lambda: HistGradientBoostingClassifier(random_state=SEED),
    "CatBoost": lambda: import_module("catboost").CatBoostClassifier(
        verbose=False, random_seed=SEED, thread_count=1, allow_writing_files=False
    ),
    "LightGBM": lambda: import_module("lightgbm").LGBMClassifier(verbose=-1, n_jobs=1, random_state=SEED),
    PARTIAL: lambda: import_module("interpret.glassbox").ExplainableBoostingClassifier(
        n_jobs=1, random_state=SEED
    ),
}
OURS = ("RC.paper NB", "single, closed form", "single", "neighbours", "glass", "default")
PEERS = ("logistic regression", "RBF SVC", "random forest", "hist. gradient boosting", "CatBoost", "LightGBM")
SHOWN = ("single", "neighbours", "glass", "default", *PEERS)

HEADS = {
    "summary": ("method", "error %", "without red wine", "to the random forest", "to CatBoost"),
    "probabilities": ("method", "error %", "log loss", "Brier", "calibration error", "seconds"),
    "by_set": ("set", *SHOWN),
}


class Family(Study):
    """The long table, as sets x splits of every method; the splits are those that CatBoost ended on."""

    name, splits = "family", range(13, 18)
    methods = tuple(method for method in ONE_FIT if method != PARTIAL)

    def make(self, method: str, part: Part):
        return ONE_FIT[method]()

    def gap(self, a: str, b: str) -> tuple[float, float, int, int]:
        """Mean error of a less that of b in points, its standard error over splits, sets better and worse."""
        points = (100 * (self.grid(a) - self.grid(b))).round(9)  # so that equal errors are a tie
        by_set, by_split = points.mean(axis=1).round(9), points.mean(axis=0)
        return points.mean(), spread(by_split), int((by_set < 0).sum()), int((by_set > 0).sum())

    def summary(self) -> list[list[str]]:
        """A row a method: error, also without red wine, and the paired gaps to two peers."""
        rows, others = [], [name != "redwine" for name in self.sets]
        for method in (*OURS, *PEERS):
            cells = [method, f"{100 * self.grid(method).mean():.2f}"]
            cells.append(f"{100 * self.grid(method)[others].mean():.2f}")
            for peer in ("random forest", "CatBoost"):
                gap, error, better, worse = self.gap(method, peer)
                cells.append("" if method == peer else f"{gap:+.2f} ± {error:.2f}, {better}:{worse}")
            rows.append(cells)
        return rows

    def probabilities(self) -> list[list[str]]:
        """Log loss, Brier score, calibration error and seconds of a fit."""
        fields = ("log_loss", "brier", "calibration_error", "seconds")
        methods = [m for m in (*OURS, *PEERS) if m != "RBF SVC"]
        return [
            [m, f"{100 * self.grid(m).mean():.2f}", *(f"{self.grid(m, f).mean():.3f}" for f in fields)]
            for m in methods
        ]

    def loss_gap(self, a: str, b: str) -> tuple[float, float]:
        """Mean log loss of a less that of b, and its standard error over splits."""
        by_split = (self.grid(a, "log_loss") - self.grid(b, "log_loss")).mean(axis=0)
        return by_split.mean(), spread(by_split)

    def by_set(self) -> list[list[str]]:
        """Mean error of each set."""
        grids = [100 * self.grid(m).mean(axis=1) for m in SHOWN]
        return [[n, *(f"{g[i]:.2f}" for g in grids)] for i, n in enumerate(self.sets)]

    def show(self) -> None:
        console = Console(width=170)
        for name, head in HEADS.items():
            title = f"Held out, {len(self.sets)} sets, splits {list(self.splits)}: {name}"
            print_table(title, head, getattr(self, name)(), 170)
        for a, b, what in (
            ("single", "single, closed form", "what RC is worth to the single recipe"),
            ("glass", "single", "what the tables are worth to the single recipe"),
            ("glass", "CatBoost", "the glass box against CatBoost"),
            ("neighbours", "single", "the neighbours beside the recipe"),
            ("default", "single", "the default against the single recipe"),
            ("default", "CatBoost", "the default against CatBoost"),
        ):
            gap, error, better, worse = self.gap(a, b)
            console.print(
                f"{what}: {gap:+.2f} ± {error:.2f} points, better on {better}, worse on {worse} sets"
            )
        better, worse = self.worse_sets("glass", "single")
        console.print(f"glass is better than single on {better} sets, worse by a standard error on {worse}")
        for ours in ("default", "glass"):
            gap, error = self.loss_gap(ours, "CatBoost")
            console.print(f"log loss of {ours!r} less that of CatBoost: {gap:+.4f} ± {error:.4f}")


def time_fits() -> None:
    """Seconds to fit, beside CatBoost in two threads; large tables, memory, and prediction."""
    from mixed import CatBoost, Mixed

    console = Console(width=110)
    ours = ("single", "glass", "auto")
    found = Table("set", "rows x columns, classes", *ours, "CatBoost", *(f"{s} / CatBoost" for s in ours[1:]))
    ratios, warm = [], load_csv("iris")
    numbers, tables = Family(), Mixed()

    def two_threads():
        return ONE_FIT["CatBoost"]().set_params(thread_count=2)

    for strategy in ours:  # what is imported once
        RiskBayesClassifier(strategy, random_state=SEED).fit(warm.X, warm.y).predict(warm.X)
    for name in (*numbers.sets, *tables.sets):
        tabular = name in numbers.sets
        part = numbers.part(name, 0) if tabular else tables.part(name, 100)
        X, y = part.X, part.y
        methods = [RiskBayesClassifier(s, random_state=SEED) for s in ours]
        methods.append(two_threads() if tabular else CatBoost(2))
        seconds = [judged(clf, part)["seconds"] for clf in methods]
        ratios.append([seconds[1] / seconds[3], seconds[2] / seconds[3]])
        shape = f"{X.shape[0]} x {X.shape[1]}, {len(set(y))}"
        found.add_row(name, shape, *(f"{t:.2f}" for t in [*seconds, *ratios[-1]]))
    console.print(found)
    glass, default = np.median(ratios, axis=0)
    console.print(
        f"{os.cpu_count()} cores; median over {len(ratios)} sets: glass / CatBoost {glass:.3f}, default / "
        f"CatBoost {default:.3f}"
    )
    rng = np.random.default_rng(0)
    for m, n, r in ((15000, 16, 26), (100000, 20, 2)):
        y = rng.integers(r, size=m)
        X = rng.standard_normal((m, n)) + rng.standard_normal((r, n))[y] / 2
        before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, perf_counter()
        clf = RiskBayesClassifier(random_state=SEED).fit(X, y)
        middle, peak = perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        clf.predict(X[:10000])
        console.print(
            f"{m} x {n}, {r} classes: the default fits in {middle - start:.1f} s, predicts 10000 rows in "
            f"{perf_counter() - middle:.2f} s; the peak of resident memory rose from {before / 1024:.0f} to "
            f"{peak / 1024:.0f} MB, where the rows have {X.nbytes / 2**20:.0f}"
        )


if __name__ == "__main__":
    study = Family()
    parser = study.parser()
    parser.add_argument("--doc", type=Path, help="write the page of results to this file")
    parser.add_argument("--time", action="store_true", help="only measure speed")
    given = parser.parse_args()
    if given.time:
        time_fits()
    else:
        given.print |= given.doc is not None
        study.main(given)
        if given.doc:
            from family_page import write

            write(study, given.doc)
