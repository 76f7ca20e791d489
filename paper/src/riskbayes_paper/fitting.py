"""Fit a classifier on training rows and judge it on test rows; the reproduction as a study of such fits."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn import config_context
from sklearn.callback import FitCallback
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from riskbayes import FlooredWarning, __version__
from riskbayes.arrays import Array, to_numpy
from riskbayes.preprocessing.bins import KMeansBins
from riskbayes_paper import ExperimentError
from riskbayes_paper.datasets import PAPER_SETS, DataSet, load
from riskbayes_paper.longtable import Record
from riskbayes_paper.protocols import MAX_ITER, STRATEGIES, Unit, make_classifier, settings_text, split_rows
from riskbayes_paper.rows import COLUMNS, Row, read_folder
from riskbayes_paper.runner import Job, Study

FAMILY_SCANS = 4000
"""About how many scans a family takes: those of all members, folds and iterations."""

OVERHEAD = 2e6
"""What a scan costs beside its products, in the units of `cost`."""


class Rows(NamedTuple):
    """What a fit sees, and what it is judged on."""

    X: Any
    y: Any
    X_test: Any
    y_test: Array


class Fitted(NamedTuple):
    """A fitted classifier and what it does on its rows.

    Parameters
    ----------
    clf : classifier
        The model that the fit returned.
    train_error : float
        Share of the training rows that it gets wrong.
    soft_error : tuple of float
        Of the training rows, for every model that was kept on the way; the last is that of `clf`.
    wrong : list of arrays of bool
        The test rows that each of these models gets wrong, or `clf` alone.
    floored : bool
        True if the fit warned of a covariance on its floor.
    seconds : float
        Time of the fit and of the judging.
    """

    clf: Any
    train_error: float
    soft_error: tuple[float, ...]
    wrong: list[Array]
    floored: bool
    seconds: float


def make_rows(data: DataSet, train: Array, test: Array, form: str) -> Rows:
    """Return the rows of both parts in the form that a model takes, which only the training rows shape.

    They are "raw", as they are; "bins", as codes of k-means bins; or "scaled" to mean 0 and variance 1.
    """
    X, X_test = data.X[train], data.X[test]
    if form != "raw":
        transformer = (KMeansBins() if form == "bins" else StandardScaler()).fit(X)
        X, X_test = transformer.transform(X), transformer.transform(X_test)
    return Rows(X, data.y[train], X_test, data.y[test])


class EachIteration(FitCallback):
    """A callback that passes the fitted classifier of each iteration to a function."""

    def __init__(self, look: Callable[[Any], object]):
        self.look = look

    def on_fit_task_end(self, estimator: Any, context: Any, *, fitted_estimator: Any = None) -> None:
        """Look at the model of an iteration; the fit as a whole ends with one of them."""
        if context.task_name == "iteration":
            self.look(fitted_estimator)


def fit_and_judge(clf: Any, rows: Rows, has_path: bool, along: bool = False) -> Fitted:
    """Fit and judge: every model on the way where there is a path to judge `along`, else the last one.

    Rows given to `fit` as validation rows would choose the model; a callback only looks. A warning of a floor
    becomes the flag `floored`; all other warnings pass.
    """
    wrong: list[Array] = []

    def judge(model: Any) -> None:
        wrong.append(to_numpy(model.predict(rows.X_test)) != rows.y_test)

    if has_path and along:
        clf.set_callbacks(EachIteration(judge))
    start = perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FlooredWarning)
        clf.fit(rows.X, rows.y)
        if not (has_path and along):
            judge(clf)
        if has_path:
            kept = clf.history_["accepted"]
            train_error = float(clf.history_["error"][kept][-1])
            path = tuple(clf.history_["soft_error"][kept].tolist())
        else:
            P, y = to_numpy(clf.predict_proba(rows.X)), to_numpy(rows.y)
            train_error = float(np.mean(P.argmax(axis=1) != y))
            path = (float(1 - P[np.arange(len(y)), y].mean()),)
    seconds = perf_counter() - start
    others = [w for w in caught if not issubclass(w.category, FlooredWarning)]
    for w in others:
        warnings.warn_explicit(w.message, w.category, w.filename, w.lineno)
    return Fitted(clf, train_error, path, wrong, len(others) < len(caught), seconds)


@lru_cache(maxsize=1)
def data(name: str, data_dir: Path | None) -> DataSet:
    """Return the data set, kept while its units run."""
    return load(name, data_dir)


@lru_cache(maxsize=2)  # nb and qda take turns
def prepared(name: str, data_dir: Path | None, protocol: str, split: int, form: str, engine: str) -> Rows:
    """Return the rows of a protocol, where the engine wants them; in-train all rows are judged."""
    loaded = data(name, data_dir)
    every = np.arange(len(loaded.y))
    train, test = split_rows(len(every), split) if protocol == "held-out" else (every, every)
    rows = make_rows(loaded, train, test, form)
    if engine == "memory":
        return rows
    import torch

    X, y, X_test = (torch.asarray(part, device="cuda" if engine == "cuda" else "cpu") for part in rows[:3])
    return Rows(X, y, X_test, rows.y_test)


class Reproduction(Study):
    """The paper's experiments, on the data sets of a folder.

    Parameters
    ----------
    data_dir : Path, default=None
        Folder of data sets.
    engine : str, default="memory"
        What holds the rows: "memory" is NumPy, "torch" and "cuda" are tensors on the processor or on a GPU.
    """

    unit_type, columns = Unit, COLUMNS

    def __init__(self, data_dir: Path | None = None, engine: str = "memory"):
        self.data_dir, self.engine = data_dir, engine

    def shared(self, unit: Unit) -> Unit:
        """Return what units of one fit have in common: in-train, every split has the same training rows."""
        return unit._replace(split=0) if unit.protocol == "in-train" else unit

    def cost(self, job: Job) -> float:
        """Return about how long a job takes, in multiplications."""
        unit, paper = job[0], PAPER_SETS[job[0].set]
        scans = {"closed_form": 1, "cv": FAMILY_SCANS, "ensemble": FAMILY_SCANS}.get(unit.learner, MAX_ITER)
        columns = 1 if unit.model == "nb" else paper.n
        return scans * (OVERHEAD + paper.m * paper.n * paper.classes * columns)

    def describe(self, job: Job) -> str:
        """Return a job in words."""
        u = job[0]
        splits = ",".join(str(unit.split) for unit in job)
        return f"{u.set} {u.model} {u.estimate} {u.learner}, {u.protocol} {splits}"

    def done(self, path: Path, units: Sequence[Unit]) -> set[Unit]:
        """Return the units of all tables in the folder; refuse other settings, as results of another run."""
        found = {row.unit: row.settings for row in read_folder(path.parent)}
        for unit in found.keys() & set(units):
            if found[unit] != settings_text(unit.model, unit.estimate, unit.learner):
                raise ExperimentError(
                    f"The table has {' '.join(map(str, unit))} with other settings ({found[unit]}): choose "
                    "another --out, or move the table away."
                )
        return set(found)

    def run_job(self, job: Job) -> list[Record]:
        """Fit once, and return a row for each unit."""
        u = job[0]
        form = "bins" if u.model == "nb" else "scaled" if u.learner == "gd_scaled" else "raw"
        with threadpool_limits(1), config_context(array_api_dispatch=self.engine != "memory"):
            rows = prepared(u.set, self.data_dir, u.protocol, u.split, form, self.engine)
            has_path = u.learner not in ("closed_form", *STRATEGIES)
            clf = make_classifier(u.model, u.estimate, u.learner)
            fitted = fit_and_judge(clf, rows, has_path, along=True)
        loaded, found = data(u.set, self.data_dir), []
        for unit in job:
            test = split_rows(len(loaded.y), unit.split)[1]
            wrong = [w if u.protocol == "held-out" else w[test] for w in fitted.wrong]
            row = Row(
                unit,
                m=loaded.X.shape[0],
                n=loaded.X.shape[1],
                classes=int(loaded.y.max()) + 1,
                source=loaded.source,
                stand_in=loaded.stand_in,
                n_test=len(test),
                train_error=fitted.train_error,
                # The family may have several members, each with its own status and scans.
                status=u.learner if u.model == "family" else str(fitted.clf.status_),
                scans=0 if u.model == "family" else int(fitted.clf.n_iter_),
                seconds=fitted.seconds,
                engine=self.engine,
                version=__version__,
                finished=datetime.now(UTC).isoformat(timespec="seconds"),
                settings=settings_text(u.model, u.estimate, u.learner),
                soft_error=fitted.soft_error,
                test_wrong=tuple(int(w.sum()) for w in wrong),
            )
            found.append(row.to_record())
        return found
