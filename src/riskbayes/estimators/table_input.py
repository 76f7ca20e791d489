"""Input of estimators that take tables as they are: numbers, strings, dates, missing cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

import narwhals as nw
import numpy as np
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_array, validate_data

from riskbayes.arrays import Array, namespace
from riskbayes.estimators.base import BaseGenerativeClassifier
from riskbayes.onnx_export.columns import Columns
from riskbayes.onnx_export.inputs import columns_of_table
from riskbayes.preprocessing.columns import Column
from riskbayes.preprocessing.encoder import TableEncoder, decoded
from riskbayes.tables import check_plain, names_of, naming_columns, validated_numbers

TABLE_PARAMETERS: dict = {
    "categorical_features": ["array-like", StrOptions({"from_dtype"}), None],
    "missing": [StrOptions({"ignore", "informative"})],
    "unseen": [StrOptions({"missing", "other", "error"})],
}
"""Constraints of the parameters that `read_table` reads."""


MARK_LEVEL = 0.01
"""Marks of missing cells count if a test of their independence of the class has a p-value below this."""


class TableInput(BaseGenerativeClassifier):
    """Base class of estimators that take tables as they are."""

    _parameter_constraints: ClassVar[dict] = {
        **BaseGenerativeClassifier._parameter_constraints,
        **TABLE_PARAMETERS,
    }

    _takes_missing = True
    _table: TableEncoder | None
    """The encoder of the table; None if the table was an array of numbers, which needs none."""
    categorical_features: Any
    missing: str
    unseen: str

    def _encode(self, X: Any, *, reset: bool, learn: bool) -> Array:
        X = read_table(self, X, reset=reset, choose=self._categorical, learn=learn)
        if reset:
            self._row_dtype = "float32" if X.dtype == namespace(X).float32 else "float64"
        return X

    def _categorical(self, names: list[str], numbers: bool) -> list[bool] | None:
        """Return a mask of the columns that are read as categories; None if their dtypes decide.

        `numbers` is True for an array of numbers.
        """
        return categorical_mask(self, names)

    @property
    def _encoder_of_table(self) -> TableEncoder | None:
        return self._table

    def _value_name(self, column: int, value: Any) -> str:
        if self._table is None:
            return super()._value_name(column, value)
        return value_name(self._table, column, value)

    @property
    def _category_columns(self) -> Array:
        kinds = ["number"] * self.n_features_in_ if self._table is None else self._table.kinds
        return np.array(kinds) == "category"

    def _onnx_columns(self) -> Columns:
        return onnx_columns(self)

    def _decode(self, X: Array) -> Any:
        return X if self._table is None else self._table.decode(X)

    def _check_same_columns(self, other: Self, what: str) -> None:
        super()._check_same_columns(other, what)
        names = column_names_of(self)
        for j, (ours, theirs) in enumerate(zip(made_of(self), made_of(other), strict=True)):
            if ours != theirs:
                raise ValueError(
                    f"{what} needs columns of the same kinds and categories: {names[j]!r} has other ones. "
                    "Set warm_start=False."
                )

    @property
    def columns_(self) -> list[Column]:
        """What became of each column of the table."""
        return columns_read(self)

    @property
    def _encoded_names(self) -> list[str] | None:
        return None if getattr(self, "_table", None) is None else self._table.names  # type: ignore[union-attr]


Choose = Callable[[list[str], bool], list[bool] | None]
"""The method `_categorical` of an estimator."""


def read_table(
    estimator: Any, X: Any, *, reset: bool, choose: Choose | None = None, learn: bool = False
) -> Array:
    """Return the validated rows of a table as an array of numbers, codes and NaN.

    With `reset` the kinds of the columns are learned from these rows and stored as `estimator._table`; it is
    None for a table of numbers, which is read as it is. With `learn` alone new categories are added to it.
    """
    with naming_columns(estimator):
        check_plain(estimator, X)
    if not reset and estimator._table is None:
        return validated_numbers(estimator, X, reset=False)
    names, numbers, categorical = column_names(X), holds_numbers(X), None
    if reset:
        estimator._table = None
        categorical = choose(names, numbers) if choose else categorical_mask(estimator, names)
        if numbers and categorical is None:
            found = validated_numbers(estimator, X)
            if estimator.missing == "ignore" or not has_nan(found):
                return found
    if is_frame(X):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        check_array(np.broadcast_to(False, X.shape), estimator=estimator)  # refuses empty tables
    else:
        X = validate_data(estimator, with_kinds(X), reset=reset, dtype=None, ensure_all_finite=False)
    if not reset and learn:
        estimator._table, found = estimator._table.extended(X)
        return found
    if not reset:
        return estimator._table.encode(X)
    informative = estimator.missing == "informative"
    estimator._table, found = TableEncoder.learn(X, names, categorical, estimator.unseen, informative)
    return found


def value_name(encoder: TableEncoder, column: int, value: Any) -> str:
    """Return the category of a code in an encoded column, or a number or date, as the user wrote it."""
    j, part = encoder.encoded[column]
    reader = encoder.readers[j]
    if part == "category" and value < len(reader.categories):
        return str(reader.categories[int(value)])
    if part == "number" and isinstance(value, float):
        value = decoded(reader, np.array([value]), np.array([False]))[0]
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def column_names(X: Any) -> list[str]:
    """Return the names of a data frame's columns, or names by number for an array."""
    if is_frame(X):
        names = [str(name) for name in X.columns] if hasattr(X, "loc") else None  # pandas allows duplicates
        if names is not None and len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(
                f"X has {names.count(twice)} columns named {twice!r}. Rename or drop all but one."
            )
        return [str(name) for name in nw.from_native(X, eager_only=True).columns]
    shape = np.shape(with_kinds(X))
    return [f"x{j}" for j in range(shape[1] if len(shape) == 2 else 0)]


def is_frame(X: Any) -> bool:
    """True for a data frame of any library that narwhals reads."""
    return nw.dependencies.is_into_dataframe(X)


def holds_numbers(X: Any) -> bool:
    """True if X is an array of numbers, or a data frame of numbers without missing cells."""
    if is_frame(X):
        columns = list(nw.from_native(X, eager_only=True).iter_columns())
        return all(c.dtype.is_numeric() and not c.null_count() and not has_nans(c) for c in columns)
    kind = getattr(X.dtype, "kind", "f") if hasattr(X, "dtype") else with_kinds(X).dtype.kind
    return kind in "iufbc"


def has_nans(column: nw.Series) -> bool:
    """True if a column of numbers holds NaN; only floating-point numbers can."""
    return column.dtype.is_float() and bool(column.is_nan().any())


def has_nan(X: Array) -> bool:
    """True if a cell of the array is missing."""
    return bool(np.isnan(float(namespace(X).sum(X))))


def with_kinds(X: Any) -> Array:
    """Return a list of rows as an array of numbers, or of objects if it holds anything else."""
    if isinstance(X, np.ndarray) or hasattr(X, "shape"):
        return X
    try:
        found = np.asarray(X)
        return found if found.dtype.kind in "iufbc" else np.array(X, dtype=object)
    except ValueError:  # rows of different lengths: validation says so
        return X


def categorical_mask(estimator: Any, names: list[str]) -> list[bool] | None:
    """Return a mask of the estimator's `categorical_features`; None if the dtypes decide."""
    given = estimator.categorical_features
    return None if isinstance(given, str | None) else chosen_columns(given, names, "categorical_features")


def chosen_columns(given: Any, names: list[str], what: str) -> list[bool]:
    """Return a mask of columns given by names, by indices or as a mask; messages call the choice `what`."""
    chosen = np.asarray(given)
    if chosen.dtype.kind == "b":
        if chosen.shape != (len(names),):
            raise ValueError(
                f"{what} as a mask must have one entry for each of the {len(names)} columns; got "
                f"{len(chosen)}."
            )
        return chosen.tolist()
    if chosen.dtype.kind in "UO":
        wanted, known = set(chosen.tolist()), set(names)
        for name in chosen.tolist():
            if name not in known:
                raise ValueError(f"{what}: {name!r} is no column of X.")
        return [name in wanted for name in names]
    if chosen.size and (chosen.dtype.kind not in "iu" or chosen.min() < 0 or chosen.max() >= len(names)):
        raise ValueError(
            f"{what} must be names, a mask, or indices between 0 and {len(names) - 1}; got {given!r}."
        )
    return np.isin(np.arange(len(names)), chosen).tolist()


def columns_read(estimator: Any) -> list[Column]:
    """Return what became of each column of the table that an estimator was fitted to."""
    if estimator._table is not None:
        return estimator._table.columns
    return [Column(name, "number", ("number",)) for name in column_names_of(estimator)]


def column_names_of(estimator: Any) -> list[str]:
    """Return the names of the columns that an estimator was fitted to, or names by number."""
    return names_of(estimator)[0]


def onnx_columns(estimator: Any) -> Columns:
    """Return what the encoded columns of an estimator of tables are made of, for `to_onnx`."""
    names, named = names_of(estimator)
    return (
        Columns.numbers(names, named)
        if estimator._table is None
        else columns_of_table(estimator._table, named)
    )


def made_of(estimator: Any) -> list[tuple]:
    """Return for each column of the table the encoded columns that were made of it, and its categories."""
    columns = columns_read(estimator)
    if estimator._table is None:
        return [(column.encoded, ()) for column in columns]
    pairs = zip(columns, estimator._table.readers, strict=True)
    return [(column.encoded, reader.categories) for column, reader in pairs]
