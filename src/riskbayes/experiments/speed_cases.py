"""What is measured: each case yields figures that belong to one line of what must hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn import discriminant_analysis, naive_bayes
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import OneHotEncoder

import riskbayes
from riskbayes.engines.memory import MemoryEngine
from riskbayes.experiments.speed import Bench, Case, Figure, in_turn, peak_bytes, threads_in_use
from riskbayes.learners import RC
from riskbayes.models.base import Fitted
from riskbayes.objectives import LogLoss
from riskbayes.preprocessing import KMeansBins
from riskbayes.statistics import Array

BINS = 5
ITERATIONS = 64
LR = 0.1
HALF_A_POINT = 0.005
FIVE_MS = 0.005

PEERS: dict[str, tuple[type, type, dict[str, Any]]] = {
    "GaussianNB": (riskbayes.GaussianNB, naive_bayes.GaussianNB, {}),
    "LDA": (riskbayes.LinearDiscriminantAnalysis, discriminant_analysis.LinearDiscriminantAnalysis, {}),
    "QDA": (
        riskbayes.QuadraticDiscriminantAnalysis,
        discriminant_analysis.QuadraticDiscriminantAnalysis,
        {"reg_param": 1e-3},  # scikit-learn refuses a class covariance without full rank
    ),
}
"""Ours, scikit-learn's, and the arguments of both."""

CATEGORICAL: tuple[type, type, dict[str, Any]] = (riskbayes.CategoricalNB, naive_bayes.CategoricalNB, {})


class Iterations:
    """RC with a fixed step, one iteration a call: parameters, scan, step, and nothing of a fit around them.

    Parameters
    ----------
    clf : estimator
        Ours, not fitted.
    X, y : arrays
        Rows and class codes.
    """

    def __init__(self, clf: Any, X: Array, y: Array):
        clf.set_params(learner="closed_form").fit(X, y)
        self.model, self.start = clf.model_, clf.statistics_
        self.S = self.start
        self.engine = MemoryEngine(X, y, None, len(clf.classes_))

    def __call__(self) -> None:
        """One iteration on; from the closed form again where there is no legal step."""
        scan = self.engine.scan(Fitted.of(self.model, self.S), LogLoss())
        assert scan.dS is not None  # there is a residual
        moved = self.S + LR * scan.dS
        self.S = moved if self.model.is_legal(moved) else self.start


def by(*sizes: int) -> str:
    """Rows x features x classes."""
    return " x ".join(map(str, sizes))


def labels(m: int, r: int) -> Array:
    """Class codes, every class among them."""
    return np.random.default_rng(0).permutation(np.arange(m) % r)


def noise_codes(m: int, n: int) -> Array:
    """Uniform codes: they say nothing of the class, so that no posterior saturates and no row is idle."""
    return np.random.default_rng(1).integers(BINS, size=(m, n), dtype=np.uint8)


def gaussian_rows(y: Array, n: int) -> Array:
    """Gaussian classes that overlap: no row is idle."""
    rng = np.random.default_rng(1)
    means = 0.05 * rng.standard_normal((y.max() + 1, n))
    X = rng.standard_normal((len(y), n))
    X += means[y]
    return X


def closed_form_fit(
    bench: Bench, model: str, size: str, ours: Any, theirs: Any, X: Array, y: Array, bar: float
) -> Figure:
    """The closed form against another library's fit; both are left fitted."""
    return bench.compare(
        f"{model}, closed form", "sklearn fit", size, partial(ours.fit, X, y), partial(theirs.fit, X, y), bar
    )


def predictions(
    bench: Bench, model: str, method: str, size: str, ours: Any, theirs: Any, X: Array, bar: float
) -> Figure:
    """One method of two fitted classifiers."""
    mine, other = partial(getattr(ours, method), X), partial(getattr(theirs, method), X)
    return bench.compare(f"{model}, {method}", f"sklearn {method}", size, mine, other, bar)


def categorical(bench: Bench, name: str, X: Array, y: Array, bar: float) -> Iterator[Figure]:
    """Categorical naive Bayes on codes, against scikit-learn's and against reading them once."""
    Ours, Theirs, _ = CATEGORICAL
    size = f"{name}, {by(*X.shape, int(y.max()) + 1)}"
    ours, theirs = Ours(learner="closed_form"), Theirs()
    rc = Ours(learner=RC(lr=LR, max_iter=ITERATIONS, monitor="log_loss"))
    done = max(rc.fit(X, y).n_iter_, 1)
    yield bench.compare(
        f"NB, {ITERATIONS} RC iterations",
        "sklearn fit + predict_log_proba",
        size,
        partial(rc.fit, X, y),
        lambda: theirs.fit(X, y).predict_log_proba(X),
        bar,
        scale=ITERATIONS / done,
        note="" if done == ITERATIONS else f"RC stopped after {done} iterations; its time is scaled up.",
    )
    yield closed_form_fit(bench, "NB", size, ours, theirs, X, y, 0.25)
    yield predictions(bench, "NB", "predict_log_proba", size, ours, theirs, X, 0.25)
    yield bench.compare(
        "NB, one RC iteration", "reading the codes once", size, Iterations(Ours(), X, y), X.max
    )


def categorical_mnist(bench: Bench) -> Iterator[Figure]:
    """Saturated posteriors: few rows have a residual."""
    X, y = bench.mnist.X, bench.mnist.y
    bench.say("cutting the MNIST stand-in into bins")
    yield from categorical(bench, "MNIST", KMeansBins(BINS).fit_transform(X), y, 0.75)


def categorical_noise(bench: Bench) -> Iterator[Figure]:
    """No posterior saturates: every row has a residual."""
    m, n = bench.size(70_000, 512)
    yield from categorical(bench, "noise", noise_codes(m, n), labels(m, 10), 1.5)


def qda_mnist(bench: Bench) -> Iterator[Figure]:
    """One iteration of QDA against its forward product."""
    m = bench.size(20_000, 1)[0]
    yield from qda(bench, "MNIST", bench.mnist.X[:m], bench.mnist.y[:m], moments=False, bar=1.1)


def qda_synthetic(bench: Bench) -> Iterator[Figure]:
    """The same where every row has a residual: the second moments are part of the floor."""
    m, n = bench.size(20_000, 256)
    y = labels(m, 5)
    yield from qda(bench, "Gaussian", gaussian_rows(y, n), y, moments=True, bar=1.5)


def qda(bench: Bench, name: str, X: Array, y: Array, moments: bool, bar: float) -> Iterator[Figure]:
    """One RC iteration of QDA against the full products alone, and the memory of a fit."""
    (m, n), r = X.shape, int(y.max()) + 1
    size = f"{name}, {by(m, n, r)}"
    rng = np.random.default_rng(2)
    L, w = rng.standard_normal((r, n, n)), rng.standard_normal((r, m, 1))
    buffer, square = np.empty((m, n)), np.empty((n, n))

    def products() -> None:
        for k in range(r):
            np.matmul(X, L[k], out=buffer)
            if moments:
                np.matmul(np.multiply(X, w[k], out=buffer).T, X, out=square)

    Ours = riskbayes.QuadraticDiscriminantAnalysis
    floor = "X @ L and (w X)' X, each class" if moments else "X @ L, each class"
    yield bench.compare("QDA, one RC iteration", floor, size, Iterations(Ours(), X, y), products, bar)
    bench.say(f"memory of a QDA fit, {size}")
    peak = peak_bytes(lambda: Ours(learner=RC(lr=LR, max_iter=2, monitor="log_loss")).fit(X, y))
    yield Figure("QDA, peak memory of a fit", "0.25 X + 64 MB", size, peak, 0.25 * X.nbytes + 64e6, 1.0, "B")


def closed_forms(bench: Bench, name: str, X: Array, y: Array) -> Iterator[Figure]:
    """Fit and predict_proba of the Gaussian models against scikit-learn's."""
    size = f"{name}, {by(*X.shape, int(y.max()) + 1)}"
    for model, (Ours, Theirs, arguments) in PEERS.items():
        ours, theirs = Ours(learner="closed_form", **arguments), Theirs(**arguments)
        yield closed_form_fit(bench, model, size, ours, theirs, X, y, 1.0)
        yield predictions(bench, model, "predict_proba", size, ours, theirs, X, 1.0)


def closed_forms_synthetic(bench: Bench) -> Iterator[Figure]:
    """Gaussian classes, at three sizes."""
    for m, n in ((5000, 20), (50_000, 50), (70_000, 512)):
        m, n = bench.size(m, n)
        for r in (2, 10):
            y = labels(m, r)
            yield from closed_forms(bench, "Gaussian", gaussian_rows(y, n), y)


def closed_forms_mnist(bench: Bench) -> Iterator[Figure]:
    """Ten digits; below five or not."""
    X, y = bench.mnist.X, bench.mnist.y
    yield from closed_forms(bench, "MNIST", X, (y >= 5).astype(np.int64))
    yield from closed_forms(bench, "MNIST", X, y)


def iris(bench: Bench) -> Iterator[Figure]:
    """Small fits: what a call costs beside the arithmetic."""
    rows, y = load_iris(return_X_y=True)
    codes = KMeansBins(BINS).fit_transform(rows)
    for model, (Ours, Theirs, arguments) in {"CategoricalNB": CATEGORICAL, **PEERS}.items():
        X = codes if model == "CategoricalNB" else rows
        size = f"iris, {by(*X.shape, 3)}"
        rc = Ours(learner=RC(lr=LR, max_iter=ITERATIONS, monitor="log_loss"), **arguments)
        bench.say(f"{model}, {ITERATIONS} RC iterations, {size}")
        spent = in_turn([partial(rc.fit, X, y)], bench.budget)[0]
        yield Figure(f"{model}, {rc.n_iter_} RC iterations", "5 ms", size, spent, FIVE_MS, 1.0)
        ours, theirs = Ours(learner="closed_form", **arguments), Theirs(**arguments)
        yield closed_form_fit(bench, model, size, ours, theirs, X, y, 1.5)


GROWING: dict[str, Callable[..., Any]] = {
    "CategoricalNB": riskbayes.CategoricalNB,
    **{name: Ours for name, (Ours, _, _) in PEERS.items()},
}


def growth(bench: Bench) -> Iterator[Figure]:
    """One RC iteration on four times the rows, the features, the classes."""
    m, n = bench.size(50_000, 50)
    small = (m, n, 5)
    for what, large, bar in (
        ("rows", (4 * m, n, 5), 4.3),
        ("features", (m, 4 * n, 5), None),
        ("classes", (m, n, 20), None),
    ):
        for model, Ours in GROWING.items():
            once, fourfold = (
                Iterations(Ours(), *synthetic(model == "CategoricalNB", *size)) for size in (small, large)
            )
            size = f"from {by(*small)}"
            yield bench.compare(f"{model}, {what} x 4", "once", size, fourfold, once, bar)


def synthetic(codes: bool, m: int, n: int, r: int) -> tuple[Array, Array]:
    """Rows and labels in which no row is idle."""
    y = labels(m, r)
    return noise_codes(m, n) if codes else gaussian_rows(y, n), y


def logistic(bench: Bench, name: str, shown: str) -> Iterator[Figure]:
    """Time for default RC to come within half a point of logistic regression, on rows held out."""
    data = bench.table(name)
    X, X_test, y, y_test = train_test_split(data.X, data.y, test_size=0.25, random_state=0)
    bench.say(f"cutting {shown} into bins")
    bins = KMeansBins(BINS).fit(X)
    Z, Z_test = bins.transform(X), bins.transform(X_test)
    one_hot = OneHotEncoder(handle_unknown="ignore").fit(Z)
    wide, wide_test = one_hot.transform(Z), one_hot.transform(Z_test)
    size = f"{shown}, {by(*X.shape, int(y.max()) + 1)}"

    bench.say(f"logistic regression, {size}")
    peer = LogisticRegression()
    goal = float(np.mean(peer.fit(wide, y).predict(wide_test) != y_test))
    for scans in 2 ** np.arange(7):
        rc = riskbayes.CategoricalNB(learner=RC.recommended().set_params(max_iter=int(scans)))
        error = float(np.mean(rc.fit(Z, y).predict(Z_test) != y_test))
        if error <= goal + HALF_A_POINT:
            break
    errors = f"held-out error {100 * error:.2f} % with max_iter={scans}, {100 * goal:.2f} % by the peer."
    what, against = "NB, RC to the peer's error + 0.5", "LogisticRegression"
    fit, peer_fit = partial(rc.fit, Z, y), partial(peer.fit, wide, y)
    figure = bench.compare(what, against, size, fit, peer_fit, 0.5, note=errors)
    yield figure if error <= goal + HALF_A_POINT else replace(figure, ours=None)


def pomegranate(bench: Bench) -> Iterator[Figure]:
    """Gaussian naive Bayes as a Bayes classifier of another library, in its own precision."""
    threads = threads_in_use()
    try:
        import torch
        from pomegranate.bayes_classifier import BayesClassifier
        from pomegranate.distributions import Normal
    except ImportError as missing:
        raise ImportError("pomegranate is not installed.") from missing
    torch.set_num_threads(threads)  # it was loaded after the limit was set
    m, n = bench.size(50_000, 50)
    y = labels(m, 10)
    X = gaussian_rows(y, n).astype(np.float32)
    rows, codes = torch.from_numpy(X), torch.from_numpy(y)
    size = f"Gaussian float32, {by(m, n, 10)}"
    ours = riskbayes.GaussianNB(learner="closed_form").fit(X, y)

    def classifier() -> Any:
        return BayesClassifier([Normal(covariance_type="diag") for _ in range(10)]).fit(rows, codes)

    theirs = classifier()
    yield bench.compare(
        "GaussianNB, closed form", "pomegranate fit", size, partial(ours.fit, X, y), classifier
    )
    yield bench.compare(
        "GaussianNB, predict_proba",
        "pomegranate predict_proba",
        size,
        partial(ours.predict_proba, X),
        partial(theirs.predict_proba, rows),
    )


CASES = (
    Case(1, "categorical NB", "on the MNIST stand-in", categorical_mnist),
    Case(1, "categorical NB", "on noise", categorical_noise),
    Case(2, "QDA", "on the MNIST stand-in", qda_mnist),
    Case(2, "QDA", "on Gaussian classes", qda_synthetic),
    Case(3, "closed forms", "on Gaussian classes", closed_forms_synthetic),
    Case(3, "closed forms", "on the MNIST stand-in", closed_forms_mnist),
    Case(3, "closed forms", "on iris", iris),
    Case(4, "growth", "of one RC iteration", growth),
    Case(5, "logistic regr.", "on adult", partial(logistic, name="adult_coded", shown="adult")),
    Case(5, "logistic regr.", "on magic", partial(logistic, name="magic", shown="magic")),
    Case(5, "logistic regr.", "on the MNIST stand-in", partial(logistic, name="mnist", shown="MNIST")),
    Case(6, "pomegranate", "Gaussian naive Bayes", pomegranate),
)
"""All that is measured, in the order of the table."""
