"""The base class of all classifiers: what each of them does once it is fitted."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.callback import CallbackSupportMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

import riskbayes.estimators.explaining as explaining
import riskbayes.estimators.next_cell as next_cell
import riskbayes.estimators.prediction as prediction
import riskbayes.estimators.priors as priors
import riskbayes.estimators.saving as saving
import riskbayes.estimators.sets as sets
import riskbayes.estimators.shift as shift
from riskbayes.arrays import Array
from riskbayes.displayed import Findings
from riskbayes.estimators.explanation import Contributions, Explanation
from riskbayes.estimators.inputs import NumberInput
from riskbayes.estimators.next_cell import NextCell
from riskbayes.estimators.prediction import Finish, Prediction, least_cost, log_odds, most_probable
from riskbayes.estimators.sets import ConformalScores
from riskbayes.estimators.shift import Shift
from riskbayes.findings import Finding
from riskbayes.objectives import check_cost_matrix
from riskbayes.onnx_export import Exported, onnx_model
from riskbayes.persistence.files import save
from riskbayes.preprocessing.encoder import CategoryEncoder, Column, TableEncoder
from riskbayes.risks import log_posterior, posterior
from riskbayes.web import REFERENCE


class BaseClassifier(ClassifierMixin, BaseEstimator):
    """What every classifier of this package does when it is fitted: predictions, files, findings, priors.

    A subclass implements `fit`, and the methods here that raise NotImplementedError.
    """

    classes_: Array
    n_features_in_: int
    class_weight: Any = None

    _input: ClassVar[NumberInput] = NumberInput()
    """How tables are read; the attributes that it sets follow."""
    _row_dtype: str
    """Name of the floating dtype of the training rows."""
    _encoder: CategoryEncoder
    """The encoder of codes."""
    _table: TableEncoder | None = None
    """The encoder of a table; None for rows of numbers, which need none."""
    _seen_columns: tuple[Column, ...] = ()
    """What became of each column of the table."""
    _n_rows: int = 0
    """The number of training rows that have a weight."""
    _n_present: int | None = None
    """The number of columns of numbers that are not missing everywhere; None if it is not known."""
    _library: Any = None
    """The library of the data frame that was fitted; None for an array."""

    _takes_missing: bool = False
    """True if cells of the rows may be missing (NaN)."""
    _doc_link_module: ClassVar[str] = "riskbayes"
    _doc_link_template: ClassVar[str] = REFERENCE
    """With the line above: scikit-learn's HTML representation links to this page."""
    _has_decision_function: ClassVar[bool] = True
    """False to leave out `decision_function`."""
    _decision_formula: ClassVar[str] = "log_joint"
    """The formula of `decision_function` with three classes or more, for `_finish_rows`."""
    _picks_rows: bool
    """True if fits draw some of the rows at random."""
    _priors: Array | None = None
    """The class frequencies that `with_priors` set; None for those of the training rows."""
    _conformal: ConformalScores | None = None
    """What `conformalize` keeps of calibration rows."""

    def _finish_rows(self, X: Array, formula: str, finish: Finish) -> Array:
        """Apply `finish` to what a formula says of encoded rows in memory.

        That is the `log_joint`, p(x | y) up to a constant of the class where the model `_has_densities`, or
        the `scores`, which are the log posterior up to a constant of the row.
        """
        raise NotImplementedError

    @property
    def _has_densities(self) -> bool:
        """True if p(x | y) is known, up to a constant of the class."""
        raise NotImplementedError

    def _encode_new(self, X: Any, method: str) -> Array:
        """Return encoded rows in memory to predict, for a message about `method` if they are refused."""
        raise NotImplementedError

    def _contributions(self, rows: Any) -> Contributions | None:
        """Return what each column of encoded rows adds to the log joint; None if that is no such sum."""
        raise NotImplementedError

    def _check_cells_can_miss(self) -> None:
        """Refuse to hide cells from a model that takes no missing cells."""

    def _reads(self, n: int) -> Array:
        """Return a mask of the n encoded columns that predictions depend on."""
        raise NotImplementedError

    @property
    def _fitted_on(self) -> Array:
        """An array of the library and on the device of the fit."""
        return np.empty(0)

    def _class_scores(self, joint: Array) -> Array:
        """Return the scores of `decision_function` with three classes or more, from log joints."""
        return joint

    def _exported(self) -> Exported:
        """Return all that an ONNX graph needs of this fitted estimator."""
        raise NotImplementedError

    def _findings(self) -> Iterator[Finding]:
        """Yield the findings of the fitted model."""
        raise NotImplementedError

    def _class_masses(self) -> Array:
        """Return the weight of each class in the training rows, as a NumPy array."""
        raise NotImplementedError

    def _training_prior(self) -> Array:
        """Return the class frequencies that the posteriors of the fit are for."""
        raise NotImplementedError

    def _set_log_ratio(self, log_ratio: Array) -> None:
        """Add log p'(y) / p(y) to the log joint of every class."""
        raise NotImplementedError

    @property
    def _encoded_names(self) -> list[str] | None:
        table = self._table
        return None if table is None else table.names

    def check_loaded(self, size: int) -> None:
        """Refuse what a model file says of parameters, columns or classes that cannot be."""
        saving.check_loaded(self, size)

    def _described(self) -> dict[str, Any]:
        """Return what `riskbayes.persistence.describe` tells of the estimator."""
        return saving.describe(self)

    def set_callbacks(self, *callbacks: Any) -> Self:
        """Set callbacks of the fit, such as scikit-learn's `ProgressBar`.

        Parameters
        ----------
        *callbacks : callbacks
            Objects that follow scikit-learn's protocol of callbacks; none removes those set before.

        Returns
        -------
        self : object
            The estimator.
        """
        return CallbackSupportMixin.set_callbacks(self, *callbacks)

    def predict_proba(self, X: Any) -> Array:
        """Return the posterior p(y | x).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Columns follow `classes_`.
        """
        return Prediction(self, "predict_proba", "scores", posterior).of(X)

    def predict_log_proba(self, X: Any) -> Array:
        """Return the log posterior log p(y | x), which does not underflow.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_proba : ndarray of shape (n_samples, n_classes)
            Columns follow `classes_`.
        """
        return Prediction(self, "predict_log_proba", "scores", log_posterior).of(X)

    def predict(self, X: Any) -> Array:
        """Return the class of the largest posterior; after training for costs, that of least expected cost.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels.
        """
        costs = getattr(self, "cost_matrix_", None)
        decide = most_probable if costs is None else partial(least_cost, C=costs)
        return Prediction(self, "predict", "scores", decide, one=True, labels=True).of(X)

    def decide(self, X: Any, cost_matrix: Any) -> Array:
        """Return the class of least expected cost under the posterior, however the model was trained.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        cost_matrix : array-like of shape (n_classes, n_classes)
            Entry (i, j) is the cost of deciding for class j if class i is true; both follow `classes_`.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels.
        """
        check_is_fitted(self)
        C = check_cost_matrix(cost_matrix, self.classes_.shape[0], "cost_matrix")
        return Prediction(self, "decide", "scores", partial(least_cost, C=C), one=True, labels=True).of(X)

    @available_if(lambda self: self._has_decision_function)
    def decision_function(self, X: Any) -> Array:
        """Return a score of each class; for two classes the log odds of the second.

        The score is the log joint; for :class:`RiskBayesClassifier` the log posterior, and for
        :class:`LinearDiscriminantAnalysis` the linear scores `X @ coef_.T + intercept_`, but the log joint of
        the observed cells where a row has missing ones.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            The larger, the more probable the class.
        """
        check_is_fitted(self)
        if self.classes_.shape[0] == 2:  # the constant of a row that scores may lack cancels
            return Prediction(self, "decision_function", "scores", log_odds, one=True).of(X)
        return Prediction(self, "decision_function", self._decision_formula, self._class_scores).of(X)

    def predict_to(self, X: Any, path: Any, method: str = "predict_proba") -> Path:
        """Write predictions to a Parquet file, batch after batch.

        The file appears when it is complete. It has a column for each class, named as the class is, or a
        column named as the method, if that returns one value a row.

        Parameters
        ----------
        X : Rows or array-like of shape (n_samples, n_features)
            Rows to predict, from :func:`riskbayes.rows`.
        path : path
            The file to write; an existing one is replaced.
        method : str, default="predict_proba"
            The method whose results are written, such as "predict".

        Returns
        -------
        path : Path
            The file.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> import pyarrow.parquet as pq
        >>> import riskbayes
        >>> X, y = np.array([[0.0], [0.5], [2.0], [2.5]]), ["a", "a", "b", "b"]
        >>> clf = riskbayes.GaussianNB().fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = clf.predict_to(riskbayes.rows(X), f"{folder}/out.parquet", "predict")
        ...     pq.read_table(path)["predict"].to_pylist()
        ['a', 'a', 'b', 'b']
        """
        return prediction.predict_to(self, X, path, method)

    def next_cell(self, X: Any) -> NextCell:
        """Return how much each missing cell of rows is expected to say about the class, to measure it next.

        The expected gain is the mutual information of the class and the cell, given the observed cells of the
        row. Naive Bayes models, trees and Gaussians know it: a sum over the categories of a cell, an integral
        over its numbers; after training for the risk, under the calibrated joint. That cells were not
        measured so far says nothing here, also with missing="informative". A date counts as the one of its
        parts that says most. Other models, :class:`RiskBayesClassifier` among them, have no distribution of a
        cell given others: :class:`MixedNB` takes the same tables.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with missing cells, in memory.

        Returns
        -------
        next_cell : NextCell
            `values`, the expected gains in nats of shape (n_samples, n_columns), NaN where a cell is not
            missing; `columns`, their names; `best`, the column to measure next in each row.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from riskbayes import GaussianNB
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> clf = GaussianNB().fit(X, y)
        >>> clf.next_cell(X[:1].assign(**{"petal width (cm)": None, "sepal width (cm)": None})).best
        ['petal width (cm)']
        """
        return next_cell.next_cell(self, X)

    def explain(self, X: Any, *, n_orders: int = 32, random_state: Any = 0) -> Explanation:
        """Return what each column of the rows contributed to the log-odds of the classes.

        The contributions and the prior add up to the log-odds of the posterior. Where the log-odds are a sum
        over columns, the contributions are its terms, exactly. In naive Bayes a column contributes
        log p(x_j | y); in a tree or network log p(x_j | parents, y); in linear discriminant analysis its
        coefficient times its distance from the middle of the classes' means; in quadratic discriminant
        analysis its Shapley value of the quadratic form, with the mean of the class as reference, and its
        share of the log-determinant; in multinomial and complement naive Bayes its count times the weight of
        the word; in a product the weighted sum over the experts; in a recipe with tables also the table of
        the column, and after the columns those of pairs, named "a x b".

        Everything else (mixtures, neighbours, leaves of trees, averages of posteriors) is asked what it says
        with and without each cell. A cell that is left out is missing: a mixture integrates it out, and
        neighbours and leaves read the row as one that lacks it. The difference, which is the weight of
        evidence of the cell, depends on the cells seen before it. So it is averaged over the orders of the
        columns (Shapley values): over all of them for up to 8 columns, else over some of them, which are
        drawn, and `errors` has the standard errors. A column that is missing or not read contributes zero.

        Contributions are dense, also those of sparse rows: explain some of the rows of a large table.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        n_orders : int, default=32
            How many orders are drawn; each second one is the reverse of the one before. A row then takes
            n_orders times n_features predictions. Sums over columns, and few columns, need none.
        random_state : int, RandomState instance, Generator or None, default=0
            Draws the orders, which are the same for all rows.

        Returns
        -------
        explanation : Explanation
            Its `values` are the contributions, of shape (n_samples, n_features, n_classes); `log_odds()`,
            `to_frame()`, `plot(row)` and `plot_rows()` show them.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from riskbayes import MixtureDiscriminantAnalysis, QuadraticDiscriminantAnalysis
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> odds = QuadraticDiscriminantAnalysis().fit(X, y).explain(X).log_odds(1, 2)
        >>> odds.values.shape, odds.total.shape
        ((150, 4), (150,))
        >>> MixtureDiscriminantAnalysis().fit(X, y).explain(X[:2])
        Explanation(2 rows, 4 columns, 3 classes, Shapley values over all orders)
        """
        return explaining.explain(self, X, n_orders, random_state)

    def with_priors(self, p: Any) -> Self:
        """Return a copy of this classifier for rows with other class frequencies.

        p(x | y) stays, and log p(y) changes by log p(y) - log of the frequency in the training rows. For the
        closed form that sets p(y) = p. Calibration moves p(y) together with p(x | y); after it the posterior
        of the training frequencies is kept, and is weighted by p over them.

        The copy is for predictions. What counts rows again (`fit`, `partial_fit`, `merge`, `forget`,
        `calibrate`) returns to the frequencies of these rows.

        Parameters
        ----------
        p : dict or array-like of shape (n_classes,)
            The class frequencies, by label or in the order of `classes_`. They sum to one.

        Returns
        -------
        classifier : object
            A fitted copy; this classifier does not change.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from riskbayes import GaussianNB
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> clf = GaussianNB().fit(X, y)
        >>> rare = clf.with_priors({0: 0.01, 1: 0.99})
        >>> bool(rare.predict_proba(X)[:, 0].mean() < clf.predict_proba(X)[:, 0].mean())
        True
        """
        return priors.with_priors(self, p)

    def estimate_priors(self, X: Any, *, tol: float = 1e-6, max_iter: int = 1000) -> Array:
        """Return the class frequencies of rows without labels, by the EM algorithm of Saerens et al. (2002).

        It assumes that p(x | y) is that of the training rows, and that only the class frequencies differ. The
        posteriors of the rows are averaged, weighted by the new frequencies, and so on until they change by
        less than `tol`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        tol : float, default=1e-6
            The least change of a frequency to go on.
        max_iter : int, default=1000
            The most iterations; a warning says if they were not enough.

        Returns
        -------
        p : ndarray of shape (n_classes,)
            Frequencies in the order of `classes_`, for `with_priors`.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from riskbayes import GaussianNB
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> clf = GaussianNB().fit(X, y)
        >>> clf.estimate_priors(X[y == 1]).round(1)
        array([0., 1.])
        """
        return priors.estimate_priors(self, X, tol, max_iter)

    def conformalize(self, X: Any, y: Any) -> Self:
        """Keep how well calibration rows fit their own classes, for `predict_set`.

        The rows must not be training rows: those fit too well, and the sets would be too small. They should
        come as the rows to predict do, a few hundred or thousand of them. What changes the model discards
        them: `fit`, `partial_fit`, `merge`, `forget`, `calibrate`, and `with_priors` in its copy.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows that the model was not trained on.
        y : array-like of shape (n_samples,)
            Their labels.

        Returns
        -------
        self : object
            The classifier.
        """
        sets.conformalize(self, X, y)
        return self

    def predict_set(self, X: Any, alpha: float = 0.1, *, score: str = "posterior") -> Array:
        """Return which classes are in the prediction set of each row, by split conformal prediction.

        The set holds the true class in at least a share 1 - alpha of the rows, whatever the model, if these
        come as the rows of `conformalize` do. That is an average over rows: it may be lower in some classes
        or regions, and it says nothing of rows of another kind.

        With score="posterior" (the score LAC of Sadinle et al., 2019) a class is in the set if its posterior
        is not among the lowest of true classes. These sets are the smallest on average, and not drawn at
        random. With score="density" log p(x | y) is compared with that of calibration rows of the same
        class: the share 1 - alpha then holds within each class, under any class frequencies, and the empty
        set says "none of these", a row that no class would have. A row that lacks cells has a density of
        fewer cells, in other units: calibrate with rows that lack them as often.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        alpha : float, default=0.1
            The share of rows whose set may lack the true class.
        score : {"posterior", "density"}, default="posterior"
            What the classes of a row are judged by.

        Returns
        -------
        sets : ndarray of bool, shape (n_samples, n_classes)
            True for the classes in the set of the row; columns follow `classes_`.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.model_selection import train_test_split
        >>> from riskbayes import QuadraticDiscriminantAnalysis
        >>> X, y = load_iris(return_X_y=True)
        >>> X, X_cal, y, y_cal = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
        >>> clf = QuadraticDiscriminantAnalysis().fit(X, y).conformalize(X_cal, y_cal)
        >>> clf.predict_set([[5.0, 3.4, 1.5, 0.2]])
        array([[ True, False, False]])
        >>> clf.predict_set([[5.0, 3.4, 1.5, 9.0]], score="density")  # no such flower
        array([[False, False, False]])
        """
        return sets.predict_set(self, X, alpha, score)

    def drift(self, X_new: Any, X: Any, y: Any, *, level: float = 0.01, least_distance: float = 0.1) -> Shift:
        """Return how rows without labels differ from labelled reference rows: what moved, what is at stake.

        Numbers are compared by the test of Kolmogorov and Smirnov, categories and missing cells by
        chi-square. First it is asked whether the classes only come at other frequencies, which are estimated
        as by `estimate_priors`, with posteriors that are calibrated on the reference rows. A column moved if
        it also differs from reference rows at these frequencies.

        The reference rows should not be training rows, for which the posteriors are too sure. They are passed
        rather than kept with the model: a model file holds no rows. Relations of columns are not compared.

        Parameters
        ----------
        X_new : array-like of shape (n_new, n_features)
            Rows without labels, in memory; a thousand or more, and no less than a hundred.
        X : array-like of shape (n_samples, n_features)
            Reference rows, in memory.
        y : array-like of shape (n_samples,)
            Their labels.
        level : float, default=0.01
            The chance that any column is reported if none moved, and that of the class frequencies.
        least_distance : float, default=0.1
            A column whose distance is smaller is not reported: in many rows the smallest change is certain.

        Returns
        -------
        shift : Shift
            `verdict` ("nothing", "frequencies", "columns" or "both"), `moved`, `priors`, accuracies, and a
            table of the columns, which a notebook shows.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn.model_selection import train_test_split
        >>> from riskbayes import GaussianNB
        >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
        >>> X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=0.6, random_state=0)
        >>> X_held, X_new, y_held, _ = train_test_split(X_rest, y_rest, test_size=0.5, random_state=0)
        >>> clf = GaussianNB().fit(X_train, y_train)
        >>> clf.drift(X_new, X_held, y_held).verdict
        'nothing'
        >>> clf.drift(X_new.assign(**{"mean texture": X_new["mean texture"] + 3}), X_held, y_held).moved
        ['mean texture']
        """
        return shift.drift(self, X_new, X, y, level, least_distance)

    @property
    def checks_(self) -> list[Finding]:
        """What may be wrong with the fitted model, as far as it tells without rows: see `doc/findings.md`."""
        check_is_fitted(self)
        return Findings(self._findings())

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        about: Mapping[str, Any] | None = None,
        created: str | datetime.datetime | None = None,
        classes: Iterable[type] = (),
    ) -> Path:
        """Write the fitted estimator to a file that :func:`riskbayes.load` reads without running code.

        The file is there entirely or not at all. Callbacks are not saved. `doc/model_files.md` describes the
        format.

        Parameters
        ----------
        path : path
            The file, by convention with the ending `.rb`; an existing one is replaced.
        about : dict, default=None
            What a reader of the file should know, such as the data and the held-out error: strings, numbers,
            lists and dicts. :func:`riskbayes.persistence.describe` gives it back.
        created : str or datetime, default=None
            The time to write into the file, with a time zone; by default now. With a given time, the same
            model gives the same bytes.
        classes : iterable of classes, default=()
            Model classes of your own that the estimator holds. `load` needs the same.

        Returns
        -------
        path : Path
            The file.
        """
        check_is_fitted(self)
        self._validate_params()
        return save(self, path, about, created, classes)

    def to_onnx(
        self, *, missing: bool | None = None, dtype: str = "float64", contributions: bool = False
    ) -> Any:
        """Return the fitted classifier as an ONNX model of plain operators, which computes in float64.

        An estimator that was fitted to an array of numbers has one input, `X`. Otherwise each column is an
        input of shape (rows, 1) by its name: strings, in which "" is a missing cell, or numbers, in which NaN
        is. The outputs are `label` and `probabilities`, the values of `predict` and `predict_proba`.
        `doc/onnx.md` says what is carried and what is not; :func:`riskbayes.onnx_export.onnx_inputs` makes
        the inputs of a data frame.

        Parameters
        ----------
        missing : bool or None, default=None
            Whether cells of numbers may be missing. False leaves the operators for them out. By default they
            are carried; in LDA and QDA only if the rows of the fit had missing cells, because each column
            takes a step of elimination: otherwise the probabilities of a row with NaN are NaN.
        dtype : {"float64", "float32"}, default="float64"
            The dtype of inputs of numbers.
        contributions : bool, default=False
            If True, a third output, `contributions`, has what each column, and then each pair of columns,
            adds to the log joint of each class: `explain(X).values`. The metadata hold the names of these
            columns, and the `baseline` that is added to their sum. Refused where a model is no sum over
            columns.

        Returns
        -------
        model : onnx.ModelProto
            For `onnxruntime.InferenceSession(model.SerializeToString())`.

        Examples
        --------
        >>> import onnxruntime
        >>> from sklearn.datasets import load_iris
        >>> from riskbayes import GaussianNB
        >>> X, y = load_iris(return_X_y=True)
        >>> clf = GaussianNB().fit(X, y)
        >>> session = onnxruntime.InferenceSession(clf.to_onnx().SerializeToString())
        >>> label, probabilities = session.run(["label", "probabilities"], {"X": X})
        >>> bool((label == clf.predict(X)).all())
        True
        >>> bool(abs(probabilities - clf.predict_proba(X)).max() < 1e-6)
        True
        """
        check_is_fitted(self)
        if dtype not in ("float64", "float32"):
            raise ValueError(f"dtype must be 'float64' or 'float32'; got {dtype!r}.")
        return onnx_model(self._exported(), missing, dtype, contributions)
