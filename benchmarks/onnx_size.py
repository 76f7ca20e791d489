"""Graphs of `to_onnx` on real tables: their size, and how far onnxruntime is from `predict_proba`.

    RISKBAYES_DATA=FOLDER python benchmarks/onnx_size.py    # prints the table of doc/onnx.md

Each table is fitted on one half of its rows, of which at most 20000 are taken, and predicted on the other.
"""

import os
import warnings
from pathlib import Path

import numpy as np
import onnxruntime
import pandas as pd

from riskbayes import LinearDiscriminantAnalysis, MixedNB, QuadraticDiscriminantAnalysis, RiskBayesClassifier
from riskbayes.onnx_export import onnx_inputs

MOST_ROWS = 20000
TABLES = (
    "adult",
    "mixed/titanic",
    "mixed/penguins_raw",
    "mixed/horse_colic",
    "mixed/telco_churn",
    "satellite",
)


def main() -> None:
    folder = Path(os.environ["RISKBAYES_DATA"])
    print("| table | columns | estimator | nodes | kB | largest difference | other labels |")
    print("|---|---:|---|---:|---:|---:|---:|")
    for name in TABLES:
        df = pd.read_csv(folder / f"{name}.csv.gz").sample(frac=1, random_state=0)[:MOST_ROWS]
        y, half = df.pop(df.columns[-1]).to_numpy(), len(df) // 2
        numbers = all(kind.kind in "if" for kind in df.dtypes)
        gaussians = (LinearDiscriminantAnalysis(), QuadraticDiscriminantAnalysis()) if numbers else ()
        for clf in (RiskBayesClassifier("single"), MixedNB(), *gaussians):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                clf.fit(df[:half], y[:half])
            model, new = clf.to_onnx(), df[half:]
            session = onnxruntime.InferenceSession(model.SerializeToString())
            label, P = session.run(["label", "probabilities"], onnx_inputs(clf, new))
            gap, other = np.abs(P - clf.predict_proba(new)).max(), np.count_nonzero(label != clf.predict(new))
            print(
                f"| {name.split('/')[-1]} | {df.shape[1]} | {type(clf).__name__} | {len(model.graph.node)} | "
                f"{model.ByteSize() / 1000:.0f} | {gap:.0e} | {other} of {len(new)} |"
            )


if __name__ == "__main__":
    main()
