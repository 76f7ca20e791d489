"""The base class of the estimators: validation of the input, and `fit`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.utils import Tags
from sklearn.utils._param_validation import StrOptions

from riskbayes.arrays import Array, astype, converted, namespace, to_numpy
from riskbayes.engines import engine_for
from riskbayes.engines.base import Engine
from riskbayes.engines.recorded import RecordedEngine
from riskbayes.estimators.callbacks import CallbackSupportMixin, FitTask
from riskbayes.estimators.checks import check_masses, listed, statistics_overflow
from riskbayes.estimators.exporting import OnnxMixin
from riskbayes.estimators.fitted_checks import FittedChecks, model_findings
from riskbayes.estimators.joint import JointMixin
from riskbayes.estimators.reading import Learns, Reading
from riskbayes.estimators.unlabelled import split_rows, with_unlabelled
from riskbayes.exceptions import ColumnError, FlooredWarning, RowsLostError, warn
from riskbayes.findings import Finding
from riskbayes.frames import same_values
from riskbayes.input.schema import Schema
from riskbayes.input.source import ArraySource, Source, closing_sources
from riskbayes.input.sources import source_of
from riskbayes.learners.base import Learner, resolve_learner
from riskbayes.loaded import require
from riskbayes.loop import history_of, run
from riskbayes.models.base import Fitted, GenerativeModel
from riskbayes.objectives import LogLoss
from riskbayes.onnx_export import Exported
from riskbayes.onnx_export.columns import Columns
from riskbayes.persistence.forms import same_form
from riskbayes.persistence.mixin import SavingMixin
from riskbayes.statistics import Statistics
from riskbayes.tables import encoded_names, names_of, validated_numbers
from riskbayes.task import Iteration, Outcome, Status, Task


@dataclass
class GenerativeTags(Tags):
    """scikit-learn's tags, and one that only generative classifiers have."""

    normalised_density: bool = True
    """True if `score_samples` is a log density; otherwise it lacks a constant, and there is no `sample`."""


class BaseGenerativeClassifier(
    JointMixin, FittedChecks, SavingMixin, OnnxMixin, CallbackSupportMixin, ClassifierMixin, BaseEstimator
):
    """Base class of the estimators: a generative model, a learner, and scikit-learn's interface to them.

    A subclass implements `_make_model`, and, if its input is not a table of numbers, `_read`, `_schema_of`,
    `_decide`, `_encode` and `_decode`.
    """

    _parameter_constraints: ClassVar[dict] = {
        "learner": [str, Learner],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
    }

    _named_learners: ClassVar[dict[str, Learner]] = {}
    """Learners that replace the usual ones of these names in this estimator."""

    _takes_missing: bool = False
    """True if cells of the rows may be missing (NaN)."""

    model_: GenerativeModel
    learner_: Learner
    class_weight_: Array | None
    _row_dtype: str
    """Name of the floating dtype of the training rows."""
    _forgotten: Statistics | None = None
    """Statistics of all rows that `forget` subtracted since the fit: they bound the rounding errors too."""
    learner: Any
    class_weight: Any
    warm_start: Any
    verbose: Any

    def _make_model(self) -> GenerativeModel:
        """Return the model with this estimator's parameters; `classes_` and `n_features_in_` are set."""
        raise NotImplementedError

    _schema_decides: ClassVar[bool] = False
    """True if what all rows say of the columns decides how cells are encoded."""

    def _read(self, X: Any, *, reset: bool, learn: bool) -> Any:
        """Return the validated cells of rows, without a decision about them: here an array of numbers.

        `reset` discards the names and the number of earlier columns; `learn` is True for training rows.
        """
        return validated_numbers(self, X, reset=reset)

    def _schema_of(self, cells: Any, whole: bool = True) -> Schema:
        """Return what cells say of the columns; `whole` is False if there are further batches of them."""
        return Schema.of_numbers(cells, getattr(self, "feature_names_in_", None), ranges=False)

    def _decide(self, schema: Schema, more: bool) -> None:
        """Set how cells are encoded, by the schema of all rows; with `more` what is known is extended."""
        if not more:
            self._row_dtype = "float32" if schema.dtype == "float32" else "float64"

    def _encode(self, cells: Any) -> Array:
        """Return cells as an array of numbers."""
        return cells

    @property
    def _picks_rows(self) -> bool:
        return self.learner_.picks_rows

    def _in_row_dtype(self, value: Array) -> Array:
        """Cast a fitted attribute to the dtype of the training rows, as scikit-learn does."""
        return astype(value, getattr(namespace(value), self._row_dtype))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        tags.input_tags.allow_nan = self._takes_missing
        return GenerativeTags(**{f.name: getattr(tags, f.name) for f in fields(tags)})

    def __sklearn_array_api_convert__(self, converter: Any) -> Self:
        """Return a copy with arrays of another library, for scikit-learn's `move_estimator_to`."""
        moved = copy(self)
        for name, value in vars(self).items():
            setattr(moved, name, converted(value, converter))
        return moved

    def _training_weight(self) -> float:
        return self.data_statistics_.total

    def check_loaded(self, size: int) -> None:
        """Require statistics and parameters of the form that the model itself makes of one row.

        Classes, columns, frame, statistics and parameters then fit one another, so that no scan reads beyond
        an array.
        """
        if not hasattr(self, "model_") and not hasattr(self, "statistics_"):
            return  # an expert of a product, which was never fitted by itself
        super().check_loaded(size)
        table = self._encoder_of_table
        if table is not None:
            require(len(table.readers) == self.n_features_in_, "the encoder reads other columns")
        r, n = len(self.classes_), self.n_features_in_ if table is None else len(table.kinds)
        model, S, theta = self.model_, self.statistics_, self.parameters_
        require(S["s0"].shape == (r,), f"it has {r} classes, and statistics of {len(S['s0'])}")
        row, none = np.zeros((1, n)), np.zeros((1, r))
        with np.errstate(all="ignore"):
            Z = model.encode(row, S.frame)
            counted = {name: value.shape for name, value in model.statistics(Z, none).items()}
            for found in (S, self.data_statistics_):
                shapes = {name: value.shape for name, value in found.items()}
                require(shapes == counted, f"statistics have the shapes {shapes}, the model's {counted}")
                require(found.frame is S.frame or found.frame == S.frame, "statistics have other frames")
            if self._forgotten is not None:
                self._forgotten + S  # in their common frame, or it raises
            require(same_form(theta, model.parameters(S)), "parameters are not those of the statistics")
            scores = model.scores(Z, model.cast(theta, Z))
        require(np.shape(scores) == (1, r), f"the model has {np.shape(scores)[1:]} classes, not {r}")

    def set_params(self, **params: Any) -> Self:
        """Set parameters; `learner__<name>` sets one of a learner instance.

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
        y: Any = None,
        sample_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
        unlabelled: Any = False,
        checkpoint: Any = None,
    ) -> Self:
        """Fit the model: compute its closed form, then run the learner's iterations.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Rows, or Dask array or data frame
            Training rows; :func:`riskbayes.rows` makes `Rows` of files, queries and streams, which need not
            fit into memory and hold their labels and weights. The partitions of a Dask collection stay on
            their workers; y and sample_weight are then Dask collections with the same partitions.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows. A weight of 2 counts the row twice.
        X_val, y_val, sample_weight_val : array-like, default=None
            Validation rows: the iteration with the least risk on them is returned, and a learner with
            `n_iter_no_change` stops when that risk no longer falls.
        unlabelled : label, None or NaN, default=False
            What `y` holds for rows without a label, such as -1; None and NaN are for missing labels. These
            rows enter the closed form by their posterior (EM); the learner leaves their statistics in place.
            `doc/joint.md` shows where that helps and where it does not. False: every row has a label.
        checkpoint : path or (path, seconds), default=None
            A file to which every scan is written, at once or when so many seconds have passed since the last
            time. If it exists, the same fit goes on from there: rows, model and learner must be those that it
            began with. Delete it to fit anew.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        with closing_sources(X, X_val), unchanged_on_error(self):
            old = copy(self) if self.warm_start and hasattr(self, "statistics_") else None
            if unlabelled is not False and isinstance(X, Source):
                raise ValueError("unlabelled goes with arrays: riskbayes.rows are rows with a label each.")
            if checkpoint is not None and (old is not None or unlabelled is not False):
                raise ValueError("checkpoint goes without warm_start and without unlabelled rows.")
            if unlabelled is False:
                task = begin_fit(self, X, y, sample_weight, checkpoint=checkpoint)
            else:
                split = split_rows(X, y, sample_weight, unlabelled)
                task = begin_fit(self, split.X, split.y, split.sample_weight)
                task = task if split.others is None else with_unlabelled(self, task, split)
            if old is not None:
                start = self._start_from(old, task.S)
                frame = task.S.frame.join(start.frame)  # one of the two may know more categories
                task = replace(task, S=task.S.to_frame(frame), start=start.to_frame(frame))
            self._forgotten = None
            held = None
            if not (X_val is None and y_val is None and sample_weight_val is None):
                held = self._validation_rows(task.S, X_val, y_val, sample_weight_val)
            task = replace(task, validation=task.engine.beside(held, "validation"))
            try:
                self._calibrate(task, (X, y, sample_weight))
            finally:
                task.engine.finish()
            if self.status_ is not Status.LOST:
                self._keep_densities(task.engine)
        return self

    def _engine(self, X: Any, y: Any, sample_weight: Any, learns: Learns, suffix: str = "") -> Engine:
        """Return an engine over rows with labels, encoded; messages append `suffix` to names of arguments."""
        return source_of(X, y, sample_weight, suffix).engine(Reading(self, learns, suffix))

    def _needs_all_classes(self) -> bool:
        """True if a fit needs two classes or more, each with a weight."""
        return True

    def _start_from(self, old: Self, S: Statistics) -> Statistics:
        """Return the statistics of an earlier fit, scaled to the total weight of the new rows, S.total."""
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
        """Raise an error if the other estimator was fitted to other columns, or to another order of them."""
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
        """Return another estimator's data and calibrated statistics, such that they can be added to S."""
        return other.data_statistics_, other.statistics_

    def _validation_rows(self, S: Statistics, X: Any, y: Any, sample_weight: Any) -> Engine:
        """Return an engine over the validation rows; refuse rows whose scores in the closed form overflow."""
        if X is None and y is None:
            raise ValueError("sample_weight_val weights the rows of X_val: pass X_val and y_val too.")
        if (X is None or y is None) and not isinstance(X, Source):
            raise ValueError("X_val and y_val go together: pass both or none.")
        engine = self._engine(X, y, sample_weight, Learns.NOTHING, "_val")
        fitted = Fitted.of(self.model_, S)
        if engine.rows is not None:
            self._check_rows(engine.rows, fitted, "X_val")
        elif not np.isfinite(engine.scan(fitted, LogLoss(), risks_only=True).risks.mean()["log_loss"]):
            raise ValueError("X_val has rows too far from those of the fit for a finite score. Drop them.")
        return engine

    def _calibrate(self, task: Task, rows: tuple[Any, Any, Any], max_iter: int | None = None) -> None:
        """Run the learner and set the fitted attributes.

        `rows` are X, y and the weights as the user passed them, for callbacks. With `max_iter` the learner
        makes a single run of at most that many scans.
        """
        learner, name = self.learner_, type(self).__name__
        self.cost_matrix_ = learner.cost_matrix
        most = learner.most_iterations if max_iter is None else max_iter + 1
        progress = FitTask(self, most, rows)
        S = task.S  # the callback holds no task, which holds the callback: rows are let go when the fit ends

        def on_iteration(iteration: Iteration) -> bool:
            """Report an accepted iteration to the user and to callbacks; True stops the fit."""
            if self.verbose:
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
        outcome = learner.fit_statistics(task) if max_iter is None else run(task, learner, max_iter)
        self.data_statistics_ = S
        if outcome.fitted.S.frame is not S.frame:
            self.data_statistics_, outcome = in_one_frame(task, outcome)
        self.cost_matrix_ = learner.cost_matrix  # RCCV may have chosen another
        self._store(outcome)
        floored = None if outcome.floored is None else to_numpy(outcome.floored)
        if floored is not None and floored.any() and self.model_.floor_warning is not None:
            named = listed(to_numpy(self.classes_)[floored > 0])
            warn(self.model_.floor_warning.format(classes=named, most=floored.max()), FlooredWarning)
        if self.verbose:
            print(f"[{name}] {self.status_.message}")
        progress.end(dict)

    def _store(self, outcome: Outcome) -> None:
        """Set the fitted attributes."""
        self.model_, self.statistics_, self.parameters_ = outcome.fitted
        self._priors = self._log_densities = None
        self.history_, self.status_ = outcome.history, outcome.status
        self.n_iter_, self.best_iteration_ = max(0, len(outcome.history["lr"]) - 1), outcome.number
        self.refit_history_ = outcome.refit_history

    def _onnx_columns(self) -> Columns:
        return Columns.numbers(*names_of(self))

    def _exported(self) -> Exported:
        costs = getattr(self, "cost_matrix_", None)  # a stream has none
        return Exported(
            type(self).__name__,
            self.model_,
            self._on_host()[1],
            self._onnx_columns(),
            to_numpy(self.classes_),
            to_numpy(self.data_statistics_["s0"]) > 0,
            None if costs is None else to_numpy(costs),
        )

    def _findings(self) -> Iterator[Finding]:
        return model_findings(self)

    def _update(self, S: Statistics) -> None:
        """Set the fitted attributes for the statistics S, without running the learner."""
        self._store(Outcome(Fitted.of(self.model_, S), history_of([]), Status.UPDATED, None))


@contextmanager
def unchanged_on_error(estimator: Any) -> Iterator[None]:
    """Restore the attributes of the estimator if the block raises: it fits entirely or not at all.

    Column errors get the name of the column; attributes of callbacks are not restored. A KeyboardInterrupt
    or a RowsLostError that the loop caught is raised again at the end, when the best model so far is stored.
    """
    before = dict(vars(estimator))
    try:
        yield
    except BaseException as error:
        names = encoded_names(estimator)
        for name in set(vars(estimator)) - set(before):
            if not name.startswith(("_callback", "_skl")):
                delattr(estimator, name)
        vars(estimator).update(before)
        if isinstance(error, ColumnError):
            raise error.named(names) from None
        raise
    if estimator.status_ is Status.INTERRUPTED:
        raise KeyboardInterrupt
    if estimator.status_ is Status.LOST:
        raise RowsLostError(
            f"The rows were lost after {estimator.n_iter_} iterations, of which the best model was kept: the "
            "cluster that held them cannot be reached. Start another, and fit again; fit(checkpoint=...) "
            "goes on from the last scan."
        )


def begin_fit(
    clf: BaseGenerativeClassifier,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    learns: Learns = Learns.ALL,
    checkpoint: Any = None,
) -> Task:
    """Validate training rows and make the model; return the learner's task, which starts at the closed form.

    The classes of a batch of a stream are declared by the user: only those that the rows of a fit have must
    have a weight. Scans are recorded in the file `checkpoint`, if there is one.
    """
    clf.learner_, clf.class_weight_ = resolve_learner(clf.learner, clf._named_learners), None
    if clf.learner_.goes_row_by_row and not isinstance(source_of(X), ArraySource):
        raise ValueError(
            f"{type(clf.learner_).__name__} goes row by row, which needs all rows in memory, and X is read "
            "in batches or is a Dask collection. Pass an array, or take another learner."
        )
    engine = clf._engine(X, y, sample_weight, learns)
    if learns is Learns.ALL:
        check_masses(clf.classes_, engine.masses, every=clf._needs_all_classes())
    if clf.classes_.shape[0] < 2 and clf._needs_all_classes():
        raise ValueError(
            f"{type(clf).__name__} with learner={clf.learner!r} needs at least two classes in y; got "
            f"one class, {listed(clf.classes_)}."
        )
    clf.model_ = model = clf._make_model()
    clf.learner_.check(model, clf.classes_.shape[0])
    rows = engine.rows
    if checkpoint is not None:
        settings = {"model": model, "learner": clf.learner_, "classes": to_numpy(clf.classes_)}
        engine = RecordedEngine.opened(engine, checkpoint, settings)
    S = engine.statistics(model, engine.learn(model))
    with np.errstate(over="ignore", invalid="ignore"):
        if not S.is_finite():
            raise statistics_overflow(model, S, rows)
    return Task(model, engine, model.settle(S))


def rows_for(clf: BaseGenerativeClassifier, X: Any) -> Engine:
    """Return an engine over rows without labels, for an estimator whose fit has begun."""
    rows = clf._encode(clf._read(X, reset=False, learn=False))
    return engine_for(rows, None, None, clf.classes_.shape[0])


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
