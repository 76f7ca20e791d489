"""A product of several models, of the same columns or of columns of their own, as one classifier."""

from dataclasses import field, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

import riskbayes.estimators.parameters as p
from riskbayes.arrays import Array
from riskbayes.estimators.base import BaseGenerativeClassifier
from riskbayes.estimators.checks import as_floats
from riskbayes.estimators.inputs import NumberInput
from riskbayes.estimators.qda import QuadraticDiscriminantAnalysis
from riskbayes.estimators.smooth_nb import SmoothNB
from riskbayes.estimators.table_input import (
    MARK_LEVEL,
    TableInput,
    chosen_columns,
    set_numbers,
    table_columns,
    table_schema,
)
from riskbayes.exceptions import ColumnError, listed
from riskbayes.input.schema import Cells, Schema
from riskbayes.loaded import require
from riskbayes.models.base import GenerativeModel
from riskbayes.models.marks import MarkModel
from riskbayes.models.product import ProductModel
from riskbayes.models.traits import Traits
from riskbayes.preprocessing.encoder import CategoryEncoder, ColumnCodes
from riskbayes.tables import encoded_names


class ExpertInput(TableInput):
    """Tables whose columns belong to experts, or rows of numbers that all of them read."""

    def read(self, clf: Any, X: Any, *, reset: bool, learn: bool) -> Any:
        """Return the validated cells of rows."""
        kind = NumberInput if clf._reads_numbers() else TableInput
        return kind.read(self, clf, X, reset=reset, learn=learn)

    def schema_of(self, clf: Any, cells: Any, whole: bool = True) -> Schema:
        """Return what cells say of the columns."""
        schema = super().schema_of(clf, cells, whole)
        experts = [expert for _, expert, columns in clf._triples() if columns is not None]
        if (
            whole
            or not isinstance(cells, np.ndarray)
            or not any(reads_of(expert).categories for expert in experts)
        ):
            return schema
        # If another batch holds strings, numbers that only such experts read are categories: by their values.
        found = Schema.of_cells(Cells.of(cells, schema.names), schema.names, schema.named)
        return replace(schema, columns=found.columns)

    def as_read(self, clf: Any, cells: Any, schema: Schema) -> bool:
        """False: rows are checked for the experts when they are encoded."""
        return False

    def decide(self, clf: Any, schema: Schema, more: bool) -> None:
        """Set how cells are encoded, and which experts refuse some of them."""
        if clf._reads_numbers():
            NumberInput.decide(self, clf, schema, more)
            set_numbers(clf, replace(schema, library=None))
        else:
            super().decide(clf, schema, more)
        experts = [reads_of(expert) for _, expert, _ in clf._triples()]
        clf._strict = [(i, t.missing, t.counts) for i, t in enumerate(experts) if t.counts or not t.missing]

    def encode(self, clf: Any, cells: Any) -> Array:
        """Return cells as an array; refuse those that an expert would."""
        found = super().encode(clf, cells)
        for i, missing, counts in clf._strict:
            self.check_columns_of(clf, i, found, missing, counts)
        return found

    def check_columns_of(self, clf: Any, i: int, X: Array, missing: bool, counts: bool) -> None:
        """Refuse missing cells, unless `missing`, and values below zero, if `counts`, in an expert's columns.

        The experts alone would refuse them, but here the table is read for all of them together.
        """
        _, expert, columns = clf._triples()[i]
        kind, problem = type(expert).__name__, ""
        every = columns is None and clf._table is None
        for j in range(X.shape[1]) if every else clf._columns_of(i, expert):
            if not missing and isinstance(X, np.ndarray) and np.isnan(X[:, j]).any():
                problem = f"has missing cells, and {kind} does not take them. Give it to another expert."
            elif counts and bool((X[:, j] < 0).any()):
                problem = f"holds values below zero, and {kind} reads counts. Give it to another expert."
            if problem:
                raise ColumnError(j, problem).named(encoded_names(clf))

    def categorical(self, clf: Any, names: list[str], numbers: bool) -> list[bool] | None:
        """Return a mask of the columns of categories: those chosen, and those that only such experts read.

        An array of numbers is not encoded: an expert of categories reads it as codes.
        """
        chosen = super().categorical(clf, names, numbers)
        owners: list[set[bool]] = [set() for _ in names]
        clf._owned = []
        for name, expert, columns in clf._triples():
            own = np.arange(len(names)) if columns is None else own_columns(columns, names, name)
            clf._owned.append(own)
            for j in own.tolist():
                owners[j].add(reads_of(expert).categories)
        forced = [kinds == {True} for kinds in owners]
        if chosen is None and (numbers or not any(forced)):
            return None
        return [a or b for a, b in zip(chosen or [False] * len(names), forced, strict=True)]

    def check_loaded(self, clf: Any) -> None:
        """Require experts that there are, where they are strict or own columns."""
        experts = len(clf._triples())
        require(all(0 <= i < experts for i, _, _ in clf._strict), "experts are missing")
        require(len(getattr(clf, "_owned", [])) in (0, experts), "experts are missing")


@p.estimator
class ProductOfExperts(BaseGenerativeClassifier):
    """A product of generative models, calibrated together.

    The posterior is that of p(y) prod_e p_e(x | y)^weight_e: the log joints of the experts are weighted and
    added, the class prior counts once, and RC moves the statistics of all experts by one residual.

    If no column has two experts and all weights are one, the product is naive Bayes over blocks of columns:
    `score_samples` is a log density, and `sample` draws from it. Otherwise the product of densities is not
    normalised: `predict_joint_log_proba` and `score_samples` lack a constant of the model. They can still
    compare rows with each other; there is no `sample`.

    Parameters
    ----------
    experts : sequence of estimators, of models, or of tuples (name, expert, columns), default=None
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
    {learner class_weight warm_start verbose}

    Attributes
    ----------
    experts_ : list
        The experts' models; `parameters_.experts` holds their parameters.
    {columns_ classes_}
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

    experts: p.Numbers = field(default=None, kw_only=False)
    weights: p.Numbers = field(default=None, kw_only=False)
    categorical_features: p.CategoricalFeatures = "from_dtype"
    columns: p.ColumnKinds = None
    missing: p.Missing = "ignore"
    unseen: p.Unseen = "missing"
    learner: p.LearnerOrName = "rc"
    class_weight: p.ClassWeight = None
    warm_start: p.Flag = False
    verbose: p.Verbose = 0

    _strict: list[tuple[int, bool, bool]] = field(init=False)
    """Experts that refuse missing cells or values below zero: index, takes missing cells, reads counts."""
    _owned: list[Array] = field(init=False)
    """Columns of the table that each expert reads, where experts have columns of their own."""

    _input = ExpertInput()

    columns_ = property(table_columns)
    schema_ = property(table_schema)

    @property
    def _array_api(self) -> bool:  # type: ignore[override]
        experts = [expert for _, expert, _ in self._triples()]
        return bool(experts) and all(reads_of(expert).any_array for expert in experts)

    @property
    def _normalised(self) -> bool:  # type: ignore[override]
        return hasattr(self, "model_") and self.model_.traits.normalised

    @property
    def _takes_missing(self) -> bool:  # type: ignore[override]
        return all(reads_of(expert).missing for _, expert, _ in self._triples())

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
        wanted = "category" if reads_of(expert).categories else "number"
        at = enumerate(zip(self._table.encoded, self._table.kinds, strict=True))
        found = tuple(c for c, ((j, _), kind) in at if j in own and kind == wanted)
        if not found:
            names = listed([self._table.readers[j].column.name for j in sorted(own)])
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
        if reads_of(expert).categories and not encoded:
            raise TypeError(
                f"experts read one table of numbers; {type(expert).__name__} reads categories. Name the "
                f"columns that it reads: (name, {type(expert).__name__}(), columns)."
            )
        if isinstance(expert._input, TableInput) and not reads_all_columns(expert):
            raise TypeError(
                f"{type(expert).__name__} sorts the columns of a table by kind, and is no expert of some of "
                "them. Name experts for each kind, such as SmoothNB() and CategoricalNB()."
            )
        own = clone(expert).set_params(learner=self.learner)  # which the prior of an expert may depend on
        own._validate_params()
        own.classes_, own.n_features_in_ = self.classes_, n
        if reads_of(expert).categories:
            own._encoder = CategoryEncoder((ColumnCodes(None, None),) * n)
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


class Reads(NamedTuple):
    """What an expert reads."""

    categories: bool
    missing: bool
    """True if it takes missing cells."""
    counts: bool
    """True if it refuses values below zero."""
    any_array: bool
    """True if it takes arrays of every library."""


def reads_of(expert: Any) -> Reads:
    """Return what an expert reads, an estimator or a model."""
    if isinstance(expert, BaseGenerativeClassifier):
        tags = expert.__sklearn_tags__()
        own = tags.input_tags
        return Reads(own.categorical, own.allow_nan, own.positive_only, tags.array_api_support)
    traits = getattr(expert, "traits", Traits())
    return Reads(traits.support == "categories", traits.takes_missing, False, traits.array_api)


def reads_all_columns(expert: BaseGenerativeClassifier) -> bool:
    """True for a product whose experts read all columns: it may be an expert itself."""
    return isinstance(expert, ProductOfExperts) and all(own is None for _, _, own in expert._triples())


def default_experts(n_features: int, n_knots: int = 6) -> list[Any]:
    """Return QDA with a strong prior, and smooth naive Bayes: the experts of `RiskBayesClassifier`."""
    gaussian = QuadraticDiscriminantAnalysis(
        prior="recommended", covariance_strength=5 * n_features, diagonal_mix=0.3
    )
    return [gaussian, SmoothNB(n_knots=n_knots, alpha=5.0)]
