"""Laws that every model obeys, on random data. A new model is found here without being listed."""

from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import multivariate_normal, norm

from conftest import MODELS, calibrated, closed_form, encoded, log_joint, posterior, random_rows
from riskbayes.engines import MemoryEngine
from riskbayes.frames import Categories
from riskbayes.learners import RC
from riskbayes.models import (
    BernoulliModel,
    CategoricalModel,
    GaussianNBModel,
    LDAModel,
    LeavesModel,
    NeighboursModel,
    PoissonModel,
    QDAModel,
    SmoothModel,
)
from riskbayes.models.base import Fitted, Sample, draw_rows
from riskbayes.objectives import LogLoss
from riskbayes.risks import posterior as row_posterior
from riskbayes.scanners.dense import label_statistics
from riskbayes.statistics import Statistics
from riskbayes.task import Status

every_model = pytest.mark.parametrize("kind", MODELS, ids=lambda kind: kind.__name__)
seeds = st.integers(0, 2**32 - 1)

DOES_NOT_APPLY = {
    "parameters invert expected statistics": {
        SmoothModel: "its closed form is a plug-in, not the maximum of the likelihood",
    },
    "weights are repeated rows": {
        LeavesModel: "a leaf has a least number of rows, whatever their weight",
        NeighboursModel: "a row is left out of its own neighbours, its copies are not",
    },
    "columns and labels have no order": {
        LeavesModel: "trees draw columns at random; test_neighbours_leaves.py has its law",
    },
    "the likelihood of statistics is that of their rows": {
        PoissonModel: "it lacks log x!, which is no function of the statistics; test_counts.py has its law",
    },
}
"""Where a law does not apply to a model, and why. Beside it: a law of a method that a model need not write
(`sample`, `expected_statistics`, `inverse_parameters`, `log_likelihood`) is one of those that write it, and
only a model that says `normalised` is."""


MOST_COUNTED = {BernoulliModel: 1}
"""The largest count of a model whose counts are bounded."""


def models_of(law, *methods):
    """The models that a law applies to."""
    kinds = [
        kind
        for kind in MODELS
        if kind not in DOES_NOT_APPLY.get(law, {}) and all(kind().implements(name) for name in methods)
    ]
    return pytest.mark.parametrize("kind", kinds, ids=lambda kind: kind.__name__)


def skip_where_it_does_not_apply(law, kind):
    """Skip a law that applies to every model of three formulas, but not to this one."""
    if kind in DOES_NOT_APPLY[law]:
        pytest.skip(DOES_NOT_APPLY[law][kind])


def test_models_are_discovered():
    assert {CategoricalModel, GaussianNBModel, LDAModel, QDAModel} <= set(MODELS)


@every_model
@given(seed=seeds, a=st.floats(-3, 3), r=st.integers(2, 4), n=st.integers(1, 5))
def test_statistics_are_linear_in_w_and_additive_over_rows(kind, seed, a, r, n):
    rng, model = np.random.default_rng(seed), kind()
    X, y, w = random_rows(model, rng, n=n, r=r)
    Z = model.encode(X, model.learn(Sample(X, y, w, r)))
    V, W = rng.standard_normal((2, len(X), r))
    both = model.statistics(Z, V + a * W)
    assert both.allclose(model.statistics(Z, V) + a * model.statistics(Z, W), rtol=1e-10, atol=1e-9)
    cuts = np.sort(rng.integers(0, len(X) + 1, size=3))
    parts = [s for s in np.split(np.arange(len(X)), cuts) if len(s)]
    merged = Statistics.merge(*(model.statistics(Z[part], V[part]) for part in parts))
    assert merged.allclose(model.statistics(Z, V), rtol=1e-10, atol=1e-9)


@every_model
@given(seed=seeds, lr=st.floats(1e-3, 1.0), r=st.integers(2, 4))
def test_rc_keeps_the_total_sample_size(kind, seed, lr, r):
    rng = np.random.default_rng(seed)
    X, y, w = random_rows(kind(), rng, r=r)
    outcome = calibrated(kind(), X, y, w, r, RC(lr=lr, max_iter=8, step="fixed", generative_weight=0.0))
    assert outcome.fitted.S.total == pytest.approx(w.sum(), rel=1e-12)


@every_model
@given(seed=seeds, lr=st.floats(1e-2, 0.5), r=st.integers(2, 3))
def test_integer_weights_equal_repeated_rows_through_rc(kind, seed, lr, r):
    skip_where_it_does_not_apply("weights are repeated rows", kind)
    rng = np.random.default_rng(seed)
    X, y, _ = random_rows(kind(), rng, r=r)
    times = rng.integers(0, 4, size=len(y))
    times[: r * (2 * X.shape[1] + 2)] += 1  # every class keeps rows
    learner = RC(lr=lr, max_iter=6, step="fixed", generative_weight=0.0)
    a = calibrated(kind(), X, y, times.astype(float), r, learner)
    X2, y2 = np.repeat(X, times, axis=0), np.repeat(y, times)
    b = calibrated(kind(), X2, y2, None, r, learner)
    assert a.fitted.S.allclose(b.fitted.S, rtol=1e-7)
    np.testing.assert_allclose(posterior(a.fitted, X), posterior(b.fitted, X), atol=1e-7)
    np.testing.assert_allclose(a.history["soft_error"], b.history["soft_error"], atol=1e-9)


@every_model
@given(seed=seeds, r=st.integers(2, 4), n=st.integers(2, 4))
def test_relabelling_and_permuting_columns_permute_the_answer(kind, seed, r, n):
    skip_where_it_does_not_apply("columns and labels have no order", kind)
    rng = np.random.default_rng(seed)
    X, y, w = random_rows(kind(), rng, n=n, r=r)
    relabel, columns = rng.permutation(r), rng.permutation(n)
    learner = RC(lr=0.1, max_iter=5, step="fixed", generative_weight=0.0)
    a = calibrated(kind(), X, y, w, r, learner)
    b = calibrated(kind(), X[:, columns], relabel[y], w, r, learner)
    moved = posterior(b.fitted, X[:, columns])[:, relabel]
    np.testing.assert_allclose(posterior(a.fitted, X), moved, atol=1e-8)


@pytest.mark.parametrize("kind", [LDAModel, QDAModel])
@pytest.mark.parametrize("prior", [{}, {"mean_strength": 2.0, "covariance_strength": 5.0}], ids=["ml", "map"])
@given(seed=seeds, r=st.integers(2, 3), n=st.integers(2, 4))
def test_discriminant_analysis_is_affine_equivariant_through_rc(kind, prior, seed, r, n):
    rng, model = np.random.default_rng(seed), kind(covariance_floor=1e-12, **prior)
    X, y, w = random_rows(model, rng, n=n, r=r)
    A = np.linalg.qr(rng.standard_normal((n, n)))[0] * rng.uniform(0.3, 3.0, size=n)
    moved = X @ A + rng.uniform(-5, 5, size=n)
    learner = RC(lr=0.1, max_iter=5, step="fixed", generative_weight=0.0)
    a = calibrated(model, X, y, w, r, learner)
    b = calibrated(model, moved, y, w, r, learner)
    assume(not a.history["floored"].any() and not b.history["floored"].any())
    np.testing.assert_allclose(posterior(a.fitted, X), posterior(b.fitted, moved), atol=1e-6)


@models_of("parameters invert expected statistics", "expected_statistics")
@given(seed=seeds, total=st.floats(1.0, 1e4), r=st.integers(2, 4))
def test_expected_statistics_invert_parameters_under_ml(kind, seed, total, r):
    rng = np.random.default_rng(seed)
    X, y, w = random_rows(kind(), rng, m=400, r=r)
    model, S, theta = closed_form(kind(), X, y, w, r)[1]
    assume(not np.any(theta.floored))
    expected = model.expected_statistics(theta, total)
    assert expected.total == pytest.approx(total)
    assert expected.allclose((total / S.total) * S, rtol=1e-8)
    assert_same_parameters(model.parameters(expected), theta)


PRIOR = {"mean_strength": 2.0, "covariance_strength": 5.0, "alpha": 1.0, "class_alpha": 0.5}


def prior_of(kind):
    """A prior in the model's own hyper-parameters."""
    return {field.name: PRIOR[field.name] for field in fields(kind) if field.name in PRIOR}


def assert_same_parameters(again, theta):
    for field in fields(theta):
        value = getattr(theta, field.name)
        if isinstance(value, np.ndarray):
            np.testing.assert_allclose(getattr(again, field.name), value, rtol=1e-6, atol=1e-8)


@models_of("parameters are invertible", "inverse_parameters")
@pytest.mark.parametrize("prior", [0, 1], ids=["ml", "map"])
@given(seed=seeds, r=st.integers(2, 4), paper=st.booleans())
def test_inverse_parameters_invert_parameters_under_map_too(kind, prior, seed, r, paper):
    rng, options = np.random.default_rng(seed), prior_of(kind) if prior else {}
    if paper and "prior_form" in {field.name for field in fields(kind)}:
        options = {**options, "prior_form": "paper"}
    X, y, w = random_rows(kind(), rng, m=400, r=r)
    model, S, theta = closed_form(kind(**options), X, y, w, r)[1]
    assume(not np.any(theta.floored))
    inverse = model.inverse_parameters(theta, S.total)
    assert inverse.allclose(S, rtol=1e-8, atol=1e-8)
    assert_same_parameters(model.parameters(inverse), theta)


@models_of("parameters are invertible", "inverse_parameters")
@given(seed=seeds, r=st.integers(2, 4))
def test_inverse_parameters_have_the_total_beside_pseudo_counts_that_are_much_larger(kind, seed, r):
    """p(y) has few of the digits of such masses."""
    options = {"class_alpha": 2.0} if "class_alpha" in {field.name for field in fields(kind)} else {}
    X, y, w = random_rows(kind(), np.random.default_rng(seed), r=r)
    model, S, theta = closed_form(kind(**options), X, y, 2.0**-30 * w, r)[1]
    assert model.inverse_parameters(theta, S.total).total == pytest.approx(S.total, rel=1e-12, abs=0.0)


@models_of("the likelihood of statistics is that of their rows", "log_likelihood")
@given(seed=seeds, r=st.integers(2, 4))
def test_the_likelihood_of_statistics_is_that_of_their_rows(kind, seed, r):
    rng = np.random.default_rng(seed)
    X, y, w = random_rows(kind(), rng, r=r)
    model, S, theta = calibrated(
        kind(), X, y, w, r, RC(lr=0.1, max_iter=3, step="fixed", generative_weight=0.0)
    ).fitted
    Z = model.encode(X, S.frame)
    W = rng.random((len(X), r))
    rows = (W * model.log_joint(Z, theta)).sum()
    assert model.log_likelihood(model.statistics(Z, W), theta) == pytest.approx(rows, rel=1e-9)


@pytest.mark.parametrize("kind", [k for k in MODELS if k().traits.normalised], ids=lambda kind: kind.__name__)
@given(seed=seeds)
def test_the_joint_is_normalised(kind, seed):
    """Summed over a small domain, or integrated over one real feature."""
    rng = np.random.default_rng(seed)
    model = kind()
    n = 1 if model.traits.support == "real" else 2
    X, y, w = random_rows(model, rng, n=n, r=2)
    fitted = calibrated(model, X, y, w, 2, RC(lr=0.1, max_iter=3, step="fixed", generative_weight=0.0)).fitted
    if model.traits.support != "real":
        values = (
            X.max(axis=0) + 1
            if model.traits.support == "categories"
            else [MOST_COUNTED.get(kind, 60) + 1] * n
        )
        domain = np.stack(np.meshgrid(*(np.arange(k) for k in values)), axis=-1).reshape(-1, n)
        total = np.exp(log_joint(fitted, domain)).sum()
    else:
        middle, width = X.mean(), X.std()

        def density(t):
            x = np.array([[middle + width * t]])
            return width * np.exp(log_joint(fitted, x)).sum()

        bends = (getattr(fitted.S.frame, "positions", middle) - middle) / width
        points = np.union1d(np.linspace(-6, 6, 25), bends)
        total = quad(density, -60, 60, points=points, limit=400)[0]
    assert total == pytest.approx(1.0, abs=1e-6)


@given(seed=seeds, r=st.integers(2, 3), n=st.integers(1, 4))
def test_gaussian_densities_agree_with_scipy(seed, r, n):
    rng = np.random.default_rng(seed)
    X, y, w = random_rows(QDAModel(), rng, n=n, r=r)
    new = rng.standard_normal((20, n)) * 3
    for kind in (QDAModel, LDAModel, GaussianNBModel):
        fitted = calibrated(
            kind(), X, y, w, r, RC(lr=0.1, max_iter=3, step="fixed", generative_weight=0.0)
        ).fitted
        ours, theta = log_joint(fitted, new), fitted.theta
        means = theta.means + theta.frame.origin
        for k in range(r):
            if kind is GaussianNBModel:
                theirs = norm(means[k], np.sqrt(theta.variances[k])).logpdf(new).sum(axis=1)
            else:
                C = theta.covariances[k] if kind is QDAModel else theta.covariance
                theirs = multivariate_normal(means[k], C, allow_singular=True).logpdf(new)
            np.testing.assert_allclose(ours[:, k], theta.log_prior[k] + theirs, rtol=1e-7, atol=1e-7)


@given(seed=seeds, alpha=st.floats(0.1, 3))
def test_categorical_probabilities_are_smoothed_frequencies(seed, alpha):
    rng = np.random.default_rng(seed)
    X, y, w = random_rows(CategoricalModel(), rng, r=2)
    _, fitted = closed_form(CategoricalModel(alpha=alpha, class_alpha=alpha), X, y, w, 2)
    ours = np.exp(log_joint(fitted, X[:5]))
    for i in range(5):
        for k in range(2):
            p = (w[y == k].sum() + alpha) / (w.sum() + 2 * alpha)
            for j in range(X.shape[1]):
                cell = w[(y == k) & (X[:, j] == X[i, j])].sum()
                p *= (cell + alpha) / (w[y == k].sum() + alpha * (X[:, j].max() + 1))
            assert ours[i, k] == pytest.approx(p, rel=1e-10)


@models_of("samples give back the parameters", "sample_rows", "expected_statistics")
def test_samples_give_back_the_parameters(kind):
    rng = np.random.default_rng(7)
    X, y, w = random_rows(kind(), rng, m=200, n=2, r=2)
    fitted = calibrated(
        kind(), X, y, w, 2, RC(lr=0.1, max_iter=4, step="fixed", generative_weight=0.0)
    ).fitted
    model, calibrated_S, theta = fitted
    drawn, labels = draw_rows(model, theta, 200_000, rng)
    S = label_statistics(model, model.encode(drawn, calibrated_S.frame), labels, None, 2)
    again = Fitted.of(model, model.fix_prior(S))
    np.testing.assert_allclose(np.exp(again.theta.log_prior), np.exp(theta.log_prior), atol=0.01)
    if kind not in DOES_NOT_APPLY["parameters invert expected statistics"]:
        np.testing.assert_allclose(posterior(again, X), posterior(fitted, X), atol=0.03)
    expected = model.expected_statistics(theta, S.total)
    assert S.allclose(expected, rtol=0.03)


@pytest.mark.parametrize("kind", [LDAModel, QDAModel])
def test_samples_have_the_covariances_of_their_classes(kind):
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((60, 3)) @ [[1.0, 0, 0], [2.0, 0.3, 0], [-1.5, 0.2, 0.1]], np.arange(60) % 2
    model, _, theta = closed_form(kind(), X, y, np.ones(60), 2)[1]
    drawn = model.sample_rows(theta, np.arange(40_000) % 2, rng)
    covariances = theta.covariances if kind is QDAModel else [theta.covariance] * 2
    for k, C in enumerate(covariances):
        np.testing.assert_allclose(np.cov(drawn[k::2].T), C, atol=0.03 * np.abs(C).max())


@pytest.mark.parametrize("kind", [GaussianNBModel, LDAModel, QDAModel])
@given(seed=seeds, m1=st.floats(0.1, 5.0), m2=st.floats(0.1, 5.0))
def test_moments_of_a_given_prior_are_those_of_the_textbook(kind, seed, m1, m2):
    """Normal-inverse-Wishart: the prior's mean counts as m1 rows, its covariance as m2."""
    rng = np.random.default_rng(seed)
    X, y, mu0 = rng.standard_normal((40, 2)) + 3, np.arange(40) % 2, rng.standard_normal(2)
    root = rng.standard_normal((2, 2))
    C0 = root @ root.T + np.eye(2)
    diagonal = kind is GaussianNBModel
    smoothed = {"var_smoothing": 0.0} if diagonal else {}
    prior = {"prior_mean": mu0, "prior_covariance": np.diag(C0) if diagonal else C0}
    model = kind(mean_strength=m1, covariance_strength=m2, **prior, **smoothed)
    theta = closed_form(model, X, y, np.ones(40), 2)[1].theta
    means, scatters = [], []
    for k in range(2):
        own = X[y == k]
        mu = (m1 * mu0 + own.sum(axis=0)) / (m1 + len(own))
        means.append(mu)
        scatters.append((own - mu).T @ (own - mu) + m1 * np.outer(mu - mu0, mu - mu0))
    np.testing.assert_allclose(theta.means + theta.frame.origin, means)
    if kind is LDAModel:
        np.testing.assert_allclose(theta.covariance, (m2 * C0 + sum(scatters)) / (m2 + 40))
        return
    found = theta.variances if diagonal else theta.covariances
    expected = [(m2 * C0 + scatter) / (m2 + 20) for scatter in scatters]
    np.testing.assert_allclose(found, [np.diag(C) for C in expected] if diagonal else expected)


def test_smoothed_variances_are_expected_without_what_was_added():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((50, 2)), np.arange(50) % 2
    model, S, theta = closed_form(GaussianNBModel(var_smoothing=0.3), X, y, np.ones(50), 2)[1]
    assert model.expected_statistics(theta, S.total).allclose(S, rtol=1e-9)


def is_finite(theta):
    values = [getattr(theta, field.name) for field in fields(theta)]
    return all(np.isfinite(v).all() for v in values if isinstance(v, np.ndarray | float))


@every_model
@given(
    seed=seeds,
    lr=st.floats(1e-3, 10.0),
    r=st.integers(2, 4),
    n=st.integers(1, 6),
    constant=st.booleans(),
    lonely=st.booleans(),
)
def test_the_returned_model_is_finite_legal_scanned_and_no_worse(kind, seed, lr, r, n, constant, lonely):
    """Also with classes of one row, constant columns, and steps that are far too long."""
    rng = np.random.default_rng(seed)
    X, y, w = random_rows(kind(), rng, m=12 if lonely else 40, n=n, r=r, balanced=not lonely)
    if constant:
        X[:, 0] = X[0, 0]
    learner = RC(lr=lr, max_iter=15, step="fixed", generative_weight=0.0)
    outcome = calibrated(kind(), X, y, w, r, learner)
    model, S, theta = outcome.fitted
    assert is_dataclass(theta)
    assert is_finite(theta)
    assert model.is_legal(S)
    assert isinstance(outcome.status, Status)
    history = outcome.history
    kept = history["soft_error"][history["accepted"]]
    assert np.isfinite(history["log_loss"][history["accepted"]]).all()
    assert kept[-1] <= kept[0] + 1e-12 * (1 + kept[0])
    # The model that came back is the one whose risk was recorded.
    again, engine = Fitted.of(model, S), MemoryEngine(X, y, w, r)
    engine.learn(model)  # so that a row may be left out of its own comparison
    risks = engine.scan(again, LogLoss(), risks_only=True).risks.mean()
    assert risks["soft_error"] == pytest.approx(kept[-1], abs=1e-10)
    P = row_posterior(model.scores(engine._scanner_in(model, S.frame).Z, theta))
    assert risks["soft_error"] == pytest.approx(w @ (1 - P[np.arange(len(y)), y]) / w.sum(), abs=1e-10)


@given(seed=seeds)
def test_chunking_does_not_change_a_scan(seed):
    rng = np.random.default_rng(seed)
    for kind in MODELS:
        X, y, w = random_rows(kind(), rng, m=150)
        engine, fitted = closed_form(kind(), X, y, w, 3)
        whole = engine.scan(fitted, LogLoss())
        parts = [engine.scan(fitted, LogLoss(), rows) for rows in (slice(0, 37), slice(37, None))]
        assert whole.dS.allclose(parts[0].dS + parts[1].dS, rtol=1e-9, atol=1e-9)
        assert whole.risks.mean() == pytest.approx(parts[0].risks.plus(parts[1].risks).mean())


def test_map_forms_of_the_paper_and_the_exact_mode():
    """The two forms differ by what the shift of the mean adds, and agree when the mean is free."""
    rng = np.random.default_rng(3)
    X, y, w = random_rows(QDAModel(), rng, n=2, r=2)
    given_prior = {
        "prior_mean": np.array([1.0, -1.0]),
        "prior_covariance": np.array([[2.0, 0.3], [0.3, 1.0]]),
    }
    m1, m2 = 4.0, 7.0
    exact = QDAModel(mean_strength=m1, covariance_strength=m2, **given_prior)
    paper = replace(exact, prior_form="paper")
    (_, S, a), (_, _, b) = (closed_form(model, X, y, w, 2)[1] for model in (exact, paper))
    for k in range(2):
        wk, Xk = w[y == k], X[y == k]
        m = wk.sum()
        mu = wk @ Xk / m
        C = np.cov(Xk.T, aweights=wk, ddof=0)
        mean = (m1 * given_prior["prior_mean"] + m * mu) / (m1 + m)
        shift = m1 * m / (m1 + m) * np.outer(mu - given_prior["prior_mean"], mu - given_prior["prior_mean"])
        np.testing.assert_allclose(a.means[k] + S.origin, mean, rtol=1e-10)
        np.testing.assert_allclose(b.means[k] + S.origin, mean, rtol=1e-10)
        np.testing.assert_allclose(
            b.covariances[k], (m2 * given_prior["prior_covariance"] + m * C) / (m2 + m), rtol=1e-9
        )
        np.testing.assert_allclose(
            a.covariances[k], (m2 * given_prior["prior_covariance"] + m * C + shift) / (m2 + m), rtol=1e-9
        )


def test_categories_join_when_statistics_are_added():
    rng = np.random.default_rng(0)
    X, y, _ = random_rows(CategoricalModel(), rng, r=2)
    model = CategoricalModel()
    few, many = encoded(model, np.minimum(X, 1)), encoded(model, np.maximum(X, 3))
    W = rng.random((len(y), 2))
    joined = model.statistics(few, W) + model.statistics(many, W)
    assert joined.frame == Categories(np.maximum(few.frame.n_categories, many.frame.n_categories))
    assert joined["counts"].sum() == pytest.approx(2 * X.shape[1] * W.sum())
