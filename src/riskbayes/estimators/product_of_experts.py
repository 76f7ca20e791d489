"""A product of several models, of the same columns or of columns of their own, as one classifier."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from riskbayes.arrays import Array
from riskbayes.estimators.base import BaseGenerativeClassifier
from riskbayes.estimators.checks import as_floats
from riskbayes.estimators.qda import QuadraticDiscriminantAnalysis
from riskbayes.estimators.smooth_nb import SmoothNB
from riskbayes.estimators.table_input import MARK_LEVEL, TableInput, chosen_columns, set_numbers
from riskbayes.exceptions import ColumnError
from riskbayes.input.schema import Cells, Schema
from riskbayes.loaded import require
from riskbayes.models.base import GenerativeModel
from riskbayes.models.marks import MarkModel
from riskbayes.models.product import ProductModel
from riskbayes.models.traits import Traits
from riskbayes.preprocessing.categories import CategoryEncoder, ColumnCodes
from riskbayes.tables import encoded_names


class ProductOfExperts(TableInput):
    """A product of generative models, calibrated together.

    The posterior is that of p(y) prod_e p_e(x | y)^weight_e: the log joints of the experts are weighted and
    added, the class prior counts once, and RC moves the statistics of all experts by one residual.

    If no column has two experts and all weights are one, the product is naive Bayes over blocks of columns:
    `score_samples` is a log density, and `sample` draws from it. Otherwise the product of densities is not
    normalised: `predict_joint_log_proba` and `score_samples` lack a constant of the model. They can still
    compare rows with each other; there is no `sample`.

    Parameters
    ----------
    experts : sequence of estimators, of models, or of tuples (name, expert, columns)
        Models, or estimators of this package; their `learner` and weights are not used, and p(y) is the
        first one's. A tuple names the columns that the expert reads, as in scikit-learn's ColumnTransformer:
        a name, an index, a list of them, a slice or a mask. A column of strings belongs to an expert of
        categories such as :class:`CategoricalNB`. Without tuples every expert reads all columns, which are
        numbers. By default :class:`QuadraticDiscriminantAnalysis` with a prior of 5 rows per column, and
        :class:`SmoothNB`.
    weights : sequence of float, default=None
        Powers of the experts' densities; by default equal, with the sum one, or one each for experts with
        columns of their own.
    categorical_features, columns, missing, unseen
        As in :class:`MixedNB`. They matter only for experts with columns of their own.
    learner : str or Learner, default="rc"
        How the statistics are trained.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply `sample_weight`.
    warm_start : bool, default=False
        If True, `fit` starts from the statistics of the last fit.
    verbose : int, default=0
        If positive, print the risks of each iteration.

    Attributes
    ----------
    experts_ : list
        The experts' models; `parameters_.experts` holds their parameters.
    columns_ : list of Column
        What became of each column of the table.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    statistics_, data_statistics_, history_, n_iter_, best_iteration_, status_
        As in :class:`GenerativeClassifier`; the statistics are those of all experts, side by side.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from riskbayes import GaussianNB, ProductOfExperts, QuadraticDiscriminantAnalysis, SmoothNB
    >>> X, y = load_iris(return_X_y=True)
    >>> experts = [QuadraticDiscriminantAnalysis(prior="recommended"), SmoothNB()]
    >>> clf = ProductOfExperts(experts, weights=[0.5, 0.5]).fit(X, y)
    >>> clf.predict(X[:2])
    array([0, 0])
    >>> sepal, petal = ("sepal", QuadraticDiscriminantAnalysis(), [0, 1]), ("petal", GaussianNB(), [2, 3])
    >>> ProductOfExperts([sepal, petal]).fit(X, y).sample(3, random_state=0)[0].shape
    (3, 4)
    """

    _strict: list[tuple[int, bool, bool]]
    """Experts that refuse missing cells or values below zero: index, takes missing cells, reads counts."""
    _owned: list[Array]
    """Columns of the table that each expert reads, where experts have columns of their own."""

    _parameter_constraints: ClassVar[dict] = {
        **TableInput._parameter_constraints,
        "experts": ["array-like", None],
        "weights": ["array-like", None],
    }

    def __init__(
        self,
        experts: Any = None,
        weights: Any = None,
        *,
        categorical_features: Any = "from_dtype",
        columns: Any = None,
        missing: str = "ignore",
        unseen: str = "missing",
        learner: Any = "rc",
        class_weight: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
    ):
        self.experts = experts
        self.weights = weights
        self.categorical_features = categorical_features
        self.columns = columns
        self.missing = missing
        self.unseen = unseen
        self.learner = learner
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        experts = [expert for _, expert, _ in self._triples()]
        tags.array_api_support = bool(experts) and all(map(takes_any_array, experts))
        tags.normalised_density = hasattr(self, "model_") and self.model_.traits.normalised
        return tags

    def check_loaded(self, size: int) -> None:
        """Require also experts that there are, where they are strict or own columns."""
        super().check_loaded(size)
        if hasattr(self, "model_"):
            experts = len(self._triples())
            require(all(0 <= i < experts for i, _, _ in self._strict), "experts are missing")
            require(len(getattr(self, "_owned", [])) in (0, experts), "experts are missing")

    @property
    def _takes_missing(self) -> bool:  # type: ignore[override]
        return all(takes_missing(expert) for _, expert, _ in self._triples())

    def _triples(self) -> list[tuple[str, Any, Any]]:
        """Return (name, expert, columns) of each expert that the user gave; None stands for all columns."""
        if self.experts is None:
            return []
        return [
            expert if isinstance(expert, tuple) and len(expert) == 3 else (f"expert {i}", expert, None)
            for i, expert in enumerate(self.experts)
        ]

    def _reads_numbers(self) -> bool:
        """True if every expert reads all columns, which are numbers."""
        return all(columns is None for _, _, columns in self._triples())

    def _read(self, X: Any, *, reset: bool, learn: bool) -> Any:
        if self._reads_numbers():
            return BaseGenerativeClassifier._read(self, X, reset=reset, learn=learn)
        return super()._read(X, reset=reset, learn=learn)

    def _schema_of(self, cells: Any, whole: bool = True) -> Schema:
        schema = super()._schema_of(cells, whole)
        experts = [expert for _, expert, columns in self._triples() if columns is not None]
        if whole or not isinstance(cells, np.ndarray) or not any(map(reads_categories, experts)):
            return schema
        # If another batch holds strings, numbers that only such experts read are categories: by their values.
        found = Schema.of_cells(Cells.of(cells, schema.names), schema.names, schema.named)
        return replace(schema, columns=found.columns)

    def _decide(self, schema: Schema, more: bool) -> None:
        if self._reads_numbers():
            BaseGenerativeClassifier._decide(self, schema, more)
            set_numbers(self, replace(schema, library=None))
        else:
            super()._decide(schema, more)
        self._strict = [
            (i, takes_missing(expert), takes_counts(expert))
            for i, (_, expert, _) in enumerate(self._triples())
            if not takes_missing(expert) or takes_counts(expert)
        ]

    def _encode(self, cells: Any) -> Array:
        found = super()._encode(cells)
        for i, missing, counts in self._strict:
            self._check_columns_of(i, found, missing, counts)
        return found

    def _check_columns_of(self, i: int, X: Array, missing: bool, counts: bool) -> None:
        """Refuse missing cells, unless `missing`, and values below zero, if `counts`, in an expert's columns.

        The experts alone would refuse them, but here the table is read for all of them together.
        """
        _, expert, columns = self._triples()[i]
        kind, problem = type(expert).__name__, ""
        every = columns is None and self._table is None
        for j in range(X.shape[1]) if every else self._columns_of(i, expert):
            if not missing and isinstance(X, np.ndarray) and np.isnan(X[:, j]).any():
                problem = f"has missing cells, and {kind} does not take them. Give it to another expert."
            elif counts and bool((X[:, j] < 0).any()):
                problem = f"holds values below zero, and {kind} reads counts. Give it to another expert."
            if problem:
                raise ColumnError(j, problem).named(encoded_names(self))

    def _categorical(self, names: list[str], numbers: bool) -> list[bool] | None:
        """Return a mask of the columns of categories: those chosen, and those that only such experts read.

        An array of numbers is not encoded: an expert of categories reads it as codes.
        """
        chosen = super()._categorical(names, numbers)
        owners: list[set[bool]] = [set() for _ in names]
        self._owned = []
        for name, expert, columns in self._triples():
            own = np.arange(len(names)) if columns is None else own_columns(columns, names, name)
            self._owned.append(own)
            for j in own.tolist():
                owners[j].add(reads_categories(expert))
        forced = [kinds == {True} for kinds in owners]
        if chosen is None and (numbers or not any(forced)):
            return None
        return [a or b for a, b in zip(chosen or [False] * len(names), forced, strict=True)]

    def _make_model(self) -> ProductModel:
        triples = self._triples()
        if self.experts is not None and not triples:
            raise ValueError("experts must hold at least one estimator or model.")
        if not triples:
            triples = [("", expert, None) for expert in default_experts(self.n_features_in_)]
        owned = None
        if any(columns is not None for _, _, columns in triples):
            owned = tuple(self._columns_of(i, expert) for i, (_, expert, _) in enumerate(triples))
        usual = 1.0 if owned else 1 / len(triples)
        weights = np.full(len(triples), usual)
        if self.weights is not None:
            weights = as_floats(self.weights, "weights")
        if weights.shape != (len(triples),) or not (np.isfinite(weights) & (weights > 0)).all():
            raise ValueError(
                f"weights must be one positive number an expert, {len(triples)} in all; got {self.weights!r}."
            )
        models = tuple(
            self._model_of(expert, self.n_features_in_ if owned is None else len(owned[i]), owned is not None)
            for i, (_, expert, _) in enumerate(triples)
        )
        powers = tuple(weights.tolist())
        if owned is not None and self._table is not None and self._table.marks:
            marked = tuple(j for j, kind in enumerate(self._table.kinds) if kind == "mark")
            marks = MarkModel(alpha=1.0, level=MARK_LEVEL)
            models, powers, owned = (*models, marks), (*powers, 1.0), (*owned, marked)
        if owned is None:
            return ProductModel(models, powers)
        width = self.n_features_in_ if self._table is None else len(self._table.kinds)
        return ProductModel(models, powers, owned, width)

    def _columns_of(self, i: int, expert: Any) -> tuple[int, ...]:
        """Return the encoded columns that an expert reads: those of its columns that are of its kind."""
        own = set(self._owned[i].tolist())
        if self._table is None:
            return tuple(sorted(own))
        wanted = "category" if reads_categories(expert) else "number"
        at = enumerate(zip(self._table.encoded, self._table.kinds, strict=True))
        found = tuple(c for c, ((j, _), kind) in at if j in own and kind == wanted)
        if not found:
            names = ", ".join(repr(self._table.readers[j].column.name) for j in sorted(own)[:5])
            raise ValueError(
                f"The expert {type(expert).__name__} reads {PLURAL[wanted]}, and its columns ({names}) hold "
                "none: `columns_` says what became of them. Give them to another expert."
            )
        return found

    def _model_of(self, expert: Any, n: int, encoded: bool) -> GenerativeModel:
        """Return the model of an expert of n columns; refuse what is none, or reads categories uncoded."""
        if isinstance(expert, GenerativeModel):
            return expert
        if not isinstance(expert, BaseGenerativeClassifier):
            raise TypeError(
                f"experts must be estimators of riskbayes or models; got {type(expert).__name__}. To average "
                "other classifiers, see sklearn.ensemble.VotingClassifier."
            )
        if reads_categories(expert) and not encoded:
            raise TypeError(
                f"experts read one table of numbers; {type(expert).__name__} reads categories. Name the "
                f"columns that it reads: (name, {type(expert).__name__}(), columns)."
            )
        if isinstance(expert, TableInput) and not reads_all_columns(expert):
            raise TypeError(
                f"{type(expert).__name__} sorts the columns of a table by kind, and is no expert of some of "
                "them. Name experts for each kind, such as SmoothNB() and CategoricalNB()."
            )
        own = clone(expert)
        own._validate_params()
        own.classes_, own.n_features_in_ = self.classes_, n
        if reads_categories(expert):
            own._encoder = CategoryEncoder(tuple(ColumnCodes(str(j), None) for j in range(n)))
        return own._make_model()

    @property
    def experts_(self) -> list[GenerativeModel]:
        """The experts' models."""
        return list(self.model_.experts)  # type: ignore[attr-defined]


PLURAL = {"number": "numbers", "category": "categories"}


def own_columns(columns: Any, names: list[str], expert: str) -> Array:
    """Return the indices of the columns that an expert's tuple names."""
    if isinstance(columns, slice):
        return np.arange(len(names))[columns]
    given = [columns] if isinstance(columns, str | int) else columns
    found = np.flatnonzero(chosen_columns(given, names, f"The columns of expert {expert!r}"))
    if not len(found):
        raise ValueError(f"The columns of expert {expert!r} are none. Name at least one, or drop the expert.")
    return found


def reads_categories(expert: Any) -> bool:
    """True if an expert, an estimator or a model, reads categories."""
    if isinstance(expert, BaseGenerativeClassifier):
        return bool(expert.__sklearn_tags__().input_tags.categorical)
    return getattr(expert, "traits", Traits()).support == "categories"


def takes_missing(expert: Any) -> bool:
    """True if an expert takes missing cells."""
    if isinstance(expert, BaseGenerativeClassifier):
        return expert._takes_missing
    return getattr(expert, "traits", Traits()).takes_missing


def takes_counts(expert: Any) -> bool:
    """True if an expert refuses values below zero."""
    if isinstance(expert, BaseGenerativeClassifier):
        return bool(expert.__sklearn_tags__().input_tags.positive_only)
    return False


def reads_all_columns(expert: TableInput) -> bool:
    """True for a product whose experts read all columns: it may be an expert itself."""
    return isinstance(expert, ProductOfExperts) and all(own is None for _, _, own in expert._triples())


def takes_any_array(expert: Any) -> bool:
    """True if an expert takes arrays of every library."""
    if isinstance(expert, BaseGenerativeClassifier):
        return bool(expert.__sklearn_tags__().array_api_support)
    return getattr(expert, "traits", Traits()).array_api


def default_experts(n_features: int, n_knots: int = 6) -> list[Any]:
    """Return QDA with a strong prior, and smooth naive Bayes: the experts of `RiskBayesClassifier`."""
    gaussian = QuadraticDiscriminantAnalysis(
        prior="recommended", covariance_strength=5 * n_features, diagonal_mix=0.3
    )
    return [gaussian, SmoothNB(n_knots=n_knots, alpha=5.0)]
