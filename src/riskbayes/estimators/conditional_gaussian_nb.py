"""Trees over tables as they are: numbers and categories that depend on each other."""

from dataclasses import field, replace
from numbers import Integral
from typing import Annotated, Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

import riskbayes.estimators.parameters as p
from riskbayes.arrays import Array
from riskbayes.estimators.base import BaseGenerativeClassifier
from riskbayes.estimators.mixed_nb import columns_of
from riskbayes.estimators.table_input import (
    MARK_LEVEL,
    TableInput,
    given_kinds,
    table_columns,
    table_schema,
)
from riskbayes.input.schema import Schema, bounded
from riskbayes.models.base import GenerativeModel
from riskbayes.models.conditional_gaussian import ConditionalGaussianModel
from riskbayes.models.marks import MarkModel
from riskbayes.models.network import Network
from riskbayes.models.product import ProductModel
from riskbayes.tables import encoded_names

ROWS_A_VALUE = 10
"""Rows that a value of a number has on average, so that the number is read as a category."""


class FewValuesInput(TableInput):
    """Tables whose whole numbers of few values are read as categories: these are far from Gaussian."""

    def schema_of(self, clf: Any, cells: Any, whole: bool = True) -> Schema:
        """Return what cells say of the columns, with the distinct values of an array of numbers."""
        schema = super().schema_of(clf, cells, whole)
        if not isinstance(cells, np.ndarray) or not len(cells):
            return schema
        columns = []
        for column, x in zip(schema.each_column(), cells.T, strict=True):
            present = x[~np.isnan(x)].astype(np.float64)
            example = float(present[0]) if len(present) else None
            columns.append(replace(column, values=bounded(np.unique(present)), example=example))
        return replace(schema, columns=tuple(columns))

    def decode(self, clf: Any, rows: Array) -> Any:
        """Return encoded rows as a table like that of training: an array of numbers where it was one."""
        found = super().decode(clf, rows)
        return found.astype(clf._row_dtype) if clf._numbers_alone else found

    def decide(self, clf: Any, schema: Schema, more: bool) -> None:
        """Set the encoder; remember whether the table is an array of numbers."""
        super().decide(clf, schema, more)
        clf._numbers_alone = schema.dtype != "object" and schema.library is None

    def categories_of(self, clf: Any, schema: Schema) -> list[bool] | None:
        """Return a mask of the columns that are read as categories, or None if there are none."""
        named, told = super().categories_of(clf, schema), given_kinds(clf.columns, schema.names)
        few = [
            column.kind == "numbers"
            and column.values is not None
            and 1 < len(column.values) <= clf.few_values
            and len(column.values) * ROWS_A_VALUE <= schema.n_rows - column.n_missing
            and (column.values == np.round(column.values)).all()  # others may come back rounded, as unseen
            and j not in told
            for j, column in enumerate(schema.each_column())
        ]
        if named is None:
            return few if any(few) else None
        return [a or b for a, b in zip(few, named, strict=True)]


@p.estimator
class ConditionalGaussianNB(BaseGenerativeClassifier):
    """Tree-augmented naive Bayes of numbers and categories, trained by risk-based calibration.

    A conditional Gaussian network: beside the class each column may have one other column as its parent, or
    up to `k`. A category has categories, whose values have frequencies each; a number has categories, whose
    values have a Gaussian each, and numbers, on which it depends linearly for each of these values. Without
    parents this is Gaussian and categorical naive Bayes. Takes what :class:`MixedNB` takes, without any
    preprocessing; `columns_` says what became of each column.

    The tree is that of largest mutual information given the class, less the cost of its parameters by the
    Bayesian information criterion: edges that are not worth it are left out. With `k` above 1 each column is
    given further parents while these are worth their cost, the best first. The structure comes from all rows:
    there is no `partial_fit`.

    Missing cells are summed and integrated over: the joint is the exact marginal of the cells that a row has,
    and the statistics are expected ones given these, so that the closed form is found by EM. With `k` above 1
    a row's missing categories are summed combination by combination, and too many of these are an error.

    Parameters
    ----------
    k : int, default=1
        The most parents of a column beside the class; 0 is naive Bayes, 1 a tree.
    numeric : {"smooth", "gaussian"}, default="smooth"
        With "smooth" the Gaussians are those of normal scores: each number goes through a monotone map by the
        quantiles of all classes together, so that its tails do not matter; `impute` then fills in medians.
        "gaussian" takes numbers as they are.
    alpha : float, default=1.0
        Pseudo-counts of each category of p(x | y), and the number of rows that the variance of a number in
        all classes together counts as in each class.
    backoff : float, default=20.0
        Number of rows that p(x | y) counts as when it smooths p(x | parent, y). With several parents it is
        the number of rows that fewer parents count as, one after another down to p(x | y).
    few_values : int, default=10
        Whole numbers of at most so many distinct values, each in ten rows or more on average, are read as
        categories; a value that is not among them is unseen. `columns` says otherwise: "number".
    {class_alpha categorical_features columns}
    missing : {"ignore", "informative"}, default="ignore"
        With "informative" the classes also differ in how often a cell is missing, as in :class:`MixedNB`.
    {unseen learner class_weight}
    warm_start : bool, default=False
        If True, `fit` starts from the statistics of the last fit; the columns and the tree must be the same.
    {verbose}

    Attributes
    ----------
    parents_ : dict of str to str or None
        For each column that the model reads its parent beside the class; None if it has none. With `k` above
        1 a tuple of its parents.
    {columns_ classes_ statistics_}

    References
    ----------
    A. Pérez, P. Larrañaga, I. Inza, "Supervised classification with conditional Gaussian networks",
    International Journal of Approximate Reasoning 43, 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from riskbayes import ConditionalGaussianNB
    >>> rng = np.random.default_rng(0)
    >>> y, colour = rng.integers(2, size=(2, 200))
    >>> length = 3.0 * colour + rng.standard_normal(200)
    >>> weight = (2 * y - 1) * length + 0.3 * rng.standard_normal(200)
    >>> X = np.array([np.where(colour, "red", "blue"), length, weight], dtype=object).T
    >>> clf = ConditionalGaussianNB(columns={1: "number", 2: "number"}).fit(X, y)
    >>> clf.parents_
    {'x0': None, 'x1': 'x0', 'x2': 'x1'}
    """

    k: Annotated[int, Interval(Integral, 0, None, closed="left")] = field(default=1, kw_only=False)
    numeric: Annotated[str, StrOptions({"smooth", "gaussian"})] = "smooth"
    alpha: p.Strength = 1.0
    backoff: p.Strength = 20.0
    few_values: Annotated[int, Interval(Integral, 0, None, closed="left")] = 10
    class_alpha: p.Strength = 0.0
    categorical_features: p.CategoricalFeatures = "from_dtype"
    columns: p.ColumnKinds = None
    missing: p.Missing = "ignore"
    unseen: p.Unseen = "missing"
    learner: p.LearnerOrName = "rc"
    class_weight: p.ClassWeight = None
    warm_start: p.Flag = False
    verbose: p.Verbose = 0

    _numbers_alone: bool = field(init=False)
    _input = FewValuesInput()
    _takes_missing = True
    _array_api = False

    columns_ = property(table_columns)
    schema_ = property(table_schema)

    def _make_model(self) -> GenerativeModel:
        kinds = np.full(self.n_features_in_, "number")
        if self._table is not None:
            kinds = np.array(self._table.kinds)
        marks = columns_of(kinds, "mark")  # behind all others
        tree = ConditionalGaussianModel(
            columns_of(kinds, "category"),
            self.k,
            self.alpha,
            self.backoff,
            self.class_alpha,
            smooth=self.numeric == "smooth",
        )
        if not marks:
            return tree
        marked = MarkModel(alpha=self.alpha, class_alpha=self.class_alpha, level=MARK_LEVEL)
        parts = [(tree, tuple(range(marks[0])))] if marks[0] else []
        models, columns = zip(*parts, (marked, marks), strict=True)
        return ProductModel(models, (1.0,) * len(models), columns)

    @property
    def parents_(self) -> dict[Any, Any]:
        """For each column that the model reads its parent beside the class, or its parents."""
        names = encoded_names(self)
        frame: Any = self.statistics_.frame
        frame = next((own for own in getattr(frame, "frames", (frame,)) if isinstance(own, Network)), None)
        if frame is None:  # marks of missing cells alone
            return {}
        named = [f"x{j}" for j in range(self.n_features_in_)] if names is None else list(names)
        found = {named[j]: tuple(named[p] for p in above) for j, above in frame.parent_lists.items()}
        return found if self.k > 1 else {name: above[0] if above else None for name, above in found.items()}
