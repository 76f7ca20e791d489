"""Predictions inside a database: a model as ONNX, as SQL by orbital, run by DuckDB.

pip install "riskbayes[onnx]" orbital duckdb pandas
"""

import duckdb
import numpy as np
import orbital
import pandas as pd
from onnx import TensorProto
from onnx.utils import Extractor
from orbital import types
from orbital.ast import ParsedPipeline
from orbital.translate import TRANSLATORS
from orbital.translation.translator import Translator
from orbital.translation.variables import ValueVariablesGroup
from sklearn.datasets import load_iris

from riskbayes import LinearDiscriminantAnalysis, MixedNB, PoissonNB, SmoothNB


class EqualTranslator(Translator):
    """A column equal to each of some constants: orbital 0.6 has no Equal, which graphs of strings need."""

    def process(self):
        column, values = (self._variables.consume(name) for name in self.inputs)
        values = [value.decode() if isinstance(value, bytes) else value for value in values]
        self.set_output(ValueVariablesGroup({f"is_{k}": column == value for k, value in enumerate(values)}))


TRANSLATORS.setdefault("Equal", EqualTranslator)


def to_sql(clf, table):
    """Return the query for the probabilities of the rows of a table, in which no cell is missing."""
    model = clf.to_onnx(missing=False)
    inputs = {i.name: i.type.tensor_type.elem_type for i in model.graph.input}
    model = Extractor(model).extract_model(list(inputs), ["probabilities"])
    kinds = {TensorProto.STRING: types.StringColumnType(), TensorProto.DOUBLE: types.DoubleColumnType()}
    features = {name: kinds[kind] for name, kind in inputs.items()}
    # orbital has no public way in for an ONNX model yet: its own goes through a scikit-learn pipeline.
    return orbital.export_sql(table, ParsedPipeline._from_onnx_model(model, features), dialect="duckdb")


flowers, y = load_iris(return_X_y=True, as_frame=True)
flowers.columns = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
mixed = flowers.assign(
    petal_width=pd.cut(flowers["petal_width"], [0, 1, 1.7, 9], labels=["narrow", "medium", "wide"]).astype(
        str
    )
)
con = duckdb.connect()
for clf, X in (
    (LinearDiscriminantAnalysis(), flowers),
    (SmoothNB(), flowers),
    (PoissonNB(), flowers.round()),
    (MixedNB(), mixed),
):
    query = to_sql(clf.fit(X, y), "flowers")
    con.register("flowers", X)
    P = con.execute(query).fetchdf().to_numpy()
    gap = np.abs(P - clf.predict_proba(X)).max()
    print(
        f"{type(clf).__name__}: {len(query)} characters of SQL, largest difference of probabilities {gap:.1e}"
    )
