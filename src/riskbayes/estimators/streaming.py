"""Estimators whose statistics add: fit in batches, merge models, forget rows."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.validation import check_is_fitted

from riskbayes.arrays import Array, namespace, to_numpy
from riskbayes.engines.base import Engine
from riskbayes.estimators.base import BaseGenerativeClassifier, begin_fit, unchanged_on_error
from riskbayes.estimators.checks import labels_like, listed, statistics_overflow
from riskbayes.estimators.reading import Learns
from riskbayes.frames import same_values
from riskbayes.input.sources import in_memory
from riskbayes.learners.base import resolve_learner
from riskbayes.models.base import Fitted
from riskbayes.statistics import Statistics
from riskbayes.tables import naming_columns
from riskbayes.task import Task


class StreamingClassifier(BaseGenerativeClassifier):
    """Base class of the estimators whose statistics add: those with `partial_fit`, `merge` and `forget`."""

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Fit a further batch of rows.

        Its statistics are added to those of the rows so far: with `learner="closed_form"` the result is that
        of one `fit` to all rows. A discriminant analysis refuses rows with missing cells: its closed form is
        then found by EM, from all rows at once. Other learners then take one step on the rows of the batch,
        as soon as every class has rows; the step is scaled by the batch's share of all rows so far. They hold
        no rows out and select nothing: RC with `early_stopping` or `n_restarts` is refused, RCCV steps by its
        first setting.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Class labels.
        classes : array-like of shape (n_classes,), default=None
            All classes that will ever appear; required in the first call.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        self : object
            The updated estimator.
        """
        self._check_stream()
        resolve_learner(self.learner, self._named_learners).check_stream()
        with unchanged_on_error(self):
            self._add_batch(X, y, classes, sample_weight)
        return self

    def _needs_all_classes(self) -> bool:
        """False for the closed form, which may have a single class, or a class without weight."""
        return self.learner_.max_iter > 0

    def _check_stream(self) -> None:
        """Refuse parameters whose effect depends on all rows together."""
        if isinstance(self.class_weight, str):
            raise ValueError(
                "class_weight='balanced' depends on all rows together, so that rows cannot be added or taken "
                "out, nor models merged: pass a dict of weights, or fit all rows."
            )

    def _check_rows_not_kept(self) -> None:
        """Refuse a model that keeps its training rows and compares others with them."""
        check_is_fitted(self)
        if self.model_.traits.keeps_rows:
            raise ValueError(
                f"{type(self.model_).__name__} keeps the training rows and compares others with them: it "
                "cannot forget some, or be calibrated on them again. Fit all rows together."
            )

    def _check_additive(self, *counted: Statistics) -> None:
        """Refuse a model or statistics that do not add, for each fit counts something else."""
        if not self.model_.traits.additive:
            raise ValueError(
                f"{type(self.model_).__name__} learns its structure from the rows of one fit: statistics of "
                "other rows do not add to it. Fit all rows together."
            )
        for S in counted:
            S.frame.check_additive()

    def _add_batch(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
        """Add the statistics of a batch; calibrate on it, if every class has rows by now."""
        in_memory(self, X)
        first = not hasattr(self, "classes_")
        if first:
            if classes is None:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            self.classes_ = unique_labels(classes)
        elif classes is not None and not same_values(
            self.classes_, labels_like(self, unique_labels(classes), self.classes_)
        ):
            raise ValueError(
                f"classes={listed(unique_labels(classes))} is not the same as on last call to partial_fit, "
                f"was: {listed(self.classes_)}."
            )
        past = None if first else (self.data_statistics_, self.statistics_)
        learns = Learns.COLUMNS if first else Learns.CATEGORIES
        batch = begin_fit(self, X, y, sample_weight, learns=learns)
        S = start = batch.S
        self._check_additive(S, *(past or ()))
        if past is not None:
            S = self.model_.settle(past[0] + S)
            start = (past[1] + start).to_frame(S.frame)
        self.data_statistics_ = S
        if float(namespace(S["s0"]).min(S["s0"])) > 0:
            task = Task(self.model_, batch.engine, S, start)
            self._calibrate(task, (X, y, sample_weight), max_iter=1)
        else:  # a class still has no rows: its probability is zero in every prediction
            with np.errstate(divide="ignore", invalid="ignore"):
                self._update(start)

    def merge(self, *others: Self) -> Self:
        """Merge models that were fitted to other rows, by adding their statistics.

        With `learner="closed_form"` the result is that of one fit to all rows. A discriminant analysis of
        rows with missing cells is refused: its closed form is found by EM, from all rows at once. With other
        learners the result is a starting point: `calibrate` continues from it.

        Parameters
        ----------
        *others : estimators
            Estimators of the same class, fitted with the same classes and columns. Feature names are
            compared; if only one of two estimators has them, columns are matched by position, with a warning.

        Returns
        -------
        self : object
            The merged estimator.
        """
        check_is_fitted(self)
        self._check_stream()
        self._check_additive(self.data_statistics_)
        with unchanged_on_error(self):
            for other in others:
                if type(other) is not type(self):
                    raise TypeError(f"{type(self).__name__} cannot merge with {type(other).__name__}.")
                check_is_fitted(other)
                other._check_stream()
                if not same_values(self.classes_, other.classes_):
                    raise ValueError(
                        f"merge needs the same classes: {listed(self.classes_)} and {listed(other.classes_)}."
                    )
                self._check_same_columns(other, "merge")
                other._check_additive(other.data_statistics_)
                data, calibrated = self._statistics_of(other, self.data_statistics_)
                self.data_statistics_ = self.data_statistics_ + data
                self.statistics_ = self.statistics_ + calibrated
            self.data_statistics_ = self.model_.settle(self.data_statistics_)
            self._update(self.statistics_.to_frame(self.data_statistics_.frame))
        return self

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Remove rows from the fit, by subtracting their statistics.

        Exact for `learner="closed_form"`, unless rows of a discriminant analysis have missing cells: these
        are expected under the parameters so far. With other learners the effect of the rows on the
        calibration remains: call `calibrate` on the remaining rows. If the calibrated statistics without the
        rows are not valid, the closed form of the remaining rows replaces them.

        Rows that were never fitted are refused if the statistics prove it: a count below zero, a scatter
        that is not positive semidefinite. They do not always: if a few rows are slightly changed, or have the
        label of a class nearby, the remaining statistics could be those of other rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows that were fitted.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Their weights.

        Returns
        -------
        self : object
            The updated estimator.
        """
        self._check_stream()
        self._check_rows_not_kept()
        _, S = self._more_rows(X, y, sample_weight)
        left = self.data_statistics_ - S
        # A class whose rows are all subtracted keeps a rounding error.
        gone = to_numpy(left["s0"] <= 1e-9 * self.data_statistics_["s0"])
        if gone.any():
            label = to_numpy(self.classes_)[gone].tolist()[0]
            raise ValueError(
                f"Nothing would be left of class {label!r}: forget fewer rows, or fit without that class."
            )
        forgotten = S if self._forgotten is None else S + self._forgotten
        if not self.model_.could_be_counted(left, self.data_statistics_ + forgotten):
            raise ValueError(
                "These rows were not all fitted, or had other labels or weights: without them, statistics "
                "would be left that no rows can have."
            )
        with unchanged_on_error(self):
            calibrated = self.statistics_ - S
            self.data_statistics_, self._forgotten = self.model_.settle(left), forgotten
            legal = self.model_.is_legal(calibrated)
            self._update((calibrated if legal else left).to_frame(self.data_statistics_.frame))
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def calibrate(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Run the learner from the present statistics, on rows that were fitted before.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to calibrate on.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Their weights.

        Returns
        -------
        self : object
            The calibrated estimator.
        """
        self._check_rows_not_kept()
        engine, S = self._more_rows(X, y, sample_weight)
        past = self.data_statistics_ - S
        with unchanged_on_error(self):
            # The learner may have been set since the fit.
            self.learner_ = resolve_learner(self.learner, self._named_learners)
            # If these are all rows, the rest is a rounding error.
            rest = past if past.total > 1e-9 * self.data_statistics_.total else None
            frame = self.data_statistics_.frame.join(
                S.frame
            )  # these rows may be the first with missing cells
            data, start = self.data_statistics_.to_frame(frame), self.statistics_.to_frame(frame)
            task = Task(self.model_, engine, data, start, past=rest)
            self._calibrate(task, (X, y, sample_weight))
        return self

    def _check_counted(self, X: Array) -> None:
        """Refuse rows that cannot be among those that were fitted."""

    def _more_rows(self, X: Any, y: Any, sample_weight: Any) -> tuple[Engine, Statistics]:
        """Return an engine over rows to calibrate on or to forget, and their statistics."""
        check_is_fitted(self)
        engine = self._engine(in_memory(self, X), y, sample_weight, Learns.NOTHING)
        encoded = engine.rows
        self._check_counted(encoded)
        with naming_columns(self):
            S = engine.statistics(self.model_, self.statistics_.frame)
            with np.errstate(over="ignore", invalid="ignore"):
                if not S.is_finite():
                    raise statistics_overflow(self.model_, S, encoded)
            self._check_rows(encoded, Fitted(self.model_, self.statistics_, self.parameters_))
        return engine, S
