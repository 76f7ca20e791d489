"""Tables of categories: codes, or values of any kind."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, validate_data

from riskbayes.arrays import Array
from riskbayes.estimators.base import BaseGenerativeClassifier
from riskbayes.estimators.checks import check_library, column_name, naming_columns
from riskbayes.estimators.tables import check_plain
from riskbayes.preprocessing import CategoryEncoder, ColumnCodes, codes_on_device


class CategoricalInput(BaseGenerativeClassifier):
    """How categories come in and go out: as codes, or by value."""

    _encoder: CategoryEncoder
    min_categories: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags

    def _encode(self, X: Any, *, reset: bool, learn: bool) -> Array:
        check_library(self, X)
        with naming_columns(self):
            check_plain(self, X)
        if hasattr(X, "columns"):  # a data frame: its columns keep their own types
            validate_data(self, X, reset=reset, skip_check_array=True)
            check_array(np.broadcast_to(False, X.shape), estimator=self)  # empty tables
        else:
            X = validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False)
        if not isinstance(X, np.ndarray) and hasattr(X, "__dlpack__"):
            return self._encode_on_device(X, reset=reset, learn=learn)
        known = CategoryEncoder() if reset else self._encoder
        names = [column_name(self, j) for j in range(self.n_features_in_)]
        codes, encoder = known.encode(X, names, learn=learn)
        if learn:
            self._encoder = encoder
        return codes

    def _encode_on_device(self, X: Array, *, reset: bool, learn: bool) -> Array:
        """Codes of another library's array: they must be codes already."""
        names = [column_name(self, j) for j in range(self.n_features_in_)]
        if reset:
            self._encoder = CategoryEncoder(tuple(ColumnCodes(name, None) for name in names))
        return codes_on_device(X, names, learn=learn)

    def _decode(self, X: Array) -> Array:
        return self._encoder.decode(X)

    def _least_categories(self, n: int) -> Array:
        """At least so many categories a column: those that it declares, and `min_categories`."""
        least = self._encoder.least_categories
        if self.min_categories is not None:
            wanted = np.asarray(self.min_categories)
            if not np.issubdtype(wanted.dtype, np.signedinteger):
                raise ValueError(f"'min_categories' should have integral type. Got {wanted.dtype} instead.")
            if wanted.ndim and wanted.shape != (n,):
                raise ValueError(
                    f"'min_categories' should have shape ({n},) when an array-like is provided. "
                    f"Got {wanted.shape} instead."
                )
            least = np.maximum(least, wanted)
        return least
