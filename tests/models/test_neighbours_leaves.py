"""Neighbours and leaves of random trees: what they learn, what they leave out, and what changes nothing."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.neighbors import NearestNeighbors

from conftest import calibrated, closed_form
from riskbayes import GenerativeClassifier, ProductOfExperts, RiskBayesClassifier
from riskbayes.estimators.family import family
from riskbayes.estimators.kinds import Kinds, of_numbers
from riskbayes.learners import RC
from riskbayes.models import LeavesModel, NeighboursModel
from riskbayes.models.base import Sample
from riskbayes.models.trees import grow

seeds = st.integers(0, 2**32 - 1)
MODELS = [NeighboursModel, LeavesModel]
every_model = pytest.mark.parametrize("kind", MODELS, ids=lambda kind: kind.__name__)


def rows(seed, m=120, n=4, r=3, shift=1.0):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(r), rng.integers(r, size=m - r)])
    return rng.standard_normal((m, n)) + shift * y[:, None] * rng.standard_normal(n), y


def proba(model, X, y, new, learner="rc"):
    return GenerativeClassifier(model, learner=learner).fit(X, y).predict_proba(new)


# Rows are left out of their own comparison


@given(seed=seeds)
def test_no_row_is_its_own_neighbour(seed):
    X, y = rows(seed, m=60)
    X[20:30] = X[:10]  # twins
    _, own = NeighboursModel(n_neighbors=8).learn_own(Sample(X, y, None, 3))
    assert (own.index != np.arange(60)[:, None]).all()
    assert (own.home == np.arange(60)).all()
    # A twin is a neighbour at distance zero, which counts most.
    assert all(i + 20 in own.index[i, :2] for i in range(10))


@given(seed=seeds)
def test_neighbours_are_the_nearest_rows_of_the_metric(seed):
    X, y = rows(seed, m=80)
    model = NeighboursModel(n_neighbors=5)
    frame = model.learn(Sample(X, y, None, 3))
    new = np.random.default_rng(seed).standard_normal((7, 4))
    places = frame.metric.places(new)
    squares = ((places[:, None] - frame.points[None]) ** 2).sum(axis=2)
    found = np.take_along_axis(squares, model.encode(new, frame).index.astype(np.int64), axis=1)
    np.testing.assert_allclose(found, np.sort(squares, axis=1)[:, :5], atol=1e-9)


def test_the_closed_form_is_a_kernel_estimate_of_the_posterior():
    X, y = rows(0, m=90)
    new, model = rows(1, m=20)[0], NeighboursModel(n_neighbors=12)
    frame = model.learn(Sample(X, y, None, 3))
    rank, width = int(frame.rank), float(frame.width)
    near = NearestNeighbors(n_neighbors=12).fit(frame.points)
    distance, index = near.kneighbors(frame.metric.places(new))
    expected, prior = np.empty((20, 3)), np.bincount(y) / len(y)
    for i in range(20):
        u = distance[i] / distance[i, rank - 1]
        K = np.where(u > 3, 0.0, 1 / (u**2 + width**2))
        mass = np.array([K[y[index[i]] == k].sum() for k in range(3)])
        expected[i] = (mass + prior) / (K.sum() + 1)
    np.testing.assert_allclose(proba(model, X, y, new, "closed_form"), expected, atol=1e-9)


@pytest.mark.parametrize("strategy", ["cv", "ensemble"])
def test_on_noise_no_member_promises_anything(strategy):
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((400, 6)), rng.integers(2, size=400)
    clf = RiskBayesClassifier(strategy, random_state=0).fit(X, y)
    assert clf.leaderboard_["cv_error"].min() > 0.43
    assert clf.leaderboard_["cv_log_loss"].min() > 0.68


@pytest.mark.parametrize("n_categories", [0, 5, 300])
def test_on_noise_the_training_error_of_neighbours_is_that_of_a_coin(n_categories):
    """Rare categories once told the classes of their rows, by the labels of the rows themselves."""
    rng = np.random.default_rng(6)
    X, y = rng.standard_normal((600, 5)), rng.integers(2, size=600)
    if n_categories:
        X[:, 4] = rng.integers(n_categories, size=600)
    model = NeighboursModel(categories=(4,) if n_categories else ())
    history = calibrated(model, X, y, np.ones(600), 2, RC(max_iter=1)).history
    assert abs(history["error"][0] - 0.5) < 0.07
    assert history["log_loss"][0] > 0.68


# Units


@every_model
@given(seed=seeds, scale=st.floats(1e-6, 1e6), shift=st.floats(-1e3, 1e3))
def test_rows_scaled_or_moved_change_nothing(kind, seed, scale, shift):
    X, y = rows(seed, m=70)
    factor = scale ** np.array([1.0, 0.5, -0.5, 0.0])
    moved = X * factor + shift * factor
    held = np.arange(0, 70, 7)
    kept = np.setdiff1d(np.arange(70), held)
    plain = proba(kind(), X[kept], y[kept], X[held], RC(max_iter=3))
    again = proba(kind(), moved[kept], y[kept], moved[held], RC(max_iter=3))
    np.testing.assert_allclose(again, plain, atol=1e-6)


# Trees


@given(seed=seeds, holes=st.booleans())
def test_leaves_are_those_of_the_trees_of_scikit_learn(seed, holes):
    """Ranks are split at thresholds among the values: the same partition of the training rows."""
    X, y = rows(seed, m=150)
    X = np.round(X, 1)
    if holes:
        X[np.random.default_rng(seed).random(X.shape) < 0.2] = np.nan
    trees = grow(X, y, None, 7, 32, 3, ())
    ranks = np.full(X.shape, np.nan, dtype=np.float32)
    for j in range(4):
        here = ~np.isnan(X[:, j])
        ranks[here, j] = np.unique(X[here, j], return_inverse=True)[1]
    forest = ExtraTreesClassifier(7, max_leaf_nodes=32, min_samples_leaf=3, max_features=0.5, random_state=0)
    theirs, ours = forest.fit(ranks, y).apply(ranks), trees.codes(X)
    for t in range(7):
        pairs = set(zip(ours[:, t].tolist(), theirs[:, t].tolist(), strict=True))
        assert len(pairs) == len(set(ours[:, t])) == len(set(theirs[:, t])) == trees.sizes[t]


def test_the_score_of_leaves_is_what_the_formula_says():
    X, y = rows(2, m=100)
    model = LeavesModel(n_trees=5, max_leaves=8, alpha=3.0, power=2.0)
    _, fitted = closed_form(model, X, y, np.ones(100), 3)
    codes = fitted.S.frame.trees.codes(X)
    expected = np.log(np.bincount(y) / 100) * np.ones((100, 3))
    for t in range(5):
        for i in range(100):
            here = codes[:, t] == codes[i, t]
            p = here.mean()
            for k in range(3):
                q = ((here & (y == k)).sum() + 3.0 * p) / ((y == k).sum() + 3.0)
                expected[i, k] += 2 / 5 * np.log(max(0.01, q / p))
    found = model.scores(model.encode(X, fitted.S.frame), fitted.theta)
    np.testing.assert_allclose(found, expected, atol=1e-9)


@given(seed=seeds)
def test_the_order_of_labels_changes_little_in_the_leaves(seed):
    X, y = rows(seed, m=80)
    a = proba(LeavesModel(n_trees=9), X, y, X, RC(max_iter=2))
    b = proba(LeavesModel(n_trees=9), X, np.array(["c", "b", "a"])[y], X, RC(max_iter=2))
    np.testing.assert_allclose(a, b[:, ::-1], atol=0.35)  # ties of splits may break otherwise
    assert np.mean(np.abs(a - b[:, ::-1])) < 0.05


# Categories and holes


def test_rules_of_categories_are_learned():
    """An interaction that no product of columns has: the class is the parity of two categories."""
    rng = np.random.default_rng(0)
    X, new = (rng.integers(0, 4, (m, 4)).astype(float) for m in (600, 400))
    y, labels = ((Z[:, 0] % 2 + Z[:, 1] % 2).astype(int) % 2 for Z in (X, new))
    kinds = Kinds((), (0, 1, 2, 3))
    for member in family(kinds):
        if member.name not in ("product with neighbours", "leaves"):
            continue
        clf = member.with_iterations(8).fit(X, y)
        # No category alone tells the class, so that neighbours see hardly more than the table does.
        assert clf.score(new, labels) > (0.8 if member.name == "leaves" else 0.6), member.name


@every_model
@given(seed=seeds, share=st.floats(0.0, 0.6))
def test_holes_and_unseen_categories_are_read(kind, seed, share):
    rng = np.random.default_rng(seed)
    X, y = rows(seed, m=80)
    X[:, 3] = rng.integers(0, 5, 80)
    X[rng.random(X.shape) < share] = np.nan
    model = kind(categories=(3,))
    P = proba(model, X, y, np.array([[0.0, np.nan, 1.0, 9.0], [np.nan] * 4]))
    assert np.isfinite(P).all()
    np.testing.assert_allclose(P.sum(axis=1), 1.0)


@every_model
def test_a_column_that_is_missing_everywhere_changes_no_posterior_of_neighbours(kind):
    X, y = rows(3)
    more = np.column_stack([X, np.full(len(X), np.nan)])
    if kind is NeighboursModel:
        np.testing.assert_allclose(proba(kind(), X, y, X), proba(kind(), more, y, more), atol=1e-9)
    assert np.isfinite(proba(kind(), more, y, more)).all()


# What they say of themselves


@every_model
def test_they_have_no_density_and_say_so(kind):
    X, y = load_iris(return_X_y=True)
    clf = GenerativeClassifier(kind()).fit(X, y)
    with pytest.raises(NotImplementedError, match=r"no density p\(x\)"):
        clf.score_samples(X)
    with pytest.raises(NotImplementedError, match="no distribution to draw from"):
        clf.sample()
    product = ProductOfExperts([kind()]).fit(X, y)
    with pytest.raises(NotImplementedError, match=r"no density p\(x\)"):
        product.outlier_score(X, X)


@every_model
def test_they_do_not_stream_and_say_so(kind):
    X, y = load_iris(return_X_y=True)
    a, b = (GenerativeClassifier(kind()).fit(X[i::2], y[i::2]) for i in range(2))
    with pytest.raises(ValueError, match="structure from the rows of one fit"):
        a.merge(b)
    with pytest.raises(ValueError, match="structure from the rows of one fit"):
        a.partial_fit(X, y)


def test_neighbours_neither_forget_nor_calibrate_again():
    X, y = load_iris(return_X_y=True)
    for clf in (GenerativeClassifier(NeighboursModel()),):
        clf.fit(X, y)
        for call in ("forget", "calibrate"):
            with pytest.raises(ValueError, match="keeps the training rows"):
                getattr(clf, call)(X[:5], y[:5])


@every_model
def test_other_class_frequencies_multiply_the_posterior(kind):
    X, y = rows(7)
    clf = GenerativeClassifier(kind()).fit(X, y)
    P, p = clf.predict_proba(X), np.array([0.7, 0.2, 0.1])
    expected = P * p / np.exp(clf.model_.parameters(clf.data_statistics_).log_prior)
    found = clf.with_priors(p).predict_proba(X)
    np.testing.assert_allclose(found, expected / expected.sum(axis=1, keepdims=True), atol=1e-9)


def test_far_rows_are_answered():
    X, y = rows(8)
    clf = GenerativeClassifier(NeighboursModel()).fit(1e-10 * X, y)
    far = np.array([[1e200, 0, 0, 0], [-1e200, 0, 0, 0], [1e300, 1e300, -1e300, 0]])
    np.testing.assert_allclose(clf.predict_proba(far).sum(axis=1), 1.0)
    plain = clf.predict_proba(1e-10 * X)
    w = np.r_[np.ones(len(X)), 0.0]
    more = np.r_[1e-10 * X, [[1e200, 0, 0, 0]]]
    again = GenerativeClassifier(NeighboursModel()).fit(more, np.r_[y, 0], w).predict_proba(1e-10 * X)
    np.testing.assert_allclose(again, plain, atol=1e-9)


@every_model
def test_pickles_predict_alike(kind):
    X, y = load_wine(return_X_y=True)
    clf = GenerativeClassifier(kind()).fit(X, y)
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))


def test_many_rows_are_compared_with_some():
    X, y = rows(4, m=500)
    model = NeighboursModel(max_references=100)
    clf = GenerativeClassifier(model).fit(X, y)
    assert clf.statistics_["weights"].shape == (3, 100)
    assert clf.statistics_.total == pytest.approx(500)
    assert clf.score(X, y) > 0.5


@pytest.mark.parametrize("strategy", ["neighbours", "ensemble"])
def test_the_family_beats_its_recipe_where_rows_have_twins(strategy):
    """Rows come twice, with labels that nothing else tells: each is found by its twin."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 5))
    y = rng.integers(3, size=300)
    score = (
        RiskBayesClassifier(strategy, random_state=0)
        .fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
        .score(X, y)
    )
    assert (
        score > 0.95 > RiskBayesClassifier("single").fit(np.repeat(X, 2, axis=0), np.repeat(y, 2)).score(X, y)
    )


def test_members_are_few_and_named():
    products = ["class frequencies", "product with neighbours", "product with tables"]
    assert [m.name for m in family(of_numbers(3))] == [*products, "leaves", "QDA, n", "LDA"]
    mixed = [m.name for m in family(Kinds((0,), (1, 2)))]
    assert mixed == [*products, "leaves", "QDA of indicators", "LDA"]


def test_rc_lowers_the_held_out_log_loss_of_the_product():
    X, y = load_breast_cancer(return_X_y=True)
    kept, held = np.arange(0, 569, 2), np.arange(1, 569, 2)
    clf = RiskBayesClassifier("neighbours").fit(X[kept], y[kept])
    P = clf.predict_proba(X[held])
    closed = clf.members_[0][0]
    first = closed.set_params(learner="closed_form").fit(X[kept], y[kept]).predict_proba(X[held])
    loss = [-np.log(Q[np.arange(len(held)), y[held]]).mean() for Q in (first, P)]
    assert loss[1] < loss[0]
