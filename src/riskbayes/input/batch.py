"""Some rows as a source yields them."""

from __future__ import annotations

from typing import Any, NamedTuple

from sklearn.utils.validation import _num_samples


class RowBatch(NamedTuple):
    """Some rows: an array or a table, and their labels and weights, if there are any."""

    X: Any
    y: Any = None
    w: Any = None

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return _num_samples(self.X)
