"""The scikit-learn side of every model: validation, and fit."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.utils import Tags
from sklearn.utils._array_api import move_to
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_y

from riskbayes.arrays import (
    Array,
    as_kind,
    converted,
    device_of,
    namespace,
    sent_to,
    take_rows,
    to_numpy,
)
from riskbayes.engines import engine_for
from riskbayes.engines.base import Engine
from riskbayes.estimators.callbacks import CallbackSupportMixin, FitProgress
from riskbayes.estimators.checks import (
    check_masses,
    check_one_kind,
    check_statistics,
    check_total,
    check_weights,
    class_weights,
    listed,
    unchanged_on_error,
)
from riskbayes.estimators.prediction import PredictionMixin
from riskbayes.exceptions import FlooredWarning, warn
from riskbayes.frames import same_values
from riskbayes.learners.base import Learner, resolve_learner
from riskbayes.loop import history_of, run
from riskbayes.models.base import Fitted, GenerativeModel
from riskbayes.statistics import Statistics
from riskbayes.tables import validated_numbers
from riskbayes.task import Iteration, Outcome, Status, Task


@dataclass
class GenerativeTags(Tags):
    """scikit-learn's tags, and what only a generative classifier has."""

    normalised_density: bool = True
    """Whether `score_samples` is a log density; otherwise it misses a constant, and there is no `sample`."""


class BaseGenerativeClassifier(PredictionMixin, CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """A generative model, a learner, and scikit-learn's interface to them.

    A subclass says how its parameters make a model (`_make_model`), and, where its input is not
    a table of numbers, how to encode it (`_encode`) and decode it (`_decode`).
    """

    _parameter_constraints: ClassVar[dict] = {
        "learner": [str, Learner],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
    }

    model_: GenerativeModel
    learner_: Learner
    class_weight_: Array | None
    _row_dtype: str
    """Name of the floating dtype of the training rows."""
    _forgotten: Statistics | None = None
    """Statistics of the rows that were taken out since the fit: rounding is measured by them too."""
    learner: Any
    class_weight: Any
    warm_start: Any
    verbose: Any

    def _make_model(self) -> GenerativeModel:
        """Return the model of the parameters; `classes_` and `n_features_in_` are known."""
        raise NotImplementedError

    def _encode(self, X: Any, *, reset: bool, learn: bool) -> Array:
        """Validated input; `reset` starts anew, `learn` may take in what is new (categories)."""
        X = validated_numbers(self, X, reset=reset)
        if reset:
            self._row_dtype = "float32" if X.dtype == namespace(X).float32 else "float64"
        return X

    def _in_row_dtype(self, value: Array) -> Array:
        """Cast a fitted attribute to the dtype of the training rows, as in scikit-learn."""
        return as_kind(value, getattr(namespace(value), self._row_dtype))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        return GenerativeTags(**{f.name: getattr(tags, f.name) for f in fields(tags)})

    def __sklearn_array_api_convert__(self, converter: Any) -> Self:
        """The same estimator with arrays of another library, for scikit-learn's `move_estimator_to`."""
        moved = copy(self)
        for name, value in vars(self).items():
            setattr(moved, name, converted(value, converter))
        return moved

    def set_params(self, **params: Any) -> Self:
        """Set parameters, those of a learner instance by `learner__<name>`.

        Parameters
        ----------
        **params : dict
            Parameters by name.

        Returns
        -------
        self : object
            The estimator.
        """
        nested = [name for name in params if name.startswith("learner__")]
        learner = params.get("learner", self.learner)
        if nested and isinstance(learner, str):
            kind = type(resolve_learner(learner)).__name__
            raise ValueError(
                f"{nested[0]} needs a learner, and learner={learner!r} is a name: pass learner={kind}()."
            )
        return super().set_params(**params)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
    ) -> Self:
        """Fit the model: the closed form, then the learner's iterations.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows. A weight of 2 is the row twice.
        X_val, y_val, sample_weight_val : array-like, default=None
            Rows that only judge: the model returned is the best one for them, and a learner with
            `n_iter_no_change` stops when they do not improve.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        with unchanged_on_error(self):
            old = copy(self) if self.warm_start and hasattr(self, "statistics_") else None
            task = begin_fit(self, X, y, sample_weight)
            if old is not None:
                start = self._start_from(old, task.S)
                frame = task.S.frame.join(start.frame)  # one of the two may know more categories
                task = replace(task, S=task.S.to_frame(frame), start=start.to_frame(frame))
            self._forgotten = None
            if not (X_val is None and y_val is None and sample_weight_val is None):
                held = self._validation_rows(task.S, X_val, y_val, sample_weight_val)
                task = replace(task, validation=held)
            self._calibrate(task, (X, y, sample_weight))
        return self._unless_interrupted()

    def _unless_interrupted(self) -> Self:
        """Re-raise the KeyboardInterrupt that the loop caught, now that the best model is stored."""
        if self.status_ is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return self

    def _rows(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        *,
        reset: bool = False,
        learn: bool = False,
        new_classes: bool = False,
        suffix: str = "",
    ) -> tuple[Engine, Array]:
        """Return an engine over validated rows with labels, and the rows.

        `reset` starts anew, `learn` may take in what is new (categories), `new_classes` sets `classes_`.
        Messages call the arguments `X` and `y` with the suffix.
        """
        encoded = self._encode(X, reset=reset, learn=learn)
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        labels = self._check_labels(y, encoded)
        if encoded.shape[0] != labels.shape[0]:
            raise ValueError(
                f"X{suffix} has {encoded.shape[0]} rows and y{suffix} has {labels.shape[0]} labels."
            )
        if new_classes:
            self.classes_, codes = namespace(labels).unique_inverse(labels)
        else:
            self.classes_ = self._check_labels(self.classes_, encoded) if reset else self.classes_
            codes = self._codes(labels, f"y{suffix}")
        codes = codes if namespace(codes) is namespace(encoded) else sent_to(codes, encoded)
        w = None
        if sample_weight is not None or self.class_weight is not None:
            w = self._weights(sample_weight, encoded, codes, f"sample_weight{suffix}", learn)
        return engine_for(encoded, codes, w, self.classes_.shape[0]), encoded

    def _check_labels(self, y: Any, X: Array) -> Array:
        """Return labels as an array of X's library, on its device; strings stay on the host."""
        labels = _check_y(y, estimator=self)
        if labels.dtype == object:
            check_one_kind(labels)
        check_classification_targets(labels)
        if isinstance(X, np.ndarray) or (isinstance(labels, np.ndarray) and labels.dtype.kind in "OUST"):
            return labels
        return move_to(labels, xp=namespace(X), device=device_of(X))

    def _resolved_learner(self) -> Learner:
        return resolve_learner(self.learner)

    def _needs_all_classes(self) -> bool:
        """True if a fit needs two classes or more, each with a weight."""
        return True

    def _start_from(self, old: Self, S: Statistics) -> Statistics:
        """The statistics that an earlier fit ended at, brought to the mass of these rows."""
        same = same_values(self.classes_, old.classes_) and self.n_features_in_ == old.n_features_in_
        if not same:
            raise ValueError(
                f"warm_start goes on from {old.n_features_in_} columns and classes {listed(old.classes_)}; "
                f"these rows have {self.n_features_in_} and {listed(self.classes_)}. Set warm_start=False."
            )
        self._check_same_columns(old, "warm_start")
        last = self._statistics_of(old, S)[1]
        return (S.total / last.total) * last

    def _check_same_columns(self, other: Self, what: str) -> None:
        """Refuse statistics of other columns, or of the same ones in another order."""
        if self.n_features_in_ != other.n_features_in_:
            raise ValueError(
                f"{what} needs the same columns; the models have {self.n_features_in_} and "
                f"{other.n_features_in_}."
            )
        ours: Any = getattr(self, "feature_names_in_", None)
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

    def _statistics_of(self, other: Self, S: Statistics) -> tuple[Statistics, Statistics]:
        """Return another estimator's data and calibrated statistics, to be added to S, this one's."""
        return other.data_statistics_, other.statistics_

    def _weights(self, sample_weight: Any, X: Array, codes: Array, name: str, learn: bool) -> Array:
        """Return the weights of the rows, times those of their classes; `learn` sets `class_weight_`."""
        w = check_weights(sample_weight, X, name)
        if self.class_weight is None:
            return w
        if learn:
            self.class_weight_ = sent_to(class_weights(self.class_weight, self.classes_, codes, w), X)
        w = w * take_rows(self.class_weight_, codes)
        check_total(w, f"{name} times class_weight" if sample_weight is not None else "class_weight")
        return w

    def _closed_form(self, engine: Engine, X: Array) -> Statistics:
        """Set the model; return the statistics of an engine's rows with all that it learns from them."""
        if self.classes_.shape[0] < 2 and self._needs_all_classes():
            raise ValueError(
                f"{type(self).__name__} with learner={self.learner!r} needs at least two classes in y; got "
                f"one class, {listed(self.classes_)}."
            )
        self.model_ = model = self._make_model()
        self.learner_.check(model, self.classes_.shape[0])
        S = engine.statistics(model, engine.learn(model))
        check_statistics(S, X)
        return model.settle(S)

    def _validation_rows(self, S: Statistics, X: Any, y: Any, sample_weight: Any) -> Engine:
        if X is None and y is None:
            raise ValueError("sample_weight_val weights the rows of X_val: pass X_val and y_val too.")
        if X is None or y is None:
            raise ValueError("X_val and y_val go together: pass both or none.")
        engine, encoded = self._rows(X, y, sample_weight, suffix="_val")
        self._check_rows(encoded, Fitted.of(self.model_, S), "X_val")
        return engine

    def _codes(self, labels: Array, name: str) -> Array:
        """Return the codes of labels, all of them among `classes_`."""
        xp, classes = namespace(labels), self.classes_
        if xp is np:
            found = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
        else:
            found = xp.clip(xp.searchsorted(classes, labels), max=classes.shape[0] - 1)
        known = take_rows(classes, found) == labels
        if not bool(xp.all(known)):
            unknown = xp.unique_values(labels[~known])
            raise ValueError(
                f"The target label(s) {listed(unknown)} in {name} do not exist in the initial classes "
                f"{listed(classes)}. Drop these rows, or fit with all classes."
            )
        return found

    def _calibrate(self, task: Task, rows: tuple[Any, Any, Any], max_iter: int | None = None) -> None:
        """Run the learner and store what it found; `max_iter` asks for so many steps only."""
        learner = self.learner_
        self.cost_matrix_ = learner.cost_matrix

        def fitted(iteration: Iteration) -> dict[str, Any]:
            model, S, theta = iteration.fitted
            return {"model_": model, "data_statistics_": task.S, "statistics_": S, "parameters_": theta}

        most = learner.most_iterations if max_iter is None else max_iter + 1
        progress = FitProgress(self, most, rows, fitted)
        task = replace(task, on_iteration=progress)
        outcome = learner.fit_statistics(task) if max_iter is None else run(task, learner, max_iter)
        self.data_statistics_ = task.S
        if outcome.fitted.S.frame is not task.S.frame:
            self.data_statistics_, outcome = in_one_frame(task, outcome)
        self.cost_matrix_ = learner.cost_matrix  # RCCV may have chosen
        self._store(outcome)
        floored = None if outcome.floored is None else to_numpy(outcome.floored)
        if floored is not None and floored.any() and self.model_.floor_warning is not None:
            named = listed(to_numpy(self.classes_)[floored > 0])
            message = self.model_.floor_warning.format(classes=named, most=floored.max())
            warn(message, FlooredWarning)
        progress.end()

    def _store(self, outcome: Outcome) -> None:
        self.model_, self.statistics_, self.parameters_ = outcome.fitted
        self.history_, self.status_ = outcome.history, outcome.status
        self.n_iter_, self.best_iteration_ = max(0, len(outcome.history["lr"]) - 1), outcome.number
        self.refit_history_ = outcome.refit_history

    def _update(self, S: Statistics) -> None:
        """Store the model of S, without a scan."""
        self._store(Outcome(Fitted.of(self.model_, S), history_of([]), Status.UPDATED, None))


def begin_fit(clf: BaseGenerativeClassifier, X: Any, y: Any, sample_weight: Any = None) -> Task:
    """Validate the rows of a fit; return what its learner starts from: the closed form."""
    clf.learner_, clf.class_weight_ = clf._resolved_learner(), None
    engine, encoded = clf._rows(X, y, sample_weight, reset=True, learn=True, new_classes=True)
    if sample_weight is not None or clf.class_weight is not None:
        check_masses(clf.classes_, engine.masses, every=clf._needs_all_classes())
    S = clf._closed_form(engine, encoded)
    return Task(clf.model_, engine, S)


def rows_for(clf: BaseGenerativeClassifier, X: Any) -> Engine:
    """Return an engine over new rows of an estimator that has begun a fit."""
    return engine_for(clf._encode(X, reset=False, learn=False), None, None, clf.classes_.shape[0])


def in_one_frame(task: Task, outcome: Outcome) -> tuple[Statistics, Outcome]:
    """Return what was counted, and the outcome, in a common frame.

    They differ where an outcome was learned from part of the rows. Where the model learned structure, all
    rows are counted again by it.
    """
    (model, found, _), S = outcome.fitted, task.S
    if not model.additive and found.frame != S.frame:
        S = task.engine.statistics(model, found.frame)
    frame = found.frame.join(S.frame)
    return S.to_frame(frame), outcome._replace(fitted=Fitted.of(model, found.to_frame(frame)))
