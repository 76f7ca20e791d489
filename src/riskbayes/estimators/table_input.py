"""Input of estimators that take tables as they are: numbers, strings, dates, missing cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from riskbayes.arrays import Array
from riskbayes.estimators.inputs import NumberInput
from riskbayes.exceptions import listed
from riskbayes.input.files.options import KINDS
from riskbayes.input.schema import Cells, Schema
from riskbayes.markup import shown_as_html, shown_as_text
from riskbayes.preprocessing.columns import shown_number
from riskbayes.preprocessing.encoder import Column, TableEncoder, column_of, left_out_of
from riskbayes.tables import check_plain, names_of, naming_columns, plain, validated_numbers

MARK_LEVEL = 0.01
"""Marks of missing cells count if a test of their independence of the class has a p-value below this."""

HEADS = ("column", "kind", "missing", "distinct", "from", "to", "for example", "read as")
"""The heads of the table that is shown."""

MOST_SHOWN = 60
"""Columns that are shown; `columns` has all of them."""


class TableInput(NumberInput):
    """Tables as they are: numbers, strings, dates, missing cells."""

    schema_decides = True

    def read(self, clf: Any, X: Any, *, reset: bool, learn: bool) -> Any:
        """Return the validated cells of a table; rows of numbers as an array, without a decision about them.

        With `reset` its names are those of the columns from now on. Unless `learn` is true, an estimator that
        was fitted to numbers refuses anything else.
        """
        with naming_columns(clf):
            check_plain(clf, X)
        if not learn and clf._table is None:
            return validated_numbers(clf, X, reset=False)
        X = X if is_frame(X) else with_kinds(X)
        names, numbers = column_names(X), holds_numbers(X)
        names = names if reset else names_of(clf)[0]  # an array to predict has none
        if reset:
            frame = nw.from_native(X, eager_only=True) if is_frame(X) else None
            clf._library = None if frame is None else frame.implementation
        given = given_kinds(clf.columns, names)
        if numbers and learn and not given and self.categorical(clf, names, numbers) is None:
            return validated_numbers(clf, X, reset=reset)
        return Cells.of(validated_table(clf, X, reset), names, given)

    def schema_of(self, clf: Any, cells: Any, whole: bool = True) -> Schema:
        """Return what cells say of the columns."""
        return replace(super().schema_of(clf, cells, whole), library=clf._library)

    def as_read(self, clf: Any, cells: Any, schema: Schema) -> bool:
        """True for numbers, unless the user says that some are categories, or missing cells are marked."""
        return super().as_read(clf, cells, schema) and not self.needs_encoder(clf, schema)

    def decide(self, clf: Any, schema: Schema, more: bool) -> None:
        """Set the encoder of the table by a schema of all rows; None for numbers that need none."""
        super().decide(clf, schema, more)
        set_numbers(clf, schema)
        if self.needs_encoder(clf, schema):
            dropped = left_out_of(given_kinds(clf.columns, list(schema.names)))
            categorical, informative = self.categories_of(clf, schema), clf.missing == "informative"
            clf._table = TableEncoder.decide(schema, categorical, clf.unseen, informative, dropped)
            clf._seen_columns = tuple(clf._table.columns)

    def needs_encoder(self, clf: Any, schema: Schema) -> bool:
        """True if the rows are no numbers that are read as they are."""
        if schema.dtype == "object" or (clf.missing == "informative" and schema.n_missing.any()):
            return True
        return self.categories_of(clf, schema) is not None

    def categories_of(self, clf: Any, schema: Schema) -> list[bool] | None:
        """Return the same mask as `categorical`, by all rows."""
        return self.categorical(clf, list(schema.names), schema.dtype != "object")

    def categorical(self, clf: Any, names: list[str], numbers: bool) -> list[bool] | None:
        """Return a mask of the columns that are read as categories; None if their dtypes decide.

        `numbers` is True for an array of numbers.
        """
        given, told = clf.categorical_features, given_kinds(clf.columns, names)
        named = [told.get(j) == "category" for j in range(len(names))]
        if isinstance(given, str | None):
            return named if any(named) else None
        chosen = chosen_columns(given, names, "categorical_features")
        return [a or b for a, b in zip(chosen, named, strict=True)]

    def decode(self, clf: Any, rows: Array) -> Any:
        """Return encoded rows as a table like that of training: an array, or a frame of the same library."""
        if clf._table is not None or clf._library is None:
            return super().decode(clf, rows)
        columns = dict(zip(names_of(clf)[0], rows.T, strict=True))
        return nw.from_dict(columns, backend=clf._library).to_native()

    def encoder(self, clf: Any) -> TableEncoder | None:
        """Return the encoder of the table; None for numbers that are read as they are."""
        return clf._table

    def category_mask(self, clf: Any) -> Array:
        """Return a mask of the columns that hold categories."""
        kinds = ["number"] * clf.n_features_in_ if clf._table is None else clf._table.kinds
        return np.array(kinds) == "category"

    def check_same(self, clf: Any, other: Any, what: str) -> None:
        """Refuse another estimator whose columns are of other kinds, or have other categories."""
        for name, ours, theirs in zip(names_of(clf)[0], made_of(clf), made_of(other), strict=True):
            if ours != theirs:
                raise ValueError(
                    f"{what} needs columns of the same kinds and categories: {name!r} has other ones. "
                    "Set warm_start=False."
                )


def given_kinds(columns: Mapping[Any, str] | None, names: Sequence[str]) -> dict[int, str]:
    """Return the kinds of columns that the user names, by their places; refuse other columns and kinds."""
    found = {}
    for name, kind in (columns or {}).items():
        j = name if isinstance(name, int) else names.index(name) if name in names else -1
        if not 0 <= j < len(names):
            raise ValueError(f"columns names {name!r}, and X has no such column: it has {listed(names)}.")
        if kind not in KINDS:
            raise ValueError(f"columns[{name!r}] must be one of {', '.join(KINDS)}; got {kind!r}.")
        found[j] = kind
    return found


def set_numbers(clf: Any, schema: Schema) -> None:
    """Set what a classifier knows of a table of numbers, which needs no encoder."""
    clf._table, clf._library, clf._n_rows = None, schema.library, schema.n_rows
    columns = (column_of(column, "number", ("number",)) for column in schema.each_column())
    clf._seen_columns = tuple(columns)


def table_schema(clf: Any) -> TableSchema:
    """What the table was: its columns with their kinds, missing cells and ranges, and the classes."""
    check_is_fitted(clf)
    classes = [str(plain(label)) for label in clf.classes_.tolist()]
    masses = clf._class_masses().tolist()
    return TableSchema(tuple(table_columns(clf)), clf._n_rows, dict(zip(classes, masses, strict=True)))


@dataclass(frozen=True, repr=False)
class TableSchema:
    """The columns of a table, and its classes: what a fit saw, and what it made of them."""

    columns: tuple[Column, ...]
    n_rows: int
    """The number of training rows that have a weight; 0 if a model file of before did not say it."""
    classes: Mapping[str, float]
    """The weight of the rows of each class."""

    def lines(self) -> list[tuple[str, ...]]:
        """Return the cells of the table that is shown, a line for each column."""
        return [line_of(column) for column in self.columns[:MOST_SHOWN]]

    def title(self) -> str:
        """Return a sentence on the rows and the classes."""
        masses = ", ".join(f"{label} ({mass:g})" for label, mass in list(self.classes.items())[:8])
        more = f" and {len(self.classes) - 8} more" if len(self.classes) > 8 else ""
        rows = f"{self.n_rows} rows, " if self.n_rows else ""
        return f"{rows}{len(self.columns)} columns; classes: {masses}{more}"

    def __repr__(self) -> str:
        more = [f"... and {len(self.columns) - MOST_SHOWN} more"] if len(self.columns) > MOST_SHOWN else []
        return "\n".join([shown_as_text(self.title(), HEADS, self.lines()), *more])

    def _repr_html_(self) -> str:
        return shown_as_html(self.title(), HEADS, self.lines())


def line_of(column: Column) -> tuple[str, ...]:
    """Return the cells that show one column."""
    ends = ["" if end is None else shown_number(end, column.kind) for end in (column.low, column.high)]
    return (
        column.name,
        column.kind,
        "" if column.n_missing is None else str(column.n_missing),
        "" if column.n_values is None else str(column.n_values),
        *ends,
        column.example,
        ", ".join([*column.encoded, *([column.reason] if column.reason else [])]),
    )


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
    shape = np.shape(X)
    return [f"x{j}" for j in range(shape[1] if len(shape) == 2 else 0)]


def is_frame(X: Any) -> bool:
    """True for a data frame of any library that narwhals reads."""
    return nw.dependencies.is_into_dataframe(X)


def holds_numbers(X: Any) -> bool:
    """True if X is an array or a data frame of numbers, of which some may be missing."""
    if is_frame(X):
        kinds = nw.from_native(X, eager_only=True).schema.values()
        return all(kind.is_integer() or kind.is_float() for kind in kinds)
    return getattr(getattr(X, "dtype", None), "kind", "f") in "iufbc"


def validated_table(clf: Any, X: Any, reset: bool) -> Any:
    """Return a table that scikit-learn's `validate_data` took; columns of a data frame keep their types."""
    if not is_frame(X):
        return validate_data(clf, X, reset=reset, dtype=None, ensure_all_finite=False)
    validate_data(clf, X, reset=reset, skip_check_array=True)
    check_array(np.broadcast_to(False, X.shape), estimator=clf)  # refuses empty tables
    return X


def with_kinds(X: Any) -> Array:
    """Return a list of rows as an array of numbers, or of objects if it holds anything else."""
    if isinstance(X, np.ndarray) or hasattr(X, "shape"):
        return X
    try:
        found = np.asarray(X)
        return found if found.dtype.kind in "iufbc" else np.array(X, dtype=object)
    except ValueError:  # rows of different lengths: validation says so
        return X


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


def table_columns(clf: Any) -> list[Column]:
    """What became of each column of the table."""
    if clf._seen_columns:
        return list(clf._seen_columns)
    if clf._table is not None:  # of a model file of before
        return clf._table.columns
    return [Column(name, "number", ("number",)) for name in names_of(clf)[0]]


def made_of(clf: Any) -> list[tuple]:
    """Return for each column of the table the encoded columns that were made of it, and its categories."""
    columns = table_columns(clf)
    known = [()] * len(columns) if clf._table is None else [r.categories for r in clf._table.readers]
    return [(column.encoded, own) for column, own in zip(columns, known, strict=True)]
