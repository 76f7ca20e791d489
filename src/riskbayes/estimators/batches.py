"""Predictions that are written to a file, batch after batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from riskbayes.arrays import Array
from riskbayes.new_files import new_files

PREDICTIONS = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "predict_joint_log_proba",
    "decision_function",
    "score_samples",
)
"""Methods that `predict_to` writes the results of."""


class BatchPredictions:
    """`predict_to` of a classifier."""

    classes_: Array

    _written: ClassVar[tuple[str, ...]] = PREDICTIONS

    def predict_to(self, X: Any, path: Any, method: str = "predict_proba") -> Path:
        """Write predictions to a Parquet file, batch after batch.

        The file appears when it is complete. It has a column for each class, named as the class is, or a
        column named as the method, if that returns one value a row.

        Parameters
        ----------
        X : Rows or array-like of shape (n_samples, n_features)
            Rows to predict, from :func:`riskbayes.rows`.
        path : path
            The file to write; an existing one is replaced.
        method : str, default="predict_proba"
            The method whose results are written, such as "predict".

        Returns
        -------
        path : Path
            The file.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> import pyarrow.parquet as pq
        >>> import riskbayes
        >>> X, y = np.array([[0.0], [0.5], [2.0], [2.5]]), ["a", "a", "b", "b"]
        >>> clf = riskbayes.GaussianNB().fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = clf.predict_to(riskbayes.rows(X), f"{folder}/out.parquet", "predict")
        ...     pq.read_table(path)["predict"].to_pylist()
        ['a', 'a', 'b', 'b']
        """
        import pyarrow as pa  # an optional dependency, slow to import
        import pyarrow.parquet as pq

        check_is_fitted(self)
        if method not in self._written or not hasattr(self, method):
            known = ", ".join(repr(name) for name in self._written if hasattr(self, name))
            raise ValueError(f"predict_to writes the results of {known}; got {method!r}.")
        found = getattr(self, method)(X)
        with new_files(path) as (file,), ExitStack() as opened:
            writer = None
            for values in found if isinstance(found, Iterator) else [found]:
                table = pa.table(self._named_results(method, np.asarray(values)))
                writer = writer or opened.enter_context(pq.ParquetWriter(file, table.schema))
                writer.write_table(table)
            if writer is None:
                raise ValueError("The rows are empty: there is nothing to predict.")
        return Path(path)

    def _named_results(self, method: str, values: Array) -> dict[str, Array]:
        """Return results of a method as columns."""
        if values.ndim == 1:
            return {method: values}
        return {str(label): values[:, k] for k, label in enumerate(self.classes_)}
