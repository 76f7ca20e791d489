"""Mixtures, tables of pairs, leaves, neighbours and averages as ONNX: what onnxruntime makes of them."""

import json

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from made_tables import (
    BUNDLED,
    bundled,
    codes,
    counts,
    dependent,
    dependent_holes,
    mixed,
    numbers,
    with_every_member,
    with_holes,
    with_tables,
)
from onnx_checks import check, run
from riskbayes import (
    CategoricalNB,
    ComplementNB,
    ConditionalGaussianNB,
    GaussianNB,
    GenerativeClassifier,
    KDependenceNB,
    LinearDiscriminantAnalysis,
    MixedNB,
    MixtureDiscriminantAnalysis,
    MultinomialNB,
    PoissonNB,
    ProductOfExperts,
    QuadraticDiscriminantAnalysis,
    RiskBayesClassifier,
    SmoothNB,
    TreeAugmentedNB,
)
from riskbayes.models import LDAModel, LeavesModel, MixtureModel, NeighboursModel, QDAModel
from riskbayes.onnx_export import onnx_inputs

pytestmark = pytest.mark.filterwarnings("ignore::riskbayes.FlooredWarning")

TOLD = ("baseline", "columns")
"""Metadata of the output of contributions."""


@pytest.mark.parametrize("strategy", ["glass", "ensemble", "neighbours"])
@pytest.mark.parametrize("name", [*BUNDLED, "adult"])
def test_bundled_tables(name, strategy):
    if (name, strategy) == ("digits", "ensemble"):
        pytest.skip("64 columns and ten classes take long to search; the other strategies read them")
    X, y, new = bundled(name, np.random.default_rng(0))
    clf = RiskBayesClassifier(strategy, random_state=0, cv=2).fit(X, y)
    check(clf, new)


def test_every_member_of_a_table_of_all_kinds():
    rng = np.random.default_rng(3)
    (df, y), (new, _) = mixed(rng), mixed(rng)
    new.loc[::5, "colour"] = "violet"
    new.loc[::7, ["size", "visits", "level"]] = np.nan
    for unseen in ("missing", "other"):
        clf = with_every_member(df, y, unseen=unseen, categorical_features=["colour", "level"])
        names = {type(own).__name__ for own, _ in clf.members_}
        assert names >= {"GlassClassifier", "MemberClassifier", "ProductOfExperts"}
        check(clf, new)
    check(clf.with_priors([0.2, 0.2, 0.6]), new)


def test_every_member_of_numbers_in_extreme_units():
    rng = np.random.default_rng(4)
    X, y = numbers(rng)
    X[:, 0] *= 1e-160
    X[:, -1] *= 1e150
    clf = with_every_member(with_holes(X, rng, 0.1), y)
    check(clf, X)


def test_tables_of_pairs():
    rng = np.random.default_rng(5)
    (df, y), (new, _) = mixed(rng, 400), mixed(rng)
    new.loc[::5, "colour"] = "violet"
    new.loc[::7, ["size", "visits"]] = np.nan
    clf = with_tables(df, y)
    assert clf.members_[0][0].pairs_
    check(clf, new)
    told(clf, new)
    X, y = numbers(rng)
    clf = with_tables(X, y)
    assert clf.members_[0][0].pairs_
    check(clf, with_holes(X, rng), missing=True)


@pytest.mark.parametrize("base", [LDAModel(), QDAModel()], ids=lambda base: type(base).__name__)
@pytest.mark.parametrize("holes", [False, True])
def test_mixtures(base, holes):
    rng = np.random.default_rng(1)
    X, y = numbers(rng)
    X = with_holes(X, rng) if holes else X
    model = MixtureModel(base, n_components=3)
    clf = GenerativeClassifier(model, learner="rc").fit(X, y)
    assert clf.parameters_.sizes.max() > 1
    check(clf, X)
    check(MixtureDiscriminantAnalysis().fit(X, y), X)


def test_a_class_of_probability_zero_in_a_mixture():
    X, y = numbers(np.random.default_rng(2))
    clf = MixtureDiscriminantAnalysis().fit(X, y)
    p = np.zeros(len(clf.classes_))
    p[0] = 1.0
    check(clf.with_priors(p), X)


def test_leaves_of_categories_and_missing_cells():
    rng = np.random.default_rng(4)
    y = rng.integers(3, size=300)
    X = np.column_stack([rng.normal(y), rng.integers(6, size=300) + (y == 1), rng.normal(size=300)])
    X = with_holes(X, rng, 0.1)
    clf = GenerativeClassifier(LeavesModel(n_trees=7, categories=(1,)), learner="closed_form").fit(X, y)
    new = X.copy()
    new[::3, 1] = 40.0
    new[::5] = np.nan
    model = clf.to_onnx()
    _, P = run(model, onnx_inputs(clf, new))
    np.testing.assert_allclose(P, clf.predict_proba(new), atol=1e-12)
    one = GenerativeClassifier(LeavesModel(n_trees=3), learner="closed_form").fit(X[:8], y[:8])
    check(one, X)  # trees of one leaf


def test_neighbours_of_twins_and_of_rows_far_away():
    rng = np.random.default_rng(6)
    X, y = numbers(rng)
    clf = GenerativeClassifier(NeighboursModel(), learner="closed_form").fit(np.vstack([X, X]), [*y, *y])
    new = np.vstack([X, X * 1e6, with_holes(X, rng), np.full((1, X.shape[1]), np.nan)])
    check(clf, new)
    few = GenerativeClassifier(NeighboursModel(), learner="closed_form").fit(X[:5], [0, 1, 0, 1, 1])
    check(few, new)


def told(clf, X, **options):
    """Hold the output of contributions against `explain`, and their sum against the probabilities."""
    model = clf.to_onnx(contributions=True, **options)
    onnx.checker.check_model(model, full_check=True)
    inputs, explanation = onnx_inputs(clf, X), clf.explain(X)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    P, values = session.run(["probabilities", "contributions"], inputs)
    np.testing.assert_allclose(P, clf.predict_proba(X), atol=1e-9)
    assert values.shape == explanation.values.shape
    np.testing.assert_allclose(values, explanation.values, rtol=1e-9, atol=1e-9)
    found = {entry.key: json.loads(entry.value) for entry in model.metadata_props if entry.key in TOLD}
    np.testing.assert_allclose(found["baseline"], explanation.baseline, atol=1e-12)
    if hasattr(X, "columns"):
        assert found["columns"] == explanation.columns
    np.testing.assert_allclose(softmax(values.sum(axis=1) + found["baseline"], axis=1), P, atol=1e-9)
    return model


@pytest.mark.parametrize(
    "kind",
    [GaussianNB, SmoothNB, LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis, ProductOfExperts],
)
@pytest.mark.parametrize("holes", [False, True])
def test_contributions_of_numbers(kind, holes):
    rng = np.random.default_rng(7)
    X, y = numbers(rng)
    X = with_holes(X, rng) if holes else X
    told(kind().fit(X, y), X)


def test_contributions_of_counts_and_codes():
    rng = np.random.default_rng(8)
    X, y = counts(rng)
    for kind in (PoissonNB, MultinomialNB, ComplementNB):
        told(kind().fit(X, y), X)
    X, y = codes(rng)
    told(CategoricalNB().fit(X, y), np.where(rng.random(X.shape) < 0.1, 9.0, X))
    for kind in (TreeAugmentedNB, KDependenceNB):
        told(kind().fit(X, y), X, missing=False)
    told(KDependenceNB(k=2).fit(X, y), X)


def test_contributions_of_tables():
    rng = np.random.default_rng(9)
    (df, y), (new, _) = mixed(rng), mixed(rng)
    new.loc[::7, ["size", "visits", "level"]] = np.nan
    for clf in (RiskBayesClassifier("single"), MixedNB("gaussian"), MixedNB("binned", learner="closed_form")):
        told(clf.fit(df, y), new)
        told(clf.with_priors([0.2, 0.2, 0.6]), new)


def test_missing_cells_among_many_correlated_columns():
    """There the log determinant of the correlations is shared equally: the sums stay exact."""
    rng = np.random.default_rng(10)
    y = rng.integers(3, size=400)
    X = rng.normal(size=(400, 12)) @ rng.normal(size=(12, 12)) + y[:, None]
    gaps = with_holes(X, rng, 0.1)
    clf = QuadraticDiscriminantAnalysis().fit(gaps, y)
    complete = ~np.isnan(gaps).any(axis=1)
    assert 0 < complete.sum() < 400
    told(clf, gaps[complete])
    model = clf.to_onnx(contributions=True)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (values,) = session.run(["contributions"], {"X": gaps})
    wanted = clf.explain(gaps).values
    np.testing.assert_allclose(values.sum(axis=1), wanted.sum(axis=1), atol=1e-8)
    assert (values[np.isnan(gaps)] == 0).all()


def test_contributions_of_what_is_no_sum_are_refused():
    X, y = numbers(np.random.default_rng(0))
    with pytest.raises(NotImplementedError, match="MixtureDiscriminantAnalysis has scores that are no sum"):
        MixtureDiscriminantAnalysis().fit(X, y).to_onnx(contributions=True)
    clf = RiskBayesClassifier("ensemble", random_state=0, cv=2).fit(X, y)
    clf.members_ = [(clf.members_[0][0], 0.5)] * 2
    with pytest.raises(NotImplementedError, match="averages the posteriors of 2 models"):
        clf.to_onnx(contributions=True)


@pytest.mark.parametrize("numeric", ["smooth", "gaussian"])
@pytest.mark.parametrize("unseen", ["missing", "other"])
@settings(max_examples=4)
@given(seed=st.integers(0, 10**6), holes=st.booleans())
def test_trees_of_numbers_and_categories(numeric, unseen, seed, holes):
    rng = np.random.default_rng(seed)
    X, y = dependent(rng)
    rows = dependent_holes(rng, X, 0.1) if holes else X
    clf = ConditionalGaussianNB(numeric=numeric, unseen=unseen, missing="informative").fit(rows, y)
    edges = {child: parent for child, parent in clf.parents_.items() if parent is not None}
    assert len(edges) >= 4  # numbers below numbers, and below a category
    check(clf, dependent_holes(rng, X))
    model = check(clf, X, missing=False) if not holes else None
    assert model is None or not {"IsNaN", "Where"} & {node.op_type for node in model.graph.node}


def test_a_network_of_two_parents_is_written_for_complete_rows():
    rng = np.random.default_rng(0)
    X, y = dependent(rng)
    first, second = rng.standard_normal((2, len(X)))
    both = (1 + (X["shade"] == X["shade"].iloc[0])) * first - 2 * second + 0.1 * rng.standard_normal(len(X))
    X = X.assign(first=first, second=second, both=both)
    clf = ConditionalGaussianNB(2).fit(X, y)
    assert max(map(len, clf.parents_.values())) == 2
    check(clf, X, missing=False)
    told(clf, X, missing=False)
    with pytest.raises(NotImplementedError, match=r"\(k above 1\) .* missing=False, or fit with k=1"):
        clf.to_onnx(missing=True)


def test_contributions_of_a_tree_of_complete_rows():
    X, y = dependent(np.random.default_rng(0))
    clf = ConditionalGaussianNB().fit(X, y)
    told(clf, X, missing=False)
