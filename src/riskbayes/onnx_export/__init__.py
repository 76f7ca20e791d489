"""Fitted models as ONNX graphs of few plain operators: `clf.to_onnx()`.

`scores.py` says what a model is translated to, `naive_bayes.py`, `gaussians.py` and `trees.py` translate the
models, `columns.py` the table that an estimator takes, and `export.py` puts them together.
"""

from riskbayes.onnx_export import gaussians, naive_bayes, trees  # register their translators
from riskbayes.onnx_export.export import Exported, onnx_model
from riskbayes.onnx_export.graph import OPERATORS
from riskbayes.onnx_export.inputs import onnx_inputs
from riskbayes.onnx_export.scores import TRANSLATORS, Scores, translates

__all__ = [
    "OPERATORS",
    "TRANSLATORS",
    "Exported",
    "Scores",
    "gaussians",
    "naive_bayes",
    "onnx_inputs",
    "onnx_model",
    "translates",
    "trees",
]
