"""Which package is a docstring from? Naive Bayes of word counts on a real corpus that needs no download.

The docstrings of installed packages (modules, classes and functions, read from the source by `ast`); the
package is the label. The names of the packages are no words of the task, a docstring that several packages
have is left out of all of them, and so are those of few words. Then the speed and the memory of RC on a
generated table of 20000 x 50000.

    python benchmarks/docstrings.py corpus    # prints benchmarks/results/docstrings.txt
    python benchmarks/docstrings.py speed     # prints the end of it
    python benchmarks/docstrings.py choose    # prints benchmarks/results/docstrings_choose.txt
"""

import ast
import re
import resource
import sys
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.naive_bayes as theirs
from rich.console import Console
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from study import DATA, Part, Study, judged, print_table

from riskbayes import BernoulliNB, ComplementNB, MultinomialNB, PoissonNB
from riskbayes.learners import DFE, RC

PACKAGES = {
    "numpy": ("numpy", "np"),
    "scipy": ("scipy", "sp"),
    "sklearn": ("sklearn", "scikit"),
    "pandas": ("pandas", "pd"),
    "matplotlib": ("matplotlib", "mpl", "pyplot", "plt"),
    "polars": ("polars", "pl"),
    "numba": ("numba", "nb"),
    "narwhals": ("narwhals", "nw"),
    "fontTools": ("fonttools", "ttlib"),
    "mypy": ("mypy",),
    "hypothesis": ("hypothesis",),
    "rich": ("rich",),
    "joblib": ("joblib",),
    "PIL": ("pil", "pillow"),
    "pyarrow": ("pyarrow", "pa"),
}
"""Packages, and their names and usual abbreviations, which are not words of the corpus."""

FEWEST_WORDS = 5
"""Docstrings of fewer words are left out."""

NAMES = re.compile("|".join({name for names in PACKAGES.values() for name in names if len(name) > 3}))
SHORT = {name for names in PACKAGES.values() for name in names if len(name) <= 3}


def words(text: str) -> list[str]:
    """Return the words of a docstring in lower case, without names of packages."""
    found = re.findall(r"[a-z][a-z_]+", text.lower())
    return [word for word in found if word not in SHORT and not NAMES.search(word)]


def docstrings(package: str) -> Iterator[str]:
    """Yield the docstrings of a package, from its source files; those of its tests are left out."""
    place = find_spec(package)
    if place is None or place.origin is None:
        return
    for file in sorted(Path(place.origin).parent.rglob("*.py")):
        if "tests" in file.parts:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # escape sequences of other people's strings
                tree = ast.parse(file.read_text(encoding="utf-8", errors="replace"))
        except SyntaxError:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node)
                if text:
                    yield text


def corpus() -> tuple[list[str], np.ndarray]:
    """Return docstrings, as words with spaces between, and their packages; each of them once."""
    owners: dict[str, set[str]] = defaultdict(set)
    for package in PACKAGES:
        for text in docstrings(package):
            found = words(text)
            if len(found) >= FEWEST_WORDS:
                owners[" ".join(found)].add(package)
    kept = {text: next(iter(names)) for text, names in owners.items() if len(names) == 1}
    return list(kept), np.array(list(kept.values()))


def with_codes(texts: list[str], y: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Return docstrings and codes of their packages."""
    return texts, np.unique(y, return_inverse=True)[1]


class Docstrings(Study):
    """Held-out errors on the docstrings; the words are those of the training docstrings."""

    name, splits, sets, stratified = "docstrings", range(5), ("docstrings",), True
    figures, heads = ("error", "log_loss", "seconds"), ("model", "alpha", "learner")
    n_shared = 0
    title = "Held out, mean of splits 0 to 4, 75 % to train"

    def __init__(self):
        self.methods = list(self.settings())

    def settings(self) -> dict[str, Any]:
        """The classifiers by their names, alpha and learner."""
        return {" | ".join(map(str, key)): clf for key, clf in compared().items()}

    def load(self, name: str) -> tuple[list[str], np.ndarray]:
        return with_codes(*corpus())

    def part(self, name: str, split: int) -> Part:
        part = super().part(name, split)
        words_of = CountVectorizer(token_pattern=r"\S+").fit(part.X)
        return part._replace(X=words_of.transform(part.X), X_test=words_of.transform(part.X_test))

    def fit(self, methods: list[str], part: Part) -> dict[str, dict]:
        settings = self.settings()
        return {method: judged(settings[method], part, least=np.finfo(float).eps) for method in methods}

    def show(self) -> None:
        heads, rows = (*self.heads, "error %", "by split", "log loss", "seconds to fit"), []
        for method in self.methods:
            error, loss, seconds = (self.grid(method, figure)[0] for figure in self.figures)
            by_split = " ".join(f"{100 * e:.1f}" for e in error)
            cells = (f"{100 * error.mean():.2f}", by_split, f"{loss.mean():.3f}", f"{seconds.mean():.2f}")
            rows.append([*method.split(" | "), *cells])
        print_table(self.title, heads, rows, 130)


class DocstringsChoose(Docstrings):
    """The settings that were compared to choose alpha and the learner."""

    name, splits, heads = "docstrings_choose", range(100, 105), ("model", "alpha", "RC")
    title = "Held out, mean of splits 100 to 104, 30 settings"

    def settings(self) -> dict[str, Any]:
        return {" | ".join(map(str, key)): clf for key, clf in candidates().items()}


def candidates() -> dict[tuple, Any]:
    """Return the settings that were compared to choose alpha and the learner."""
    learners = {
        "fixed, lr 0.1": RC(lr=0.1, step="fixed", generative_weight=0.0),
        "fixed, lr 0.5": RC(lr=0.5, step="fixed", generative_weight=0.0),
        "adaptive": RC(step="adaptive", generative_weight=0.0),
        "adaptive, g 0.003": RC(step="adaptive", generative_weight=0.003),
        "adaptive, g 0.03": RC(step="adaptive", generative_weight=0.03),
        "quasi-Newton, g 0.01": RC(generative_weight=0.01),
        "quasi-Newton, g auto": RC(),
    }
    found: dict[tuple, Any] = {
        ("MultinomialNB", alpha, name): MultinomialNB(alpha=alpha, learner=learner)
        for alpha in (1.0, 0.1, 0.01)
        for name, learner in learners.items()
    }
    others = {BernoulliNB: (1.0, 0.1, 0.01), ComplementNB: (1.0, 0.1, 0.01), PoissonNB: (10.0, 1.0, 0.1)}
    for kind, alphas in others.items():
        for alpha in alphas:
            found[kind.__name__, alpha, "adaptive"] = kind(
                alpha=alpha, learner=RC(step="adaptive", generative_weight=0.0)
            )
    return found


CHOSEN = {MultinomialNB: 0.1, BernoulliNB: 0.1, ComplementNB: 0.1, PoissonNB: 10.0}
"""alpha of the least error + log loss by `choose`, which compares 30 settings on splits 100 to 104. The
learner "rc" of these estimators is RC(generative_weight=0.01), without the anchor for ComplementNB. Before,
three floors of the smoothed counts (alpha, alpha / 10 and 1e-9 of the total weight) were compared with 12
settings each on split 101: alpha was best, or as good, in all but one."""


def compared() -> dict[tuple, Any]:
    """Return the classifiers of the table of held-out errors."""
    found: dict[tuple, Any] = {}
    for kind, alpha in CHOSEN.items():
        for a, name, learner in (
            *((1.0, "closed form", "closed_form"), (1.0, "rc", "rc")),
            *((alpha, "closed form", "closed_form"), (alpha, "rc", "rc"), (alpha, "dfe", DFE())),
        ):
            found[kind.__name__, a, name] = kind(alpha=a, learner=learner)
    found["scikit-learn's ComplementNB", 1.0, ""] = theirs.ComplementNB()
    found["scikit-learn's LogisticRegression", "", ""] = LogisticRegression(max_iter=1000)
    found["scikit-learn's SGDClassifier", "", ""] = SGDClassifier(loss="log_loss", random_state=0)
    return found


def differences(texts: list[str], y: np.ndarray) -> Iterator[str]:
    """Yield how far our closed forms are from scikit-learn's, on all docstrings."""
    X = CountVectorizer(token_pattern=r"\S+").fit_transform(texts)
    for kind in (MultinomialNB, BernoulliNB, ComplementNB):
        for alpha in (1.0, 0.01):
            ours = kind(alpha=alpha, learner="closed_form").fit(X, y)
            twin = getattr(theirs, kind.__name__)(alpha=alpha).fit(X, y)
            far = [
                np.abs(getattr(ours, name)(X) - getattr(twin, name)(X)).max()
                for name in ("predict_joint_log_proba", "predict_log_proba")
            ]
            size = np.abs(twin.predict_joint_log_proba(X)).max()
            cells = np.abs(ours.feature_log_prob_ - twin.feature_log_prob_).max()
            yield (
                f"{kind.__name__}(alpha={alpha}): largest difference of log joints {far[0]:.1e} (they go to "
                f"{-size:.1e}), of log posteriors {far[1]:.1e}, of feature_log_prob_ {cells:.1e}"
            )


def generated(r: int, m: int = 20_000, n: int = 50_000, each: int = 100) -> tuple[csr_array, np.ndarray]:
    """Return a sparse table of counts, 0.2 % filled; a tenth of the words of a row are of its class."""
    rng = np.random.default_rng(r)
    y = rng.integers(r, size=m)
    block = n // r
    columns = rng.integers(n, size=(m, each))
    own = rng.random((m, each)) < 0.1
    columns[own] = (y[:, None] * block + columns % block)[own]
    bounds = np.arange(0, m * each + 1, each, dtype=np.int32)
    X = csr_array(
        (1.0 + rng.poisson(0.5, size=m * each), columns.astype(np.int32).ravel(), bounds), shape=(m, n)
    )
    X.sum_duplicates()
    return X, y


def peak() -> float:
    """Return the largest memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**10 if sys.platform != "darwin" else 2**20)


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return the wall-clock and the CPU seconds of a run."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def speed(console: Console) -> None:
    """Print times and memory of 64 iterations of RC and of 20 epochs of SGDClassifier, on the same rows.

    Both are timed in turn; times are medians, and the ratio is the median of those of the turns.
    """
    for r, turns in ((2, 11), (20, 3)):
        X, y = generated(r)
        MultinomialNB(learner=RC(max_iter=1, step="fixed", generative_weight=0.0)).fit(
            X, y
        )  # compiled code is loaded
        before = peak()
        clf = MultinomialNB(learner=RC(max_iter=64, step="fixed", generative_weight=0.0)).fit(X, y)
        after = peak()
        sgd = SGDClassifier(loss="log_loss", max_iter=20, tol=None, random_state=0)
        found = np.array(
            [[timed(lambda c=c, X=X, y=y: c.fit(X, y)) for c in (clf, sgd)] for _ in range(turns)]
        )
        (wall, cpu), (their_wall, their_cpu) = np.median(found, axis=0)
        ratio, cpu_ratio = np.median(found[:, 0] / found[:, 1], axis=0)
        console.print(
            f"{X.shape[0]} x {X.shape[1]}, {100 * X.nnz / np.prod(X.shape):.2f} % filled, {r} classes: RC, "
            f"{clf.n_iter_} iterations, {wall:.2f} s ({cpu:.2f} s of CPU); SGDClassifier, 20 epochs, "
            f"{their_wall:.2f} s ({their_cpu:.2f} s of CPU); ratio {ratio:.2f} ({cpu_ratio:.2f} of CPU). "
            f"Peak memory {before:.0f} MB before, {after:.0f} MB after; "
            f"a dense table has {8e-6 * np.prod(X.shape):.0f} MB.",
            soft_wrap=True,
        )


def main() -> None:
    """Print one part of the study."""
    part, console = sys.argv.pop(1) if sys.argv[1:] else "", Console(width=130)
    if part == "speed":
        return speed(console)
    if part not in ("corpus", "choose"):
        sys.exit("Which part? corpus, speed or choose.")
    texts, y = corpus()
    X = CountVectorizer(token_pattern=r"\S+").fit_transform(texts)
    fill = f"{100 * X.nnz / np.prod(X.shape):.3f} % filled"
    console.print(f"{X.shape[0]} docstrings, {X.shape[1]} words, {fill}, of {len(set(y))} packages:")
    console.print(", ".join(f"{name} {number}" for name, number in Counter(y.tolist()).most_common()))
    if part == "corpus":
        for line in differences(texts, y):
            console.print(line, soft_wrap=True)
    study = DocstringsChoose() if part == "choose" else Docstrings()
    DATA[study.name, "docstrings"] = with_codes(texts, y)
    study.main()


if __name__ == "__main__":
    main()
