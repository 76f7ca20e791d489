"""Missing cells in Gaussian models: laws against SciPy's marginals, Monte Carlo and finite differences."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax, logsumexp
from scipy.stats import multivariate_normal, norm

from conftest import closed_form, log_joint, posterior, random_rows
from riskbayes import (
    GaussianNB,
    LinearDiscriminantAnalysis,
    MixtureDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from riskbayes.exceptions import ColumnError
from riskbayes.learners import GD, RC, TM
from riskbayes.models import GaussianNBModel, LDAModel, MixtureModel, QDAModel
from riskbayes.models.base import Sample
from riskbayes.objectives import LogLoss
from riskbayes.scanners.dense import label_statistics
from riskbayes.statistics import Statistics

seeds = st.integers(0, 2**32 - 1)
CORRELATED = (LDAModel, QDAModel)
SIMPLE = (GaussianNBModel, *CORRELATED)
ESTIMATORS = {
    "nb": GaussianNB(),
    "lda": LinearDiscriminantAnalysis(),
    "qda": QuadraticDiscriminantAnalysis(prior="recommended"),
    "mda": MixtureDiscriminantAnalysis(n_components=2),
    "full": MixtureDiscriminantAnalysis(n_components=2, covariance="full", covariance_strength=10.0),
}
every_kind = pytest.mark.parametrize("kind", SIMPLE, ids=lambda kind: kind.__name__)
correlated = pytest.mark.parametrize("kind", CORRELATED, ids=lambda kind: kind.__name__)
every_estimator = pytest.mark.parametrize("clf", ESTIMATORS.values(), ids=ESTIMATORS)


def rows_with_holes(seed, m=60, n=4, r=3, share=0.3, scales=True):
    """Rows of columns in very different units, with cells removed at random."""
    rng = np.random.default_rng(seed)
    X, y, w = random_rows(QDAModel(), rng, m=m, n=n, r=r)
    if scales:
        X = (X + rng.uniform(-5, 5, size=n)) * 10.0 ** rng.integers(-6, 7, size=n)
    X[rng.random(X.shape) < share] = np.nan
    return X, y, w


def covariances(theta, r):
    """A covariance for each class."""
    if hasattr(theta, "variances"):
        return np.stack([np.diag(v) for v in theta.variances])
    return np.stack([theta.covariance] * r) if hasattr(theta, "covariance") else theta.covariances


def marginal(x, mean, C):
    """SciPy's log density of the observed cells of a row; it needs columns of like units."""
    seen = ~np.isnan(x)
    if not seen.any():
        return 0.0
    unit = np.sqrt(np.diag(C)[seen])
    scaled = multivariate_normal(mean[seen] / unit, C[np.ix_(seen, seen)] / np.outer(unit, unit))
    return scaled.logpdf(x[seen] / unit) - np.log(unit).sum()


def marginals(X, theta, r):
    means, C = theta.means + theta.frame.origin, covariances(theta, r)
    rows = np.array([[marginal(x, means[k], C[k]) for k in range(r)] for x in X])
    return theta.log_prior + rows


@every_kind
@settings(max_examples=8)
@given(seed=seeds, r=st.integers(2, 3), n=st.integers(1, 9), share=st.floats(0.05, 0.9))
def test_log_densities_are_those_of_the_observed_cells(kind, seed, r, n, share):
    X, y, w = rows_with_holes(seed, n=n, r=r, share=share)
    fitted = closed_form(kind(covariance_strength=2.0), X, y, w, r)[1]
    rows = np.concatenate([X[:20], 3 * X[-9:], np.full((1, n), np.nan)])
    ours, theirs = log_joint(fitted, rows), marginals(rows, fitted.theta, r)
    assert np.all(np.abs(ours - theirs) <= 1e-9 * np.maximum(1.0, np.abs(theirs)))
    np.testing.assert_allclose(ours[-1], fitted.theta.log_prior, atol=1e-12)  # nothing is observed
    # Each row alone, and rows of float32, have the same.
    model, S, theta = fitted
    alone = [model.log_joint(model.encode(row[None], S.frame), theta)[0] for row in rows]
    np.testing.assert_allclose(alone, ours, rtol=1e-10, atol=1e-10)
    single = rows.astype(np.float32)
    Z = model.encode(single, S.frame)
    narrow, wide = model.log_joint(Z, model.cast(theta, Z)), log_joint(fitted, single.astype(np.float64))
    np.testing.assert_allclose(narrow, wide, rtol=1e-10, atol=1e-10)


@correlated
@pytest.mark.parametrize("noise", [1e-2, 1e-4])
def test_nearly_collinear_columns_keep_their_digits(kind, noise):
    """Columns 0 and 1, 2 and 3, 4 and 5 are nearly equal; whichever are missing, the marginal is exact."""
    rng = np.random.default_rng(0)
    y = np.arange(240) % 2
    A = rng.standard_normal((240, 3)) + y[:, None]
    X = np.repeat(A, 2, axis=1) + noise * rng.standard_normal((240, 6))
    fitted = closed_form(kind(), X, y, None, 2)[1]
    patterns = np.array([[c == "x" for c in p] for p in ("x.....", "xx....", "x.x...", "xxxx..", "xx.x.x")])
    rows = np.where(patterns[np.arange(60) % 5], np.nan, X[:60])
    ours, theirs = log_joint(fitted, rows), marginals(rows, fitted.theta, 2)
    exact = marginals_by_elimination(rows, fitted.theta, 2)
    whole = marginals_by_elimination(X[:60], fitted.theta, 2)
    assert np.abs(ours - theirs).max() <= (1e-9 if noise == 1e-2 else 1e-5)  # SciPy loses more digits
    unavoidable = np.abs(log_joint(fitted, X[:60]) - whole).max()  # the whitener's own rounding
    assert np.abs(ours - exact).max() <= 5 * unavoidable


def marginals_by_elimination(X, theta, r):
    """The same by Cholesky factors of the observed blocks in extended precision."""
    means, C = theta.means + theta.frame.origin, covariances(theta, r)
    out = np.empty((len(X), r))
    for i, x in enumerate(X):
        seen = ~np.isnan(x)
        for k in range(r):
            z = (x - means[k])[seen].astype(np.longdouble)
            A, n, value = C[k][np.ix_(seen, seen)].astype(np.longdouble), seen.sum(), np.longdouble(0)
            for j in range(n):
                value += z[j] ** 2 / A[j, j] + np.log(A[j, j])
                factor = A[j + 1 :, j] / A[j, j]
                z[j + 1 :] -= factor * z[j]
                A[j + 1 :, j + 1 :] -= np.outer(factor, A[j, j + 1 :])
            out[i, k] = theta.log_prior[k] - 0.5 * float(value) - 0.5 * n * np.log(2 * np.pi)
    return out


def test_mixtures_sum_the_marginals_of_their_components():
    X, y, w = rows_with_holes(5, m=200)
    for base in (LDAModel(), QDAModel(covariance_strength=5.0), GaussianNBModel()):
        fitted = closed_form(MixtureModel(base, n_components=2), X, y, w, 3)[1]
        theta = fitted.theta
        components = marginals(X[:30], theta.components, theta.sizes.sum())
        ends = np.cumsum(theta.sizes)
        theirs = [logsumexp(components[:, e - s : e], axis=1) for s, e in zip(theta.sizes, ends, strict=True)]
        np.testing.assert_allclose(log_joint(fitted, X[:30]), np.transpose(theirs), rtol=1e-9, atol=1e-9)
        path = np.array(fitted.S.frame.em_log_likelihood)
        assert np.all(np.diff(path) > -1e-9)


@correlated
def test_expected_statistics_agree_with_monte_carlo(kind):
    X, y, w = rows_with_holes(3, n=4, r=2, scales=False)
    model, S, theta = closed_form(kind(), X, y, w, 2)[1]
    rng, draws = np.random.default_rng(0), 4000
    X, V = X[:8], rng.standard_normal((8, 2))
    Z = model.encode(X, S.frame)
    ours = model.residual_statistics(Z, V, theta)
    sums = {"s1": np.zeros((2, 4)), "s2": np.zeros((2, 4, 4))}
    spread = {name: np.zeros_like(value) for name, value in sums.items()}
    for k, C in enumerate(covariances(theta, 2)):
        for i, x in enumerate(X):
            u = np.isnan(x)
            D = np.tile(x - S.origin, (draws, 1))
            o, mu = ~u, theta.means[k]
            slope = np.linalg.solve(C[np.ix_(o, o)], C[np.ix_(o, u)]).T
            mean = mu[u] + slope @ (x - S.origin - mu)[o]
            if u.any():
                D[:, u] = rng.multivariate_normal(mean, C[np.ix_(u, u)] - slope @ C[np.ix_(o, u)], size=draws)
            for name, value in (("s1", D), ("s2", D[:, :, None] * D[:, None, :])):
                sums[name][k] += V[i, k] * value.mean(axis=0)
                spread[name][k] += V[i, k] ** 2 * value.var(axis=0) / draws
    tied = kind is LDAModel
    second = ours["s2_tied" if tied else "s2"]
    for name, found in (("s1", ours["s1"]), ("s2", second)):
        total = name == "s2" and tied
        expected, error = (A.sum(axis=0) if total else A for A in (sums[name], spread[name]))
        assert np.all(np.abs(found - expected) <= 5 * np.sqrt(error) + 1e-9)
    np.testing.assert_allclose(ours["s0"], V.sum(axis=0))


@correlated
@settings(max_examples=12)
@given(
    seed=seeds,
    r=st.integers(2, 3),
    n=st.integers(1, 6),
    share=st.floats(0.05, 0.8),
    prior=st.sampled_from([{}, {"covariance_strength": 10.0}, {"mean_strength": 3.0, "class_alpha": 1.0}]),
)
def test_the_likelihood_never_falls_in_em(kind, seed, r, n, share, prior):
    X, y, w = rows_with_holes(seed, n=n, r=r, share=share)
    frame = kind(**prior).learn(Sample(X, y, w, r))
    path = np.array(frame.em_log_likelihood)
    assert np.all(np.diff(path) >= -1e-10 * (1 + np.abs(path[1:]))) if np.isnan(X).any() else not path.size


@correlated
def test_em_reaches_a_maximum_of_the_likelihood(kind):
    """At the end of EM no small change of the parameters raises the likelihood of the observed cells."""
    X, y, w = rows_with_holes(8, m=50, n=2, r=2, scales=False)
    model = kind()
    _, S, theta = closed_form(model, X, y, w, 2)[1]
    for _ in range(200):  # the closed form is a step of EM from its start
        frame = replace(S.frame, start=replace(theta, frame=S.frame), settled=None)
        S = model.fix_prior(label_statistics(model, model.encode(X, frame), y, w, 2))
        theta = model.parameters(S)

    def likelihood(means, C):
        moved = np.array([[marginal(x, means[k] + S.origin, C[k]) for k in range(2)] for x in X])
        return w @ (theta.log_prior + moved)[np.arange(len(y)), y]

    C, rng = covariances(theta, 2), np.random.default_rng(0)
    top = likelihood(theta.means, C)
    for _ in range(4):
        a, B = rng.standard_normal(theta.means.shape), rng.standard_normal(C.shape)
        B = (B + B.swapaxes(1, 2)) if kind is QDAModel else np.stack([B[0] + B[0].T] * 2)
        up, down = (likelihood(theta.means + h * a, C + h * B) for h in (1e-3, -1e-3))
        assert max(up, down) < top


@every_kind
@pytest.mark.parametrize("seed", range(2))
def test_the_residual_is_the_gradient_in_natural_parameters(kind, seed):
    """By finite differences of SciPy's marginals."""
    X, y, w = rows_with_holes(seed, m=20, n=2, r=2, scales=False)
    engine, fitted = closed_form(kind(), X, y, w, 2)
    model, _, theta = fitted
    gradient = model.natural_gradient(engine.scan(fitted, LogLoss()).dS, theta)
    eta, h = model.to_natural(theta), 1e-6

    def likelihood(eta):
        joint = np.empty((len(X), 2))
        for k in range(2):
            e2 = eta["eta2"] if kind is LDAModel else eta["eta2"][k]
            C = -0.5 * np.linalg.inv(np.diag(e2) if kind is GaussianNBModel else e2)
            joint[:, k] = eta["eta0"][k] + np.array([marginal(x, C @ eta["eta1"][k], C) for x in X])
        return w @ log_softmax(joint, axis=1)[np.arange(len(y)), y]

    rng = np.random.default_rng(seed)
    for name, value in eta.items():
        for _ in range(2):
            step = rng.standard_normal(value.shape)
            if name == "eta2" and kind is not GaussianNBModel:
                step = (step + np.matrix_transpose(step)) / 2
            size = h * (1 + np.abs(value).max()) / np.abs(step).max()
            up, down = (likelihood({**eta, name: value + sign * size * step}) for sign in (1, -1))
            slope, scale = (up - down) / (2 * size), np.abs(gradient[name] * step).sum()
            assert float((gradient[name] * step).sum()) == pytest.approx(
                slope, rel=1e-4, abs=1e-4 * (1 + scale)
            )


@every_kind
@pytest.mark.parametrize(
    "learner",
    [RC(lr=0.05, step="fixed", generative_weight=0.0), TM(max_iter=8), GD(lr=0.01, max_iter=8)],
    ids=str,
)
def test_every_learner_lowers_the_soft_error(kind, learner):
    X, y, w = rows_with_holes(2, m=150, scales=False)
    clf = {GaussianNBModel: GaussianNB, LDAModel: LinearDiscriminantAnalysis}.get(
        kind, QuadraticDiscriminantAnalysis
    )(learner=learner)
    path = clf.fit(X, y, w).history_["soft_error"]
    assert path[-1] < path[0]


@every_estimator
@pytest.mark.parametrize("where", ["everywhere", "one class", "test"])
def test_a_column_that_is_missing_changes_no_posterior(clf, where):
    X, y, w = rows_with_holes(4, m=150, scales=False)
    rng = np.random.default_rng(0)
    extra = rng.standard_normal((len(X), 1)) if where == "test" else np.full((len(X), 1), np.nan)
    if where == "one class":
        extra[y != 1] = rng.standard_normal((np.sum(y != 1), 1))
    wide = np.hstack([X, extra])
    fitted = clf.set_params(learner="closed_form").fit(wide, y, w)
    hidden = np.hstack([X, np.full((len(X), 1), np.nan)])
    P = fitted.predict_proba(hidden)
    assert np.isfinite(P).all()
    if where == "everywhere":
        narrow = type(clf)(**clf.get_params()).fit(X, y, w)
        np.testing.assert_allclose(P, narrow.predict_proba(X), atol=1e-6)
    calibrated = type(clf)(**{**clf.get_params(), "learner": RC(max_iter=5)}).fit(wide, y, w)
    assert np.isfinite(calibrated.predict_proba(wide)).all()


@every_estimator
def test_rows_and_tables_agree(clf):
    """A row has the same posterior alone, in a table, among complete rows; without cells it has the prior."""
    X, y, w = rows_with_holes(6, m=200, scales=False)
    X[3] = np.nan
    fitted = type(clf)(**{**clf.get_params(), "learner": RC(max_iter=4)}).fit(X, y, w)
    P = fitted.predict_proba(X)
    alone = np.concatenate([fitted.predict_proba(X[i : i + 1]) for i in range(20)])
    np.testing.assert_allclose(alone, P[:20], atol=1e-11)
    prior = np.exp(fitted.parameters_.log_prior)
    np.testing.assert_allclose(P[3], prior, atol=1e-9)
    full = ~np.isnan(X).any(axis=1)
    np.testing.assert_allclose(fitted.predict_proba(X[full]), P[full], atol=1e-11)
    np.testing.assert_allclose(fitted.predict_proba(X.astype(np.float32)), P, atol=1e-4)
    again = np.random.default_rng(1).permutation(len(X))
    np.testing.assert_allclose(fitted.predict_proba(X[again]), P[again], atol=1e-11)


@every_estimator
def test_integer_weights_equal_repeated_rows(clf):
    X, y, _ = rows_with_holes(7, m=80, scales=False)
    times = np.random.default_rng(0).integers(0, 3, size=len(y))
    times[:30] += 1
    learner = RC(lr=0.1, max_iter=4, step="fixed", generative_weight=0.0)
    a, b = (type(clf)(**{**clf.get_params(), "learner": learner}) for _ in range(2))
    a.fit(X, y, sample_weight=times.astype(float))
    b.fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X), atol=1e-6)


@every_kind
@settings(max_examples=6)
@given(seed=seeds)
def test_statistics_with_missing_cells_are_linear_and_additive(kind, seed):
    X, y, w = rows_with_holes(seed)
    model, rng = kind(), np.random.default_rng(seed)
    Z = model.encode(X, model.learn(Sample(X, y, w, 3)))
    V, W = rng.standard_normal((2, len(X), 3))
    both = model.statistics(Z, V + 2 * W)
    assert both.allclose(model.statistics(Z, V) + 2.0 * model.statistics(Z, W), rtol=1e-9, atol=1e-9)
    parts = np.array_split(rng.permutation(len(X)), 3)
    merged = Statistics.merge(*(model.statistics(Z[part], V[part]) for part in parts))
    assert merged.allclose(model.statistics(Z, V), rtol=1e-9, atol=1e-9)


@every_kind
def test_chunks_do_not_change_a_scan(kind):
    X, y, w = rows_with_holes(9, m=300)
    engine, fitted = closed_form(kind(), X, y, w, 3)
    whole = engine.scan(fitted, LogLoss())
    parts = [engine.scan(fitted, LogLoss(), rows) for rows in (slice(0, 137), slice(137, None))]
    assert whole.dS.allclose(parts[0].dS + parts[1].dS, rtol=1e-9, atol=1e-9)
    assert whole.risks.mean() == pytest.approx(parts[0].risks.plus(parts[1].risks).mean())


def test_naive_bayes_adds_tables_with_and_without_missing_cells():
    X, y, w = rows_with_holes(10, m=120)
    full = np.isfinite(X).all(axis=1)
    full[np.flatnonzero(full)[::2]] = False
    one = GaussianNB(learner="closed_form").fit(X, y, w)
    stream = GaussianNB(learner="closed_form")
    for part in (full, ~full):
        stream.partial_fit(X[part], y[part], classes=[0, 1, 2], sample_weight=w[part])
    np.testing.assert_allclose(stream.theta_, one.theta_, rtol=1e-9)
    np.testing.assert_allclose(stream.var_, one.var_, rtol=1e-8)
    a, b = (GaussianNB(learner="closed_form").fit(X[part], y[part], w[part]) for part in (full, ~full))
    np.testing.assert_allclose(a.merge(b).var_, one.var_, rtol=1e-8)
    rest = one.forget(X[~full], y[~full], w[~full])
    np.testing.assert_allclose(
        rest.theta_, GaussianNB(learner="closed_form").fit(X[full], y[full], w[full]).theta_
    )
    means = np.array([np.nanmean(X[y == k], axis=0) for k in range(3)])
    np.testing.assert_allclose(GaussianNB(learner="closed_form").fit(X, y).theta_, means, rtol=1e-9)


@pytest.mark.parametrize("options", [{}, {"var_smoothing": 0.0}, {"mean_strength": 1.0}], ids=str)
def test_a_class_without_a_cell_in_a_column_has_the_moments_of_all_classes(options):
    X, y, _ = rows_with_holes(18, m=120)
    X[y == 1, 0] = np.nan
    clf = GaussianNB(learner="closed_form", **options).fit(X, y)
    assert clf.theta_[1, 0] == pytest.approx(np.nanmean(X[:, 0]))
    away = X[:, 0] - np.array([np.nanmean(X[y == k, 0]) if k != 1 else 0.0 for k in range(3)])[y]
    assert clf.var_[1, 0] == pytest.approx(np.nanmean(away**2))


def test_naive_bayes_calibrates_on_the_first_rows_with_missing_cells():
    X, y, _ = rows_with_holes(11, m=200, scales=False)
    complete = np.where(np.isnan(X), 0.0, X)
    clf = GaussianNB(learner=RC(max_iter=3)).fit(complete, y)
    assert np.isfinite(clf.calibrate(X, y).predict_proba(X)).all()


@every_estimator
def test_cells_are_filled_by_the_conditional_distribution(clf):
    X, y, w = rows_with_holes(12, m=200, n=3, scales=False)
    fitted = type(clf)(**{**clf.get_params(), "learner": "closed_form"}).fit(X, y, w)
    model, theta, frame = fitted.model_, fitted.parameters_, fitted.statistics_.frame
    Z = model.encode(X, frame)
    filled, missing = model.fill(Z, theta, y), np.isnan(X)
    assert np.isfinite(filled).all()
    np.testing.assert_allclose(filled[~missing], X[~missing], rtol=1e-12, atol=1e-12)
    rows = np.flatnonzero(missing.sum(axis=1) == 2)[:3]
    many, labels = np.repeat(X[rows], 4000, axis=0), np.repeat(y[rows], 4000)
    drawn = model.fill(model.encode(many, frame), theta, labels, np.random.default_rng(0))
    for i, row in enumerate(rows):
        own = drawn[labels.shape[0] // 3 * i :][:4000]
        error = own.std(axis=0) / np.sqrt(4000)
        assert np.all(np.abs(own.mean(axis=0) - filled[row]) <= 5 * error + 1e-9)


def test_a_complete_table_needs_no_em_and_its_new_rows_may_have_holes():
    X, y, w = rows_with_holes(13, m=100, share=0.0)
    for kind in CORRELATED:
        frame = kind().learn(Sample(X, y, w, 3))
        assert frame.start is None
    clf = QuadraticDiscriminantAnalysis().fit(X, y)
    hidden = np.where(np.random.default_rng(0).random(X.shape) < 0.4, np.nan, X)
    assert np.isfinite(clf.predict_proba(hidden)).all()
    with pytest.raises(ValueError, match="had none: they are not among those that were fitted"):
        clf.forget(hidden, y)


def test_transform_and_decisions_of_lda():
    X, y, _ = rows_with_holes(14, m=200, scales=False)
    clf = LinearDiscriminantAnalysis().fit(X, y)
    full = ~np.isnan(X).any(axis=1)
    assert np.isfinite(clf.transform(X)).all()
    np.testing.assert_allclose(clf.transform(X)[full], clf.transform(X[full]), rtol=1e-12)
    scores = clf.decision_function(X)
    np.testing.assert_array_equal(np.argmax(scores, axis=1), clf.predict(X))
    np.testing.assert_allclose(scores[full], clf.decision_function(X[full]), rtol=1e-12)


def test_messages():
    X, y, _ = rows_with_holes(15, m=100, scales=False)
    with pytest.raises(ValueError, match="need complete rows, and X has missing cells"):
        QuadraticDiscriminantAnalysis(shrinkage="auto", learner="closed_form").fit(X, y)
    clf = QuadraticDiscriminantAnalysis(learner="closed_form").fit(X, y)
    far = X[:1].copy()
    far[0, 1:] = np.nan
    far[0, 0] = 1e300
    with pytest.raises(ColumnError, match="Column 0 of X holds 1e\\+300"):
        clf.predict(far)
    with pytest.raises(ValueError, match="contains infinity in column 0"):
        clf.predict(np.where(np.isnan(far), np.nan, np.inf))


@correlated
def test_few_patterns_and_many_patterns_agree(kind):
    """Rows of a frequent pattern are computed together, others in stacks of patterns."""
    X, y, w = rows_with_holes(16, m=300, n=7, share=0.3)
    fitted = closed_form(kind(), X, y, w, 3)[1]
    often = np.repeat(X[:4], 40, axis=0) + np.random.default_rng(0).standard_normal((160, 7))
    together = log_joint(fitted, np.concatenate([often, X]))
    alone = np.concatenate([log_joint(fitted, row[None]) for row in often])
    np.testing.assert_allclose(together[:160], alone, rtol=1e-9, atol=1e-9)


def test_naive_bayes_is_the_sum_over_observed_cells():
    X, y, w = rows_with_holes(17)
    fitted = closed_form(GaussianNBModel(), X, y, w, 3)[1]
    theta = fitted.theta
    cells = norm(theta.means[None] + theta.frame.origin, np.sqrt(theta.variances)).logpdf(X[:, None, :])
    theirs = theta.log_prior + np.nansum(cells, axis=2)
    np.testing.assert_allclose(log_joint(fitted, X), theirs, rtol=1e-10)
    P = np.exp(theirs - logsumexp(theirs, axis=1, keepdims=True))
    np.testing.assert_allclose(posterior(fitted, X), P, atol=1e-10)


@pytest.mark.parametrize("kind", [LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis])
def test_draws_have_the_conditional_moments_whatever_the_units(kind):
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    X = rng.standard_normal((120, 3)) @ rng.standard_normal((3, 3)) + 50 * y[:, None]
    X, units = X * [1.0, 1e3, 1e-2], np.array([1e3, 1e-2])
    clf = kind(learner="closed_form", store_covariance=True).fit(X, y)
    row = X[1].copy()
    row[1:] = np.nan
    drawn = clf.impute(np.tile(row, (20_000, 1)), random_state=0)[:, 1:] / units
    C, mu = (clf.covariance_ if kind is LinearDiscriminantAnalysis else clf.covariance_[1]), clf.means_[1]
    slope = C[1:, 0] / C[0, 0]
    expected = (C[1:, 1:] - np.outer(slope, C[0, 1:])) / np.outer(units, units)
    np.testing.assert_allclose(np.cov(drawn.T), expected, atol=0.05 * np.abs(expected).max())
    middle = (mu[1:] + slope * (row[0] - mu[0])) / units
    np.testing.assert_allclose(drawn.mean(axis=0), middle, atol=0.05 * np.sqrt(np.diag(expected)).max())
