"""What onnxruntime computes of `to_onnx` is what the estimator predicts, for every model that it knows."""

import inspect
import json
import sys
import warnings

import numpy as np
import onnx
import onnx.reference
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import riskbayes
from conftest import MODELS, random_rows
from made_tables import codes, counts, mixed, numbers, with_holes
from onnx_checks import check, run
from riskbayes import (
    BernoulliNB,
    CategoricalNB,
    ComplementNB,
    FlooredWarning,
    GaussianNB,
    GenerativeClassifier,
    KDependenceNB,
    LinearDiscriminantAnalysis,
    MixedNB,
    MultinomialNB,
    PoissonNB,
    ProductOfExperts,
    QuadraticDiscriminantAnalysis,
    RiskBayesClassifier,
    SmoothNB,
    TreeAugmentedNB,
)
from riskbayes.learners import RC
from riskbayes.onnx_export import TRANSLATORS, onnx_inputs

pytestmark = pytest.mark.filterwarnings("ignore::riskbayes.FlooredWarning")

SEEDS = st.integers(0, 10**6)
LEARNERS = st.sampled_from(["closed_form", "rc"])


OF_NUMBERS = {
    GaussianNB: numbers,
    LinearDiscriminantAnalysis: numbers,
    QuadraticDiscriminantAnalysis: numbers,
    SmoothNB: numbers,
    ProductOfExperts: numbers,
    PoissonNB: counts,
    BernoulliNB: counts,
    MultinomialNB: counts,
    ComplementNB: counts,
}


@pytest.mark.parametrize("kind", OF_NUMBERS, ids=lambda kind: kind.__name__)
@settings(max_examples=8)
@given(seed=SEEDS, learner=LEARNERS, holes=st.booleans())
def test_arrays_of_numbers(kind, seed, learner, holes):
    rng = np.random.default_rng(seed)
    X, y = OF_NUMBERS[kind](rng)
    if holes and kind not in (MultinomialNB, ComplementNB):
        X = with_holes(X, rng)
    clf = kind(learner=learner).fit(X, y)
    check(clf, X * 1.2)
    whole = X[~np.isnan(X).any(axis=1)]
    if len(whole):
        model = check(clf, whole, missing=False)
        assert not {"IsNaN", "Where"} & {node.op_type for node in model.graph.node}


@pytest.mark.parametrize(
    "kind", [LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis, ProductOfExperts]
)
def test_gaussians_of_complete_rows_carry_missing_cells_if_they_are_told_to(kind):
    rng = np.random.default_rng(0)
    X, y = numbers(rng)
    clf = kind().fit(X, y)
    gaps = with_holes(X, rng, 0.4)
    gaps[0] = np.nan
    check(clf, gaps, missing=True)
    _, P = run(clf.to_onnx(), {"X": gaps})
    incomplete = np.isnan(gaps).any(axis=1)
    assert np.isnan(P[incomplete]).all()  # and not a wrong answer
    np.testing.assert_allclose(P[~incomplete], clf.predict_proba(gaps[~incomplete]), atol=1e-6)


def test_missing_cells_of_nearly_collinear_columns():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((300, 2)), rng.integers(2, size=300)
    near = x[:, :1] + 1e-4 * (rng.standard_normal((300, 1)) + y[:, None])
    X = with_holes(np.hstack([x + 0.3 * y[:, None], near]), rng)
    for kind in (LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis):
        check(kind(learner="closed_form").fit(X, y), X)


@pytest.mark.parametrize("kind", MODELS, ids=lambda kind: kind.__name__)
def test_every_model_is_translated(kind):
    model = kind()
    X, y, w = random_rows(model, np.random.default_rng(0))
    clf = GenerativeClassifier(model, learner="closed_form").fit(X, y, w)
    check(clf, X)


def test_the_translated_models_are_those_that_the_documentation_lists():
    assert {kind.__name__ for kind in TRANSLATORS} == {
        *(
            "BernoulliModel",
            "BinnedModel",
            "CategoricalModel",
            "ComplementModel",
            "ConditionalGaussianModel",
            "GaussianNBModel",
            "LDAModel",
            "LeavesModel",
        ),
        *(
            "MarkModel",
            "MixtureModel",
            "MultinomialModel",
            "NeighboursModel",
            "PoissonModel",
            "ProductModel",
            "QDAModel",
            "SmoothModel",
            "TreeModel",
        ),
    }


def test_a_model_that_inherits_from_a_translated_one_is_refused():
    class Own(riskbayes.models.GaussianNBModel):
        def log_joint(self, Z, theta):
            return 2 * super().log_joint(Z, theta)

    X, y = numbers(np.random.default_rng(0))
    with pytest.raises(NotImplementedError, match="does not know Own"):
        GenerativeClassifier(Own(), learner="closed_form").fit(X, y).to_onnx()


CATEGORICAL = {
    "CategoricalNB": CategoricalNB,
    "CategoricalNB, ML": lambda **options: CategoricalNB(alpha=0, **options),
    "more categories": lambda **options: CategoricalNB(min_categories=7, **options),
    "TAN": TreeAugmentedNB,
    "k-DB": lambda **options: KDependenceNB(k=2, **options),
}


@pytest.mark.parametrize("name", CATEGORICAL)
@settings(max_examples=8)
@given(seed=SEEDS, learner=LEARNERS, holes=st.booleans(), form=st.sampled_from(["codes", "strings", "frame"]))
def test_categories_missing_and_unseen(name, seed, learner, holes, form):
    rng = np.random.default_rng(seed)
    X, y = codes(rng)
    X = with_holes(X, rng, 0.15) if holes else X
    new = np.where(rng.random(X.shape) < 0.1, 9.0, X)
    if form != "codes":
        X, new = (
            np.where(np.isnan(A), None, np.char.add("v", A.astype(str)).astype(object)) for A in (X, new)
        )
    if form == "frame":
        X, new = (pd.DataFrame(A, columns=[f"column {j}" for j in range(A.shape[1])]) for A in (X, new))
    clf = CATEGORICAL[name](learner=learner).fit(X, y)
    check(clf, new)
    if not holes:
        check(clf, new, missing=False)


@pytest.mark.parametrize(
    "values",
    [
        [True, False],
        [-3, 0, 5],
        [0, 1, 2],
        pd.Categorical(["lo", "hi"], ["lo", "mid", "hi"]),
        pd.Categorical([3, 7]),
    ],
    ids=["booleans", "negative numbers", "codes", "strings", "categories of numbers"],
)
def test_categories_of_every_type(values):
    rng = np.random.default_rng(0)
    picked = rng.integers(len(values), size=60)
    df = pd.DataFrame(
        {"a": pd.Series(values).take(picked).reset_index(drop=True), "b": rng.integers(3, size=60)}
    )
    y = (picked == 0) ^ (rng.random(60) < 0.3)
    for clf in (CategoricalNB(), MixedNB(categorical_features=["a"])):
        model = check(clf.fit(df, y), df)
        assert [i.name for i in model.graph.input] == ["a", "b"]


TABLES = {
    "recipe": lambda **options: RiskBayesClassifier("single", **options),
    "smooth": lambda **options: MixedNB(missing="informative", **options),
    "gaussian": lambda **options: MixedNB("gaussian", count_features=["visits"], **options),
    "binned": lambda **options: MixedNB("binned", learner="closed_form", **options),
    "experts": lambda **options: ProductOfExperts(
        [
            ("words", TreeAugmentedNB(), ["colour", "member"]),
            ("numbers", QuadraticDiscriminantAnalysis(), ["size", "visits"]),
        ],
        **options,
    ),
}


@pytest.mark.parametrize("unseen", ["missing", "other"])
@pytest.mark.parametrize("name", TABLES)
def test_tables_as_they_are(name, unseen):
    rng = np.random.default_rng(3)
    (df, y), (new, _) = mixed(rng), mixed(rng)
    new.loc[::5, "colour"] = "violet"
    new.loc[::7, ["size", "visits", "level"]] = np.nan
    clf = TABLES[name](unseen=unseen, categorical_features=["colour", "level"]).fit(df, y)
    model = check(clf, new)
    P = clf.predict_proba(new)
    assert 0.2 < P.max(axis=1).mean() < 0.98  # there is something to be wrong about
    inputs = {i.name: i.type.tensor_type.elem_type for i in model.graph.input}
    assert inputs["colour"] == onnx.TensorProto.STRING
    assert inputs["size"] == inputs["member"] == onnx.TensorProto.DOUBLE
    assert "branch" not in inputs  # a constant column is not read
    assert ("note" in inputs) == (name in ("recipe", "smooth"))  # only whether it is missing
    assert {"since", "since (weekday)", "since (month)"} <= inputs.keys()  # a date is given as its parts


@pytest.mark.parametrize("unseen", ["missing", "other"])
def test_unseen_categories_of_complete_rows(unseen):
    df, y = mixed(np.random.default_rng(6))
    df = df[["visits", "colour", "member"]].fillna({"colour": "none"})
    clf = MixedNB(unseen=unseen).fit(df, y)
    df.loc[::3, "colour"] = "violet"
    check(clf, df, missing=False)


def test_inputs_are_of_the_columns_of_the_fit():
    df, y = mixed(np.random.default_rng(7))
    clf = MixedNB().fit(df, y)
    with pytest.raises(ValueError, match="feature names should match"):
        onnx_inputs(clf, df[df.columns[::-1]])
    with pytest.raises(ValueError, match="not fitted"):
        onnx_inputs(MixedNB(), df)
    rows = [["a", 1.5], ["b", None], ["a", 2.5], [None, 3.5]] * 5
    clf = MixedNB().fit(rows, [0, 1, 0, 1] * 5)
    assert onnx_inputs(clf, rows[:2])["x0"].tolist() == [["a"], ["b"]]
    check(clf, rows)


def test_categories_among_the_columns_of_a_matrix():
    rng = np.random.default_rng(8)
    X, y = codes(rng)
    X = with_holes(np.column_stack([X - 2, rng.normal(y)]), rng)
    new = np.where(rng.random(X.shape) < 0.1, 9.0, X)
    for unseen in ("missing", "other"):
        for clf in (MixedNB(), RiskBayesClassifier("single")):
            clf.set_params(categorical_features=[0, 1], unseen=unseen, missing="informative")
            model = check(clf.fit(X, y), new)
            assert [i.name for i in model.graph.input] == ["X"]


def test_polars_and_arrays_of_objects():
    rng = np.random.default_rng(4)
    df, y = mixed(rng)
    frame = pl.from_pandas(df)
    check(MixedNB().fit(frame, y), frame)
    table = df[["size", "colour"]].astype(object).to_numpy()
    model = check(RiskBayesClassifier("single").fit(table, y), table)
    assert [i.name for i in model.graph.input] == ["x0", "x1"]


@settings(max_examples=8)
@given(seed=SEEDS, informative=st.booleans())
def test_the_recipe_of_numbers_is_one_matrix(seed, informative):
    rng = np.random.default_rng(seed)
    X, y = numbers(rng)
    X = with_holes(X, rng)
    X[:, 0] = np.where(rng.random(len(y)) < 0.4 * (y == 0), np.nan, X[:, 0])
    for clf in (
        RiskBayesClassifier("single", missing="informative" if informative else "ignore"),
        MixedNB("gaussian"),
    ):
        model = check(clf.fit(X, y), X)
        assert [i.name for i in model.graph.input] == ["X"]


def test_columns_that_say_nothing():
    y = np.arange(30) % 3
    X = np.full((30, 2), 5.0)
    for clf in (SmoothNB(), BernoulliNB(), GaussianNB()):
        check(clf.fit(X, y), X)
        check(clf, X, missing=False)
    gone = np.full((30, 1), np.nan)
    check(CategoricalNB(alpha=0).fit(gone, y), gone)
    check(CategoricalNB().fit(gone, y), np.array([[3.0], [np.nan]]))
    check(TreeAugmentedNB().fit(gone, y), np.array([[3.0], [np.nan]]))


def test_sparse_rows_are_dense_inputs():
    X, y = counts(np.random.default_rng(0))
    check(MultinomialNB().fit(csr_array(X), y), csr_array(X))


def test_columns_of_extreme_range():
    rng = np.random.default_rng(0)
    X, y = numbers(rng)
    X[:, 0] *= 1e-160
    X[:, -1] *= 1e150
    check(RiskBayesClassifier("single").fit(X, y), X)


LABELS = [np.array(["a", "b"]), np.array([-3, 7]), np.array([False, True]), np.array([1.0, 2.0])]


@pytest.mark.parametrize("labels", LABELS, ids=lambda labels: str(labels.dtype))
def test_labels_of_every_type(labels):
    X, y = numbers(np.random.default_rng(1))
    clf = GaussianNB().fit(X, labels[np.minimum(y, 1)])
    model = check(clf, X)
    label = run(model, {"X": X})[0]
    assert set(label.tolist()) == set(labels.tolist())
    found = {entry.key: entry.value for entry in model.metadata_props}
    assert json.loads(found["classes"]) == labels.tolist()
    assert (found["estimator"], found["version"]) == ("GaussianNB", riskbayes.__version__)
    assert (model.producer_name, model.producer_version) == ("riskbayes", riskbayes.__version__)


def test_labels_of_objects():
    X, y = numbers(np.random.default_rng(1))
    check(SmoothNB().fit(X, np.array(["no", "yes"], dtype=object)[np.minimum(y, 1)]), X)


def test_costs_priors_and_classes_without_rows():
    X, y = numbers(np.random.default_rng(2))
    y = np.minimum(y, 1)
    dear = GaussianNB(learner=RC(objective=[[0, 20], [1, 0]])).fit(X, y)
    assert (dear.predict(X) != dear.predict_proba(X).argmax(axis=1)).any()
    check(dear, X)
    for clf in (GaussianNB(), RiskBayesClassifier("single")):
        check(clf.fit(X, y).with_priors([0.9, 0.1]), X)
    X = (np.median(X, axis=0) < X).astype(float)
    for priors in (None, [0.3, 0.3, 0.4]):
        stream = BernoulliNB(class_prior=priors, learner="closed_form").partial_fit(X, y, classes=[0, 1, 2])
        assert (stream.predict_proba(X)[:, 2] == 0).all()
        check(stream, X)


@pytest.mark.parametrize("kind", [GaussianNB, QuadraticDiscriminantAnalysis, CategoricalNB])
def test_inputs_of_single_precision(kind):
    X, y = codes(np.random.default_rng(0))
    X = (X if kind is CategoricalNB else X + np.random.default_rng(1).normal(size=X.shape)).astype(np.float32)
    clf = kind().fit(X.astype(np.float64), y)
    model = check(clf, X.astype(np.float64), dtype="float32")
    assert model.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.FLOAT


def test_the_reference_implementation_agrees():
    df, y = mixed(np.random.default_rng(5))
    clf = RiskBayesClassifier("single").fit(df, y)
    reference = onnx.reference.ReferenceEvaluator(clf.to_onnx())
    label, P = reference.run(["label", "probabilities"], onnx_inputs(clf, df))
    np.testing.assert_allclose(P, clf.predict_proba(df), atol=1e-9)
    assert (label == clf.predict(df)).all()


def test_a_graph_does_not_grow_with_the_rows():
    rng = np.random.default_rng(0)
    sizes = set()
    for m in (200, 2000):
        y = rng.integers(2, size=m)
        sizes.add(
            len(
                QuadraticDiscriminantAnalysis()
                .fit(rng.normal(size=(m, 6)) + y[:, None], y)
                .to_onnx()
                .graph.node
            )
        )
    assert len(sizes) == 1


@pytest.mark.parametrize(
    "name", [name for name in riskbayes.__all__ if inspect.isclass(getattr(riskbayes, name))]
)
def test_every_estimator_offers_it(name):
    kind = getattr(riskbayes, name)
    assert hasattr(kind, "to_onnx") == hasattr(kind, "predict_proba")


REFUSED = [
    (lambda X, y: GaussianNB(), ValueError, "not fitted"),
    (
        lambda X, y: MixedNB(unseen="error", categorical_features=[0]).fit(X.round(), y),
        ValueError,
        "Column 'x0' may hold unseen categories.*unseen='missing'",
    ),
    (
        lambda X, y: GaussianNB().fit(pd.DataFrame(X[:, :2], columns=["label", "b"]), y),
        ValueError,
        "Column 'label' cannot be an input.*Rename it",
    ),
    (
        lambda X, y: MixedNB().fit(
            pd.DataFrame({"day": pd.Categorical(pd.to_datetime(["2024-01-01"] * 60 + ["2024-02-02"] * 60))}),
            y,
        ),
        ValueError,
        "Column 'day' has the category.*strings or numbers",
    ),
]


@pytest.mark.parametrize(("fitted", "error", "said"), REFUSED, ids=[said for _, _, said in REFUSED])
def test_refusals_say_what_to_do(fitted, error, said):
    X, y = numbers(np.random.default_rng(0))
    X = np.column_stack([X, X])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FlooredWarning)
        clf = fitted(X, y)
    with pytest.raises(error, match=said):
        clf.to_onnx()


def test_options_are_checked():
    X, y = counts(np.random.default_rng(0))
    clf = MultinomialNB().fit(X, y)
    with pytest.raises(ValueError, match="MultinomialNB takes no missing cells"):
        clf.to_onnx(missing=True)
    with pytest.raises(ValueError, match="dtype must be 'float64' or 'float32'; got 'float16'"):
        clf.to_onnx(dtype="float16")


def test_without_onnx_the_error_names_the_extra(monkeypatch):
    X, y = counts(np.random.default_rng(0))
    clf = MultinomialNB().fit(X, y)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r'pip install "riskbayes\[onnx\]"'):
        clf.to_onnx()


@pytest.mark.parametrize("name", ["titanic", "penguins_raw", "horse_colic", "credit_approval", "telco_churn"])
def test_real_tables(name, paper_folder):
    path = paper_folder / "mixed" / f"{name}.csv.gz"
    if not path.exists():
        pytest.skip(f"{path.name} is not there")
    df = pd.read_csv(path)
    target = df.columns[-1]
    df = df.dropna(subset=[target]).sample(frac=1, random_state=0)[:2000]
    y, half = df.pop(target).astype(str).to_numpy(), len(df) // 2
    for clf in (RiskBayesClassifier("single"), MixedNB(unseen="other")):
        check(clf.fit(df[:half], y[:half]), df[half:])


def test_a_real_table_of_numbers(paper_set):
    X, y = paper_set("indian_liver")
    for clf in (RiskBayesClassifier("single"), LinearDiscriminantAnalysis(), QuadraticDiscriminantAnalysis()):
        check(clf.fit(X, y), X)
