"""Encode columns of categories as integer codes, and discretise continuous columns by k-means."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Self

import narwhals as nw
import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import KBinsDiscretizer
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from riskbayes.arrays import Array, astype, namespace, to_device, to_numpy, to_widest, widest_float
from riskbayes.exceptions import warn
from riskbayes.tables import is_missing, shown, validated_numbers

UNSEEN = 2**31 - 1
"""The code of a value that was not seen in training; larger than that of any category."""

LARGEST = 2**62
"""Whole numbers beyond this, which a float can hold, are clipped to it."""


@dataclass(frozen=True)
class ColumnCodes:
    """The encoding of one column: a value's code is its position in `categories`."""

    name: str
    categories: tuple[Any, ...] | None
    """The values in the order of their codes; None if the column holds codes already."""
    declared: int = 0
    """How many of the first categories the column's dtype declares, so that they need no row."""

    @property
    def least(self) -> int:
        """Number of known values; 0 if the column holds codes."""
        return 0 if self.categories is None else len(self.categories)

    @property
    def is_open(self) -> bool:
        """True if all cells were missing so far: the first values decide how the column is encoded."""
        return self.categories == ()

    def extended(self, values: list, *, declared: bool = False) -> ColumnCodes:
        """Return this encoding with further categories after the known ones."""
        if self.categories is None:
            return self
        codes = {value: code for code, value in enumerate(dict.fromkeys([*self.categories, *values]))}
        known = max([self.declared, *(codes[value] + 1 for value in values if declared)])
        return ColumnCodes(self.name, tuple(codes), known)

    def encode(self, values: Array, *, learn: bool) -> Array:
        """Return the codes of values; `UNSEEN` for those that were not seen in training."""
        if self.categories is None:
            if values.dtype.kind not in "iub":
                raise ValueError(
                    f"{self.name} held integer codes in training and now holds {values.tolist()[0]!r}."
                )
            beyond = (values < 0) | (values >= UNSEEN)
            if learn and beyond.any():
                raise ValueError(
                    f"{self.name} holds {values[beyond][0]}: integer codes are counted from 0 to at most "
                    f"{UNSEEN - 1}. Pass such values as strings."
                )
            return np.where(beyond, UNSEEN, values.astype(np.int64)) if beyond.any() else values
        found, inverse = distinct(values)
        if found and self.categories and isinstance(found[0], str) != isinstance(self.categories[0], str):
            raise ValueError(
                f"{self.name} held values such as {self.categories[0]!r} in training and now {found[0]!r}: "
                "strings and numbers are different categories."
            )
        position = {value: code for code, value in enumerate(self.categories)}
        codes = np.array([position.get(value, UNSEEN) for value in found], dtype=np.int64)
        return codes.astype(np.min_scalar_type(int(codes.max(initial=0))))[inverse]


class CategoryEncoder:
    """The encodings of a table's columns; immutable, so that a refused batch changes nothing.

    Whole numbers from 0 are codes already, as in scikit-learn. Columns of strings, booleans or negative
    numbers are coded by value; categorical columns of a data frame keep all categories that they declare.
    NaN, None, null, NA, NaT and empty strings are missing cells.
    """

    def __init__(self, columns: tuple[ColumnCodes, ...] = ()):
        self.columns = columns

    @property
    def least_categories(self) -> Array:
        """Number of categories that each column declares, which it has in every fold."""
        return np.array([column.declared for column in self.columns], dtype=np.int64)

    def encode(self, X: Any, names: list[str], *, learn: bool) -> tuple[Array, CategoryEncoder]:
        """Return codes of shape (m, n), and the encoder; with `learn` it includes new values.

        Missing cells are NaN, and the codes then floats.
        """
        if isinstance(X, np.ndarray) and X.dtype.kind in "iuf":
            X = whole_numbers(X, names)
            plain = self.columns or tuple(ColumnCodes(name, None) for name in names)
            usual = np.fmin.reduce(X, axis=None, initial=0) >= 0
            usual = usual and np.fmax.reduce(X, axis=None, initial=0) < UNSEEN
            if usual and all(column.categories is None for column in plain):
                return X, CategoryEncoder(plain)
        codes, columns = [], []
        for j, (values, declared) in enumerate(table_columns(X)):
            holes = missing_entries(values)
            values = values if holes is None else values[~holes]
            values = values if declared is not None else typed(values, names[j])
            column = self.columns[j] if self.columns else ColumnCodes(names[j], ())
            if learn and column.is_open:
                column = start_column(names[j], values, declared)
            if learn:
                column = column.extended(declared or [], declared=True).extended(distinct(values)[0])
            columns.append(column)
            found = column.encode(values, learn=learn)
            if holes is not None:
                present, found = found, np.full(len(holes), np.nan)
                found[~holes] = present
            codes.append(found)
        return np.stack(codes, axis=1), CategoryEncoder(tuple(columns))

    def decode(self, codes: Array) -> Array:
        """Return the values of codes; of dtype object if the columns differ in kind."""
        if all(column.categories is None for column in self.columns):
            return codes
        columns = [
            codes[:, j] if column.categories is None else as_array(column.categories or (None,))[codes[:, j]]
            for j, column in enumerate(self.columns)
        ]
        if len({values.dtype.kind for values in columns}) > 1:
            columns = [values.astype(object) for values in columns]
        return np.stack(columns, axis=1)


def as_array(values: Sequence) -> Array:
    """Return a one-dimensional array with one entry for each value, whatever its type."""
    plain = np.array(values) if all(isinstance(v, str | int | float) for v in values) else None
    if plain is not None and plain.ndim == 1:
        return plain
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    return objects


def distinct(values: Array) -> tuple[list, Array]:
    """Return the distinct values, sorted if they can be, and the index of each entry among them."""
    try:
        found, inverse = np.unique(values, return_inverse=True)
        return found.tolist(), inverse
    except TypeError:  # objects without an order
        first = {value: code for code, value in enumerate(dict.fromkeys(values.tolist()))}
        return list(first), np.array([first[value] for value in values.tolist()])


def start_column(name: str, values: Array, declared: list | None) -> ColumnCodes:
    """Return the encoding of a column, from its first values and its declared categories."""
    if not len(values) and not declared:
        return ColumnCodes(name, ())
    if declared is not None:
        return ColumnCodes(name, tuple(declared), len(declared))
    if values.dtype.kind == "b":
        return ColumnCodes(name, (False, True), 2)
    if values.dtype.kind in "iu" and values.min(initial=0) >= 0:
        return ColumnCodes(name, None)
    return ColumnCodes(name, ())


def typed(values: Array, name: str) -> Array:
    """Return values as an array of whole numbers, booleans or strings; refuse anything else."""
    if values.dtype.kind in "iuf":
        return whole_numbers(values[:, None], [name])[:, 0]
    if values.dtype != object:
        return values
    listed = [value.item() if isinstance(value, np.generic) else value for value in values.tolist()]
    kinds = {type(value) for value in listed}
    if kinds <= {bool}:
        return np.array(listed, dtype=bool)
    if all(issubclass(kind, int | float) for kind in kinds):
        return whole_numbers(np.array(listed, dtype=np.float64)[:, None], [name])[:, 0]
    if all(issubclass(kind, str) for kind in kinds):
        return np.array(listed, dtype=str)
    odd = next((value for value in listed if not isinstance(value, str | int | float)), None)
    if odd is None:
        word, number = (next(v for v in listed if isinstance(v, str) is kind) for kind in (True, False))
        raise TypeError(f"{name} holds {word!r} and {number!r}: strings or numbers, one kind a column.")
    raise TypeError(f"{name} holds {shown(odd)}: each argument must be a string or a number.")


def missing_entries(values: Array) -> Array | None:
    """Return a mask of the missing cells of a column; None if there are none."""
    kind = values.dtype.kind
    if kind == "f":
        found = np.isnan(values)
    elif kind in "mM":
        found = np.isnat(values)
    elif kind in "SU":
        found = values == np.array("", dtype=values.dtype)
    elif kind in "OT":
        found = np.array(
            [is_missing(v) or (isinstance(v, str) and not v) for v in values.tolist()], dtype=bool
        )
    else:
        return None
    return found if found.any() else None


def warn_of_fraction(name: str, value: float) -> None:
    """Warn that a number is not an integer code."""
    warn(
        f"{name} holds {value:g}, which is no integer code; it is cut down to one, as in scikit-learn. Put "
        "riskbayes.preprocessing.KMeansBins before CategoricalNB, or take GaussianNB."
    )


def whole_numbers(X: Array, names: list[str]) -> Array:
    """Return numbers in the smallest integer dtype that holds them; truncate fractions, with a warning.

    With missing cells (NaN) the whole numbers stay floats.
    """
    if X.dtype.kind != "f":
        return X
    holes = False
    for j, name in enumerate(names):
        column = X[:, j]
        if not np.isfinite(column).all():
            if np.isinf(column).any():
                raise ValueError(
                    f"Input X contains infinity in {name}, which is no category. Replace it by a code, or by "
                    "NaN for a missing cell."
                )
            holes = True
    for j, name in enumerate(names):
        broken = (X[:, j] != np.trunc(X[:, j])) & ~np.isnan(X[:, j])
        if broken.any():
            warn_of_fraction(name, X[broken, j][0])
            break
    if holes:
        return np.clip(np.trunc(X, dtype=np.float64), -LARGEST, LARGEST)
    low, high = max(int(X.min(initial=0)), -LARGEST), min(int(X.max(initial=0)), LARGEST)
    smallest = np.promote_types(np.min_scalar_type(low), np.min_scalar_type(high))
    beyond = high == LARGEST or low == -LARGEST
    return np.clip(X, low, high).astype(np.int64) if beyond else X.astype(smallest)


def codes_on_device(X: Array, names: list[str], *, learn: bool) -> Array:
    """Return integer codes, checked on their device; a negative one is `UNSEEN`, or refused with `learn`."""
    xp = namespace(X)
    if xp.isdtype(X.dtype, "real floating"):
        if not math.isfinite(float(xp.sum(X, dtype=widest_float(X)))):
            j = int(xp.argmax(xp.astype(xp.any(~xp.isfinite(X), axis=0), xp.int64)))
            what = "NaN" if bool(xp.any(xp.isnan(X[:, j]))) else "infinity"
            raise ValueError(
                f"Input X contains {what} in {names[j]}: on a device no cell may be missing or infinite. "
                "Pass a NumPy array, in which NaN is a missing cell, or fill them in."
            )
        broken = xp.any(xp.trunc(X) != X, axis=0)
        if bool(xp.any(broken)):
            j = int(xp.argmax(xp.astype(broken, xp.int64)))
            column = X[:, j]
            warn_of_fraction(names[j], float(column[column != xp.trunc(column)][0]))
            X = xp.trunc(X)
    if xp.isdtype(X.dtype, ("bool", "unsigned integer")) or float(xp.min(X)) >= 0:
        return X
    if learn:
        j = int(xp.argmax(xp.astype(xp.any(X < 0, axis=0), xp.int64)))
        raise ValueError(
            f"{names[j]} holds {float(xp.min(X[:, j])):g}: on a device categories are codes from 0. Code the "
            "column, for instance by sklearn.preprocessing.OrdinalEncoder."
        )
    X = X if xp.isdtype(X.dtype, "real floating") else astype(X, xp.int64)  # int8 cannot hold UNSEEN
    return xp.where(X < 0, UNSEEN, X)


def table_columns(X: Any) -> Iterator[tuple[Array, list | None]]:
    """Yield (values, declared categories or None) of each column of an array or a data frame."""
    if isinstance(X, np.ndarray):
        yield from ((X[:, j], None) for j in range(X.shape[1]))
        return
    for column in nw.from_native(X, eager_only=True).iter_columns():
        if isinstance(column.dtype, nw.Categorical | nw.Enum):
            values = column.to_list()
            named = as_array([None if is_missing(value) else value for value in values])
            yield named, [value for value in declared_categories(column) if value != ""]
        elif column.dtype.is_numeric() or (column.dtype == nw.Boolean and not column.null_count()):
            yield column.to_numpy(), None
        else:
            yield np.array(column.to_list(), dtype=object), None


def declared_categories(column: nw.Series) -> list:
    """Return the categories of a categorical column, including those without a row if it declares them."""
    if isinstance(column.dtype, nw.Enum):
        return list(column.dtype.categories)
    categories = getattr(getattr(column.to_native(), "cat", None), "categories", None)  # pandas
    return sorted(column.drop_nulls().unique().to_list()) if categories is None else list(categories)


class KMeansBins(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Discretise each column into bins by k-means.

    The codes are input for :class:`riskbayes.CategoricalNB`. The bins are those of scikit-learn's
    `KBinsDiscretizer(strategy="kmeans")`, at any scale of the column. A column with fewer distinct values
    than bins has one bin for each value. Missing values (NaN) have no part in the bins and stay missing.

    Parameters
    ----------
    n_bins : int, default=5
        The most bins of a column.
    n_jobs : int, default=None
        Number of threads, which find the bins of several columns in parallel. None is one.

    Attributes
    ----------
    bin_edges_ : list of ndarray
        Inner edges of the bins of each column, in its units.
    n_features_in_ : int
        Number of columns.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from riskbayes import CategoricalNB
    >>> from riskbayes.preprocessing import KMeansBins
    >>> X, y = load_iris(return_X_y=True)
    >>> make_pipeline(KMeansBins(), CategoricalNB()).fit(X, y).score(X, y) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_bins": [Interval(Integral, 2, 256, closed="both")],
        "n_jobs": [Integral, None],
    }

    _takes_missing = True

    def __init__(self, n_bins: int = 5, n_jobs: int | None = None):
        self.n_bins = n_bins
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the bins of each column.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows, without any rows that are held out.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The fitted transformer.
        """
        X = validated_numbers(self, X)
        columns = (to_numpy(X[:, j]).astype(np.float64) for j in range(X.shape[1]))
        parallel = Parallel(self.n_jobs, prefer="threads")
        self.bin_edges_ = parallel(delayed(kmeans_edges)(column, self.n_bins) for column in columns)
        return self

    def transform(self, X: Any) -> Array:
        """Return the bin of each value.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        codes : ndarray of uint8, shape (n_samples, n_features)
            Bins from 0. With missing values it is an array of float64, in which these are NaN.
        """
        check_is_fitted(self)
        X = validated_numbers(self, X, reset=False)
        if not isinstance(X, np.ndarray):
            xp = namespace(X)
            # In the dtype of the edges, as NumPy compares: rounded edges would differ.
            columns = [
                xp.searchsorted(to_device(edges, X), xp.asarray(to_widest(X[:, j]), copy=True), side="right")
                for j, edges in enumerate(self.bin_edges_)
            ]
            codes = xp.stack(columns, axis=1)
            holes = xp.isnan(X)
            if bool(xp.any(holes)):
                return xp.where(holes, xp.nan, astype(codes, widest_float(X)))
            return xp.astype(codes, xp.uint8)
        codes, holes = np.empty(X.shape, dtype=np.uint8), np.isnan(X)
        for j, edges in enumerate(self.bin_edges_):
            codes[:, j] = np.searchsorted(edges, X[:, j], side="right")
        return np.where(holes, np.nan, codes) if holes.any() else codes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        tags.input_tags.allow_nan = True
        return tags


def kmeans_edges(column: Array, n_bins: int) -> Array:
    """Return the inner edges of the k-means bins of one column's present values."""
    column = column[~np.isnan(column)]
    distinct = np.unique(column)
    if not len(distinct):
        return distinct
    # KBinsDiscretizer drops bins narrower than 1e-8. A power of two brings the column to a range of about one
    # without touching a digit.
    exponent = range_exponents(column[:, None])[0]
    if len(distinct) <= n_bins:
        scaled = np.ldexp(distinct, -exponent)
        middle = np.ldexp((scaled[1:] + scaled[:-1]) / 2, exponent)
        # Between two adjacent numbers the middle rounds to one of them: the edge must be the upper one.
        return np.where(middle > distinct[:-1], middle, distinct[1:])
    bins = KBinsDiscretizer(n_bins, encode="ordinal", strategy="kmeans", subsample=None)
    with warnings.catch_warnings():
        # A skewed column may have fewer clusters than n_bins, and then has fewer bins.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "Bins whose width are too small", UserWarning)
        return np.ldexp(bins.fit(np.ldexp(column, -exponent)[:, None]).bin_edges_[0][1:-1], exponent)


def range_exponents(X: Array) -> Array:
    """Return e of each column, with 2**e <= range < 2**(e + 1); of a constant column, that of its size.

    Missing cells (NaN) do not count; a column of nothing else has 0.
    """
    m, n = X.shape
    # Rows are compared in lines of 64: over few columns NumPy is then ten times faster.
    lines = X[: m - m % 64].reshape(-1, 64 * n) if X.flags.c_contiguous and m >= 64 else X
    rest = X[m - m % 64 :] if lines is not X else X[:1]
    low, high = (
        reduce(np.concatenate([reduce(lines, axis=0).reshape(-1, n), rest]), axis=0)
        for reduce in (np.fmin.reduce, np.fmax.reduce)
    )
    with np.errstate(over="ignore"):
        size = high - low
    size = np.nan_to_num(np.where(size > 0, size, np.abs(high)), posinf=np.inf)
    return np.where(np.isinf(size), np.finfo(X.dtype).maxexp, np.frexp(size)[1] - 1) * (size > 0)
