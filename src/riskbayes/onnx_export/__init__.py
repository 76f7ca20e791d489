"""Fitted models as ONNX graphs of few plain operators: `clf.to_onnx()`.

`scores.py` says what a model is translated to; `naive_bayes.py`, `gaussians.py`, `mixtures.py`, `trees.py`,
`networks.py`, `leaves.py` and `neighbours.py` translate the models, `correction.py` tables that correct one,
`columns.py` the table that an estimator takes, `contributions.py` what its columns contribute; `export.py`
puts them together.
"""

from riskbayes.onnx_export import (  # register their translators
    gaussians,
    leaves,
    mixtures,
    naive_bayes,
    neighbours,
    networks,
    trees,
)
from riskbayes.onnx_export.export import Exported, Formula, Written, onnx_model, write_graph
from riskbayes.onnx_export.graph import OPERATORS
from riskbayes.onnx_export.inputs import onnx_inputs
from riskbayes.onnx_export.pipelines import register_skl2onnx
from riskbayes.onnx_export.scores import TRANSLATORS, Scores, translates

__all__ = [
    "OPERATORS",
    "TRANSLATORS",
    "Exported",
    "Formula",
    "Scores",
    "Written",
    "gaussians",
    "leaves",
    "mixtures",
    "naive_bayes",
    "neighbours",
    "networks",
    "onnx_inputs",
    "onnx_model",
    "register_skl2onnx",
    "translates",
    "trees",
    "write_graph",
]
