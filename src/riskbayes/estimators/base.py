"""The base class of the estimators of one generative model: `fit`, streams, and what a joint is good for."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

import riskbayes.estimators.fitting as fitting
import riskbayes.estimators.joint as joint
import riskbayes.estimators.prediction as prediction
import riskbayes.estimators.saving as saving
import riskbayes.estimators.streaming as streaming
from riskbayes.arrays import Array, astype, converted, namespace, to_numpy
from riskbayes.estimators.classifier import BaseClassifier
from riskbayes.estimators.fitted_checks import masses_of, model_findings
from riskbayes.estimators.prediction import Prediction, encode_new, finish_rows, unchanged
from riskbayes.learners.base import Learner, resolve_learner
from riskbayes.models.base import GenerativeModel
from riskbayes.onnx_export import Exported, Formula
from riskbayes.risks import log_evidence
from riskbayes.statistics import Statistics
from riskbayes.tables import frame_of


@dataclass
class GenerativeTags(Tags):
    """scikit-learn's tags, and one that only generative classifiers have."""

    normalised_density: bool = True
    """True if `score_samples` is a log density; otherwise it lacks a constant, and there is no `sample`."""


streams = available_if(lambda self: self._adds_up)
"""Leaves a method out of estimators whose statistics of batches do not add up."""


class BaseGenerativeClassifier(BaseClassifier):
    """Base class of the estimators: a generative model, a learner, and scikit-learn's interface to them.

    A subclass implements `_make_model`, and names its `_input` if that is not a table of numbers.
    """

    _named_learners: ClassVar[dict[str, Learner]] = {}
    """Learners that replace the usual ones of these names in this estimator."""
    _adds_up: ClassVar[bool] = False
    """True if statistics of batches add up: there are `partial_fit`, `merge`, `forget` and `calibrate`."""
    _array_api: ClassVar[bool] = True
    """True if rows may be arrays of any library of the Array API."""
    _normalised: ClassVar[bool] = True
    """True if the joint is a density."""
    _poor_score: ClassVar[bool] = False
    """The tag of scikit-learn's counterpart: on the Gaussian tables of its checks the scores are poor."""

    model_: GenerativeModel
    learner_: Learner
    class_weight_: Array | None
    statistics_: Statistics
    data_statistics_: Statistics
    parameters_: Any
    _forgotten: Statistics | None = None
    """Statistics of all rows that `forget` subtracted since the fit: they bound the rounding errors too."""
    _log_densities: Array | None = None
    """Log densities of some training rows; None if they are not known."""
    learner: Any = "rc"
    warm_start: Any = False
    verbose: Any = 0

    def _make_model(self) -> GenerativeModel:
        """Return the model with this estimator's parameters; `classes_` and `n_features_in_` are set."""
        raise NotImplementedError

    def _check_stream(self) -> None:
        """Refuse parameters whose effect depends on all rows together."""
        if isinstance(self.class_weight, str):
            raise ValueError(
                "class_weight='balanced' depends on all rows together, so that rows cannot be added or taken "
                "out, nor models merged: pass a dict of weights, or fit all rows."
            )

    def _statistics_of(self, other: Self, S: Statistics) -> tuple[Statistics, Statistics]:
        """Return another estimator's data and calibrated statistics, such that they can be added to S."""
        return other.data_statistics_, other.statistics_

    @property
    def _picks_rows(self) -> bool:  # type: ignore[override]
        return self.learner_.picks_rows

    @property
    def _fitted_on(self) -> Array:
        """An array of the library and on the device of the fit."""
        return self.data_statistics_["s0"]

    def _in_row_dtype(self, value: Array) -> Array:
        """Cast a fitted attribute to the dtype of the training rows, as scikit-learn does."""
        return astype(value, getattr(namespace(value), self._row_dtype))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._takes_missing
        for name, value in self._input.tags.items():
            setattr(tags.input_tags, name, value)
        tags.array_api_support = self._array_api
        tags.classifier_tags.poor_score = self._poor_score
        own = {f.name: getattr(tags, f.name) for f in fields(tags)}
        return GenerativeTags(**own, normalised_density=self._normalised)

    def __sklearn_array_api_convert__(self, converter: Any) -> Self:
        """Return a copy with arrays of another library, for scikit-learn's `move_estimator_to`."""
        moved = copy(self)
        for name, value in vars(self).items():
            setattr(moved, name, converted(value, converter))
        return moved

    def check_loaded(self, size: int) -> None:
        """Require also statistics and parameters of the form that the model itself makes of one row."""
        if hasattr(self, "model_") or hasattr(self, "statistics_"):  # not an expert, which is never fitted
            super().check_loaded(size)
            saving.check_fitted(self)

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
        fitting.fit(self, (X, y, sample_weight), (X_val, y_val, sample_weight_val), unlabelled, checkpoint)
        return self

    @streams
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Fit a further batch of rows.

        Its statistics are added to those of the rows so far: with `learner="closed_form"` the result is that
        of one `fit` to all rows. A discriminant analysis refuses rows with missing cells: its closed form is
        then found by EM, from all rows at once. Other learners then take one step on the rows of the batch,
        as soon as every class has rows; the step is scaled by the batch's share of all rows so far. They hold
        no rows out and select nothing: RC with `early_stopping` or `n_restarts` is refused, and RCCV.

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
        streaming.partial_fit(self, X, y, classes, sample_weight)
        return self

    @streams
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
        streaming.merge(self, others)
        return self

    @streams
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
        streaming.forget(self, X, y, sample_weight)
        return self

    @streams
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
        streaming.calibrate(self, X, y, sample_weight)
        return self

    _encode_new = encode_new
    _finish_rows = finish_rows

    def predict_joint_log_proba(self, X: Any) -> Array:
        """Return the log joint log p(x, y) of each row and class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_joint : ndarray of shape (n_samples, n_classes)
            Columns follow `classes_`.
        """
        return Prediction(self, "predict_joint_log_proba", "log_joint", unchanged).of(X)

    def score_samples(self, X: Any) -> Array:
        """Return the log density (or log probability) log p(x) of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            Log density under the calibrated joint.
        """
        check_is_fitted(self)
        if not self.model_.traits.describes_rows:
            raise NotImplementedError(
                f"{type(self).__name__} has no density p(x): its model compares rows with training rows, "
                "which tells classes apart, but not likely rows from unlikely ones. Fit a model that has "
                "one, such as SmoothNB."
            )
        return Prediction(self, "score_samples", "log_joint", log_evidence, one=True).of(X)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Array, Array]:
        """Draw rows and labels from the calibrated joint.

        Categories that only `min_categories` adds have a probability but no value: in columns that are coded
        by value they are not drawn.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows to draw.
        random_state : int, RandomState instance, Generator or None, default=None
            Makes the draw repeatable.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Rows.
        y : ndarray of shape (n_samples,)
            Labels.
        """
        return prediction.sample(self, n_samples, random_state)

    def parameters_frame(self) -> Any:
        """Return the parameters by class, in the closed form and calibrated, those first that moved most.

        Returns
        -------
        frame : data frame
            Columns `class`, `column`, `parameter`, `closed_form`, `calibrated`, `change` and `rows`. A change
            of a mean or of a standard deviation is in standard deviations of the closed form; that of a
            correlation, weight, log probability, log rate or log density is the difference. `rows` is about
            the weight of the training rows that tell of the parameter: all of the class, or those with that
            category or near that value (given parents, at most so many). What few rows tell of moves far.
            Of pandas, or else of polars; a dict of arrays where neither is installed.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from riskbayes import GaussianNB
        >>> X, y = load_iris(return_X_y=True)
        >>> frame = GaussianNB().fit(X, y).parameters_frame()
        >>> list(frame.columns)
        ['class', 'column', 'parameter', 'closed_form', 'calibrated', 'change', 'rows']
        """
        return frame_of(joint.parameters_table(self))

    def outlier_score(self, X: Any, reference: Any = None) -> Array:
        """Return the share of the training rows that have a larger density p(x) than each row.

        1 is for a row less probable than all training rows. Of these at most 1024 count, evenly spaced, as
        often as their weights ask for. A learner that iterates keeps their densities; the closed form, which
        would take a seventh longer, needs `reference`.

        The training rows were fitted, so that new rows of the same kind have larger scores; compare with rows
        that were held out, as `reference`, to avoid that. Training for the risk bends the density:
        `doc/joint.md` shows how far, and that `generative_weight` of the learner limits it. A product that is
        not normalised lacks a constant in its log density, the same for all rows: the score does not need it.
        Rows with missing cells have densities of fewer cells, in other units: compare them with rows that
        lack the same cells, as `reference`, or impute them first.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        reference : array-like of shape (n_reference, n_features), default=None
            Rows to compare with in place of the training rows.

        Returns
        -------
        score : ndarray of shape (n_samples,)
            Between 0 and 1. To rank rows beyond all training rows, use `score_samples`.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from riskbayes import QuadraticDiscriminantAnalysis
        >>> X, y = load_iris(return_X_y=True)
        >>> clf = QuadraticDiscriminantAnalysis().fit(X, y)
        >>> clf.outlier_score([[5.0, 3.4, 1.5, 9.0]])
        array([1.])
        """
        return joint.outlier_score(self, X, reference)

    def is_outlier(self, X: Any, fpr: float = 0.01, reference: Any = None) -> Array:
        """Return which rows have a density that less than a share `fpr` of the training rows fall below.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        fpr : float, default=0.01
            The share of the training rows, or of `reference`, that is taken for outliers at most.
        reference : array-like of shape (n_reference, n_features), default=None
            Rows to compare with in place of the training rows, as in `outlier_score`.

        Returns
        -------
        outlier : ndarray of bool, shape (n_samples,)
            True for outliers.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from riskbayes import QuadraticDiscriminantAnalysis
        >>> X, y = load_iris(return_X_y=True)
        >>> clf = QuadraticDiscriminantAnalysis().fit(X, y)
        >>> clf.is_outlier([[5.0, 3.4, 1.5, 0.2], [5.0, 3.4, 1.5, 9.0]])
        array([False,  True])
        """
        return joint.is_outlier(self, X, fpr, reference)

    def impute(self, X: Any, random_state: Any = None) -> Any:
        """Return the rows with their missing cells filled by the model.

        Given the observed cells of the row: a number by its mean, averaged over the classes by the posterior;
        a category by the most probable one of the most probable class. With `random_state`, by a draw: a
        class from the posterior, then the cells given the class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        random_state : int, RandomState instance, Generator or None, default=None
            Draws the cells, repeatably if it is a number; None fills in expected values.

        Returns
        -------
        X : array or data frame
            The same table without missing cells; observed cells are unchanged. Columns that no model reads
            are not filled. In columns of whole numbers the means are rounded.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from riskbayes import GaussianNB
        >>> X, y = load_iris(return_X_y=True)
        >>> clf = GaussianNB().fit(X, y)
        >>> clf.impute([[5.0, 3.4, float("nan"), 0.2]]).shape  # doctest: +SKIP
        (1, 4)
        """
        return joint.impute(self, X, random_state)

    def _exported(self) -> Exported:
        costs = getattr(self, "cost_matrix_", None)  # a stream has none
        return Exported(
            type(self).__name__,
            (self._formula(),),
            self._input.onnx_columns(self),
            to_numpy(self.classes_),
            None if costs is None else to_numpy(costs),
        )

    @property
    def _has_densities(self) -> bool:
        return self.model_.traits.describes_rows

    def _formula(self) -> Formula:
        """Return the model for a graph."""
        frame, theta = joint.on_host(self)
        return Formula(self.model_, theta, frame, to_numpy(self.data_statistics_["s0"]) > 0)

    def _reads(self, n: int) -> Array:
        read = self.model_.traits.columns
        return np.ones(n, dtype=bool) if read is None else np.isin(np.arange(n), read)

    _contributions = joint.contributions
    _check_cells_can_miss = joint.check_cells_can_miss
    _findings = model_findings
    _class_masses = masses_of
    _training_prior = joint.training_prior
    _set_log_ratio = joint.set_log_ratio
