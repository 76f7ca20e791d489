"""Fits in batches: statistics of rows are added, merged and subtracted, and the learner goes on from them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.validation import check_is_fitted

from riskbayes.arrays import namespace, to_numpy
from riskbayes.engines.base import Engine
from riskbayes.estimators.checks import check_finite, labels_like
from riskbayes.estimators.fitting import (
    begin_fit,
    check_same_columns,
    run_learner,
    unchanged_on_error,
    update,
)
from riskbayes.estimators.prediction import check_rows
from riskbayes.estimators.reading import Learns, Reading
from riskbayes.exceptions import listed
from riskbayes.frames import same_values
from riskbayes.input.sources import in_memory, source_of
from riskbayes.learners.base import resolve_learner
from riskbayes.models.base import Fitted
from riskbayes.statistics import Statistics
from riskbayes.tables import naming_columns
from riskbayes.task import Task


def partial_fit(clf: Any, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
    """Add the statistics of a batch; take a step on it, if every class has rows by now."""
    clf._check_stream()
    resolve_learner(clf.learner, clf._named_learners).check_stream()
    with unchanged_on_error(clf):
        first = not hasattr(clf, "classes_")
        if first:
            if classes is None:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            clf.classes_ = unique_labels(classes)
        elif classes is not None and not same_values(
            clf.classes_, labels_like(clf, unique_labels(classes), clf.classes_)
        ):
            raise ValueError(
                f"classes={listed(unique_labels(classes))} is not the same as on last call to partial_fit, "
                f"was: {listed(clf.classes_)}."
            )
        past = None if first else (clf.data_statistics_, clf.statistics_)
        source = source_of(in_memory(clf, X), y, sample_weight)
        batch = begin_fit(clf, source, Learns.COLUMNS if first else Learns.CATEGORIES)
        S = start = batch.S
        check_additive(clf, S, *(past or ()))
        if past is not None:
            S = clf.model_.fix_prior(past[0] + S)
            start = (past[1] + start).to_frame(S.frame)
        clf.data_statistics_ = S
        if float(namespace(S["s0"]).min(S["s0"])) > 0:
            task = Task(clf.model_, batch.engine, S, start, in_stream=True)
            run_learner(clf, task, (X, y, sample_weight), max_iter=1)
        else:  # a class still has no rows: its probability is zero in every prediction
            with np.errstate(divide="ignore", invalid="ignore"):
                update(clf, start)


def merge(clf: Any, others: tuple) -> None:
    """Add the statistics of other fitted models."""
    check_is_fitted(clf)
    clf._check_stream()
    check_additive(clf, clf.data_statistics_)
    with unchanged_on_error(clf):
        for other in others:
            if type(other) is not type(clf):
                raise TypeError(f"{type(clf).__name__} cannot merge with {type(other).__name__}.")
            check_is_fitted(other)
            other._check_stream()
            if not same_values(clf.classes_, other.classes_):
                raise ValueError(
                    f"merge needs the same classes: {listed(clf.classes_)} and {listed(other.classes_)}."
                )
            check_same_columns(clf, other, "merge")
            check_additive(other, other.data_statistics_)
            data, calibrated = clf._statistics_of(other, clf.data_statistics_)
            clf.data_statistics_ = clf.data_statistics_ + data
            clf.statistics_ = clf.statistics_ + calibrated
        clf.data_statistics_ = clf.model_.fix_prior(clf.data_statistics_)
        update(clf, clf.statistics_.to_frame(clf.data_statistics_.frame))


def forget(clf: Any, X: Any, y: Any, sample_weight: Any) -> None:
    """Subtract the statistics of rows; refuse rows that are proved not to have been fitted."""
    clf._check_stream()
    check_rows_not_kept(clf)
    _, S = more_rows(clf, X, y, sample_weight)
    left = clf.data_statistics_ - S
    # A class whose rows are all subtracted keeps a rounding error.
    gone = to_numpy(left["s0"] <= 1e-9 * clf.data_statistics_["s0"])
    if gone.any():
        label = to_numpy(clf.classes_)[gone].tolist()[0]
        raise ValueError(
            f"Nothing would be left of class {label!r}: forget fewer rows, or fit without that class."
        )
    forgotten = S if clf._forgotten is None else S + clf._forgotten
    if not clf.model_.is_attainable(left, clf.data_statistics_ + forgotten):
        raise ValueError(
            "These rows were not all fitted, or had other labels or weights: without them, statistics "
            "would be left that no rows can have."
        )
    with unchanged_on_error(clf):
        calibrated = clf.statistics_ - S
        clf.data_statistics_, clf._forgotten = clf.model_.fix_prior(left), forgotten
        legal = clf.model_.is_legal(calibrated)
        update(clf, (calibrated if legal else left).to_frame(clf.data_statistics_.frame))


def calibrate(clf: Any, X: Any, y: Any, sample_weight: Any) -> None:
    """Run the learner from the present statistics, on rows that were fitted before."""
    check_rows_not_kept(clf)
    engine, S = more_rows(clf, X, y, sample_weight)
    past = clf.data_statistics_ - S
    with unchanged_on_error(clf):
        # The learner may have been set since the fit.
        clf.learner_ = resolve_learner(clf.learner, clf._named_learners)
        # If these are all rows, the rest is a rounding error.
        rest = past if past.total > 1e-9 * clf.data_statistics_.total else None
        frame = clf.data_statistics_.frame.join(S.frame)  # these rows may be the first with missing cells
        data, start = clf.data_statistics_.to_frame(frame), clf.statistics_.to_frame(frame)
        run_learner(clf, Task(clf.model_, engine, data, start, other_rows=rest), (X, y, sample_weight))


def more_rows(clf: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Engine, Statistics]:
    """Return an engine over rows to calibrate on or to forget, and their statistics."""
    check_is_fitted(clf)
    engine: Any = source_of(in_memory(clf, X), y, sample_weight).engine(Reading(clf, Learns.NOTHING))
    clf._input.check_counted(clf, engine.rows)
    with naming_columns(clf):
        S = engine.statistics(clf.model_, clf.statistics_.frame)
        check_finite(clf.model_, S, engine.rows)
        check_rows(clf, engine.rows, Fitted(clf.model_, clf.statistics_, clf.parameters_))
    return engine, S


def check_rows_not_kept(clf: Any) -> None:
    """Refuse a model that keeps its training rows and compares others with them."""
    check_is_fitted(clf)
    if clf.model_.implements("learn_own"):
        raise ValueError(
            f"{type(clf.model_).__name__} keeps the training rows and compares others with them: it "
            "cannot forget some, or be calibrated on them again. Fit all rows together."
        )


def check_additive(clf: Any, *counted: Statistics) -> None:
    """Refuse a model or statistics that do not add, for each fit counts something else."""
    if not clf.model_.traits.additive:
        raise ValueError(
            f"{type(clf.model_).__name__} learns its structure from the rows of one fit: statistics of "
            "other rows do not add to it. Fit all rows together."
        )
    for S in counted:
        S.frame.check_additive()
