"""The scikit-learn side of every model: validation, fit, partial_fit, the one predict path."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.utils import check_random_state, compute_class_weight
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import _check_partial_fit_first_call, check_classification_targets
from sklearn.utils.validation import _check_sample_weight, _check_y, check_is_fitted, validate_data

from riskbayes.engines.memory import MemoryEngine, row_chunks
from riskbayes.estimators.callbacks import CallbackSupportMixin, FitProgress, callback_data
from riskbayes.estimators.checks import check_finite, check_masses, unchanged_on_error
from riskbayes.exceptions import FlooredWarning
from riskbayes.learners.base import Learner, resolve_learner
from riskbayes.learners.objectives import check_cost_matrix
from riskbayes.loop import History, Iteration, Outcome, Status, Task, run
from riskbayes.models.base import GenerativeModel
from riskbayes.risks import log_evidence
from riskbayes.statistics import Array, Statistics


class BaseGenerativeClassifier(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
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
    learner: Any
    class_weight: Any
    warm_start: Any
    verbose: Any

    def _make_model(self, X: Array, y: Array, sample_weight: Array | None) -> GenerativeModel:
        raise NotImplementedError

    def _encode(self, X: Any, *, reset: bool, learn: bool) -> Array:
        """Validated input; `reset` starts anew, `learn` may take in what is new (categories)."""
        X = validate_data(self, X, reset=reset, dtype=[np.float64, np.float32], ensure_all_finite=False)
        return check_finite(self, X)

    def _decode(self, X: Array) -> Array:
        return X

    def _drawn_parameters(self) -> Any:
        """What `sample` draws from."""
        return self.parameters_

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
            Rows that only judge: the model returned is the best one for them, and the learner stops
            when they do not improve.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        with unchanged_on_error(self):
            self._fit_rows(X, y, sample_weight, X_val, y_val, sample_weight_val)
        return self

    def _fit_rows(
        self, X: Any, y: Any, sample_weight: Any, X_val: Any, y_val: Any, sample_weight_val: Any
    ) -> None:
        encoded, labels = self._check_X_y(X, y, reset=True)
        old = getattr(self, "statistics_", None) if self.warm_start else None
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two classes in y; got one class, "
                f"{self.classes_.tolist()[0]!r}."
            )
        w = self._weights(sample_weight, encoded, codes)
        check_masses(self.classes_, codes, w)
        engine, S = self._begin(encoded, codes, w)
        validation = self._validation_engine(engine, X_val, y_val, sample_weight_val)
        start = S if old is None else (S.total / old.total) * old
        self.data_statistics_ = S
        self._calibrate(engine, S, start, callback_data(X, y, sample_weight), validation)

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add a batch of rows.

        Its statistics are added to those of the rows before: for `learner="closed_form"` the result
        is that of one `fit` on all rows. Other learners then take one step on the rows of the batch,
        once every class has rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Class labels.
        classes : array-like of shape (n_classes,), default=None
            All classes that will ever appear; needed in the first call.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        self : object
            The updated estimator.
        """
        self._check_stream()
        with unchanged_on_error(self):
            self._add_batch(X, y, classes, sample_weight)
        return self

    def _check_stream(self) -> None:
        """Refuse what only all rows together tell."""
        if isinstance(self.class_weight, str):
            raise ValueError(
                "class_weight='balanced' is not known before all rows are: pass a dict to partial_fit."
            )

    def _add_batch(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
        first = _check_partial_fit_first_call(self, classes)
        if len(self.classes_) < 2:
            raise ValueError(
                f"partial_fit needs at least two classes; got one class, {self.classes_.tolist()[0]!r}."
            )
        encoded, labels = self._check_X_y(X, y, reset=first)
        labels, codes = self._known_labels(labels, "y")
        w = self._weights(sample_weight, encoded, codes)
        past = None if first else (self.data_statistics_, self.statistics_)
        engine, batch = self._begin(encoded, codes, w)
        if past is None:
            self.data_statistics_, start = batch, batch
        else:
            self.data_statistics_, start = past[0] + batch, past[1] + batch
            self.model_ = engine.model = self.model_.bind(self.data_statistics_)
        if (self.data_statistics_["s0"] > 0).all():
            self._calibrate(
                engine, self.data_statistics_, start, callback_data(X, y, sample_weight), max_iter=1
            )
        else:  # a class is still without rows: `predict_joint_log_proba` gives it probability zero
            with np.errstate(divide="ignore", invalid="ignore"):
                self._update(start)

    def _check_X_y(self, X: Any, y: Any, reset: bool) -> tuple[Array, Array]:
        self._resolved_learner()
        encoded = self._encode(X, reset=reset, learn=True)
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        labels = _check_y(y, estimator=self)
        check_classification_targets(labels)
        if len(encoded) != len(labels):
            raise ValueError(f"X has {len(encoded)} rows and y has {len(labels)} labels.")
        return encoded, labels

    def _resolved_learner(self) -> Learner:
        return resolve_learner(self.learner)

    def _weights(self, sample_weight: Any, X: Array, codes: Array) -> Array | None:
        if sample_weight is None and self.class_weight is None:
            return None
        w = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if self.class_weight is None:
            return w
        labels = self.classes_[codes]
        by_class = compute_class_weight(self.class_weight, classes=self.classes_, y=labels, sample_weight=w)
        if not (by_class >= 0).all():
            label = self.classes_[~(by_class >= 0)].tolist()[0]
            raise ValueError(f"class_weight of class {label!r} must not be negative.")
        return w * by_class[codes]

    def _begin(self, X: Array, y: Array, w: Array | None) -> tuple[MemoryEngine, Statistics]:
        """The model bound to the statistics of these rows, and an engine that holds them."""
        model = self._make_model(X, y, w)
        self._resolved_learner().check(model, len(self.classes_))
        engine = MemoryEngine(model, model.prepare(X, w), y, w, len(self.classes_))
        S = engine.statistics()
        self.model_ = engine.model = model.bind(S)
        return engine, S

    def _validation_engine(
        self, engine: MemoryEngine, X: Any, y: Any, sample_weight: Any
    ) -> MemoryEngine | None:
        if (X is None) != (y is None):
            raise ValueError("X_val and y_val go together: pass both or none.")
        if X is None:
            return None
        encoded = self._encode(X, reset=False, learn=False)
        labels, codes = self._known_labels(y, "y_val")
        if len(encoded) != len(labels):
            raise ValueError(f"X_val has {len(encoded)} rows and y_val has {len(labels)} labels.")
        w = self._weights(sample_weight, encoded, codes)
        Z = self.model_.rows(encoded, self.model_.parameters(engine.statistics()))
        return MemoryEngine(self.model_, Z, codes, w, len(self.classes_))

    def _known_labels(self, y: Any, name: str) -> tuple[Array, Array]:
        """Labels and their codes, all of them among `classes_`."""
        labels = _check_y(y, estimator=self)
        codes = np.minimum(np.searchsorted(self.classes_, labels), len(self.classes_) - 1)
        known = self.classes_[codes] == labels
        if not known.all():
            raise ValueError(
                f"{name} has the label {labels[~known].tolist()[0]!r}, which is not among the classes "
                f"{self.classes_.tolist()}."
            )
        return labels, codes

    def _calibrate(
        self,
        engine: MemoryEngine,
        S: Statistics,
        start: Statistics,
        data: dict[str, Any],
        validation: MemoryEngine | None = None,
        max_iter: int | None = None,
    ) -> None:
        """Run the learner from `start` on the engine's rows; `max_iter` asks for so many steps only."""
        learner = self._resolved_learner()

        def fitted(iteration: Iteration) -> dict[str, Any]:
            return {"statistics_": iteration.S, "parameters_": iteration.theta}

        progress = FitProgress(self, learner.max_iter if max_iter is None else max_iter, data, fitted)
        task = Task(self.model_, engine, S, start, validation, progress)
        outcome = learner.fit_statistics(task) if max_iter is None else run(task, learner, max_iter)
        self.learner_ = learner
        self._store(outcome)
        self._warn_of_floors(outcome.first)
        progress.end()
        if outcome.status is Status.INTERRUPTED:
            raise KeyboardInterrupt

    def _store(self, outcome: Outcome) -> None:
        self.model_, self.statistics_, self.parameters_ = outcome.model, outcome.S, outcome.theta
        self.history_, self.status_ = outcome.history, outcome.status
        self.n_iter_ = max(0, len(outcome.history["lr"]) - 1)

    def _update(self, S: Statistics) -> None:
        """Take S as it is, without a scan."""
        theta = self.model_.parameters(S)
        self._store(Outcome(self.model_, S, theta, History().arrays(), Status.UPDATED, theta))

    def merge(self, *others: Self) -> Self:
        """Take in models fitted apart, by adding their statistics.

        For `learner="closed_form"` the result is that of one fit on all rows. For other learners it is
        a start: `calibrate` goes on from it.

        Parameters
        ----------
        *others : estimators
            Of the same class, fitted with the same classes and columns.

        Returns
        -------
        self : object
            The merged estimator.
        """
        check_is_fitted(self)
        with unchanged_on_error(self):
            for other in others:
                self._take_in(other)
            self.model_ = self.model_.bind(self.data_statistics_)
            self._update(self.statistics_)
        return self

    def _take_in(self, other: Self) -> None:
        """Add the statistics of one estimator to this one's."""
        if type(other) is not type(self):
            raise TypeError(f"{type(self).__name__} cannot merge with {type(other).__name__}.")
        check_is_fitted(other)
        if not np.array_equal(self.classes_, other.classes_):
            raise ValueError(
                f"merge needs the same classes: {self.classes_.tolist()} and {other.classes_.tolist()}."
            )
        data, calibrated = self._statistics_of(other)
        self.data_statistics_ = self.data_statistics_ + data
        self.statistics_ = self.statistics_ + calibrated

    def _statistics_of(self, other: Self) -> tuple[Statistics, Statistics]:
        """Another estimator's statistics, in this one's terms."""
        return other.data_statistics_, other.statistics_

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Take rows out again, by subtracting their statistics.

        Exact for `learner="closed_form"`. For other learners what the rows did to the calibration
        stays: call `calibrate` on the rows that remain.

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
        engine, S = self._more_rows(X, y, sample_weight)
        left = self.data_statistics_ - S
        # What is left of a class without rows is rounding.
        gone = left["s0"] <= 1e-9 * self.data_statistics_["s0"]
        if gone.any():
            raise ValueError(
                f"Nothing would be left of class {self.classes_[gone].tolist()[0]!r}: forget fewer rows, or "
                "fit without that class."
            )
        self.data_statistics_, calibrated = left, self.statistics_ - S
        self.model_ = engine.model.bind(left)
        self._update(calibrated if self.model_.is_legal(calibrated) else left)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def calibrate(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Run the learner from the present statistics, on rows that are counted already.

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
        engine, _ = self._more_rows(X, y, sample_weight)
        engine.model = self.model_
        data = callback_data(X, y, sample_weight)
        self._calibrate(engine, self.data_statistics_, self.statistics_, data)
        return self

    def _check_counted(self, X: Array) -> None:
        """Refuse rows that cannot be among those that were fitted."""

    def _more_rows(self, X: Any, y: Any, sample_weight: Any) -> tuple[MemoryEngine, Statistics]:
        """An engine over further rows of a fitted estimator, and their statistics."""
        check_is_fitted(self)
        encoded = self._encode(X, reset=False, learn=False)
        self._check_counted(encoded)
        labels, codes = self._known_labels(y, "y")
        if len(encoded) != len(labels):
            raise ValueError(f"X has {len(encoded)} rows and y has {len(labels)} labels.")
        w = self._weights(sample_weight, encoded, codes)
        engine = MemoryEngine(
            self.model_, self.model_.rows(encoded, self.parameters_), codes, w, len(self.classes_)
        )
        return engine, engine.statistics()

    def _warn_of_floors(self, theta: Any) -> None:
        floored = np.asarray(getattr(theta, "floored", 0))
        if self.model_.floor_warning is not None and floored.any():
            named = ", ".join(repr(label) for label in self.classes_[floored > 0].tolist())
            message = self.model_.floor_warning.format(classes=named, most=floored.max())
            warnings.warn(message, FlooredWarning, stacklevel=6)

    def predict_joint_log_proba(self, X: Any) -> Array:
        """Log joint log p(x, y) of each row and class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_joint : ndarray of shape (n_samples, n_classes)
            Columns follow `classes_`.
        """
        check_is_fitted(self)
        X = self._encode(X, reset=False, learn=False)
        Z = self.model_.rows(X, self.parameters_)
        out = np.empty((len(X), len(self.classes_)))
        for part in row_chunks(len(X), X.shape[1] + len(self.classes_)):
            out[part] = self.model_.log_joint(Z[part], self.parameters_)
        out[:, self.data_statistics_["s0"] <= 0] = -np.inf
        return out

    def score_samples(self, X: Any) -> Array:
        """Log density (or log probability) log p(x) of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            Under the calibrated joint.
        """
        return log_evidence(self.predict_joint_log_proba(X))

    def predict_log_proba(self, X: Any) -> Array:
        """Log posterior log p(y | x).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_proba : ndarray of shape (n_samples, n_classes)
            Columns follow `classes_`.
        """
        joint = self.predict_joint_log_proba(X)
        return joint - log_evidence(joint)[:, None]

    def predict_proba(self, X: Any) -> Array:
        """Posterior p(y | x).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Columns follow `classes_`.
        """
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> Array:
        """The class of the largest posterior.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels.
        """
        joint = self.predict_joint_log_proba(X)
        return self.classes_[joint.argmax(axis=1)]

    def decide(self, X: Any, cost_matrix: Any) -> Array:
        """The decision of least expected cost under the posterior, however the model was trained.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        cost_matrix : array-like of shape (n_classes, n_classes)
            What it costs to decide for the class of the column where that of the row is true; both
            follow `classes_`.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels.
        """
        P = self.predict_proba(X)
        C = check_cost_matrix(cost_matrix, len(self.classes_), "cost_matrix")
        return self.classes_[(P @ C).argmin(axis=1)]

    def decision_function(self, X: Any) -> Array:
        """Log joint of each class; for two classes the log odds of the second.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            The larger, the more probable the class.
        """
        joint = self.predict_joint_log_proba(X)
        return joint[:, 1] - joint[:, 0] if len(self.classes_) == 2 else joint

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Array, Array]:
        """Rows and labels drawn from the calibrated joint.

        Parameters
        ----------
        n_samples : int, default=1
            How many.
        random_state : int, RandomState instance, Generator or None, default=None
            Makes the draw repeatable.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Rows.
        y : ndarray of shape (n_samples,)
            Labels.
        """
        check_is_fitted(self)
        if not isinstance(n_samples, Integral) or n_samples < 1:
            raise ValueError(f"n_samples must be a whole number of at least 1; got {n_samples!r}.")
        rng = random_state
        if not isinstance(rng, np.random.Generator):
            rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
        X, y = self.model_.sample(self._drawn_parameters(), int(n_samples), rng)
        return self._decode(X), self.classes_[y]


class GenerativeClassifier(BaseGenerativeClassifier):
    """A classifier from any :class:`riskbayes.models.GenerativeModel`, your own included.

    Parameters
    ----------
    model : GenerativeModel
        The joint model in its three formulas.
    learner : str or Learner, default="rc"
        How it is trained.
    class_weight : dict, "balanced" or None, default=None
        Multiplies `sample_weight`.
    warm_start : bool, default=False
        Begin a fit where the last one ended.
    verbose : int, default=0
        Print each iteration.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    statistics_, data_statistics_ : Statistics
        Calibrated, and as counted from the data.
    parameters_ : object
        The model's parameters of `statistics_`.
    history_ : dict of arrays
        Risks of the training rows by iteration; entry 0 is the closed form.
    n_iter_ : int
        Scans after that of the closed form.
    status_ : Status
        How the fit ended.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from riskbayes import GenerativeClassifier
    >>> from riskbayes.models import LDAModel
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = GenerativeClassifier(LDAModel()).fit(X, y)
    >>> bool(clf.score(X, y) > 0.95)
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        **BaseGenerativeClassifier._parameter_constraints,
        "model": [GenerativeModel],
    }

    def __init__(
        self,
        model: GenerativeModel,
        learner: Any = "rc",
        *,
        class_weight: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
    ):
        self.model = model
        self.learner = learner
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.verbose = verbose

    def _make_model(self, X: Array, y: Array, sample_weight: Array | None) -> GenerativeModel:
        return self.model
