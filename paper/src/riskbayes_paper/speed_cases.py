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
from threadpoolctl import threadpool_limits

import riskbayes
from riskbayes.learners import RC
from riskbayes.preprocessing.bins import KMeansBins
from riskbayes.statistics import Array
from riskbayes.threads import available_threads
from riskbayes_paper.speed import Bench, Case, Figure, in_turn, peak_bytes
from riskbayes_paper.speed_jobs import (
    BINS,
    LR,
    Iterations,
    by,
    gaussian_rows,
    labels,
    size_of,
    synthetic,
)

ITERATIONS = 64
HALF_A_POINT = 0.005
FIVE_MS = 0.005
FIXED_STEP = RC(lr=LR, max_iter=ITERATIONS, monitor="log_loss", step="fixed", generative_weight=0.0)

Pair = tuple[type, type, dict[str, Any]]
"""Ours, scikit-learn's, and the arguments of both."""

PEERS: dict[str, Pair] = {
    "CategoricalNB": (riskbayes.CategoricalNB, naive_bayes.CategoricalNB, {}),
    "GaussianNB": (riskbayes.GaussianNB, naive_bayes.GaussianNB, {}),
    "LDA": (riskbayes.LinearDiscriminantAnalysis, discriminant_analysis.LinearDiscriminantAnalysis, {}),
    "QDA": (
        riskbayes.QuadraticDiscriminantAnalysis,
        discriminant_analysis.QuadraticDiscriminantAnalysis,
        {"reg_param": 1e-3},  # scikit-learn refuses a class covariance without full rank
    ),
}


def beside_sklearn(
    bench: Bench, name: str, pair: Pair, size: str, X: Array, y: Array, bar: float, method: str = ""
) -> Iterator[Figure]:
    """Compare the closed form with scikit-learn's fit, then a method of the two fitted classifiers."""
    Ours, Theirs, arguments = pair
    ours, theirs = Ours(learner="closed_form", **arguments), Theirs(**arguments)
    fits = partial(ours.fit, X, y), partial(theirs.fit, X, y)
    yield bench.compare(f"{name}, closed form", "sklearn fit", size, *fits, bar)
    if method:
        calls = partial(getattr(ours, method), X), partial(getattr(theirs, method), X)
        yield bench.compare(f"{name}, {method}", f"sklearn {method}", size, *calls, bar)


def categorical(bench: Bench, name: str, X: Array, y: Array, bar: float) -> Iterator[Figure]:
    """Compare categorical naive Bayes on codes with scikit-learn's, and with reading them once."""
    size = size_of(name, X, y)
    rc, theirs = riskbayes.CategoricalNB(learner=FIXED_STEP), naive_bayes.CategoricalNB()
    what, against = f"NB, {ITERATIONS} RC iterations", "sklearn fit + predict_log_proba"
    jobs = partial(rc.fit, X, y), lambda: theirs.fit(X, y).predict_log_proba(X)
    figure = bench.compare(what, against, size, *jobs, bar)
    if (done := max(rc.n_iter_, 1)) < ITERATIONS:
        note = f"RC stopped after {done} iterations; its time is scaled up."
        figure = replace(figure, ours=(figure.ours or 0.0) * ITERATIONS / done, note=note)
    yield figure
    yield from beside_sklearn(bench, "NB", PEERS["CategoricalNB"], size, X, y, 0.25, "predict_log_proba")
    iteration = Iterations(riskbayes.CategoricalNB(), X, y)
    yield bench.compare("NB, one RC iteration", "reading the codes once", size, iteration, X.max)


def categorical_mnist(bench: Bench) -> Iterator[Figure]:
    """Measure where posteriors are saturated: few rows have a residual."""
    X, y, *_ = bench.data("mnist")
    bench.say("cutting the MNIST stand-in into bins")
    yield from categorical(bench, "MNIST", KMeansBins(BINS).fit_transform(X), y, 0.75)


def categorical_noise(bench: Bench) -> Iterator[Figure]:
    """Measure where no posterior saturates: every row has a residual."""
    yield from categorical(bench, "noise", *synthetic(True, *bench.size(70_000, 512), 10), 1.5)


def qda_mnist(bench: Bench) -> Iterator[Figure]:
    """Compare one iteration of QDA with its forward product."""
    X, y, *_ = bench.data("mnist")
    m = bench.size(20_000, 1)[0]
    yield from qda(bench, "MNIST", X[:m], y[:m], moments=False, bar=1.1)


def qda_synthetic(bench: Bench) -> Iterator[Figure]:
    """Do the same where every row has a residual: the second moments are part of the floor."""
    X, y = synthetic(False, *bench.size(20_000, 256), 5)
    yield from qda(bench, "Gaussian", X, y, moments=True, bar=1.5)


def qda(bench: Bench, name: str, X: Array, y: Array, moments: bool, bar: float) -> Iterator[Figure]:
    """Compare one RC iteration of QDA with the full products alone; measure the memory of a fit."""
    (m, n), r, size = X.shape, int(y.max()) + 1, size_of(name, X, y)
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
    peak = peak_bytes(
        lambda: Ours(
            learner=RC(lr=LR, max_iter=2, monitor="log_loss", step="fixed", generative_weight=0.0)
        ).fit(X, y)
    )
    yield Figure("QDA, peak memory of a fit", "0.25 X + 64 MB", size, peak, 0.25 * X.nbytes + 64e6, 1.0, "B")


def closed_forms(bench: Bench, name: str, X: Array, y: Array) -> Iterator[Figure]:
    """Compare fit and predict_proba of the Gaussian models with scikit-learn's."""
    for model in ("GaussianNB", "LDA", "QDA"):
        size = size_of(name, X, y)
        yield from beside_sklearn(bench, model, PEERS[model], size, X, y, 1.0, "predict_proba")


def closed_forms_synthetic(bench: Bench) -> Iterator[Figure]:
    """Measure Gaussian classes, at three sizes."""
    for m, n in ((5000, 20), (50_000, 50), (70_000, 512)):
        for r in (2, 10):
            yield from closed_forms(bench, "Gaussian", *synthetic(False, *bench.size(m, n), r))


def closed_forms_mnist(bench: Bench) -> Iterator[Figure]:
    """Measure ten digits; below five or not."""
    X, y, *_ = bench.data("mnist")
    yield from closed_forms(bench, "MNIST", X, (y >= 5).astype(np.int64))
    yield from closed_forms(bench, "MNIST", X, y)


def iris(bench: Bench) -> Iterator[Figure]:
    """Measure small fits: what a call costs beside the arithmetic."""
    rows, y = load_iris(return_X_y=True)
    codes = KMeansBins(BINS).fit_transform(rows)
    for model, (Ours, _, arguments) in PEERS.items():
        X = codes if model == "CategoricalNB" else rows
        size = size_of("iris", X, y)
        rc = Ours(learner=FIXED_STEP, **arguments)
        bench.say(f"{model}, {ITERATIONS} RC iterations, {size}")
        spent = in_turn([partial(rc.fit, X, y)], bench.budget)[0]
        yield Figure(f"{model}, {rc.n_iter_} RC iterations", "5 ms", size, spent, FIVE_MS, 1.0)
        yield from beside_sklearn(bench, model, PEERS[model], size, X, y, 1.5)


def growth(bench: Bench) -> Iterator[Figure]:
    """Measure one RC iteration on four times the rows, the features, the classes."""
    m, n = bench.size(50_000, 50)
    small = (m, n, 5)
    for what, large, bar in (
        ("rows", (4 * m, n, 5), 4.3),
        ("features", (m, 4 * n, 5), None),
        ("classes", (m, n, 20), None),
    ):
        for model, (Ours, _, _) in PEERS.items():
            once, fourfold = (
                Iterations(Ours(), *synthetic(model == "CategoricalNB", *size)) for size in (small, large)
            )
            size = f"from {by(*small)}"
            yield bench.compare(f"{model}, {what} x 4", "once", size, fourfold, once, bar)


def logistic(bench: Bench, name: str, shown: str) -> Iterator[Figure]:
    """Time default RC until it comes within half a point of logistic regression, on rows held out."""
    rows, classes, *_ = bench.data(name)
    X, X_test, y, y_test = train_test_split(rows, classes, test_size=0.25, random_state=0)
    bench.say(f"cutting {shown} into bins")
    bins = KMeansBins(BINS).fit(X)
    Z, Z_test = bins.transform(X), bins.transform(X_test)
    one_hot = OneHotEncoder(handle_unknown="ignore").fit(Z)
    wide, wide_test = one_hot.transform(Z), one_hot.transform(Z_test)
    size = size_of(shown, X, y)

    bench.say(f"logistic regression, {size}")
    peer = LogisticRegression()
    goal = float(np.mean(peer.fit(wide, y).predict(wide_test) != y_test))
    for scans in 2 ** np.arange(7):
        rc = riskbayes.CategoricalNB(learner=RC(max_iter=int(scans)))
        error = float(np.mean(rc.fit(Z, y).predict(Z_test) != y_test))
        if error <= goal + HALF_A_POINT:
            break
    errors = f"held-out error {100 * error:.2f} % with max_iter={scans}, {100 * goal:.2f} % by the peer."
    what, against = "NB, RC to the peer's error + 0.5", "LogisticRegression"
    fit, peer_fit = partial(rc.fit, Z, y), partial(peer.fit, wide, y)
    figure = bench.compare(what, against, size, fit, peer_fit, 0.5)
    yield replace(figure, note=errors, ours=figure.ours if error <= goal + HALF_A_POINT else None)


def pomegranate(bench: Bench) -> Iterator[Figure]:
    """Compare Gaussian naive Bayes with a Bayes classifier of another library, in its own precision."""
    threads = available_threads()
    try:
        import torch
        from pomegranate.bayes_classifier import BayesClassifier
        from pomegranate.distributions import Normal
    except ImportError as missing:
        raise ImportError("pomegranate is not installed.") from missing
    torch.set_num_threads(threads)  # it was loaded after the limit was set
    rows, y = synthetic(False, *bench.size(50_000, 50), 10)
    X, size = rows.astype(np.float32), size_of("Gaussian float32", rows, y)
    tensors = torch.from_numpy(X), torch.from_numpy(y)
    ours = riskbayes.GaussianNB(learner="closed_form").fit(X, y)

    def classifier() -> Any:
        return BayesClassifier([Normal(covariance_type="diag") for _ in range(10)]).fit(*tensors)

    fit, predict = partial(ours.fit, X, y), partial(ours.predict_proba, X)
    peer_predict, method = partial(classifier().predict_proba, tensors[0]), "pomegranate predict_proba"
    yield bench.compare("GaussianNB, closed form", "pomegranate fit", size, fit, classifier)
    yield bench.compare("GaussianNB, predict_proba", method, size, predict, peer_predict)


def scaling_qda(bench: Bench) -> Iterator[Figure]:
    """Compare all threads with one, for one RC iteration of QDA on noise, where no row is skipped."""
    m, n = bench.size(28_000, 512)
    y = labels(m, 10)
    X = gaussian_rows(y, n, distance=0.0)
    # Covariances of so many columns separate even noise, and a scan skips rows whose posterior is one.
    iteration = Iterations(riskbayes.QuadraticDiscriminantAnalysis(reg_param=0.99), X, y)
    yield all_against_one(bench, "QDA, one RC iteration", size_of("noise", X, y), iteration)


def scaling_recipe(bench: Bench) -> Iterator[Figure]:
    """Compare all threads with one, for a fit of the recipe on magic, repeated, or on noise."""
    m, n = bench.size(200_000, 10)
    try:
        rows, classes, *_ = bench.data("magic")
        X, y, name = np.resize(rows, (m, rows.shape[1])), np.resize(classes, m), "magic"
    except FileNotFoundError:
        y, name = labels(m, 2), "noise"
        X = gaussian_rows(y, n, distance=0.0)
    fit = partial(riskbayes.RiskBayesClassifier("single").fit, X, y)
    yield all_against_one(bench, "RiskBayesClassifier", size_of(name, X, y), fit)


def all_against_one(bench: Bench, what: str, size: str, job: Callable[[], Any]) -> Figure:
    """Time a job with as many threads as there are, and with one."""

    def limited(threads: int) -> None:
        with threadpool_limits(threads):
            job()

    threads = available_threads()
    jobs = partial(limited, threads), partial(limited, 1)
    figure = bench.compare(f"{what}, all threads", "one thread", size, *jobs)
    assert figure.ratio is not None  # both were timed
    return replace(figure, note=f"{1 / figure.ratio:.2f} times as fast with {threads} threads as with one.")


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
    Case(7, "threads", "one RC iteration of QDA", scaling_qda),
    Case(7, "threads", "a fit of RiskBayesClassifier", scaling_recipe),
)
"""All that is measured, in the order of the table."""
