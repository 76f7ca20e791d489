"""Validation of tables of numbers; its errors name the column and the value that is not a number."""

from __future__ import annotations

import datetime
import math
import reprlib
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import InvalidOperation
from importlib.util import find_spec
from typing import Any
from unicodedata import normalize

import narwhals as nw
import numpy as np
from scipy.sparse import issparse
from sklearn.base import is_classifier
from sklearn.utils._array_api import get_namespace
from sklearn.utils.validation import validate_data

from riskbayes.arrays import Array, namespace, sum_of, to_numpy
from riskbayes.exceptions import ColumnError

A_PERIOD = (
    ", a period of time. Make it a date, which MixedNB and RiskBayesClassifier take, by `.dt.to_timestamp()` "
    "or a string by `.astype(str)`."
)

AS_NUMBERS = "Turn dates into numbers, such as days since one of them."


def validated_numbers(estimator: Any, X: Any, **options: Any) -> Any:
    """Apply scikit-learn's `validate_data` to a table of finite numbers.

    An estimator whose `_takes_missing` is True may have NaN for missing cells. If a cell is not a number, the
    error names the column and the value, and says which estimator takes it.
    """
    with naming_columns(estimator):
        kinds: Any = [np.float64, np.float32]
        if type(X) is not np.ndarray or X.dtype.kind not in "fiub":
            check_plain(estimator, X)
            check_no_dates(X)
            xp, _ = get_namespace(X)
            kinds = [xp.float64, xp.float32]
        try:
            found = validate_data(estimator, X, dtype=kinds, ensure_all_finite=False, **options)
        except (TypeError, ValueError, OverflowError) as error:
            cell = first_non_number(X)
            if cell is None or "feature" in str(error):  # the names or the number of columns are wrong
                raise
            raise no_number(estimator, *cell) from error
        if not math.isfinite(total_of(found)):
            check_finite_columns(estimator, found)
    return found


def total_of(X: Array) -> float:
    """Return the sum of all cells: if it is finite, all of them are, which takes no mask to prove."""
    with np.errstate(over="ignore", invalid="ignore"):
        return float(sum_of(X.data if issparse(X) else X))


@contextmanager
def naming_columns(estimator: Any) -> Iterator[None]:
    """Add the name of the column, if the estimator knows it, to a ColumnError that the block raises."""
    try:
        yield
    except ColumnError as error:
        raise error.named(encoded_names(estimator)) from None


def encoded_names(estimator: Any) -> Any:
    """Return the names of the columns that models read: those of the table, or of what was made of it."""
    names = getattr(estimator, "_encoded_names", None)
    return getattr(estimator, "feature_names_in_", None) if names is None else names


def names_of(estimator: Any) -> tuple[list[str], bool]:
    """Return the names of the columns of the table that an estimator was fitted to, and whether it had names.

    Those of an array are x0, x1, and so on.
    """
    names = getattr(estimator, "feature_names_in_", None)
    found = [f"x{j}" for j in range(estimator.n_features_in_)] if names is None else list(map(str, names))
    return found, names is not None


def check_finite_columns(estimator: Any, X: Array) -> None:
    """Raise an error that names the first column with an infinity, or a NaN if the estimator takes none.

    Cells of a sparse table cannot be missing.
    """
    takes_missing = getattr(estimator, "_takes_missing", False) and not issparse(X)
    on_host = issparse(X) or isinstance(X, np.ndarray)
    bad = first_bad_column(X, namespace(X).isinf if takes_missing and on_host else is_not_finite)
    if bad is None:
        return
    j, found = bad
    value = "NaN" if np.isnan(found[0]) else "infinity"
    where = f"{column_name(estimator, j)} ({found.size} such values)"
    if issparse(X) and value == "NaN":
        raise ValueError(
            f"Input X contains NaN in {where}, and cells of a sparse table cannot be missing: drop the rows, "
            "fill them in, or pass a dense array."
        )
    if takes_missing and value == "NaN":
        raise ValueError(
            f"Input X contains NaN in {where}, and missing cells are read from NumPy arrays only. Move X to "
            "the host, or fill them in."
        )
    raise not_finite(estimator, where, value)


def check_non_negative(estimator: Any, X: Array) -> None:
    """Raise an error that names the first column with a value below zero."""
    values = X.data if issparse(X) else X
    if 0 in values.shape or not bool(namespace(values).any(values < 0)):
        return
    bad = first_bad_column(X, lambda x: x < 0)
    assert bad is not None
    j, found = bad
    raise ValueError(
        f"Negative values in data passed to {type(estimator).__name__} (input X): "
        f"{column_name(estimator, j)} holds {found[0]:g}, and counts are never negative. Drop the column, or "
        "shift it."
    )


def check_binary(X: Array) -> None:
    """Raise an error that names the first column with a value that is neither 0 nor 1 nor missing."""
    values = X.data if issparse(X) else X
    if 0 in values.shape or not bool(namespace(values).any((values != 0) & (values != 1))):
        return
    bad = first_bad_column(X, lambda x: (x != 0) & (x != 1) & (x == x))
    if bad is not None:
        raise ColumnError(bad[0], f"holds {bad[1][0]:g}, neither 0 nor 1: set binarize to a threshold.")


def first_bad_column(X: Array, is_bad: Any) -> tuple[int, Array] | None:
    """Return the first column with cells for which `is_bad` is True, and these values; None if there is none.

    Of a sparse table only stored values are asked.
    """
    if issparse(X):
        mask = is_bad(X.data)
        columns = X.indices[mask]
        j = int(columns.min(initial=X.shape[1]))
        return (j, X.data[mask][columns == j]) if columns.size else None
    for j in range(X.shape[1]):
        column = X[:, j]
        found = to_numpy(column[is_bad(column)])
        if found.size:
            return j, found
    return None


def is_not_finite(x: Array) -> Array:
    """Return a mask of the entries that are NaN or infinite."""
    return ~namespace(x).isfinite(x)


def not_finite(estimator: Any, where: str, value: str) -> ValueError:
    """Return the error for NaN or infinity."""
    if getattr(estimator, "_takes_missing", False):
        return ValueError(
            f"Input X contains {value} in {where}. Replace it by a number, or by NaN for a missing cell."
        )
    return ValueError(
        f"Input X contains {value} in {where}. {type(estimator).__name__} does not accept missing values "
        "encoded as NaN, nor infinity: drop the rows, or fill them in, for instance by "
        "sklearn.impute.SimpleImputer."
    )


def column_name(estimator: Any, j: int) -> str:
    """Return column j for a message: by its feature name, or by its index if there is none."""
    names = getattr(estimator, "feature_names_in_", None)
    return f"column {j}" if names is None else f"column {str(names[j])!r}"


def check_plain(estimator: Any, X: Any) -> None:
    """Refuse lazy frames, complex numbers, masked values, and arrays of libraries without support."""
    foreign = not isinstance(X, np.ndarray) and hasattr(X, "__dlpack__") and get_namespace(X)[1]
    if foreign and is_classifier(estimator) and not estimator.__sklearn_tags__().array_api_support:
        raise TypeError(
            f"{type(estimator).__name__} takes NumPy arrays, not those of {type(X).__module__}: move X to "
            "the host, or choose an estimator whose tags have array_api_support."
        )
    if type(X).__name__ == "LazyFrame":
        raise TypeError(f"{type(estimator).__name__} takes tables, and X is a LazyFrame: collect it first.")
    if any("complex" in str(kind) for kind in column_dtypes(X)):
        raise ValueError(
            f"Complex data not supported: {type(estimator).__name__} takes real numbers. Pass real and "
            "imaginary parts as columns of their own."
        )
    if isinstance(X, np.ma.MaskedArray) and X.ndim == 2 and np.ma.is_masked(X):
        masked = np.ma.getmaskarray(X).sum(axis=0)
        j = int(np.argmax(masked > 0))
        raise ColumnError(
            j, f"has {masked[j]} masked values, and masks are not read. Fill them in, or drop the rows."
        )


def check_no_dates(X: Any) -> None:
    """Refuse dates and durations, which NumPy would cast to numbers in an arbitrary unit."""
    for j, kind in enumerate(column_dtypes(X)):
        polars = getattr(kind, "is_temporal", None)
        if getattr(kind, "kind", "") in ("m", "M") or (polars is not None and polars()):
            raise ColumnError(j, f"holds dates or durations ({kind}). {AS_NUMBERS}", own_name(X, j))


def column_dtypes(X: Any) -> list:
    """Return the dtypes of a data frame's columns, or that of an array in a list; else an empty list."""
    if hasattr(X, "dtypes"):
        return list(X.dtypes)
    if hasattr(X, "columns"):  # Arrow
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        return [] if frame is X else list(frame.schema.values())
    return [X.dtype] if hasattr(X, "dtype") else []


def own_name(X: Any, j: int) -> str | None:
    """Return the name of column j in a data frame X, if it is a string; else None."""
    names = getattr(X, "column_names", getattr(X, "columns", None))  # Arrow's columns are arrays
    name = None if names is None else names[j]
    return name if isinstance(name, str) else None


def frame_of(columns: dict[str, Array], table: Any = None) -> Any:
    """Return arrays of equal length as a data frame of the library of `table`.

    If `table` is no data frame: of pandas, or else polars; where neither is installed, the dict itself.
    """
    if hasattr(table, "columns"):
        backend: Any = nw.get_native_namespace(nw.from_native(table, eager_only=True))
    else:
        backend = next((name for name in ("pandas", "polars") if find_spec(name) is not None), None)
    return columns if backend is None else nw.from_dict(columns, backend=backend).to_native()


def cell_values(X: Any) -> Array:
    """Return the values of a table as an array, of objects if columns of a data frame are no numbers."""
    if issparse(X):
        return X.toarray()
    if hasattr(X, "columns"):
        frame = nw.from_native(X, eager_only=True)
        if all(kind.is_numeric() for kind in frame.schema.values()):
            return frame.to_numpy()
        found = np.empty(frame.shape, dtype=object)
        for j, column in enumerate(frame.iter_columns()):
            found[:, j] = column.to_list()
        return found
    return to_numpy(X) if hasattr(X, "__dlpack__") else np.asarray(X)


def first_non_number(X: Any) -> tuple[int, str | None, Any] | None:
    """Return the index, the name and the value of the first cell that is not a number; None if all are."""
    for j, column in enumerate(cells(X)):
        for value in column:
            try:
                float(value)
            except (TypeError, ValueError, OverflowError):
                if value is not None:  # None is read as NaN
                    return j, own_name(X, j), plain(value)
    return None


def cells(X: Any) -> Iterator[list]:
    """Yield the columns of a table as lists; columns of numbers are empty lists, or not listed at all."""
    if hasattr(X, "columns"):
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        for column in frame.iter_columns() if frame is not X else ():
            yield [] if column.dtype.is_numeric() else column.to_list()
        return
    if hasattr(X, "dtype") and getattr(X.dtype, "kind", None) not in ("O", "U", "S", "T"):
        return
    try:
        table = np.asarray(X, dtype=object)
    except ValueError:  # rows of different lengths
        return
    yield from table.T.tolist() if table.ndim == 2 else ()


def no_number(estimator: Any, j: int, name: str | None, value: Any) -> Exception:
    """Return the error for a cell that is not a number: what it is, and what to do."""
    kind, holds = type(estimator).__name__, f"holds {shown(value)}"
    if is_missing(value) and getattr(estimator, "_takes_missing", False):
        return ColumnError(j, f"{holds}: NaN stands for a missing number. Pass NaN.", name)
    if is_missing(value):
        return not_finite(estimator, column_name(estimator, j) if name is None else f"column {name!r}", "NaN")
    if isinstance(value, str | bytes):
        return ColumnError(
            j,
            f"{holds}, and {kind} takes numbers. MixedNB and RiskBayesClassifier take tables of numbers and "
            "strings, CategoricalNB takes strings; or code the column, for instance by "
            "sklearn.preprocessing.OneHotEncoder.",
            name,
        )
    if isinstance(value, datetime.date | datetime.time | datetime.timedelta):
        return ColumnError(j, f"{holds}. {AS_NUMBERS}", name)
    if is_period(value):
        return ColumnError(j, f"{holds}{A_PERIOD}", name)
    if isinstance(value, int):
        return ColumnError(j, f"{holds}, too large for a floating-point number. Scale the column.", name)
    error = ColumnError(
        j, f"{holds}: each argument must be a number, or a string that reads as a number.", name
    )
    return TypeError(str(error.named(getattr(estimator, "feature_names_in_", None))))


def is_period(value: Any) -> bool:
    """True for a period of pandas, such as a month, which is neither a date nor a number."""
    return type(value).__name__ == "Period"


def shown(value: Any) -> str:
    """Return the repr of a user's value, with the middle cut out if it is long."""
    short = reprlib.Repr()
    short.maxstring = short.maxother = short.maxlong = 60
    return short.repr(plain(value))


def is_missing(value: Any) -> bool:
    """True for None, NaN and the missing values of data frames, none of which equals itself."""
    try:
        return value is None or not bool(value == value)
    except (TypeError, InvalidOperation):  # pandas.NA; a signalling NaN of a Decimal
        return True
    except ValueError:  # an array, whose type is refused later
        return False


def plain(value: Any) -> Any:
    """Return a NumPy scalar as a Python number or string; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def composed(values: list) -> list:
    """Return values whose strings are in Unicode's form NFC: what reads the same is the same category."""
    if all(value.isascii() for value in set(values) if isinstance(value, str)):
        return values
    return [normalize("NFC", value) if isinstance(value, str) else value for value in values]
