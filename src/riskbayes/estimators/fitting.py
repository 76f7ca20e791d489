"""A fit of one generative model: rows to a task, the learner's run, and the fitted attributes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from riskbayes.arrays import to_numpy
from riskbayes.engines.base import Engine
from riskbayes.engines.memory import MemoryEngine
from riskbayes.engines.recorded import RecordedEngine, open_journal
from riskbayes.estimators.callbacks import FitTask
from riskbayes.estimators.checks import check_finite, check_masses
from riskbayes.estimators.prediction import check_rows
from riskbayes.estimators.reading import Learns, Reading
from riskbayes.estimators.unlabelled import split_rows, with_unlabelled
from riskbayes.exceptions import ColumnError, FlooredWarning, RowsLostError, listed, warn
from riskbayes.frames import same_values
from riskbayes.input.source import Source
from riskbayes.input.sources import source_of
from riskbayes.learners.base import resolve_learner
from riskbayes.loop import history_of, run
from riskbayes.models.base import Fitted
from riskbayes.objectives import LogLoss
from riskbayes.persistence.journal import Journal
from riskbayes.risks import log_evidence
from riskbayes.statistics import Statistics
from riskbayes.tables import encoded_names
from riskbayes.task import Iteration, Outcome, Status, Task

MOST_REFERENCE = 1024
"""Training rows whose log densities are kept, to compare new rows with."""


def fit(
    clf: Any, rows: tuple[Any, Any, Any], validation: tuple[Any, Any, Any], unlabelled: Any, checkpoint: Any
) -> None:
    """Fit an estimator to rows (X, y, weights), with validation rows if one of the three is given."""
    source, held = source_of(*rows), None
    if any(given is not None for given in validation):
        held = validation_source(*validation)
    with unchanged_on_error(clf, source, held):
        old = copy(clf) if clf.warm_start and hasattr(clf, "statistics_") else None
        if unlabelled is not False and not source.in_memory:
            raise ValueError("unlabelled goes with arrays: riskbayes.rows are rows with a label each.")
        if checkpoint is not None and (old is not None or unlabelled is not False):
            raise ValueError("checkpoint goes without warm_start and without unlabelled rows.")
        journal = None if checkpoint is None else open_journal(checkpoint)
        if unlabelled is False:
            task = begin_fit(clf, source, journal=journal)
        else:
            split = split_rows(*rows, unlabelled)
            task = begin_fit(clf, split.labelled)
            task = task if split.others is None else with_unlabelled(clf, task, split)
        if old is not None:
            start = start_from(clf, old, task.S)
            frame = task.S.frame.join(start.frame)  # one of the two may know more categories
            task = replace(task, S=task.S.to_frame(frame), start=start.to_frame(frame))
        clf._forgotten = None
        validation_engine = None if held is None else validation_rows(clf, task.S, held)
        if journal is not None:
            validation_engine = RecordedEngine.of_validation(validation_engine, journal)
        try:
            run_learner(clf, replace(task, validation=validation_engine), rows)
        finally:
            if journal is not None:
                journal.flush()
        if clf.status_ is not Status.LOST:
            keep_densities(clf, task.engine)


@contextmanager
def unchanged_on_error(clf: Any, *sources: Source | None) -> Iterator[None]:
    """Restore the attributes of the estimator if the block raises: it fits entirely or not at all.

    Column errors get the name of the column; attributes of callbacks are not restored. A KeyboardInterrupt
    or a RowsLostError that the loop caught is raised again at the end, when the best model so far is stored.
    What the sources keep on a disk is removed in any case.
    """
    before = dict(vars(clf))
    try:
        yield
    except BaseException as error:
        names = encoded_names(clf)
        for name in set(vars(clf)) - set(before):
            if not name.startswith(("_callback", "_skl")):
                delattr(clf, name)
        vars(clf).update(before)
        if isinstance(error, ColumnError):
            raise error.named(names) from None
        raise
    finally:
        for source in sources:
            if source is not None and not source.in_memory:
                source.close()
    if clf.status_ is Status.INTERRUPTED:
        raise KeyboardInterrupt
    if clf.status_ is Status.LOST:
        raise RowsLostError(
            f"The rows were lost after {clf.n_iter_} iterations, of which the best model was kept: the "
            "cluster that held them cannot be reached. Start another, and fit again; fit(checkpoint=...) "
            "goes on from the last scan."
        )


def begin_fit(clf: Any, source: Source, learns: Learns = Learns.ALL, journal: Journal | None = None) -> Task:
    """Validate training rows and make the model; return the learner's task, which starts at the closed form.

    The classes of a batch of a stream are declared by the user: only those that the rows of a fit have must
    have a weight. Scans are recorded in the journal of a checkpoint, if there is one.
    """
    clf.learner_, clf.class_weight_ = resolve_learner(clf.learner, clf._named_learners), None
    if clf.learner_.goes_row_by_row and not source.in_memory:
        raise ValueError(
            f"{type(clf.learner_).__name__} goes row by row, which needs all rows in memory, and X is read "
            "in batches or is a Dask collection. Pass an array, or take another learner."
        )
    engine = source.engine(Reading(clf, learns))
    # The closed form of a stream may have a single class, or a class without weight.
    every = clf.learner_.max_iter > 0 or not clf._adds_up
    if learns is Learns.ALL:
        check_masses(clf.classes_, engine.masses, every)
    if clf.classes_.shape[0] < 2 and every:
        raise ValueError(
            f"{type(clf).__name__} with learner={clf.learner!r} needs at least two classes in y; got "
            f"one class, {listed(clf.classes_)}."
        )
    clf.model_ = model = clf._make_model()
    clf.learner_.check(model, clf.classes_.shape[0])
    rows = engine.rows
    if journal is not None:
        settings = {"model": model, "learner": clf.learner_, "classes": to_numpy(clf.classes_)}
        engine = RecordedEngine.of_rows(engine, journal, settings)
    with engine.one_blas_thread():
        S = engine.statistics(model, engine.learn(model))
        check_finite(model, S, rows)
        return Task(model, engine, model.fix_prior(S))


def start_from(clf: Any, old: Any, S: Statistics) -> Statistics:
    """Return the statistics of an earlier fit, scaled to the total weight of the new rows, S.total."""
    if not (same_values(clf.classes_, old.classes_) and clf.n_features_in_ == old.n_features_in_):
        raise ValueError(
            f"warm_start goes on from {old.n_features_in_} columns and classes {listed(old.classes_)}; "
            f"these rows have {clf.n_features_in_} and {listed(clf.classes_)}. Set warm_start=False."
        )
    check_same_columns(clf, old, "warm_start")
    last = clf._statistics_of(old, S)[1]
    return (S.total / last.total) * last


def check_same_columns(clf: Any, other: Any, what: str) -> None:
    """Raise an error if the other estimator was fitted to other columns, or to another order of them."""
    if clf.n_features_in_ != other.n_features_in_:
        raise ValueError(
            f"{what} needs the same columns; the models have {clf.n_features_in_} and {other.n_features_in_}."
        )
    ours: Any = getattr(clf, "feature_names_in_", None)
    theirs: Any = getattr(other, "feature_names_in_", None)
    if (ours is None) != (theirs is None):
        warn(
            f"{what}: only one of the two models was fitted with feature names; their columns are "
            "matched by position."
        )
    elif ours is not None and (ours != theirs).any():
        j = int(np.argmax(ours != theirs))
        raise ValueError(
            f"{what} needs the same columns in the same order: column {j} is {ours[j]!r} here and "
            f"{theirs[j]!r} there. Select and order the columns of both alike."
        )
    clf._input.check_same(clf, other, what)


def validation_source(X: Any, y: Any, sample_weight: Any) -> Source:
    """Return where the validation rows come from; refuse a part of the three."""
    if X is None and y is None:
        raise ValueError("sample_weight_val weights the rows of X_val: pass X_val and y_val too.")
    source = source_of(X, y, sample_weight, "_val")
    if (X is None or y is None) and source.in_memory:
        raise ValueError("X_val and y_val go together: pass both or none.")
    return source


def validation_rows(clf: Any, S: Statistics, source: Source) -> Engine:
    """Return an engine over the validation rows; refuse rows whose scores in the closed form overflow."""
    engine = source.engine(Reading(clf, Learns.NOTHING, "_val"))
    fitted = Fitted.of(clf.model_, S)
    if engine.rows is not None:
        check_rows(clf, engine.rows, fitted, "X_val")
    elif not np.isfinite(engine.scan(fitted, LogLoss(), risks_only=True).risks.mean()["log_loss"]):
        raise ValueError("X_val has rows too far from those of the fit for a finite score. Drop them.")
    return engine


def run_learner(clf: Any, task: Task, rows: tuple, max_iter: int | None = None) -> None:
    """Run the learner and set the fitted attributes.

    `rows` are X, y and the weights as the user passed them, for callbacks. With `max_iter` the learner makes
    a single run of at most that many scans.
    """
    learner, name = clf.learner_, type(clf).__name__
    clf.cost_matrix_ = learner.cost_matrix
    most = learner.most_iterations if max_iter is None else max_iter + 1
    progress = FitTask(clf, most, rows)
    S = task.S  # the callback holds no task, which holds the callback: rows are let go when the fit ends

    def on_iteration(iteration: Iteration) -> bool:
        """Report an accepted iteration to the user and to callbacks; True stops the fit."""
        if clf.verbose:
            risks = iteration.risks
            print(
                f"[{name}] iteration {iteration.number}/{most - 1}  soft error "
                f"{risks['soft_error']:.6f}  error {risks['error']:.4f}  log loss {risks['log_loss']:.6f}"
            )
        if progress.context is None:
            return False
        fitted = dict(zip(("model_", "statistics_", "parameters_"), iteration.fitted, strict=True))
        return progress.begin("iteration").end(lambda: {"data_statistics_": S} | fitted)

    task = replace(task, on_iteration=on_iteration)
    with task.engine.one_blas_thread():
        outcome = learner.fit_statistics(task) if max_iter is None else run(task, learner, max_iter)
    clf.data_statistics_ = S
    if outcome.fitted.S.frame is not S.frame:
        clf.data_statistics_, outcome = in_one_frame(task, outcome)
    clf.cost_matrix_ = learner.cost_matrix  # RCCV may have chosen another
    store(clf, outcome)
    floored = None if outcome.floored is None else to_numpy(outcome.floored)
    if floored is not None and floored.any() and clf.model_.floor_warning is not None:
        named = listed(to_numpy(clf.classes_)[floored > 0])
        warn(clf.model_.floor_warning.format(classes=named, most=floored.max()), FlooredWarning)
    if clf.verbose:
        print(f"[{name}] {clf.status_.message}")
    progress.end(dict)


def in_one_frame(task: Task, outcome: Outcome) -> tuple[Statistics, Outcome]:
    """Return the statistics of the data, and the outcome, in a common frame.

    Their frames differ if the outcome's was learned from part of the rows. If the model learned a structure
    from that part, the statistics of all rows are counted again with this structure.
    """
    (model, found, _), S = outcome.fitted, task.S
    if not model.traits.additive and found.frame != S.frame:
        S = task.engine.statistics(model, found.frame)
    frame = found.frame.join(S.frame)
    return S.to_frame(frame), outcome._replace(fitted=Fitted.of(model, found.to_frame(frame)))


def store(clf: Any, outcome: Outcome) -> None:
    """Set the fitted attributes."""
    clf.model_, clf.statistics_, clf.parameters_ = outcome.fitted
    clf._priors = clf._log_densities = clf._conformal = None
    clf.history_, clf.status_ = outcome.history, outcome.status
    clf.n_iter_, clf.best_iteration_ = max(0, len(outcome.history["lr"]) - 1), outcome.number
    clf.refit_history_ = outcome.refit_history


def keep_densities(clf: Any, engine: Engine) -> None:
    """Keep the log densities of some training rows, for `outlier_score`.

    Not after a closed form, whose fit of a small table would take about a seventh longer.
    """
    if clf.learner_.max_iter == 0 or not clf.model_.traits.describes_rows:
        return
    fitted = Fitted(clf.model_, clf.statistics_, clf.parameters_)
    with np.errstate(over="ignore", invalid="ignore"):
        (clf._log_densities,) = engine.thinned(MOST_REFERENCE).map_rows(
            [fitted], lambda Z, theta, first: log_evidence(fitted.model.log_joint(Z, theta))
        )


def update(clf: Any, S: Statistics) -> None:
    """Set the fitted attributes for the statistics S, without running the learner."""
    store(clf, Outcome(Fitted.of(clf.model_, S), history_of([]), Status.UPDATED, None))


def rows_for(clf: Any, X: Any) -> Engine:
    """Return an engine over rows without labels, for an estimator whose fit has begun."""
    rows = clf._input.encode(clf, clf._input.read(clf, X, reset=False, learn=False))
    return MemoryEngine(rows, None, None, clf.classes_.shape[0])
