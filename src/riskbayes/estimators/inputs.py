"""How an estimator reads tables, by their kind: here tables of numbers, which are read as they are.

The other kinds are `CountInput`, `CodeInput` and `TableInput`. An input holds nothing: what it learns of the
columns it sets as attributes of the estimator, `clf`.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from riskbayes.arrays import Array
from riskbayes.input.schema import Cells, Schema
from riskbayes.onnx_export.columns import Columns
from riskbayes.onnx_export.inputs import columns_of_encoder
from riskbayes.preprocessing.encoder import CategoryEncoder, TableEncoder
from riskbayes.tables import names_of, validated_numbers


class NumberInput:
    """Tables of numbers."""

    tags: ClassVar[dict[str, bool]] = {}
    """scikit-learn's tags of the input, by name."""
    schema_decides: ClassVar[bool] = False
    """True if what all rows say of the columns decides how cells are encoded."""

    def read(self, clf: Any, X: Any, *, reset: bool, learn: bool) -> Any:
        """Return the validated cells of rows, without a decision about them: here an array of numbers.

        `reset` discards the names and the number of earlier columns; `learn` is True for training rows.
        """
        return validated_numbers(clf, X, reset=reset)

    def schema_of(self, clf: Any, cells: Any, whole: bool = True) -> Schema:
        """Return what cells say of the columns; `whole` is False if there are further batches of them."""
        if isinstance(cells, Cells):
            return Schema.of_cells(cells, *names_of(clf))
        return Schema.of_numbers(cells, getattr(clf, "feature_names_in_", None), ranges=self.schema_decides)

    def as_read(self, clf: Any, cells: Any, schema: Schema) -> bool:
        """True if `encode` returns these cells unchanged, as far as the schema of the rows so far tells.

        Such cells are written without `encode`: an input that checks cells there answers False.
        """
        return not isinstance(cells, Cells)

    def decide(self, clf: Any, schema: Schema, more: bool) -> None:
        """Set how cells are encoded, by the schema of all rows; with `more` what is known is extended."""
        if not more:
            clf._row_dtype = "float32" if schema.dtype == "float32" else "float64"
            clf._n_present = int(np.count_nonzero(schema.n_missing < schema.n_rows))

    def encode(self, clf: Any, cells: Any) -> Array:
        """Return cells as an array of numbers or codes, and NaN for missing cells."""
        encoder = self.encoder(clf)
        return cells if encoder is None else encoder.encode(cells)

    def decode(self, clf: Any, rows: Array) -> Any:
        """Return encoded rows as the user's values: the inverse of `encode`."""
        encoder = self.encoder(clf)
        return rows if encoder is None else encoder.decode(rows)

    def drawn(self, clf: Any, theta: Any) -> Any:
        """Return the parameters that `sample` draws from, given those of the model as NumPy arrays."""
        return theta

    def encoder(self, clf: Any) -> TableEncoder | CategoryEncoder | None:
        """Return the encoder of the cells; None for numbers that are read as they are."""
        return None

    def value_name(self, clf: Any, column: int, value: Any) -> str:
        """Return the category of a code in an encoded column, or a number or date, as the user wrote it."""
        encoder = self.encoder(clf)
        value = value if encoder is None else encoder.value_of(column, value)
        return f"{value:.6g}" if isinstance(value, float) else str(value)

    def category_mask(self, clf: Any) -> Array:
        """Return a mask of the columns that hold categories, whose codes cannot be averaged."""
        return np.full(clf.n_features_in_, clf.model_.traits.support == "categories")

    def onnx_columns(self, clf: Any) -> Columns:
        """Return what the encoded columns are made of, for `to_onnx`."""
        return columns_of_encoder(self.encoder(clf), *names_of(clf))

    def check_counted(self, clf: Any, X: Array) -> None:
        """Refuse encoded rows that cannot be among those that were fitted."""

    def check_same(self, clf: Any, other: Any, what: str) -> None:
        """Refuse another estimator whose columns, of the same names, hold something else."""

    def check_loaded(self, clf: Any) -> None:
        """Require what was learned of the columns to fit the number of columns, after loading."""
