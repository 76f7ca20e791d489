"""Bins of numbers by k-means, and the powers of two that scale a column to a range of about one."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import KBinsDiscretizer
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from riskbayes.arrays import (
    Array,
    astype,
    namespace,
    reduce_columns,
    to_device,
    to_numpy,
    to_widest,
    widest_float,
)
from riskbayes.tables import validated_numbers


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
        xp = namespace(X)
        # In the dtype of the edges: rounded edges would differ.
        columns = [
            xp.searchsorted(to_device(edges, X), xp.asarray(to_widest(X[:, j]), copy=True), side="right")
            for j, edges in enumerate(self.bin_edges_)
        ]
        codes = xp.stack([astype(column, xp.uint8) for column in columns], axis=1)
        holes = xp.isnan(X)
        return xp.where(holes, xp.nan, astype(codes, widest_float(X))) if bool(xp.any(holes)) else codes

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
    low, high = column_ranges(X)
    with np.errstate(over="ignore"):
        size = high - low
    size = np.nan_to_num(np.where(size > 0, size, np.abs(high)), posinf=np.inf)
    return np.where(np.isinf(size), np.finfo(X.dtype).maxexp, np.frexp(size)[1] - 1) * (size > 0)


def column_ranges(X: Array) -> tuple[Array, Array]:
    """Return the least and the largest value of each column; NaN of one without a value."""
    return reduce_columns(X, np.fmin.reduce), reduce_columns(X, np.fmax.reduce)
