"""Categorical input of estimators, and naive Bayes for categorical features."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_array, validate_data

from riskbayes.arrays import Array, namespace, to_device
from riskbayes.estimators.base import BaseGenerativeClassifier
from riskbayes.estimators.checks import check_alpha, check_class_prior
from riskbayes.estimators.streaming import StreamingClassifier
from riskbayes.estimators.table_input import holds_numbers
from riskbayes.frames import Categories
from riskbayes.input.schema import Cells, Schema
from riskbayes.loaded import require
from riskbayes.models.categorical import CategoricalModel
from riskbayes.models.codes import categories_of, check_sizes
from riskbayes.onnx_export.columns import Columns
from riskbayes.onnx_export.inputs import columns_of_codes
from riskbayes.preprocessing.categories import (
    CategoryEncoder,
    as_array,
    codes_on_device,
    read_categories_of,
)
from riskbayes.statistics import Statistics
from riskbayes.tables import check_plain, column_name, names_of, naming_columns

ALWAYS_COUNTED = 2**18
"""Integer codes below this are accepted, however few the rows: their counts take 2 MiB per class."""

CODES_PER_ROW = 10
"""Larger codes are accepted up to this many times the number of rows: beyond, most counts would be zero."""


class CategoricalInput(BaseGenerativeClassifier):
    """Base class of the estimators of categories: encodes rows to integer codes, and decodes samples."""

    _takes_missing = True

    _encoder: CategoryEncoder
    min_categories: Any

    def check_loaded(self, size: int) -> None:
        """Require also the encoding of each column."""
        super().check_loaded(size)
        if hasattr(self, "model_"):
            require(len(self._encoder.columns) == self.n_features_in_, "the encoder reads other columns")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags

    _schema_decides = True

    def _read(self, X: Any, *, reset: bool, learn: bool) -> Any:
        with naming_columns(self):
            check_plain(self, X)
        if hasattr(X, "columns") and not holds_numbers(X):  # its columns keep their own types
            validate_data(self, X, reset=reset, skip_check_array=True)
            check_array(np.broadcast_to(False, X.shape), estimator=self)  # refuses empty tables
        else:
            X = validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False)
        names = [column_name(self, j) for j in range(self.n_features_in_)]
        if not isinstance(X, np.ndarray) and hasattr(X, "__dlpack__"):  # on a device only codes are accepted
            return codes_on_device(X, names, learn=learn)
        return read_categories_of(X, names_of(self)[0], names)

    def _schema_of(self, cells: Any, whole: bool = True) -> Schema:
        names, named = names_of(self)
        if isinstance(cells, Cells):
            return Schema.of_cells(cells, names, named)
        schema = Schema.of_numbers(cells, names if named else None)
        if (whole and not (schema.low < 0).any()) or not isinstance(cells, np.ndarray):
            return schema  # codes: their values are not asked for
        return Schema.of_cells(Cells.of(cells, names), names, named)

    def _decide(self, schema: Schema, more: bool) -> None:
        names = [column_name(self, j) for j in range(self.n_features_in_)]
        self._encoder = self._encoder.extended(schema) if more else CategoryEncoder.decide(schema, names)
        self._check_sizes(schema, more)

    def _encode(self, cells: Any) -> Array:
        return self._encoder.encode(cells) if isinstance(cells, np.ndarray | Cells) else cells

    def _check_sizes(self, schema: Schema, more: bool) -> None:
        """Refuse codes far larger than the number of rows, as identifiers are, or too large for any count."""
        rows, known = schema.n_rows, self._least_categories(len(schema.names))
        before = getattr(self, "data_statistics_", None) if more else None
        if before is not None:
            rows += round(before.total)
            known = np.maximum(known, before.frame.n_categories)
        largest = np.where(np.isfinite(schema.high), schema.high, -1).astype(np.int64) + 1
        pairs = zip(self._encoder.columns, largest.tolist(), strict=True)
        sizes = np.maximum(known, [k if c.categories is None else c.least for c, k in pairs])
        far = sizes > np.maximum(known, max(ALWAYS_COUNTED, CODES_PER_ROW * rows))
        if far.any():
            j = int(np.argmax(np.where(far, sizes, 0)))
            raise ValueError(
                f"{column_name(self, j)} holds the code {sizes[j] - 1}: integer codes are categories counted "
                f"from 0, {sizes[j]} of them for {rows} rows. Drop a column of identifiers; pass "
                "other values as strings, or code them by sklearn.preprocessing.OrdinalEncoder; set "
                "min_categories if there are so many."
            )
        check_sizes(sizes, partial(column_name, self))

    def _value_name(self, column: int, value: Any) -> str:
        known = self._encoder.columns[column].categories
        return str(value if known is None or value >= len(known) else known[value])

    def _onnx_columns(self) -> Columns:
        return columns_of_codes(self._encoder, *names_of(self))

    def _decode(self, X: Array) -> Array:
        return self._encoder.decode(X)

    def _drawn(self, theta: Any) -> Any:
        columns = self._encoder.columns
        if all(c.categories is None for c in columns):  # every code is a value itself
            return theta
        named = np.array(
            [np.iinfo(np.int64).max if c.categories is None else max(1, c.least) for c in columns]
        )
        return replace(theta, log_prob=theta.frame.limited_to(theta.log_prob, named))

    def _least_categories(self, n: int) -> Array:
        """Return the least number of categories of each column: those it declares, and `min_categories`."""
        least = self._encoder.least_categories
        if self.min_categories is None:
            return least
        wanted = np.asarray(self.min_categories)
        if not np.issubdtype(wanted.dtype, np.signedinteger):
            raise ValueError(f"'min_categories' should have integral type. Got {wanted.dtype} instead.")
        if wanted.ndim and wanted.shape != (n,):
            raise ValueError(
                f"'min_categories' should have shape ({n},) when an array-like is provided. "
                f"Got {wanted.shape} instead."
            )
        return np.maximum(least, wanted)


class CategoricalNB(CategoricalInput, StreamingClassifier):
    """Naive Bayes for categorical features, trained by risk-based calibration.

    Takes integer codes as scikit-learn's `CategoricalNB` does (categories 0 to the largest code), and
    negative numbers, strings, booleans and categorical columns of pandas or polars by value. Codes far larger
    than the number of rows, as identifiers are, are refused unless `min_categories` declares them. In
    predictions, a category that was not seen in training has the probability alpha / (n_y + alpha K), where
    n_y is the weight of the class's rows that have the feature; with `alpha=0` that feature of the row is
    ignored.

    NaN, None, null, NA, NaT and empty strings are missing cells, in training and in predictions. They drop
    out of the joint and of the counts, so that a posterior is that of the features which a row has.

    Parameters
    ----------
    alpha : float, default=1.0
        Dirichlet pseudo-counts of each cell. 0 is maximum likelihood, with cells of at least 1e-9 of the
        total weight.
    force_alpha : bool, default=True
        If False, an `alpha` below 1e-10 is set to 1e-10, with a warning.
    fit_prior : bool, default=True
        If True, p(y) is estimated; otherwise it is uniform.
    class_prior : array-like of shape (n_classes,), default=None
        Fixed p(y).
    min_categories : int or array-like of shape (n_features,), default=None
        Least number of categories of each feature.
    class_alpha : float, default=0.0
        Pseudo-counts of each class for p(y).
    learner : str or Learner, default="rc"
        How the statistics are trained; "closed_form" gives scikit-learn's results.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply `sample_weight`.
    warm_start : bool, default=False
        If True, `fit` starts from the statistics of the last fit.
    verbose : int, default=0
        If positive, print the risks of each iteration.

    Attributes
    ----------
    categories_ : list of ndarray
        The values of each feature, in the order of the columns of `feature_log_prob_`.
    category_count_ : list of ndarray of shape (n_classes, n_categories)
        Counts in the data, by feature.
    class_count_ : ndarray of shape (n_classes,)
        Weight of each class in the data.
    class_log_prior_ : ndarray of shape (n_classes,)
        Calibrated log p(y).
    feature_log_prob_ : list of ndarray of shape (n_classes, n_categories)
        Calibrated log p(x_i | y), by feature.
    n_categories_ : ndarray of shape (n_features,)
        Number of categories of each feature.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    statistics_, data_statistics_, history_, n_iter_, best_iteration_, status_
        As in :class:`GenerativeClassifier`.

    Examples
    --------
    >>> from riskbayes import CategoricalNB
    >>> X = [["red", "small"], ["red", "large"], ["blue", "small"], ["blue", "large"]]
    >>> clf = CategoricalNB().fit(X, [0, 0, 1, 1])
    >>> clf.predict([["blue", "medium"]])
    array([1])
    """

    _parameter_constraints: ClassVar[dict] = {
        **StreamingClassifier._parameter_constraints,
        "alpha": [Interval(Real, 0, None, closed="left")],
        "force_alpha": ["boolean"],
        "fit_prior": ["boolean"],
        "class_prior": ["array-like", None],
        "min_categories": [None, "array-like", Interval(Integral, 1, None, closed="left")],
        "class_alpha": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        force_alpha: bool = True,
        fit_prior: bool = True,
        class_prior: Any = None,
        min_categories: Any = None,
        class_alpha: float = 0.0,
        learner: Any = "rc",
        class_weight: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
    ):
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.min_categories = min_categories
        self.class_alpha = class_alpha
        self.learner = learner
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.verbose = verbose

    def _make_model(self) -> CategoricalModel:
        r, least = self.classes_.shape[0], self._least_categories(self.n_features_in_)
        prior = None if self.fit_prior else np.full(r, 1.0 / r)
        if self.class_prior is not None:
            prior = check_class_prior(self.class_prior, r, "class_prior", renormalise=True)
        alpha = check_alpha(self.alpha, self.force_alpha, self.n_features_in_)
        return CategoricalModel(alpha, float(self.class_alpha), prior, least)

    def _check_counted(self, X: Array) -> None:
        for j in np.flatnonzero(categories_of(X).n_categories > self.n_categories_).tolist():
            raise ValueError(
                f"{column_name(self, j)} holds a category that was never counted: these rows were not fitted."
            )

    def _statistics_of(self, other: CategoricalNB, S: Statistics) -> tuple[Statistics, Statistics]:
        """Return the other's counts in the order of this one's categories, which take in the other's."""
        theirs, columns, n_categories, places = other._encoder.columns, [], [], []
        for j, (column, known, k) in enumerate(
            zip(theirs, self._encoder.columns, other.n_categories_.tolist(), strict=True)
        ):
            if known.is_open:
                known = column
            elif column.is_open and known.categories is None:
                column = known
            if (column.categories is None) != (known.categories is None):
                raise ValueError(
                    f"{column_name(self, j)} holds integer codes in one of two models, and other values in "
                    "the other: they have no common categories."
                )
            union = known.extended(list(column.categories or ()))
            columns.append(union)
            position = {
                value: code
                for code, value in enumerate(range(k) if union.categories is None else union.categories)
            }
            named = list(range(k) if column.categories is None else column.categories)
            own, total = [position[value] for value in named], max(len(position), k)
            # Categories that only `min_categories` asks for have no value. Values that only this model knows
            # take their places, as values of further rows would: so a merge has the categories of one fit.
            unnamed = sorted(set(range(total)) - set(own))[: k - len(named)]
            places.append([*own, *unnamed])
            n_categories.append(total)
        self._encoder = CategoryEncoder(tuple(columns))
        frame = Categories(np.array(n_categories))
        place = np.concatenate(
            [offset + np.array(p) for offset, p in zip(frame.offsets, places, strict=True)]
        )
        # The column of their counts for each of our cells; a column of zeros for cells that they lack.
        source = np.full(int(frame.n_categories.sum()), len(place))
        source[place] = np.arange(len(place))

        def moved(theirs: Statistics) -> Statistics:
            counts = theirs.to_frame(other.statistics_.frame)["counts"]
            xp = namespace(counts)
            padded = xp.concat([counts, xp.zeros_like(counts[:, :1])], axis=1)
            return Statistics(
                {"s0": theirs["s0"], "counts": xp.take(padded, to_device(source, counts), axis=1)}, frame
            )

        return moved(other.data_statistics_), moved(other.statistics_)

    @property
    def categories_(self) -> list[Array]:
        """The values of each feature, in the order of the columns of `feature_log_prob_`."""
        return [
            np.arange(k) if column.categories is None else as_array(column.categories)
            for k, column in zip(self.n_categories_, self._encoder.columns, strict=True)
        ]

    @property
    def n_categories_(self) -> Array:
        """Number of categories of each feature."""
        return self.statistics_.frame.n_categories

    def _by_feature(self, table: Array) -> list[Array]:
        """Split a table with the categories of all features side by side into one table per feature."""
        frame = self.statistics_.frame
        return [
            table[:, start : start + k]
            for start, k in zip(frame.offsets.tolist(), frame.n_categories.tolist(), strict=True)
        ]

    @property
    def category_count_(self) -> list[Array]:
        """Counts in the data, by feature."""
        return self._by_feature(self.data_statistics_["counts"])

    @property
    def class_count_(self) -> Array:
        """Weight of each class in the data."""
        return self.data_statistics_["s0"]

    @property
    def feature_log_prob_(self) -> list[Array]:
        """Calibrated log p(x_i | y), by feature."""
        return self._by_feature(self.parameters_.log_prob)

    @property
    def class_log_prior_(self) -> Array:
        """Calibrated log p(y)."""
        return self.parameters_.log_prior
