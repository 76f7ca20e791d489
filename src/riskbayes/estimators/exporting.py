"""Fitted estimators as ONNX models."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from riskbayes.onnx_export import Exported, onnx_model
from riskbayes.onnx_export.columns import Columns


class OnnxMixin:
    """`to_onnx` of a classifier."""

    def _onnx_columns(self) -> Columns:
        """Return what the encoded columns are made of."""
        raise NotImplementedError

    def _exported(self) -> Exported:
        """Return all that a graph needs of this fitted estimator."""
        raise NotImplementedError

    def to_onnx(self, *, missing: bool | None = None, dtype: str = "float64") -> Any:
        """Return the fitted classifier as an ONNX model of plain operators, which computes in float64.

        An estimator that was fitted to an array of numbers has one input, `X`. Otherwise each column is an
        input of shape (rows, 1) by its name: strings, in which "" is a missing cell, or numbers, in which NaN
        is. The outputs are `label` and `probabilities`, the values of `predict` and `predict_proba`.
        `doc/onnx.md` says what is carried and what is not; :func:`riskbayes.onnx_export.onnx_inputs` makes
        the inputs of a data frame.

        Parameters
        ----------
        missing : bool or None, default=None
            Whether cells of numbers may be missing. False leaves the operators for them out. By default they
            are carried; in LDA and QDA only if the rows of the fit had missing cells, because each column
            takes a step of elimination: otherwise the probabilities of a row with NaN are NaN.
        dtype : {"float64", "float32"}, default="float64"
            The dtype of inputs of numbers.

        Returns
        -------
        model : onnx.ModelProto
            For `onnxruntime.InferenceSession(model.SerializeToString())`.

        Examples
        --------
        >>> import onnxruntime
        >>> from sklearn.datasets import load_iris
        >>> from riskbayes import GaussianNB
        >>> X, y = load_iris(return_X_y=True)
        >>> clf = GaussianNB().fit(X, y)
        >>> session = onnxruntime.InferenceSession(clf.to_onnx().SerializeToString())
        >>> label, probabilities = session.run(["label", "probabilities"], {"X": X})
        >>> bool((label == clf.predict(X)).all())
        True
        >>> bool(abs(probabilities - clf.predict_proba(X)).max() < 1e-6)
        True
        """
        check_is_fitted(self)
        if dtype not in ("float64", "float32"):
            raise ValueError(f"dtype must be 'float64' or 'float32'; got {dtype!r}.")
        return onnx_model(self._exported(), missing, dtype)
