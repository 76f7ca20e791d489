"""Smooth densities, products, mixtures, trees, and the classifier that chooses among them."""

import doctest
import sys
import warnings
from itertools import pairwise
from itertools import product as cartesian

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import kstest
from sklearn import config_context, discriminant_analysis
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import log_loss
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import KBinsDiscretizer

from conftest import closed_form, random_rows
from riskbayes import (
    GaussianNB,
    KDependenceNB,
    LinearDiscriminantAnalysis,
    MixtureDiscriminantAnalysis,
    ProductOfExperts,
    QuadraticDiscriminantAnalysis,
    RiskBayesClassifier,
    SmoothNB,
    TreeAugmentedNB,
)
from riskbayes.displayed import Leaderboard
from riskbayes.estimators.family import ENOUGH_HELD, cross_validate, family, fold_posteriors, folds_of
from riskbayes.estimators.kinds import of_numbers
from riskbayes.estimators.member import CHECKPOINTS, Member
from riskbayes.frames import Frame, SideBySide
from riskbayes.learners import RC
from riskbayes.loop import run
from riskbayes.models import LDAModel, MixtureModel, ProductModel, QDAModel, TreeModel, components
from riskbayes.models.base import Sample, draw_rows
from riskbayes.models.structure import dependences, k_parents, topological_order, tree_parents
from riskbayes.objectives import LogLoss
from riskbayes.persistence import from_bytes, to_bytes
from riskbayes.preprocessing import KMeansBins
from riskbayes.scanners.dense import Labels, label_statistics
from riskbayes.search import HeldOut
from riskbayes.statistics import Statistics
from riskbayes.task import Status


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def one_column(seed, m=400):
    """A skewed column with a spike, far from zero, and two classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=m)
    x = 100 + rng.gamma(2.0, 3.0, size=m) * (1 + y)
    x[rng.random(m) < 0.2] = 104.0
    return x[:, None], y


# The recommended prior


def test_the_recommended_prior_is_made_of_plain_parameters(iris):
    X, y = iris
    named = QuadraticDiscriminantAnalysis(prior="recommended").fit(X, y)
    plain = QuadraticDiscriminantAnalysis(covariance_strength=20 * 4, diagonal_mix=0.5).fit(X, y)
    assert (named.predict_proba(X) == plain.predict_proba(X)).all()
    assert named.model_.mean_strength == 0


@pytest.mark.parametrize("mix", [None, 0.0, 0.3])
@pytest.mark.parametrize("strength", [None, 0.0, 7.0])
def test_what_is_given_replaces_the_recommended_prior(iris, strength, mix):
    X, y = iris
    given = {"covariance_strength": strength, "diagonal_mix": mix}
    named = QuadraticDiscriminantAnalysis(prior="recommended", **given).fit(X, y)
    found = named.model_.covariance_strength, named.model_.diagonal_mix
    assert found == (80 if strength is None else strength, 0.5 if mix is None else mix)
    if None not in given.values():
        plain = QuadraticDiscriminantAnalysis(**given).fit(X, y)
        assert (named.predict_proba(X) == plain.predict_proba(X)).all()
    for prior in ("auto", None) if given != dict.fromkeys(given) else (None,):
        without = QuadraticDiscriminantAnalysis(prior=prior, **given).fit(X, y)
        found = without.model_.covariance_strength, without.model_.diagonal_mix
        assert found == (strength or 0.0, mix or 0.0)


@pytest.mark.parametrize(
    ("given", "strength"),
    [
        ({}, 80.0),
        ({"learner": RC(max_iter=3)}, 80.0),
        ({"learner": "closed_form"}, 0.0),
        ({"shrinkage": 0.1}, 0.0),
        ({"reg_param": 0.1}, 0.0),
        ({"prior": None}, 0.0),
        ({"prior": "recommended", "learner": "closed_form"}, 80.0),
    ],
)
def test_the_recommended_prior_is_there_where_rc_is_and_no_other(iris, given, strength):
    X, y = iris
    clf = QuadraticDiscriminantAnalysis(**given).fit(X, y)
    assert clf.model_.covariance_strength == strength
    assert clf.model_.diagonal_mix == (0.5 if strength else 0.0)
    if given == {"learner": "closed_form"}:
        own = discriminant_analysis.QuadraticDiscriminantAnalysis().fit(X, y)
        np.testing.assert_allclose(clf.predict_proba(X), own.predict_proba(X), atol=1e-9)


# Smooth naive Bayes


@pytest.mark.parametrize("learner", ["closed_form", "rc"])
@pytest.mark.parametrize("seed", range(3))
def test_smooth_densities_integrate_to_one(learner, seed):
    X, y = one_column(seed)
    clf = SmoothNB(learner=learner).fit(X, y)
    knots = clf.knots_[0]
    low, high = clf.parameters_.frame.tails[0]

    def density(x):
        return float(np.exp(clf.score_samples([[x]])[0]))

    ends = [knots[0] - 40 * low, *knots, knots[-1] + 40 * high]
    parts = [quad(density, a, b, epsabs=1e-13, epsrel=1e-12)[0] for a, b in pairwise(ends)]
    assert sum(parts) == pytest.approx(1.0, abs=1e-9)


def distribution_function(clf, k):
    """P(x <= t | class k) of a column, by summing the density on a fine grid."""
    knots, (low, high) = clf.knots_[0], clf.parameters_.frame.tails[0]
    grid = np.unique(
        np.concatenate([np.linspace(knots[0] - 30 * low, knots[-1] + 30 * high, 400_001), knots])
    )
    joint = clf.predict_joint_log_proba(grid[:, None])[:, k] - clf.parameters_.log_prior[k]
    p = np.exp(joint)
    below = np.concatenate([[0.0], np.cumsum((p[1:] + p[:-1]) / 2 * np.diff(grid))])
    return lambda t: np.interp(t, grid, below)


@pytest.mark.parametrize("seed", range(3))
def test_smooth_samples_follow_their_distribution_function(seed):
    X, y = one_column(seed)
    clf = SmoothNB().fit(X, y)
    drawn, labels = clf.sample(20_000, random_state=seed)
    for k in range(2):
        assert kstest(drawn[labels == k, 0], distribution_function(clf, k)).pvalue > 1e-3


def test_columns_of_few_values_have_probabilities():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=300)
    X = np.stack([rng.integers(0, 4, size=300) * (1 + y) % 4, rng.standard_normal(300) + y], axis=1)
    clf = SmoothNB(alpha=0.5, learner="closed_form").fit(X, y)
    counts = np.array([[np.sum((X[:, 0] == v) & (y == k)) for v in range(4)] for k in range(2)]) + 0.5
    np.testing.assert_allclose(
        np.exp(clf.log_density_[0]), counts / counts.sum(axis=1, keepdims=True), rtol=1e-10
    )
    drawn, _ = clf.sample(500, random_state=0)
    assert set(drawn[:, 0]) <= set(range(4))
    assert len(set(drawn[:, 1])) == 500


def test_smooth_statistics_of_samples_are_those_expected():
    X, y = one_column(1)
    clf = SmoothNB().fit(X, y)
    theta, model = clf.parameters_, clf.model_
    drawn, labels = draw_rows(model, theta, 400_000, np.random.default_rng(0))
    S = label_statistics(model, model.encode(drawn, clf.statistics_.frame), labels, None, 2)
    assert S.allclose(model.expected_statistics(theta, S.total), rtol=0.03)


def test_smooth_statistics_say_that_other_knots_do_not_add():
    X, y = one_column(2)
    a, b = (SmoothNB().fit(X[part], y[part]).statistics_ for part in (slice(200), slice(200, 400)))
    with pytest.raises(ValueError, match="other knots"):
        a + b
    again = from_bytes(to_bytes(a))
    assert again == a
    assert (again.frame.widths == a.frame.widths).all()


def test_values_at_the_ends_of_the_numbers():
    y = np.arange(60) % 2
    tiny = np.r_[np.zeros(30), np.linspace(1e-310, 1e-309, 30)][:, None]
    mixed = np.r_[np.zeros(15), np.linspace(1e-308, 1e-307, 15), np.linspace(1.0, 2.0, 30)][:, None]
    for X in (tiny, mixed):
        assert np.isfinite(SmoothNB().fit(X, y).predict_proba(X)).all()
        assert np.isfinite(RiskBayesClassifier("single").fit(X, y).predict_proba(X)).all()
    huge = 1.7e308 * np.linspace(-1.0, 1.0, 60)[:, None]
    with pytest.raises(ValueError, match="Column 0 has a range that overflows"):
        SmoothNB().fit(huge, y)


@pytest.mark.parametrize(("dtype", "value"), [("f4", -3.4028235e38), ("f8", 1e300)])
def test_squares_that_overflow_are_refused(iris, dtype, value):
    X, y = iris
    X = X.astype(dtype)
    X[0, 2] = value
    for clf in (GaussianNB(), QuadraticDiscriminantAnalysis(), RiskBayesClassifier("single")):
        with pytest.raises(ValueError, match=r"Column 2 (holds|has) .* squares,? overflow"):
            clf.fit(X, y)


def test_smooth_nb_has_no_partial_fit():
    assert not hasattr(SmoothNB(), "partial_fit")


# Products of experts


def test_a_product_of_one_expert_is_that_expert(iris):
    X, y = iris
    alone = QuadraticDiscriminantAnalysis(prior="recommended").fit(X, y)
    product = ProductOfExperts([clone(alone)]).fit(X, y)
    np.testing.assert_allclose(product.predict_proba(X), alone.predict_proba(X), atol=1e-9)
    np.testing.assert_allclose(product.score_samples(X), alone.score_samples(X), atol=1e-8)


@pytest.mark.parametrize("covariance", ["tied", "full"])
def test_a_product_of_one_mixture_is_that_mixture(iris, covariance):
    X, y = iris
    alone = MixtureDiscriminantAnalysis(2, covariance=covariance, learner=RC(max_iter=5))
    product = ProductOfExperts([clone(alone)], [1.0], learner=RC(max_iter=5)).fit(X, y)
    np.testing.assert_allclose(product.predict_proba(X), alone.fit(X, y).predict_proba(X), atol=1e-9)


def test_a_product_with_what_an_expert_lacks(iris):
    X, y = iris
    codes = KMeansBins().fit_transform(X)
    with pytest.raises(TypeError, match="TreeAugmentedNB reads categories"):
        ProductOfExperts([TreeAugmentedNB()]).fit(codes, y)
    with pytest.raises(ValueError, match="weights must be numbers"):
        ProductOfExperts(weights=["a", "b"]).fit(X, y)
    for wrong in ("qda", None, SmoothNB):
        with pytest.raises(TypeError, match="experts must be estimators of riskbayes"):
            ProductOfExperts([wrong]).fit(X, y)


@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
def test_degrees_of_freedom_of_experts_count_by_their_weights(iris):
    experts = LDAModel(), QDAModel()
    alone = [closed_form(model, *iris, None, 3)[1] for model in experts]
    both = closed_form(ProductModel(experts, (0.25, 0.5)), *iris, None, 3)[1]
    one, other = (model.degrees_of_freedom(S) for model, S, _ in alone)
    assert both.model.degrees_of_freedom(both.S) == pytest.approx(0.25 * one + 0.5 * other)


def test_components_are_drawn_by_their_shares():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, 90), rng.normal(20, 1, 10), rng.normal(8, 1, 100)])[:, None]
    y, model = np.repeat([0, 1], 100), MixtureModel(QDAModel(), n_components=2)
    theta = closed_form(model, X, y, None, 2)[1].theta
    drawn = model.sample_rows(theta, np.zeros(4000, dtype=int), rng)
    assert (drawn > 10).mean() == pytest.approx(0.1, abs=0.03)


def test_a_class_that_is_impossible_stays_so_in_a_product(iris):
    X, y = iris
    P = ProductOfExperts([SmoothNB(priors=[0.0, 0.5, 0.5])], learner="closed_form").fit(X, y).predict_proba(X)
    assert np.isfinite(P).all()
    assert (P[:, 0] == 0).all()


def test_floors_of_a_product_are_those_that_it_warns_of():
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = rng.standard_normal((90, 2)) + 5 * np.stack([y, 0 * y], axis=1)
    experts = [QuadraticDiscriminantAnalysis(), SmoothNB(alpha=0)]  # empty cells are no eigenvalues
    assert not ProductOfExperts(experts).fit(X, y).parameters_.floored.any()


def test_log_joints_are_weighted_and_the_prior_counts_once(iris):
    X, y = iris[0][25:], iris[1][25:]  # classes of different sizes
    experts = [LinearDiscriminantAnalysis(learner="closed_form"), SmoothNB(learner="closed_form")]
    product = ProductOfExperts(experts, [0.3, 0.9], learner="closed_form").fit(X, y)
    prior = np.log(np.bincount(y) / len(y))
    parts = [clone(e).fit(X, y).predict_joint_log_proba(X) - prior for e in experts]
    np.testing.assert_allclose(
        product.predict_joint_log_proba(X), prior + 0.3 * parts[0] + 0.9 * parts[1], atol=1e-9
    )


def test_a_product_says_that_it_is_not_normalised(iris):
    X, y = iris
    clf = ProductOfExperts().fit(X, y)
    assert not clf.__sklearn_tags__().normalised_density
    assert SmoothNB().__sklearn_tags__().normalised_density
    with pytest.raises(NotImplementedError, match="not normalised"):
        clf.sample(3)


def test_a_product_takes_models_and_says_what_it_does_not_take(iris):
    X, y = iris
    clf = ProductOfExperts([QDAModel(covariance_strength=5), LDAModel()]).fit(X, y)
    assert clf.score(X, y) > 0.95
    assert clf.__sklearn_tags__().array_api_support
    with pytest.raises(TypeError, match="GaussianMixture"):
        ProductOfExperts([GaussianMixture()]).fit(X, y)
    with pytest.raises(ValueError, match="weights must be one positive number an expert, 2"):
        ProductOfExperts(weights=[1.0]).fit(X, y)
    with pytest.raises(ValueError, match="at least one"):
        ProductOfExperts([]).fit(X, y)


def test_statistics_side_by_side_are_written_and_read(iris):
    X, y = iris
    S = ProductOfExperts().fit(X, y).statistics_
    assert from_bytes(to_bytes(S)) == S
    assert (S + S - S).allclose(S)
    plain = Statistics(
        {"s0": np.ones(2), "0:a": np.ones(2), "1:b": np.ones(2)}, SideBySide((Frame(), Frame()))
    )
    again = from_bytes(to_bytes(plain))
    assert len(again.frame.frames) == 2
    assert again.allclose(plain)


# Mixtures


@pytest.mark.parametrize("base", [LDAModel(), QDAModel()], ids=["tied", "full"])
@pytest.mark.parametrize("seed", range(5))
def test_em_never_lowers_the_likelihood(base, seed, monkeypatch):
    monkeypatch.setattr(components, "EM_TOLERANCE", -np.inf)
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], 150)
    X = rng.standard_normal((300, 2)) + rng.uniform(-3, 3, size=(6, 2))[rng.integers(3, size=300) + 3 * y]
    w = rng.uniform(0.2, 3.0, size=300)
    sample = Sample(X, y, w, 2)
    _, _, path = components.start_components(base, sample, base.learn(sample), 3, max_iter=40)
    assert len(path) == 41
    assert (np.diff(path) > -1e-10).all()


def test_the_mixture_of_one_class_is_that_of_scikit_learn():
    """Given its start, EM ends where theirs does."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.standard_normal((200, 2)) - 3, rng.standard_normal((200, 2)) + 3])
    X, y = np.concatenate([X, X + 50]), np.repeat([0, 1], 400)
    clf = MixtureDiscriminantAnalysis(2, covariance="full", em_iter=200, learner="closed_form").fit(X, y)
    theirs = GaussianMixture(2, random_state=0, tol=1e-10).fit(X[y == 0])
    ours = clf.predict_joint_log_proba(X[:400])[:, 0] - np.log(0.5)
    np.testing.assert_allclose(ours, theirs.score_samples(X[:400]), atol=1e-2)


def test_the_residual_goes_to_the_components_by_their_posterior(iris):
    X, y = iris
    clf = MixtureDiscriminantAnalysis(2, learner="closed_form").fit(X, y)
    model, theta, sizes = clf.model_, clf.parameters_, clf.n_components_
    Z = model.encode(X, clf.statistics_.frame)
    dS, _ = model.scanner(Z).scan(theta, Labels(y, None, 3), LogLoss())
    joint = np.exp(model.base.log_joint(Z.base, theta.components))
    owner = np.repeat(np.arange(3), sizes)
    within = np.where(owner == y[:, None], joint, 0.0)
    E = within / within.sum(axis=1, keepdims=True) - joint / joint.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(dS["0:s0"], E.sum(axis=0), atol=1e-9)
    np.testing.assert_allclose(dS["0:s1"], E.T @ Z.base.values, atol=1e-8)


def test_tiny_clusters_are_merged():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.standard_normal((60, 2)), [[40.0, 40.0]], rng.standard_normal((60, 2)) + 4])
    y = np.repeat([0, 1], [61, 60])
    clf = MixtureDiscriminantAnalysis(4).fit(X, y)
    assert clf.n_components_.sum() < 8
    assert clf.weights_.min() * len(y) > 0.5


@pytest.mark.parametrize("covariance", ["tied", "full"])
def test_em_of_components_with_a_prior_returns_the_most_likely_step(covariance):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        y = rng.integers(2, size=60)
        X = rng.standard_normal((60, 3)) * rng.uniform(0.1, 3, 3) + rng.integers(0, 3, (60, 1)) + y[:, None]
        for strength in (0.0, 5.0, 200.0):
            clf = MixtureDiscriminantAnalysis(
                covariance=covariance, covariance_strength=strength, learner="closed_form"
            ).fit(X, y)
            path = clf.em_log_likelihood_
            assert (np.diff(path) > 0).all()
            frame = clf.statistics_.frame
            Z = clf.model_.base.encode(X, frame.frames[0])
            joint = clf.model_.base.log_joint(Z, frame.start)
            own = np.repeat(np.arange(2), frame.sizes) == y[:, None]
            value = logsumexp(np.where(own, joint, -np.inf), axis=1).mean()
            assert path[-1] == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("covariance", ["tied", "full"])
def test_em_of_float32_rows_climbs_as_that_of_float64(covariance):
    """Of strongly correlated columns, whose log densities have few digits of float32."""
    rng = np.random.default_rng(3)
    y = rng.integers(2, size=80)
    X = 5 * rng.standard_normal((80, 1)) + 0.003 * rng.standard_normal((80, 10))
    X = (X + 5 * rng.standard_normal((2, 10))[y]).astype(np.float32)
    clf = MixtureDiscriminantAnalysis(covariance=covariance, covariance_strength=5.0, learner="closed_form")
    exact = clone(clf).fit(X.astype(np.float64), y)
    for order in (np.arange(80), rng.permutation(80)):
        clf = clone(clf).fit(X[order], y[order])
        np.testing.assert_allclose(clf.em_log_likelihood_, exact.em_log_likelihood_, rtol=1e-5)
        assert clf.statistics_["0:s0"] == pytest.approx(exact.statistics_["0:s0"], rel=1e-4)


@pytest.mark.parametrize("covariance", ["tied", "full"])
def test_mixtures_see_what_one_gaussian_does_not(covariance):
    rng = np.random.default_rng(1)
    y = rng.integers(2, size=600)
    corner = rng.integers(2, size=600)  # exclusive or
    X = np.stack([corner, corner ^ y], axis=1) * 4 + rng.standard_normal((600, 2))
    clf = MixtureDiscriminantAnalysis(2, covariance=covariance).fit(X, y)
    assert clf.score(X, y) > 0.9
    drawn, labels = clf.sample(5000, random_state=0)
    assert clf.score(drawn, labels) > 0.9


# Trees


def domain(sizes):
    return np.array(list(cartesian(*(range(k) for k in sizes))))


@pytest.mark.parametrize(
    "estimator", [TreeAugmentedNB(), KDependenceNB(2), TreeAugmentedNB(alpha=0, backoff=0)]
)
def test_the_joint_of_a_tree_sums_to_one(estimator):
    rng = np.random.default_rng(3)
    X, y, w = random_rows(TreeModel(), rng, m=200, n=4, r=3)
    clf = clone(estimator).fit(X, y, sample_weight=w)
    everything = domain(X.max(axis=0) + 1)
    assert np.exp(clf.predict_joint_log_proba(everything)).sum() == pytest.approx(1.0, abs=1e-12)
    assert np.exp(clf.score_samples(everything)).sum() == pytest.approx(1.0, abs=1e-12)


def test_tree_tables_are_backed_off_frequencies():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, size=(200, 2)), rng.integers(2, size=200)
    model = TreeModel(parents=((), (0,)), alpha=1.0, backoff=4.0)
    Z = model.encode(X, model.learn(Sample(X, y, None, 2)))
    theta = model.parameters(label_statistics(model, Z, y, None, 2))
    ours = np.exp(model.log_joint(Z, theta))
    for i in range(10):
        for k in range(2):
            own = y == k
            first = (np.sum(own & (X[:, 0] == X[i, 0])) + 1) / (own.sum() + 3)
            second = (np.sum(own & (X[:, 1] == X[i, 1])) + 1) / (own.sum() + 3)
            above = own & (X[:, 0] == X[i, 0])
            given = (np.sum(above & (X[:, 1] == X[i, 1])) + 4 * second) / (above.sum() + 4)
            assert ours[i, k] == pytest.approx(own.mean() * first * given, rel=1e-10)


def test_samples_of_a_tree_follow_its_joint():
    rng = np.random.default_rng(5)
    X, y, _ = random_rows(TreeModel(), rng, m=300, n=3, r=2)
    clf = KDependenceNB(2).fit(X, y)
    drawn, labels = clf.sample(100_000, random_state=0)
    everything = domain(X.max(axis=0) + 1)
    p = np.exp(clf.predict_joint_log_proba(everything))
    found = np.array(
        [[((drawn == row).all(axis=1) & (labels == k)).mean() for k in range(2)] for row in everything]
    )
    np.testing.assert_allclose(found, p, atol=0.006)


def test_the_tree_finds_the_dependence_that_is_there():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=2000)
    a, c = rng.integers(3, size=(2, 2000))
    b = np.where(rng.random(2000) < 0.8, (a + y) % 3, rng.integers(3, size=2000))
    X = np.stack([a, b, c], axis=1)
    order, between = dependences(Sample(X, y, None, 2))
    np.testing.assert_allclose(between, between.T, atol=1e-12)
    assert between[0, 1] > 10 * max(between[0, 2], between[1, 2])
    for parents in (tree_parents(order, between), k_parents(order, between, 1)):
        assert (1 in parents[0]) or (0 in parents[1])
        topological_order(parents)
    with pytest.raises(ValueError, match="circle"):
        topological_order(((1,), (0,)))
    assert TreeAugmentedNB().fit(X, y).score(X, y) > 0.75


def test_an_unseen_category_of_a_parent_leaves_the_child_to_the_class():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, size=(200, 2)), rng.integers(2, size=200)
    model = TreeModel(parents=((), (0,)), alpha=1.0, backoff=4.0)
    naive = TreeModel(alpha=1.0)
    new, found = np.array([[7, 1]]), []
    for each in (model, naive):
        frame = each.learn(Sample(X, y, None, 2))
        theta = each.parameters(label_statistics(each, each.encode(X, frame), y, None, 2))
        found.append(each.log_joint(each.encode(new, frame), theta))
    np.testing.assert_allclose(*found)


def test_trees_take_strings():
    X = [["a", "x"], ["b", "y"], ["a", "y"], ["b", "x"]] * 10
    clf = TreeAugmentedNB().fit(X, ["even", "even", "odd", "odd"] * 10)
    assert clf.predict([["a", "x"], ["a", "y"]]).tolist() == ["even", "odd"]
    assert set(clf.sample(20, random_state=0)[0].ravel()) <= {"a", "b", "x", "y"}


# The classifier that chooses


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True)


@pytest.mark.parametrize("strategy", ["single", "neighbours", "cv", "ensemble"])
def test_every_strategy_fits_and_shows_its_leaderboard(wine, strategy, capsys):
    X, y = wine
    labels = np.array(["a", "b", "c"])[y]
    clf = RiskBayesClassifier(strategy, cv=2, random_state=0, verbose=1).fit(X, labels)
    assert clf.score(X, labels) > 0.95
    P = clf.predict_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=1e-6)
    board = clf.leaderboard_
    assert all(isinstance(column, np.ndarray) for column in board.values())
    assert board["weight"].sum() == pytest.approx(1.0)
    assert sum(weight for _, weight in clf.members_) == pytest.approx(1.0)
    printed = capsys.readouterr().out
    if strategy in ("single", "neighbours"):
        assert list(board) == [
            *("member", "train_error", "train_error_closed_form", "train_log_loss"),
            *("n_iter", "seconds", "weight"),
        ]
        name = "product" if strategy == "single" else "product with neighbours"
        assert board["member"].tolist() == [name]
        if strategy == "single":  # the other leaves rows out of their own neighbours
            assert board["train_error"][0] == pytest.approx(1 - clf.score(X, labels))
            assert board["train_log_loss"][0] == pytest.approx(log_loss(labels, P), abs=1e-6)
        assert clf.members_[0][0].statistics_.total == pytest.approx(len(y))
    else:
        assert list(board) == [
            *("member", "cv_error", "cv_error_closed_form", "cv_log_loss", "cv_score"),
            *("n_iter", "seconds", "weight"),
        ]
        assert (np.diff(board["cv_score"]) >= 0).all()
        np.testing.assert_allclose(board["cv_score"], board["cv_error"] + board["cv_log_loss"], atol=1e-9)
        assert sorted(board["member"]) == sorted(member.name for member in family(of_numbers(13)))
        assert printed.count("cross-validated error") == len(board["member"])


def test_the_choice_is_repeatable_and_takes_weights(iris):
    X, y = iris
    w = np.random.default_rng(0).uniform(0.1, 4.0, size=len(y))
    fits = [
        RiskBayesClassifier("ensemble", cv=2, random_state=3, n_jobs=n_jobs).fit(X, y, sample_weight=w)
        for n_jobs in (None, 2)
    ]
    assert (fits[0].predict_proba(X) == fits[1].predict_proba(X)).all()
    without = RiskBayesClassifier("ensemble", cv=2, random_state=3).fit(X, y)
    assert (fits[0].leaderboard_["cv_score"] != without.leaderboard_["cv_score"]).all()


def test_weights_judge_the_held_rows(iris):
    X, y = iris
    w = np.random.default_rng(1).uniform(0.1, 4.0, size=len(y))
    rows = np.arange(len(y)) % 2 == 0
    folds = folds_of([(rows, ~rows)], y, None, seed=0)
    found, _ = cross_validate(family(of_numbers(4))[-2:], X, y, w, folds, combine=True)
    P = found.posteriors[1]
    wrong, loss = P.argmax(axis=1) != y[~rows], -np.log(P[np.arange(len(P)), y[~rows]])
    by_hand = (w[~rows] @ (wrong + loss)) / w[~rows].sum()
    assert found.scores()[1].min() == pytest.approx(by_hand, abs=1e-5)


def test_a_time_limit_leaves_members_out(iris, capsys):
    X, y = iris
    clf = RiskBayesClassifier("cv", time_limit=1e-6, random_state=0, verbose=1).fit(X, y)
    first = [member.name for member in family(of_numbers(4))[:2]]  # one that learns, at least
    assert sorted(clf.leaderboard_["member"]) == sorted(first)
    assert "time_limit reached" in capsys.readouterr().out


@pytest.mark.parametrize("weighted", [False, True])
def test_the_path_at_a_checkpoint_is_the_fit_that_stops_there(iris, weighted):
    """Held-out posteriors of one walk equal those of separate fits, of every member."""
    X, y = iris
    w = np.random.default_rng(0).uniform(0.5, 2.0, size=len(y)) if weighted else None
    kept, held = np.arange(0, len(y), 2), np.arange(1, len(y), 2)
    for member in family(of_numbers(4)):
        if not isinstance(member, Member):
            continue  # it has no checkpoints
        found = fold_posteriors(member, X, y, w, kept, held, 3)
        for place in (0, 3):
            clf = member.with_iterations(CHECKPOINTS[place])
            clf.fit(X[kept], y[kept], None if w is None else w[kept])
            np.testing.assert_allclose(
                found[place], clf.predict_proba(X[held]), atol=1e-5, err_msg=member.name
            )


def test_greedy_weights_do_no_worse_than_the_winner(wine):
    X, y = wine
    folds = folds_of(2, y, None, seed=0)
    found, _ = cross_validate(family(of_numbers(13)), X, y, None, folds, combine=True)

    def score(weights):
        P = sum(v * found.posteriors[i] for (i, _), v in weights.items())
        return (P.argmax(axis=1) != found.y).mean() + log_loss(found.y, P / P.sum(axis=1, keepdims=True))

    assert score(found.ensemble()) <= score(found.best()) + 1e-6
    assert score(found.best()) == pytest.approx(found.scores().min(), abs=1e-5)
    assert all(place == found.scores()[i].argmin() for i, place in found.ensemble())


def checkerboard(m, seed):
    X = np.random.default_rng(seed).integers(0, 5, (m, 3)).astype(float)
    return X, ((X[:, 0] + X[:, 1]) % 2).astype(int)


def test_rows_without_weight_are_no_rows():
    X, y = checkerboard(300, 0)
    far = np.r_[X, np.arange(1.0, 5.0)[:, None] * np.full((4, 3), 1e6)], np.r_[y, 0, 1, 0, 1]
    w = np.r_[np.ones(300), np.zeros(4)]
    clf = RiskBayesClassifier("cv", random_state=0).fit(*far, w)
    alone = RiskBayesClassifier("cv", random_state=0).fit(X, y, np.ones(300))
    for name in set(clf.leaderboard_) - {"seconds"}:
        assert (clf.leaderboard_[name] == alone.leaderboard_[name]).all()
    np.testing.assert_array_equal(clf.predict_proba(X), alone.predict_proba(X))


def test_splits_of_any_form(iris):
    X, y = iris
    order = np.random.default_rng(0).permutation(len(y))
    kept, held = order[:100], order[100:]
    mask = np.isin(np.arange(len(y)), kept)
    found = []
    for split in ((kept, held), (kept.tolist(), held.tolist()), (mask, ~mask)):
        clf = RiskBayesClassifier("cv", cv=[split], random_state=0, time_limit=1e-9)
        found.append(clf.fit(X, y, np.ones(len(y))).leaderboard_["cv_log_loss"][0])
    assert found == pytest.approx([found[0]] * 3)
    for wrong, words in (
        ([], "cv has no splits"),
        ([(kept, [])], "Split 0 of cv must hold out rows"),
        ([(kept, held), (np.flatnonzero(y == 0), held)], r"Split 1 of cv .* two classes"),
    ):
        with pytest.raises(ValueError, match=words):
            RiskBayesClassifier("cv", cv=wrong).fit(X, y)


def test_what_is_not_finite_is_not_chosen():
    y = np.array([0, 1, 0, 1])
    P = np.full((2, len(CHECKPOINTS), 4, 2), 0.5, dtype=np.float32)
    P[0] = np.nan
    found = HeldOut(y, None, 2, combine=True)
    for own in P:
        found.add([own])
    assert [i for i, _ in found.best()] == [1]
    assert {i for i, _ in found.ensemble()} == {1}


def test_settings_of_scikit_learn_do_not_reach_the_members(iris):
    X, y = iris
    with config_context(transform_output="pandas", enable_metadata_routing=True):
        clf = RiskBayesClassifier("ensemble", cv=2, random_state=0).fit(X, y, np.ones(len(y)))
        assert np.isfinite(clf.predict_proba(X)).all()


def test_an_interrupt_ends_the_choice(iris, monkeypatch):
    X, y = iris

    def interrupt(task, learner):
        return run(task, learner)._replace(status=Status.INTERRUPTED)

    monkeypatch.setattr("riskbayes.search.run", interrupt)
    with pytest.raises(KeyboardInterrupt):
        RiskBayesClassifier("cv", cv=2).fit(X, y)


def test_the_leaderboard_is_the_same_with_and_without_data_frames(iris, monkeypatch):
    """Its type depended on what was installed, and the example in the docstring failed without pandas."""
    for library in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, library, None)
    clf = RiskBayesClassifier("single").fit(*iris)
    assert type(clf.leaderboard_) is Leaderboard
    assert "RiskBayesClassifier" in clf._repr_html_()
    example = doctest.DocTestFinder(recurse=False).find(RiskBayesClassifier, "RiskBayesClassifier")[0]
    assert doctest.DocTestRunner().run(example).failed == 0


def test_weights_that_sum_to_one_are_warned_of(iris):
    X, y = iris
    with pytest.warns(UserWarning, match="weights of 150 rows sum to 1, and priors count as rows"):
        RiskBayesClassifier("single").fit(X, y, np.full(len(y), 1 / len(y)))


def test_a_constant_column_is_no_reason_to_warn(iris):
    X, y = iris
    RiskBayesClassifier("single").fit(np.c_[X, np.ones(len(y))], y)


def test_arrays_of_other_libraries_are_refused_in_a_sentence(iris):
    xp = pytest.importorskip("array_api_strict")
    X, y = iris
    with config_context(array_api_dispatch=True):
        for clf in (
            SmoothNB(),
            RiskBayesClassifier("single"),
            ProductOfExperts(),
            MixtureDiscriminantAnalysis(),
        ):
            with pytest.raises(TypeError, match="takes NumPy arrays, not those of array_api_strict"):
                clf.fit(xp.asarray(X), xp.asarray(y))


def test_tables_that_cannot_be_kept_are_refused():
    X, y = np.zeros((20, 3), dtype=int), np.arange(20) % 2
    X[0, 1] = 20_000
    with pytest.raises(ValueError, match=r"Column 1 and its pairs with the others has .* cells"):
        TreeAugmentedNB().fit(X, y)
    many = np.random.default_rng(0).integers(0, 10, (200, 12))
    with pytest.raises(ValueError, match=r"with its 1[01] parents has .* cells"):
        KDependenceNB(11).fit(many, np.arange(200) % 2)


def test_mixtures_start_warm_from_as_many_components(iris):
    X, y = iris
    clf = MixtureDiscriminantAnalysis(3, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="goes on from 3, 3, 3 components"):
        clf.set_params(n_components=2).fit(X, y)


def test_no_more_folds_are_walked_than_hold_out_enough_rows(iris):
    y = iris[1]
    for times, number in ((1, 4), (16, 2), (60, 1)):
        labels = np.repeat(y, times)
        folds = folds_of(4, labels, None, seed=0)
        held = sum(len(held) for _, held in folds)
        assert len(folds) == number
        assert held == len(labels) if number == 4 else held >= ENOUGH_HELD > held - len(folds[-1][1])
        assert len(folds_of(StratifiedKFold(4), labels, None, seed=0)) == 4


def test_what_the_classifier_refuses(iris):
    X, y = iris
    with pytest.raises(ValueError, match="two rows or more of each class"):
        RiskBayesClassifier("cv").fit(X[:51], y[:51])
    with pytest.raises(ValueError, match="strategy"):
        RiskBayesClassifier("best").fit(X, y)
    with pytest.raises(ValueError, match="infinity in column 1"):
        RiskBayesClassifier("single").fit(np.where(np.arange(4) == 1, np.inf, X), y)
    with pytest.raises(NotFittedError):
        RiskBayesClassifier("single").predict(X)


def test_fewer_clusters_than_bins_are_no_reason_to_warn(iris, monkeypatch):
    fit = KBinsDiscretizer.fit

    def fit_and_warn(self, X):
        warnings.warn("Number of distinct clusters (4) found smaller", ConvergenceWarning, stacklevel=2)
        return fit(self, X)

    monkeypatch.setattr(KBinsDiscretizer, "fit", fit_and_warn)
    assert KMeansBins().fit_transform(iris[0]).max() == 4


def test_one_recipe_is_better_than_its_parts_here():
    X, y = load_breast_cancer(return_X_y=True)
    train, test = np.arange(len(y)) % 2 == 0, np.arange(len(y)) % 2 == 1
    both = RiskBayesClassifier("single").fit(X[train], y[train]).score(X[test], y[test])
    for part in (SmoothNB(), QuadraticDiscriminantAnalysis(prior="recommended")):
        assert both >= part.fit(X[train], y[train]).score(X[test], y[test])
