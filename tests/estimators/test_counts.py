"""Naive Bayes of counts: the closed forms of others, sparse rows, missing cells, messages."""

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.naive_bayes as theirs
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import bernoulli, poisson
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from conftest import calibrated, closed_form, random_rows
from riskbayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB, PoissonNB
from riskbayes.engines import MemoryEngine
from riskbayes.learners import DFE, GD, RC, RCCV, TM
from riskbayes.learners.quasi_newton import NOTHING_LEFT
from riskbayes.models import BernoulliModel, ComplementModel, MultinomialModel, PoissonModel
from riskbayes.models.counts import Cells, SparseCounts
from riskbayes.objectives import LogLoss
from riskbayes.risks import log_posterior
from riskbayes.scanners.kernels import sparse as kernels

seeds = st.integers(0, 2**32 - 1)
TWINS = [MultinomialNB, BernoulliNB, ComplementNB]
EVERY = [*TWINS, PoissonNB]
MODELS = [MultinomialModel, BernoulliModel, ComplementModel, PoissonModel]
FORMATS = [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_matrix]
LEARNERS = [
    *("closed_form", "rc", RC.paper(), RC(step="adaptive", generative_weight=0.01), TM(max_iter=20)),
    *(DFE(max_iter=8), DFE(mode="online", max_iter=2), DFE(mode="online", max_iter=2, shuffle=True)),
    *(
        RC(batch_size=20, max_iter=4, generative_weight=0.0),
        RC(early_stopping=True, refit=True),
        RC(n_restarts=1, max_iter=8),
    ),
    *(RCCV(cv=2, max_iter=6, generative_weights=(0,)), RC(objective=[[0, 1, 2], [1, 0, 1], [3, 1, 0]])),
]


def words(seed=0, m=120, n=25, r=3):
    """Counts with many zeros whose rates differ by class, and labels."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(r), rng.integers(r, size=m - r)])
    rates = rng.gamma(0.3, size=(r, n))
    return rng.poisson(rates[y]).astype(float), y


def options_of(kind, rng, n, r):
    """Random parameters that both libraries know."""
    found = {"alpha": rng.choice([0.01, 0.5, 1.0]), "fit_prior": bool(rng.integers(2))}
    if kind is not BernoulliNB and rng.integers(2):  # scikit-learn's adds such an alpha to the classes
        found["alpha"] = rng.uniform(0.01, 2.0, size=n)
    if rng.integers(2):
        found["class_prior"] = rng.dirichlet(np.ones(r))
    if kind is BernoulliNB:
        found["binarize"] = rng.choice([0.0, 1.0])
    if kind is ComplementNB and n > 1:  # the weight of a single column is zero
        found["norm"] = bool(rng.integers(2))
    return found


@pytest.mark.parametrize("kind", TWINS)
@given(seed=seeds, r=st.integers(2, 4), n=st.integers(1, 12))
def test_closed_forms_are_those_of_scikit_learn(kind, seed, r, n):
    rng = np.random.default_rng(seed)
    X, y = words(seed, n=n, r=r)
    w = rng.uniform(0, 3, size=len(y))
    options = options_of(kind, rng, n, r)
    twin = getattr(theirs, kind.__name__)(**options).fit(X, y, w)
    for table in (X, FORMATS[rng.integers(len(FORMATS))](X)):
        ours = kind(learner="closed_form", **options).fit(table, y, w)
        names = ["feature_count_", "class_count_", "feature_log_prob_", "class_log_prior_"]
        for name in [*names, "feature_all_"] if kind is ComplementNB else names:
            np.testing.assert_allclose(getattr(ours, name), getattr(twin, name), rtol=1e-9, atol=1e-12)
        for method in ("predict_joint_log_proba", "predict_log_proba", "predict_proba"):
            found, expected = (getattr(clf, method)(table) for clf in (ours, twin))
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", TWINS)
def test_without_pseudo_counts_no_probability_is_zero(kind):
    X, y = words()
    X[y == 0, 0] = 0.0
    X[:, 1] = 0.0
    clf = kind(alpha=0.0, learner="closed_form").fit(X, y)
    assert np.isfinite(clf.feature_log_prob_).all()
    assert np.isfinite(clf.predict_log_proba(X + 1)).all()
    if kind is MultinomialNB:
        share = 1e-9 * len(y) / X[y == 0].sum()
        np.testing.assert_allclose(np.exp(clf.feature_log_prob_[0, :2]), share, rtol=1e-6)


def test_bernoulli_alpha_belongs_to_its_column():
    X, y = words(n=3)
    alpha = np.array([0.1, 1.0, 3.0])
    clf = BernoulliNB(alpha=alpha, learner="closed_form").fit(X, y)
    for j in range(3):
        alone = theirs.BernoulliNB(alpha=alpha[j]).fit(X[:, j : j + 1], y)
        np.testing.assert_allclose(clf.feature_log_prob_[:, j], alone.feature_log_prob_[:, 0], rtol=1e-12)


@given(seed=seeds, alpha=st.sampled_from([0.0, 0.3, 5.0]), sparse=st.booleans())
def test_poisson_log_probabilities_are_those_of_scipy(seed, alpha, sparse):
    X, y = words(seed, n=6)
    table = sp.csr_array(X) if sparse else X
    clf = PoissonNB(alpha=alpha, learner=RC(max_iter=4)).fit(table, y)
    expected = poisson(clf.rate_).logpmf(X[:, None, :]).sum(axis=2) + clf.class_log_prior_
    np.testing.assert_allclose(clf.predict_joint_log_proba(table), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(clf.score_samples(table), np.logaddexp.reduce(expected, axis=1), atol=1e-9)


@given(seed=seeds, alpha=st.floats(0.1, 5.0))
def test_poisson_rates_are_shrunk_to_the_mean_of_the_column(seed, alpha):
    X, y = words(seed, n=4)
    clf = PoissonNB(alpha=alpha, learner="closed_form").fit(X, y)
    for k in range(3):
        own = X[y == k]
        rate = (own.sum(axis=0) + alpha * X.mean(axis=0)) / (len(own) + alpha)
        seen = X.sum(axis=0) > 0  # an empty column has a rate of nearly zero
        np.testing.assert_allclose(clf.rate_[k][seen], rate[seen], rtol=1e-12)
        assert (clf.rate_[k][~seen] < 1e-6).all()


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: str(learner)[:40])
def test_sparse_rows_give_what_dense_ones_give(kind, learner):
    X, y = words()
    if kind is ComplementNB and getattr(learner, "generative_weight", 0.0):
        pytest.skip("it has no log_likelihood")
    if hasattr(learner, "random_state"):
        learner = type(learner)(**{**learner.get_params(), "random_state": 0})
    dense = kind(learner=learner).fit(X, y)
    sparse = kind(learner=learner).fit(sp.csr_array(X), y)
    assert dense.status_ == sparse.status_
    np.testing.assert_allclose(sparse.predict_proba(sp.csr_matrix(X)), dense.predict_proba(X), atol=1e-12)
    assert sparse.statistics_.allclose(dense.statistics_, rtol=1e-9)


@pytest.mark.parametrize("kind", [MultinomialNB, BernoulliNB, PoissonNB])
def test_gradient_ascent_takes_sparse_rows_and_lowers_the_risk(kind):
    X, y = words()
    dense, sparse = (kind(learner=GD(lr=1.0)).fit(table, y) for table in (X, sp.csr_array(X)))
    assert sparse.history_["soft_error"][-2] < sparse.history_["soft_error"][0]
    np.testing.assert_allclose(sparse.predict_proba(X), dense.predict_proba(X), atol=1e-12)
    with pytest.raises(TypeError, match=r"GD needs to_natural.*ComplementModel has no such method"):
        ComplementNB(learner="gd").fit(X, y)


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize("compiled", [False, True])
def test_there_is_no_dense_copy(kind, compiled, monkeypatch):
    if compiled:
        pytest.importorskip("numba")
        monkeypatch.setattr(kernels, "SMALLEST", 0)
    m, n = 2000, 5000
    X = sp.random_array((m, n), density=0.002, format="csr", rng=np.random.default_rng(0))
    X.data[:] = 1 + np.floor(3 * X.data)
    y = np.arange(m) % 2

    def use(X, y):
        clf = kind(learner=RC(max_iter=5)).fit(X, y)
        clf.predict(X), clf.score_samples(X), clf.partial_fit(X, y)

    use(X, y)  # imports and compiles, which takes memory of its own; a few rows may end before a second scan
    tracemalloc.start()
    use(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * m * n / 10


@pytest.mark.parametrize("kind", EVERY)
def test_streams_of_sparse_rows_add_up(kind):
    X, y = words(m=90)
    table = sp.csr_array(X)
    whole = kind(learner="closed_form").fit(table, y)
    stream = kind(learner="closed_form")
    for part in (slice(0, 30), slice(30, 60), slice(60, 90)):
        stream.partial_fit(table[part], y[part], classes=[0, 1, 2])
    assert stream.statistics_.allclose(whole.statistics_, rtol=1e-12)
    halves = [kind(learner="closed_form").fit(table[part], y[part]) for part in (slice(45), slice(45, 90))]
    assert halves[0].merge(halves[1]).statistics_.allclose(whole.statistics_, rtol=1e-12)
    rest = kind(learner="closed_form").fit(table[:45], y[:45])
    assert whole.forget(table[45:], y[45:]).statistics_.allclose(rest.statistics_, rtol=1e-12)
    np.testing.assert_allclose(whole.predict_proba(X), rest.predict_proba(X), atol=1e-12)
    with pytest.raises(ValueError, match="not all fitted"):
        whole.forget(np.full((1, X.shape[1]), 500.0), [0], [0.5])


def test_bernoulli_forgets_no_more_ones_than_there_were_rows():
    X, y = words()
    clf = BernoulliNB(learner="closed_form").fit(np.ones_like(X), y)
    with pytest.raises(ValueError, match="not all fitted"):
        clf.forget(np.zeros((1, X.shape[1])), [0])


@pytest.mark.parametrize("kind", [MultinomialNB, BernoulliNB, PoissonNB])
def test_residual_statistics_are_the_gradient_in_the_weights(kind):
    """By finite differences of the conditional log-likelihood, in some cells."""
    X, y = words(n=6)
    model, S, theta = closed_form(kind(learner="closed_form").fit(X, y).model_, X, y, None, 3)[1]
    dS = MemoryEngine(X, y, None, 3).scan((model, S, theta), LogLoss()).dS
    Z = model.encode(X, S.frame)

    def likelihood(k, j, h):
        scores = np.array(model.scores(Z, theta))
        scores[:, k] += h * Z.X[:, j]
        return log_posterior(scores)[np.arange(len(y)), y].sum()

    for k, j in ((0, 0), (1, 3), (2, 5)):
        slope = (likelihood(k, j, 1e-5) - likelihood(k, j, -1e-5)) / 2e-5
        assert dS["counts"][k, j] == pytest.approx(slope, rel=1e-6, abs=1e-6)


def test_bernoulli_rc_without_a_prior_approaches_logistic_regression():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=400)
    X = (rng.random((400, 5)) < np.where(y[:, None] == 1, 0.6, 0.4) ** [1, 1, 0.5, 2, 1]).astype(float)
    X[:, 4] = np.where(rng.random(400) < 0.9, X[:, 0], X[:, 4])  # dependent columns, which NB counts twice
    clf = BernoulliNB(alpha=0.0, learner=RC(step="adaptive", max_iter=300, generative_weight=0.0)).fit(X, y)
    best = LogisticRegression(C=np.inf, tol=1e-10).fit(X, y)
    target = log_loss(y, best.predict_proba(X))
    assert clf.history_["log_loss"][0] > target + 0.005
    assert log_loss(y, clf.predict_proba(X)) == pytest.approx(target, abs=1e-4)


@pytest.mark.parametrize("kind", EVERY)
@given(seed=seeds)
def test_rc_lowers_the_log_loss_of_every_kind(kind, seed):
    X, y = words(seed, m=60)
    history = kind().fit(sp.csr_array(X), y).history_
    accepted = history["log_loss"][history["accepted"]]
    assert accepted[-1] < accepted[0] or accepted[0] <= NOTHING_LEFT


@given(seed=seeds)
def test_the_likelihood_of_poisson_statistics_lacks_the_factorials(seed):
    rng, model = np.random.default_rng(seed), PoissonModel()
    X, y, w = random_rows(model, rng)
    model, S, theta = calibrated(model, X, y, w, 3, RC(max_iter=3)).fitted
    Z, W = model.encode(X, S.frame), rng.random((len(X), 3))
    rows = (W * model.scores(Z, theta)).sum()
    assert model.log_likelihood(model.statistics(Z, W), theta) == pytest.approx(rows, rel=1e-9)


def test_dfe_on_word_counts_adds_to_the_sample_size_and_takes_counts():
    X, y = words()
    clf = MultinomialNB(learner="dfe").fit(sp.csr_array(X), y)
    assert clf.statistics_.total > clf.data_statistics_.total
    assert (clf.statistics_["counts"] >= clf.data_statistics_["counts"]).all()


# --- missing cells ----------------------------------------------------------------------------------


def with_holes(X, rng, share=0.3):
    holes = X.copy()
    holes[rng.random(X.shape) < share] = np.nan
    return holes


def log_probability(kind, clf, X):
    """log p(y) + the sum over the observed cells, by SciPy."""
    if kind is PoissonNB:
        cells = poisson(clf.rate_).logpmf(np.nan_to_num(X)[:, None, :])
    else:
        cells = bernoulli(np.exp(clf.feature_log_prob_)).logpmf(np.nan_to_num(X)[:, None, :] > 0)
    return clf.class_log_prior_ + np.where(np.isnan(X)[:, None, :], 0.0, cells).sum(axis=2)


@pytest.mark.parametrize("kind", [BernoulliNB, PoissonNB])
@pytest.mark.parametrize("learner", ["closed_form", "rc", "tm", "dfe"])
@given(seed=seeds)
def test_missing_cells_drop_out(kind, learner, seed):
    rng = np.random.default_rng(seed)
    X, y = words(seed, m=60, n=5)
    holes = with_holes(X, rng)
    holes[5] = np.nan  # a row of no cells
    clf = kind(learner=learner).fit(holes, y)
    new = with_holes(X, rng)
    for table in (holes, new, X):
        found = clf.predict_joint_log_proba(table)
        np.testing.assert_allclose(found, log_probability(kind, clf, table), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(clf.predict_proba(holes)[5], np.exp(clf.class_log_prior_), atol=1e-12)


@pytest.mark.parametrize("kind", [BernoulliNB, PoissonNB])
@given(seed=seeds, alpha=st.sampled_from([0.0, 1.0]))
def test_closed_forms_with_holes_count_the_observed_cells(kind, seed, alpha):
    rng = np.random.default_rng(seed)
    X, y = words(seed, m=60, n=4)
    holes = with_holes(X, rng)
    clf = kind(alpha=alpha, learner="closed_form").fit(holes, y)
    for j in range(4):
        observed = ~np.isnan(holes[:, j])
        alone = kind(alpha=alpha, learner="closed_form").fit(holes[observed, j : j + 1], y[observed])
        if alone.classes_.shape[0] == 3 and X[observed, j].any():
            name = "rate_" if kind is PoissonNB else "feature_log_prob_"
            same = getattr(clf, name)[:, j], getattr(alone, name)[:, 0]
            floor = 1e-6 if alpha == 0 else 1e-10  # the floor is a share of all rows
            values = [np.exp(v) if kind is BernoulliNB else v for v in same]
            np.testing.assert_allclose(*values, rtol=1e-6, atol=floor)


@pytest.mark.parametrize("kind", [BernoulliNB, PoissonNB])
@pytest.mark.parametrize("learner", ["closed_form", "rc"])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_a_column_that_is_missing_everywhere_changes_no_posterior(kind, learner, alpha):
    X, y = words(n=5)
    wider = np.column_stack([X, np.full(len(X), np.nan)])
    a, b = (kind(alpha=alpha, learner=learner).fit(table, y) for table in (X, wider))
    np.testing.assert_allclose(b.predict_proba(wider), a.predict_proba(X), atol=1e-9)
    wider[:, -1] = 3.0
    np.testing.assert_allclose(b.predict_proba(wider), a.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("kind", [BernoulliNB, PoissonNB])
def test_a_table_without_holes_has_no_mass_by_column_and_streams_join(kind):
    X, y = words()
    holes = with_holes(X, np.random.default_rng(0))
    parts = [(X[:60], y[:60]), (holes[60:], y[60:])]
    stream = kind(learner="closed_form")
    for X_part, y_part in parts:
        stream.partial_fit(X_part, y_part, classes=[0, 1, 2])
    assert "mass" not in kind().fit(*parts[0]).statistics_
    whole = kind(learner="closed_form").fit(np.vstack([X[:60], holes[60:]]), y)
    assert stream.statistics_.allclose(whole.statistics_, rtol=1e-12)
    for order in ((0, 1), (1, 0)):
        first, second = (kind(learner="closed_form").fit(*parts[i]) for i in order)
        assert first.merge(second).statistics_.allclose(whole.statistics_, rtol=1e-12)


@pytest.mark.parametrize("kind", [BernoulliNB, PoissonNB])
def test_rows_with_holes_are_not_among_those_of_a_fit_without(kind):
    X, y = words()
    holes = with_holes(X, np.random.default_rng(0))
    clf = kind().fit(X, y)
    for method in (clf.forget, clf.calibrate):
        with pytest.raises(ValueError, match="no row of the fit had one"):
            method(holes[:5], y[:5])
    clf.fit(holes, y).calibrate(X, y)
    assert np.isfinite(clf.predict_log_proba(holes)).all()


# --- drawing, messages ------------------------------------------------------------------------------


def test_multinomial_rows_have_the_mean_length_of_their_class():
    X, y = words()
    X[y == 0] *= 3
    clf = MultinomialNB(learner="closed_form").fit(sp.csr_array(X), y)
    drawn, labels = clf.sample(3000, random_state=0)
    for k in range(3):
        mean = X[y == k].sum(axis=1).mean()
        lengths = drawn[labels == k].sum(axis=1)
        assert set(lengths) <= {int(mean), int(mean) + 1}
        assert lengths.mean() == pytest.approx(mean, abs=0.1)
    assert not clf.__sklearn_tags__().normalised_density
    with pytest.raises(NotImplementedError, match="no distribution to draw from"):
        ComplementNB().fit(X, y).sample(3)


@pytest.mark.parametrize("kind", [MultinomialNB, ComplementNB, PoissonNB])
@pytest.mark.parametrize("sparse", [False, True])
def test_negative_counts_are_refused_by_column(kind, sparse):
    X, y = words()
    clf = kind().fit(X, y)
    X[4, 7] = -2.5
    table = sp.csr_array(X) if sparse else X
    for method in (clf.predict, lambda rows: kind().fit(rows, y)):
        with pytest.raises(ValueError, match=r"Negative values in data .* column 7 holds -2.5"):
            method(table)


@pytest.mark.parametrize("kind", EVERY)
def test_a_sparse_table_has_no_missing_cells_and_no_infinities(kind):
    X, y = words()
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match=r"NaN in column 2 \(1 such values\).* sparse table"):
        kind().fit(sp.csr_array(X), y)
    X[3, 2] = np.inf
    with pytest.raises(ValueError, match="infinity in column 2"):
        kind().fit(sp.csr_array(X), y)


def test_other_messages_name_the_column_or_the_parameter():
    X, y = words()
    holes = X.copy()
    holes[0, 1] = np.nan
    with pytest.raises(ValueError, match=r"NaN in column 1.*MultinomialNB does not accept missing"):
        MultinomialNB().fit(holes, y)
    with pytest.raises(ValueError, match="neither 0 nor 1: set binarize"):
        BernoulliNB(binarize=None).fit(X, y)
    with pytest.raises(ValueError, match=r"alpha.*`n_features`, here 25 numbers; got shape \(3,\)"):
        MultinomialNB(alpha=[1, 2, 3]).fit(X, y)
    with pytest.raises(ValueError, match="alpha must be greater than 0"):
        MultinomialNB(alpha=-np.ones(25)).fit(X, y)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        GaussianNB().fit(sp.csr_array(X), y)
    clf = MultinomialNB().fit(X, y)
    X[2, 3] = 1.7e308
    for table in (X, sp.csr_array(X)):
        with pytest.raises(ValueError, match=r"Column 3 of X holds 1.7e\+308 in row 2"):
            clf.predict(table)
        with pytest.raises(ValueError, match=r"Column 3 holds 1.7e\+308: the sums"):
            MultinomialNB().fit(table, y, np.full(len(y), 2.0))


def test_a_floor_of_alpha_is_raised_unless_forced():
    X, y = words()
    with pytest.warns(UserWarning, match="alpha too small"):
        clf = MultinomialNB(alpha=0.0, force_alpha=False, learner="closed_form").fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        twin = theirs.MultinomialNB(alpha=0.0, force_alpha=False).fit(X, y)
    np.testing.assert_allclose(clf.feature_log_prob_, twin.feature_log_prob_, rtol=1e-9)


def test_complement_weights_of_a_single_column_are_zero():
    X, y = words(n=1)
    clf = ComplementNB(norm=True).fit(X, y)
    np.testing.assert_array_equal(clf.feature_log_prob_, 0.0)


def test_duplicate_entries_of_a_sparse_table_are_added():
    X = sp.csr_array((np.array([0.4, 0.4, 1.0]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    clf = BernoulliNB(binarize=0.5, learner="closed_form").fit(X, [0, 1])
    np.testing.assert_array_equal(clf.feature_count_, np.eye(2))
    assert X.nnz == 3  # the user's table is left as it was


def test_sparse_rows_stay_sparse_in_the_engine():
    X, y = words()
    engine = MemoryEngine(sp.csr_array(X), y, None, 3)
    kept, held = next(engine.folds(3, 0))
    assert sp.issparse(kept._X)
    assert kept.n_rows + held.n_rows == len(y)
    assert isinstance(kept._scanner_in(MultinomialModel(), Cells(np.array(False))).Z, SparseCounts)
