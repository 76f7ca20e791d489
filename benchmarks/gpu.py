"""RC where the arrays are: time of an iteration and of a fit on a GPU, and the distance to the CPU's answer.

    python benchmarks/gpu.py [--data-dir FOLDER] [--rows 70000] [--json FILE]

Rows are those of the MNIST stand-in (mnist.npz, 512 features, 10 classes), or synthetic without a folder.
Needs PyTorch with CUDA.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from statistics import median
from time import perf_counter

os.environ.setdefault("SCIPY_ARRAY_API", "1")

import numpy as np
import sklearn
import torch

import riskbayes
from riskbayes import CategoricalNB, GaussianNB, LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from riskbayes.engines.array_api import engine_for
from riskbayes.experiments.datasets import load_npz
from riskbayes.learners import RC
from riskbayes.learners.objectives import LogLoss

BARS = {"QDA": 16.0, "categorical NB": 0.8}
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


def iteration(clf, X, y):
    """One iteration a call: parameters, scan, step."""
    clf.fit(X, y)
    model, state = clf.model_, {"S": clf.statistics_}
    engine = engine_for(model, model.prepare(X), y, None, int(clf.classes_.shape[0]))

    def step():
        scan = engine.scan(model.parameters(state["S"]), LogLoss())
        scan.risks.mean()
        moved = state["S"].plus(0.1, scan.dS)
        state["S"] = moved if model.is_legal(moved) else clf.statistics_

    return step


def five_levels(X):
    """Quantile bins, on the host: here only their number matters."""
    edges = np.quantile(X, [0.2, 0.4, 0.6, 0.8], axis=0)
    return (
        (X[:, :, None] > edges.T[None]).sum(axis=2)
        if len(X) < 2000
        else np.concatenate(
            [(part[:, :, None] > edges.T[None]).sum(axis=2) for part in np.array_split(X, len(X) // 1000)]
        )
    )


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
    codes = five_levels(X)
    noise = np.random.default_rng(1).integers(5, size=codes.shape)
    kinds = {
        "QDA": (QuadraticDiscriminantAnalysis, X),
        "LDA": (LinearDiscriminantAnalysis, X),
        "Gaussian NB": (GaussianNB, X),
        "categorical NB": (CategoricalNB, codes),
        "categorical NB, noise": (CategoricalNB, noise),
    }
    machine = {
        "gpu": torch.cuda.get_device_name(),
        "cpu": platform.processor() or platform.machine(),
        "torch": torch.__version__,
        "scikit-learn": sklearn.__version__,
        "riskbayes": riskbayes.__version__,
        "rows": f"{rows}, {len(X)} x {X.shape[1]} x {len(np.unique(y))}",
    }
    for name, value in machine.items():
        print(f"{name}: {value}")
    print(
        f"\n{'model':24}{'type':10}{'iteration':>12}{'bar':>8}{'64 iterations':>16}{'scans':>7}{'default':>10}"
        f"{'predict':>10}{'to the CPU':>13}"
    )
    figures = []
    sklearn.set_config(array_api_dispatch=True)
    yd = torch.asarray(y, device="cuda")
    for name, (kind, table) in kinds.items():
        few = 4000
        for dtype in ("float64", "float32"):
            Xd = torch.asarray(table, dtype=getattr(torch, dtype), device="cuda")
            step = timed(iteration(kind(learner="closed_form"), Xd, yd), 20)
            fixed = kind(learner=RC(lr=0.1, max_iter=64, monitor="log_loss"))
            fit = timed(lambda fixed=fixed, Xd=Xd: fixed.fit(Xd, yd), 2)
            default = timed(lambda kind=kind, Xd=Xd: kind().fit(Xd, yd), 1)
            predict = timed(lambda fixed=fixed, Xd=Xd: fixed.predict_proba(Xd), 5)
            # The same few rows on the CPU, by the same learner.
            learner = RC(lr=0.1, max_iter=8, monitor="log_loss")
            there = kind(learner=learner).fit(Xd[:few], yd[:few])
            here = kind(learner=learner).fit(table[:few].astype(dtype), y[:few])
            gap = np.abs(
                there.predict_proba(Xd[:few]).cpu().numpy() - here.predict_proba(table[:few].astype(dtype))
            ).max()
            bar = BARS.get(name, float("nan")) if dtype == "float64" else float("nan")
            figures.append(
                {
                    "model": name,
                    "dtype": dtype,
                    "iteration_ms": step,
                    "bar_ms": bar,
                    "fit64_ms": fit,
                    "scans": fixed.n_iter_,
                    "default_fit_ms": default,
                    "predict_ms": predict,
                    "gap": float(gap),
                }
            )
            print(
                f"{name:24}{dtype:10}{step:9.2f} ms{bar:8.1f}{fit:13.0f} ms{fixed.n_iter_:7d}{default:7.0f} ms"
                f"{predict:7.1f} ms{gap:13.1e}",
                flush=True,
            )
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"machine": machine, "figures": figures}, file, indent=1)


if __name__ == "__main__":
    main()
