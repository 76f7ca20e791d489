"""skl2onnx converts pipelines, votes and stacks of scikit-learn that hold our estimators."""

import sys

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import riskbayes
from made_tables import dependent, dependent_holes, numbers, with_holes
from riskbayes import (
    ConditionalGaussianNB,
    GaussianNB,
    LinearDiscriminantAnalysis,
    MixedNB,
    QuadraticDiscriminantAnalysis,
    RiskBayesClassifier,
)
from riskbayes.onnx_export import register_skl2onnx

skl2onnx = pytest.importorskip("skl2onnx")
types = pytest.importorskip("skl2onnx.common.data_types")
OPTIONS = {"options": {"zipmap": False}, "target_opset": 19}

pytestmark = pytest.mark.filterwarnings("ignore::riskbayes.FlooredWarning")


@pytest.fixture(autouse=True)
def registered():
    register_skl2onnx()


def check(model, clf, X, inputs, atol):
    session = onnxruntime.InferenceSession(model.SerializeToString())
    label, P = session.run(None, inputs)
    np.testing.assert_allclose(P, clf.predict_proba(X), atol=atol, rtol=0)
    top = np.sort(P, axis=1)[:, -2:]
    clear = top[:, 1] - top[:, 0] > 1e-5
    assert (label == clf.predict(X))[clear].all()


KINDS = {name for name in riskbayes.__all__ if hasattr(getattr(riskbayes, name), "to_onnx")}
WHOLE = {
    *("MultinomialNB", "ComplementNB", "PoissonNB", "BernoulliNB"),
    *("CategoricalNB", "KDependenceNB", "TreeAugmentedNB"),
}
"""Those that read counts or codes."""


@pytest.mark.parametrize("name", sorted(KINDS - {"GenerativeClassifier"}))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_estimator_in_a_pipeline(name, dtype):
    X, y = numbers(np.random.default_rng(1), 90)
    clf, before, X = getattr(riskbayes, name)(), StandardScaler(), X.astype(dtype)
    if name == "RiskBayesClassifier":
        clf.set_params(strategy="glass", cv=2)
    if name in WHOLE:
        before, X = FunctionTransformer(), np.abs(np.round(before.fit_transform(X)))
    pipeline = make_pipeline(before, clf).fit(X, np.array(["a", "b", "c", "d", "e"])[y])
    check(skl2onnx.to_onnx(pipeline, X[:1], **OPTIONS), pipeline, X, {"X": X}, 1e-5)


def test_one_hot_columns_before_it():
    frame, y = dependent(np.random.default_rng(0))
    words = ["kind", "shade"]
    before = make_column_transformer((OneHotEncoder(), words), remainder=StandardScaler())
    clf = make_pipeline(before, QuadraticDiscriminantAnalysis(prior="recommended")).fit(frame, y)
    given, inputs = columns_of(frame)
    model = skl2onnx.convert_sklearn(clf, initial_types=given, **OPTIONS)
    check(model, clf, frame, inputs, 1e-5)


def columns_of(frame):
    """Types and tensors of the columns of a table; "" is a missing word."""
    given, inputs = [], {}
    for name in frame:
        column, word = frame[[name]], not pd.api.types.is_numeric_dtype(frame[name])
        given.append((name, (types.StringTensorType if word else types.DoubleTensorType)([None, 1])))
        inputs[name] = (
            column.astype(object).where(column.notna(), "").to_numpy() if word else column.to_numpy()
        )
    return given, inputs


@pytest.mark.parametrize("kind", [MixedNB, ConditionalGaussianNB, RiskBayesClassifier])
def test_tables_of_words_and_numbers_with_missing_and_unseen_cells(kind):
    rng = np.random.default_rng(2)
    frame, y = dependent(rng)
    clf = kind("single") if kind is RiskBayesClassifier else kind()
    clf.fit(dependent_holes(rng, frame, 0.1), y)
    new = dependent_holes(rng, frame)
    given, inputs = columns_of(new)
    check(skl2onnx.convert_sklearn(clf, initial_types=given, **OPTIONS), clf, new, inputs, 1e-6)


def test_one_matrix_for_an_estimator_of_named_columns():
    X, y = numbers(np.random.default_rng(3))
    names = [f"c{j}" for j in range(X.shape[1])]
    clf = make_pipeline(StandardScaler(), GaussianNB()).set_output(transform="pandas")
    clf.fit(pd.DataFrame(X, columns=names), y)
    check(skl2onnx.to_onnx(clf, X[:1], **OPTIONS), clf, pd.DataFrame(X, columns=names), {"X": X}, 1e-9)


def test_votes_and_missing_cells():
    rng = np.random.default_rng(4)
    X, y = numbers(rng)
    gaps = with_holes(X, rng)
    members = [("a", GaussianNB()), ("b", LinearDiscriminantAnalysis())]
    clf = VotingClassifier(members, voting="soft", flatten_transform=False).fit(gaps, y)
    check(skl2onnx.to_onnx(clf, X[:1], **OPTIONS), clf, gaps, {"X": gaps}, 1e-9)
    own = GaussianNB().fit(X, y)  # what to_onnx calls missing is an option here
    small = skl2onnx.to_onnx(
        own, X[:1], target_opset=19, options={id(own): {"zipmap": False, "missing": False}}
    )
    assert "IsNaN" not in {node.op_type for node in small.graph.node}


def test_what_cannot_be_is_refused():
    frame, y = dependent(np.random.default_rng(5))
    clf = MixedNB().fit(frame, y)
    given = [(name, types.DoubleTensorType([None, 1])) for name in frame]
    with pytest.raises(ValueError, match=r"reads strings in column 'kind'.*initial_types"):
        skl2onnx.convert_sklearn(clf, initial_types=given, **OPTIONS)
    X, y = numbers(np.random.default_rng(5))
    clf = GaussianNB().fit(X, y)
    with pytest.raises(ValueError, match="Pass target_opset=19 or more"):
        skl2onnx.to_onnx(clf, X[:1], target_opset=15)
    with pytest.raises(TypeError, match="takes classes with the method to_onnx"):
        register_skl2onnx(LogisticRegression)


def test_without_skl2onnx_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(ImportError, match="pip install skl2onnx"):
        register_skl2onnx()
