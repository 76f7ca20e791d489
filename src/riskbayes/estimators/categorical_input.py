"""Validation of tables of categories: integer codes, or values of any kind."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, validate_data

from riskbayes.arrays import Array
from riskbayes.estimators.base import BaseGenerativeClassifier
from riskbayes.models.codes import categories_of, check_sizes
from riskbayes.preprocessing import CategoryEncoder, ColumnCodes, codes_on_device
from riskbayes.tables import check_plain, column_name, naming_columns

ALWAYS_COUNTED = 2**18
"""Integer codes below this are accepted, however few the rows: their counts take 2 MiB per class."""

CODES_PER_ROW = 10
"""Larger codes are accepted up to this many times the number of rows: beyond, most counts would be zero."""


class CategoricalInput(BaseGenerativeClassifier):
    """Base class of the estimators of categories: encodes rows to integer codes, and decodes samples."""

    _encoder: CategoryEncoder
    min_categories: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags

    def _encode(self, X: Any, *, reset: bool, learn: bool) -> Array:
        with naming_columns(self):
            check_plain(self, X)
        if hasattr(X, "columns"):  # a data frame: its columns keep their own types
            validate_data(self, X, reset=reset, skip_check_array=True)
            check_array(np.broadcast_to(False, X.shape), estimator=self)  # refuses empty tables
        else:
            X = validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False)
        names = [column_name(self, j) for j in range(self.n_features_in_)]
        if not isinstance(X, np.ndarray) and hasattr(X, "__dlpack__"):  # must be codes already
            if reset:
                self._encoder = CategoryEncoder(tuple(ColumnCodes(name, None) for name in names))
            codes = codes_on_device(X, names, learn=learn)
        else:
            known = CategoryEncoder() if reset else self._encoder
            codes, encoder = known.encode(X, names, learn=learn)
            if learn:
                self._encoder = encoder
        if learn:
            self._check_sizes(codes, reset=reset)
        return codes

    def _check_sizes(self, X: Array, *, reset: bool) -> None:
        """Refuse codes far larger than the number of rows, as identifiers are, or too large for any count."""
        rows, known = X.shape[0], self._least_categories(X.shape[1])
        if not reset:
            rows += round(self.data_statistics_.total)
            known = np.maximum(known, self.data_statistics_.frame.n_categories)
        sizes = categories_of(X, known).n_categories
        far = sizes > np.maximum(known, max(ALWAYS_COUNTED, CODES_PER_ROW * rows))
        if far.any():
            j = int(np.argmax(np.where(far, sizes, 0)))
            raise ValueError(
                f"{column_name(self, j)} holds the code {sizes[j] - 1}: integer codes are categories counted "
                f"from 0, {sizes[j]} of them for {rows} rows. Drop a column of identifiers; pass "
                "other values as strings, or code them by sklearn.preprocessing.OrdinalEncoder; set "
                "min_categories if there are so many."
            )
        check_sizes(sizes, partial(column_name, self))

    def _decode(self, X: Array) -> Array:
        return self._encoder.decode(X)

    def _drawn(self, theta: Any) -> Any:
        columns = self._encoder.columns
        if all(c.categories is None for c in columns):  # every code is a value itself
            return theta
        named = np.array([np.iinfo(np.int64).max if c.categories is None else c.least for c in columns])
        return replace(theta, log_prob=theta.frame.limited_to(theta.log_prob, named))

    def _least_categories(self, n: int) -> Array:
        """Return the least number of categories of each column: those it declares, and `min_categories`."""
        least = self._encoder.least_categories
        if self.min_categories is None:
            return least
        wanted = np.asarray(self.min_categories)
        if not np.issubdtype(wanted.dtype, np.signedinteger):
            raise ValueError(f"'min_categories' should have integral type. Got {wanted.dtype} instead.")
        if wanted.ndim and wanted.shape != (n,):
            raise ValueError(
                f"'min_categories' should have shape ({n},) when an array-like is provided. "
                f"Got {wanted.shape} instead."
            )
        return np.maximum(least, wanted)
