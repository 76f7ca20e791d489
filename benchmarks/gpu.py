"""RC where the arrays are: time of an iteration and of a fit on a GPU, and the distance to the CPU's answer.

    python benchmarks/gpu.py [--data-dir FOLDER] [--rows 70000] [--json FILE]

Rows are those of the MNIST stand-in (mnist.npz, 512 features, 10 classes), or synthetic without a folder.
Needs PyTorch with CUDA.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter

os.environ.setdefault("SCIPY_ARRAY_API", "1")

import numpy as np
import sklearn
import torch

import riskbayes
from riskbayes import (
    CategoricalNB,
    FlooredWarning,
    GaussianNB,
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from riskbayes.engines import MemoryEngine
from riskbayes.learners import RC
from riskbayes.models.base import Fitted
from riskbayes.objectives import LogLoss
from riskbayes_paper.datasets import load_npz

COLUMNS = ("iteration", "bar", "fit", "scans", "default", "predict", "distance")
FEW = 4000
"""Rows that are fitted on the CPU too."""

BARS = {"QDA": 11.0, "QDA, prior": 11.0, "categorical NB": 0.8}
"""Milliseconds an iteration in float64, at 70000 x 512 x 10."""


def wait() -> float:
    torch.cuda.synchronize()
    return perf_counter()


def timed(work, times):
    """Median milliseconds of some calls, after one that warms up."""
    work()
    found = []
    for _ in range(times):
        start = wait()
        work()
        found.append(1e3 * (wait() - start))
    return median(found)


def make(kind, learner, **parameters):
    """A classifier with a learner."""
    return kind(learner=learner, **parameters)


def iteration(clf, X, y):
    """One iteration a call: parameters, scan, step."""
    model, start = clf.fit(X, y).model_, clf.statistics_
    engine = MemoryEngine(X, y, None, int(clf.classes_.shape[0]))
    state = {"S": start}

    def step():
        scan = engine.scan(Fitted.of(model, state["S"]), LogLoss())
        scan.risks.mean()
        moved = state["S"].plus(0.1, scan.dS)
        state["S"] = moved if model.is_legal(moved) else start

    return step


def five_levels(X):
    """Quantile bins: here only their number matters."""
    edges = np.quantile(X, [0.2, 0.4, 0.6, 0.8], axis=0)
    return sum((edge < X).astype(np.uint8) for edge in edges)


def distance_to_cpu(kind, table, y, dtype):
    """The largest difference of posteriors after the same learner on a few of the rows."""
    # Few columns too: with all of them every posterior is 0 or 1.
    learner, X = (
        RC(lr=0.1, max_iter=8, monitor="log_loss", step="fixed", generative_weight=0.0),
        table[:FEW, ::16].astype(dtype),
    )
    here = kind(learner).fit(X, y[:FEW]).predict_proba(X)
    Xd = torch.asarray(X, device="cuda")
    there = kind(learner).fit(Xd, torch.asarray(y[:FEW], device="cuda")).predict_proba(Xd)
    return float(np.abs(there.cpu().numpy() - here).max())


def measure(kind, table, y, dtype):
    """The figures of one model and one type."""
    X, yd = torch.asarray(table, dtype=getattr(torch, dtype), device="cuda"), torch.asarray(y, device="cuda")
    fixed = kind(RC(lr=0.1, max_iter=64, monitor="log_loss", step="fixed", generative_weight=0.0))
    return {
        "iteration_ms": timed(iteration(kind("closed_form"), X, yd), 40),
        "fit64_ms": timed(lambda: fixed.fit(X, yd), 3),
        "scans": fixed.n_iter_,
        "default_fit_ms": timed(lambda: kind("rc").fit(X, yd), 1),
        "predict_ms": timed(lambda: fixed.predict_proba(X), 5),
        "distance": distance_to_cpu(kind, table, y, dtype),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-dir")
    parser.add_argument("--rows", type=int, default=70000)
    parser.add_argument("--json")
    args = parser.parse_args()
    m = args.rows
    if args.data_dir:
        data = load_npz("mnist", args.data_dir)
        X, (_, y), rows = data.X[:m], np.unique(data.y[:m], return_inverse=True), "MNIST stand-in"
    else:
        rng = np.random.default_rng(0)
        y, rows = rng.permutation(np.arange(m) % 10), "synthetic"
        X = rng.standard_normal((m, 512)) + 0.05 * rng.standard_normal((10, 512))[y]
    codes, noise = five_levels(X), np.random.default_rng(1).integers(5, size=X.shape)
    models = {
        "QDA": (partial(make, QuadraticDiscriminantAnalysis), X),
        "QDA, prior": (partial(make, QuadraticDiscriminantAnalysis, covariance_strength=50.0), X),
        "LDA": (partial(make, LinearDiscriminantAnalysis), X),
        "Gaussian NB": (partial(make, GaussianNB), X),
        "categorical NB": (partial(make, CategoricalNB), codes),
        "categorical NB, noise": (partial(make, CategoricalNB), noise),
    }
    machine = {
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "scikit-learn": sklearn.__version__,
        "riskbayes": riskbayes.__version__,
        "rows": f"{rows}, {len(X)} x {X.shape[1]} x {len(np.unique(y))}",
    }
    for name, value in machine.items():
        print(f"{name}: {value}")
    print(
        "Milliseconds. `iteration`: parameters, scan, step, and its bar in float64; `fit`: 64 iterations of\n"
        "a fixed step; `default`: a fit by the default learner; `distance`: of posteriors to the CPU's."
    )
    print("\n" + f"{'model':23}{'type':9}" + "".join(f"{name:>11}" for name in COLUMNS))
    figures = []
    with sklearn.config_context(array_api_dispatch=True), warnings.catch_warnings():
        warnings.simplefilter("ignore", FlooredWarning)
        for name, (kind, table) in models.items():
            for dtype in ("float64", "float32"):
                found = measure(kind, table, y, dtype)
                found |= {
                    "model": name,
                    "dtype": dtype,
                    "bar_ms": BARS.get(name) if dtype == "float64" else None,
                }
                figures.append(found)
                bar = "" if found["bar_ms"] is None else f"{found['bar_ms']:g}"
                cells = f"{found['iteration_ms']:.2f}", bar, f"{found['fit64_ms']:.0f}", str(found["scans"])
                cells += (
                    f"{found['default_fit_ms']:.0f}",
                    f"{found['predict_ms']:.2f}",
                    f"{found['distance']:.0e}",
                )
                print(f"{name:23}{dtype:9}" + "".join(f"{cell:>11}" for cell in cells), flush=True)
    if args.json:
        Path(args.json).write_text(json.dumps({"machine": machine, "figures": figures}, indent=1) + "\n")


if __name__ == "__main__":
    main()
