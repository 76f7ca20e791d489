"""One fit: a classifier trained on the rows of a protocol, and judged on test rows along its way."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn import config_context
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from riskbayes import FlooredWarning, __version__
from riskbayes.arrays import Array, to_numpy
from riskbayes.experiments import registry
from riskbayes.experiments.longtable import Row
from riskbayes.experiments.protocols import (
    STRATEGIES,
    Unit,
    make_classifier,
    settings_text,
    split_rows,
    training_rows,
)
from riskbayes.preprocessing import KMeansBins

ENGINES = ("memory", "torch", "cuda")
"""NumPy, or torch tensors on the processor or on a GPU."""


class Job(NamedTuple):
    """Units that one fit serves: in-train, every split has the same training rows."""

    units: tuple[Unit, ...]

    def __str__(self) -> str:
        u = self.units[0]
        splits = ",".join(str(unit.split) for unit in self.units)
        return f"{u.set} {u.model} {u.estimate} {u.learner}, {u.protocol} {splits}"


class Rows(NamedTuple):
    """What a fit sees, and what it is judged on."""

    X: Any
    y: Any
    X_judged: Any
    y_judged: Array
    judged: Array
    """Places of the judged rows in the data set."""


@lru_cache(maxsize=1)
def data(name: str, data_dir: Path | None) -> registry.Loaded:
    """The data set, kept while its units run."""
    return registry.load(name, data_dir)


@lru_cache(maxsize=2)  # nb and qda take turns
def prepared(name: str, data_dir: Path | None, protocol: str, split: int, form: str, engine: str) -> Rows:
    """Training and judged rows in the form that a model takes; only training rows shape it."""
    loaded = data(name, data_dir)
    m = len(loaded.y)
    train = training_rows(m, split, protocol)
    judged = train if protocol == "in-train" else split_rows(m, split)[1]
    X, X_judged = loaded.X[train], loaded.X[judged]
    if form != "raw":
        transformer = (KMeansBins() if form == "bins" else StandardScaler()).fit(X)
        X, X_judged = transformer.transform(X), transformer.transform(X_judged)
    return Rows(
        to_engine(X, engine),
        to_engine(loaded.y[train], engine),
        to_engine(X_judged, engine),
        loaded.y[judged],
        judged,
    )


class JudgeRows:
    """A callback of scikit-learn's kind: which judged rows does each model on the way get wrong?

    It only looks. Rows given to `fit` as validation rows would choose the model.
    """

    def __init__(self, rows: Rows):
        self.rows, self.wrong = rows, list[Array]()

    def setup(self, estimator: Any, context: Any) -> None:
        """Nothing to prepare."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Nothing to end."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """A model is judged when it is there."""

    def on_fit_task_end(self, estimator: Any, context: Any, *, fitted_estimator: Any = None) -> None:
        """Judge the model of an iteration; the fit as a whole ends with one of them."""
        if context.task_name == "iteration":
            self.judge(fitted_estimator)

    def judge(self, clf: Any) -> None:
        """Note which rows are wrong."""
        self.wrong.append(to_numpy(clf.predict(self.rows.X_judged)) != self.rows.y_judged)


def run_job(job: Job, data_dir: Path | None, engine: str) -> list[Row]:
    """Fit once, and give a row for each unit."""
    u = job.units[0]
    form = "bins" if u.model == "nb" else "scaled" if u.learner == "gd_scaled" else "raw"
    with calm(engine):
        rows = prepared(u.set, data_dir, u.protocol, u.split, form, engine)
        clf, judge = make_classifier(u.model, u.estimate, u.learner), JudgeRows(rows)
        has_path = u.learner not in ("closed_form", *STRATEGIES)
        if has_path:
            clf.set_callbacks(judge)
        start = perf_counter()
        clf.fit(rows.X, rows.y)
        if not has_path:
            judge.judge(clf)
            train_error, soft = risks(to_numpy(clf.predict_proba(rows.X)), to_numpy(rows.y))
            path = (soft,)
        else:
            kept = clf.history_["accepted"]
            train_error = float(clf.history_["error"][kept][-1])
            path = tuple(clf.history_["soft_error"][kept].tolist())
        seconds = perf_counter() - start
    loaded = data(u.set, data_dir)
    found = []
    for unit in job.units:
        test = np.isin(rows.judged, split_rows(len(loaded.y), unit.split)[1])
        found.append(
            Row(
                **unit._asdict(),
                m=loaded.X.shape[0],
                n=loaded.X.shape[1],
                classes=int(loaded.y.max()) + 1,
                source=loaded.source,
                stand_in=loaded.stand_in,
                n_test=int(test.sum()),
                train_error=train_error,
                status=str(getattr(clf, "status_", u.learner)),  # the family has none of its own
                scans=int(getattr(clf, "n_iter_", 0)),
                seconds=seconds,
                engine=engine,
                version=__version__,
                finished=datetime.now(UTC).isoformat(timespec="seconds"),
                settings=settings_text(u.model, u.estimate, u.learner),
                soft_error=path,
                test_wrong=tuple(int(wrong[test].sum()) for wrong in judge.wrong),
            )
        )
    return found


def risks(P: Array, y: Array) -> tuple[float, float]:
    """Error and soft error of posteriors."""
    return float(np.mean(P.argmax(axis=1) != y)), float(1 - P[np.arange(len(y)), y].mean())


@contextmanager
def calm(engine: str) -> Iterator[None]:
    """One thread of BLAS, tensors let through, and no word on floors: they are part of the settings."""
    with (
        threadpool_limits(1),
        warnings.catch_warnings(),
        config_context(array_api_dispatch=engine != "memory"),
    ):
        warnings.simplefilter("ignore", FlooredWarning)
        yield


def to_engine(values: Array, engine: str) -> Any:
    """An array where the engine wants it."""
    if engine == "memory":
        return values
    import torch

    return torch.asarray(values, device="cuda" if engine == "cuda" else "cpu")
