"""Naive Bayes of tables as they are: numbers, categories, dates, missing cells."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from riskbayes.arrays import Array
from riskbayes.estimators.table_input import MARK_LEVEL, TableInput, chosen_columns
from riskbayes.exceptions import ColumnError
from riskbayes.input.schema import Schema
from riskbayes.loaded import require_shape
from riskbayes.models.base import GenerativeModel
from riskbayes.models.binned import BinnedModel
from riskbayes.models.categorical import CategoricalModel
from riskbayes.models.gaussian_nb import GaussianNBModel
from riskbayes.models.marks import MarkModel
from riskbayes.models.poisson import PoissonModel
from riskbayes.models.product import ProductModel
from riskbayes.models.smooth import SmoothModel
from riskbayes.tables import encoded_names


class MixedNB(TableInput):
    """Naive Bayes of a table with columns of several kinds, trained by risk-based calibration.

    Takes arrays and data frames (pandas, polars, Arrow) with strings, dates and missing cells, without any
    preprocessing. Given the class the columns are independent: numbers have smooth or Gaussian densities,
    categories have frequencies, counts are Poisson, and dates are a number with the categories weekday, month
    and hour where these vary. A missing cell drops out of the joint. Constant columns, and strings that are
    different in most rows (names, identifiers), are left out; `columns_` says what became of each column.

    Parameters
    ----------
    numeric : {"smooth", "gaussian", "binned"}, default="smooth"
        The densities of numbers: those of :class:`SmoothNB` or of :class:`GaussianNB`, or frequencies of five
        bins of equal weight, with which there is no `sample`.
    alpha : float, default=1.0
        Dirichlet pseudo-counts of each category and each knot.
    categorical_features : "from_dtype", array-like of names, indices or a mask, default="from_dtype"
        Columns of categories. By default those of strings, categoricals, booleans and objects; columns that
        are named here are categories whatever they hold, and never left out as identifiers.
    count_features : array-like of names, indices or a mask, default=None
        Columns of counts, which are modelled as Poisson with a Gamma prior of `alpha` rows.
    columns : dict of column to kind, default=None
        What columns are, where their cells do not say it: "number", "category" or "date"; "text", "id" and
        "drop" leave a column out. Keys are names, or indices of an array.
    missing : {"ignore", "informative"}, default="ignore"
        With "informative" the classes also differ in how often a cell is missing: a mark of 0 or 1 is added
        for every column with missing cells in training. Marks that hardly depend on the class (by a
        chi-square test at 1 %) have one frequency for all classes.
    unseen : {"missing", "other", "error"}, default="missing"
        A category that was not in training is missing, has the probability of a category without rows, or
        raises an error.
    learner : str or Learner, default="rc"
        How the statistics are trained.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply `sample_weight`.
    warm_start : bool, default=False
        If True, `fit` starts from the statistics of the last fit; columns and knots must be the same.
    verbose : int, default=0
        If positive, print the risks of each iteration.

    Attributes
    ----------
    columns_ : list of Column
        For each column of the table its kind, what was made of it, and why it was left out.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    statistics_, data_statistics_, history_, n_iter_, best_iteration_, status_
        As in :class:`GenerativeClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from riskbayes import MixedNB
    >>> X = np.array([[1.5, "red"], [2.5, "blue"], [None, "red"], [9.5, None]], dtype=object)
    >>> clf = MixedNB().fit(X, ["a", "a", "b", "b"])
    >>> [column.kind for column in clf.columns_]
    ['number', 'category']
    >>> clf.predict(np.array([[9.0, "green"]], dtype=object))
    array(['b'], dtype='<U1')
    """

    _counts: Array
    """Mask of the columns of the table that hold counts."""

    _parameter_constraints: ClassVar[dict] = {
        **TableInput._parameter_constraints,
        "numeric": [StrOptions({"smooth", "gaussian", "binned"})],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "count_features": ["array-like", None],
    }

    def check_loaded(self, size: int) -> None:
        """Require also a mark of counts for each column."""
        super().check_loaded(size)
        if hasattr(self, "model_"):
            require_shape(self._counts, (self.n_features_in_,), "b", "counts")

    def __init__(
        self,
        numeric: str = "smooth",
        *,
        alpha: float = 1.0,
        categorical_features: Any = "from_dtype",
        columns: Any = None,
        count_features: Any = None,
        missing: str = "ignore",
        unseen: str = "missing",
        learner: Any = "rc",
        class_weight: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
    ):
        self.numeric = numeric
        self.alpha = alpha
        self.categorical_features = categorical_features
        self.columns = columns
        self.count_features = count_features
        self.missing = missing
        self.unseen = unseen
        self.learner = learner
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = False
        tags.normalised_density = self.numeric != "binned"
        return tags

    def _categorical(self, names: list[str], numbers: bool) -> list[bool] | None:
        """Return a mask of the columns of categories; store that of the columns of counts."""
        self._counts = np.zeros(len(names), dtype=bool)
        if self.count_features is not None:
            self._counts[:] = chosen_columns(self.count_features, names, "count_features")
        return super()._categorical(names, numbers)

    def _decide(self, schema: Schema, more: bool) -> None:
        super()._decide(schema, more)
        for j in np.flatnonzero(self._counts).tolist():
            column = self.columns_[j]
            if column.kind in ("category", "date"):
                raise ColumnError(
                    j,
                    f"is a {column.kind}, and count_features are numbers. Leave it out of them.",
                    column.name,
                )

    def _encode(self, cells: Any) -> Array:
        found = super()._encode(cells)
        for j in np.flatnonzero(self._kinds() == "count").tolist():
            negative = found[:, j] < 0
            if negative.any():
                raise ColumnError(
                    j, f"holds {found[negative, j][0]:g}, and counts are never negative. Correct or drop it."
                ).named(encoded_names(self))
        return found

    def _kinds(self) -> Array:
        """Return the kind of each encoded column: number, count or category."""
        if self._table is None:
            return np.where(self._counts, "count", "number")
        pairs = zip(self._table.encoded, self._table.kinds, strict=True)
        return np.array(["count" if kind == "number" and self._counts[j] else kind for (j, _), kind in pairs])

    def _make_model(self) -> ProductModel:
        kinds = self._kinds()
        densities: dict[str, GenerativeModel] = {
            "smooth": SmoothModel(alpha=self.alpha),
            "gaussian": GaussianNBModel(),
            "binned": BinnedModel(alpha=self.alpha),
        }
        models = {
            "number": densities[self.numeric],
            "count": PoissonModel(alpha=self.alpha),
            "category": CategoricalModel(alpha=self.alpha),
            "mark": MarkModel(alpha=self.alpha, level=MARK_LEVEL),
        }
        found = [(model, columns_of(kinds, kind)) for kind, model in models.items() if kind in kinds]
        experts, columns = zip(*found, strict=True)
        return ProductModel(experts, (1.0,) * len(experts), columns)


def columns_of(kinds: Array, kind: str) -> tuple[int, ...]:
    """Return the indices of the encoded columns of a kind."""
    return tuple(np.flatnonzero(kinds == kind).tolist())
