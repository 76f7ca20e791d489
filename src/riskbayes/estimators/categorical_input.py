"""Tables of categories: codes, or values of any kind."""

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
"""Integer codes below it are counted, however few the rows: 2 MiB a class."""

CODES_PER_ROW = 10
"""Beyond it, so many codes a row: more would be a table of zeros."""


class CategoricalInput(BaseGenerativeClassifier):
    """How categories come in and go out: as codes, or by value."""

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
            check_array(np.broadcast_to(False, X.shape), estimator=self)  # empty tables
        else:
            X = validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False)
        if not isinstance(X, np.ndarray) and hasattr(X, "__dlpack__"):
            codes = self._encode_on_device(X, reset=reset, learn=learn)
        else:
            known = CategoryEncoder() if reset else self._encoder
            names = [column_name(self, j) for j in range(self.n_features_in_)]
            codes, encoder = known.encode(X, names, learn=learn)
            if learn:
                self._encoder = encoder
        if learn:
            self._check_sizes(codes, reset=reset)
        return codes

    def _encode_on_device(self, X: Array, *, reset: bool, learn: bool) -> Array:
        """Codes of another library's array: they must be codes already."""
        names = [column_name(self, j) for j in range(self.n_features_in_)]
        if reset:
            self._encoder = CategoryEncoder(tuple(ColumnCodes(name, None) for name in names))
        return codes_on_device(X, names, learn=learn)

    def _check_sizes(self, X: Array, *, reset: bool) -> None:
        """Refuse codes far beyond the number of rows, as identifiers are, and more than can be counted."""
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

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Array, Array]:
        """Rows and labels drawn from the calibrated joint.

        Of columns coded by value only named categories are drawn: those that `min_categories` adds
        have a probability, but no value.

        Parameters
        ----------
        n_samples : int, default=1
            How many.
        random_state : int, RandomState instance, Generator or None, default=None
            Makes the draw repeatable.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Rows.
        y : ndarray of shape (n_samples,)
            Labels.
        """
        return super().sample(n_samples, random_state)

    def _drawn(self, theta: Any) -> Any:
        columns = self._encoder.columns
        if all(c.categories is None for c in columns):  # every code is a value
            return theta
        named = np.array([np.iinfo(np.int64).max if c.categories is None else c.least for c in columns])
        return replace(theta, log_prob=theta.frame.limited_to(theta.log_prob, named))

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
