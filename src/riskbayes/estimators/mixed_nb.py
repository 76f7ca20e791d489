"""Naive Bayes of tables as they are: numbers, categories, dates, missing cells."""

from dataclasses import field
from typing import Annotated, Any

import numpy as np
from sklearn.utils._param_validation import StrOptions

import riskbayes.estimators.parameters as p
from riskbayes.arrays import Array
from riskbayes.estimators.base import BaseGenerativeClassifier
from riskbayes.estimators.table_input import (
    MARK_LEVEL,
    TableInput,
    chosen_columns,
    table_columns,
    table_schema,
)
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


class CountColumns(TableInput):
    """Tables of which some columns hold counts."""

    def categorical(self, clf: Any, names: list[str], numbers: bool) -> list[bool] | None:
        """Return a mask of the columns of categories; set that of the columns of counts."""
        clf._counts = np.zeros(len(names), dtype=bool)
        if clf.count_features is not None:
            clf._counts[:] = chosen_columns(clf.count_features, names, "count_features")
        return super().categorical(clf, names, numbers)

    def as_read(self, clf: Any, cells: Any, schema: Schema) -> bool:
        """False with counts, which are checked when they are encoded."""
        return clf.count_features is None and super().as_read(clf, cells, schema)

    def decide(self, clf: Any, schema: Schema, more: bool) -> None:
        """Set the encoder; refuse counts that are no numbers."""
        super().decide(clf, schema, more)
        columns = table_columns(clf)
        for j in np.flatnonzero(clf._counts).tolist():
            column = columns[j]
            if column.kind in ("category", "date"):
                raise ColumnError(
                    j,
                    f"is a {column.kind}, and count_features are numbers. Leave it out of them.",
                    column.name,
                )

    def encode(self, clf: Any, cells: Any) -> Array:
        """Return cells as numbers; refuse counts below zero."""
        found = super().encode(clf, cells)
        for j in np.flatnonzero(clf._kinds() == "count").tolist():
            negative = found[:, j] < 0
            if negative.any():
                raise ColumnError(
                    j, f"holds {found[negative, j][0]:g}, and counts are never negative. Correct or drop it."
                ).named(encoded_names(clf))
        return found

    def check_loaded(self, clf: Any) -> None:
        """Require a mark of counts for each column."""
        require_shape(clf._counts, (clf.n_features_in_,), "b", "counts")


@p.estimator
class MixedNB(BaseGenerativeClassifier):
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
    {categorical_features}
    count_features : array-like of names, indices or a mask, default=None
        Columns of counts, which are modelled as Poisson with a Gamma prior of `alpha` rows.
    {columns}
    missing : {"ignore", "informative"}, default="ignore"
        With "informative" the classes also differ in how often a cell is missing: a mark of 0 or 1 is added
        for every column with missing cells in training. Marks that hardly depend on the class (by a
        chi-square test at 1 %) have one frequency for all classes.
    {unseen learner class_weight}
    warm_start : bool, default=False
        If True, `fit` starts from the statistics of the last fit; columns and knots must be the same.
    {verbose}

    Attributes
    ----------
    {columns_ classes_ statistics_}

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

    numeric: Annotated[str, StrOptions({"smooth", "gaussian", "binned"})] = field(
        default="smooth", kw_only=False
    )
    alpha: p.Strength = 1.0
    categorical_features: p.CategoricalFeatures = "from_dtype"
    columns: p.ColumnKinds = None
    count_features: p.Numbers = None
    missing: p.Missing = "ignore"
    unseen: p.Unseen = "missing"
    learner: p.LearnerOrName = "rc"
    class_weight: p.ClassWeight = None
    warm_start: p.Flag = False
    verbose: p.Verbose = 0

    _counts: Array = field(init=False)
    """Mask of the columns of the table that hold counts."""

    _input = CountColumns()
    _takes_missing = True
    _array_api = False

    columns_ = property(table_columns)
    schema_ = property(table_schema)

    @property
    def _normalised(self) -> bool:  # type: ignore[override]
        return self.numeric != "binned"

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
