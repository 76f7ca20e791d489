"""Missing cells in models of categories and of knots: they drop out of the joint and of the statistics."""

from dataclasses import replace
from itertools import pairwise
from itertools import product as cartesian

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn.naive_bayes
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import log_softmax, logsumexp
from sklearn.base import clone
from sklearn.metrics import mutual_info_score

from conftest import closed_form, encoded, log_joint, random_rows
from riskbayes import CategoricalNB, KDependenceNB, SmoothNB, TreeAugmentedNB
from riskbayes.learners import RC
from riskbayes.models import CategoricalModel, SmoothModel, TreeModel
from riskbayes.models.base import Fitted, Sample
from riskbayes.models.binned import bin_edges
from riskbayes.models.codes import Codes
from riskbayes.models.hats import Hats, Places
from riskbayes.models.structure import dependences
from riskbayes.objectives import LogLoss, SoftError
from riskbayes.preprocessing import KMeansBins
from riskbayes.scanners import kernels
from riskbayes.scanners.dense import label_statistics

seeds = st.integers(0, 2**32 - 1)
CATEGORICAL, SMOOTH = CategoricalModel(alpha=0.5), SmoothModel(alpha=0.5, n_knots=4, max_categories=4)
TREE, TWO = (TreeModel(alpha=0.5, backoff=2.0, structure=kind) for kind in ("tree", 2))
MODELS = {"categorical": CATEGORICAL, "smooth": SMOOTH, "tree": TREE, "2-db": TWO}
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
ESTIMATORS = [CategoricalNB, TreeAugmentedNB, KDependenceNB, SmoothNB]
every_estimator = pytest.mark.parametrize("kind", ESTIMATORS)


def holey_rows(model, rng, share=0.3, **options):
    """Rows with holes, their labels and weights; a class that lacks a column, and a row without cells."""
    X, y, w = random_rows(model, rng, **options)
    whole = X.astype(float)
    X = np.where(rng.random(X.shape) < share, np.nan, whole)
    X[y == 1, 0] = np.nan
    X[5] = np.nan
    return X, whole, y, w


def table(log):
    """The logarithms that the log joint is linear in."""
    return "log_density" if hasattr(log, "log_density") else "log_prob"


# --- the joint --------------------------------------------------------------------------------------


@given(seed=seeds, n=st.integers(1, 4))
def test_a_missing_category_is_summed_over(seed, n):
    rng = np.random.default_rng(seed)
    X, _, y, w = holey_rows(CATEGORICAL, rng, n=n)
    fitted = closed_form(CATEGORICAL, X, y, w, 3)[1]
    found = log_joint(fitted, X)
    for row, value in zip(X[:10], found, strict=False):
        free = [
            range(k) if np.isnan(x) else [int(x)]
            for x, k in zip(row, fitted.S.frame.n_categories, strict=True)
        ]
        np.testing.assert_allclose(
            value, logsumexp(log_joint(fitted, np.array(list(cartesian(*free)))), axis=0), atol=1e-12
        )


@settings(max_examples=5)
@given(seed=seeds)
def test_a_missing_value_is_integrated_over(seed):
    rng = np.random.default_rng(seed)
    X, _, y, w = holey_rows(SMOOTH, rng, n=2, r=2)
    fitted = closed_form(SMOOTH, X, y, w, 2)[1]
    frame = fitted.S.frame
    row = np.array([[X[~np.isnan(X[:, 0]), 0][0], np.nan]])
    knots = frame.positions[frame.offsets[1] :]
    ends = [knots[0] - 50 * frame.tails[1, 0], *knots, knots[-1] + 50 * frame.tails[1, 1]]
    for k in range(2):

        def density(x, k=k):
            return np.exp(log_joint(fitted, np.array([[row[0, 0], x]])))[0, k]

        total = sum(quad(density, a, b)[0] for a, b in pairwise(ends))
        assert total == pytest.approx(np.exp(log_joint(fitted, row))[0, k], rel=1e-6)


def completions(row, sizes):
    """All rows without holes that agree with the row."""
    free = [range(k) if np.isnan(x) else [x] for x, k in zip(row, sizes, strict=True)]
    return np.array(list(cartesian(*free)))


@given(seed=seeds, unseen=st.booleans())
def test_a_tree_is_summed_over_and_counted_by_all_completions_of_a_row(seed, unseen):
    """Against enumeration: log joints, and expected counts under the current parameters."""
    rng = np.random.default_rng(seed)
    X, _, y, w = holey_rows(TREE, rng, n=4)
    fitted = closed_form(TREE, X, y, w, 3)[1]
    model, S, theta = fitted
    sizes, rows, E = S.frame.sizes, X[rng.permutation(len(X))[:8]], rng.standard_normal((8, 3))
    if unseen:
        rows[:, rng.integers(4)] = 9.0
    all_rows = [completions(row, sizes) for row in rows]
    joints = [log_joint(fitted, whole) for whole in all_rows]
    expected = np.stack([logsumexp(joint, axis=0) for joint in joints])
    Z = model.encode(rows, S.frame)
    np.testing.assert_allclose(model.log_joint(Z, theta), expected, atol=1e-10)
    found = model.residual_statistics(Z, E, theta)["counts"]
    below = {i: {i} for i in range(4)}
    for _ in range(4):
        for i, above in enumerate(S.frame.parent_lists):
            for p in above:
                below[p] |= below[i]
    for i, (first, k) in enumerate(zip(S.frame.offsets, S.frame.n_categories, strict=True)):
        # A feature without a present cell in it or below is not counted.
        there = ~np.isnan(rows[:, sorted(below[i])]).all(axis=1)
        counts = sum(
            model.statistics(model.encode(whole, S.frame), e * np.exp(joint - total))["counts"]
            for whole, joint, total, e in zip(all_rows, joints, expected, E * there[:, None], strict=True)
        )
        np.testing.assert_allclose(found[:, first : first + k], counts[:, first : first + k], atol=1e-10)


@given(seed=seeds, backoff=st.sampled_from([0.0, 2.0, 50.0]))
def test_the_likelihood_of_a_tree_never_falls_in_em(seed, backoff):
    model = TreeModel(structure="tree", alpha=backoff / 4, backoff=backoff)
    X, _, y, w = holey_rows(model, np.random.default_rng(seed), n=4)
    S = closed_form(model, X, y, w, 3)[1].S
    path = S.frame.em_log_likelihood
    assert len(path) > (backoff == 0)  # a prior may be stronger than the first step
    assert (np.diff(path) > 0).all()
    assert path[-1] == pytest.approx(
        (w * model.log_joint(model.encode(X, S.frame), S.frame.start)[np.arange(len(y)), y]).sum() / w.sum()
    )


@pytest.mark.parametrize("model", [TREE, TWO], ids=["tree", "2-db"])
@given(seed=seeds)
def test_trees_sum_over_a_missing_leaf_and_are_normalised_over_what_is_present(model, seed):
    rng = np.random.default_rng(seed)
    X, _, y, w = holey_rows(model, rng, n=4)
    fitted = closed_form(model, X, y, w, 3)[1]
    frame = fitted.S.frame
    inner = {p for above in frame.parent_lists for p in above}
    domain = np.array(list(cartesian(*(range(k) for k in frame.sizes))), dtype=float)
    for leaf in set(range(4)) - inner:
        rows = domain[domain[:, leaf] == 0]
        completed = [rows + v * (np.arange(4) == leaf) for v in range(frame.sizes[leaf])]
        summed = logsumexp([log_joint(fitted, rows) for rows in completed], axis=0)
        rows = np.where(np.arange(4) == leaf, np.nan, rows)
        np.testing.assert_allclose(log_joint(fitted, rows), summed, atol=1e-12)
    holes = rng.random(4) < 0.5
    present = np.unique(np.where(holes, 0.0, domain), axis=0)
    total = logsumexp(log_joint(fitted, np.where(holes, np.nan, present)), axis=0)
    np.testing.assert_allclose(total, fitted.theta.log_prior, atol=1e-12)


def test_parents_that_only_new_rows_lack_leave_the_frequency_in_the_class():
    rng, model = np.random.default_rng(0), TWO
    X, y, w = random_rows(model, rng, m=100, n=3)
    fitted = closed_form(model, X, y, w, 3)[1]
    child = next(i for i, above in enumerate(fitted.S.frame.parent_lists) if above)
    alone = closed_form(replace(model, structure=None), X[:, [child]], y, w, 3)[1]
    rows = np.where(np.arange(3) == child, X, np.nan)
    np.testing.assert_allclose(log_joint(fitted, rows), log_joint(alone, X[:, [child]]), atol=1e-12)


@every_model
def test_a_row_without_cells_has_the_prior_as_its_posterior(model):
    X, _, y, w = holey_rows(model, np.random.default_rng(0))
    fitted = closed_form(model, X, y, w, 3)[1]
    np.testing.assert_allclose(log_joint(fitted, X[5:6])[0], fitted.theta.log_prior, atol=1e-12)


# --- statistics, and what RC makes of them ----------------------------------------------------------


@every_model
@given(seed=seeds, r=st.integers(2, 4))
def test_statistics_count_what_is_present(model, seed, r):
    rng = np.random.default_rng(seed)
    X, _, y, w = holey_rows(model, rng, r=r)
    fitted = closed_form(model, X, y, w, r)[1]
    Z, V = model.encode(X, fitted.S.frame), rng.random((len(X), r))
    S = model.statistics(Z, V)
    np.testing.assert_allclose(S["s0"], V.sum(axis=0))
    if model is not TREE:  # where a parent is missing, the whole row is counted in expectation
        np.testing.assert_allclose(S.frame.sums(S["counts"]), V.T @ ~np.isnan(X), atol=1e-9)
        likelihood = (V * log_joint(fitted, X)).sum()
        assert model.log_likelihood(S, fitted.theta) == pytest.approx(likelihood, rel=1e-9)
    parts = model.statistics(Z[:17], V[:17]) + model.statistics(Z[17:], V[17:])
    assert parts.allclose(S, rtol=1e-10)


@every_model
@settings(max_examples=10)
@given(seed=seeds)
def test_the_step_of_rc_is_the_gradient_of_the_conditional_likelihood_of_what_is_present(model, seed):
    """By finite differences in the logarithms, which the log joint is linear in."""
    rng = np.random.default_rng(seed)
    X, _, y, w = holey_rows(model, rng)
    engine, fitted = closed_form(model, X, y, w, 3)
    theta, name = fitted.theta, table(fitted.theta)
    dS = engine.scan(fitted, LogLoss()).dS

    def likelihood(moved):
        return w @ log_softmax(log_joint(fitted._replace(theta=moved), X), axis=1)[np.arange(len(y)), y]

    direction = rng.standard_normal(dS["counts"].shape)
    ends = [
        likelihood(replace(theta, **{name: getattr(theta, name) + eps * direction})) for eps in (1e-5, -1e-5)
    ]
    expected = (dS["counts"] * direction).sum()
    assert (ends[0] - ends[1]) / 2e-5 == pytest.approx(
        expected, rel=1e-5, abs=1e-5 * np.abs(dS["counts"]).sum()
    )


def backed_off(model, frame):
    """Return how many rows `backoff` counts as in the tables of each feature that has parents."""
    backoff = getattr(model, "backoff", 0.0)
    if backoff == 0:
        return 0.0
    return backoff * np.add.reduceat(~frame.free[frame.starts], np.searchsorted(frame.starts, frame.offsets))


@every_model
@settings(max_examples=10)
@given(seed=seeds)
def test_the_closed_form_maximises_the_likelihood_of_the_anchor(model, seed):
    rng = np.random.default_rng(seed)
    X, _, y, w = holey_rows(model, rng)
    _, S, theta = closed_form(model, X, y, w, 3)[1]
    anchor = model.anchor_statistics(S)
    share = (S.frame.sums(S["counts"]) + backed_off(model, S.frame)) / S["s0"][:, None]
    np.testing.assert_allclose(anchor.frame.sums(anchor["counts"]), anchor["s0"][:, None] * share, atol=1e-9)
    best = model.log_likelihood(anchor, theta)
    for _ in range(10):
        moved = S + 0.05 * rng.standard_normal() * model.anchor_statistics(
            S + 0.5 * model.statistics(model.encode(X, S.frame), rng.random((len(X), 3)))
        )
        assert model.log_likelihood(anchor, model.parameters(moved)) <= best + 1e-12 * (1 + abs(best))


@pytest.mark.parametrize(
    "model", [CategoricalModel(), TreeModel(structure="tree")], ids=["categorical", "tree"]
)
def test_under_ml_the_anchor_is_the_data(model):
    X, _, y, w = holey_rows(model, np.random.default_rng(0), share=0.1, m=400, n=2)
    X[y == 1, 0] = 0.0
    S = closed_form(model, X, y, w, 3)[1].S
    assert model.anchor_statistics(S).allclose((1 / S.total) * S, rtol=1e-6)


@every_estimator
def test_a_strong_anchor_holds_the_closed_form(kind):
    X, y, w = holes_for(kind)
    held = kind(learner=RC(step="adaptive", generative_weight=1e5, max_iter=20)).fit(X, y, w)
    closed = kind(learner="closed_form").fit(X, y, w)
    np.testing.assert_allclose(held.predict_proba(X), closed.predict_proba(X), atol=1e-3)


@given(seed=seeds)
def test_dependences_are_mutual_informations_of_the_rows_that_have_both(seed):
    X, _, y, _ = holey_rows(TREE, np.random.default_rng(seed))
    _, between = dependences(Sample(X, y, None, 3))
    for i, j in ((0, 1), (1, 2), (2, 0)):
        both = ~np.isnan(X[:, [i, j]]).any(axis=1)
        expected = sum(
            (both & (y == k)).sum() * mutual_info_score(X[both & (y == k), i], X[both & (y == k), j])
            for k in range(3)
            if (both & (y == k)).any()
        )
        assert between[i, j] == pytest.approx(expected / len(y), abs=1e-8)


# --- compiled scans ---------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [CATEGORICAL, SMOOTH], ids=["categorical", "smooth"])
@pytest.mark.parametrize("objective", [LogLoss(), SoftError()])
@given(
    seed=seeds, r=st.sampled_from([2, 3, 7]), weighted=st.booleans(), share=st.sampled_from([0.01, 0.5, 1.0])
)
def test_compiled_scans_are_the_plain_ones(model, objective, seed, r, weighted, share):
    pytest.importorskip("numba", reason="needs the extra `fast`")
    rng = np.random.default_rng(seed)
    X, _, y, w = holey_rows(model, rng, share, m=600, n=6, r=r)
    w = w if weighted else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "SMALLEST", 0)
        fast, (_, S, theta) = closed_form(model, X, y, w, r)
        Z = model.encode(X, S.frame)
        assert isinstance(Z, Places) or Z.grouping is not None
        scan, joint = fast.scan(Fitted(model, S, theta), objective), model.log_joint(Z, theta)
        filled = model.fill(Z, theta, y)
    plain, (_, expected, _) = closed_form(model, X, y, w, r)
    assert S.allclose(expected, rtol=1e-12)
    Z = model.encode(X, S.frame)
    assert isinstance(Z, Hats) or Z.grouping is None
    found = plain.scan(Fitted(model, S, theta), objective)
    assert scan.risks.mean() == pytest.approx(found.risks.mean(), rel=1e-10)
    assert scan.dS.allclose(found.dS, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(joint, model.log_joint(Z, theta), rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(filled, model.fill(Z, theta, y), rtol=1e-9, atol=1e-9)


def test_a_group_of_features_may_have_holes_beside_256_categories():
    pytest.importorskip("numba", reason="needs the extra `fast`")
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, [256, 2, 2, 2], size=(2000, 4)).astype(float), rng.integers(2, size=2000)
    X[0] = 255, 1, 1, 1
    X[1:][rng.random((1999, 4)) < 0.2] = np.nan
    plain = CategoricalNB().fit(X, y)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "SMALLEST", 0)
        compiled = CategoricalNB().fit(X, y)
    np.testing.assert_allclose(compiled.predict_proba(X), plain.predict_proba(X), atol=1e-9)


# --- estimators -------------------------------------------------------------------------------------


def holes_for(kind, seed=0, **options):
    """X, y, w with holes for an estimator."""
    model = SMOOTH if kind is SmoothNB else CATEGORICAL
    X, _, y, w = holey_rows(model, np.random.default_rng(seed), m=80, **options)
    return X, y, w


@every_estimator
@pytest.mark.parametrize("learner", ["closed_form", "rc", "tm"])
def test_a_column_that_is_missing_everywhere_changes_no_posterior(kind, learner):
    X, y, w = holes_for(kind)
    expected = kind(learner=learner).fit(X, y, w).predict_proba(X)
    for j in (0, 2, 3):
        more = np.insert(X, j, np.nan, axis=1)
        found = kind(learner=learner).fit(more, y, w)
        np.testing.assert_allclose(found.predict_proba(more), expected, atol=1e-9)
        new = np.insert(X, j, 1.0, axis=1)  # nothing is known of it, whatever new rows hold
        np.testing.assert_allclose(found.predict_proba(new), expected, atol=1e-9)


@every_estimator
def test_new_rows_may_lack_cells_that_all_training_rows_have(kind):
    X, y, w = holes_for(kind)
    whole = np.where(np.isnan(X), np.nanmax(X, axis=0), X)
    clf = kind().fit(whole, y, w)
    for j in range(X.shape[1]):
        rows = whole.copy()
        rows[:, j] = np.nan
        assert np.isfinite(clf.predict_joint_log_proba(rows)).all()
    nothing = clf.predict_proba(np.full((2, X.shape[1]), np.nan))
    np.testing.assert_allclose(nothing, np.exp(clf.parameters_.log_prior)[None, :].repeat(2, 0), atol=1e-12)


@every_estimator
def test_holes_are_allowed_and_infinity_is_not(kind):
    assert kind().__sklearn_tags__().input_tags.allow_nan
    X, y, _ = holes_for(kind)
    X[3, 1] = np.inf
    with pytest.raises(ValueError, match="infinity in column 1"):
        kind().fit(X, y)


@given(seed=seeds, alpha=st.floats(0.1, 3))
def test_each_feature_is_scikit_learns_on_the_rows_that_have_it(seed, alpha):
    X, y, w = holes_for(CategoricalNB, seed)
    X[y == 1, 0] = 0.0
    ours = CategoricalNB(alpha=alpha, learner="closed_form").fit(X, y, w)
    for j in range(X.shape[1]):
        rows = ~np.isnan(X[:, j])
        theirs = sklearn.naive_bayes.CategoricalNB(alpha=alpha, min_categories=int(ours.n_categories_[j]))
        theirs.fit(X[rows, j : j + 1].astype(int), y[rows], w[rows])
        np.testing.assert_allclose(ours.feature_log_prob_[j], theirs.feature_log_prob_[0], rtol=1e-10)


def test_an_unseen_category_is_not_a_missing_one():
    X, y, _ = holes_for(CategoricalNB)
    clf = CategoricalNB(alpha=0.5, learner="closed_form").fit(X, y)
    row = np.array([[99.0, np.nan, np.nan]])
    mass = clf.category_count_[0].sum(axis=1)
    expected = clf.class_log_prior_ + np.log(0.5 / (mass + 0.5 * clf.n_categories_[0]))
    np.testing.assert_allclose(clf.predict_joint_log_proba(row)[0], expected)


MISSING = {
    "none": np.array(["a", None, "b"], dtype=object),
    "nan": np.array(["a", np.nan, "b"], dtype=object),
    "NA": np.array(["a", pd.NA, "b"], dtype=object),
    "NaT": np.array(["a", pd.NaT, "b"], dtype=object),
    "empty": np.array(["a", "", "b"]),
    "pandas_categorical": pd.Categorical(["a", None, "b"]),
    "pandas_declared": pd.Categorical(["a", "", "b"], categories=["", "a", "b"]),
    "pandas_string": pd.array(["a", pd.NA, "b"], dtype="string"),
    "pandas_int": pd.array([0, pd.NA, 1], dtype="Int64"),
    "pandas_bool": pd.array([False, pd.NA, True], dtype="boolean"),
    "float": np.array([0.0, np.nan, 1.0]),
    "polars_string": pl.Series(["a", None, "b"]),
    "polars_int": pl.Series([0, None, 1]),
    "polars_float": pl.Series([0.0, float("nan"), 1.0]),
    "polars_bool": pl.Series([False, None, True]),
    "polars_categorical": pl.Series(["a", None, "b"], dtype=pl.Categorical),
    "polars_enum": pl.Series(["a", None, "b"], dtype=pl.Enum(["a", "b"])),
}


@pytest.mark.parametrize("kind", [CategoricalNB, TreeAugmentedNB, KDependenceNB])
@pytest.mark.parametrize("name", MISSING)
def test_every_kind_of_missing_category_is_missing(kind, name):
    column, first = MISSING[name], [0, 1, 0]
    frame = pl.DataFrame if isinstance(column, pl.Series) else pd.DataFrame
    X = frame({"first": first, "second": column})
    expected = kind().fit(np.array([[0, 0], [1, np.nan], [0, 1]]), [0, 1, 1])
    found = kind().fit(X, [0, 1, 1])
    np.testing.assert_array_equal(found.data_statistics_["counts"], expected.data_statistics_["counts"])
    P = expected.predict_proba(np.array([[0, 0], [1, np.nan], [0, 1]]))
    np.testing.assert_allclose(found.predict_proba(X), P)


def words(X):
    """Codes as strings, and holes as None."""
    return np.array([[None if np.isnan(x) else f"v{x:g}" for x in row] for row in X], dtype=object)


def objects(X):
    """Codes as objects, and holes as None."""
    return np.where(np.isnan(X), None, X.astype(object))


@pytest.mark.parametrize("cast", [np.asarray, words, objects], ids=["codes", "words", "objects"])
@given(seed=seeds)
def test_batches_merging_and_forgetting_are_one_fit(cast, seed):
    X, y, w = holes_for(CategoricalNB, seed)
    X[: len(X) // 2, 2] = np.nan  # nothing of this column in the first batch
    rows, clf = cast(X), CategoricalNB(learner="closed_form")
    whole, halves = clone(clf).fit(rows, y, w), np.split(np.arange(len(y)), 2)
    expected = whole.predict_proba(rows)
    stream = clone(clf)
    for half in halves:
        stream.partial_fit(rows[half], y[half], classes=[0, 1, 2], sample_weight=w[half])
    np.testing.assert_allclose(stream.predict_proba(rows), expected, atol=1e-9)
    for order in (halves, halves[::-1]):
        one, other = (
            clone(clf).partial_fit(rows[half], y[half], classes=[0, 1, 2], sample_weight=w[half])
            for half in order
        )
        np.testing.assert_allclose(one.merge(other).predict_proba(rows), expected, atol=1e-9)
    some = np.arange(60, len(y))
    left = np.arange(60)
    kept = clone(whole).fit(rows, y, w).forget(rows[some], y[some], w[some])
    for table, words_of in zip(kept.category_count_, kept.categories_, strict=True):
        assert table.shape[1] == len(words_of)
    np.testing.assert_allclose(
        np.concatenate(kept.category_count_, axis=1).sum(axis=1),
        [(~np.isnan(X[left]) * w[left, None])[y[left] == k].sum() for k in range(3)],
    )


def test_forgetting_a_row_without_the_cell_that_was_fitted_is_refused():
    clf = CategoricalNB(learner="closed_form").fit(np.array([[0.0, 1], [1, 0], [0, 0], [1, 1]]), [0, 1, 0, 1])
    with pytest.raises(ValueError, match="not all fitted"):
        clf.forget(np.array([[np.nan, 1.0]]), [0])


def test_a_sample_of_a_column_without_a_value_is_missing():
    X = np.array([["a", None], ["b", None], ["a", None]], dtype=object)
    for kind in (CategoricalNB, TreeAugmentedNB):
        drawn = kind().fit(X, [0, 1, 1]).sample(5, random_state=0)[0]
        assert (drawn[:, 1] == None).all()  # noqa: E711
        assert set(drawn[:, 0]) <= {"a", "b"}


# --- filling ----------------------------------------------------------------------------------------


@every_model
def test_filled_cells_are_categories_or_numbers_and_present_ones_stay(model):
    X, _, y, w = holey_rows(model, np.random.default_rng(0))
    _, S, theta = closed_form(model, X, y, w, 3)[1]
    Z = model.encode(X, S.frame)
    for rng in (None, np.random.default_rng(0)):
        filled = model.fill(Z, theta, y, rng)
        assert np.isfinite(filled).all()
        if model is not SMOOTH:
            there = ~np.isnan(X)
            np.testing.assert_array_equal(filled[there], X[there])
            assert (filled < (S.frame.sizes if model in (TREE, TWO) else S.frame.n_categories)).all()


@pytest.mark.parametrize("model", [CATEGORICAL, TREE, TWO], ids=["categorical", "tree", "2-db"])
def test_filled_categories_follow_their_distribution_given_what_is_present(model):
    rng = np.random.default_rng(1)
    X, y, w = random_rows(model, rng, m=60, n=4)
    fitted = closed_form(model, X, y, w, 3)[1]
    _, S, theta = fitted
    row = np.where([True, True, False, True], np.nan, X[7].astype(float))
    k = getattr(S.frame, "sizes", S.frame.n_categories)
    domain = np.array([v for v in cartesian(*(range(size) for size in k)) if v[2] == X[7, 2]])
    p = np.exp(log_joint(fitted, domain)[:, 1])
    p /= p.sum()
    m = 20_000
    Z = model.encode(np.tile(row, (m, 1)), S.frame)
    drawn = model.fill(Z, theta, np.full(m, 1), rng)
    found = (drawn[:, None, :] == domain[None]).all(axis=2).mean(axis=0)
    np.testing.assert_allclose(found, p, atol=4 * np.sqrt(0.25 / m))
    best = model.fill(Z[:1], theta, np.array([1]))[0]
    place = int((domain == best).all(axis=1).argmax())
    near = (domain != best).sum(axis=1) <= 1
    assert p[place] == p[near].max()  # no single cell is better filled


def test_the_anchor_of_densities_expects_the_cells_that_are_present():
    """As draws do that lack as many cells: heavy tails on both sides, half of a column missing."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_t(2, size=(400, 2)), np.arange(400) % 2
    X[rng.random(400) < 0.5 + 0.3 * y, 0] = np.nan
    model, S, theta = closed_form(SmoothModel(n_knots=4), X, y, None, 2)[1]
    labels = np.repeat([0, 1], 50_000)
    drawn, present = model.sample_rows(theta, labels, rng), ~np.isnan(X)
    shares = np.stack([present[y == k].mean(axis=0) for k in range(2)])
    drawn[rng.random(drawn.shape) > shares[labels]] = np.nan
    counted = label_statistics(model, model.encode(drawn, S.frame), labels, None, 2)
    found = model.anchor_statistics(S)
    for name in ("counts", "beyond"):
        np.testing.assert_allclose(found[name], counted[name] / 100_000, rtol=0.05, atol=2e-3)


def test_filled_numbers_are_means_of_the_density_or_draws_of_it():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.gamma(2.0, size=500), rng.integers(0, 3, size=500)])
    y = (X[:, 0] > 2).astype(int)
    X[::3, 0], X[1::3, 1] = np.nan, np.nan
    _, S, theta = closed_form(SMOOTH, X, y, None, 2)[1]
    m = 40_000
    Z = SMOOTH.encode(np.full((m, 2), np.nan), S.frame)
    for k in range(2):
        drawn = SMOOTH.fill(Z, theta, np.full(m, k), rng)
        mean = SMOOTH.fill(Z[:1], theta, np.array([k]))[0]
        assert mean[0] == pytest.approx(drawn[:, 0].mean(), abs=5 * drawn[:, 0].std() / np.sqrt(m))
        knots, tails = S.frame.positions[: S.frame.offsets[1]], S.frame.tails[0]
        ends = [knots[0] - 50 * tails[0], *knots, knots[-1] + 50 * tails[1]]

        def moment(x, k=k):
            joint = SMOOTH.log_joint(SMOOTH.encode(np.array([[x, np.nan]]), S.frame), theta)
            return x * np.exp(joint - theta.log_prior)[0, k]

        assert mean[0] == pytest.approx(sum(quad(moment, a, b)[0] for a, b in pairwise(ends)), rel=1e-6)
        joint = SMOOTH.log_joint(SMOOTH.encode(np.column_stack([[np.nan] * 3, range(3)]), S.frame), theta)
        assert mean[1] == pytest.approx(np.exp(joint[:, k] - theta.log_prior[k]) @ range(3))


@given(seed=seeds, unseen=st.booleans())
def test_a_tree_is_filled_with_the_most_probable_completion_of_a_row(seed, unseen):
    """Against enumeration, in rows of many patterns at once; two parents have a local maximum."""
    rng = np.random.default_rng(seed)
    for model in (TREE, TWO):
        X, _, y, w = holey_rows(model, rng, 0.5, n=5)
        fitted = closed_form(model, X, y, w, 3)[1]
        rows, classes = X[rng.permutation(len(X))[:12]], rng.integers(3, size=12)
        if unseen:
            rows[0, rng.integers(5)] = 9.0
        filled = model.fill(model.encode(rows, fitted.S.frame), fitted.theta, classes)
        filled[rows == 9.0] = 9.0
        for row, found, k in zip(rows, filled, classes, strict=True):
            all_rows = completions(row, fitted.S.frame.sizes)
            if model is TWO:
                all_rows = all_rows[(all_rows != found).sum(axis=1) <= 1]
            best = log_joint(fitted, all_rows)[:, k].max()
            assert log_joint(fitted, found[None])[0, k] == pytest.approx(best, abs=1e-9)


# --- transformers -----------------------------------------------------------------------------------


@given(seed=seeds)
def test_bins_come_from_present_values_and_missing_ones_stay_so(seed):
    X, _, _ = holes_for(SmoothNB, seed)
    X = np.column_stack([X, np.full(len(X), np.nan)])
    bins = KMeansBins().fit(X)
    codes = bins.transform(X)
    assert codes.dtype == np.float64
    np.testing.assert_array_equal(np.isnan(codes), np.isnan(X))
    for j in range(X.shape[1] - 1):
        x = X[~np.isnan(X[:, j]), j : j + 1]
        np.testing.assert_array_equal(codes[~np.isnan(X[:, j]), j], KMeansBins().fit_transform(x)[:, 0])
    assert bins.transform(np.nan_to_num(X)).dtype == np.uint8


def test_codes_of_a_table_without_holes_take_no_room_for_them():
    X = np.array([[0.0, 255], [1, 0]])
    Z = encoded(CATEGORICAL, X)
    assert isinstance(Z, Codes)
    assert Z.codes.dtype == np.uint8
    assert not Z.missing


@given(seed=seeds, n_bins=st.integers(2, 8), weighted=st.booleans())
def test_every_bin_of_equal_weight_has_a_row(seed, n_bins, weighted):
    """Also where a third of the rows have the least value, or the largest."""
    rng = np.random.default_rng(seed)
    x = np.clip(rng.standard_normal(60), *rng.choice([-0.5, 0.5, 9.0], size=2) * [-1, 1])
    w = rng.uniform(0.1, 3.0, size=60) if weighted else None
    edges = bin_edges(x, w, n_bins)
    codes = np.searchsorted(edges, x, side="right")
    assert set(codes) == set(range(len(edges) + 1))
    assert len(edges) < n_bins
