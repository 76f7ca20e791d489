"""What onnxruntime makes of a graph, held against the estimator."""

import numpy as np
import onnx
import onnxruntime

from riskbayes.onnx_export import OPERATORS, onnx_inputs


def run(model, inputs):
    """Labels and probabilities by onnxruntime."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return session.run(["label", "probabilities"], inputs)


def check(clf, X, **options):
    """Hold the graph of a fitted estimator against its predictions of X; return the graph."""
    model = clf.to_onnx(**options)
    onnx.checker.check_model(model, full_check=True)
    assert {node.op_type for node in model.graph.node} <= set(OPERATORS)
    assert {node.domain for node in model.graph.node} == {""}
    inputs = onnx_inputs(clf, X, **{k: v for k, v in options.items() if k == "dtype"})
    label, P = run(model, inputs)
    wanted = clf.predict_proba(X)
    np.testing.assert_allclose(P, wanted, atol=1e-6, rtol=0)
    same_labels(clf.predict(X), label, wanted)
    few = run(model, {name: values[:1] for name, values in inputs.items()})  # any number of rows
    np.testing.assert_allclose(few[1], P[:1], atol=1e-12, rtol=0)
    return model


def same_labels(wanted, label, P):
    """Labels are equal, but for rows whose two largest probabilities are."""
    top = np.sort(P, axis=1)[:, -2:]
    clear = top[:, 1] - top[:, 0] > 1e-9
    assert label.shape == wanted.shape
    assert (label[clear] == wanted[clear]).all()
