"""Input of estimators that take tables as they are: numbers, strings, dates, missing cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import narwhals as nw
import numpy as np
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from riskbayes.arrays import Array
from riskbayes.estimators.base import BaseGenerativeClassifier
from riskbayes.estimators.fitted_checks import masses_of
from riskbayes.input.files.options import KINDS
from riskbayes.input.schema import Cells, Schema
from riskbayes.input.table_schema import TableSchema
from riskbayes.onnx_export.columns import Columns
from riskbayes.onnx_export.inputs import columns_of_table
from riskbayes.preprocessing.columns import Column
from riskbayes.preprocessing.encoder import TableEncoder, decoded, left_out_of
from riskbayes.tables import check_plain, names_of, naming_columns, plain, validated_numbers

TABLE_PARAMETERS: dict = {
    "categorical_features": ["array-like", StrOptions({"from_dtype"}), None],
    "columns": [dict, None],
    "missing": [StrOptions({"ignore", "informative"})],
    "unseen": [StrOptions({"missing", "other", "error"})],
}
"""Constraints of the parameters by which tables are read."""


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
    """The encoder of the table; None for rows of numbers, which need none."""
    _seen_columns: tuple[Column, ...] = ()
    """What became of each column of the table."""
    _n_rows: int = 0
    """The number of training rows that have a weight."""
    _library: Any = None
    """The library of the data frame that was fitted; None for an array."""
    categorical_features: Any
    columns: Any
    missing: str
    unseen: str

    _schema_decides = True

    def _read(self, X: Any, *, reset: bool, learn: bool) -> Any:
        return read_cells(self, X, reset=reset, learn=learn)

    def _schema_of(self, cells: Any, whole: bool = True) -> Schema:
        return schema_of(self, cells)

    def _decide(self, schema: Schema, more: bool) -> None:
        super()._decide(schema, more)
        decide_table(self, schema)

    def _encode(self, cells: Any) -> Array:
        return encode_cells(self, cells)

    def _categorical(self, names: list[str], numbers: bool) -> list[bool] | None:
        """Return a mask of the columns that are read as categories; None if their dtypes decide.

        `numbers` is True for an array of numbers.
        """
        return categorical_mask(self, names)

    def _class_masses(self) -> Array:
        return masses_of(self)

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
        return decode_rows(self, X)

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
    def schema_(self) -> TableSchema:
        """What the table was: its columns with their kinds, missing cells and ranges, and the classes."""
        return table_schema(self)

    @property
    def columns_(self) -> list[Column]:
        """What became of each column of the table."""
        return columns_read(self)

    @property
    def _encoded_names(self) -> list[str] | None:
        return None if getattr(self, "_table", None) is None else self._table.names  # type: ignore[union-attr]


def read_cells(estimator: Any, X: Any, *, reset: bool, learn: bool) -> Any:
    """Return the validated cells of a table; rows of numbers as an array, without a decision about them.

    With `reset` its names are those of the columns from now on. Unless `learn` is true, an estimator that was
    fitted to numbers refuses anything else.
    """
    with naming_columns(estimator):
        check_plain(estimator, X)
    if not learn and estimator._table is None:
        return validated_numbers(estimator, X, reset=False)
    names, numbers = column_names(X), holds_numbers(X)
    names = names if reset else column_names_of(estimator)  # an array to predict has none
    if reset:
        frame = nw.from_native(X, eager_only=True) if is_frame(X) else None
        estimator._library = None if frame is None else frame.implementation
    given = given_kinds(estimator.columns, names)
    if numbers and learn and not given and estimator._categorical(names, numbers) is None:
        return validated_numbers(estimator, X, reset=reset)
    if is_frame(X):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        check_array(np.broadcast_to(False, X.shape), estimator=estimator)  # refuses empty tables
    else:
        X = validate_data(estimator, with_kinds(X), reset=reset, dtype=None, ensure_all_finite=False)
    return Cells.of(X, names, given)


def given_kinds(columns: Mapping[Any, str] | None, names: Sequence[str]) -> dict[int, str]:
    """Return the kinds of columns that the user names, by their places; refuse other columns and kinds."""
    found = {}
    for name, kind in (columns or {}).items():
        j = name if isinstance(name, int) else names.index(name) if name in names else -1
        if not 0 <= j < len(names):
            known = ", ".join(map(repr, names[:5])) + (", ..." if names[5:] else "")
            raise ValueError(f"columns names {name!r}, and X has no such column: it has {known}.")
        if kind not in KINDS:
            raise ValueError(f"columns[{name!r}] must be one of {', '.join(KINDS)}; got {kind!r}.")
        found[j] = kind
    return found


def schema_of(estimator: Any, cells: Any) -> Schema:
    """Return what cells that `read_cells` returned say of the columns."""
    names, named = names_of(estimator)
    if isinstance(cells, Cells):
        return Schema.of_cells(cells, names, named)
    return replace(Schema.of_numbers(cells, names if named else None), library=estimator._library)


def decide_table(estimator: Any, schema: Schema) -> None:
    """Set the encoder of the estimator's table by a schema of all rows; None for numbers that need none."""
    numbers = schema.dtype != "object"
    categorical = estimator._categorical(list(schema.names), numbers)
    informative = estimator.missing == "informative"
    set_numbers(estimator, schema)
    dropped = left_out_of(given_kinds(estimator.columns, schema.names))
    if not numbers or categorical is not None or (informative and schema.n_missing.any()):
        estimator._table = TableEncoder.decide(schema, categorical, estimator.unseen, informative, dropped)
        estimator._seen_columns = tuple(estimator._table.columns)


def set_numbers(estimator: Any, schema: Schema) -> None:
    """Set what an estimator knows of a table of numbers, which needs no encoder."""
    estimator._table, estimator._library, estimator._n_rows = None, schema.library, schema.n_rows
    estimator._seen_columns = number_columns(schema)


def number_columns(schema: Schema) -> tuple[Column, ...]:
    """Return the columns of rows of numbers, which are read as they are."""
    ends = zip(schema.low.tolist(), schema.high.tolist(), strict=True)
    pairs = zip(schema.names, schema.n_missing.tolist(), ends, strict=True)
    return tuple(
        Column(name, "number", ("number",), "", gone, None, *((low, high) if low <= high else (None, None)))
        for name, gone, (low, high) in pairs
    )


def table_schema(estimator: Any) -> TableSchema:
    """Return what the table was that an estimator was fitted to."""
    check_is_fitted(estimator)
    classes = [str(plain(label)) for label in estimator.classes_.tolist()]
    masses = estimator._class_masses().tolist()
    columns = tuple(estimator.columns_)
    return TableSchema(columns, estimator._n_rows, dict(zip(classes, masses, strict=True)))


def decode_rows(estimator: Any, rows: Array) -> Any:
    """Return encoded rows as a table like that of training: an array, or a data frame of the same library."""
    if estimator._table is not None:
        return estimator._table.decode(rows)
    if estimator._library is None:
        return rows
    columns = dict(zip(column_names_of(estimator), rows.T, strict=True))
    return nw.from_dict(columns, backend=estimator._library).to_native()


def encode_cells(estimator: Any, cells: Any) -> Array:
    """Return cells as an array of numbers, codes and NaN."""
    table = estimator._table
    if isinstance(cells, Cells):
        return table.stack(cells.values)
    return cells if table is None else table.encode(cells)


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
    """True if X is an array or a data frame of numbers, of which some may be missing."""
    if is_frame(X):
        kinds = nw.from_native(X, eager_only=True).schema.values()
        return all(kind.is_integer() or kind.is_float() for kind in kinds)
    kind = getattr(X.dtype, "kind", "f") if hasattr(X, "dtype") else with_kinds(X).dtype.kind
    return kind in "iufbc"


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
    """Return a mask of the columns that the user names as categories; None if the dtypes decide."""
    given, told = estimator.categorical_features, given_kinds(estimator.columns, names)
    named = [told.get(j) == "category" for j in range(len(names))]
    if isinstance(given, str | None):
        return named if any(named) else None
    chosen = chosen_columns(given, names, "categorical_features")
    return [a or b for a, b in zip(chosen, named, strict=True)]


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
    if estimator._seen_columns:
        return list(estimator._seen_columns)
    if estimator._table is not None:  # of a model file of before
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
