"""Fitted models as JSON and as JavaScript: the graph of :mod:`riskbayes.onnx_export`, run without a library.

`portable.py` makes the JSON value of an estimator, and `model.js` reads it.
"""

from riskbayes.export.portable import interpreter, portable, to_javascript, to_json

__all__ = ["interpreter", "portable", "to_javascript", "to_json"]
