"""Trees over tables as they are: numbers and categories that depend on each other."""

from dataclasses import field
from numbers import Integral
from typing import Annotated, Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

import riskbayes.estimators.parameters as p
from riskbayes.estimators.base import BaseGenerativeClassifier
from riskbayes.estimators.mixed_nb import columns_of
from riskbayes.estimators.table_input import MARK_LEVEL, TableInput, table_columns, table_schema
from riskbayes.models.base import GenerativeModel
from riskbayes.models.conditional_gaussian import ConditionalGaussianModel
from riskbayes.models.marks import MarkModel
from riskbayes.models.network import Network
from riskbayes.models.product import ProductModel
from riskbayes.tables import encoded_names


@p.estimator
class ConditionalGaussianNB(BaseGenerativeClassifier):
    """Tree-augmented naive Bayes of numbers and categories, trained by risk-based calibration.

    A conditional Gaussian network: beside the class each column may have one other column as its parent. A
    category has a category, whose values have frequencies each; a number has a category, whose values have a
    Gaussian each, or a number, on which it depends linearly. Without parents this is Gaussian and categorical
    naive Bayes. Takes what :class:`MixedNB` takes, without any preprocessing; `columns_` says what became of
    each column.

    The tree is that of largest mutual information given the class, less the cost of its parameters by the
    Bayesian information criterion: edges that are not worth it are left out. It comes from all rows: there is
    no `partial_fit`.

    Missing cells are summed and integrated over: the joint is the exact marginal of the cells that a row has,
    and the statistics are expected ones given these, so that the closed form is found by EM.

    Parameters
    ----------
    k : {0, 1}, default=1
        The most parents of a column beside the class; 0 is naive Bayes.
    numeric : {"smooth", "gaussian"}, default="smooth"
        With "smooth" the Gaussians are those of normal scores: each number goes through a monotone map by the
        quantiles of all classes together, so that its tails do not matter; `impute` then fills in medians.
        "gaussian" takes numbers as they are.
    alpha : float, default=1.0
        Pseudo-counts of each category of p(x | y), and the number of rows that the variance of a number in
        all classes together counts as in each class.
    backoff : float, default=20.0
        Number of rows that p(x | y) counts as when it smooths p(x | parent, y).
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
    class_alpha: p.Strength = 0.0
    categorical_features: p.CategoricalFeatures = "from_dtype"
    columns: p.ColumnKinds = None
    missing: p.Missing = "ignore"
    unseen: p.Unseen = "missing"
    learner: p.LearnerOrName = "rc"
    class_weight: p.ClassWeight = None
    warm_start: p.Flag = False
    verbose: p.Verbose = 0

    _input = TableInput()
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
